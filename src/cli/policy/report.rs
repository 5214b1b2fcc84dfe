//! What `policy diff` prints: text for people, Markdown for pull requests, JSON for programs.
//!
//! Invariant: every format has the same changes, differences and objects.

use std::fmt::Write as _;
use std::io::Write as _;

use super::printable_line;
use super::stored::{ObjectWithChangedVerdict, StoredObjectVerdictChanges};
use crate::cli::console::Console;
use crate::cli::outcome::Failure;
use crate::cli::to_safe_json;
use crate::report::record::{Json, collect_records, record};
use tollgate_engine::policy::{
    ChangeEffect, ChangeKind, FieldChange, PolicyChange, PolicyDiff, VerdictDifference,
};

/// Maximum number of stored objects that text and Markdown list.
const MAX_LISTED_OBJECTS: usize = 20;

/// How a comparison is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum Output {
    /// Human-readable text
    Text,
    /// JSON, for programs
    Json,
    /// Markdown, for the comment on a pull request
    Markdown,
}

fn diff_record(diff: &PolicyDiff, objects: Option<&StoredObjectVerdictChanges>) -> Json {
    let PolicyDiff { effect, changes, differences, incomplete } = diff;
    record! {
        "version": env!("CARGO_PKG_VERSION"),
        "effect": effect.name(),
        "changes": collect_records(changes.iter().map(change_record)),
        "differences": collect_records(differences.iter().map(difference_record)),
        "incomplete": incomplete,
        "objects" if given: objects,
    }
}

fn change_record(change: &PolicyChange) -> Json {
    let field = |field: &FieldChange| {
        record! { "field": field.field, "before": field.before, "after": field.after }
    };
    record! {
        "kind": change.kind,
        "name": change.name,
        "change": change.change.name(),
        "source": change.source,
        "effect": change.effect.name(),
        "fields": collect_records(change.fields.iter().map(field)),
    }
}

fn difference_record(difference: &VerdictDifference) -> Json {
    record! {
        "effect": difference.effect.name(),
        "policies": difference.policies,
        "what": difference.what,
        "before": difference.before,
        "after": difference.after,
        "namespaces": difference.namespaces,
        "user": difference.user,
        "resources": difference.resources,
        "operation": difference.operation,
        "from": difference.from,
    }
}

fn policy_title(change: &PolicyChange) -> String {
    format!("{} {}", change.kind, change.name)
}

/// Returns a difference as text: `denied → allowed: toleration {…}, for example in namespace ml-x, only
/// CREATE, from 2027-01-01T00:00:00Z`
fn difference_text(difference: &VerdictDifference) -> String {
    let VerdictDifference { before, after, what, namespaces, .. } = difference;
    let mut text = format!("{before} → {after}: {what}");
    if !namespaces.is_empty() {
        let several = if namespaces.len() == 1 { "" } else { "s" };
        _ = write!(text, ", for example in namespace{several} {}", namespaces.join(", "));
    }
    if let Some(user) = &difference.user {
        _ = write!(text, ", for {user}");
    }
    if let Some(operation) = difference.operation {
        _ = write!(text, ", only {operation}");
    }
    if let Some(from) = &difference.from {
        _ = write!(text, ", from {from}");
    }
    text
}

/// Prints the comparison of two policy sets, and the stored objects that were checked by both.
pub(super) fn write_diff(
    diff: &PolicyDiff,
    objects: Option<&StoredObjectVerdictChanges>,
    output: Output,
    console: &mut Console,
) -> Result<(), Failure> {
    match output {
        Output::Text => write_text(diff, objects, console),
        Output::Markdown => write_markdown(diff, objects, console),
        Output::Json => Ok(writeln!(console, "{}", to_safe_json(&diff_record(diff, objects))?)?),
    }
}

fn write_text(
    diff: &PolicyDiff,
    objects: Option<&StoredObjectVerdictChanges>,
    console: &mut Console,
) -> Result<(), Failure> {
    for change in &diff.changes {
        let title = policy_title(change);
        let is_changed = change.change == ChangeKind::Changed;
        let place = if is_changed { String::new() } else { format!(" at {}", change.source) };
        let (verb, effect) = (change.change.name(), change.effect.name());
        writeln!(console, "{}", printable_line(&format!("{title}: {verb}{place} ({effect})")))?;
        for field in &change.fields {
            let [before, after] =
                [&field.before, &field.after].map(|value| value.as_deref().unwrap_or("absent"));
            writeln!(console, "  {}", printable_line(&format!("{}: {before} → {after}", field.field)))?;
        }
        for difference in diff.differences.iter().filter(|one| one.policies.first() == Some(&title)) {
            let text = format!("{}: {}", difference.effect.name(), difference_text(difference));
            writeln!(console, "  {}", printable_line(&text))?;
        }
    }
    for what in &diff.incomplete {
        writeln!(console, "not compared: {}", printable_line(what))?;
    }
    writeln!(console, "{}", diff_summary(diff))?;
    let Some(objects) = objects else { return Ok(()) };
    for object in objects.changed.iter().take(MAX_LISTED_OBJECTS) {
        writeln!(console, "  {}", printable_line(&object_text(object)))?;
    }
    writeln!(console, "{}", objects_summary(objects))?;
    Ok(())
}

fn write_markdown(
    diff: &PolicyDiff,
    objects: Option<&StoredObjectVerdictChanges>,
    console: &mut Console,
) -> Result<(), Failure> {
    writeln!(console, "### Policy changes: {}\n", diff.effect.name())?;
    if diff.changes.is_empty() {
        writeln!(console, "No policy changes.")?;
    } else {
        writeln!(console, "| policy | change | effect |\n|---|---|---|")?;
    }
    for change in &diff.changes {
        let title = markdown_cell(&policy_title(change));
        writeln!(console, "| {title} | {} | **{}** |", change.change.name(), change.effect.name())?;
    }
    if !diff.differences.is_empty() {
        writeln!(console, "\n| effect | requests | policies |\n|---|---|---|")?;
    }
    for difference in &diff.differences {
        let (text, policies) =
            (markdown_cell(&difference_text(difference)), markdown_cell(&difference.policies.join(", ")));
        writeln!(console, "| **{}** | {text} | {policies} |", difference.effect.name())?;
    }
    for what in &diff.incomplete {
        writeln!(console, "\nNot compared: {}", markdown_cell(what))?;
    }
    let Some(objects) = objects else { return Ok(()) };
    writeln!(console, "\n{}", objects_summary(objects))?;
    if !objects.changed.is_empty() {
        writeln!(console, "\n| stored object | before | after | policies |\n|---|---|---|---|")?;
    }
    for object in objects.changed.iter().take(MAX_LISTED_OBJECTS) {
        let (title, policies) = (markdown_cell(&object.title()), markdown_cell(&object.policies.join(", ")));
        writeln!(console, "| {title} | {} | {} | {policies} |", object.before, object.after)?;
    }
    Ok(())
}

/// Escapes a text for a cell of a Markdown table.
fn markdown_cell(text: &str) -> String {
    let escaped = printable_line(text).replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;");
    escaped.replace('*', "\\*").replace('`', "\\`")
}

/// Returns the result of the comparison: `2 policies change: wider`.
fn diff_summary(diff: &PolicyDiff) -> String {
    let effect = diff.effect.name();
    match diff.changes.len() {
        0 if diff.effect == ChangeEffect::None => "no policy changes".to_owned(),
        1 => format!("1 policy changes: {effect}"),
        count => format!("{count} policies change: {effect}"),
    }
}

fn object_text(object: &ObjectWithChangedVerdict) -> String {
    let policies =
        if object.policies.is_empty() { String::new() } else { format!(" ({})", object.policies.join(", ")) };
    format!("{}: {} → {}{policies}", object.title(), object.before, object.after)
}

/// Returns the number of affected objects: `2 of 40 stored objects get another verdict`.
fn objects_summary(objects: &StoredObjectVerdictChanges) -> String {
    let (changed, checked) = (objects.changed.len(), objects.checked);
    let verb = if changed == 1 { "gets" } else { "get" };
    let more = if changed > MAX_LISTED_OBJECTS {
        format!("; {MAX_LISTED_OBJECTS} are shown")
    } else {
        String::new()
    };
    format!("{changed} of {checked} stored objects {verb} another verdict{more}")
}
