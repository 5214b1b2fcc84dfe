//! The offline shell's input: files → texts → documents, and the way back from a field path to line and column.
//!
//! One file at a time: [`files::collect`] names the inputs, [`files::read`] reads one, [`documents`] yields its
//! documents one by one, each borrowing from the text, [`list::items`] yields what is to be judged in each. Nothing
//! here judges an object; what cannot be read at all is a [`Trouble`], what can is a [`Document`].
//!
//! Invariant: positions are not stored. A place is a function of text, document and path ([`Document::place`]), and
//! the line index behind it is built when the first place is asked for.

mod alias;
mod documents;
pub mod files;
mod find;
pub mod list;
mod merge;
mod scalar;
pub mod span;
#[cfg(test)]
mod tests;
mod text;
mod yaml;

pub use documents::{Document, Documents, Fault, MAX_DOCUMENT, documents};
pub use span::{Lines, Place};
pub use text::decode;

/// An input, or a part of one, that cannot be read. Line and column count from 1; 0 where there is no place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// The file as the user named it.
    pub file: String,
    /// Line of the fault.
    pub line: usize,
    /// Column of the fault, in characters.
    pub column: usize,
    /// The same place as a byte of the file's text.
    pub at: usize,
    /// What is wrong.
    pub message: String,
}

impl Trouble {
    /// A trouble with the whole file.
    pub fn of_file(file: &str, message: impl Into<String>) -> Trouble {
        Trouble { file: file.to_owned(), line: 0, column: 0, at: 0, message: message.into() }
    }
}

/// For people: the name of the file is one line, whatever it is.
impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let file = crate::sanitize::line(&self.file);
        if self.line == 0 {
            write!(f, "{file}: {}", self.message)
        } else {
            write!(f, "{file}:{}:{}: {}", self.line, self.column, self.message)
        }
    }
}
