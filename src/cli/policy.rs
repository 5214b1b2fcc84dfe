//! `tollgate policy`: compares policies, shows what they allow, and converts them to other forms.

mod check;
mod diff;
mod export;
mod import;
mod report;
mod stored;

pub(super) use export::DIGEST_ANNOTATION as EXPORT_DIGEST;

use super::console::Console;
use super::outcome::{ExitCounts, Failure};
use crate::report::replace_control_chars;

/// Compare policies, ask what they allow, and convert them to custom resources or ValidatingAdmissionPolicies
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Check(Box<check::Check>),
    Diff(Box<diff::Diff>),
    Import(import::Import),
    Export(Box<export::Export>),
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        match &self.command {
            Command::Check(check) => check.run(console),
            Command::Diff(diff) => diff.run(console),
            Command::Import(import) => import.run(console),
            Command::Export(export) => export.run(console),
        }
    }
}

/// Returns a text as one line without control characters.
fn printable_line(text: &str) -> String {
    replace_control_chars(text).replace('\n', "\u{fffd}")
}
