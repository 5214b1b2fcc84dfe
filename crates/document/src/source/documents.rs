//! Splits the text of a file into documents, as kubectl does.
//!
//! A text that begins with `{` is a stream of JSON values; kubectl falls back to YAML when the first or second of
//! them is not JSON. YAML is split at lines that begin with `---` *before* it is parsed, so one broken
//! document leaves the others readable. Documents without content are skipped.
//!
//! Invariant: each document borrows its own part of the text and can be dropped before the next is read.

use std::cell::OnceCell;

use super::InputError;
use super::find::PathLocator;
use super::fix::{self, AliasSharedValues, TextFix};
use super::list::{all_lists, last_member};
use super::span::{LineIndex, SourceLocation};
use super::yaml;
use crate::doc::{self, Doc, Value, ValueKind};
use crate::field::FieldPath;
use crate::finding::Fix;

/// Default maximum size of one document in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 8 << 20;

/// Maximum number of characters of an invalid separator in a message.
const MAX_SHOWN_SEPARATOR_CHARS: usize = 64;

/// A document and its position in the file.
#[derive(Debug)]
pub struct Document<'a> {
    /// Index in the file, counted from 0, including unreadable documents.
    pub index: usize,
    /// The parsed document. Its spans are relative to the start of its own text.
    pub doc: Doc<'a>,
    /// Byte of the file's text at which the document's text starts.
    pub offset: usize,
    pub(super) locator: PathLocator,
    shared: OnceCell<AliasSharedValues>,
}

impl Document<'_> {
    /// The position of a field in the file, or of its key if `on_key` is set. For a missing field, the position of the
    /// nearest existing parent. `lines` covers the whole file.
    pub fn locate(&self, lines: &LineIndex<'_>, path: &FieldPath, on_key: bool) -> SourceLocation {
        let span = self.locator.span_of_path(&self.doc, path, on_key);
        lines.locate(self.offset + span.start as usize..self.offset + span.end as usize)
    }

    /// The value at the path without its last `up` steps; `None` if there is none.
    pub fn value_at_path(&self, path: &FieldPath, up: usize) -> Option<Value<'_>> {
        self.locator.value_at_path(&self.doc, path, up)
    }

    /// Converts a fix to edits of the file's text; `None` if this is not safe. `lines` covers the whole file.
    pub fn text_fix(&self, lines: &LineIndex<'_>, fix: &Fix) -> Option<TextFix> {
        fix::text_fix(self, lines, fix)
    }

    /// The values that aliases share, computed on first use.
    pub(super) fn shared_values(&self) -> &AliasSharedValues {
        self.shared.get_or_init(|| AliasSharedValues::find_in_doc(&self.doc))
    }

    /// The error for a document that is a list, a scalar, or a `List` without items; `None` if it is an
    /// object. `lines` covers the whole file.
    pub fn non_object_or_broken_list_error(&self, file: &str, lines: &LineIndex<'_>) -> Option<InputError> {
        let root = self.doc.root();
        let not_an_object =
            |what| format!("{what} is not a Kubernetes object; expected a mapping with apiVersion and kind");
        let (value, message) = match root.kind() {
            ValueKind::Object => broken_list_error(root)?,
            ValueKind::Array => (root, not_an_object("a list")),
            _ => (root, not_an_object("a plain value")),
        };
        let at = self.offset + value.span().start as usize;
        Some(InputError::at(file, lines, at, message))
    }

    /// The error for a list with a list in it, which kubectl rejects with all of its objects; `None` for any other
    /// document. `lines` covers the whole file.
    pub fn nested_list_error(&self, file: &str, lines: &LineIndex<'_>) -> Option<InputError> {
        let nested = *all_lists(self.doc.root()).get(1)?;
        let at = self.offset + nested.span().start as usize;
        let message = "a list must not contain another list; list its items directly";
        Some(InputError::at(file, lines, at, message))
    }

    /// The line, counted from 1, on which the document's content begins. `lines` covers the whole file.
    pub fn first_line_number(&self, lines: &LineIndex<'_>) -> usize {
        lines.line_and_column(self.offset + self.doc.root().span().start as usize).0
    }
}

/// The value and the error for a `List` whose `items` is missing or not a list; `None` for any other
/// document. Without this error, the list would silently not be checked.
fn broken_list_error(root: Value<'_>) -> Option<(Value<'_>, String)> {
    if last_member(root, "kind").str() != "List" || last_member(root, "apiVersion").str() != "v1" {
        return None;
    }
    match root.last_key_and_value("items") {
        Some((_, items)) if matches!(items.kind(), ValueKind::Array | ValueKind::Null) => None,
        Some((_, items)) => Some((items, "`items` of a List must be a list of objects".to_owned())),
        None => Some((
            last_member(root, "kind"),
            "a List must have the field `items`, a list of objects".to_owned(),
        )),
    }
}

/// The error of a document that cannot be read, and its position in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DocumentError {
    /// Index in the file, counted from 0.
    pub index: usize,
    /// Byte of the file's text at which reading stopped.
    pub at: usize,
    /// Error message.
    pub message: String,
    pub by: RefusedBy,
}

/// Which programs reject a document that this parser rejects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusedBy {
    /// kubectl rejects the document as well, as far as is known.
    Kubectl,
    /// Only Tollgate, because kubectl could read the document differently, or it exceeds a YAML limit.
    Tollgate,
    /// Only Tollgate, because the document is JSON and too large.
    JsonLimit,
}

impl DocumentError {
    /// Creates an error about something that kubectl rejects too.
    pub(super) fn new(at: usize, message: impl Into<String>) -> DocumentError {
        DocumentError { index: 0, at, message: message.into(), by: RefusedBy::Kubectl }
    }

    /// Creates an error about something that kubectl may accept.
    pub(super) fn rejected_by_tollgate(at: usize, message: impl Into<String>) -> DocumentError {
        DocumentError { by: RefusedBy::Tollgate, ..DocumentError::new(at, message) }
    }

    /// Converts the error to an [`InputError`] with file, line and column. `lines` covers the whole file.
    pub fn input_error(&self, file: &str, lines: &LineIndex<'_>) -> InputError {
        InputError::at(file, lines, self.at, self.message.clone())
    }
}

/// Reads the documents of a text one by one, as kubectl splits it.
pub fn documents(text: &str) -> Documents<'_> {
    let start = text.trim_start();
    // kubectl looks at the first block only.
    let json = start.starts_with('{') && text.len() - start.len() < 4096;
    Documents {
        text,
        at: 0,
        index: 0,
        json,
        json_error: None,
        part: None,
        pending: None,
        max_size: MAX_DOCUMENT_BYTES,
        budget: yaml::MAX_REPARSED_BYTES,
    }
}

/// Iterator over the documents of a text.
pub struct Documents<'a> {
    text: &'a str,
    /// Offset of the text that is not read yet.
    at: usize,
    index: usize,
    /// True if the stream has been JSON so far.
    json: bool,
    /// The JSON error of the stream, until a YAML document was read from it.
    json_error: Option<DocumentError>,
    /// What is left of the part between two `---` lines that is read, and its offset.
    part: Option<(usize, std::vec::IntoIter<Result<Doc<'a>, DocumentError>>)>,
    /// An error to report after the preceding document.
    pending: Option<DocumentError>,
    /// Maximum size of a document in bytes.
    max_size: usize,
    /// Remaining number of bytes that may be parsed again.
    budget: usize,
}

impl Documents<'_> {
    /// Sets the maximum size of one document in bytes: for dumps of a cluster, which are one list.
    #[must_use]
    pub fn with_max_size(self, max_size: usize) -> Self {
        Documents { max_size, ..self }
    }
}

impl<'a> Iterator for Documents<'a> {
    type Item = Result<Document<'a>, DocumentError>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = if self.json { self.next_json_or_switch_to_yaml() } else { None };
        let found = match found {
            Some(found) => found,
            None if self.json => return None,
            None => self.next_yaml()?,
        };
        let index = self.index;
        self.index += 1;
        Some(match found {
            Ok((offset, doc)) => {
                Ok(Document { index, doc, offset, locator: PathLocator::default(), shared: OnceCell::new() })
            }
            Err(fault) => Err(DocumentError { index, ..fault }),
        })
    }
}

/// The next document and the byte of the file at which its text starts.
type NextDocument<'a> = Result<(usize, Doc<'a>), DocumentError>;

impl<'a> Documents<'a> {
    /// The next JSON value. `None` at the end, or where kubectl falls back to YAML: then `json` is false.
    // upstream v1.36 YAMLOrJSONDecoder.Decode
    fn next_json_or_switch_to_yaml(&mut self) -> Option<NextDocument<'a>> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let start = self.at + rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
        let end = self.text.floor_char_boundary(start.saturating_add(self.max_size));
        let value = self.text.get(start..end).unwrap_or_default();
        if value.is_empty() {
            return None;
        }
        let error = match doc::parse_prefix(value) {
            Ok((doc, end)) => {
                self.at = start + end;
                return Some(Ok((start, doc)));
            }
            Err(error) => error,
        };
        if error.at >= value.len() && start + value.len() < self.text.len() {
            self.json = false;
            self.at = self.text.len();
            let fault = too_large(start, self.max_size);
            return Some(Err(DocumentError { by: RefusedBy::JsonLimit, ..fault }));
        }
        let fault = DocumentError::new(start + error.at, error.detail);
        self.json = false;
        if self.index > 1 {
            self.at = next_separator(self.text, start);
            return Some(Err(fault));
        }
        // White space up to the first line break belongs to the value before. kubectl looks four bytes ahead, and does
        // not try YAML if there are fewer.
        // upstream v1.37 YAMLOrJSONDecoder.consumeWhitespace
        for (at, letter) in rest.char_indices() {
            if rest.len() - at < 4 {
                self.at = self.text.len();
                return Some(Err(fault));
            }
            if !letter.is_whitespace() {
                self.at += at;
                break;
            }
            if letter == '\n' {
                self.at += at + 1;
                break;
            }
        }
        self.json_error = Some(fault);
        None
    }

    /// The next YAML document that is not empty; `None` at the end.
    fn next_yaml(&mut self) -> Option<NextDocument<'a>> {
        loop {
            if let Some((offset, documents)) = &mut self.part {
                match documents.next() {
                    Some(Ok(doc)) => {
                        self.json_error = None;
                        if doc.root().is_null_or_absent() {
                            continue;
                        }
                        return Some(Ok((*offset, doc)));
                    }
                    Some(Err(fault)) => {
                        let fault = DocumentError { at: fault.at + *offset, ..fault };
                        self.part = None;
                        // The error about JSON says more; whether kubectl reads the text depends on its YAML.
                        let by = fault.by;
                        let fault = self.json_error.take().unwrap_or(fault);
                        return Some(Err(DocumentError { by, ..fault }));
                    }
                    None => self.part = None,
                }
            }
            if let Some(fault) = self.pending.take() {
                return Some(Err(self.json_error.take().unwrap_or(fault)));
            }
            let (start, end) = self.next_part()?;
            let part = self.text.get(start..end).unwrap_or_default();
            if part.len() > self.max_size {
                return Some(Err(too_large(start, self.max_size)));
            }
            if let Some((at, letter)) = first_control_character(part) {
                let message =
                    format!("yaml: control characters are not allowed (U+{:04X})", u32::from(letter));
                return Some(Err(self.json_error.take().unwrap_or(DocumentError::new(start + at, message))));
            }
            self.part = Some((start, yaml::read_part(part, &mut self.budget).into_iter()));
        }
    }

    /// The start and end of the next part, up to a separator line; `None` at the end of the text. A separator before
    /// any other line belongs to the part that it opens.
    // upstream v1.36 YAMLReader.Read
    fn next_part(&mut self) -> Option<(usize, usize)> {
        let start = self.at;
        let mut line_start = start;
        loop {
            let rest = self.text.get(line_start..).unwrap_or_default();
            if let Some(after) = rest.strip_prefix("---") {
                let length = rest.find('\n').map_or(rest.len(), |at| at + 1);
                let after = after.get(..length.saturating_sub(3)).unwrap_or_default().trim();
                if !after.is_empty() && !after.starts_with('#') {
                    let after: String = after.chars().take(MAX_SHOWN_SEPARATOR_CHARS).collect();
                    let message = format!("invalid Yaml document separator: {after}");
                    self.pending = Some(DocumentError::new(line_start, message));
                    self.at = line_start + length;
                    return Some((start, line_start));
                }
                if line_start > start {
                    self.at = line_start + length;
                    return Some((start, line_start));
                }
            }
            let Some(line_break) = memchr::memmem::find(rest.as_bytes(), b"\n---") else { break };
            line_start += line_break + 1;
        }
        self.at = self.text.len();
        (start < self.text.len()).then_some((start, self.text.len()))
    }
}

/// The error for a document of more than `max_size` bytes.
fn too_large(start: usize, max_size: usize) -> DocumentError {
    let limit = max_size >> 20;
    DocumentError::rejected_by_tollgate(
        start,
        format!("the document is larger than {limit} MiB, the most that is read as one object"),
    )
}

/// The start of the next line that begins with `---`; the end of the text if there is none.
fn next_separator(text: &str, from: usize) -> usize {
    text.get(from..).and_then(|rest| rest.find("\n---")).map_or(text.len(), |at| from + at + 1)
}

/// The first character that YAML does not allow, with its byte; `None` if there is none.
// upstream go-yaml v2 yaml_parser_update_buffer
fn first_control_character(text: &str) -> Option<(usize, char)> {
    let suspicious = |byte: &u8| match byte {
        b'\t' | b'\n' | b'\r' => false,
        // The last two begin U+0080 to U+00BF and U+F000 to U+FFFF.
        0..0x20 | 0x7f | 0xc2 | 0xef => true,
        _ => false,
    };
    let first = text.as_bytes().iter().position(suspicious)?;
    let rest = text.get(first..)?;
    let mut letters = rest.char_indices();
    letters
        .find(|(_, letter)| match letter {
            '\t' | '\n' | '\r' | '\u{85}' => false,
            '\0'..' ' | '\u{7f}'..'\u{a0}' | '\u{fffe}' | '\u{ffff}' => true,
            _ => false,
        })
        .map(|(at, letter)| (first + at, letter))
}
