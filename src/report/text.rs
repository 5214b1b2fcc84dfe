//! Snippets for people, as rustc prints them: the line, a caret, what would be accepted, where to read on.
//!
//! Only the line a finding is about is handed to the renderer, and of a very long line only the part around the
//! caret, so a finding costs the same in a file of any size. Values are cut here and nowhere else.

use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level as Severity, Origin, Renderer, Snippet};

use super::{Entry, Placed, Report, Summary};
use crate::finding::Finding;
use crate::rules::{Level, Origin as RuleOrigin};
use crate::source::Trouble;

/// Characters of a value shown.
const VALUE: usize = 120;
/// Characters of a message shown.
const MESSAGE: usize = 1200;
/// Bytes of a source line that the renderer gets whole; it cuts to the width of a terminal by itself.
const LINE: usize = 2000;
/// Bytes of a longer line shown before and after the caret's start.
const WINDOW: usize = 60;

/// Adds what there is to say about a document.
pub(super) fn add(out: &mut String, entry: &Entry<'_>, report: &Report) {
    let renderer = if report.styled { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    if let Some(trouble) = entry.trouble {
        unreadable(out, trouble, entry.text, &renderer);
    }
    for placed in entry.findings {
        finding(out, placed, entry, report, &renderer);
    }
}

fn finding(out: &mut String, placed: &Placed, entry: &Entry<'_>, report: &Report, renderer: &Renderer) {
    let judged = &placed.judged;
    let finding = &judged.finding;
    let severity = match judged.level {
        Level::Deny => Severity::ERROR,
        Level::Warn => Severity::WARNING,
        Level::Audit => Severity::NOTE,
    };
    let title = printable(&message(finding));
    let line = Line::around(entry.text, placed.place.line, &placed.place.shown);
    let group = Group::with_title(severity.primary_title(title).id(finding.rule.0));
    let mut group = line.show(group, entry.file, placed.place.column);
    for also in &placed.also {
        let line = Line::around(entry.text, also.line, &also.shown);
        group = group.element(line.snippet(AnnotationKind::Context, Some("see also here")));
    }
    if let Some(help) = &finding.help {
        group = group.element(Severity::HELP.message(printable(help)));
    }
    let refused = matches!(judged.origin, RuleOrigin::Upstream | RuleOrigin::Decoding);
    // In a list the server sees the item alone: that its path is shorter is no news.
    let elsewhere = |server_at: &&String| refused && !finding.field().ends_with(server_at.as_str());
    if let Some(server_at) = finding.server_at.as_ref().filter(elsewhere) {
        let note = format!("the API server calls this field {}", printable(server_at));
        group = group.element(Severity::NOTE.message(note));
    }
    if report.profiles.len() > 1 {
        let profiles = judged.profiles.join(", ");
        group = group.element(Severity::NOTE.with_name("profiles").message(profiles));
    }
    let page = format!("tollgate explain {}", finding.rule);
    group = group.element(Severity::NOTE.with_name("docs").message(page));
    push(out, renderer, group);
}

fn unreadable(out: &mut String, trouble: &Trouble, text: &str, renderer: &Renderer) {
    let title = Severity::ERROR.primary_title(printable(&trouble.message)).id("unreadable");
    let group = if trouble.line == 0 {
        title.element(Origin::path(printable(&trouble.file)))
    } else {
        let at = byte_of(text, trouble.line, trouble.column);
        let line = Line::around(text, trouble.line, &(at..at));
        if text.is_empty() {
            title.element(origin(&trouble.file, trouble.line, trouble.column))
        } else {
            line.show(Group::with_title(title), &trouble.file, trouble.column)
        }
    };
    push(out, renderer, group);
}

fn push(out: &mut String, renderer: &Renderer, group: Group<'_>) {
    out.push_str(&renderer.render(&[group]));
    out.push_str("\n\n");
}

/// A line of the source, or the part of it that is shown.
struct Line<'a> {
    text: &'a str,
    number: usize,
    mark: Range<usize>,
    is_cut: bool,
}

impl<'a> Line<'a> {
    fn around(text: &'a str, number: usize, mark: &Range<usize>) -> Line<'a> {
        let at = boundary(text, mark.start.min(text.len()));
        // A file may be one line: only the neighbourhood is searched for the line's ends.
        let from = boundary(text, at.saturating_sub(LINE));
        let to = boundary(text, text.len().min(at + LINE)).max(at);
        let start = text.get(from..at).and_then(|before| before.rfind(['\n', '\r'])).map(|n| from + n + 1);
        let end = text.get(at..to).and_then(|rest| rest.find(['\n', '\r'])).map(|n| at + n);
        let start = start.or_else(|| (from == 0).then_some(0));
        let end = end.or_else(|| (to == text.len()).then_some(to));
        let is_cut = start.is_none() || end.is_none();
        let start = boundary(text, start.unwrap_or_else(|| at.saturating_sub(WINDOW)));
        let end = boundary(text, end.unwrap_or(at + WINDOW)).max(at);
        let mark = at - start..mark.end.clamp(at, end) - start;
        Line { text: text.get(start..end).unwrap_or_default(), number, mark, is_cut }
    }

    /// The line under its place. The renderer counts columns in what it is given, so the place of a line that was
    /// cut is written by us.
    fn show(&self, group: Group<'a>, file: &str, column: usize) -> Group<'a> {
        let snippet = self.snippet(AnnotationKind::Primary, None);
        if self.is_cut {
            group.element(origin(file, self.number, column)).element(snippet)
        } else {
            group.element(snippet.path(printable(file)))
        }
    }

    fn snippet(
        &self,
        kind: AnnotationKind,
        label: Option<&'static str>,
    ) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
        let annotation = kind.span(self.mark.clone());
        let annotation = if let Some(label) = label { annotation.label(label) } else { annotation };
        Snippet::source(self.text).line_start(self.number).annotation(annotation)
    }
}

fn origin(file: &str, line: usize, column: usize) -> Origin<'static> {
    Origin::path(printable(file)).line(line).char_column(column)
}

fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The byte of a line and column, both from 1.
fn byte_of(text: &str, line: usize, column: usize) -> usize {
    let start = crate::source::Lines::of(text).line(line).start;
    let rest = text.get(start..).unwrap_or_default();
    rest.char_indices().nth(column.saturating_sub(1)).map_or(text.len(), |(at, _)| start + at)
}

/// The finding's message with a long value cut.
pub(super) fn message(finding: &Finding) -> String {
    let mut message = finding.to_string();
    let value = finding.value.to_string();
    if value.chars().count() > VALUE {
        let quote = if value.starts_with('"') { "\"" } else { "" };
        message = message.replacen(&value, &format!("{}{quote}", cut(&value, VALUE)), 1);
    }
    cut(&message, MESSAGE)
}

fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    }
}

/// Control characters made visible: a file must not be able to write to the terminal.
fn printable(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() && letter != '\n' { '\u{fffd}' } else { letter })
        .collect()
}

/// `2 files, 3 documents: 1 invalid, 1 warned, 1 skipped`
pub(super) fn summary(summary: &Summary) -> String {
    let clean = summary.valid - summary.warned_documents;
    let parts: Vec<String> = [
        (summary.invalid, "invalid"),
        (summary.unreadable, "unreadable"),
        (summary.warned_documents, "warned"),
        (clean, "valid"),
        (summary.skipped, "skipped"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, word)| format!("{count} {word}"))
    .collect();
    let verdicts = if parts.is_empty() { "nothing to judge".to_owned() } else { parts.join(", ") };
    let (files, documents) = (plural(summary.files, "file"), plural(summary.documents, "document"));
    format!("{files}, {documents}: {verdicts}\n")
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}
