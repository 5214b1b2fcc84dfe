//! Counts the findings that are omitted from a verdict, so that they still deny.

use std::collections::BTreeMap;

use crate::rules::{FindingLevel, RuleOrigin};
use tollgate_document::finding::RuleId;

/// How many findings a verdict omits, by level and by whether a policy (`RuleOrigin::Policy`) or a rule (always
/// `RuleOrigin::Upstream`) reports them.
#[derive(Default)]
pub(super) struct OmittedFindingCounts(pub(super) BTreeMap<(FindingLevel, RuleOrigin), usize>);

impl OmittedFindingCounts {
    /// Adds the omitted findings of another profile. Profiles mostly report the same findings, so of two numbers the
    /// larger one is kept, not the sum.
    pub(super) fn merge_profile_counts_by_maximum(
        &mut self,
        findings: BTreeMap<RuleId, usize>,
        violations: BTreeMap<FindingLevel, usize>,
    ) {
        let mut other = OmittedFindingCounts::default();
        for (rule, count) in findings {
            other.add_count(rule.level, rule.origin, count);
        }
        for (level, count) in violations {
            other.add_count(level, RuleOrigin::Policy, count);
        }
        for (key, count) in other.0 {
            let known = self.0.entry(key).or_default();
            *known = count.max(*known);
        }
    }

    /// Adds `count` omitted findings of a level; every origin except `Policy` counts as `Upstream`.
    pub(super) fn add_count(&mut self, level: FindingLevel, origin: RuleOrigin, count: usize) {
        let origin = if origin == RuleOrigin::Policy { origin } else { RuleOrigin::Upstream };
        *self.0.entry((level, origin)).or_default() += count;
    }
}
