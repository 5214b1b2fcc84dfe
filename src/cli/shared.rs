//! Flags that several commands share, in groups. Each command flattens the groups that it uses, and has no others.
//!
//! Invariant: an unknown name is wrong usage; the message suggests the nearest known name.

mod context;
mod engine;
mod release;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(super) use context::ContextArgs;
pub(super) use engine::{DefaultRules, EngineArgs, PolicyArgs};
pub(super) use release::{ApiServerArgs, ProfileArg, ReleaseArgs, parse_profile};

use super::outcome::{ExitCounts, Failure};
use crate::config::rule_and_origin_names;
use tollgate_api::conform::suggest::distance;
use tollgate_engine::rules::RuleOrigin;

/// Flags of every command.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct OutputArgs {
    /// Print only findings; omit the summary and notes
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,

    /// When to use colors
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_short_help = true)]
    pub(super) color: Color,
}

/// Flags of commands that read the state of a cluster.
#[derive(Clone, Debug, Args)]
pub(super) struct StateArgs {
    /// File or folder with the cluster state, or `-` for stdin; can be repeated (default: read the cluster that
    /// --context or the current context specifies)
    #[arg(id = "state", long = "state", value_name = "DUMP", env = "TOLLGATE_STATE")]
    pub(super) paths: Vec<PathBuf>,

    /// Treat the dump as complete: if it contains no objects of a kind, assume that the cluster has none
    #[arg(long)]
    #[arg(hide_short_help = true)]
    pub(super) assume_complete: bool,
}

impl StateArgs {
    /// Returns an error if both the state and the other input, which `what` names, would be read from stdin.
    pub(super) fn refuse_shared_stdin(&self, others: &[PathBuf], what: &str) -> Result<(), Failure> {
        let is_stdin = |path: &PathBuf| path.as_os_str() == "-";
        if others.iter().any(is_stdin) && self.paths.iter().any(is_stdin) {
            return Err(Failure::Usage(format!("{what} and --state cannot both be read from stdin")));
        }
        Ok(())
    }
}

/// Flags of commands that deny something.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct ExitZeroArgs {
    /// Exit 0 instead of 1 if problems are found; input that cannot be read still causes exit code 3
    #[arg(long, env = "TOLLGATE_EXIT_ZERO", help_heading = "Exit code", hide_short_help = true)]
    #[arg(value_parser = clap::builder::FalseyValueParser::new())]
    pub(super) exit_zero: bool,
}

/// The flag for the lowest level of findings that causes exit code 1.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct FailOnArgs {
    /// Lowest level that causes exit code 1 (default: deny)
    #[arg(long, value_name = "LEVEL", env = "TOLLGATE_FAIL_ON", help_heading = "Exit code")]
    pub(super) fail_on: Option<FailOn>,
}

/// Flags of commands that report findings.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct ExitArgs {
    #[command(flatten)]
    pub(super) fail_on: FailOnArgs,
    #[command(flatten)]
    pub(super) zero: ExitZeroArgs,
}

/// The least level that fails a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum FailOn {
    /// Denials
    Deny,
    /// Denials and warnings
    Warn,
}

/// Text, JSON or a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum ReportOutput {
    /// Human-readable text
    Text,
    /// JSON, for programs
    Json,
    /// One HTML file with drawings, for people
    Html,
}

/// When to colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl FailOn {
    /// Returns the name in flags and configuration files, such as `warn`.
    pub(super) fn name(self) -> &'static str {
        match self {
            FailOn::Deny => "deny",
            FailOn::Warn => "warn",
        }
    }
}

impl ExitZeroArgs {
    /// Returns the counts without findings if `--exit-zero` is given, so that they do not affect the exit code.
    pub(super) fn apply_exit_zero(self, tally: ExitCounts) -> ExitCounts {
        if self.exit_zero { tally.without_findings() } else { tally }
    }
}

impl ExitArgs {
    /// Returns the counts that decide the exit code: with `--fail-on warn`, warnings fail the run; with
    /// `--exit-zero`, no finding does.
    pub(super) fn apply_exit_flags(self, mut tally: ExitCounts) -> ExitCounts {
        if self.fail_on.fail_on == Some(FailOn::Warn) {
            tally.failing_warnings = tally.failing_warnings.max(tally.warned);
        }
        self.zero.apply_exit_zero(tally)
    }
}

/// Returns the error message for an unknown rule or origin, with a suggestion.
pub(super) fn unknown_rule_message(word: &str) -> String {
    let origins = RuleOrigin::ALL.map(RuleOrigin::name).join(", ");
    let hint = did_you_mean(word, &rule_and_origin_names());
    format!(
        "unknown rule or origin `{word}`{hint}; use a rule ID or one of the origins ({origins}); `tollgate explain` lists all rules"
    )
}

/// Returns ` (did you mean …?)` with the most similar name; empty if none is similar.
pub(super) fn did_you_mean(word: &str, names: &[&str]) -> String {
    let word = word.to_lowercase();
    // Of equally near names the last one: for releases that is the newest.
    let near = names
        .iter()
        .rev()
        .map(|name| (distance(name, &word), name))
        .filter(|(distance, name)| *distance <= 1 + name.len().min(word.len()) / 3)
        .min_by_key(|(distance, _)| *distance);
    let inside = || names.iter().find(|name| word.len() >= 4 && name.contains(word.as_str()));
    near.map(|(_, name)| name)
        .or_else(inside)
        .map(|name| format!(" (did you mean `{name}`?)"))
        .unwrap_or_default()
}
