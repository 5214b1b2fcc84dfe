//! TaintRulePolicies of two sets compared: representative rules, and what policies say about them.

use std::collections::BTreeSet;

use super::TaintRulePolicy;
use super::limits::{ImpactLimits, SampleImpact};
use crate::policy::diff::{ComparedAspect, SampleContext, sample_drivers};
use crate::policy::kind::{PolicySpec, policies_of_kind_not_exempting_user};
use crate::policy::{MatchedPolicy, Policy};
use crate::rule_annotations;
use crate::rules::FindingLevel;

/// A sample DeviceTaintRule that represents all rules that the policies treat equally.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::policy) struct SampleRule {
    /// The driver of its selector; empty if there is none.
    driver: String,
    about: RuleCase,
}

/// What a sample rule tests: its selector, how it is created, its impact or its annotations.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum RuleCase {
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

/// What the TaintRulePolicies that bind the user require of rules, to be compared with those of the other set.
pub(in crate::policy) struct TaintRulePoliciesToCompare<'s>(Vec<(&'s Policy, &'s TaintRulePolicy)>);

impl TaintRulePolicy {
    /// Returns the globs for groups that may exceed the limits of the policy by acknowledging the impact; `None` if
    /// nobody or everybody may.
    pub(in crate::policy) fn acknowledging_group_globs(&self) -> Option<Vec<&str>> {
        self.limits.as_ref().and_then(ImpactLimits::acknowledging_group_globs)
    }
}

impl<'s> ComparedAspect<'s> for TaintRulePoliciesToCompare<'s> {
    type Sample = SampleRule;

    fn of(policies: &[MatchedPolicy<'s>], _: &SampleContext<'_>) -> TaintRulePoliciesToCompare<'s> {
        TaintRulePoliciesToCompare(policies_of_kind_not_exempting_user(policies, PolicySpec::taint_rule))
    }

    fn samples(&self, circumstances: &SampleContext<'_>) -> Vec<SampleRule> {
        let ours = &self.0;
        let mut samples = BTreeSet::new();
        if ours.is_empty() {
            return Vec::new();
        }
        let impacts = SampleImpact::around_limits(ours.iter().filter_map(|(_, spec)| spec.limits.as_ref()));
        for driver in sample_drivers(ours.iter().map(|(policy, _)| *policy), circumstances) {
            let mut add = |about| samples.insert(SampleRule { driver: driver.clone(), about });
            for bits in 0..8_u8 {
                let [pool, device, other] = [1, 2, 4].map(|bit| bits & bit != 0);
                add(RuleCase::Selector { pool, device, other });
            }
            add(RuleCase::OneStep);
            for name in rule_annotations::ALL {
                add(RuleCase::Unannotated(name));
            }
            let ages = ours.iter().filter_map(|(_, spec)| spec.annotations.as_ref()?.max_age_seconds);
            ages.for_each(|age| _ = add(RuleCase::Age(age.saturating_add(1))));
            for impact in &impacts {
                add(RuleCase::Impact(impact.clone()));
            }
        }
        samples.into_iter().collect()
    }

    fn level(&self, sample: &SampleRule, circumstances: &SampleContext<'_>) -> Option<FindingLevel> {
        let of_driver =
            self.0.iter().filter(|(policy, _)| policy.scope.matches_named_or_unknown_driver(&sample.driver));
        let levels = of_driver.filter_map(|(policy, spec)| {
            let action = policy.level_at(Some(circumstances.now));
            match &sample.about {
                RuleCase::Selector { pool, device, other } => {
                    let has = |name: &str| match name {
                        "driver" => !sample.driver.is_empty(),
                        "pool" => *pool,
                        "device" => *device,
                        _ => *other,
                    };
                    spec.missing_criteria(has, false).next().map(|_| action)
                }
                RuleCase::OneStep => spec.two_steps.then_some(action),
                RuleCase::Unannotated(name) => {
                    spec.annotations.as_ref().is_some_and(|all| all.required.contains(name)).then_some(action)
                }
                RuleCase::Age(age) => {
                    let most = spec.annotations.as_ref().and_then(|all| all.max_age_seconds);
                    most.is_some_and(|most| *age > most).then_some(action)
                }
                RuleCase::Impact(impact) => {
                    spec.limits.as_ref()?.level_for(impact, circumstances.user, action)
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
            RuleCase::Selector { pool, device, other } => {
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
            RuleCase::OneStep => format!("rule that does not start with effect None{driver}"),
            RuleCase::Impact(impact) => format!("rule {impact}{driver}"),
            RuleCase::Unannotated(name) => format!("rule without annotation {name}{driver}"),
            RuleCase::Age(age) => format!("rule that expires {age}s after it was created{driver}"),
        }
    }

    fn subject_if_incomparable(sample: &SampleRule) -> Option<String> {
        let is_tainted = matches!(&sample.about, RuleCase::Impact(impact) if impact.is_about_max_tainted());
        is_tainted.then(|| sample.driver.clone())
    }

    /// Keeps, of each part, the rule with the fewest criteria or the smallest impact.
    fn most_informative(samples: Vec<SampleRule>) -> Vec<SampleRule> {
        let criteria = |sample: &SampleRule| match &sample.about {
            RuleCase::Selector { pool, device, other } => {
                [!sample.driver.is_empty(), *pool, *device, *other].map(usize::from).iter().sum()
            }
            RuleCase::OneStep | RuleCase::Unannotated(_) | RuleCase::Age(_) => {
                usize::from(!sample.driver.is_empty())
            }
            RuleCase::Impact(impact) => {
                impact.impact_size().saturating_add(usize::from(!sample.driver.is_empty()))
            }
        };
        let part = |sample: &SampleRule| match &sample.about {
            RuleCase::Selector { .. } => 0,
            RuleCase::OneStep => 1,
            RuleCase::Impact(impact) => 2 + usize::from(impact.is_about_max_tainted()),
            RuleCase::Unannotated(_) => 4,
            RuleCase::Age(_) => 5,
        };
        let mut kept: Vec<SampleRule> = Vec::new();
        for which in 0..6 {
            let ours = samples.iter().filter(|sample| part(sample) == which);
            kept.extend(ours.min_by_key(|sample| criteria(sample)).cloned());
        }
        kept
    }
}
