//! How a command ended: what was counted, or why it stopped; and the exit code of either.
//!
//! Invariant: exit code 1 means a verdict and nothing else; error with the machine or the usage never looks like one.

use std::io;
use std::process::ExitCode;

use super::shared::{FailOn, Shared};
use crate::files;

/// What the exit code depends on.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Tally {
    /// Findings of level deny.
    pub(super) denied: usize,
    /// Findings of level warn.
    pub(super) warned: usize,
    /// Inputs that could not be read.
    pub(super) unreadable: usize,
    /// Inputs on which we failed ourselves.
    pub(super) crashed: usize,
}

impl Tally {
    /// The exit code. A verdict wins over unreadable input: it cannot be undone by reading the rest.
    pub(super) fn exit_code(self, shared: &Shared) -> ExitCode {
        let fails = self.denied > 0 || shared.fail_on == FailOn::Warn && self.warned > 0;
        if self.crashed > 0 {
            ExitCode::from(4)
        } else if fails && !shared.exit_zero {
            ExitCode::from(1)
        } else if self.unreadable > 0 {
            ExitCode::from(3)
        } else {
            ExitCode::SUCCESS
        }
    }
}

/// Why a command stopped before its end.
#[derive(Debug)]
pub(super) enum Failure {
    /// The command line asks for something that does not exist.
    Usage(String),
    /// Something the whole run depends on cannot be read.
    Input(String),
    /// The machine failed.
    Machine(anyhow::Error),
}

impl Failure {
    pub(super) fn message(&self) -> String {
        match self {
            Failure::Usage(message) | Failure::Input(message) => message.clone(),
            Failure::Machine(error) => format!("{error:#}"),
        }
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Usage(_) => ExitCode::from(2),
            Failure::Input(_) => ExitCode::from(3),
            Failure::Machine(_) => ExitCode::from(4),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Machine(anyhow::anyhow!("cannot write the output: {}", files::reason(&error)))
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::Machine(error)
    }
}
