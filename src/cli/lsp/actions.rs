//! Code actions: fixes of findings, all safe fixes at once, and comments that allow a lint.
//!
//! Each fix comes from its finding; the action with all safe fixes has the result of `tollgate validate --fix`.
//!
//! Invariant: an unsafe fix is labelled as unsafe, is never preferred, and is never part of `source.fixAll`.

use std::collections::BTreeMap;
use std::ops::Range;

use super::problems::Problem;
use super::text::{Encoding, Text};
use crate::report::record::{Json, collect_records, record};
use tollgate_document::finding::Applicability;
use tollgate_engine::rules::RuleOrigin;

const QUICK_FIX: &str = "quickfix";
const FIX_ALL: &str = "source.fixAll.tollgate";
/// The kinds of code actions that the server announces in `initialize`.
pub(super) const ACTION_KINDS: [&str; 2] = [QUICK_FIX, FIX_ALL];

/// A document for which code actions are computed.
pub(super) struct CodeActionDocument<'a> {
    pub(super) uri: &'a str,
    pub(super) version: Option<i64>,
    pub(super) text: &'a Text,
    pub(super) encoding: Encoding,
    /// True if the client can check the version of the document before it edits.
    pub(super) checks_version: bool,
}

/// A range of bytes, and the text that replaces it.
type Replacement = (Range<usize>, String);

impl CodeActionDocument<'_> {
    /// Returns the actions for problems in a range of bytes, of the kinds for which `is_wanted` is true.
    /// `fix_all` returns the text with all safe fixes; it is called only if needed.
    pub(super) fn actions(
        &self,
        bytes: &Range<usize>,
        problems: &[Problem],
        is_wanted: impl Fn(&str) -> bool,
        fix_all: impl FnOnce() -> Option<String>,
    ) -> Vec<Json> {
        let mut found = Vec::new();
        if is_wanted(QUICK_FIX) {
            let here =
                |problem: &&Problem| problem.bytes.start <= bytes.end && bytes.start <= problem.bytes.end;
            for problem in problems.iter().filter(here) {
                found.extend(self.fix_action(problem));
                found.extend(self.suppress_lint_action_unless_json(problem));
            }
        }
        let is_safe = |problem: &Problem| {
            problem.fix.as_ref().is_some_and(|fix| fix.applicability == Applicability::Safe)
        };
        if is_wanted(FIX_ALL) && problems.iter().any(is_safe) {
            found.extend(fix_all().map(|fixed| self.fix_all_action(&fixed)));
        }
        found
    }

    /// Returns the action that applies the fix of a problem; `None` if it has none.
    fn fix_action(&self, problem: &Problem) -> Option<Json> {
        let fix = problem.fix.as_ref()?;
        let is_safe = fix.applicability == Applicability::Safe;
        let title = if is_safe {
            fix.title.to_string()
        } else {
            format!("{} (unsafe: might change the meaning of the object)", fix.title)
        };
        let edits = fix.edits.iter().map(|edit| (edit.location.bytes.clone(), edit.text.clone()));
        Some(self.action(&title, QUICK_FIX, Some(problem), is_safe, edits.collect()))
    }

    /// Returns the action that turns the text into `fixed`, in one edit from the first to the last byte that
    /// differs.
    fn fix_all_action(&self, fixed: &str) -> Json {
        let old = self.text.as_str();
        let pairs = old.chars().zip(fixed.chars());
        let start: usize =
            pairs.take_while(|(one, other)| one == other).map(|(letter, _)| letter.len_utf8()).sum();
        let tails = (old.get(start..).unwrap_or_default(), fixed.get(start..).unwrap_or_default());
        let pairs = tails.0.chars().rev().zip(tails.1.chars().rev());
        let end: usize =
            pairs.take_while(|(one, other)| one == other).map(|(letter, _)| letter.len_utf8()).sum();
        let new = fixed.get(start..fixed.len() - end).unwrap_or_default().to_owned();
        let title = "Apply all safe fixes (tollgate)".to_owned();
        self.action(&title, FIX_ALL, None, false, vec![(start..old.len() - end, new)])
    }

    /// Returns the action that suppresses a lint with a comment above its line; `None` for rules that a comment cannot
    /// suppress and for JSON, which has no comments.
    fn suppress_lint_action_unless_json(&self, problem: &Problem) -> Option<Json> {
        let rule = problem.rule.filter(|rule| rule.origin == RuleOrigin::Lint && rule.is_suppressible)?;
        let text = self.text.as_str();
        // JSON has no comments.
        if text.trim_start().starts_with('{') {
            return None;
        }
        let before = text.get(..problem.bytes.start)?;
        let line = before.rfind('\n').map_or(0, |line_break| line_break + 1);
        let rest = text.get(line..)?;
        let indent = rest.get(..rest.len() - rest.trim_start_matches(' ').len())?;
        let line_break = if before.ends_with("\r\n") || text.contains("\r\n") { "\r\n" } else { "\n" };
        let comment = format!("{indent}# tollgate: allow({}) reason{line_break}", rule.id);
        let title = format!("Suppress {rule} with a comment");
        Some(self.action(&title, QUICK_FIX, Some(problem), false, vec![(line..line, comment)]))
    }

    fn action(
        &self,
        title: &str,
        kind: &'static str,
        problem: Option<&Problem>,
        is_preferred: bool,
        edits: Vec<Replacement>,
    ) -> Json {
        let edits = edits.into_iter().map(|(bytes, new_text)| {
            record! { "range": self.text.range(&bytes, self.encoding), "newText": new_text }
        });
        let edits = collect_records(edits);
        let edit = if self.checks_version {
            let document = record! { "uri": self.uri, "version": self.version };
            record! { "documentChanges": [record! { "textDocument": document, "edits": edits }] }
        } else {
            record! { "changes": BTreeMap::from([(self.uri, edits)]) }
        };
        let diagnostics = problem.map(|problem| problem.to_diagnostic(self.uri, self.text, self.encoding));
        record! {
            "title": title,
            "kind": kind,
            "diagnostics" if given: collect_records(diagnostics.into_iter()),
            "isPreferred" if given: is_preferred,
            "edit": edit,
        }
    }
}
