//! Compilation errors and their text: `ERROR: <input>:1:7: undefined field 'nope'`, then the source
//! line and a caret.
//!
//! Columns count characters. In the line with the caret, a full-width dot stands for each preceding character that is
//! not ASCII, so that the caret lines up in a terminal.

use std::fmt::Write as _;

/// Maximum number of issues that the server reports for one expression. Further issues are only counted.
const MAX_KEPT_ISSUES: usize = 100;

/// The offset of an issue about a part that the parser did not recognize. It is reported before the first column of the
/// first line.
pub(super) const BEFORE_START: usize = usize::MAX;

/// The position of an issue. The order of variants is the order of printing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Position {
    /// The issue is about the expression as a whole, so it has no position.
    Nowhere,
    BeforeStart,
    /// A byte offset in the source.
    Offset(usize),
}

/// An error in an expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpressionError {
    /// Byte offset in the expression.
    pub at: usize,
    /// The server's message.
    pub message: String,
}

/// An error in an expression, with its position.
#[derive(Debug)]
struct Issue {
    at: Position,
    message: String,
}

/// The errors that were found in one expression, in cel-go's words.
pub(super) struct Issues<'t> {
    source: &'t str,
    list: Vec<Issue>,
    truncated: usize,
}

impl<'t> Issues<'t> {
    pub(super) fn new(source: &'t str) -> Self {
        Issues { source, list: Vec::new(), truncated: 0 }
    }

    #[cfg(test)]
    pub(super) fn source(&self) -> &'t str {
        self.source
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds an issue at a byte offset of the source, or at [`BEFORE_START`].
    pub(super) fn report(&mut self, at: usize, message: impl Into<String>) {
        self.push_or_count(
            if at == BEFORE_START { Position::BeforeStart } else { Position::Offset(at) },
            message,
        );
    }

    /// Adds an issue without a position, such as a limit of the compiler itself.
    pub(super) fn report_unpositioned(&mut self, message: impl Into<String>) {
        self.push_or_count(Position::Nowhere, message);
    }

    /// Adds an issue, or only counts it if there are too many.
    fn push_or_count(&mut self, at: Position, message: impl Into<String>) {
        if self.list.len() < MAX_KEPT_ISSUES {
            self.list.push(Issue { at, message: message.into() });
        } else {
            self.truncated += 1;
        }
    }

    /// All issues in source order, each with the byte that it is about.
    pub(super) fn into_errors(mut self) -> Vec<ExpressionError> {
        self.list.sort_by_key(|issue| issue.at);
        let fault = |issue: Issue| {
            let at = if let Position::Offset(at) = issue.at { at.min(self.source.len()) } else { 0 };
            ExpressionError { at, message: issue.message }
        };
        self.list.into_iter().map(fault).collect()
    }

    /// The text of all issues in source order, in the server's words. Issues that begin after more than `max_detail`
    /// bytes are omitted.
    pub(super) fn into_message(mut self, max_detail: usize) -> String {
        // Stable: issues at one position stay in the order they were found.
        self.list.sort_by_key(|issue| issue.at);
        let mut text = String::from("compilation failed: ");
        for (position, issue) in self.list.iter().enumerate() {
            if text.len() > max_detail {
                break;
            }
            if position > 0 {
                text.push('\n');
            }
            self.append_issue_with_caret(issue, &mut text);
        }
        if self.truncated > 0 {
            // Writing to a string does not fail.
            let _ = write!(text, "\n{} more errors were truncated", self.truncated);
        }
        text
    }

    /// Appends an issue with its position, its source line and a caret.
    fn append_issue_with_caret(&self, issue: &Issue, text: &mut String) {
        // A line has characters from column 1 on.
        let (at, first_column) = match issue.at {
            Position::Nowhere => return text.extend(["ERROR: <input>:-1:0: ", &issue.message]),
            _ if self.source.is_empty() => return text.extend(["ERROR: <input>:1:0: ", &issue.message]),
            Position::BeforeStart => (0, 0),
            Position::Offset(at) => (at.min(self.source.len()), 1),
        };
        let before = self.source.get(..at).unwrap_or(self.source);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_number = before.matches('\n').count() + 1;
        let prefix = before.get(line_start..).unwrap_or("");
        let rest = self.source.get(line_start..).unwrap_or("");
        let line = rest.split('\n').next().unwrap_or("");
        let column = prefix.chars().count() + first_column;
        // Writing to a string does not fail.
        let _ = write!(text, "ERROR: <input>:{line_number}:{column}: {}\n | ", issue.message);
        text.extend(line.chars().map(|c| if c == '\t' { ' ' } else { c }));
        text.push_str("\n | ");
        text.extend(prefix.chars().map(|c| if c.is_ascii() { '.' } else { '\u{ff0e}' }));
        let pointed = self.source.get(at..).and_then(|tail| tail.chars().next());
        text.push(if pointed.is_none_or(|c| c.is_ascii()) { '^' } else { '\u{ff3e}' });
    }
}
