//! Comments that suppress lints: `# tollgate: allow(RULE, …) reason`.
//!
//! A comment at the end of a line applies to that line. A comment on its own line applies to the next line that is
//! neither blank nor a comment, and to a whole object if that line is the first one of the object.
//!
//! Invariant: only lints are suppressed, only with a reason, and a suppression that does nothing is reported.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use crate::report::{AcceptedBy, AcceptedFinding, LocatedFinding};
use tollgate_document::field::FieldPath;
use tollgate_document::finding::{BadValue, ErrorType, Finding, RuleId};
use tollgate_document::source::{LineIndex, comment_ranges};
use tollgate_engine::engine::Diagnostic;
use tollgate_engine::rules::table::{INVALID_SUPPRESSION, UNUSED_SUPPRESSION};
use tollgate_engine::rules::{self, RuleInput, RuleOrigin, RuleSet};

/// Prefix of suppression comments.
const COMMENT_PREFIX: &str = "tollgate:";
/// Hint with the syntax of suppression comments.
const SYNTAX_HINT: &str = "write `# tollgate: allow(RULE) reason`";
/// The suppression comments of a text, and which of them were used.
#[derive(Debug, Default)]
pub struct Suppressions {
    /// The suppressions, in the order of the text.
    list: Vec<Suppression>,
    /// Index of the suppression, and of the rule in it, by the line that it is about and rule.
    by_line: HashMap<(usize, RuleId), (usize, usize)>,
    /// Like `by_line`, but only for comments on their own line, which can apply to a whole object.
    by_head: HashMap<(usize, RuleId), (usize, usize)>,
    /// Index of the first suppression whose problems were not reported yet.
    next: usize,
}

#[derive(Debug)]
struct Suppression {
    /// The line whose findings it suppresses.
    line: usize,
    reason: String,
    names: Vec<SuppressedRule>,
    /// What is wrong with the comment, each with its bytes.
    faults: Vec<(Range<usize>, Finding)>,
}

#[derive(Debug)]
struct SuppressedRule {
    rule: RuleId,
    bytes: Range<usize>,
    is_used: bool,
}

impl Suppressions {
    /// Finds the suppression comments of a text.
    pub fn parse_text(text: &str, lines: &LineIndex<'_>) -> Suppressions {
        let mut all = Suppressions::default();
        if !text.contains(COMMENT_PREFIX) {
            return all;
        }
        let mut next_lines = None;
        for bytes in comment_ranges(text) {
            let comment = text.get(bytes.clone()).unwrap_or_default();
            let body = comment.trim_start_matches('#').trim_start();
            let Some(rest) = body.strip_prefix(COMMENT_PREFIX) else { continue };
            let line = lines.line_and_column(bytes.start).0;
            let before = text.get(lines.line_range(line).start..bytes.start).unwrap_or_default().trim();
            let is_own_line = before.is_empty() || before == "---";
            let about = if is_own_line {
                let next = next_lines.get_or_insert_with(|| next_content_lines(text, lines));
                next.get(line).copied().unwrap_or(line)
            } else {
                line
            };
            all.add(parse_comment(rest, &bytes, about), is_own_line);
        }
        all
    }

    fn add(&mut self, suppression: Suppression, is_own_line: bool) {
        let number = self.list.len();
        for (position, name) in suppression.names.iter().enumerate() {
            let key = (suppression.line, name.rule);
            self.by_line.entry(key).or_insert((number, position));
            if is_own_line {
                self.by_head.entry(key).or_insert((number, position));
            }
        }
        self.list.push(suppression);
    }

    /// Splits the findings about an object, which starts at `first_line`, into those to report and those that
    /// are suppressed.
    pub fn split_suppressed(
        &mut self,
        findings: Vec<LocatedFinding>,
        first_line: usize,
    ) -> (Vec<LocatedFinding>, Vec<AcceptedFinding>) {
        if self.list.is_empty() {
            return (findings, Vec::new());
        }
        let (mut kept, mut accepted) = (Vec::new(), Vec::new());
        for located in findings {
            match self.suppression_reason_marking_use(&located, first_line) {
                None => kept.push(located),
                Some(reason) => {
                    let by = AcceptedBy::Comment { reason };
                    accepted.push(AcceptedFinding { located, by });
                }
            }
        }
        (kept, accepted)
    }

    /// Returns the reason of the suppression for a finding, and marks it as used; `None` if there is none.
    fn suppression_reason_marking_use(
        &mut self,
        located: &LocatedFinding,
        first_line: usize,
    ) -> Option<String> {
        let rule = located.diagnostic.finding.rule;
        if !rule.is_suppressible {
            return None;
        }
        let on_line = self.by_line.get(&(located.location.line, rule));
        let (number, position) = *on_line.or_else(|| self.by_head.get(&(first_line, rule)))?;
        let suppression = self.list.get_mut(number)?;
        suppression.names.get_mut(position)?.is_used = true;
        Some(suppression.reason.clone())
    }

    /// Returns the problems of suppressions up to a line that were not reported before: unknown names, missing
    /// reasons, and suppressions without effect. `profiles` are those of the run.
    pub fn take_problems_up_to_line(
        &mut self,
        lines: &LineIndex<'_>,
        last_line: impl Fn() -> usize,
        rules: &RuleSet,
        profiles: &[&'static str],
    ) -> Vec<LocatedFinding> {
        let mut found = Vec::new();
        if self.next >= self.list.len() {
            return found;
        }
        let last_line = last_line();
        let mut report = |bytes: &Range<usize>, finding: Finding| {
            if rules.has(finding.rule) {
                let (diagnostic, location) =
                    (Diagnostic::new(finding, profiles.to_vec()), lines.locate(bytes.clone()));
                found.push(LocatedFinding { diagnostic, location, also: Vec::new(), fix: None });
            }
        };
        while let Some(suppression) = self.list.get(self.next).filter(|next| next.line <= last_line) {
            self.next += 1;
            for (bytes, finding) in &suppression.faults {
                report(bytes, finding.clone());
            }
            let unused = suppression.names.iter().filter(|name| !name.is_used && rules.has(name.rule));
            // What depends on more than the text may be found by another run.
            for name in unused.filter(|name| name.rule.depends_on == RuleInput::Text) {
                let rule = name.rule;
                let detail =
                    format!("this comment suppresses nothing, because {rule} reports no finding here");
                let help =
                    "remove the comment, or move it to the line of the finding or to the line above it";
                let (kind, value) = (ErrorType::NotFound, rule.id);
                report(&name.bytes, comment_finding(UNUSED_SUPPRESSION, kind, value, detail, help));
            }
        }
        found
    }

    /// Forgets the suppressions up to a line, because the documents that they are about were not checked.
    pub fn forget_up_to_line(&mut self, last_line: impl Fn() -> usize) {
        if self.next >= self.list.len() {
            return;
        }
        let last_line = last_line();
        while self.list.get(self.next).is_some_and(|next| next.line <= last_line) {
            self.next += 1;
        }
    }
}

/// Returns a finding about a suppression comment.
fn comment_finding(
    rule: RuleId,
    kind: ErrorType,
    value: &str,
    detail: String,
    help: impl Into<Cow<'static, str>>,
) -> Finding {
    let finding = Finding::new(rule, FieldPath::default(), kind, BadValue::str(value), detail);
    Finding { help: Some(help.into()), ..finding }
}

/// Parses the text that follows `tollgate:` in a comment.
fn parse_comment(rest: &str, comment: &Range<usize>, line: usize) -> Suppression {
    let mut suppression = Suppression { line, reason: String::new(), names: Vec::new(), faults: Vec::new() };
    let malformed = |kind, value: &str, detail: String| {
        (comment.clone(), comment_finding(INVALID_SUPPRESSION, kind, value, detail, SYNTAX_HINT))
    };
    let list = rest.trim_start().strip_prefix("allow").and_then(|list| list.trim_start().strip_prefix('('));
    let Some((list, reason)) = list.and_then(|list| list.split_once(')')) else {
        let shown = tollgate_formats::gofmt::byte_prefix(rest.trim(), 64);
        let detail = format!("`{shown}` is not a valid suppression");
        suppression.faults.push(malformed(ErrorType::Invalid, shown, detail));
        return suppression;
    };
    // Another comment may follow; punctuation before the reason is not part of it.
    let reason = reason.split(" #").next().unwrap_or_default();
    let reason = reason.trim_start_matches([' ', '\t', ':', '-', '–', '—']).trim();
    if reason.is_empty() || reason.starts_with('#') {
        let detail = "a suppression must give a reason".to_owned();
        suppression.faults.push(malformed(ErrorType::Required, "", detail));
        return suppression;
    }
    suppression.reason = reason.into();
    // The names end where the text after them begins.
    let list_start = comment.end - (rest.len() - (rest.find('(').unwrap_or_default() + 1));
    let mut at = list_start;
    for word in list.split(',') {
        let name = word.trim();
        let start = at + (word.len() - word.trim_start().len());
        at += word.len() + 1;
        let bytes = start..start + name.len().max(1);
        match suppressible_lint(name) {
            Ok(rule) => suppression.names.push(SuppressedRule { rule, bytes, is_used: false }),
            Err((detail, help)) => {
                let (kind, value) = (ErrorType::Invalid, tollgate_formats::gofmt::byte_prefix(name, 64));
                let finding = comment_finding(INVALID_SUPPRESSION, kind, value, detail, help);
                suppression.faults.push((bytes, finding));
            }
        }
    }
    suppression
}

/// Returns the lint with this name. The error says why the name is not accepted, and what to do instead.
fn suppressible_lint(name: &str) -> Result<RuleId, (String, String)> {
    let lists = "`tollgate explain lint` lists the lints".to_owned();
    if RuleOrigin::ALL.iter().any(|origin| origin.name() == name) {
        return Err((format!("`{name}` is an origin; a suppression must name rules"), lists));
    }
    let Some(rule) = rules::find(name) else {
        let lints = rules::all().filter(|rule| rule.origin == RuleOrigin::Lint).map(|rule| rule.id);
        let help = tollgate_engine::policy::nearest_name(lints, name)
            .map_or(lists, |near| format!("did you mean `{near}`?"));
        return Err((format!("`{}` is not a rule", tollgate_formats::gofmt::byte_prefix(name, 64)), help));
    };
    if rule.origin != RuleOrigin::Lint {
        let detail = format!("only lints can be suppressed; {name} has origin {}", rule.origin.name());
        return Err((detail, format!("use `--allow {name}` on the command line")));
    }
    if !rule.is_suppressible {
        let help = format!("set `{name}: allow` in `levels` of .tollgate.yaml");
        return Err(("findings about suppressions cannot be suppressed".to_owned(), help));
    }
    Ok(rule)
}

/// Returns for each line the first line from there on that is neither blank nor a comment. A document separator
/// counts as blank if only comments precede it, because these comments belong to the next document.
fn next_content_lines(text: &str, lines: &LineIndex<'_>) -> Vec<usize> {
    let last = lines.line_and_column(text.len()).0;
    let line = |number| text.get(lines.line_range(number)).unwrap_or_default();
    let is_separator = |number| line(number).starts_with("---");
    let is_blank = |number| {
        let line = line(number).trim_start();
        line.is_empty() || line.starts_with('#')
    };
    let mut is_transparent = vec![false; last + 1];
    let mut has_content = false;
    for (number, transparent) in is_transparent.iter_mut().enumerate().skip(1) {
        if is_separator(number) {
            *transparent = !has_content;
            has_content = false;
        } else if is_blank(number) {
            *transparent = true;
        } else {
            has_content = true;
        }
    }
    let mut next = vec![0; last + 1];
    // What comes after all content is about nothing: its own line.
    let mut content = None;
    for number in (1..=last).rev() {
        if !is_transparent.get(number).copied().unwrap_or_default() {
            content = Some(number);
        }
        let about = if is_separator(number) {
            // A comment behind a separator belongs to the document that follows.
            next.get(number + 1).copied()
        } else {
            content
        };
        if let Some(next) = next.get_mut(number) {
            *next = about.unwrap_or(number);
        }
    }
    next
}
