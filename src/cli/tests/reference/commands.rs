//! Commands and their flags, from the definitions that parse them.

use std::fmt::Write as _;

use clap::{Arg, Command};

use super::generated::{cell, table};
use crate::cli::placement::shared_flags;
use crate::cli::tests::examples;

pub(super) fn commands() -> String {
    let all = examples::commands();
    all.into_iter().skip(1).map(|(words, command)| section(&words.join(" "), command)).collect()
}

fn section(name: &str, mut command: Command) -> String {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").replace("\n       ", "\n");
    let mut out = format!("## {name}\n\n{}\n\n```text\n{usage}\n```\n", paragraphs(&about));
    let shared = shared_flags();
    let is_shared = |arg: &&Arg| shared.get_arguments().any(|flag| is_same(flag, arg));
    let (common, own): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(|arg| is_listed(arg) && !arg.is_global_set()).partition(is_shared);
    if !own.is_empty() {
        _ = write!(out, "\n{}", table(&["flag", "meaning"], &rows(&own)));
    }
    if !common.is_empty() {
        let names: Vec<String> = common.iter().map(|arg| flag_name(arg)).collect();
        _ = write!(out, "\n[Shared options](#shared-options): {}.\n", names.join(", "));
    }
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        _ = write!(out, "\n```text\n{}\n```\n", after.to_string().trim_end());
    }
    out + "\n"
}

/// The flags that every command has, and those that several commands have.
pub(super) fn shared_options() -> String {
    let all = examples::commands();
    let shared = shared_flags();
    let arguments = all.iter().take(1).flat_map(|(_, root)| root.get_arguments());
    let global = arguments.filter(|arg| is_listed(arg) && arg.is_global_set());
    let row = |arg: &Arg| {
        let having = all.iter().filter(|(_, command)| command.get_arguments().any(|own| is_same(own, arg)));
        let names: Vec<String> =
            having.map(|(words, _)| words.get(1..).unwrap_or_default().join(" ")).collect();
        let names = if arg.is_global_set() { "all".to_owned() } else { names.join(", ") };
        vec![flag(arg), meaning(arg), names]
    };
    let rows: Vec<Vec<String>> = global.chain(shared.get_arguments()).map(row).collect();
    table(&["flag", "meaning", "commands"], &rows)
}

fn is_same(one: &Arg, other: &Arg) -> bool {
    one.get_long().is_some() && one.get_long() == other.get_long() && one.get_env() == other.get_env()
}

/// `` `--output` ``
fn flag_name(arg: &Arg) -> String {
    format!("`--{}`", arg.get_long().unwrap_or_default())
}

fn is_listed(arg: &Arg) -> bool {
    !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version")
}

fn rows(arguments: &[&Arg]) -> Vec<Vec<String>> {
    arguments.iter().map(|arg| vec![flag(arg), meaning(arg)]).collect()
}

/// `` `-o`, `--output FORMAT` ``
fn flag(arg: &Arg) -> String {
    let values = arg.get_value_names().unwrap_or_default().join(" ");
    let takes_value = arg.get_action().takes_values();
    let Some(long) = arg.get_long() else {
        let many = if arg.get_num_args().is_some_and(|range| range.max_values() > 1) { "…" } else { "" };
        return format!("`{values}{many}`");
    };
    let long = if takes_value { format!("`--{long} {values}`") } else { format!("`--{long}`") };
    let short = arg.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    short + &cell(&long)
}

/// What it does, the values it takes, its default and its environment variable.
fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut parts = vec![cell(&paragraphs(&help).replace("\n\n", " "))];
    let values = arg.get_possible_values();
    if arg.get_action().takes_values() && !arg.is_hide_possible_values_set() && !values.is_empty() {
        let names: Vec<String> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
        parts.push(format!("Values: {}.", names.join(", ")));
    }
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    if arg.get_action().takes_values() && !defaults.is_empty() && !arg.is_hide_default_value_set() {
        parts.push(format!("Default: {}.", defaults.join(", ")));
    }
    if let Some(variable) = arg.get_env() {
        parts.push(format!("Environment: `{}`.", variable.to_string_lossy()));
    }
    parts.join(" ")
}

/// A text with its flags as code, except in code that the text already has.
fn quoted(text: &str) -> String {
    let quote = |word: &str| {
        let end = word.trim_end_matches(['.', ',', ';', ')', ':']).len();
        let (flag, rest) = word.split_at(end);
        if flag.starts_with("--") { format!("`{flag}`{rest}") } else { word.to_owned() }
    };
    let parts = text.split('`').enumerate().map(|(number, part)| match number % 2 {
        0 => part.split(' ').map(quote).collect::<Vec<_>>().join(" "),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Help texts have no full stop at their end; before another sentence they need one.
fn sentence(text: &str) -> String {
    if text.is_empty() || text.ends_with(['.', ':', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// The lines of each paragraph joined, with flags as code.
fn paragraphs(text: &str) -> String {
    let joined = text.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    joined.map(|part| sentence(&quoted(&part))).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn flags_in_code_are_not_quoted_again() {
    for (text, expected) in [
        ("created by `tollgate serve --cert-dir`", "created by `tollgate serve --cert-dir`"),
        ("created with --cert-dir, or `-`", "created with `--cert-dir`, or `-`"),
        ("requires `--fix` or --diff", "requires `--fix` or `--diff`"),
    ] {
        assert_eq!(quoted(text), expected);
    }
}

#[test]
fn subcommands_follow_their_command() {
    let names: Vec<String> = examples::commands().iter().map(|(words, _)| words.join(" ")).collect();
    let policy = names.iter().position(|name| name == "tollgate policy").expect("a command");
    assert_eq!(names.get(policy + 1).map(String::as_str), Some("tollgate policy check"));
}
