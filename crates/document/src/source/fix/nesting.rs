//! Moves members into a new nested object such as `exactly`, replaces an object by its members, and wraps a scalar in
//! an object.

use super::{EditTarget, Replacement, ReplacementBuilder};
use crate::doc::{Value, ValueKind};

impl<'d> ReplacementBuilder<'d> {
    /// Moves members into a new nested object with the key `key`. Returns `None` if `key` exists, or if the
    /// members are not adjacent.
    pub(super) fn nest(
        &self,
        target: EditTarget<'d>,
        key: &str,
        members: &[Box<str>],
    ) -> Option<Vec<Replacement>> {
        let object = target.value;
        if object.kind() != ValueKind::Object || object.get(key).exists() {
            return None;
        }
        let is_moved = |name: Value<'_>| members.iter().any(|member| name.text_is(member));
        let all: Vec<(Value<'d>, Value<'d>)> = object.members().collect();
        let first = all.iter().position(|(name, _)| is_moved(*name))?;
        let moved: Vec<&(Value<'d>, Value<'d>)> =
            all.iter().skip(first).take_while(|(name, _)| is_moved(*name)).collect();
        // One that stands apart would have to be moved past others.
        if moved.len() != members.len() {
            return None;
        }
        let (first_key, _) = moved.first()?;
        let (last_key, last_value) = moved.last()?;
        let part = Self::bytes(*first_key).start..self.unshared_member_end(*last_key, *last_value)?;
        let name = self.string_text(key, self.source_text(*first_key));
        if self.is_flow(object) {
            return Some(self.enclose(part, &format!("{name}: {{"), "}"));
        }
        let column = self.key_column(*first_key)?;
        let line_break = self.line_break(part.start);
        let mut out =
            vec![(part.start..part.start, format!("{name}:{line_break}{}", " ".repeat(column + 2)))];
        out.extend(self.indent_lines_after_first(part, 2));
        Some(out)
    }

    /// Replaces an object by its members. `None` if one of their keys exists outside, or if comments would be lost.
    pub(super) fn unwrap_object_into_parent(&self, target: EditTarget<'d>) -> Option<Vec<Replacement>> {
        let (key, object) = (target.key?, target.value);
        let (first, _) = object.members().next()?;
        let (last, of_last) = object.members().last()?;
        if object.members().any(|(name, _)| target.parent.get(name.text()).exists()) {
            return None;
        }
        let (start, inner, end) =
            (Self::bytes(key).start, Self::bytes(first).start, self.unshared_member_end(last, of_last)?);
        if self.is_flow(object) {
            let (head, tail) = (self.text(start..inner), self.text(end..Self::bytes(object).end));
            if !self.is_flow(target.parent) || head.contains('#') || tail.contains('#') {
                return None;
            }
            return Some(vec![(start..inner, String::new()), (end..Self::bytes(object).end, String::new())]);
        }
        let by = self.key_column(first)?.checked_sub(self.key_column(key)?)?;
        let between = self.text(Self::bytes(key).end..inner);
        if !between.contains('#') {
            let mut out = vec![(start..inner, String::new())];
            out.extend(self.dedent_lines_after_first(inner..end, by)?);
            return Some(out);
        }
        // The comments stay where they are; only `key:` goes.
        let colon = Self::bytes(key).end + between.find(':')?;
        let after = self.text(colon + 1..self.line_end(colon));
        let blanks = after.len() - after.trim_start_matches(' ').len();
        let mut removed = start..colon + 1 + blanks;
        if blanks == after.len() && self.begins_line(start) {
            // Nothing else is on the line.
            let next_line = removed.end + self.line_break(removed.end).len();
            removed = self.line_start(start)..next_line.min(inner);
        }
        let mut out = vec![(removed, String::new())];
        out.extend(self.dedent_lines_after_first(colon..end, by)?);
        Some(out)
    }

    /// Wraps a scalar in an object with the single member `name`: in braces, or on its own line if braces
    /// would require quotes. Returns `None` if the scalar spans several lines.
    pub(super) fn wrap_in_object(&self, target: EditTarget<'d>, name: &str) -> Option<Vec<Replacement>> {
        let (value, bytes) = (target.value, self.bytes_with_tag_and_anchor(target.value));
        let is_scalar = matches!(value.kind(), ValueKind::String | ValueKind::Number | ValueKind::Bool);
        if bytes.is_empty() || !is_scalar || !self.is_one_line_and_not_block_scalar(value) {
            return None;
        }
        let like = target.key.map_or("", |key| self.source_text(key));
        let name = self.string_text(name, like);
        let written = self.text(bytes.clone());
        let is_harmless =
            |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_' | '/');
        if written.starts_with(['"', '\'']) || written.chars().all(is_harmless) || self.is_flow(target.parent)
        {
            let open = format!("{{{name}: ");
            return Some(vec![(bytes.start..bytes.start, open), (bytes.end..bytes.end, "}".to_owned())]);
        }
        let column = self.key_column(target.key?)? + 2;
        let line_break = self.line_break(bytes.start);
        let before = self.text(0..bytes.start).trim_end_matches(' ').len();
        Some(vec![(before..bytes.start, format!("{line_break}{}{name}: ", " ".repeat(column)))])
    }
}
