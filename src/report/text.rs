//! Text for people, like the output of rustc: the source line with a caret, what would be accepted, where to read on.
//!
//! Only the source line of a finding is passed to the renderer, and of a very long line only the part around the caret,
//! so a finding takes the same time in a file of any size. Values are shortened only here.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level as Severity, Origin, Renderer, Snippet};

use super::cascade;
use super::piece::FINDING_MARK;
use super::{
    DocumentResult, LocatedFinding, ReportRenderer, ReportWriter, SkipReason, Summary,
    UncheckedMentionCounts, UnreadPathCounts, profiles_if_several, replace_control_chars,
};
use tollgate_document::finding::BadValue;
use tollgate_document::source::InputError;
use tollgate_engine::engine::Diagnostic;
use tollgate_engine::rules::{FindingLevel, RuleOrigin};
use tollgate_formats::count::count_with_noun;
use tollgate_formats::{gofmt, sanitize};

/// Maximum number of characters of a value that are shown.
const MAX_VALUE_CHARS: usize = 120;
/// Maximum number of characters of a policy message that is shown in one line; longer ones are split into parts.
const MAX_TITLE_CHARS: usize = 200;
/// Maximum width of a part of a split policy message, in columns.
const MAX_PART_COLUMNS: usize = 100;
/// Maximum number of characters of a message that are shown.
const MAX_MESSAGE_CHARS: usize = 1200;
/// Maximum length in bytes of a source line that is passed to the renderer whole. The renderer cuts lines to the
/// width of the terminal.
const MAX_LINE_BYTES: usize = 2000;
/// Number of bytes of a longer line that are shown before and after the start of the mark.
const EXCERPT_RADIUS_BYTES: usize = 60;

/// Writes `-o text`.
pub(super) struct Writer;

impl ReportWriter for Writer {
    fn add(&self, out: &mut String, entry: &DocumentResult<'_>, report: &ReportRenderer) {
        let renderer = if report.styled { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.decor_style(DecorStyle::Ascii);
        let mark = |out: &mut String| out.extend(report.foldable.then_some(FINDING_MARK));
        if let Some(error) = entry.error {
            mark(out);
            push_unreadable(out, error, entry.text, &renderer);
            mark(out);
        }
        if let Some(reason) = entry.skipped.filter(|_| report.show_skipped) {
            push_skipped(out, entry, reason);
        }
        let is_shown = |found: &&LocatedFinding| !cascade::follows_from_other_finding(found, entry.findings);
        for located in entry.findings.iter().filter(is_shown).chain(entry.hidden) {
            let severity = match located.diagnostic.level {
                FindingLevel::Deny => Severity::ERROR,
                FindingLevel::Warn => Severity::WARNING,
                FindingLevel::Audit if report.of_cluster => {
                    Severity::INFO.with_name(FindingLevel::Audit.name())
                }
                // Audit findings are not for the author of the manifest: the summary counts them.
                FindingLevel::Audit => continue,
            };
            mark(out);
            push_finding(out, located, severity, entry, report, &renderer);
            mark(out);
        }
    }

    fn end(&self, summary: &Summary, report: &ReportRenderer) -> String {
        let fixes = if report.quiet { String::new() } else { fixes_line(summary) };
        report.summary_unless_quiet(summary) + &fixes
    }
}

/// Appends a finding, with the line of the source that it is about.
fn push_finding(
    out: &mut String,
    located: &LocatedFinding,
    severity: Severity<'static>,
    entry: &DocumentResult<'_>,
    report: &ReportRenderer,
    renderer: &Renderer,
) {
    let diagnostic = &located.diagnostic;
    let finding = &diagnostic.finding;
    let (title, parts) =
        split_long_policy_message(diagnostic).unwrap_or_else(|| (shortened_message(diagnostic), Vec::new()));
    let line = SnippetLine::cut_around_mark(entry.text, located.location.line, &located.location.shown);
    let group = Group::with_title(severity.primary_title(replace_control_chars(&title)).id(finding.rule.id));
    let mut group = line.add_to_group(group, AnnotationKind::Primary, entry.file, located.location.column);
    for also in &located.also {
        let line = SnippetLine::cut_around_mark(entry.text, also.line, &also.shown);
        group = line.add_to_group(group, AnnotationKind::Context, entry.file, also.column);
    }
    for (name, text) in parts {
        group = group.element(Severity::NOTE.with_name(name).message(replace_control_chars(&text)));
    }
    if let Some(consequences) = cascade::describe_consequences(located, entry.findings) {
        group = group.element(Severity::NOTE.message(replace_control_chars(&consequences)));
    }
    if entry.hidden.iter().any(|hidden| std::ptr::eq(hidden, located)) {
        group = group.element(Severity::NOTE.message(cascade::HIDDEN_ERROR_NOTE));
    }
    if let Some(help) = &finding.help {
        group = group.element(Severity::HELP.message(replace_control_chars(help)));
    }
    let refused = matches!(diagnostic.origin, RuleOrigin::Upstream | RuleOrigin::Decoding);
    // In a list the server sees the item alone: that its path is shorter is no news.
    let elsewhere = |server_at: &&String| refused && !finding.user_path().ends_with(server_at.as_str());
    if let Some(server_at) = finding.server_at.as_ref().filter(elsewhere) {
        let note = format!("the API server calls this field {}", replace_control_chars(server_at));
        group = group.element(Severity::NOTE.message(note));
    }
    if let Some(profiles) = profiles_if_several(located, report) {
        group = group.element(Severity::NOTE.with_name("profiles").message(profiles));
    }
    let page = format!("tollgate explain {}", finding.rule);
    group = group.element(Severity::NOTE.with_name("docs").message(page));
    push_group(out, renderer, group);
}

/// Splits a long message of a policy violation: a title with the problem and its position, and parts with labels, which
/// are shown one below the other under the snippet. What can be pasted stays in one line. `None` for other messages.
fn split_long_policy_message(diagnostic: &Diagnostic) -> Option<(String, Vec<(&'static str, String)>)> {
    let finding = &diagnostic.finding;
    let short = finding.short.as_deref().filter(|_| diagnostic.origin == RuleOrigin::Policy)?;
    if shortened_message(diagnostic).chars().count() <= MAX_TITLE_CHARS {
        return None;
    }
    let detail = gofmt::shorten(&finding.detail, MAX_MESSAGE_CHARS);
    let (why, instead) = match detail.rsplit_once("; allowed instead: ") {
        Some((why, instead)) => (why, Some(instead.to_owned())),
        None => (&*detail, None),
    };
    let ask = finding.advice.as_deref();
    let why = ask.map_or_else(|| why.to_owned(), |ask| remove_contact_and_docs(why, ask));
    let parts = [("why", Some(wrap_text(&why))), ("allowed instead", instead), ("ask", ask.map(wrap_text))];
    let parts = parts.into_iter().filter_map(|(name, text)| Some((name, text?)));
    Some((format!("{}: {short}", finding.user_path()), parts.collect()))
}

/// Removes the contact and docs of the policy from the explanation, because `advice` names them: ` (contact:
/// gpu-team, docs: https://…)`.
fn remove_contact_and_docs(why: &str, advice: &str) -> String {
    let start = ["contact: ", "docs: "].into_iter().find_map(|name| advice.find(name));
    let contact = start.and_then(|start| advice.get(start..)).unwrap_or_default();
    why.replace(&format!(" ({})", contact.replace("; docs: ", ", docs: ")), "")
}

/// Wraps a text into lines of at most [`MAX_PART_COLUMNS`] characters.
fn wrap_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + length > MAX_PART_COLUMNS {
            out.push('\n');
            width = 0;
        } else if width > 0 {
            out.push(' ');
        }
        out.push_str(word);
        width += length + 1;
    }
    out
}

/// Appends an error about input that cannot be read.
fn push_unreadable(out: &mut String, error: &InputError, text: &str, renderer: &Renderer) {
    let title = Severity::ERROR.primary_title(replace_control_chars(&error.message)).id("unreadable");
    let group = if error.line == 0 {
        title.element(Origin::path(sanitize::sanitize_as_line(&error.file).into_owned()))
    } else if text.is_empty() {
        title.element(snippet_origin(&error.file, error.line, error.column))
    } else {
        let line = SnippetLine::cut_around_mark(text, error.line, &(error.at..error.at));
        line.add_to_group(Group::with_title(title), AnnotationKind::Primary, &error.file, error.column)
    };
    push_group(out, renderer, group);
}

/// Appends `skipped: charts/gpu/values.yaml: part of a Helm chart …`.
fn push_skipped(out: &mut String, entry: &DocumentResult<'_>, reason: SkipReason) {
    let file = sanitize::sanitize_as_line(entry.file);
    // The first document of a file needs no number.
    let line = if entry.document > 0 { format!(":{}", entry.line) } else { String::new() };
    _ = writeln!(out, "skipped: {file}{line}: {}", skip_message(entry, reason));
}

/// Returns the message for a skipped document, such as `a kind that Tollgate does not check (Deployment web)`.
pub(super) fn skip_message(entry: &DocumentResult<'_>, reason: SkipReason) -> String {
    let object = if entry.kind.is_empty() {
        String::new()
    } else {
        format!(" ({})", replace_control_chars(&entry.object_label()))
    };
    format!("{}{object}", reason.text())
}

fn push_group(out: &mut String, renderer: &Renderer, group: Group<'_>) {
    let rendered = renderer.render(&[group]);
    // A part of a line has no path: the renderer announces it as another file and then has no name to print.
    for line in rendered.lines().filter(|line| !is_nameless_file_marker(line)) {
        out.push_str(line);
        out.push('\n');
    }
    out.push('\n');
}

/// True for a line that the renderer writes for a file without a name: `:::` and nothing else, styled or not.
fn is_nameless_file_marker(line: &str) -> bool {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.split_once('m').map_or("", |(_, text)| text));
    let plain: String = std::iter::once(first).chain(rest).collect();
    plain.trim() == ":::"
}

/// A line of the source, cut if it is long.
struct SnippetLine<'a> {
    text: Cow<'a, str>,
    number: usize,
    mark: Range<usize>,
    is_cut: bool,
}

impl<'a> SnippetLine<'a> {
    /// Finds the line around `mark`; a long one is cut around it. `number` is its line number.
    fn cut_around_mark(text: &'a str, number: usize, mark: &Range<usize>) -> SnippetLine<'a> {
        let at = text.floor_char_boundary(mark.start);
        // A line is looked at no further than it is shown whole.
        let (from, to) = (
            text.floor_char_boundary(at.saturating_sub(MAX_LINE_BYTES + 1)),
            text.floor_char_boundary(at + MAX_LINE_BYTES + 1),
        );
        let (before, after) = (text.get(from..at).unwrap_or_default(), text.get(at..to).unwrap_or_default());
        let start = before.rfind(['\n', '\r']).map_or(from, |line_break| from + line_break + 1);
        let end = after.find(['\n', '\r']).map_or(to, |line_break| at + line_break);
        let (mark_end, is_cut) =
            (text.floor_char_boundary(mark.end.clamp(at, end)), end - start > MAX_LINE_BYTES);
        if !is_cut {
            let text = text.get(start..end).unwrap_or_default();
            let (text, mark) =
                sanitize::sanitize_excerpt_except_ascii_controls(text, at - start..mark_end - start);
            return SnippetLine { text, number, mark, is_cut };
        }
        let from = text.floor_char_boundary(start.max(at.saturating_sub(EXCERPT_RADIUS_BYTES)));
        let to = text.floor_char_boundary(end.min(at + EXCERPT_RADIUS_BYTES)).max(at);
        let (left, right) = (if from > start { "..." } else { "" }, if to < end { "..." } else { "" });
        let shift = left.len();
        let mark = at - from + shift..mark_end.min(to) - from + shift;
        let text = [left, text.get(from..to).unwrap_or_default(), right].concat();
        let (text, mark) = sanitize::sanitize_excerpt_except_ascii_controls(&text, mark);
        SnippetLine { text: text.into_owned().into(), number, mark, is_cut }
    }

    /// Adds the line to a group, under its position. The renderer counts columns in what it is given, so the position
    /// of a line that was cut is written here.
    fn add_to_group(self, group: Group<'a>, kind: AnnotationKind, file: &str, column: usize) -> Group<'a> {
        let annotation = kind.span(self.mark);
        let label = (kind == AnnotationKind::Context).then_some("see also here");
        let snippet = Snippet::source(self.text).line_start(self.number).annotation(annotation.label(label));
        if self.is_cut {
            group.element(snippet_origin(file, self.number, column)).element(snippet)
        } else {
            group.element(snippet.path(sanitize::sanitize_as_line(file).into_owned()))
        }
    }
}

fn snippet_origin(file: &str, line: usize, column: usize) -> Origin<'static> {
    Origin::path(sanitize::sanitize_as_line(file).into_owned()).line(line).char_column(column)
}

/// Returns the message of a finding, with a long value shortened.
pub(super) fn shortened_message(diagnostic: &Diagnostic) -> String {
    let value = diagnostic.finding.value.to_string();
    if value.chars().count() <= MAX_VALUE_CHARS {
        return gofmt::shorten(&diagnostic.to_string(), MAX_MESSAGE_CHARS).into_owned();
    }
    let quote = if value.starts_with('"') { "\"" } else { "" };
    let mut shown = diagnostic.clone();
    shown.finding.value =
        BadValue::Json(format!("{}{quote}", gofmt::shorten(&value, MAX_VALUE_CHARS)).into());
    gofmt::shorten(&shown.to_string(), MAX_MESSAGE_CHARS).into_owned()
}

/// Returns the message of a finding, and after a separator its help, if it has one.
pub(crate) fn message_with_help(diagnostic: &Diagnostic, separator: &str) -> String {
    let mut message = shortened_message(diagnostic);
    if let Some(help) = &diagnostic.finding.help {
        message.push_str(separator);
        message.push_str(help);
    }
    message
}

/// Returns the summary, such as `2 files, 3 documents: 1 invalid, 1 with warnings, 1 skipped (checked against
/// 1.37); 2 audit findings, see -o json`.
pub(super) fn summary_line(summary: &Summary, report: &ReportRenderer) -> String {
    let clean = summary.valid - summary.warned_documents;
    let skipped = format!("skipped{}", summary.skipped_by.parenthesized_counts_if_notable());
    let parts = counts_above_zero(&[
        (summary.invalid, "invalid"),
        (summary.unreadable, "unreadable"),
        (summary.warned_documents, "with warnings"),
        (clean, "valid"),
        (summary.skipped, skipped.as_str()),
    ]);
    let verdicts = if parts.is_empty() { "nothing to check".to_owned() } else { parts };
    // "Valid" says little without the release; of what was not checked it would say something wrong.
    let against = match summary.checked {
        0 => String::new(),
        _ if report.profiles.is_empty() => String::new(),
        _ => format!(" (checked against {})", report.profiles.join(", ")),
    };
    let documents = if report.of_cluster {
        count_with_noun(summary.documents, "object")
    } else {
        format!(
            "{}, {}",
            count_with_noun(summary.files, "file"),
            count_with_noun(summary.documents, "document")
        )
    };
    let audited = match summary.audited {
        0 => String::new(),
        count if report.of_cluster => format!("; {}", count_with_noun(count, "audit finding")),
        count => format!("; {}, see -o json", count_with_noun(count, "audit finding")),
    };
    let silent = counts_above_zero(&[
        (summary.allowed, "allowed"),
        (summary.suppressed, "suppressed"),
        (summary.baselined, "in the baseline"),
    ]);
    let stale = match summary.stale {
        0 => String::new(),
        count => {
            let stale = count_with_noun(count, "stale finding");
            format!("; {stale} in the baseline: update it with --write-baseline")
        }
    };
    let silent = if silent.is_empty() { String::new() } else { format!("; not reported: {silent}") };
    let not_read = not_read_part(&summary.not_read);
    // `--diff` reports the text as it would be; that the one in the file is valid as well would be wrong.
    let when = if summary.is_diff && summary.fixed > 0 { ", after the fixes" } else { "" };
    let mentions = unchecked_mentions_part(summary);
    format!("{documents}{when}: {verdicts}{against}{audited}{silent}{stale}{not_read}{mentions}\n")
}

/// Returns the part of the summary about unchecked files, such as `; 0 objects checked; 12 Markdown files and 3
/// skipped templates mention resource.k8s.io`.
fn unchecked_mentions_part(summary: &Summary) -> String {
    let UncheckedMentionCounts { markdown, templates } = summary.mentions;
    let parts: Vec<String> = [(markdown, "Markdown file"), (templates, "skipped template")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| count_with_noun(count, word))
        .collect();
    if parts.is_empty() {
        return String::new();
    }
    let nothing = if summary.checked == 0 { "; 0 objects checked" } else { "" };
    let verb = if markdown + templates == 1 { "mentions" } else { "mention" };
    let hint = if markdown > 0 { " (use --markdown to check Markdown)" } else { "" };
    format!("{nothing}; {} {verb} resource.k8s.io{hint}", parts.join(" and "))
}

/// Returns the part of the summary about ignored files, such as `; not read: 2 ignored, 1 excluded`.
fn not_read_part(paths: &UnreadPathCounts) -> String {
    let parts = counts_above_zero(&[
        (paths.ignored, "ignored"),
        (paths.excluded, "excluded"),
        (paths.outside, "outside the folder"),
    ]);
    if parts.is_empty() { String::new() } else { format!("; not read: {parts}") }
}

/// Joins the counts that are not zero: `2 ignored, 1 excluded`.
fn counts_above_zero(counts: &[(usize, &str)]) -> String {
    let shown = counts.iter().filter(|(count, _)| *count > 0);
    shown.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// Returns the line about fixes: `Fixed 2 findings in 1 file.`, and how many others could be fixed.
fn fixes_line(summary: &Summary) -> String {
    let mut out = String::new();
    if summary.fixed > 0 {
        let (findings, files) =
            (count_with_noun(summary.fixed, "finding"), count_with_noun(summary.fixed_files, "file"));
        let verb = if summary.is_diff { "Would fix" } else { "Fixed" };
        out = format!("{verb} {findings} in {files}.\n");
    }
    let more = match (summary.fixable, summary.fixable_unsafely) {
        (0, 0) => return out,
        (0, more) => format!("{more} fixable with `--fix --unsafe-fixes`.\n"),
        (safe, 0) => format!("{safe} fixable with `--fix`.\n"),
        (safe, more) => format!("{safe} fixable with `--fix` ({more} more with `--unsafe-fixes`).\n"),
    };
    out.push_str(&more);
    out
}
