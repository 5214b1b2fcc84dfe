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
use crate::policy::ViolationReport;
use crate::policy::glob::Globs;
use crate::rules::FindingLevel;
use crate::rules::ratchet::{ReachChange, taint_reach_change};
use crate::rules::table::POLICY_TAINT_RULE;
use tollgate_api::conform::suggest::join_with_and;
use tollgate_api::view;
use tollgate_document::doc::Value;
use tollgate_document::field::Path;

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

/// One value each for devices, pods and namespaces, which `maxImpact` limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct DevicesPodsAndNamespaces<T> {
    devices: T,
    pub(super) pods: T,
    namespaces: T,
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

    /// Reports a rule that affects more devices, pods or namespaces than `maxImpact` allows. An update is reported only
    /// if it affects more than the stored rule.
    pub(super) fn check_impact(&self, check: &RuleCheckContext<'_>, report: &mut ViolationReport<'_>) {
        let RuleCheckContext { admission, context, selection, cache, .. } = check;
        let evicts = selection.taint.effect() == "NoExecute";
        let limits_pods = self.max.pods.is_some() || self.max.namespaces.is_some();
        if !(evicts && limits_pods || selection.affects_pods() && self.max.devices.is_some()) {
            return;
        }
        let view::ObjectBody::Rule(rule) = admission.object.body else { return };
        let policy = check.policy.describe();
        let numbers = |state| cache.new.get_or_init(|| rule_impact(rule, state, admission, context)).as_ref();
        let Some((state, numbers)) = context.cluster.and_then(|state| Some((state, numbers(state)?))) else {
            return self.report_unavailable_cluster_state(check, report);
        };
        let stored = check.stored_rule().filter(|_| taint_reach_change(admission) != ReachChange::Wider);
        let before = stored.and_then(|old| {
            let before = cache.old.get_or_init(|| rule_impact(old, state, admission, context));
            before.as_ref().map(|rule_impact| rule_impact.numbers)
        });
        let before = before.unwrap_or(DevicesPodsAndNamespaces { devices: 0, pods: 0, namespaces: 0 });
        let newly_exceeded = self.describe_newly_exceeded_limits(numbers.numbers, before);
        if newly_exceeded.is_empty() {
            if state.unreadable_objects > 0 {
                let detail = format!(
                    "cannot check this rule against {policy}: the numbers may be too low{}",
                    state.caveat()
                );
                let short = "cannot check this rule: objects of the cluster are unreadable";
                self.report_unknown_impact(check, report, detail, short);
            }
            return;
        }
        let what = &numbers.description;
        if numbers.is_upper_bound {
            let detail = format!(
                "the rule {what}, but {policy} allows {newly_exceeded}; deviceClassName and selectors are not evaluated, \
                 so the exact numbers are not known"
            );
            let short = "cannot check this rule: deviceClassName and selectors are not evaluated";
            return self.report_unknown_impact(check, report, detail, short);
        }
        let Err(hint) = self.check_annotation_acknowledges_pods(check, Some(numbers.numbers.pods)) else {
            return;
        };
        let caveat = state.caveat();
        report
            .report(check.policy, POLICY_TAINT_RULE, &Path::ROOT.field("spec"))
            .forbidden(format_args!("the rule {what}, but {policy} allows {newly_exceeded}{hint}{caveat}"))
            .with_warning_texts(
                check.policy,
                format_args!("the rule exceeds the limit of {newly_exceeded}"),
                None,
            );
    }

    /// Reports that the impact is not known, because the cluster state is not available.
    pub(super) fn report_unavailable_cluster_state(
        &self,
        check: &RuleCheckContext<'_>,
        report: &mut ViolationReport<'_>,
    ) {
        let (what, why) = ("cannot check this rule", "the cluster state is not available");
        let detail = format!("{what} against {}: {why}", check.policy.describe());
        self.report_unknown_impact(check, report, detail, &format!("{what}: {why}"));
    }

    /// Reports that the impact is not known, at the level of `onUnknown`; nothing if that is `Allow`.
    pub(super) fn report_unknown_impact(
        &self,
        check: &RuleCheckContext<'_>,
        report: &mut ViolationReport<'_>,
        detail: String,
        short: &str,
    ) {
        let Some(level) = self.on_unknown else { return };
        report
            .report(check.policy, POLICY_TAINT_RULE, &Path::ROOT.field("spec"))
            .lower_level_to(level)
            .forbidden(detail)
            .with_warning_texts(check.policy, short, None);
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
            Some(format!("{limit} {what}{}", if limit == 1 { "" } else { "s" }))
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
        let Some(AcknowledgementAnnotation { annotation, groups }) = &self.acknowledge else {
            return Err(String::new());
        };
        let may = groups.as_ref().is_none_or(|groups| {
            let mut own = check.admission.user.get("groups").items();
            own.any(|group| groups.match_any(group.str()))
        });
        let given = check.admission.object.metadata().annotations().get(annotation);
        // Who stored it is not known, and whoever did was judged then. Pods come and go, so the number may have
        // changed.
        if check.context.is_stored {
            return if given.exists() { Ok(()) } else { Err(String::new()) };
        }
        if !may {
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
    let (affects_pods, evicts) = match rule.spec().taint().effect() {
        "NoExecute" => (true, true),
        "NoSchedule" => (true, false),
        _ => (false, false),
    };
    let numbers = DevicesPodsAndNamespaces {
        devices: if affects_pods { query.device_count_tainted_for_scheduler(counts) } else { 0 },
        pods: if evicts { counts.pods } else { 0 },
        namespaces: if evicts { counts.namespaces } else { 0 },
    };
    Some(RuleImpact { numbers, description: query.summary(counts), is_upper_bound: query.is_upper_bound() })
}
