//! Wraps a value in a list, and replaces a list by its only item.

use super::{EditTarget, Replacement, ReplacementBuilder};
use crate::doc::ValueKind;

impl<'d> ReplacementBuilder<'d> {
    /// Wraps a value in a list. Returns `None` if it is a list, is not written, or would be read differently
    /// in brackets.
    pub(super) fn wrap_in_list(&self, target: EditTarget<'d>) -> Option<Vec<Replacement>> {
        let (value, bytes) = (target.value, self.bytes_with_tag_and_anchor(target.value));
        if value.kind() == ValueKind::Object && !self.is_flow(value) {
            let (first, _) = value.members().next()?;
            let (last, of_last) = value.members().last()?;
            let start = Self::bytes(first).start;
            if !self.begins_line(start) {
                return None;
            }
            let mut out = vec![(start..start, "- ".to_owned())];
            out.extend(self.indent_lines_after_first(start..self.unshared_member_end(last, of_last)?, 2));
            return Some(out);
        }
        let is_plain = matches!(value.kind(), ValueKind::String | ValueKind::Number | ValueKind::Bool);
        if bytes.is_empty()
            || is_plain && !self.is_one_line_and_not_block_scalar(value)
            || value.kind() == ValueKind::Array
        {
            return None;
        }
        // Between brackets a comma ends a plain text.
        if is_plain
            && self.source_text(value).contains([',', '[', ']', '{', '}'])
            && !self.source_text(value).starts_with('"')
        {
            return None;
        }
        Some(vec![(bytes.start..bytes.start, "[".to_owned()), (bytes.end..bytes.end, "]".to_owned())])
    }

    /// Replaces a list by its only item. `None` if it does not have exactly one, or if comments would be lost.
    pub(super) fn unwrap_single_item_list(&self, target: EditTarget<'d>) -> Option<Vec<Replacement>> {
        let (list, item) = (target.value, target.value.item(0));
        if list.kind() != ValueKind::Array || list.len() != 1 {
            return None;
        }
        if !self.is_flow(list) {
            let dash = self.dash_position(item).filter(|dash| self.begins_line(*dash))?;
            let is_own: bool = item.kind() == ValueKind::Object && !self.is_shared_by_aliases(item);
            return is_own.then(|| vec![(dash..dash + 1, " ".to_owned())]);
        }
        let (whole, inner) = (Self::bytes(list), Self::bytes(item));
        let (head, tail) = (self.text(whole.start..inner.start), self.text(inner.end..whole.end));
        if inner.is_empty() || self.is_shared_by_aliases(item) || head.contains('#') || tail.contains('#') {
            return None;
        }
        Some(vec![(whole.start..inner.start, String::new()), (inner.end..whole.end, String::new())])
    }
}
