//! TaintPolicies of two sets compared: representative taints, and what policies say about them.

use std::collections::BTreeSet;

use super::{
    DataRequirement, EntryWithResolvedDriver, RestrictingTaintPolicy, TaintEntryGroup, TaintPolicy,
    quote_unless_plain, replace_driver_placeholder,
};
use crate::policy::diff::{CanonicalSchemas, ComparedAspect, SampleContext, sample_drivers, sample_keys};
use crate::policy::kind::{PolicySpec, policies_of_kind};
use crate::policy::{MatchedPolicy, Policy, glob};
use crate::rules::FindingLevel;
use tollgate_api::profile::ApiKind;
use tollgate_formats::gotime::Timestamp;

/// Sample value that no entry names.
const UNLISTED_VALUE: &str = "any-other";

/// A sample taint that represents all taints of a driver that the policies treat equally.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::policy) struct SampleTaint {
    driver: String,
    about: TaintCase,
}

/// What a sample taint tests: its key, value and effect, its eviction rate, or its data.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum TaintCase {
    Published {
        key: String,
        value: String,
        effect: &'static str,
    },
    Rate(i64),
    NoData {
        key: String,
    },
    /// Data that violates this schema.
    Data {
        key: String,
        schema: String,
    },
}

/// What the TaintPolicies that match say about taints, to be compared with those of the other set.
pub(in crate::policy) struct TaintPoliciesToCompare<'s> {
    policies: Vec<MatchedPolicy<'s>>,
    schemas: CanonicalSchemas<'s>,
}

impl<'s> ComparedAspect<'s> for TaintPoliciesToCompare<'s> {
    type Sample = SampleTaint;

    fn of(policies: &[MatchedPolicy<'s>], _: &SampleContext<'_>) -> TaintPoliciesToCompare<'s> {
        let schemas = CanonicalSchemas::from_policies(policies);
        TaintPoliciesToCompare { policies: policies.to_vec(), schemas }
    }

    fn samples(&self, circumstances: &SampleContext<'_>) -> Vec<SampleTaint> {
        let ours: Vec<(MatchedPolicy<'s>, &TaintPolicy)> =
            policies_of_kind(&self.policies, PolicySpec::taint).collect();
        let mut samples = BTreeSet::new();
        if ours.is_empty() {
            return Vec::new();
        }
        for driver in sample_drivers(ours.iter().map(|(matched, _)| matched.policy), circumstances) {
            // A slice always has a driver.
            if driver.is_empty() && circumstances.kind == ApiKind::ResourceSlice {
                continue;
            }
            let mut patterns: Vec<String> = Vec::new();
            for (_, spec) in &ours {
                let keys = spec
                    .allow_and_deny_entries()
                    .map(|entry| &entry.key)
                    .chain(spec.data.iter().map(|data| &data.key));
                for key in keys {
                    patterns.push(replace_driver_placeholder(key, &driver).into_owned());
                    patterns
                        .extend(driver.is_empty().then(|| replace_driver_placeholder(key, "*").into_owned()));
                }
            }
            let rates = ours.iter().filter_map(|(_, spec)| spec.max_evictions);
            let mut add = |about| samples.insert(SampleTaint { driver: driver.clone(), about });
            rates.for_each(|rate| _ = add(TaintCase::Rate(rate.saturating_add(1))));
            for key in sample_keys(&patterns, circumstances) {
                let values = ours.iter().flat_map(|(_, spec)| spec.allow_and_deny_entries());
                let values = values.flat_map(|entry| entry.terms.values.iter().flatten());
                let values: BTreeSet<&str> = values.map(AsRef::as_ref).chain([UNLISTED_VALUE]).collect();
                for value in values {
                    for effect in ["None", "NoSchedule", "NoExecute"] {
                        add(TaintCase::Published { key: key.clone(), value: value.to_owned(), effect });
                    }
                }
                add(TaintCase::NoData { key: key.clone() });
                for schema in self.schemas.all() {
                    add(TaintCase::Data { key: key.clone(), schema: schema.to_owned() });
                }
            }
        }
        samples.into_iter().collect()
    }

    fn level(&self, sample: &SampleTaint, circumstances: &SampleContext<'_>) -> Option<FindingLevel> {
        let now = Some(circumstances.now);
        let group = |level| TaintEntryGroup::from_policies(&self.policies, level, &sample.driver, now);
        let groups = FindingLevel::ALL.into_iter().filter_map(group);
        groups.filter_map(|group| group.highest_report_level(&sample.about, &self.schemas, now)).max()
    }

    fn describe(sample: &SampleTaint) -> String {
        let driver = if sample.driver.is_empty() {
            " of a rule without a driver".to_owned()
        } else {
            format!(" of driver {}", sample.driver)
        };
        match &sample.about {
            TaintCase::Published { key, value, effect } => {
                let value = if value == UNLISTED_VALUE {
                    "any other value".to_owned()
                } else {
                    quote_unless_plain(value)
                };
                format!(
                    "taint {{key: {}, value: {value}, effect: {effect}}}{driver}",
                    quote_unless_plain(key)
                )
            }
            TaintCase::Rate(rate) => format!("taint with evictionsPerSecond: {rate}{driver}"),
            TaintCase::NoData { key } => format!("taint with key {key} and without data{driver}"),
            TaintCase::Data { key, .. } => {
                format!("taint with key {key} and data that violates a schema{driver}")
            }
        }
    }

    fn subject_if_incomparable(sample: &SampleTaint) -> Option<String> {
        match &sample.about {
            TaintCase::Data { key, .. } => Some(format!("{} {key}", sample.driver)),
            _ => None,
        }
    }

    /// Selects one taint for each key, with the most general value.
    fn most_informative(samples: Vec<SampleTaint>) -> Vec<SampleTaint> {
        let is_other = |sample: &SampleTaint| matches!(&sample.about, TaintCase::Published { value, .. } if value == UNLISTED_VALUE);
        let has_other = samples.iter().any(is_other);
        let mut seen = BTreeSet::new();
        let mut kept = samples;
        kept.retain(|sample| match &sample.about {
            TaintCase::Published { value, .. } if has_other && value != UNLISTED_VALUE => false,
            TaintCase::Published { key, value, effect } => {
                // For one driver, as an example.
                seen.insert((key.clone(), value.clone(), *effect))
            }
            _ => true,
        });
        kept
    }
}

impl TaintEntryGroup<'_> {
    /// Returns the highest level at which a policy reports this part of a taint; `None` if all allow it.
    fn highest_report_level(
        &self,
        part: &TaintCase,
        schemas: &CanonicalSchemas<'_>,
        now: Option<Timestamp>,
    ) -> Option<FindingLevel> {
        let highest =
            |policies: &mut dyn Iterator<Item = &Policy>| policies.map(|policy| policy.level_at(now)).max();
        match part {
            TaintCase::Published { key, value, effect } => {
                let matches = |grant: &EntryWithResolvedDriver<'_>| {
                    grant.entry.terms.covers_value_and_effect(value, effect) && glob::matches(&grant.key, key)
                };
                let denying = self.denied.iter().filter(|grant| matches(grant)).map(|grant| grant.policy);
                let restricting = self.restricting.filter(|_| !self.allowed.iter().any(matches));
                highest(&mut denying.chain(restricting))
            }
            TaintCase::Rate(rate) => {
                let exceeds = |binding: &&RestrictingTaintPolicy<'_>| {
                    binding.spec.max_evictions.is_some_and(|most| *rate > most)
                };
                highest(&mut self.binding.iter().filter(exceeds).map(|binding| binding.policy))
            }
            TaintCase::NoData { key } => {
                let requiring = self.requirements_for_key(key).filter(|(_, _, data)| data.required);
                highest(&mut requiring.map(|(policy, ..)| policy))
            }
            TaintCase::Data { key, schema } => {
                let all = self.requirements_for_key(key);
                let same = all.filter(|(policy, index, _)| schemas.get(policy, *index) == Some(schema));
                highest(&mut same.map(|(policy, ..)| policy))
            }
        }
    }

    /// Returns the requirements for the data of taints with this key: the policy, the index of the entry, and
    /// the entry.
    fn requirements_for_key(&self, key: &str) -> impl Iterator<Item = (&Policy, usize, &DataRequirement)> {
        self.binding.iter().flat_map(move |binding| {
            let keyed = binding.spec.data.iter().zip(&binding.data_keys).enumerate();
            let matching = keyed.filter(move |(_, (_, pattern))| glob::matches(pattern, key));
            matching.map(|(index, (data, _))| (binding.policy, index, data))
        })
    }
}
