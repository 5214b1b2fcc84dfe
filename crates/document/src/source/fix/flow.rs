//! Lists and objects in brackets: flow style of YAML, and JSON.

use std::ops::Range;

use super::{Replacement, ReplacementBuilder};
use crate::doc::{Syntax, Value};

impl ReplacementBuilder<'_> {
    /// Removes an item or member in brackets with the comma before it; `before` is the end of the one before. `None` if
    /// more than a comma is between them.
    pub(super) fn remove_flow_entry(&self, before: usize, part: Range<usize>) -> Option<Vec<Replacement>> {
        let (left, right) = self.text(before..part.start).split_once(',')?;
        let is_comma = left.trim().is_empty() && right.trim().is_empty();
        is_comma.then(|| vec![(before..part.end, String::new())])
    }

    /// Adds a member after the last one of an object in brackets, in the layout of the last one. `None` if it is not
    /// sure where.
    pub(super) fn insert_flow_member(&self, object: Value<'_>, member: &str) -> Option<Vec<Replacement>> {
        let whole = Self::bytes(object);
        let Some((key, value)) = object.members().last() else {
            let inside = whole.start + 1..whole.end.checked_sub(1)?;
            let is_blank = self.text(inside.clone()).trim().is_empty();
            return is_blank.then(|| vec![(inside, member.to_owned())]);
        };
        let (key, value) = (Self::bytes(key), Self::bytes(value));
        if value.is_empty() || value.start < key.end || value.end > whole.end {
            return None;
        }
        let before = self.text(whole.start..key.start);
        let gap = before
            .rfind(['{', ','])
            .and_then(|at| before.get(at + 1..))
            .filter(|gap| gap.trim().is_empty())?;
        // An object with one member in one line has no gap, one of JSON with more has whatever its author likes.
        let is_only = object.members().count() == 1;
        let gap = if is_only && !gap.contains('\n') { " " } else { gap };
        Some(vec![(value.end..value.end, format!(",{gap}{member}"))])
    }

    /// Inserts `open` and `close` around a range. If the range begins a line, they get their own lines, and
    /// the lines between them are indented.
    pub(super) fn enclose(&self, bytes: Range<usize>, open: &str, close: &str) -> Vec<Replacement> {
        let before = self.text(self.line_start(bytes.start)..bytes.start);
        if !before.trim().is_empty() || before.is_empty() && self.document.doc.syntax() != Syntax::Json {
            return vec![
                (bytes.start..bytes.start, open.to_owned()),
                (bytes.end..bytes.end, close.to_owned()),
            ];
        }
        let line_break = self.line_break(bytes.start);
        let mut out = vec![(bytes.start..bytes.start, format!("{open}{line_break}{before}  "))];
        out.extend(self.indent_lines_after_first(bytes.clone(), 2));
        out.push((bytes.end..bytes.end, format!("{line_break}{before}{close}")));
        out
    }
}
