//! Differences between kubectl's YAML (go-yaml v2, YAML 1.1) and the parser's (YAML 1.2): a text that one of them
//! would read differently is an error, with its position and the correct spelling.
//!
//! Line breaks are the reason to be strict: a comment for one reader can be a field for the other, so that the
//! checked manifest would not be the one that is sent.
//!
//! Invariant: one pass over the source, in the order of the tokens.

use granit_parser::ScalarStyle;

use super::documents::{DocumentError, RefusedBy};
use crate::doc::Span;

/// Checks one text between two `---` lines, token by token, for YAML that kubectl's parser reads differently or
/// rejects. `end` is the position that it has reached.
pub(super) struct KubectlDialectChecker<'a> {
    source: &'a str,
    /// Byte offset after the last token that was checked.
    end: usize,
    /// The next of the characters that kubectl reads differently from the parser: see
    /// [`next_character_kubectl_reads_differently`].
    unusual: Option<usize>,
    has_tabs: bool,
    /// True if the text has a tab, `&` or `!`, so that what is between tokens must be checked.
    has_odd_gaps: bool,
    has_double_returns: bool,
}

impl<'a> KubectlDialectChecker<'a> {
    pub(super) fn new(source: &'a str) -> KubectlDialectChecker<'a> {
        let bytes = source.as_bytes();
        let has_odd_gaps = memchr::memchr3(b'\t', b'&', b'!', bytes).is_some();
        KubectlDialectChecker {
            source,
            end: 0,
            unusual: next_character_kubectl_reads_differently(source, 0),
            has_tabs: has_odd_gaps && source.contains('\t'),
            has_odd_gaps,
            has_double_returns: memchr::memchr(b'\r', bytes).is_some() && source.contains("\r\r\n"),
        }
    }

    /// Checks the text between the previous token and this one, and moves past this one. Does nothing for an empty
    /// span.
    pub(super) fn check_gap_before_token(&mut self, span: Span, in_flow: bool) -> Result<(), DocumentError> {
        if span.end > span.start {
            if self.has_odd_gaps {
                self.check_gap_and_find_block_scalar(span.start as usize, in_flow)?;
            }
            self.end = self.end.max(span.end as usize);
        }
        Ok(())
    }

    /// Checks what is between the last token and the byte `to`: white space, comments, indicators, anchors and tags.
    /// Returns where the header of a block scalar begins, or `to` if there is none.
    ///
    /// A tab cannot stand where a key could begin: at the start of a line, after `-` or `?`.
    // upstream go-yaml v2 yaml_parser_scan_to_next_token, yaml_parser_scan_anchor, yaml_parser_scan_tag
    pub(super) fn check_gap_and_find_block_scalar(
        &self,
        to: usize,
        in_flow: bool,
    ) -> Result<usize, DocumentError> {
        let before = self.source.get(..self.end).unwrap_or_default();
        let before = before.trim_end_matches(' ');
        let mut may_be_key = before.is_empty() || before.ends_with(['\n', '\r']);
        let mut at = self.end;
        while let Some(letter) = self.source.get(at..to).and_then(|rest| rest.chars().next()) {
            let rest = self.source.get(at..).unwrap_or_default();
            match letter {
                '\t' if may_be_key && !in_flow => return Err(tab_error(at)),
                '|' | '>' => return Ok(at),
                '\n' | '\r' | '-' | '?' => may_be_key = true,
                '#' => {
                    at += rest.find(['\n', '\r']).unwrap_or(rest.len());
                    continue;
                }
                '&' => {
                    may_be_key = false;
                    at += anchor_name_length(at, rest)?;
                }
                '!' => {
                    may_be_key = false;
                    let length = rest.find([' ', '\t', '\n', '\r']).unwrap_or(rest.len());
                    let tag = rest.get(..length).unwrap_or_default();
                    let full = tag.strip_prefix("!<").and_then(|tag| tag.strip_suffix('>'));
                    // In `!<!!int>`, kubectl reads an abbreviation, and YAML 1.2 a name.
                    let more = if full.is_some() { b',' } else { b'!' };
                    let is_known =
                        |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte) || byte == more;
                    if at + length > to || !full.unwrap_or(tag).bytes().all(is_known) {
                        let message = "yaml: a tag must end with a blank or a line break, and can have letters, \
                                       digits and -_.:/ only";
                        return Err(DocumentError::rejected_by_tollgate(at, message));
                    }
                    at += length - 1;
                }
                _ => {}
            }
            at += letter.len_utf8();
        }
        Ok(to)
    }

    /// Checks the name of an alias.
    pub(super) fn check_alias_name(&self, span: Span) -> Result<(), DocumentError> {
        let at = span.start as usize;
        anchor_name_length(at, self.source.get(at..).unwrap_or_default()).map(drop)
    }

    /// Checks the text before the end of a document, and moves past its `...` if that is written.
    pub(super) fn check_document_end(&mut self, span: Span) -> Result<(), DocumentError> {
        self.check_gap_up_to(span.start as usize)?;
        if self.source.get(span.start as usize..).is_some_and(|end| end.starts_with("...")) {
            self.end = self.end.max(span.end as usize);
        }
        Ok(())
    }

    /// Checks the comments and white space between the last token and the byte `to`.
    fn check_gap_up_to(&self, to: usize) -> Result<(), DocumentError> {
        self.check_unusual_characters(to)?;
        if self.has_odd_gaps {
            self.check_gap_and_find_block_scalar(to, false)?;
        }
        Ok(())
    }

    /// Checks the comments and white space after the last token.
    pub(super) fn check_after_last_token(&self) -> Result<(), DocumentError> {
        self.check_gap_up_to(self.source.len())
    }

    /// Checks a scalar that is not a block scalar. Returns true if it is quoted and has one of the characters of
    /// [`next_character_kubectl_reads_differently`], which the parser reads as ordinary ones: then its value must be
    /// decoded again from the source.
    pub(super) fn check_scalar_and_whether_to_redecode(
        &mut self,
        span: Span,
        style: ScalarStyle,
        is_key: bool,
        in_flow: bool,
    ) -> Result<bool, DocumentError> {
        self.check_gap_before_token(span, in_flow)?;
        let (start, end) = (span.start as usize, span.end as usize);
        let quoted = matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
        self.check_unusual_characters(if quoted && !is_key { start } else { end })?;
        if is_key && let Some(at) = self.source.get(start..end).and_then(|key| key.find(['\n', '\r'])) {
            return Err(DocumentError::rejected_by_tollgate(start + at, "yaml: a key must be on one line"));
        }
        if quoted {
            let has_unusual = self.unusual.is_some_and(|at| at < end);
            if has_unusual {
                self.unusual = next_character_kubectl_reads_differently(self.source, end);
            }
            return Ok(has_unusual);
        }
        if in_flow {
            self.check_plain_in_flow(start, end)?;
        }
        self.check_double_carriage_returns(start, end)?;
        let lines = self.source.get(start..end).filter(|_| self.has_tabs).unwrap_or_default();
        match lines.split(['\n', '\r']).find(|line| is_blank(line) && line.contains('\t')) {
            Some(line) => Err(tab_error(start + line.as_ptr() as usize - lines.as_ptr() as usize)),
            None => Ok(false),
        }
    }

    /// Checks a plain scalar in brackets, which for kubectl ends at `?`, and at `:` only if white space follows.
    // upstream go-yaml v2 yaml_parser_scan_plain_scalar
    fn check_plain_in_flow(&self, start: usize, end: usize) -> Result<(), DocumentError> {
        let scalar = self.source.get(start..end).unwrap_or_default();
        let after = self.source.as_bytes().get(start + scalar.len()..).unwrap_or_default();
        let at = match after {
            [b':', next, ..] if !matches!(next, b' ' | b'\t' | b'\n' | b'\r') => Some(scalar.len()),
            _ => scalar.find('?').or_else(|| scalar.starts_with(':').then_some(0)),
        };
        match at {
            None => Ok(()),
            Some(at) => Err(DocumentError::rejected_by_tollgate(
                start + at,
                "yaml: put a blank after the `:` of a key in brackets, and quote a string with `?` or a `:` in front",
            )),
        }
    }

    /// Returns an error if one of the characters of [`next_character_kubectl_reads_differently`] is before the byte
    /// `end`, outside of quoted scalars.
    pub(super) fn check_unusual_characters(&self, end: usize) -> Result<(), DocumentError> {
        let Some(at) = self.unusual.filter(|at| *at < end) else { return Ok(()) };
        let letter = self.source.get(at..).and_then(|rest| rest.chars().next()).unwrap_or_default();
        let code = u32::from(letter);
        let message = if letter == '\u{feff}' {
            "yaml: a byte order mark (U+FEFF) is inside the text; delete it".to_owned()
        } else {
            format!(
                "yaml: the character U+{code:04X} ends a line for kubectl; delete it, or write \\u{code:04x} in a \
                 double-quoted string"
            )
        };
        Err(DocumentError::rejected_by_tollgate(at, message))
    }

    /// True if the text after the last token may have something that kubectl reads and the parser does not.
    pub(super) fn kubectl_may_read_more(&self, to: usize) -> bool {
        self.unusual.is_some()
            || self.has_odd_gaps
                && matches!(self.check_gap_and_find_block_scalar(to, false), Err(error) if error.by == RefusedBy::Tollgate)
    }

    /// Returns an error if a line of a scalar ends with `\r\r\n`: one line break for kubectl, and two for the parser.
    fn check_double_carriage_returns(&self, start: usize, end: usize) -> Result<(), DocumentError> {
        if self.has_double_returns
            && let Some(at) = self.source.get(start..end).and_then(|scalar| scalar.find("\r\r\n"))
        {
            let message = "yaml: the line ends with two carriage returns; end it with one line break";
            return Err(DocumentError::rejected_by_tollgate(start + at, message));
        }
        Ok(())
    }

    /// Checks a block scalar, whose span is its text: its lines must not be indented by tabs.
    // upstream go-yaml v2 yaml_parser_scan_block_scalar
    pub(super) fn check_block_scalar(&mut self, span: Span) -> Result<(), DocumentError> {
        let end = span.end as usize;
        let start = self.check_gap_and_find_block_scalar(span.start as usize, false)?;
        self.check_unusual_characters(end)?;
        self.check_double_carriage_returns(start, end)?;
        self.end = self.end.max(end);
        let scalar = self.source.get(start..end).unwrap_or_default();
        let content = scalar.find(['\n', '\r']).unwrap_or(scalar.len());
        let (header, lines) = scalar.split_at(content);
        let header = header.split(['#', ' ', '\t']).next().unwrap_or_default();
        if !self.has_tabs || header.contains(|letter: char| letter.is_ascii_digit()) {
            return Ok(());
        }
        let mut indent = None;
        let mut at = start + content;
        for line in lines.split(['\n', '\r']) {
            let text = line.trim_start_matches(' ');
            let blanks = line.len() - text.len();
            if text.starts_with('\t') && indent.is_none_or(|indent| blanks < indent) {
                return Err(tab_error(at + blanks));
            }
            indent = indent.or((!text.is_empty()).then_some(blanks));
            at += line.len() + 1;
        }
        Ok(())
    }
}

/// The length of the name after the `&` or `*` that `anchor` begins with; an error if kubectl would read another name.
/// `at` is the byte of the `&` or `*`.
fn anchor_name_length(at: usize, anchor: &str) -> Result<usize, DocumentError> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let length = anchor.bytes().skip(1).take_while(is_name).count();
    match anchor.as_bytes().get(1 + length) {
        None | Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | b']' | b'}') if length > 0 => Ok(length),
        _ => Err(DocumentError::rejected_by_tollgate(
            at + 1 + length,
            "yaml: the name of an anchor can have letters, digits, - and _ only",
        )),
    }
}

/// The error for a tab where indentation is expected.
pub(super) fn tab_error(at: usize) -> DocumentError {
    DocumentError::new(at, "yaml: tabs cannot be used for indentation; use spaces")
}

fn is_blank(line: &str) -> bool {
    line.bytes().all(|byte| matches!(byte, b' ' | b'\t'))
}

/// The offset of the next U+0085, U+2028, U+2029 or U+FEFF; `None` if there is none. kubectl reads the first three as
/// line breaks and ignores U+FEFF.
fn next_character_kubectl_reads_differently(source: &str, from: usize) -> Option<usize> {
    let bytes = source.as_bytes();
    let found = memchr::memchr3_iter(0xc2, 0xe2, 0xef, bytes.get(from..)?).find(|at| {
        matches!(
            bytes.get(from + at..),
            Some([0xc2, 0x85, ..] | [0xe2, 0x80, 0xa8 | 0xa9, ..] | [0xef, 0xbb, 0xbf, ..])
        )
    })?;
    Some(from + found)
}
