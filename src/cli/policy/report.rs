//! What `policy diff` prints: text for people, Markdown for pull requests, JSON for programs.
//!
//! Invariant: every format has the same changes, differences and objects.

use std::fmt::Write as _;
use std::io::Write as _;

use serde::Serialize;

use super::printable_line;
use super::stored::{ChangedObject, StoredObjects};
use crate::cli::console::Console;
use crate::cli::outcome::Failure;
use tollgate_engine::policy::{ChangeKind, Difference, FieldChange, PolicyChange, PolicyDiff};
use tollgate_formats::sanitize;

/// Maximum number of stored objects that text and Markdown list.
const MAX_OBJECTS: usize = 20;

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

/// The result of `policy diff` for `-o json`.
#[derive(Debug, Serialize)]
pub(super) struct DiffReport<'d> {
    version: &'static str,
    effect: &'static str,
    changes: Vec<Change<'d>>,
    differences: Vec<Requests<'d>>,
    incomplete: &'d [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    objects: Option<StoredObjects>,
}

#[derive(Debug, Serialize)]
struct Change<'d> {
    kind: &'static str,
    name: &'d str,
    change: &'static str,
    source: &'d str,
    effect: &'static str,
    fields: Vec<Field<'d>>,
}

#[derive(Debug, Serialize)]
struct Field<'d> {
    field: &'d str,
    before: Option<&'d str>,
    after: Option<&'d str>,
}

#[derive(Debug, Serialize)]
struct Requests<'d> {
    effect: &'static str,
    policies: &'d [String],
    what: &'d str,
    before: &'static str,
    after: &'static str,
    namespaces: &'d [String],
    user: Option<&'d str>,
    resources: &'d [&'static str],
    operation: Option<&'static str>,
    from: Option<&'d str>,
}

impl<'d> DiffReport<'d> {
    pub(super) fn of(diff: &'d PolicyDiff, objects: Option<StoredObjects>) -> DiffReport<'d> {
        DiffReport {
            version: env!("CARGO_PKG_VERSION"),
            effect: diff.effect.name(),
            changes: diff.changes.iter().map(Change::of).collect(),
            differences: diff.differences.iter().map(Requests::of).collect(),
            incomplete: &diff.incomplete,
            objects,
        }
    }
}

impl<'d> Change<'d> {
    fn of(change: &'d PolicyChange) -> Change<'d> {
        let field = |change: &'d FieldChange| Field {
            field: &change.field,
            before: change.before.as_deref(),
            after: change.after.as_deref(),
        };
        Change {
            kind: change.kind,
            name: &change.name,
            change: change.change.name(),
            source: &change.source,
            effect: change.effect.name(),
            fields: change.fields.iter().map(field).collect(),
        }
    }

    fn title(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }
}

impl<'d> Requests<'d> {
    fn of(difference: &'d Difference) -> Requests<'d> {
        Requests {
            effect: difference.effect.name(),
            policies: &difference.policies,
            what: &difference.what,
            before: difference.before,
            after: difference.after,
            namespaces: &difference.namespaces,
            user: difference.user.as_deref(),
            resources: &difference.resources,
            operation: difference.operation,
            from: difference.from.as_deref(),
        }
    }

    /// Returns the difference on one line: `denied → allowed: toleration {…}, in namespaces such as ml-x, from
    /// 2027-01-01T00:00:00Z`.
    fn text(&self) -> String {
        let mut text = format!("{} → {}: {}", self.before, self.after, self.what);
        if !self.namespaces.is_empty() {
            let several = if self.namespaces.len() == 1 { "" } else { "s" };
            _ = write!(text, ", for example in namespace{several} {}", self.namespaces.join(", "));
        }
        if let Some(user) = self.user {
            _ = write!(text, ", for {user}");
        }
        if let Some(operation) = self.operation {
            _ = write!(text, ", only {operation}");
        }
        if let Some(from) = self.from {
            _ = write!(text, ", from {from}");
        }
        text
    }
}

/// Prints the comparison of two policy sets.
pub(super) fn write(report: &DiffReport<'_>, output: Output, console: &mut Console) -> Result<(), Failure> {
    match output {
        Output::Text => write_text(report, console),
        Output::Markdown => write_markdown(report, console),
        Output::Json => {
            let text = serde_json::to_string(report).map_err(anyhow::Error::from)?;
            writeln!(console, "{}", sanitize::json(&text))?;
            Ok(())
        }
    }
}

fn write_text(report: &DiffReport<'_>, console: &mut Console) -> Result<(), Failure> {
    for change in &report.changes {
        let title = change.title();
        let is_changed = change.change == ChangeKind::Changed.name();
        let place = if is_changed { String::new() } else { format!(" at {}", change.source) };
        writeln!(
            console,
            "{}",
            printable_line(&format!("{title}: {}{place} ({})", change.change, change.effect))
        )?;
        for field in &change.fields {
            let [before, after] = [field.before, field.after].map(|value| value.unwrap_or("absent"));
            writeln!(console, "  {}", printable_line(&format!("{}: {before} → {after}", field.field)))?;
        }
        for difference in report.differences.iter().filter(|one| one.policies.first() == Some(&title)) {
            let text = format!("{}: {}", difference.effect, difference.text());
            writeln!(console, "  {}", printable_line(&text))?;
        }
    }
    for what in report.incomplete {
        writeln!(console, "not compared: {}", printable_line(what))?;
    }
    writeln!(console, "{}", summary(report))?;
    let Some(objects) = &report.objects else { return Ok(()) };
    for object in objects.changed.iter().take(MAX_OBJECTS) {
        writeln!(console, "  {}", printable_line(&object_text(object)))?;
    }
    writeln!(console, "{}", objects_summary(objects))?;
    Ok(())
}

fn write_markdown(report: &DiffReport<'_>, console: &mut Console) -> Result<(), Failure> {
    writeln!(console, "### Policy changes: {}\n", report.effect)?;
    if report.changes.is_empty() {
        writeln!(console, "No policy changes.")?;
    } else {
        writeln!(console, "| policy | change | effect |\n|---|---|---|")?;
    }
    for change in &report.changes {
        let title = markdown_cell(&change.title());
        writeln!(console, "| {title} | {} | **{}** |", change.change, change.effect)?;
    }
    if !report.differences.is_empty() {
        writeln!(console, "\n| effect | requests | policies |\n|---|---|---|")?;
    }
    for difference in &report.differences {
        let (text, policies) =
            (markdown_cell(&difference.text()), markdown_cell(&difference.policies.join(", ")));
        writeln!(console, "| **{}** | {text} | {policies} |", difference.effect)?;
    }
    for what in report.incomplete {
        writeln!(console, "\nNot compared: {}", markdown_cell(what))?;
    }
    let Some(objects) = &report.objects else { return Ok(()) };
    writeln!(console, "\n{}", objects_summary(objects))?;
    if !objects.changed.is_empty() {
        writeln!(console, "\n| stored object | before | after | policies |\n|---|---|---|---|")?;
    }
    for object in objects.changed.iter().take(MAX_OBJECTS) {
        let (title, policies) = (markdown_cell(&object.title()), markdown_cell(&object.policies.join(", ")));
        writeln!(console, "| {title} | {} | {} | {policies} |", object.before, object.after)?;
    }
    Ok(())
}

/// The text in a cell of a table.
fn markdown_cell(text: &str) -> String {
    let escaped = printable_line(text).replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;");
    escaped.replace('*', "\\*").replace('`', "\\`")
}

/// Returns the result of the comparison: `2 policies change: wider`.
fn summary(report: &DiffReport<'_>) -> String {
    match report.changes.len() {
        0 if report.effect == "none" => "no policy changes".to_owned(),
        1 => format!("1 policy changes: {}", report.effect),
        count => format!("{count} policies change: {}", report.effect),
    }
}

fn object_text(object: &ChangedObject) -> String {
    let policies =
        if object.policies.is_empty() { String::new() } else { format!(" ({})", object.policies.join(", ")) };
    format!("{}: {} → {}{policies}", object.title(), object.before, object.after)
}

/// Returns the number of affected objects: `2 of 40 stored objects get another verdict`.
fn objects_summary(objects: &StoredObjects) -> String {
    let (changed, checked) = (objects.changed.len(), objects.checked);
    let verb = if changed == 1 { "gets" } else { "get" };
    let more = if changed > MAX_OBJECTS { format!("; {MAX_OBJECTS} are shown") } else { String::new() };
    format!("{changed} of {checked} stored objects {verb} another verdict{more}")
}
