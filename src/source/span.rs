//! Where a field is in the text: a path followed through a document, and bytes as lines and columns.
//!
//! Works on demand and keeps nothing: a finding carries a path, and only a report asks for its place. Lines and
//! columns count from 1, columns in characters; ends are exclusive.
//!
//! Invariant: every path has a place. What is missing is placed at its nearest parent that exists.

use std::cell::{Cell, OnceCell};
use std::ops::Range;

use crate::doc::{Doc, Kind, Span, Value};
use crate::field::{FieldPath, Name};

/// A place in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// First line.
    pub line: usize,
    /// Column of the first character.
    pub column: usize,
    /// Last line.
    pub end_line: usize,
    /// Column after the last character.
    pub end_column: usize,
    /// Bytes of the file's text.
    pub bytes: Range<usize>,
    /// The same, cut at the end of the first line: what a caret underlines.
    pub shown: Range<usize>,
}

/// The bytes of the document's source that a path is about.
///
/// Scalars are marked whole, quotes included. A container is marked by the key that holds it, a list item by the
/// whole item. `on_key` asks for the key itself: the last one, if it is given more than once.
pub fn find(doc: &Doc<'_>, path: &FieldPath, on_key: bool) -> Span {
    let mut at = doc.root();
    let mut held_by: Option<Value<'_>> = None;
    for step in path.user_steps() {
        let (key, next) = match step {
            Name::Index(index) => (None, at.at(*index)),
            Name::Field(name) | Name::Key(name) => match at.member(name) {
                Some((key, value)) => (Some(key), value),
                None => (None, Value::absent()),
            },
        };
        if !next.exists() {
            return held_by.unwrap_or(at).span();
        }
        (at, held_by) = (next, key);
    }
    match held_by {
        Some(key) if on_key || matches!(at.kind(), Kind::Array | Kind::Object) || is_blank(at.span()) => {
            key.span()
        }
        _ => at.span(),
    }
}

/// A null that is not written, such as `key:` with nothing after it.
fn is_blank(span: Span) -> bool {
    span.end <= span.start
}

/// The lines of a text; the index is built when it is first needed.
#[derive(Debug)]
pub struct Lines<'a> {
    text: &'a str,
    starts: OnceCell<Vec<usize>>,
    /// A byte asked for before and its column: in a file that is one long line, the next one is counted from there.
    counted: Cell<(usize, usize)>,
}

impl<'a> Lines<'a> {
    /// The lines of `text`. Costs nothing until a position is asked for.
    pub fn of(text: &'a str) -> Lines<'a> {
        Lines { text, starts: OnceCell::new(), counted: Cell::new((0, 1)) }
    }

    /// Line and column of a byte; a byte past the end counts as the end.
    pub fn position(&self, at: usize) -> (usize, usize) {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let line = self.line_of(at);
        let start = self.starts().get(line - 1).copied().unwrap_or_default();
        let (known, column) = self.counted.get();
        let (from, column) = if (start..=at).contains(&known) { (known, column) } else { (start, 1) };
        let between = self.text.get(from..at).unwrap_or_default();
        let column = column + between.chars().count();
        self.counted.set((at, column));
        (line, column)
    }

    /// The place of a range of bytes.
    pub fn place(&self, bytes: Range<usize>) -> Place {
        let (line, column) = self.position(bytes.start);
        let (end_line, end_column) = self.position(bytes.end.max(bytes.start));
        let shown = bytes.start..bytes.end.min(self.line_end(line)).max(bytes.start);
        Place { line, column, end_line, end_column, bytes, shown }
    }

    /// The bytes of a line (from 1), without its break.
    pub fn line(&self, line: usize) -> Range<usize> {
        let start = self.starts().get(line.saturating_sub(1)).copied().unwrap_or(self.text.len());
        start..self.line_end(line).max(start)
    }

    fn line_of(&self, at: usize) -> usize {
        self.starts().partition_point(|&start| start <= at).max(1)
    }

    fn line_end(&self, line: usize) -> usize {
        let end = self.starts().get(line).copied().unwrap_or(self.text.len());
        self.text.get(..end).map_or(end, |text| text.trim_end_matches(['\n', '\r']).len())
    }

    /// Where lines start. `\n`, `\r\n` and a lone `\r` end a line, as they do in YAML.
    fn starts(&self) -> &[usize] {
        self.starts.get_or_init(|| {
            let bytes = self.text.as_bytes();
            let breaks = bytes
                .iter()
                .enumerate()
                .filter(|&(at, &byte)| byte == b'\n' || byte == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
            std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    #[test]
    fn positions_count_characters_from_one() {
        let text = "aé\r\nb\rc\n\nd";
        let lines = Lines::of(text);
        let table = [
            (0, 1, 1),
            (1, 1, 2),
            (3, 1, 3),
            (5, 2, 1),
            (7, 3, 1),
            (9, 4, 1),
            (10, 5, 1),
            (99, 5, 2),
            (2, 1, 2),
        ];
        // Backwards too: what was counted before must not mislead.
        for (at, line, column) in table.into_iter().chain(table.into_iter().rev()) {
            assert_eq!(lines.position(at), (line, column), "{at}");
        }
        let place = lines.place(1..11);
        assert_eq!((place.line, place.end_line, place.end_column, place.shown), (1, 5, 2, 1..3));
        assert_eq!(lines.line(1), 0..3);
        assert_eq!(lines.line(4), 9..9);
    }

    #[test]
    fn an_empty_text_has_one_line() {
        assert_eq!(Lines::of("").position(0), (1, 1));
    }
}
