//! TolerationPolicies of two sets compared: representative tolerations, and what policies say about them.
//!
//! Invariant: if two groups of policies give the same answers for all [representatives](ComparedAspect::samples), they
//! give the same answers for every toleration, because entries compare keys, values, effects and seconds with finitely
//! many constants.

use std::collections::BTreeSet;

use super::written::WrittenToleration;
use super::{TolerationEntryGroup, TolerationPolicy};
use crate::admission::Operation;
use crate::policy::diff::{ComparedAspect, SampleContext};
use crate::policy::entries::{TolerationEntry, quote_unless_plain};
use crate::policy::kind::{PolicySpec, policies_of_kind};
use crate::policy::{MatchedPolicy, Policy};
use crate::rules::FindingLevel;
use crate::tolerance::coverage::{EffectSet, KeyPattern, PolicyEntry, ToleratedTaints};

/// Sample name that no entry names.
const UNLISTED_VALUE: &str = "any-other";
/// Sample key that no entry names.
const UNLISTED_KEY: &str = "other.invalid/any-other";

/// A sample toleration that represents all tolerations that the entries treat equally.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::policy) struct SampleToleration {
    key: Option<String>,
    value: Option<String>,
    effects: EffectSet,
    seconds: Option<i64>,
}

impl SampleToleration {
    fn tolerated_taints(&self) -> ToleratedTaints<'_> {
        ToleratedTaints {
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            effects: self.effects,
            seconds: self.seconds,
        }
    }
}

impl TolerationPolicy {
    /// Returns all entries of the policy, including those derived from default tolerations.
    pub(in crate::policy) fn allow_default_and_deny_entries(&self) -> impl Iterator<Item = &TolerationEntry> {
        self.allow_and_default_entries().chain(&self.deny)
    }
}

/// What the TolerationPolicies that match allow and deny, to be compared with those of the other set.
pub(in crate::policy) struct TolerationPoliciesToCompare<'s> {
    policies: Vec<&'s TolerationPolicy>,
    groups: Vec<TolerationEntryGroup<'s>>,
}

impl<'s> ComparedAspect<'s> for TolerationPoliciesToCompare<'s> {
    type Sample = SampleToleration;

    fn of(
        policies: &[MatchedPolicy<'s>],
        circumstances: &SampleContext<'_>,
    ) -> TolerationPoliciesToCompare<'s> {
        let group = |level| TolerationEntryGroup::from_policies(policies, level, Some(circumstances.now));
        TolerationPoliciesToCompare {
            policies: policies_of_kind(policies, PolicySpec::toleration).map(|(_, policy)| policy).collect(),
            groups: FindingLevel::ALL.into_iter().rev().filter_map(group).collect(),
        }
    }

    fn samples(&self, _: &SampleContext<'_>) -> Vec<SampleToleration> {
        if self.policies.is_empty() {
            return Vec::new();
        }
        let entries = self.policies.iter().flat_map(|policy| policy.allow_default_and_deny_entries());
        let entries: Vec<&PolicyEntry> = entries.map(|grant| &grant.entry).collect();
        let keys: BTreeSet<Option<String>> = entries
            .iter()
            .filter_map(|entry| match &entry.keys {
                KeyPattern::Any => None,
                KeyPattern::Prefix(prefix) => Some(Some(format!("{prefix}{UNLISTED_VALUE}"))),
                KeyPattern::Exact(key) => Some(Some(key.to_string())),
            })
            .chain([None, Some(UNLISTED_KEY.to_owned())])
            .collect();
        let mut samples = Vec::new();
        for key in keys {
            let is_near = |entry: &&&PolicyEntry| key.is_none() || entry.keys.contains(key.as_deref());
            let near: Vec<&&PolicyEntry> = entries.iter().filter(is_near).collect();
            let named = near.iter().flat_map(|entry| entry.values.iter().flatten());
            let values: BTreeSet<Option<String>> = named
                .map(|value| Some(value.to_string()))
                .chain([None, Some(UNLISTED_VALUE.to_owned())])
                .collect();
            let limits = near.iter().filter_map(|entry| entry.seconds);
            let seconds: BTreeSet<Option<i64>> = limits
                .flat_map(|limit| [Some(limit), Some(limit.saturating_add(1))])
                .chain([None, Some(0)])
                .collect();
            for value in &values {
                for effects in
                    [EffectSet::KNOWN, EffectSet::EFFECT_NONE, EffectSet::NO_SCHEDULE, EffectSet::NO_EXECUTE]
                {
                    let counts =
                        |seconds: &&Option<i64>| seconds.is_none() || effects.contains(EffectSet::NO_EXECUTE);
                    samples.extend(seconds.iter().filter(counts).map(|seconds| SampleToleration {
                        key: key.clone(),
                        value: value.clone(),
                        effects,
                        seconds: *seconds,
                    }));
                }
            }
        }
        samples
    }

    fn level(&self, sample: &SampleToleration, circumstances: &SampleContext<'_>) -> Option<FindingLevel> {
        let taints = sample.tolerated_taints();
        let refusing = self.groups.iter().flat_map(|group| group.refusing_policies(&taints));
        refusing.map(|policy| policy.level_at(Some(circumstances.now))).max()
    }

    /// Returns the toleration as YAML, such as `{key: a/b, operator: Exists, effect: NoExecute}`, with words such as
    /// `any other key` for names that no entry contains.
    fn describe(sample: &SampleToleration) -> String {
        let mut fields = Vec::new();
        if let Some(key) = &sample.key {
            let text = match key.as_str() {
                UNLISTED_KEY => "any other key".to_owned(),
                key => match key.strip_suffix(UNLISTED_VALUE) {
                    Some(prefix) => format!("{prefix}* (any other name)"),
                    None => quote_unless_plain(key),
                },
            };
            fields.push(format!("key: {text}"));
        }
        match sample.value.as_deref() {
            None => fields.push("operator: Exists".to_owned()),
            Some(UNLISTED_VALUE) => fields.push("value: any other value".to_owned()),
            Some(value) => fields.push(format!("value: {}", quote_unless_plain(value))),
        }
        if sample.effects != EffectSet::KNOWN {
            fields.extend(sample.effects.names().map(|effect| format!("effect: {effect}")));
        }
        fields.extend(sample.seconds.map(|seconds| format!("tolerationSeconds: {seconds}")));
        format!("toleration {{{}}}", fields.join(", "))
    }

    /// Removes tolerations that another one includes, and those of all keys if only some keys differ.
    fn most_informative(mut samples: Vec<SampleToleration>) -> Vec<SampleToleration> {
        if !samples.iter().any(|sample| sample.key.as_deref() == Some(UNLISTED_KEY)) {
            let (keyed, all): (Vec<_>, Vec<_>) = samples.into_iter().partition(|sample| sample.key.is_some());
            samples = if keyed.is_empty() { all } else { keyed };
        }
        let is_within = |one: &SampleToleration, other: &SampleToleration| {
            other.tolerated_taints().contains(&one.tolerated_taints()) && one != other
        };
        samples.iter().filter(|one| !samples.iter().any(|other| is_within(one, other))).cloned().collect()
    }
}

impl<'s> TolerationEntryGroup<'s> {
    /// Returns the policies that do not allow to tolerate these taints.
    fn refusing_policies(&self, taints: &ToleratedTaints<'_>) -> impl Iterator<Item = &'s Policy> {
        let restricting = self.restricting.filter(|_| !self.uncovered_effects(taints).is_empty());
        let requiring = self.requires_key.filter(|_| taints.key.is_none());
        let denying = self.denied.iter().filter(|(_, grant)| grant.entry.intersects(taints));
        let policies = restricting.into_iter().chain(requiring);
        policies.chain(denying.map(|(policy, _)| *policy).collect::<Vec<_>>())
    }
}

/// The tolerations that policies add to new claims, to be compared with those of the other set.
pub(in crate::policy) struct DefaultTolerationsToCompare<'s>(Vec<&'s WrittenToleration>);

impl<'s> ComparedAspect<'s> for DefaultTolerationsToCompare<'s> {
    type Sample = &'s WrittenToleration;

    fn of(
        policies: &[MatchedPolicy<'s>],
        circumstances: &SampleContext<'_>,
    ) -> DefaultTolerationsToCompare<'s> {
        let adding = policies_of_kind(policies, PolicySpec::toleration).filter(|(matched, _)| {
            circumstances.operation == Operation::Create && matched.binds && matched.policy.adds_tolerations()
        });
        DefaultTolerationsToCompare(adding.flat_map(|(_, policy)| &policy.defaults).collect())
    }

    fn samples(&self, _: &SampleContext<'_>) -> Vec<&'s WrittenToleration> {
        self.0.clone()
    }

    /// Returns `Deny` for a default toleration that is not added, because not adding it has the same effect as not
    /// allowing it.
    fn level(&self, sample: &&'s WrittenToleration, _: &SampleContext<'_>) -> Option<FindingLevel> {
        let wanted = sample.tolerated_taints_with_duration(false);
        let is_added =
            self.0.iter().any(|added| added.tolerated_taints_with_duration(false).contains(&wanted));
        (!is_added).then_some(FindingLevel::Deny)
    }

    fn describe(sample: &&'s WrittenToleration) -> String {
        format!("default toleration {sample}")
    }

    fn result_word(level: Option<FindingLevel>) -> &'static str {
        if level.is_none() { "added to new claims" } else { "not added" }
    }
}
