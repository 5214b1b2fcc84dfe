//! Counts the findings that are omitted from a verdict, so that they still deny.

use std::collections::BTreeMap;

use crate::rules::{Level, Origin};
use tollgate_document::finding::RuleId;

/// How many findings a verdict omits, by level and by whether a policy (`Origin::Policy`) or a rule (always
/// `Origin::Upstream`) reports them.
#[derive(Default)]
pub(super) struct OmittedFindings(pub(super) BTreeMap<(Level, Origin), usize>);

impl OmittedFindings {
    /// Adds the omitted findings of another profile. Profiles mostly report the same findings, so of two numbers the
    /// larger one is kept, not the sum.
    pub(super) fn add_profile(
        &mut self,
        findings: BTreeMap<RuleId, usize>,
        violations: BTreeMap<Level, usize>,
    ) {
        let mut other = OmittedFindings::default();
        for (rule, count) in findings {
            other.add(rule.level, rule.origin, count);
        }
        for (level, count) in violations {
            other.add(level, Origin::Policy, count);
        }
        for (key, count) in other.0 {
            let known = self.0.entry(key).or_default();
            *known = count.max(*known);
        }
    }

    /// Adds `count` omitted findings of a level; every origin except `Policy` counts as `Upstream`.
    pub(super) fn add(&mut self, level: Level, origin: Origin, count: usize) {
        let origin = if origin == Origin::Policy { origin } else { Origin::Upstream };
        *self.0.entry((level, origin)).or_default() += count;
    }
}
