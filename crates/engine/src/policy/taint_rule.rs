//! TaintRulePolicy: how much a DeviceTaintRule may affect.
//!
//! Required criteria of the selector, an effect that may only be raised after the controller has reported the impact,
//! limits on the impact of one rule ([`limits`]) and on the devices of all rules together ([`tainted`]), and required
//! annotations ([`annotations`]). Updates that only narrow, weaken or slow a rule are not checked.

mod annotations;
mod compared;
mod limits;
mod tainted;

pub(super) use compared::TaintRulePoliciesToCompare;

use super::kind::{PolicySpec, policies_of_kind_not_exempting_user};
use super::{MatchedPolicy, Policy, Violation, ViolationReport};
use crate::admission::{Context, DecodedAttributes, Operation};
use crate::impact::EVICTION_IN_PROGRESS;
use crate::rules::ratchet::has_same_key_and_value;
use crate::rules::table::POLICY_TAINT_RULE;
use crate::site::{DeviceSelection, TaintTolerationOrSelector, visit_taints_tolerations_and_selectors};
use annotations::AnnotationPolicy;
use limits::{ImpactCache, ImpactLimits, LimitViolation};
use tollgate_api::view::{self, TaintSelector};
use tollgate_document::doc::Value;
use tollgate_document::field::{Path, SegmentName};

/// The compiled `spec` of a TaintRulePolicy, without the fields that all kinds of policies share.
#[derive(Debug)]
pub(super) struct TaintRulePolicy {
    /// The criteria of `requireSelector`: `driver`, `pool`, `device` or `any`.
    required_criteria: Vec<Box<str>>,
    two_steps: bool,
    limits: Option<ImpactLimits>,
    annotations: Option<AnnotationPolicy>,
}

impl TaintRulePolicy {
    /// Compiles `spec`, whose types are already checked.
    pub(super) fn read(spec: Value<'_>) -> TaintRulePolicy {
        TaintRulePolicy {
            required_criteria: spec.get("requireSelector").items().map(|item| item.str().into()).collect(),
            two_steps: spec.get("twoSteps").bool().unwrap_or_default(),
            limits: ["maxImpact", "maxTainted"]
                .into_iter()
                .any(|name| spec.get(name).exists())
                .then(|| ImpactLimits::read(spec)),
            annotations: AnnotationPolicy::read(spec),
        }
    }

    /// True if the policy limits how many devices and pods a rule, or all rules together, may affect.
    pub(super) fn has_impact_limits(&self) -> bool {
        self.limits.is_some()
    }

    /// Reports required criteria that the selector does not set.
    fn report_missing_selector_criteria(
        &self,
        check: &RuleCheckContext<'_>,
        at: &Path<'_>,
        report: &mut ViolationReport<'_>,
    ) {
        let (policy, selector) = (check.policy, check.selection.selector);
        let has = |name: &str| {
            let value = selector.and_then(|selector| match name {
                "driver" => selector.driver(),
                "pool" => selector.pool(),
                "device" => selector.device(),
                _ => selector.device_class_name(),
            });
            value.is_some_and(|value| !value.is_empty())
        };
        let has_expressions = selector.is_some_and(|selector| !selector.selectors().is_empty());
        for name in self.missing_criteria(has, has_expressions) {
            if name == "any" {
                let short = "`driver`, `pool` or `device` is required";
                report.report_missing_requirement(policy, POLICY_TAINT_RULE, at, short);
            } else {
                let short = format!("`{name}` is required");
                report.report_missing_requirement(policy, POLICY_TAINT_RULE, &at.field(name), &short);
            }
        }
    }

    /// Returns the criteria of `requireSelector` that a selector lacks; `has` tells which fields it sets.
    fn missing_criteria(
        &self,
        has: impl Fn(&str) -> bool,
        has_expressions: bool,
    ) -> impl Iterator<Item = &str> {
        let is_missing = move |name: &&str| match *name {
            "any" => {
                !has_expressions && !["driver", "pool", "device", "deviceClassName"].into_iter().any(&has)
            }
            name => !has(name),
        };
        self.required_criteria.iter().map(|name| &**name).filter(is_missing)
    }
}

/// A DeviceTaintRule that is checked against a policy.
struct RuleCheckContext<'c> {
    policy: &'c Policy,
    admission: &'c DecodedAttributes<'c>,
    context: &'c Context<'c>,
    selection: &'c DeviceSelection<'c>,
    cache: &'c ImpactCache,
}

impl RuleCheckContext<'_> {
    /// Returns the stored rule that the request replaces.
    fn stored_rule(&self) -> Option<view::TaintRule<'_>> {
        match self.admission.old_object.map(|old| old.body) {
            Some(view::ObjectBody::Rule(old)) => Some(old),
            _ => None,
        }
    }
}

/// Checks a DeviceTaintRule against the TaintRulePolicies that match.
pub(super) fn check_taint_rule(policies: &[MatchedPolicy<'_>], report: &mut ViolationReport<'_>) {
    let (admission, context) = (report.admission, report.context);
    let (ours, cache) =
        (policies_of_kind_not_exempting_user(policies, PolicySpec::taint_rule), ImpactCache::default());
    if ours.is_empty() {
        return;
    }
    visit_taints_tolerations_and_selectors(admission, &mut |site| {
        let TaintTolerationOrSelector::Selector { at, selection } = site else { return };
        let driver = selection.selector.and_then(TaintSelector::driver).unwrap_or_default();
        for (policy, spec) in
            ours.iter().filter(|(policy, _)| policy.scope.matches_named_or_unknown_driver(driver))
        {
            let check = RuleCheckContext { policy, admission, context, selection: &selection, cache: &cache };
            spec.report_missing_selector_criteria(&check, at, report);
            // How a stored rule got its effect is not known.
            if spec.two_steps && !context.is_stored {
                check_effect_raised_in_two_steps(&check, report);
            }
            if let Some(limits) = &spec.limits {
                let violations = [limits.impact_violation(&check), limits.tainted_violation(&check)];
                for LimitViolation { level, detail, short } in violations.into_iter().flatten() {
                    report
                        .report(policy, POLICY_TAINT_RULE, &Path::ROOT.field("spec"))
                        .lower_level_to(level)
                        .forbidden(detail)
                        .with_warning_texts(policy, short, None);
                }
            }
            if let Some(annotations) = &spec.annotations {
                annotations.check_required_annotations_and_expiry(&check, report);
            }
        }
    });
}

/// Appends how many devices and pods the rule affects to violations about its selector or effect, if the state of the
/// cluster is known.
pub(super) fn append_impact_to_violations(
    violations: &mut [Violation],
    admission: &DecodedAttributes<'_>,
    context: &Context<'_>,
) {
    let (Some(state), view::ObjectBody::Rule(rule)) = (context.cluster, admission.object.body) else {
        return;
    };
    let is_silent = |violation: &&mut Violation| {
        let mut steps = violation.finding.at.user_steps();
        let is_in_spec = matches!(steps.next(), Some(SegmentName::Field(name)) if &**name == "spec");
        violation.finding.rule == POLICY_TAINT_RULE && is_in_spec && steps.next().is_some()
    };
    let mut impact = None;
    for violation in violations.iter_mut().filter(is_silent) {
        let impact = impact.get_or_insert_with(|| limits::rule_impact(rule, state, admission, context));
        if let Some(impact) = impact {
            let (detail, counts, caveat) = (&violation.finding.detail, &impact.description, state.caveat());
            violation.finding.detail = format!("{detail}; the rule {counts}{caveat}").into();
        }
    }
}

/// Reports a rule that does not start with effect None, or whose effect is raised together with another selector or
/// before the controller has reported on the stored rule.
fn check_effect_raised_in_two_steps(check: &RuleCheckContext<'_>, report: &mut ViolationReport<'_>) {
    let RuleCheckContext { policy, admission, context, selection, .. } = check;
    let effect = selection.taint.effect();
    let stored = admission.with_old_as_object();
    let Some((detail, short)) = (match stored.as_ref().zip(check.stored_rule()) {
        _ if effect == "None" => None,
        None if admission.operation == Operation::Create => Some((
            format!(
                "create the rule with `effect: None` first, check its status, then update it to {effect}"
            ),
            "create the rule with `effect: None` first",
        )),
        None => None,
        Some((stored, _)) if stored_selector_json(stored) != selector_json(selection) => Some((
            format!("the selector changes while the effect is {effect}: set `effect: None` first"),
            "set `effect: None` before you change the selector",
        )),
        // The controller reported the impact of another taint.
        Some((_, old)) if !has_same_key_and_value(old.spec().taint(), selection.taint) => Some((
            format!("the taint changes while its effect is {effect}: set `effect: None` first"),
            "set `effect: None` before you change the taint",
        )),
        Some((_, old)) => why_effect_may_not_rise(old, effect, context.profile.rule_status),
    }) else {
        return;
    };
    report
        .report(policy, POLICY_TAINT_RULE, &Path::ROOT.field("spec").field("taint").field("effect"))
        .forbidden(|| format!("{detail}; required by {}", policy.describe()))
        .with_warning_texts(policy, short, None);
}

/// Returns why `twoSteps` does not allow to raise the effect of a stored rule yet, as message and short form; `None` if
/// it does. Lowering it is always allowed.
fn why_effect_may_not_rise(
    old: view::TaintRule<'_>,
    effect: &str,
    has_status: bool,
) -> Option<(String, &'static str)> {
    let before = old.spec().taint().effect();
    if matches!((before, effect), ("NoExecute", _) | ("NoSchedule", "NoSchedule")) {
        return None;
    }
    if !has_status {
        let detail = format!(
            "the effect changes from {before} to {effect}, and this release does not report the impact"
        );
        return (before != "None").then_some((detail, "this release does not report the impact of a rule"));
    }
    let generation = old.metadata().generation();
    // For every effect the controller writes which generation it has seen; for None also how many pods would be
    // evicted.
    let is_observed = old.status().conditions().iter().any(|condition| {
        condition.kind() == EVICTION_IN_PROGRESS && condition.observed_generation() == generation
    });
    (!is_observed).then(|| {
        (
            format!(
                "the impact of the rule is not known yet: wait until the condition {EVICTION_IN_PROGRESS} in its status \
                 has observedGeneration {generation}, and check the condition"
            ),
            "wait for the status of the rule before you set a stronger effect",
        )
    })
}

/// Returns the selector as JSON; empty if there is none.
fn selector_json(selection: &DeviceSelection<'_>) -> String {
    use tollgate_api::view::View as _;
    selection.selector.map(|selector| selector.json().to_json()).unwrap_or_default()
}

/// Returns the selector of the stored rule as JSON; empty if there is none.
fn stored_selector_json(stored: &DecodedAttributes<'_>) -> String {
    let mut text = String::new();
    visit_taints_tolerations_and_selectors(stored, &mut |site| {
        if let TaintTolerationOrSelector::Selector { selection, .. } = site {
            text = selector_json(&selection);
        }
    });
    text
}
