//! Open documents: their text as the client has it, and what is known to be wrong with them.
//!
//! Invariant: problems are kept only for the state of the text that they were found in.

use std::path::PathBuf;
use std::sync::Arc;

use super::judge::DocumentChecker;
use super::problems::Problem;
use super::text::{Encoding, Position, PositionRange, Text};
use super::vocabulary::Vocabulary;
use tollgate_document::doc::{Value, ValueKind};

/// An open document of the editor.
#[derive(Debug)]
pub(super) struct OpenDocument {
    /// The version number that the client gave this state of the text.
    pub(super) version: Option<i64>,
    /// The number that the server gave this state of the text, to recognize outdated checks.
    pub(super) generation: u64,
    /// Name of the file.
    pub(super) file: String,
    pub(super) text: Text,
    /// The engine and settings with which the document is checked.
    pub(super) judge: Arc<DocumentChecker>,
    /// The problems of the current text, after it was checked.
    pub(super) problems: Option<Vec<Problem>>,
}

impl OpenDocument {
    /// Returns the fields and values that can be written in the document, by the profiles of its configuration.
    pub(super) fn vocabulary(&self) -> Vocabulary<'_> {
        Vocabulary { profiles: &self.judge.configured.engine.profiles }
    }

    /// Applies the changes of `textDocument/didChange`, whole texts or ranges, one after the other. False if one cannot
    /// be understood.
    pub(super) fn apply_changes(&mut self, changes: Value<'_>, encoding: Encoding) -> bool {
        for change in changes.items() {
            let (range, new) = (change.get("range"), change.get("text"));
            if new.kind() != ValueKind::String {
                return false;
            }
            if lacks_range(range) {
                self.text = Text::new(new.text().to_owned());
                continue;
            }
            let (Some(start), Some(end)) =
                (parse_position(range.get("start")), parse_position(range.get("end")))
            else {
                return false;
            };
            self.text.replace(PositionRange { start, end }, encoding, new.text());
        }
        changes.kind() == ValueKind::Array
    }
}

/// True if one of the changes replaces the whole text, so that the previous text need not be known.
pub(super) fn replaces_whole_text(changes: Value<'_>) -> bool {
    changes
        .items()
        .any(|change| lacks_range(change.get("range")) && change.get("text").kind() == ValueKind::String)
}

/// True if a change has no range, which means that it replaces the whole text.
fn lacks_range(range: Value<'_>) -> bool {
    !range.exists() || range.is_null_or_absent()
}

/// Parses a position of the protocol; `None` if it is not one.
pub(super) fn parse_position(value: Value<'_>) -> Option<Position> {
    let number = |name| value.get(name).int().and_then(|number| usize::try_from(number).ok());
    Some(Position { line: number("line")?, character: number("character")? })
}

/// Returns the path of a `file:` URI; `None` for other URIs.
pub(super) fn path_of_uri(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    // `file://host/path`: the host is dropped, as there is no other than this one.
    let path = rest.get(rest.find('/')?..)?;
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    let path = String::from_utf8(bytes).ok()?;
    // `/c:/x` on Windows.
    let has_drive = cfg!(windows) && path.as_bytes().get(2) == Some(&b':');
    Some(PathBuf::from(if has_drive { path.trim_start_matches('/') } else { &path }))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::path_of_uri;

    #[test]
    fn addresses_of_files_are_paths() {
        let found = path_of_uri("file:///a%20b/%C3%A4.yaml").expect("a path");
        assert_eq!(found, Path::new("/a b/ä.yaml"));
        for none in ["untitled:Untitled-1", "file:///%ff", "file:///%4", "file://", "https://a/b"] {
            assert_eq!(path_of_uri(none), None, "{none}");
        }
    }
}
