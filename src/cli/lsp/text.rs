//! The text of an open document: positions of the protocol, and edits.
//!
//! The protocol counts lines from 0, and columns in the units of an encoding that client and server agree on. This
//! module only applies edits; it reads no files and checks nothing.
//!
//! Invariant: after any sequence of edits the text is the client's, whatever line breaks and letters it has. A position
//! outside of the text means the nearest one inside.

#[cfg(test)]
mod tests;

use std::ops::Range;

use serde::Serialize;

tollgate_formats::named_enum! {
    /// The unit in which the editor counts columns, with its name in the protocol.
    pub(super) enum Encoding {
        Utf8 = "utf-8",
        Utf16 = "utf-16",
        Utf32 = "utf-32",
    }
}

impl Encoding {
    /// The encoding of that name; `None` if there is none.
    pub(super) fn parse(name: &str) -> Option<Encoding> {
        Encoding::ALL.into_iter().find(|encoding| encoding.name() == name)
    }

    /// Length of a character in this encoding.
    fn units(self, letter: char) -> usize {
        match self {
            Encoding::Utf8 => letter.len_utf8(),
            Encoding::Utf16 => letter.len_utf16(),
            Encoding::Utf32 => 1,
        }
    }
}

/// A line and column of a text, both from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) character: usize,
}

/// A range in a text; the end is exclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct PositionRange {
    pub(super) start: Position,
    pub(super) end: Position,
}

/// The text of a document, with the byte offsets at which its lines start.
#[derive(Clone, Debug)]
pub(super) struct Text {
    text: String,
    /// Never empty: the first line starts at 0. `\n`, `\r\n` and a lone `\r` end a line.
    starts: Vec<usize>,
}

impl Text {
    pub(super) fn new(text: String) -> Text {
        let mut made = Text { text, starts: vec![0] };
        made.find_line_starts_from(1);
        made
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the byte offset of a position. A position beyond the end of a line is that end; beyond the last
    /// line, the end of the text; inside of a character, its start.
    pub(super) fn offset(&self, at: Position, encoding: Encoding) -> usize {
        let Some(line) = self.line_range_without_break(at.line) else { return self.text.len() };
        let mut units = 0;
        for (offset, letter) in self.text.get(line.clone()).unwrap_or_default().char_indices() {
            units += encoding.units(letter);
            if units > at.character {
                return line.start + offset;
            }
        }
        line.end
    }

    /// The position of a byte; a byte inside of a character counts as its start.
    pub(super) fn position(&self, at: usize, encoding: Encoding) -> Position {
        let at = self.text.floor_char_boundary(at);
        let line = self.starts.partition_point(|start| *start <= at).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or_default();
        let before = self.text.get(start..at).unwrap_or_default();
        let character = match encoding {
            Encoding::Utf8 => before.len(),
            _ => before.chars().map(|letter| encoding.units(letter)).sum(),
        };
        Position { line, character }
    }

    /// Returns the positions of the start and the end of a range of bytes.
    pub(super) fn range(&self, bytes: &Range<usize>, encoding: Encoding) -> PositionRange {
        PositionRange {
            start: self.position(bytes.start, encoding),
            end: self.position(bytes.end.max(bytes.start), encoding),
        }
    }

    /// Replaces the text between two positions, in whichever order they are.
    pub(super) fn replace(&mut self, range: PositionRange, encoding: Encoding, new: &str) {
        let (start, end) = (self.offset(range.start, encoding), self.offset(range.end, encoding));
        let (start, end) = (start.min(end), start.max(end));
        self.text.replace_range(start..end, new);
        // A start at the edit itself may follow a `\r` that a `\n` now belongs to.
        let kept = self.starts.partition_point(|at| *at < start);
        self.find_line_starts_from(kept);
    }

    /// The bytes of a line without its break.
    pub(super) fn line_range_without_break(&self, line: usize) -> Option<Range<usize>> {
        let start = *self.starts.get(line)?;
        let end = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        let text = self.text.get(start..end)?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        Some(start..start + text.strip_suffix('\r').unwrap_or(text).len())
    }

    /// Finds the starts of all lines but the first `kept` ones, which an edit did not change.
    fn find_line_starts_from(&mut self, kept: usize) {
        self.starts.truncate(kept.max(1));
        let from = self.starts.last().copied().unwrap_or_default();
        let bytes = self.text.as_bytes();
        let rest = bytes.get(from..).unwrap_or_default();
        for at in memchr::memchr2_iter(b'\n', b'\r', rest).map(|at| from + at) {
            if bytes.get(at) == Some(&b'\n') || bytes.get(at + 1) != Some(&b'\n') {
                self.starts.push(at + 1);
            }
        }
    }
}
