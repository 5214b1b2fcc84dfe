//! Applies the fixes of a text until nothing is left to apply. It reads and writes no file.
//!
//! Fixes that do not overlap are applied together, and the result is checked again. A fix is undone, and its finding
//! reported as before, if the finding stays, if a new finding appears that the fixed mistake had not hidden
//! ([`verdict`]), or if a toleration or a selector matches more than before ([`coverage`]).
//!
//! Invariant: a document without denials has none afterwards, and a text is checked a limited number of times.

mod coverage;
#[cfg(any(test, fuzzing))]
pub(super) mod fuzzing;
#[cfg(all(test, feature = "cluster"))]
mod tests;
mod verdict;

use std::collections::HashSet;

use super::check::{TextChecker, TextSource};
use tollgate_document::finding::Applicability;
use tollgate_document::source;
use verdict::{CheckedFinding, CheckedText};

/// Maximum number of times that a text is checked while fixes are tried. Fixes that are found by then are kept.
const MAX_CHECKS_PER_TEXT: usize = 100;

/// Applies fixes to a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixer<'r> {
    pub(super) texts: TextChecker<'r>,
    /// Applies fixes of this applicability and safer ones.
    pub(super) applies: Applicability,
    /// The source of the texts. Skipped documents are not fixed.
    pub(super) source: TextSource,
}

/// A text with fixes applied, and the number of findings that are gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FixedText {
    pub(super) text: String,
    /// Number of findings that are gone.
    pub(super) findings: usize,
}

impl Fixer<'_> {
    /// Returns the text with its fixes applied; `None` if none could be applied.
    pub(super) fn fix(&self, file: &str, text: &str) -> Option<FixedText> {
        let mut state = CheckedText::from_text(&self.texts, file, text, self.source);
        let mut fixed = FixedText { text: text.to_owned(), findings: 0 };
        let mut rejected: HashSet<String> = HashSet::new();
        // True if a fix was applied after the first rejection: what did not help before may help now.
        let mut may_retry = false;
        // Half as many after a failure, so that one bad fix among many is found soon.
        let mut batch_size = usize::MAX;
        for _ in 0..MAX_CHECKS_PER_TEXT {
            let batch = self.next_findings_with_non_overlapping_fixes(&state, &rejected, batch_size);
            let Some(first) = batch.first() else {
                if std::mem::take(&mut may_retry) {
                    rejected.clear();
                    continue;
                }
                break;
            };
            let edits = batch.iter().filter_map(|finding| finding.fix.as_ref()).flat_map(|fix| &fix.edits);
            let text = source::apply(&fixed.text, edits);
            let after = CheckedText::from_text(&self.texts, file, &text, self.source);
            let widens = || coverage::widens_selector_or_toleration_match(&fixed.text, &text, &batch);
            if verdict::improves_text(&state, &after, &batch) && !widens() {
                let is_same =
                    |finding: &&CheckedFinding| batch.iter().any(|applied| applied.fix == finding.fix);
                fixed.findings += state.findings.iter().filter(is_same).count();
                fixed.text = text;
                state = after;
                may_retry = !rejected.is_empty();
                batch_size = batch_size.saturating_mul(2);
            } else if batch.len() == 1 {
                rejected.insert(first.rejection_key());
            } else {
                batch_size = batch.len() / 2;
            }
        }
        (fixed.findings > 0).then_some(fixed)
    }

    /// Returns findings whose fixes can be applied together, in the order of the text: at most `size` that do not
    /// overlap and were not rejected; at least one if any is left.
    fn next_findings_with_non_overlapping_fixes<'s>(
        &self,
        state: &'s CheckedText,
        rejected: &HashSet<String>,
        size: usize,
    ) -> Vec<&'s CheckedFinding> {
        let is_wanted = |finding: &&CheckedFinding| {
            let fix = finding.fix.as_ref();
            fix.is_some_and(|fix| fix.applicability <= self.applies)
                && !rejected.contains(&finding.rejection_key())
        };
        let mut wanted: Vec<&CheckedFinding> = state.findings.iter().filter(is_wanted).collect();
        wanted.sort_by_key(|finding| finding.edited_range());
        let mut free_from = None;
        wanted.retain(|finding| {
            let (start, end) = finding.edited_range();
            let is_free = free_from.is_none_or(|from| start > from);
            if is_free {
                free_from = Some(end);
            }
            is_free
        });
        wanted.truncate(size.max(1));
        wanted
    }
}
