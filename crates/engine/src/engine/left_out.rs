//! Counts the findings that are omitted from a verdict, so that they still deny.

use std::collections::BTreeMap;

use super::Engine;
use crate::rules::table::{UNKNOWN_FIELD, WRONG_TYPE};
use crate::rules::{Level, Origin};
use tollgate_document::finding::{Findings, RuleId};

/// Number of omitted findings, by level and by whether a policy (`Origin::Policy`) or a rule (always
/// `Origin::Upstream`) reports them.
#[derive(Default)]
pub(super) struct LeftOut(pub(super) BTreeMap<(Level, Origin), usize>);

impl LeftOut {
    /// Adds the omitted findings of another profile. Profiles mostly report the same findings, so of two numbers the
    /// larger one is kept, not the sum.
    pub(super) fn add_profile(
        &mut self,
        findings: BTreeMap<RuleId, usize>,
        violations: BTreeMap<Level, usize>,
    ) {
        let mut other = LeftOut::default();
        for (rule, count) in findings {
            other.count(rule.level, rule.origin, count);
        }
        for (level, count) in violations {
            other.count(level, Origin::Policy, count);
        }
        for (key, count) in other.0 {
            let known = self.0.entry(key).or_default();
            *known = count.max(*known);
        }
    }

    /// Adds `count` omitted findings of a level; every origin except `Policy` counts as `Upstream`.
    pub(super) fn count(&mut self, level: Level, origin: Origin, count: usize) {
        let origin = if origin == Origin::Policy { origin } else { Origin::Upstream };
        *self.0.entry((level, origin)).or_default() += count;
    }
}

impl Engine {
    /// Counts the decoding errors that the decoder left out as omitted findings: `[errors, errors of strict decoding
    /// only]`.
    pub(super) fn count_left_out(&self, findings: &mut Findings, counts: [usize; 2]) {
        for (rule, count) in [WRONG_TYPE, UNKNOWN_FIELD].into_iter().zip(counts) {
            if count > 0 && self.reports(rule) {
                findings.leave_out(rule, count);
            }
        }
    }
}
