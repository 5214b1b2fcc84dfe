//! The outcome of a command: counts, or the reason why it stopped; and the exit codes.
//!
//! Invariant: exit code 1 always means a verdict (and in `lsp`, what its protocol wants); I/O errors and wrong usage
//! have other codes.

use std::io;
use std::process::ExitCode;

use crate::files;
use tollgate_document::source::{InputError, SourceLocation};
use tollgate_formats::sanitize;

/// The counts that determine the exit code.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct ExitCounts {
    /// Findings of level deny.
    pub(super) denied: usize,
    /// Findings of level warn.
    pub(super) warned: usize,
    /// Findings with a fix that `--diff` shows, and that would make `--fix` change a file.
    pub(super) unfixed: usize,
    /// Warnings that cause exit code 1, by `--fail-on warn` or by the configuration of their file.
    pub(super) failing_warnings: usize,
    /// Inputs that could not be read, or not be written.
    pub(super) unreadable: usize,
    /// Inputs that caused an internal error.
    pub(super) crashed: usize,
}

impl ExitCounts {
    /// Returns only the counts of unreadable input and internal errors, for `--exit-zero`.
    pub(super) fn without_findings(self) -> ExitCounts {
        ExitCounts { unreadable: self.unreadable, crashed: self.crashed, ..ExitCounts::default() }
    }

    /// Returns the exit code. Denials take precedence over unreadable input, because reading the rest could not
    /// change them.
    pub(super) fn exit_code(self) -> ExitCode {
        let fails = self.denied > 0 || self.unfixed > 0 || self.failing_warnings > 0;
        if self.crashed > 0 {
            ExitCode::from(4)
        } else if fails {
            ExitCode::from(1)
        } else if self.unreadable > 0 {
            ExitCode::from(3)
        } else {
            ExitCode::SUCCESS
        }
    }
}

/// The reason why a command stopped early, which determines the exit code.
#[derive(Debug)]
pub(super) enum Failure {
    /// The command line is wrong.
    Usage(String),
    /// Input that the whole run depends on cannot be read.
    Input(String),
    /// Like `Input`, with several errors.
    Inputs(Vec<String>),
    /// A session of the language server did not end as the protocol says, which wants exit code 1.
    Session(String),
    /// An I/O or internal error.
    Internal(anyhow::Error),
}

impl Failure {
    /// A failure because of an error at a location of an input file.
    pub(super) fn at_location(file: &str, at: &SourceLocation, what: &dyn std::fmt::Display) -> Failure {
        Failure::Input(format!("{}:{}:{}: {what}", sanitize::sanitize_as_line(file), at.line, at.column))
    }

    pub(super) fn message(&self) -> String {
        match self {
            Failure::Usage(message) | Failure::Input(message) | Failure::Session(message) => message.clone(),
            Failure::Inputs(messages) => messages.join("\n"),
            Failure::Internal(error) => format!("{error:#}"),
        }
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Session(_) => ExitCode::from(1),
            Failure::Usage(_) => ExitCode::from(2),
            Failure::Input(_) | Failure::Inputs(_) => ExitCode::from(3),
            Failure::Internal(_) => ExitCode::from(4),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Internal(anyhow::anyhow!("cannot write the output: {}", files::io_reason(&error)))
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Failure {
        Failure::Input(error.to_string())
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::Internal(error)
    }
}
