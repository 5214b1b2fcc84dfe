//! Manifests: YAML and JSON → documents, and from a field path back to line and column.
//!
//! [`documents`] yields the documents of a text one by one, each borrowing from it; [`list::objects`] yields the
//! objects of each. This module does no I/O; the caller reads the files. Objects are not checked here: text that cannot
//! be read is an [`InputError`], anything else a [`Document`].
//!
//! Invariant: positions are not stored. They are computed from text, document and path ([`Document::locate`]), and
//! the line index is built on first use.

mod alias;
mod comments;
mod dialect;
mod documents;
mod find;
mod fix;
pub mod list;
pub mod markdown;
mod merge;
mod quoted;
mod scalar;
pub mod shape;
mod simple;
pub mod span;
#[cfg(test)]
mod tests;
mod text;
mod writer;
mod yaml;

pub use comments::comment_ranges;
pub use documents::MAX_DOCUMENT_BYTES;
pub use documents::RefusedBy;
pub use documents::{Document, DocumentError, Documents, documents};
pub use fix::{TextEdit, TextFix, apply};
pub use span::{LineIndex, SourceLocation};
pub use text::{decode_by_byte_order_mark, nul_byte_error};

/// An input, or a part of one, that cannot be read. Line and column count from 1; 0 where there is no position.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct InputError {
    /// The file as the user named it.
    pub file: String,
    /// Line of the error, counted from 1.
    pub line: usize,
    /// Column of the error in characters, counted from 1.
    pub column: usize,
    /// Byte offset of the error in the file.
    pub at: usize,
    /// Error message.
    pub message: String,
}

impl InputError {
    /// Creates an error about a whole file, without a position.
    pub fn for_whole_file(file: &str, message: impl Into<String>) -> InputError {
        InputError { file: file.to_owned(), line: 0, column: 0, at: 0, message: message.into() }
    }

    /// Creates an error at a byte of a file's text, of which `lines` are the lines.
    pub fn at(file: &str, lines: &LineIndex<'_>, at: usize, message: impl Into<String>) -> InputError {
        let (line, column) = lines.line_and_column(at);
        InputError { file: file.to_owned(), line, column, at, message: message.into() }
    }

    /// Creates an error at a line and column, both counted from 1, of a file's text, of which `lines` are the lines.
    pub fn at_position(
        file: &str,
        lines: &LineIndex<'_>,
        (line, column): (usize, usize),
        message: impl Into<String>,
    ) -> InputError {
        InputError { line, column, ..InputError::at(file, lines, lines.byte_at(line, column), message) }
    }
}

/// Formats the error for users, with control characters in the file name replaced.
impl std::fmt::Display for InputError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let file = tollgate_formats::sanitize::sanitize_as_line(&self.file);
        if self.line == 0 {
            write!(f, "{file}: {}", self.message)
        } else {
            write!(f, "{file}:{}:{}: {}", self.line, self.column, self.message)
        }
    }
}
