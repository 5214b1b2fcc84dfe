//! TaintRulePolicies of two sets compared: representative rules, and what policies say about them.

use std::collections::BTreeSet;

use super::TaintRulePolicy;
use super::annotations::AnnotationPolicy;
use super::limits::{Limits, SampleImpact};
use crate::policy::diff::{Aspect, Circumstances, level_at, sample_drivers};
use crate::policy::kind::PolicySpec;
use crate::policy::{MatchedPolicy, Policy};
use crate::rule_annotations;
use crate::rules::Level;
use tollgate_formats::gotime::Timestamp;

/// A sample DeviceTaintRule that represents all rules that the policies treat equally.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::policy) struct SampleRule {
    /// The driver of its selector; empty if there is none.
    driver: String,
    about: RulePart,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum RulePart {
    /// The rule has this selector.
    Selector {
        pool: bool,
        device: bool,
        other: bool,
    },
    /// The rule is not created with effect None first.
    OneStep,
    Impact(SampleImpact),
    /// The rule lacks this annotation.
    Unannotated(&'static str),
    /// The rule expires this number of seconds after its creation.
    Age(i64),
}

/// The requirements of TaintRulePolicies that are compared.
pub(in crate::policy) struct RuleGuards<'s> {
    policies: Vec<(&'s Policy, &'s TaintRulePolicy)>,
    user: String,
    now: Timestamp,
}

fn binding<'s>(policies: &[MatchedPolicy<'s>]) -> Vec<(&'s Policy, &'s TaintRulePolicy)> {
    let binding = policies.iter().filter(|matched| matched.binds);
    let ours = binding.filter_map(|matched| match &matched.policy.spec {
        PolicySpec::TaintRule(spec) => Some((matched.policy, spec)),
        _ => None,
    });
    ours.collect()
}

impl TaintRulePolicy {
    /// True if the policy refuses a rule with that driver and these criteria.
    fn requires_more(&self, driver: &str, pool: bool, device: bool, other: bool) -> bool {
        let has_driver = !driver.is_empty();
        self.require.iter().any(|name| match &**name {
            "driver" => !has_driver,
            "pool" => !pool,
            "device" => !device,
            _ => !(has_driver || pool || device || other),
        })
    }

    /// The groups that may acknowledge the limits of the policy; `None` if nobody or everybody may.
    pub(in crate::policy) fn acknowledging_groups(&self) -> Option<Vec<&str>> {
        self.limits.as_ref().and_then(Limits::acknowledging_groups)
    }
}

impl<'s> Aspect<'s> for RuleGuards<'s> {
    type Sample = SampleRule;

    fn samples(policies: &[MatchedPolicy<'s>], circumstances: &Circumstances<'_>) -> Vec<SampleRule> {
        let ours = binding(policies);
        let mut samples = BTreeSet::new();
        if ours.is_empty() {
            return Vec::new();
        }
        let impacts = SampleImpact::all(ours.iter().filter_map(|(_, spec)| spec.limits.as_ref()));
        for driver in sample_drivers(ours.iter().map(|(policy, _)| *policy), circumstances) {
            let mut add = |about| samples.insert(SampleRule { driver: driver.clone(), about });
            for bits in 0..8_u8 {
                let [pool, device, other] = [1, 2, 4].map(|bit| bits & bit != 0);
                add(RulePart::Selector { pool, device, other });
            }
            add(RulePart::OneStep);
            for name in rule_annotations::ALL {
                add(RulePart::Unannotated(name));
            }
            let ages = ours.iter().filter_map(|(_, spec)| spec.annotations.as_ref()?.max_age_seconds());
            ages.for_each(|age| _ = add(RulePart::Age(age.saturating_add(1))));
            for impact in &impacts {
                add(RulePart::Impact(impact.clone()));
            }
        }
        samples.into_iter().collect()
    }

    fn of(policies: &[MatchedPolicy<'s>], circumstances: &Circumstances<'_>) -> RuleGuards<'s> {
        RuleGuards { policies: binding(policies), user: circumstances.user.to_json(), now: circumstances.now }
    }

    fn level(&self, sample: &SampleRule) -> Option<Level> {
        let of_driver =
            self.policies.iter().filter(|(policy, _)| policy.scope.matches_driver(&sample.driver));
        let levels = of_driver.filter_map(|(policy, spec)| {
            let action = level_at(policy, self.now);
            match &sample.about {
                RulePart::Selector { pool, device, other } => {
                    spec.requires_more(&sample.driver, *pool, *device, *other).then_some(action)
                }
                RulePart::OneStep => spec.two_steps.then_some(action),
                RulePart::Unannotated(name) => {
                    spec.annotations.as_ref().is_some_and(|all| all.requires(name)).then_some(action)
                }
                RulePart::Age(age) => {
                    let most = spec.annotations.as_ref().and_then(AnnotationPolicy::max_age_seconds);
                    most.is_some_and(|most| *age > most).then_some(action)
                }
                RulePart::Impact(impact) => {
                    spec.limits.as_ref().and_then(|limits| limits.level_for(impact, &self.user, action))
                }
            }
        });
        levels.max()
    }

    fn describe(sample: &SampleRule) -> String {
        let driver = match sample.driver.as_str() {
            "" => String::new(),
            driver => format!(" for driver {driver}"),
        };
        match &sample.about {
            RulePart::Selector { pool, device, other } => {
                let all = [
                    (!sample.driver.is_empty(), "driver"),
                    (*pool, "pool"),
                    (*device, "device"),
                    (*other, "deviceClassName"),
                ];
                let set: Vec<&str> = all.into_iter().filter(|(set, _)| *set).map(|(_, name)| name).collect();
                match set.as_slice() {
                    [] => "rule without selector criteria".to_owned(),
                    set => format!("rule that selects devices only by {}", set.join(", ")),
                }
            }
            RulePart::OneStep => format!("rule that does not start with effect None{driver}"),
            RulePart::Impact(impact) => format!("rule {impact}{driver}"),
            RulePart::Unannotated(name) => format!("rule without annotation {name}{driver}"),
            RulePart::Age(age) => format!("rule that expires {age}s after it was created{driver}"),
        }
    }

    fn compared_text_subject(sample: &SampleRule) -> Option<String> {
        let is_tainted = matches!(&sample.about, RulePart::Impact(impact) if impact.is_tainted());
        is_tainted.then(|| sample.driver.clone())
    }

    /// The rule with the fewest criteria, and the smallest impact.
    fn most_informative(samples: Vec<SampleRule>) -> Vec<SampleRule> {
        let criteria = |sample: &SampleRule| match &sample.about {
            RulePart::Selector { pool, device, other } => {
                [!sample.driver.is_empty(), *pool, *device, *other].map(usize::from).iter().sum()
            }
            RulePart::OneStep | RulePart::Unannotated(_) | RulePart::Age(_) => {
                usize::from(!sample.driver.is_empty())
            }
            RulePart::Impact(impact) => impact.size().saturating_add(usize::from(!sample.driver.is_empty())),
        };
        let part = |sample: &SampleRule| match &sample.about {
            RulePart::Selector { .. } => 0,
            RulePart::OneStep => 1,
            RulePart::Impact(impact) => 2 + usize::from(impact.is_tainted()),
            RulePart::Unannotated(_) => 4,
            RulePart::Age(_) => 5,
        };
        let mut kept: Vec<SampleRule> = Vec::new();
        for which in 0..6 {
            let ours = samples.iter().filter(|sample| part(sample) == which);
            kept.extend(ours.min_by_key(|sample| criteria(sample)).cloned());
        }
        kept
    }
}
