//! Reads YAML text into documents, as kubectl does: runs the parser, and handles texts on which it and kubectl
//! disagree.
//!
//! The parser gives events with byte spans, and [`YamlDocBuilder`] turns them into a document.
//! [`KubectlDialectChecker`] rejects what the parser accepts but kubectl rejects or reads differently. A text that only
//! the parser rejects is parsed as a changed copy ([`copy_with_rejected_scalars_masked`]). Most manifests need none of
//! this ([`read_simple_document`]).
//!
//! Invariant: one loop and an explicit stack, so depth and size are limits with a position and never a crash.

use std::borrow::Cow;

use granit_parser::{ErrorKind, Event, ParseResult, Parser, ScanError, StrInput};

use super::dialect::{KubectlDialectChecker, tab_error};
use super::documents::{DocumentError, RefusedBy};
use super::quoted;
use super::simple::read_simple_document;
use super::writer::{YamlDocBuilder, to_span};
use crate::doc::{Builder, Doc, Syntax};

/// Maximum number of bytes of a file that are parsed again to find scalars that only the parser rejects.
pub(super) const MAX_REPARSED_BYTES: usize = 8 << 20;
/// Maximum number of bytes of a text that debug builds read a second time, to compare.
const MAX_COMPARED_BYTES: usize = 64 << 10;
/// Maximum nesting depth of containers.
const MAX_NESTING: usize = 1_000;

/// The documents of a text between two `---` lines: usually one, and an error if another follows `...`. Parsing again is
/// deducted from `budget` in bytes.
pub(super) fn read_part<'a>(source: &'a str, budget: &mut usize) -> Vec<Result<Doc<'a>, DocumentError>> {
    let Some(document) = read_simple_document(source) else { return read_with_parser(source, budget) };
    debug_assert!(
        source.len() > MAX_COMPARED_BYTES || matches_parser_result(&document, source),
        "the parser reads this otherwise: {source}"
    );
    vec![Ok(document)]
}

/// [`read_part`] with the general parser and never with [`read_simple_document`].
fn read_with_parser<'a>(source: &'a str, budget: &mut usize) -> Vec<Result<Doc<'a>, DocumentError>> {
    if let Some(text) = with_line_break_after_blank_last_line(source) {
        return parsed_documents(source, &text);
    }
    let mut documents = parsed_documents(source, source);
    let Some(Err(fault)) = documents.last_mut() else { return documents };
    if let Some(text) = copy_with_rejected_scalars_masked(source, budget) {
        let known = documents.len() - 1;
        documents.truncate(known);
        documents.extend(parsed_documents(source, &text).into_iter().skip(known));
    } else if *budget == 0 {
        // kubectl may read what was not looked at.
        fault.by = RefusedBy::Tollgate;
    }
    documents
}

/// True if a document is the only one that the parser reads from the text, with the same nodes at the same positions.
fn matches_parser_result(document: &Doc<'_>, source: &str) -> bool {
    let parsed = read_with_parser(source, &mut 0);
    let [Ok(parsed)] = parsed.as_slice() else { return false };
    let nodes = |document: &Doc<'_>| {
        let all = document.root().self_and_descendants();
        all.map(|node| (node.kind(), node.span(), node.node_count(), node.text().to_owned()))
            .collect::<Vec<_>>()
    };
    nodes(parsed) == nodes(document)
}

/// The documents that the parser reads from `text`, the source or a copy with the same positions.
fn parsed_documents<'a>(source: &'a str, text: &str) -> Vec<Result<Doc<'a>, DocumentError>> {
    let (mut part, mut parser) = (YamlPart::new(source), new_parser_with_nesting_limit(text, false));
    std::iter::from_fn(|| part.next_document(&mut parser, text)).collect()
}

/// Creates a parser with Tollgate's nesting limit.
pub(super) fn new_parser_with_nesting_limit(text: &str, emit_comments: bool) -> Parser<'_, StrInput<'_>> {
    let options = granit_parser::options! {
        emit_comments: emit_comments,
        flow_nesting_limit: MAX_NESTING,
        block_nesting_limit: MAX_NESTING,
    };
    Parser::new_from_str_with_options(text, options)
}

/// The text with a line break at its end, as kubectl reads it; `None` unless its last line is blank and not empty. A
/// block scalar may keep that line.
fn with_line_break_after_blank_last_line(source: &str) -> Option<String> {
    let last = source.rsplit(['\n', '\r']).next().unwrap_or_default();
    let is_blank = !last.is_empty() && last.bytes().all(|byte| matches!(byte, b' ' | b'\t'));
    is_blank.then(|| format!("{source}\n"))
}

/// A copy of a text with the same positions that the parser accepts, for a text that it rejects although
/// kubectl accepts it; `None` if there is none. See [`quoted::mask_rejected_scalars`].
pub(super) fn copy_with_rejected_scalars_masked(source: &str, budget: &mut usize) -> Option<String> {
    let text = with_line_break_after_blank_last_line(source).map_or(Cow::Borrowed(source), Cow::Owned);
    quoted::mask_rejected_scalars(&text, budget, |text| {
        let at = first_parse_error_offset(text)?;
        // The error is inside of a scalar, whose start the parser says only if it does not end; or it is the start.
        let unclosed = text.get(..at)?.trim_end_matches([' ', '\t', '\n', '\r']);
        let mut starts = first_parse_error_offset(unclosed).into_iter().chain([at]);
        starts.find(|&start| {
            let scalar = text.get(start..).unwrap_or_default();
            scalar.starts_with(['"', '\''])
                && quoted::decode_quoted(scalar).is_ok_and(|(_, length)| start + length > at)
        })
    })
}

/// The byte of the parser's first error in a text; `None` if there is none.
fn first_parse_error_offset(text: &str) -> Option<usize> {
    let mut parser = new_parser_with_nesting_limit(text, false);
    loop {
        if let Err(error) = next_event(&mut parser)? {
            return error.marker().byte_offset();
        }
    }
}

/// A text between two `---` lines.
struct YamlPart<'a> {
    source: &'a str,
    dialect: KubectlDialectChecker<'a>,
    /// Number of nodes to allocate, because the first document is usually the only one.
    capacity: usize,
    /// True at the end of the text, or after an error.
    is_read: bool,
    /// Offset at which the last document ended, if one was read.
    end: Option<usize>,
}

impl<'a> YamlPart<'a> {
    fn new(source: &'a str) -> YamlPart<'a> {
        let capacity = (source.len() / 8).clamp(4, 1 << 20);
        YamlPart { source, dialect: KubectlDialectChecker::new(source), capacity, is_read: false, end: None }
    }

    /// The next document; `None` at the end of the text or after an error. `parsed` is the text that the parser reads.
    fn next_document<'p>(
        &mut self,
        parser: &mut Parser<'p, StrInput<'p>>,
        parsed: &'p str,
    ) -> Option<Result<Doc<'a>, DocumentError>> {
        if self.is_read {
            return None;
        }
        let before = self.end;
        let mut document = self.read_document(parser, parsed).transpose();
        if let (Some(_), Some(end)) = (&document, before) {
            let message =
                "yaml: kubectl does not read what follows `...`; begin the next document with `---`";
            document = Some(Err(DocumentError::rejected_by_tollgate(end, message)));
        }
        self.is_read = !matches!(document, Some(Ok(_)));
        document
    }

    /// Reads the next document; `None` at the end of the text.
    fn read_document<'p>(
        &mut self,
        parser: &mut Parser<'p, StrInput<'p>>,
        parsed: &'p str,
    ) -> Result<Option<Doc<'a>>, DocumentError> {
        let mut writer: Option<YamlDocBuilder<'a, 'p>> = None;
        loop {
            let Some(next) = next_event(parser) else {
                self.dialect.check_after_last_token()?;
                return Ok(None);
            };
            let (event, span) = match next {
                Ok(event) => event,
                Err(error) => {
                    let fault = self.document_error(&error);
                    self.dialect.check_unusual_characters(fault.at + 1)?;
                    let is_complete = writer.as_ref().is_none_or(YamlDocBuilder::has_no_open_container);
                    let is_read =
                        is_complete && self.has_flow_root() || self.dialect.kubectl_may_read_more(fault.at);
                    let by = if is_read { RefusedBy::Tollgate } else { fault.by };
                    return Err(DocumentError { by, ..fault });
                }
            };
            let bytes = span.byte_range();
            debug_assert!(bytes.is_some(), "without bytes every field would be at the start of the file");
            let mut span = to_span(&bytes.unwrap_or_default());
            // The copy may have a line break more.
            span.end = span.end.min(u32::try_from(self.source.len()).unwrap_or(u32::MAX));
            match event {
                Event::DocumentStart(is_written, _) => {
                    if is_written {
                        self.dialect.check_gap_before_token(span, false)?;
                    }
                    let out = Builder::with_capacity(self.source, Syntax::Yaml, self.capacity);
                    writer = Some(YamlDocBuilder::new(self.source, parsed, out));
                    self.capacity = self.capacity.min(64);
                }
                Event::DocumentEnd => {
                    self.dialect.check_document_end(span)?;
                    self.end = Some(span.start as usize);
                    return Ok(writer.map(YamlDocBuilder::finish));
                }
                event => {
                    if let Some(writer) = &mut writer {
                        writer.write_event(event, span, &mut self.dialect)?;
                    }
                }
            }
        }
    }

    /// True if the text begins with a bracket. kubectl then ignores what follows the closing bracket.
    fn has_flow_root(&self) -> bool {
        super::shape::first_content_line(self.source).is_some_and(|(_, line)| line.starts_with(['{', '[']))
    }

    /// True if there is a tab before the first letter of the line that a byte is in.
    fn is_indented_by_tab(&self, at: usize) -> bool {
        let before = self.source.get(..at).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |line_break| line_break + 1);
        let line = self.source.get(start..).unwrap_or_default();
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        line.get(..indent).unwrap_or_default().contains('\t')
    }

    /// The start of the line after the one that a byte is in.
    fn next_line_start(&self, at: usize) -> Option<usize> {
        let end = self.source.get(at..)?.find('\n')?;
        Some(at + end + 1)
    }

    /// Converts the parser's error to kubectl's message, or to a better explanation if there is one.
    fn document_error(&self, error: &ScanError) -> DocumentError {
        let at = error.marker().byte_offset();
        debug_assert!(at.is_some(), "without a byte every error would be at the start of the file");
        let at = at.unwrap_or_default();
        let rest = self.source.get(at..).unwrap_or_default();
        match error.kind() {
            ErrorKind::UnknownAnchor => {
                let name = rest.trim_start_matches('*');
                let name = name.split([' ', '\t', '\r', '\n', ',', ']', '}']).next().unwrap_or_default();
                DocumentError::new(at, format!("yaml: unknown anchor '{name}' referenced"))
            }
            // The text was cut at `---`, so a directive has lost its document; kubectl refuses it for that.
            ErrorKind::ExpectedDocumentStart if self.source.trim_start().starts_with('%') => {
                let at = self.source.len() - self.source.trim_start().len();
                DocumentError::new(
                    at,
                    "yaml: did not find expected <document start>; kubectl does not support % directives",
                )
            }
            // The parser says where the scalar starts.
            _ if rest.starts_with('"')
                && let Err((within, detail)) = quoted::decode_quoted(rest) =>
            {
                DocumentError::new(at + within, format!("yaml: {detail}"))
            }
            ErrorKind::RecursionLimitExceeded => {
                DocumentError::rejected_by_tollgate(at, format!("yaml: {}", error.info()))
            }
            _ if self.is_indented_by_tab(at) => tab_error(at),
            // A value that could go on in the next line: the tab is there.
            _ if error.info().contains("tab")
                && let Some(next) = self.next_line_start(at)
                && self.is_indented_by_tab(next) =>
            {
                tab_error(next)
            }
            _ => DocumentError::new(at, format!("yaml: {}", error.info())),
        }
    }
}

/// The parser's next event; `None` at the end. The only call of the parser, so that the compiler can make one function
/// of it: a second one cost every file a few percent.
#[inline(never)]
pub(super) fn next_event<'a>(parser: &mut Parser<'a, StrInput<'a>>) -> Option<ParseResult<'a>> {
    parser.next_event()
}
