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
    let (mut parser, mut dialect) =
        (new_parser_with_nesting_limit(text, false), KubectlDialectChecker::new(source));
    let (document, end) = match read_document(source, text, &mut parser, &mut dialect) {
        Ok(Some(found)) => found,
        Ok(None) => return Vec::new(),
        Err(fault) => return vec![Err(fault)],
    };
    let mut rest = std::iter::from_fn(|| next_event(&mut parser));
    let is_ignored = rest.any(|event| matches!(event, Err(_) | Ok((Event::DocumentStart(..), _))))
        || dialect.check_after_last_token().is_err();
    let ignored = is_ignored.then(|| {
        let message = "yaml: kubectl does not read what follows `...`; begin the next document with `---`";
        Err(DocumentError::rejected_by_tollgate(end, message))
    });
    std::iter::once(Ok(document)).chain(ignored).collect()
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

/// Reads the first document and the byte at which it ends; `None` if there is none. `parsed` is the text that the parser
/// reads.
fn read_document<'a, 'p>(
    source: &'a str,
    parsed: &'p str,
    parser: &mut Parser<'p, StrInput<'p>>,
    dialect: &mut KubectlDialectChecker<'a>,
) -> Result<Option<(Doc<'a>, usize)>, DocumentError> {
    let mut writer: Option<YamlDocBuilder<'a, 'p>> = None;
    loop {
        let Some(next) = next_event(parser) else {
            dialect.check_after_last_token()?;
            return Ok(None);
        };
        let (event, span) = match next {
            Ok(event) => event,
            Err(error) => {
                let fault = document_error(source, &error);
                dialect.check_unusual_characters(fault.at + 1)?;
                let is_complete = writer.as_ref().is_none_or(YamlDocBuilder::has_no_open_container);
                let is_read = is_complete && has_flow_root(source) || dialect.kubectl_may_read_more(fault.at);
                let by = if is_read { RefusedBy::Tollgate } else { fault.by };
                return Err(DocumentError { by, ..fault });
            }
        };
        let bytes = span.byte_range();
        debug_assert!(bytes.is_some(), "without bytes every field would be at the start of the file");
        let mut span = to_span(&bytes.unwrap_or_default());
        // The copy may have a line break more.
        span.end = span.end.min(u32::try_from(source.len()).unwrap_or(u32::MAX));
        match event {
            Event::DocumentStart(is_written, _) => {
                if is_written {
                    dialect.check_gap_before_token(span, false)?;
                }
                let capacity = (source.len() / 8).clamp(4, 1 << 20);
                let out = Builder::with_capacity(source, Syntax::Yaml, capacity);
                writer = Some(YamlDocBuilder::new(source, parsed, out));
            }
            Event::DocumentEnd => {
                dialect.check_document_end(span)?;
                return Ok(writer.map(|writer| (writer.finish(), span.start as usize)));
            }
            event => {
                if let Some(writer) = &mut writer {
                    writer.write_event(event, span, dialect)?;
                }
            }
        }
    }
}

/// True if the text begins with a bracket. kubectl then ignores what follows the closing bracket.
fn has_flow_root(source: &str) -> bool {
    super::shape::first_content_line(source).is_some_and(|(_, line)| line.starts_with(['{', '[']))
}

/// True if there is a tab before the first letter of the line that a byte is in.
fn is_indented_by_tab(source: &str, at: usize) -> bool {
    let before = source.get(..at).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |line_break| line_break + 1);
    let line = source.get(start..).unwrap_or_default();
    let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
    line.get(..indent).unwrap_or_default().contains('\t')
}

/// The start of the line after the one that a byte is in.
fn next_line_start(source: &str, at: usize) -> Option<usize> {
    let end = source.get(at..)?.find('\n')?;
    Some(at + end + 1)
}

/// Converts the parser's error to kubectl's message, or to a better explanation if there is one.
fn document_error(source: &str, error: &ScanError) -> DocumentError {
    let at = error.marker().byte_offset();
    debug_assert!(at.is_some(), "without a byte every error would be at the start of the file");
    let at = at.unwrap_or_default();
    let rest = source.get(at..).unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownAnchor => {
            let name = rest.trim_start_matches('*');
            let name = name.split([' ', '\t', '\r', '\n', ',', ']', '}']).next().unwrap_or_default();
            DocumentError::new(at, format!("yaml: unknown anchor '{name}' referenced"))
        }
        // The text was cut at `---`, so a directive has lost its document; kubectl refuses it for that.
        ErrorKind::ExpectedDocumentStart if source.trim_start().starts_with('%') => {
            let at = source.len() - source.trim_start().len();
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
        _ if is_indented_by_tab(source, at) => tab_error(at),
        // A value that could go on in the next line: the tab is there.
        _ if error.info().contains("tab")
            && let Some(next) = next_line_start(source, at)
            && is_indented_by_tab(source, next) =>
        {
            tab_error(next)
        }
        _ => DocumentError::new(at, format!("yaml: {}", error.info())),
    }
}

/// The parser's next event; `None` at the end. The only call of the parser, so that the compiler can make one function
/// of it: a second one cost every file a few percent.
#[inline(never)]
pub(super) fn next_event<'a>(parser: &mut Parser<'a, StrInput<'a>>) -> Option<ParseResult<'a>> {
    parser.next_event()
}
