//! A fast reader for simple YAML, of which most manifests consist: mappings and lists in block style whose keys are
//! plain words and whose values are on one line.
//!
//! It accepts no YAML that the general parser does not. Any other text, and any error, is left to that parser, which
//! reads the text again from its start.
//!
//! Invariant: a document that is read here is the one that the parser would give, with the same positions. Builds with
//! debug assertions read every text both ways and compare (`yaml::read_part`).

use std::ops::Range;

use granit_parser::{ScalarStyle, StructureStyle};

use super::writer::{YamlDocBuilder, to_span};
use crate::doc::{Builder, Doc, Syntax, ValueKind};

/// Maximum nesting depth of documents that are read here, far below the limit of the parser.
const MAX_DEPTH: usize = 64;
/// Maximum length of a key that is read here. YAML allows 1,024 characters.
const MAX_KEY_BYTES: usize = 512;

/// Reads a text between two `---` lines; `None` if the parser has to.
pub(super) fn read_simple_document(source: &str) -> Option<Doc<'_>> {
    // Tabs, carriage returns and other alphabets have meanings of their own.
    if !source.bytes().all(|byte| matches!(byte, b'\n' | b' '..=b'~')) {
        return None;
    }
    let out = Builder::new(source, Syntax::Yaml);
    let mut reader = SimpleReader {
        source,
        at: source.strip_prefix("---\n").map_or(0, |rest| source.len() - rest.len()),
        out: YamlDocBuilder::new(source, source, out),
        blocks: Vec::with_capacity(16),
        value_is_missing: false,
    };
    while reader.skip_to_content() {
        reader.read_line()?;
    }
    if reader.value_is_missing || reader.blocks.is_empty() {
        return None;
    }
    while !reader.blocks.is_empty() {
        reader.close_block()?;
    }
    Some(reader.out.finish())
}

/// A mapping or list in block style whose end is not reached.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Block {
    /// Column of its keys, or of the `-` of its elements.
    column: usize,
    kind: ValueKind,
}

struct SimpleReader<'a> {
    source: &'a str,
    /// Offset of what is not read yet.
    at: usize,
    out: YamlDocBuilder<'a, 'a>,
    blocks: Vec<Block>,
    /// True after a key whose value is not on its line.
    value_is_missing: bool,
}

impl SimpleReader<'_> {
    /// The byte at a distance from the current one; a line break at the end of the text.
    fn peek(&self, distance: usize) -> u8 {
        self.source.as_bytes().get(self.at + distance).copied().unwrap_or(b'\n')
    }

    fn skip_spaces(&mut self) {
        while self.peek(0) == b' ' {
            self.at += 1;
        }
    }

    /// Moves to the first letter of the next line with content. Returns false if there is none.
    fn skip_to_content(&mut self) -> bool {
        loop {
            self.skip_spaces();
            match self.source.as_bytes().get(self.at) {
                None => return false,
                Some(b'\n') => self.at += 1,
                Some(b'#') => self.skip_comment(),
                Some(_) => return true,
            }
        }
    }

    fn skip_comment(&mut self) {
        let rest = self.source.as_bytes().get(self.at..).unwrap_or_default();
        self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    }

    /// Reads a line from its first letter.
    fn read_line(&mut self) -> Option<()> {
        let before = self.source.get(..self.at)?;
        let column =
            self.at - memchr::memrchr(b'\n', before.as_bytes()).map_or(0, |line_break| line_break + 1);
        let is_element = self.peek(0) == b'-' && self.peek(1) == b' ';
        let kind = if is_element { ValueKind::Array } else { ValueKind::Object };
        self.enter_block(Block { column, kind })?;
        if !is_element {
            return self.read_member();
        }
        let dash = self.at;
        self.at += 1;
        self.skip_spaces();
        let column = column + self.at - dash;
        if self.key_length().is_none() {
            return self.read_value();
        }
        self.open_block(Block { column, kind: ValueKind::Object }, self.at)?;
        self.read_member()
    }

    /// Ends the blocks that end before a line of that block, and begins the block if the line is its first.
    fn enter_block(&mut self, block: Block) -> Option<()> {
        let is_first = self.blocks.is_empty();
        if std::mem::take(&mut self.value_is_missing) || is_first {
            let least = self.blocks.last().map_or(0, |parent| parent.column + 1);
            if block.column >= least {
                return self.open_block(block, self.at);
            }
            // The elements of a list may be in the column of its key. For the parser, such a list begins after the `-`.
            let is_below_key = block.kind == ValueKind::Array && block.column + 1 == least;
            let after_dash = self.source.as_bytes().get(self.at + 1..)?;
            let spaces = after_dash.iter().take_while(|byte| **byte == b' ').count();
            return is_below_key.then(|| self.open_block(block, self.at + 1 + spaces))?;
        }
        while let Some(&last) = self.blocks.last()
            && last != block
        {
            let ends_here =
                last.column > block.column || last.column == block.column && last.kind == ValueKind::Array;
            if !ends_here {
                return None;
            }
            self.close_block()?;
        }
        (!self.blocks.is_empty()).then_some(())
    }

    /// Begins a block at the byte `start`.
    fn open_block(&mut self, block: Block, start: usize) -> Option<()> {
        if self.blocks.len() == MAX_DEPTH {
            return None;
        }
        self.blocks.push(block);
        self.open(block.kind, StructureStyle::Block, start..start)
    }

    fn open(&mut self, kind: ValueKind, style: StructureStyle, bytes: Range<usize>) -> Option<()> {
        self.out.open_container_unless_key_expected(kind, style, 0, to_span(&bytes)).ok()
    }

    fn close(&mut self, bytes: Range<usize>) -> Option<()> {
        self.out.close_container_and_expand_merges(to_span(&bytes)).ok()
    }

    fn close_block(&mut self) -> Option<()> {
        self.blocks.pop();
        self.close(self.at..self.at)
    }

    /// The length of the key that begins here; `None` if there is no key of plain letters.
    fn key_length(&self) -> Option<usize> {
        let rest = self.source.as_bytes().get(self.at..)?;
        let is_key = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b'-');
        let length = rest.iter().take(MAX_KEY_BYTES).take_while(is_key).count();
        let is_followed = self.peek(length) == b':' && matches!(self.peek(length + 1), b' ' | b'\n');
        (rest.first()?.is_ascii_alphanumeric() && is_followed).then_some(length)
    }

    /// Reads a key and the value after it, if it is on the same line.
    fn read_member(&mut self) -> Option<()> {
        let length = self.key_length()?;
        self.write_scalar(ScalarStyle::Plain, self.at..self.at + length)?;
        self.at += length + 1;
        self.skip_spaces();
        match self.peek(0) {
            b'\n' | b'#' => {
                self.value_is_missing = true;
                self.expect_line_end()
            }
            _ => self.read_value(),
        }
    }

    /// Reads the value that the rest of the line consists of.
    fn read_value(&mut self) -> Option<()> {
        let rest = self.source.as_bytes().get(self.at..)?;
        match (self.peek(0), self.peek(1)) {
            (quote @ (b'"' | b'\''), _) => {
                let inside = rest.get(1..)?;
                let length = memchr::memchr3(quote, b'\\', b'\n', inside)?;
                if inside.get(length) != Some(&quote) {
                    return None;
                }
                let style = if quote == b'"' { ScalarStyle::DoubleQuoted } else { ScalarStyle::SingleQuoted };
                self.write_scalar(style, self.at..self.at + length + 2)?;
                self.at += length + 2;
            }
            (bracket @ b'{', b'}') | (bracket @ b'[', b']') => {
                let kind = if bracket == b'{' { ValueKind::Object } else { ValueKind::Array };
                self.open(kind, StructureStyle::Flow, self.at..self.at + 1)?;
                self.close(self.at + 1..self.at + 2)?;
                self.at += 2;
            }
            (first, second) => {
                let is_plain = first.is_ascii_alphanumeric()
                    || matches!(first, b'_' | b'/' | b'.' | b'$')
                    || first == b'-' && second.is_ascii_alphanumeric();
                if !is_plain {
                    return None;
                }
                let length = plain_length(rest)?;
                self.write_scalar(ScalarStyle::Plain, self.at..self.at + length)?;
                self.at += length;
            }
        }
        self.expect_line_end()
    }

    /// Writes a key or value, quotes included, without escapes.
    fn write_scalar(&mut self, style: ScalarStyle, bytes: Range<usize>) -> Option<()> {
        let whole = self.source.get(bytes.clone())?;
        let text = match style {
            ScalarStyle::Plain => whole,
            _ => whole.get(1..whole.len() - 1)?,
        };
        self.out.write_scalar_as_key_or_value(text, style, 0, None, to_span(&bytes)).ok()
    }

    /// Skips spaces and a comment; `None` if anything else follows on the line.
    fn expect_line_end(&mut self) -> Option<()> {
        self.skip_spaces();
        let before = self.source.as_bytes().get(self.at.wrapping_sub(1));
        if self.peek(0) == b'#' && before == Some(&b' ') {
            self.skip_comment();
        }
        (self.peek(0) == b'\n').then_some(())
    }
}

/// The length of a plain string that ends at the end of the line or before a comment, without trailing spaces; `None`
/// if it has the `:` of a key.
fn plain_length(rest: &[u8]) -> Option<usize> {
    let line = rest.get(..memchr::memchr(b'\n', rest).unwrap_or(rest.len()))?;
    let end = memchr::memmem::find(line, b" #").unwrap_or(line.len());
    let text = line.get(..end)?.trim_ascii_end();
    let is_key = |at: usize| matches!(text.get(at + 1), None | Some(b' '));
    (!memchr::memchr_iter(b':', text).any(is_key)).then_some(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::read_simple_document;
    use crate::source::documents;

    #[test]
    fn manifests_are_read_without_the_parser_and_unusual_texts_with_it() {
        for text in [
            "---\na: 1\n",
            "# note\nkind: Pod # note\nspec:\n  a: \"b # c\"\n  b: 'c'\n  c: {}\n  d: []\n",
            "items:\n- name: x\n  list:\n  - 1\n  - -2\n- name: y\nlast: a:b\n",
            "items: # note\n    - a\n\n    - 'b'\n",
            "a: \"b\"\n   ",
        ] {
            assert_eq!(documents(text).count(), 1, "{text}");
            assert!(read_simple_document(text).is_some(), "{text}");
        }
        for text in [
            "",
            "a",
            "a:\n",
            "a: |\n  b\n",
            "a: &x b\n",
            "a: b\n  c\n",
            "a: \"b\\n\"\n",
            "a: 'b''c'\n",
            "a:\tb\n",
            "a: é\n",
            "a: b: c\n",
            "- - a\n",
            "a: [b]\n",
            "<<: a\n",
            "a: b\n...\n",
            "a: 1\n- b\n",
            "a:\n b: 1\nc:\n",
            "a: \"b\"c\n",
            "null: a\n",
        ] {
            assert!(read_simple_document(text).is_none(), "{text}");
        }
    }

    /// What lines consist of: what is read here, and what is almost that.
    const LINES: &[&str] = &[
        "a:",
        "b: x",
        "c/d.e-f: 1",
        "- x",
        "- a: 1",
        "- a:",
        "-  b: 'q'",
        "-",
        "- - x",
        "# note",
        "",
        "g: \"q\" # note",
        "h: ''",
        "i: {}",
        "j: []",
        "k: {l: m}",
        "n: |",
        "o: &p q",
        "r: s: t",
        "u: v#w # x",
        "y: -1",
        "z: - a",
        "true: null",
        "null: a",
        "<<: a",
        "0x10: 2026-01-01T00:00:00Z",
        "...",
        "? a",
        "%",
        "a: \"",
        "b: 'c' d",
        "e: ~",
        "f: .5",
        "g: $(H)",
        "i: a  ",
    ];
    const ENDS: &[&str] = &["", "\n", "  ", "\n   ", "  # end", "\n..."];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

        /// The comparison is in `yaml::read_part`. A line that would leave the text to the parser is seldom kept, so
        /// that most texts are compared.
        #[test]
        fn the_parser_reads_the_same(
            lines in prop::collection::vec((0..6_usize, prop::sample::select(LINES), 0..20_u8), 1..16),
            end in prop::sample::select(ENDS),
        ) {
            let mut text = String::new();
            for (indent, content, luck) in lines {
                let longer = format!("{text}{}{content}\n", " ".repeat(indent));
                let is_simple = |more: &str| read_simple_document(&format!("{longer}{more}")).is_some();
                if luck == 0 || is_simple("") || is_simple("        z: 1") {
                    text = longer;
                }
            }
            let text = format!("{}{end}", text.trim_end_matches('\n'));
            let documents = documents(&text).count();
            prop_assert!(read_simple_document(&text).is_none() || documents == 1);
        }
    }
}
