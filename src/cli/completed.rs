//! Shell completion of flag values: rules, releases and feature gates.
//!
//! A clap parser with possible values rejects all others with its own message. [`ParserWithCompletions`] lists values
//! for shells only; the parser of the flag still accepts or rejects values with its own messages.

use std::ffi::OsStr;
use std::sync::LazyLock;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::Error;
use clap::{Arg, Command};

use tollgate_api::profile::{Gate, Profile};

/// Returns the names that a shell offers as completions.
type CompletionNames = fn() -> Vec<&'static str>;

/// A parser of flag values that also lists values for shell completion. Unlike the parsers of clap with possible
/// values, it lets `parser` decide which values are accepted.
#[derive(Clone)]
pub(super) struct ParserWithCompletions<P> {
    parser: P,
    names: CompletionNames,
}

/// Adds values for shell completion to a parser of flag values.
pub(super) fn with_completions<P: TypedValueParser>(
    parser: P,
    names: CompletionNames,
) -> ParserWithCompletions<P> {
    ParserWithCompletions { parser, names }
}

impl<P: TypedValueParser> TypedValueParser for ParserWithCompletions<P> {
    type Value = P::Value;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<P::Value, Error> {
        self.parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().into_iter().map(PossibleValue::new)))
    }
}

/// The names that `--kubernetes` takes: releases, drafts and `cluster`.
pub(super) fn profile_values() -> Vec<&'static str> {
    Profile::all_with_patches().map(|profile| profile.name).chain(["cluster"]).collect()
}

/// The values of `--feature-gates`: `default`, `all`, and `GATE=true` and `GATE=false` for every gate.
pub(super) fn feature_gate_values() -> Vec<&'static str> {
    static GATE_SETTINGS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let switched = |gate: Gate| ["true", "false"].map(|value| format!("{}={value}", gate.name()));
        Gate::ALL.iter().copied().flat_map(switched).collect()
    });
    ["default", "all"].into_iter().chain(GATE_SETTINGS.iter().map(String::as_str)).collect()
}
