//! `maxImpact`: how many devices, pods and namespaces a DeviceTaintRule may affect, and who may exceed that.
//!
//! The numbers are computed like the eviction controller does, from the state of the cluster. If that is not known,
//! or the rule selects by class or expression, `onUnknown` decides (default: Deny).
//!
//! Invariant: an update that affects nothing but what the stored rule affects is allowed, however much that is. An
//! update that could affect other devices or pods, or the same ones more or sooner, is checked like a new rule.

mod compared;

pub(super) use compared::SampleImpact;

use std::cell::OnceCell;

use super::RuleCheckContext;
use super::tainted::TaintedLimit;
use crate::admission::{Context, DecodedAttributes};
use crate::impact::{ClusterState, ImpactCounts, ImpactQuery, ProposedChange, impact_counts};
use crate::policy::glob::Globs;
use crate::rules::FindingLevel;
use crate::rules::ratchet::{ReachChange, taint_reach_change};
use tollgate_api::conform::suggest::join_with_and;
use tollgate_api::view;
use tollgate_document::doc::Value;
use tollgate_formats::count::count_with_noun;

/// The compiled `maxImpact`, `maxTainted`, `onUnknown` and `acknowledge` of a TaintRulePolicy.
#[derive(Debug)]
pub(super) struct ImpactLimits {
    /// Maximum numbers that a rule may affect; `None` for no limit.
    max: DevicesPodsAndNamespaces<Option<usize>>,
    /// Maximum number of devices that all rules together may taint; `None` for no limit.
    pub(super) max_tainted: Option<TaintedLimit>,
    /// The level if the impact is unknown; `None` allows it.
    on_unknown: Option<FindingLevel>,
    acknowledge: Option<AcknowledgementAnnotation>,
}

/// The annotation with which users can exceed the limits.
#[derive(Debug)]
struct AcknowledgementAnnotation {
    annotation: Box<str>,
    /// The groups whose users may set it; `None` for everyone.
    groups: Option<Globs>,
}

impl AcknowledgementAnnotation {
    /// True if the user with this `userInfo` may set the annotation.
    fn allows_user(&self, user: Value<'_>) -> bool {
        let in_groups =
            |groups: &Globs| user.get("groups").items().any(|group| groups.match_any(group.str()));
        self.groups.as_ref().is_none_or(in_groups)
    }
}

/// One value each for devices, pods and namespaces, which `maxImpact` limits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(super) struct DevicesPodsAndNamespaces<T> {
    devices: T,
    pub(super) pods: T,
    namespaces: T,
}

/// A rule that exceeds a limit, or that may exceed one.
pub(super) struct LimitViolation {
    /// The violation has at most this level.
    pub(super) level: FindingLevel,
    pub(super) detail: String,
    /// The text for a webhook warning.
    pub(super) short: String,
}

impl LimitViolation {
    /// The rule certainly exceeds the limit.
    pub(super) fn exceeded(detail: String, short: String) -> LimitViolation {
        LimitViolation { level: FindingLevel::Deny, detail, short }
    }
}

impl ImpactLimits {
    /// Compiles the fields of `spec`, whose types are already checked.
    pub(super) fn read(spec: Value<'_>) -> ImpactLimits {
        let number = |name: &str| {
            let given = spec.get("maxImpact").get(name).int();
            // The schema takes no negative numbers, and none is the strictest limit.
            given.map(|number| usize::try_from(number).unwrap_or_default())
        };
        let acknowledge = spec.get("acknowledge");
        ImpactLimits {
            max: DevicesPodsAndNamespaces {
                devices: number("devices"),
                pods: number("pods"),
                namespaces: number("namespaces"),
            },
            max_tainted: TaintedLimit::read(spec.get("maxTainted")),
            on_unknown: match spec.get("onUnknown").str() {
                "Allow" => None,
                "Warn" => Some(FindingLevel::Warn),
                _ => Some(FindingLevel::Deny),
            },
            acknowledge: acknowledge.exists().then(|| AcknowledgementAnnotation {
                annotation: acknowledge.get("annotation").str().into(),
                groups: Globs::from_list_if_present(acknowledge.get("groups")),
            }),
        }
    }

    /// Returns the violation of a rule that affects more devices, pods or namespaces than `maxImpact` allows. An update
    /// is one only if it affects more than the stored rule.
    pub(super) fn impact_violation(&self, check: &RuleCheckContext<'_>) -> Option<LimitViolation> {
        let RuleCheckContext { admission, context, selection, cache, .. } = check;
        let evicts = selection.taint.effect() == "NoExecute";
        let limits_pods = self.max.pods.is_some() || self.max.namespaces.is_some();
        if !(evicts && limits_pods || selection.affects_pods() && self.max.devices.is_some()) {
            return None;
        }
        let view::ObjectBody::Rule(rule) = admission.object.body else { return None };
        let numbers = |state| cache.new.get_or_init(|| rule_impact(rule, state, admission, context)).as_ref();
        let Some((state, numbers)) = context.cluster.and_then(|state| Some((state, numbers(state)?))) else {
            return self.unavailable_cluster_state(check);
        };
        let stored = check.stored_rule().filter(|_| taint_reach_change(admission) != ReachChange::Wider);
        let before = stored.and_then(|old| {
            let before = cache.old.get_or_init(|| rule_impact(old, state, admission, context));
            before.as_ref().map(|rule_impact| rule_impact.numbers)
        });
        let newly_exceeded = self.describe_newly_exceeded_limits(numbers.numbers, before.unwrap_or_default());
        if newly_exceeded.is_empty() {
            let why = (state.unreadable_objects > 0).then_some("objects of the cluster are unreadable")?;
            return self.numbers_too_low(check, state, why);
        }
        let found = format!(
            "the rule {}, but {} allows {newly_exceeded}",
            numbers.description,
            check.policy.describe()
        );
        if numbers.is_upper_bound {
            return self.upper_bound(&found);
        }
        let hint = self.check_annotation_acknowledges_pods(check, Some(numbers.numbers.pods)).err()?;
        let short = format!("the rule exceeds the limit of {newly_exceeded}");
        Some(LimitViolation::exceeded(format!("{found}{hint}{}", state.caveat()), short))
    }

    /// The impact is not known, because the cluster state is not available.
    pub(super) fn unavailable_cluster_state(&self, check: &RuleCheckContext<'_>) -> Option<LimitViolation> {
        let why = "the cluster state is not available";
        self.unknown_impact(format!("cannot check this rule against {}: {why}", check.policy.describe()), why)
    }

    /// The impact is not known, because the cluster state lacks objects; `why` says which.
    pub(super) fn numbers_too_low(
        &self,
        check: &RuleCheckContext<'_>,
        state: &ClusterState,
        why: &str,
    ) -> Option<LimitViolation> {
        let (policy, caveat) = (check.policy.describe(), state.caveat());
        let detail = format!("cannot check this rule against {policy}: the numbers may be too low{caveat}");
        self.unknown_impact(detail, why)
    }

    /// The impact is not known, because the numbers in `found` are only upper bounds.
    pub(super) fn upper_bound(&self, found: &str) -> Option<LimitViolation> {
        let why = "deviceClassName and selectors are not evaluated";
        self.unknown_impact(format!("{found}; {why}, so the exact numbers are not known"), why)
    }

    /// The impact is not known: a violation at the level of `onUnknown`; `None` if that is `Allow`.
    fn unknown_impact(&self, detail: String, why: &str) -> Option<LimitViolation> {
        let short = format!("cannot check this rule: {why}");
        self.on_unknown.map(|level| LimitViolation { level, detail, short })
    }

    /// Returns the limits that are exceeded further than before the update, `20 pods and 3 namespaces`; empty if there
    /// are none.
    fn describe_newly_exceeded_limits(
        &self,
        found: DevicesPodsAndNamespaces<usize>,
        before: DevicesPodsAndNamespaces<usize>,
    ) -> String {
        let all = [
            (found.devices, before.devices, self.max.devices, "device"),
            (found.pods, before.pods, self.max.pods, "pod"),
            (found.namespaces, before.namespaces, self.max.namespaces, "namespace"),
        ];
        let passed = all.into_iter().filter_map(|(found, before, limit, what)| {
            let limit = limit.filter(|limit| found > *limit && found > before)?;
            Some(count_with_noun(limit, what))
        });
        join_with_and(&passed.collect::<Vec<_>>())
    }

    /// Ok if the annotation of `acknowledge` states the number of evicted pods, and the user may set it. Otherwise a
    /// hint for the message, which may be empty. `pods` is `None` if the number is not known.
    pub(super) fn check_annotation_acknowledges_pods(
        &self,
        check: &RuleCheckContext<'_>,
        pods: Option<usize>,
    ) -> Result<(), String> {
        let Some(acknowledge) = &self.acknowledge else { return Err(String::new()) };
        let annotation = &acknowledge.annotation;
        let given = check.admission.object.metadata().annotations().get(annotation);
        // Who stored it is not known, and whoever did was judged then. Pods come and go, so the number may have
        // changed.
        if check.context.is_stored {
            return if given.exists() { Ok(()) } else { Err(String::new()) };
        }
        if !acknowledge.allows_user(check.admission.user) {
            let void = format!("; annotation {annotation} is ignored, because this user may not set it");
            return Err(if given.exists() { void } else { String::new() });
        }
        let Some(pods) = pods else { return Err(String::new()) };
        if given.str() == pods.to_string() {
            return Ok(());
        }
        Err(if given.exists() {
            format!("; annotation {annotation} is {:?}, but must be \"{pods}\"", given.str())
        } else {
            format!("; to acknowledge the impact, set the annotation `{annotation}: \"{pods}\"`")
        })
    }
}

/// The impact of the new and of the stored rule, each computed at most once for all policies.
#[derive(Debug, Default)]
pub(super) struct ImpactCache {
    pub(super) new: OnceCell<Option<RuleImpact>>,
    old: OnceCell<Option<RuleImpact>>,
}

/// How many devices, pods and namespaces a DeviceTaintRule affects.
#[derive(Debug)]
pub(super) struct RuleImpact {
    pub(super) numbers: DevicesPodsAndNamespaces<usize>,
    /// The numbers as a phrase.
    pub(super) description: String,
    /// True if the numbers are upper bounds.
    is_upper_bound: bool,
}

/// Computes the impact of a rule with its effect: None affects nothing, NoSchedule affects devices but no pods. `None`
/// if the current time is not known.
pub(super) fn rule_impact(
    rule: view::TaintRule<'_>,
    state: &ClusterState,
    admission: &DecodedAttributes<'_>,
    context: &Context<'_>,
) -> Option<RuleImpact> {
    let change = ProposedChange::from_decoded_rule(rule);
    let query = ImpactQuery {
        snapshot: &state.snapshot,
        change: &change,
        profile: context.profile,
        at: admission.now.time?,
    };
    let counts: ImpactCounts = impact_counts(query);
    let devices = || query.device_count_tainted_for_scheduler(counts);
    let numbers = match rule.spec().taint().effect() {
        "NoExecute" => {
            DevicesPodsAndNamespaces { devices: devices(), pods: counts.pods, namespaces: counts.namespaces }
        }
        "NoSchedule" => DevicesPodsAndNamespaces { devices: devices(), ..Default::default() },
        _ => DevicesPodsAndNamespaces::default(),
    };
    Some(RuleImpact { numbers, description: query.summary(counts), is_upper_bound: query.is_upper_bound() })
}
