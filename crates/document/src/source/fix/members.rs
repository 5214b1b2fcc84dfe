//! Removes, adds and moves members of objects, and removes items of lists.

use super::{EditTarget, Replacement, ReplacementBuilder};
use crate::doc::{Value, ValueKind};
use crate::finding::NewValue;

impl<'d> ReplacementBuilder<'d> {
    /// Removes an item or a member. `None` if it is the only one of its container, or if it is not sure what to remove.
    pub(super) fn remove_item_or_member(&self, target: EditTarget<'d>) -> Option<Vec<Replacement>> {
        if target.parent.len() < 2 {
            return None;
        }
        let part = match target.key {
            Some(key) => Self::bytes(key).start..self.unshared_member_end(key, target.value)?,
            None => Self::bytes(target.value),
        };
        if self.is_flow(target.parent) {
            let before = target
                .parent
                .self_and_descendants()
                .skip(1)
                .map(Self::bytes)
                .filter(|bytes| bytes.end <= part.start);
            // The first one has no comma before it.
            return self.remove_flow_entry(before.map(|bytes| bytes.end).max()?, part);
        }
        let start = if target.key.is_some() { part.start } else { self.dash_position(target.value)? };
        self.remove_lines_keeping_comments(start..part.end, target.value)
    }

    /// The byte of the dash of an item of a block sequence; `None` if no dash is before it.
    pub(super) fn dash_position(&self, item: Value<'_>) -> Option<usize> {
        let before = self.text(0..Self::bytes(item).start).trim_end_matches(' ');
        before.ends_with('-').then(|| before.len() - 1)
    }

    /// Adds a member to an object: in block style after the first member, in brackets after the last one. `None` if the
    /// key exists.
    pub(super) fn insert(
        &self,
        target: EditTarget<'d>,
        key: &str,
        value: &NewValue,
    ) -> Option<Vec<Replacement>> {
        let object = target.value;
        if object.kind() != ValueKind::Object || object.get(key).exists() {
            return None;
        }
        let like = object.members().next().map_or("", |(key, _)| self.source_text(key));
        // Its value has no quotes to go by.
        let member = format!("{}: {}", self.string_text(key, like), self.scalar_text(value, ""));
        if self.is_flow(object) {
            return self.insert_flow_member(object, &member);
        }
        let (first, of_first) = object.members().next()?;
        let column = self.key_column(first)?;
        let end = self.line_end(self.unshared_member_end(first, of_first)?);
        let line_break = self.line_break(end);
        Some(vec![(end..end, format!("{line_break}{}{member}", " ".repeat(column)))])
    }

    /// Moves a member to the end of another object, if both are in block style or both in brackets. `None` if the key
    /// exists there, or if it is the only member.
    pub(super) fn move_member(&self, from: EditTarget<'d>, into: EditTarget<'d>) -> Option<Vec<Replacement>> {
        let key = from.key?;
        let object = into.value;
        if object.kind() != ValueKind::Object || object.get(key.text()).exists() || from.parent.len() < 2 {
            return None;
        }
        let part = Self::bytes(key).start..self.unshared_member_end(key, from.value)?;
        if self.is_flow(from.parent) {
            let mut out = self.remove_item_or_member(from)?;
            out.extend(self.insert_flow_member(object, self.text(part)).filter(|_| self.is_flow(object))?);
            return Some(out);
        }
        if self.is_flow(object) {
            return None;
        }
        let (first, _) = object.members().next()?;
        let (last, of_last) = object.members().last()?;
        let (old_column, column) = (self.key_column(key)?, self.key_column(first)?);
        let end = self.line_end(self.unshared_member_end(last, of_last)?);
        if !self.begins_line(part.start) {
            return None;
        }
        // Whole lines move, with their comments.
        let (start, stop) = (self.line_start(part.start), self.line_end(part.end));
        let tail = self.text(part.end..stop).trim_start();
        if !tail.is_empty() && !tail.starts_with('#') {
            return None;
        }
        let line_break = self.line_break(end);
        let mut moved = String::new();
        for line in self.text(start..stop).split('\n') {
            let line = line.trim_end_matches('\r');
            let is_comment = line.trim_start().starts_with('#') || line.trim().is_empty();
            let line = if is_comment {
                line.get(old_column..).unwrap_or_else(|| line.trim_start())
            } else {
                line.get(old_column..)?
            };
            moved.push_str(line_break);
            moved.push_str(&" ".repeat(if line.is_empty() { 0 } else { column }));
            moved.push_str(line);
        }
        let next = (stop + self.line_break(stop).len()).min(self.source().len());
        let mut out = vec![(start..next, String::new())];
        out.push((end..end, moved));
        Some(out)
    }
}
