//! Compilation errors and their text: `ERROR: <input>:1:7: undefined field 'nope'`, then the source
//! line and a caret.
//!
//! Knows nothing of why something is wrong. Columns count characters; a character that is not ASCII
//! is shadowed by a full-width dot, so that the caret lines up in a terminal.

use std::fmt::Write as _;

/// The server prints no more than this many issues of one expression.
pub(super) const MAX_PRINTED: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Issue {
    /// Byte offset in the source; `None` is an issue with the expression as a whole.
    at: Option<usize>,
    message: String,
}

pub(super) struct Issues<'t> {
    source: &'t str,
    list: Vec<Issue>,
}

impl<'t> Issues<'t> {
    pub(super) fn new(source: &'t str) -> Self {
        Issues { source, list: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn report(&mut self, at: usize, message: impl Into<String>) {
        self.list.push(Issue { at: Some(at), message: message.into() });
    }

    /// An issue without a position, such as a limit of the compiler itself.
    pub(super) fn internal(&mut self, message: impl Into<String>) {
        self.list.push(Issue { at: None, message: message.into() });
    }

    /// The byte offset of a 1-based line and column counted in characters.
    pub(super) fn offset_of(&self, line: usize, column: usize) -> usize {
        let mut start = 0;
        for (number, text) in self.source.split_inclusive('\n').enumerate() {
            if number + 1 == line {
                let within: usize = text.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum();
                return start + within;
            }
            start += text.len();
        }
        self.source.len()
    }

    /// All issues in source order, as the server words them; it may end anywhere past `max_detail` bytes.
    pub(super) fn detail(mut self, max_detail: usize) -> String {
        // Stable: issues at one position stay in the order they were found.
        self.list.sort_by_key(|issue| issue.at);
        let mut text = String::from("compilation failed: ");
        for (position, issue) in self.list.iter().take(MAX_PRINTED).enumerate() {
            if text.len() > max_detail {
                break;
            }
            if position > 0 {
                text.push('\n');
            }
            self.print(issue, &mut text);
        }
        text
    }

    fn print(&self, issue: &Issue, text: &mut String) {
        let Some(at) = issue.at else {
            text.push_str("ERROR: <input>:-1:0: ");
            text.push_str(&issue.message);
            return;
        };
        if self.source.is_empty() {
            text.push_str("ERROR: <input>:1:0: ");
            text.push_str(&issue.message);
            return;
        }
        let at = at.min(self.source.len());
        let before = self.source.get(..at).unwrap_or(self.source);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_number = before.matches('\n').count() + 1;
        let prefix = before.get(line_start..).unwrap_or("");
        let rest = self.source.get(line_start..).unwrap_or("");
        let line = rest.split('\n').next().unwrap_or("");
        let column = prefix.chars().count() + 1;
        // Writing to a string does not fail.
        let _ = write!(text, "ERROR: <input>:{line_number}:{column}: {}\n | ", issue.message);
        text.extend(line.chars().map(|c| if c == '\t' { ' ' } else { c }));
        text.push_str("\n | ");
        text.extend(prefix.chars().map(|c| if c.is_ascii() { '.' } else { '\u{ff0e}' }));
        let pointed = self.source.get(at..).and_then(|tail| tail.chars().next());
        text.push(if pointed.is_none_or(|c| c.is_ascii()) { '^' } else { '\u{ff3e}' });
    }
}
