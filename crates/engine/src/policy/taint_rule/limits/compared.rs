//! Limits on the impact of rules compared: representative impacts, and what limits say about them.

use std::collections::BTreeSet;

use super::{AcknowledgementAnnotation, DevicesPodsAndNamespaces, ImpactLimits, TaintedLimit};
use crate::rules::FindingLevel;
use tollgate_document::doc::Value;

/// A sample impact that represents all impacts that the policies treat equally.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::policy::taint_rule) struct SampleImpact {
    numbers: ImpactNumbers,
    /// The annotation that acknowledges the number of pods.
    acknowledged: Option<String>,
}

/// What a sample rule affects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum ImpactNumbers {
    /// The cluster is not known.
    Unknown,
    Known(DevicesPodsAndNamespaces<usize>),
    /// All rules together taint this number of devices, or this percentage of a driver's devices.
    Tainted(TaintedLimit),
}

impl SampleImpact {
    /// Returns impacts just above each limit, and impacts of zero and of any number.
    pub(in crate::policy::taint_rule) fn around_limits<'l>(
        limits: impl Iterator<Item = &'l ImpactLimits>,
    ) -> Vec<SampleImpact> {
        let limits: Vec<&ImpactLimits> = limits.collect();
        if limits.is_empty() {
            return Vec::new();
        }
        let around =
            |limit: fn(&DevicesPodsAndNamespaces<Option<usize>>) -> Option<usize>| -> BTreeSet<usize> {
                let given = limits.iter().filter_map(|limits| limit(&limits.max));
                given.map(|limit| limit.saturating_add(1)).chain([0, usize::MAX]).collect()
            };
        let annotations = limits.iter().filter_map(|limits| limits.acknowledge.as_ref());
        let annotations: BTreeSet<Option<String>> =
            annotations.map(|acknowledge| Some(acknowledge.annotation.to_string())).chain([None]).collect();
        let mut all = vec![SampleImpact { numbers: ImpactNumbers::Unknown, acknowledged: None }];
        let [devices, pods, namespaces] =
            [around(|max| max.devices), around(|max| max.pods), around(|max| max.namespaces)];
        // One number at a time: each limit is exceeded or not by itself.
        for acknowledged in annotations {
            let sample = |numbers| SampleImpact { numbers, acknowledged: acknowledged.clone() };
            let known = |devices, pods, namespaces| {
                sample(ImpactNumbers::Known(DevicesPodsAndNamespaces { devices, pods, namespaces }))
            };
            all.extend(devices.iter().map(|number| known(*number, 0, 0)));
            all.extend(pods.iter().map(|number| known(0, *number, 0)));
            all.extend(namespaces.iter().map(|number| known(0, 0, *number)));
            let beyond = limits.iter().filter_map(|limits| limits.max_tainted).map(|limit| match limit {
                TaintedLimit::Number(number) => TaintedLimit::Number(number.saturating_add(1)),
                TaintedLimit::Percent(percent) => TaintedLimit::Percent(percent.saturating_add(1)),
            });
            all.extend(beyond.map(|limit| sample(ImpactNumbers::Tainted(limit))));
        }
        all
    }

    /// True if the sample is about `maxTainted`, where a number and a percentage cannot be compared.
    pub(in crate::policy::taint_rule) fn is_about_max_tainted(&self) -> bool {
        matches!(self.numbers, ImpactNumbers::Tainted(_))
    }

    /// Returns how large the sample impact is, to find the smallest one.
    pub(in crate::policy::taint_rule) fn impact_size(&self) -> usize {
        let parts = match self.numbers {
            ImpactNumbers::Unknown => [0; 3],
            ImpactNumbers::Tainted(_) => [1, 0, 0],
            ImpactNumbers::Known(numbers) => [numbers.devices, numbers.pods, numbers.namespaces],
        };
        parts.into_iter().fold(usize::from(self.acknowledged.is_some()), usize::saturating_add)
    }
}

/// Writes the impact as a phrase about a rule.
impl std::fmt::Display for SampleImpact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.numbers {
            ImpactNumbers::Unknown => f.write_str("whose impact is not known")?,
            ImpactNumbers::Tainted(TaintedLimit::Number(number)) => {
                write!(f, "with which all rules taint {number} devices")?;
            }
            ImpactNumbers::Tainted(TaintedLimit::Percent(percent)) => {
                write!(f, "with which all rules taint {percent}% of the devices of a driver")?;
            }
            ImpactNumbers::Known(DevicesPodsAndNamespaces { devices, pods, namespaces }) => {
                let (verb, number, what) = match (devices, pods) {
                    (0, 0) => ("that evicts pods in", namespaces, "namespaces"),
                    (0, pods) => ("that evicts", pods, "pods"),
                    (devices, _) => ("that affects", devices, "devices"),
                };
                match number {
                    usize::MAX => write!(f, "{verb} any number of {what}")?,
                    number => write!(f, "{verb} {number} {what}")?,
                }
            }
        }
        self.acknowledged.iter().try_for_each(|name| write!(f, " and is acknowledged with {name}"))
    }
}

impl ImpactLimits {
    /// Returns the globs for groups that may exceed the limits by acknowledging the impact; `None` if nobody or
    /// everybody may.
    pub(in crate::policy::taint_rule) fn acknowledging_group_globs(&self) -> Option<Vec<&str>> {
        let groups = self.acknowledge.as_ref()?.groups.as_ref()?;
        Some(groups.patterns().collect())
    }

    /// Returns the level at which a rule with this impact is reported for a user; `None` if it is allowed.
    pub(in crate::policy::taint_rule) fn level_for(
        &self,
        impact: &SampleImpact,
        user: Value<'_>,
        action: FindingLevel,
    ) -> Option<FindingLevel> {
        let limits = [self.max.devices, self.max.pods, self.max.namespaces];
        let is_limited = limits.iter().any(Option::is_some) || self.max_tainted.is_some();
        let is_exceeded = match (impact.numbers, self.max_tainted) {
            (ImpactNumbers::Unknown, _) => {
                return self.on_unknown.filter(|_| is_limited).map(|level| level.min(action));
            }
            (ImpactNumbers::Known(numbers), _) => {
                !self.describe_newly_exceeded_limits(numbers, DevicesPodsAndNamespaces::default()).is_empty()
            }
            (ImpactNumbers::Tainted(TaintedLimit::Number(number)), Some(TaintedLimit::Number(most))) => {
                number > most
            }
            (ImpactNumbers::Tainted(TaintedLimit::Percent(percent)), Some(TaintedLimit::Percent(most))) => {
                percent > most
            }
            (ImpactNumbers::Tainted(_), _) => false,
        };
        let may = |acknowledge: &AcknowledgementAnnotation| {
            impact.acknowledged.as_deref() == Some(&*acknowledge.annotation) && acknowledge.allows_user(user)
        };
        (is_exceeded && !self.acknowledge.as_ref().is_some_and(may)).then_some(action)
    }
}
