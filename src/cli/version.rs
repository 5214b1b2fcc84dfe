//! `tollgate version`: which build this is and what it knows.

use std::io::Write as _;

use clap::ValueEnum;
use serde::Serialize;

use super::console::Console;
use super::outcome::{Failure, Tally};
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

#[derive(Serialize)]
struct Version {
    #[serde(rename = "version")]
    number: &'static str,
    profiles: Vec<&'static str>,
    rules: usize,
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<Tally, Failure> {
        let version = Version {
            number: env!("CARGO_PKG_VERSION"),
            profiles: profile::ALL.iter().map(|profile| profile.name).collect(),
            rules: rules::all().count(),
        };
        match self.output {
            Output::Json => writeln!(console, "{}", super::to_json(&version)?)?,
            Output::Text => writeln!(console, "tollgate {}", version.number)?,
        }
        Ok(Tally::default())
    }
}
