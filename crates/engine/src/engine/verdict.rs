//! The verdict about one request.

use super::{Diagnostic, Engine, ProfileFinding};
use crate::rules::FindingLevel;
use tollgate_document::finding::Finding;

/// The verdict about one request.
#[derive(Clone, Debug, Default)]
pub enum Verdict {
    /// The object is of a kind that is not checked.
    #[default]
    Skipped,
    /// The object was checked; without findings it is clean.
    Checked(Vec<Diagnostic>),
}

impl Verdict {
    /// Returns the findings; none if the object was skipped.
    pub fn findings(&self) -> &[Diagnostic] {
        match self {
            Verdict::Skipped => &[],
            Verdict::Checked(findings) => findings,
        }
    }

    /// True if no finding denies the request.
    pub fn is_allowed(&self) -> bool {
        self.findings().iter().all(|diagnostic| diagnostic.level != FindingLevel::Deny)
    }
}

impl Engine {
    /// Returns a verdict with these findings alone, for every profile and whichever rules are selected.
    pub(super) fn verdict_for_all_profiles(&self, findings: &[Finding]) -> Verdict {
        let of_profile = |rank: usize| {
            let all = findings.iter().cloned();
            all.map(move |finding| ProfileFinding { finding, ground: None, rank })
        };
        Verdict::Checked(self.merge_profile_findings((0..self.profiles.len()).flat_map(of_profile).collect()))
    }
}
