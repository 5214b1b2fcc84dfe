//! `tollgate version`: which build this is and what it knows.

use std::io::Write as _;

use clap::ValueEnum;

use super::console::Console;
use super::outcome::{ExitCounts, Failure};
use crate::report::record::record;
use tollgate_api::profile;
use tollgate_engine::rules;

/// Print the version
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,
}

/// Text or JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Output {
    /// Human-readable text
    Text,
    /// JSON, for programs
    Json,
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let version = env!("CARGO_PKG_VERSION");
        let record = record! {
            "version": version,
            "profiles": profile::ALL.iter().map(|profile| profile.name).collect::<Vec<_>>(),
            "rules": rules::all().count(),
        };
        match self.output {
            Output::Json => writeln!(console, "{}", super::to_safe_json(&record)?)?,
            Output::Text => writeln!(console, "tollgate {version}")?,
        }
        Ok(ExitCounts::default())
    }
}
