//! Bytes of a text as lines and columns, counted from 1, columns in characters; ends are exclusive.
//!
//! Lazy: only reports need positions. Invariant: a lookup costs the same everywhere, even at the end of a line of eight
//! megabytes.

use std::cell::OnceCell;
use std::ops::Range;

/// Bytes per block of the character index.
const BLOCK_BYTES: usize = 4096;

/// A range of bytes in a file, with the line and column of its start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceLocation {
    /// First line, counted from 1.
    pub line: usize,
    /// Column of the first character.
    pub column: usize,
    /// Last line, counted from 1.
    pub end_line: usize,
    /// Column after the last character.
    pub end_column: usize,
    /// Bytes of the file's text.
    pub bytes: Range<usize>,
    /// The part of `bytes` on the first line, which is underlined in reports.
    pub shown: Range<usize>,
}

/// The positions of the lines of a text. The index is built when it is first needed.
#[derive(Debug)]
pub struct LineIndex<'a> {
    text: &'a str,
    starts: OnceCell<Vec<usize>>,
    /// Number of characters before each block, computed only for long lines.
    blocks: OnceCell<Vec<usize>>,
}

impl<'a> LineIndex<'a> {
    /// Creates the index of lines. Positions are computed on first use.
    pub fn from_text(text: &'a str) -> LineIndex<'a> {
        LineIndex { text, starts: OnceCell::new(), blocks: OnceCell::new() }
    }

    /// The line and column, both from 1, of a byte; a byte past the end counts as the end.
    pub fn line_and_column(&self, at: usize) -> (usize, usize) {
        let at = self.text.floor_char_boundary(at);
        let line = self.line_of(at);
        let start = self.line_starts().get(line - 1).copied().unwrap_or_default();
        let column = if at - start < 2 * BLOCK_BYTES {
            character_count(self.text.as_bytes().get(start..at).unwrap_or_default())
        } else {
            self.characters_before(at) - self.characters_before(start)
        };
        (line, column + 1)
    }

    /// The byte at a line and column, both from 1; the start of the line if it has no such column.
    pub(super) fn byte_at(&self, line: usize, column: usize) -> usize {
        let line = self.line_range(line);
        let mut letters = self.text.get(line.clone()).unwrap_or_default().char_indices();
        line.start + letters.nth(column.saturating_sub(1)).map_or(0, |(at, _)| at)
    }

    /// The number of characters before a byte of the text.
    fn characters_before(&self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let blocks = self.blocks.get_or_init(|| {
            let sums = bytes.chunks(BLOCK_BYTES).scan(0, |before, block| {
                let here = *before;
                *before += character_count(block);
                Some(here)
            });
            sums.collect()
        });
        let block = (at / BLOCK_BYTES).min(blocks.len().saturating_sub(1));
        let before = blocks.get(block).copied().unwrap_or_default();
        before + character_count(bytes.get(block * BLOCK_BYTES..at).unwrap_or_default())
    }

    /// The location of a range of bytes.
    pub fn locate(&self, bytes: Range<usize>) -> SourceLocation {
        let (line, column) = self.line_and_column(bytes.start);
        let (end_line, end_column) = self.line_and_column(bytes.end.max(bytes.start));
        let shown = bytes.start..bytes.end.min(self.line_end(line)).max(bytes.start);
        SourceLocation { line, column, end_line, end_column, bytes, shown }
    }

    /// The bytes of a line, counted from 1, without its line break; empty past the last line.
    pub fn line_range(&self, line: usize) -> Range<usize> {
        let start = self.line_starts().get(line.saturating_sub(1)).copied().unwrap_or(self.text.len());
        start..self.line_end(line).max(start)
    }

    /// The bytes of the line that a byte is in, without its break.
    pub(super) fn line_range_at(&self, at: usize) -> Range<usize> {
        self.line_range(self.line_of(at))
    }

    /// The number of the line, from 1, that a byte is in.
    fn line_of(&self, at: usize) -> usize {
        self.line_starts().partition_point(|&start| start <= at).max(1)
    }

    /// The byte after the last one of a line, counted from 1, without its line break.
    fn line_end(&self, line: usize) -> usize {
        let end = self.line_starts().get(line).copied().unwrap_or(self.text.len());
        self.text.get(..end).map_or(end, |text| text.trim_end_matches(['\n', '\r']).len())
    }

    /// The first byte of each line. `\n`, `\r\n` and a lone `\r` end a line, as they do in YAML.
    fn line_starts(&self) -> &[usize] {
        self.starts.get_or_init(|| {
            let bytes = self.text.as_bytes();
            let breaks = memchr::memchr2_iter(b'\n', b'\r', bytes)
                .filter(|&at| bytes.get(at..at + 2) != Some(b"\r\n"));
            std::iter::once(0).chain(breaks.map(|at| at + 1)).collect()
        })
    }
}

/// The number of characters that begin in these bytes of a text.
fn character_count(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::LineIndex;

    #[test]
    fn positions_count_characters_from_one() {
        let text = "aé\r\nb\rc\n\nd";
        let lines = LineIndex::from_text(text);
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
        for (at, line, column) in table {
            assert_eq!(lines.line_and_column(at), (line, column), "{at}");
        }
        let location = lines.locate(1..11);
        assert_eq!((location.line, location.end_line, location.end_column, location.shown), (1, 5, 2, 1..3));
        assert_eq!(lines.line_range(1), 0..3);
        assert_eq!(lines.line_range(4), 9..9);
    }

    #[test]
    fn a_long_line_has_columns_too() {
        let text = format!("a\n{}\nb", "aé€".repeat(20_000));
        let lines = LineIndex::from_text(&text);
        for at in (2..text.len()).filter(|at| text.is_char_boundary(*at)).step_by(997) {
            let line_start = text[..at].rfind('\n').unwrap() + 1;
            let expected = text[line_start..at].chars().count() + 1;
            assert_eq!(lines.line_and_column(at).1, expected, "{at}");
        }
    }

    #[test]
    fn an_empty_text_has_one_line() {
        assert_eq!(LineIndex::from_text("").line_and_column(0), (1, 1));
    }
}
