//! Whether a text is better after its fixes: their findings are gone, and they brought none of their own.
//!
//! Some mistakes hide others: no rule checks an object that does not decode, the content of an unknown field is not
//! checked, and an object of an unknown kind is not read at all. A finding that appears when such a mistake is fixed
//! existed before, so it does not undo the fix. [`was_hidden_by`] has the full list.

use std::collections::HashMap;

use super::super::check::{TextChecker, TextSource};
use crate::report::{DocumentResult, DocumentStatus, LocatedFinding, SkipReason};
use tollgate_document::field::{FieldPath, PathAudience};
use tollgate_document::finding::{Applicability, Edit};
use tollgate_document::source::TextFix;
use tollgate_engine::rules::{FindingLevel, RuleOrigin};

/// The findings of a text and the status of its objects, to compare the text before and after a fix.
#[derive(Debug)]
pub(super) struct CheckedText {
    pub(super) findings: Vec<CheckedFinding>,
    /// The status of each object, in the order of the text.
    statuses: Vec<DocumentStatus>,
}

/// A finding without the data that only reports need.
#[derive(Debug)]
pub(super) struct CheckedFinding {
    /// Index of its object in the text.
    pub(super) object: usize,
    /// Index of its document in the text.
    pub(super) document: usize,
    pub(super) rule: &'static str,
    pub(super) origin: RuleOrigin,
    pub(super) level: FindingLevel,
    /// Path of the field without list indices, which change when an item is removed.
    pub(super) place: String,
    /// Path of the field with list indices.
    pub(super) field: String,
    pub(super) fix: Option<TextFix>,
    /// The edits of the fix, which name fields and not bytes.
    pub(super) edits: Vec<Edit>,
}

impl CheckedText {
    /// Checks a text, and collects its findings for the comparison before and after a fix.
    pub(super) fn from_text(
        texts: &TextChecker<'_>,
        file: &str,
        text: &str,
        source: TextSource,
    ) -> CheckedText {
        let mut judged = CheckedText { findings: Vec::new(), statuses: Vec::new() };
        texts.check_text(file, text, source, &mut |entry: &DocumentResult<'_>| {
            let object = judged.statuses.len();
            judged.statuses.push(status_ignoring_placeholders(entry));
            judged.findings.extend(
                entry
                    .findings
                    .iter()
                    .map(|located| CheckedFinding::from_located(located, entry.document, object)),
            );
        });
        judged
    }

    /// Number of findings by object, rule and path.
    fn count_by_key(&self) -> HashMap<(usize, &'static str, &str), usize> {
        let mut counts = HashMap::new();
        for finding in &self.findings {
            *counts.entry(finding.comparison_key()).or_default() += 1;
        }
        counts
    }
}

impl CheckedFinding {
    fn from_located(located: &LocatedFinding, document: usize, object: usize) -> CheckedFinding {
        let diagnostic = &located.diagnostic;
        let finding = &diagnostic.finding;
        let field = finding.user_path();
        CheckedFinding {
            object,
            document,
            rule: finding.rule.id,
            origin: diagnostic.origin,
            level: diagnostic.level,
            place: without_indexes(&field),
            field,
            fix: located.fix.clone(),
            edits: finding.fix.as_ref().map(|fix| fix.edits.clone()).unwrap_or_default(),
        }
    }

    /// Object, rule and path without list indices. Used to match findings before and after a fix, which may
    /// remove list items.
    fn comparison_key(&self) -> (usize, &'static str, &str) {
        (self.object, self.rule, &self.place)
    }

    /// Identifies the finding within this text, so that a rejected fix is not tried again.
    pub(super) fn rejection_key(&self) -> String {
        format!("{} {} {}", self.object, self.rule, self.field)
    }

    /// Returns the range of bytes from the start of its first edit to the end of its last; (0, 0) without edits.
    pub(super) fn edited_range(&self) -> (usize, usize) {
        let edits = self.fix.as_ref().map(|fix| fix.edits.as_slice()).unwrap_or_default();
        let start = edits.first().map_or(0, |edit| edit.location.bytes.start);
        (start, edits.last().map_or(start, |edit| edit.location.bytes.end))
    }
}

/// The status of an object. One that was checked and is skipped only because all of its findings are about
/// placeholders counts as valid: a fix of its other findings leads there.
fn status_ignoring_placeholders(entry: &DocumentResult<'_>) -> DocumentStatus {
    // Without profiles, the object was not checked.
    let was_checked = entry.skipped == Some(SkipReason::Template) && !entry.profiles.is_empty();
    if was_checked { DocumentStatus::Valid } else { entry.status }
}

/// The field without the numbers of list items: `spec.devices[].taints[].effect`.
fn without_indexes(field: &str) -> String {
    let mut out = String::with_capacity(field.len());
    for part in field.split_inclusive('[') {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
        out.push_str(if rest.starts_with(']') { rest } else { part });
    }
    out
}

/// True if every object that was checked before is still checked, and no valid object has become invalid.
pub(super) fn stays_valid(before: &CheckedText, after: &CheckedText) -> bool {
    let is_kept = |(before, after): (&DocumentStatus, &DocumentStatus)| {
        let is_worse = match after {
            DocumentStatus::Valid => false,
            DocumentStatus::Invalid => *before == DocumentStatus::Valid,
            DocumentStatus::Skipped | DocumentStatus::Unreadable => before != after,
        };
        !is_worse
    };
    before.statuses.len() == after.statuses.len() && before.statuses.iter().zip(&after.statuses).all(is_kept)
}

/// True if the fixes improve the text: the findings in `applied` are gone, and new findings are only those that
/// these mistakes had hidden.
pub(super) fn improves_text(before: &CheckedText, after: &CheckedText, applied: &[&CheckedFinding]) -> bool {
    if !stays_valid(before, after) {
        return false;
    }
    let (old, new) = (before.count_by_key(), after.count_by_key());
    let is_gone = |finding: &&CheckedFinding| {
        new.get(&finding.comparison_key()).copied().unwrap_or_default()
            < old.get(&finding.comparison_key()).copied().unwrap_or_default()
    };
    if !applied.iter().all(is_gone) {
        return false;
    }
    after.findings.iter().all(|finding| {
        let is_new = new.get(&finding.comparison_key()) > old.get(&finding.comparison_key());
        !is_new || applied.iter().any(|applied| was_hidden_by(finding, applied))
    })
}

/// True if the finding may be visible only because the fix of `applied` corrected a mistake that kept it from
/// being checked.
fn was_hidden_by(finding: &CheckedFinding, applied: &CheckedFinding) -> bool {
    if finding.object != applied.object {
        return false;
    }
    let is_of_decoding = matches!(finding.origin, RuleOrigin::Decoding | RuleOrigin::Strict);
    match applied.rule {
        // No rule looks at an object that does not decode, and decoding does not look into the value.
        "wrong-type" | "bad-time" | "bad-quantity" => {
            !is_of_decoding || finding.place.starts_with(&applied.place)
        }
        // An unknown kind is not read. Another version of a known one must bring no errors of decoding.
        "unserved-version" => !is_of_decoding || applied.edits.iter().all(edits_kind),
        // Nobody looks into an unknown field.
        "unknown-field" => {
            let mut targets = applied.edits.iter().filter_map(move_target_path);
            targets.any(|target| finding.place.starts_with(&without_indexes(&target)))
        }
        // What was refused may now be accepted with a warning.
        _ => {
            let is_unsafe =
                applied.fix.as_ref().is_some_and(|fix| fix.applicability == Applicability::Unsafe);
            is_unsafe && finding.place == applied.place && finding.level < applied.level
        }
    }
}

/// True for an edit of `kind`, also of a list item.
fn edits_kind(edit: &Edit) -> bool {
    matches!(edit, Edit::Set { at, .. } if at.user_json_pointer().ends_with("/kind"))
}

/// Returns the path to which an edit moves a field, where the field is checked for the first time; `None` for
/// edits that move nothing.
pub(super) fn move_target_path(edit: &Edit) -> Option<String> {
    let print = |path: &FieldPath| path.print(PathAudience::User);
    let below =
        |path: String, key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let parent = |path: &FieldPath| {
        let path = print(path);
        path.rsplit_once('.').map_or(String::new(), |(parent, _)| parent.to_owned())
    };
    Some(match edit {
        Edit::Rename { at, to } => below(parent(at), to),
        Edit::Nest { into, key, .. } => below(print(into), key),
        Edit::Move { into, .. } => print(into),
        Edit::Unnest { at } => parent(at),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::without_indexes;

    #[test]
    fn the_numbers_of_items_do_not_count() {
        assert_eq!(without_indexes("items[10].a[0].b[c.d/0].e[x]"), "items[].a[].b[c.d/0].e[x]");
        assert_eq!(without_indexes("a[1][2]"), "a[][]");
        assert_eq!(without_indexes(""), "");
    }
}
