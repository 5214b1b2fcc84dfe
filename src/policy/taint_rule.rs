//! TaintRulePolicy: how dangerous a DeviceTaintRule may be.
//!
//! A selector that names what it must, an effect that is raised only after the rule was seen to select the right
//! devices, and a limit on what it touches. The limit needs the state of the cluster; where that is not known,
//! `onUnknown` decides, and it denies unless told otherwise.

use super::{Body, Matched, Report};
use crate::api::view::TaintSelector;
use crate::case::{Case, Operation};
use crate::doc::Value;
use crate::field::Path;
use crate::finding::Kind;
use crate::rules::Level;
use crate::rules::policy::POLICY_TAINT_RULE;
use crate::site::{Selection, Site, walk};

/// What a TaintRulePolicy says.
#[derive(Debug)]
pub(super) struct Policy {
    /// `driver`, `pool`, `device`, `any`.
    require: Vec<Box<str>>,
    two_steps: bool,
    max_impact: Option<Impact>,
    on_unknown: Option<Level>,
}

/// How much a rule may touch.
#[derive(Debug)]
struct Impact {
    devices: Option<i64>,
    /// Pods or namespaces are limited: only NoExecute touches those.
    evictions: bool,
}

impl Policy {
    /// Reads `spec`.
    pub(super) fn read(spec: Value<'_>) -> Policy {
        let impact = spec.get("maxImpact");
        Policy {
            require: spec.get("requireSelector").items().map(|item| item.str().into()).collect(),
            two_steps: spec.get("twoSteps").bool().unwrap_or_default(),
            max_impact: impact.exists().then(|| Impact {
                devices: impact.get("devices").int(),
                evictions: impact.get("pods").exists() || impact.get("namespaces").exists(),
            }),
            on_unknown: match spec.get("onUnknown").str() {
                "Allow" => None,
                "Warn" => Some(Level::Warn),
                _ => Some(Level::Deny),
            },
        }
    }
}

/// Judges a rule.
pub(super) fn check(matched: &[Matched<'_>], case: &Case<'_>, report: &mut Report<'_>) {
    if !matched.iter().any(|one| matches!(one.policy.body, Body::TaintRule(_))) {
        return;
    }
    let stored = case.stored();
    walk(case, &mut |site| {
        let Site::Selector { at, selection } = site else { return };
        for one in matched.iter().filter(|one| one.binds) {
            let Body::TaintRule(policy) = &one.policy.body else { continue };
            let driver = selection.selector.and_then(TaintSelector::driver).unwrap_or_default();
            if !one.policy.scope.has_driver(driver) {
                continue;
            }
            policy.check_selector(*one, at, &selection, report);
            if policy.two_steps {
                check_steps(*one, case.operation, stored.as_ref(), &selection, report);
            }
            policy.check_impact(*one, &selection, report);
        }
    });
}

impl Policy {
    fn check_selector(
        &self,
        one: Matched<'_>,
        at: &Path<'_>,
        selection: &Selection<'_>,
        report: &mut Report<'_>,
    ) {
        let criterion = |name: &str| {
            let selector = selection.selector?;
            let value = match name {
                "driver" => selector.driver(),
                "pool" => selector.pool(),
                "device" => selector.device(),
                _ => selector.device_class_name(),
            };
            value.filter(|value| !value.is_empty())
        };
        for name in &self.require {
            if &**name == "any" {
                let names = ["driver", "pool", "device", "deviceClassName"];
                let has_expressions =
                    selection.selector.is_some_and(|selector| !selector.selectors().is_empty());
                if names.into_iter().all(|name| criterion(name).is_none()) && !has_expressions {
                    let detail = format!("a rule must say which devices it is about, {}", one.policy.told());
                    report.say(one.policy, POLICY_TAINT_RULE, at, Kind::Required, detail);
                }
            } else if criterion(name).is_none() {
                let detail = format!("a rule must name the {name} it is about, {}", one.policy.told());
                report.say(one.policy, POLICY_TAINT_RULE, &at.field(name), Kind::Required, detail);
            }
        }
    }

    fn check_impact(&self, one: Matched<'_>, selection: &Selection<'_>, report: &mut Report<'_>) {
        let (Some(limits), Some(level)) = (&self.max_impact, self.on_unknown) else { return };
        let evicts = selection.taint.effect() == "NoExecute" && limits.evictions;
        if !(evicts || selection.is_felt() && limits.devices.is_some()) {
            return;
        }
        let detail = format!(
            "how many devices and pods this rule touches is not known here, and {} limits it",
            one.policy.told()
        );
        let spec = Path::ROOT.field("spec");
        let before = report.violations.len();
        report.say(one.policy, POLICY_TAINT_RULE, &spec, Kind::Forbidden, detail);
        if report.violations.len() > before {
            report.at_most(level);
        }
    }
}

/// A rule starts as None; raised, it selects what it selected before.
fn check_steps(
    one: Matched<'_>,
    operation: Operation,
    stored: Option<&Case<'_>>,
    selection: &Selection<'_>,
    report: &mut Report<'_>,
) {
    let effect = selection.taint.effect();
    if effect == "None" {
        return;
    }
    let told = one.policy.told();
    let detail = match stored {
        None if operation == Operation::Create => {
            format!("a rule starts with effect None and is raised to {effect} in a second step, {told}")
        }
        Some(stored) if selector_text(stored) != written(selection) => {
            format!("the selector changes while the effect is {effect}: set it to None first, {told}")
        }
        _ => return,
    };
    let spec = Path::ROOT.field("spec");
    let taint = spec.field("taint");
    report.say(one.policy, POLICY_TAINT_RULE, &taint.field("effect"), Kind::Forbidden, detail);
}

fn written(selection: &Selection<'_>) -> String {
    use crate::api::view::View as _;
    selection.selector.map(|selector| selector.value().to_json()).unwrap_or_default()
}

fn selector_text(stored: &Case<'_>) -> String {
    let mut text = String::new();
    walk(stored, &mut |site| {
        if let Site::Selector { selection, .. } = site {
            text = written(&selection);
        }
    });
    text
}
