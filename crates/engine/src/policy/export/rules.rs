//! DeviceTaintRules: TaintPolicies and TaintRulePolicies. A rule that only gets narrower or weaker always passes.

use super::super::kind::PolicySpec;
use super::draft::{BoundPolicy, PolicyDraft};
use super::omission::OmissionReason;
use super::taints::{self, Driver, covers, is_same, taint_map, texts};
use super::text::{Test, list, literal};
use crate::impact::EVICTION_IN_PROGRESS;

const DRIVER: Driver = Driver { name: "variables.driver", can_be_empty: true };

/// The criteria of selectors in all versions.
const CRITERIA: [&str; 4] = ["driver", "pool", "device", "deviceClassName"];

/// True if the new rule could select devices that the stored rule does not select.
fn selects_more() -> Test {
    let keeps = format!(
        "{}.all(f, !(f in oldObject.spec.deviceSelector) || (f in object.spec.deviceSelector \
         && object.spec.deviceSelector[f] == oldObject.spec.deviceSelector[f]))",
        list(CRITERIA)
    );
    let expressions = "(!has(oldObject.spec.deviceSelector.selectors) \
                       || oldObject.spec.deviceSelector.selectors.all(s, \
                       has(object.spec.deviceSelector.selectors) && s in object.spec.deviceSelector.selectors))";
    // A rule without a selector selects all devices for the scheduler, and none for the eviction controller.
    Test::call(format!(
        "(has(oldObject.spec.deviceSelector)\n? !has(object.spec.deviceSelector) || !({keeps} && {expressions})\n: \
         has(object.spec.deviceSelector) && object.spec.taint.effect == 'NoExecute')"
    ))
}

/// The match condition that excludes updates which only narrow or weaken a rule. It cannot use variables.
pub(super) fn reaches_more() -> String {
    let is_within = format!(
        "[{}].all(new, [{}].all(old,\n{}))",
        taint_map("object.spec.taint"),
        taint_map("oldObject.spec.taint"),
        is_same("old", "new").and(covers("old", "new")).text()
    );
    let within = selects_more().not().and(Test::call(is_within));
    Test::relation("request.operation != 'UPDATE'").or(within.not()).text().to_owned()
}

/// Expressions for the taints of the new and of the stored rule.
const NEW_TAINT: &str = "variables.taint";
const STORED_TAINT: &str = "variables.storedTaint";

/// Adds the checks of the TaintPolicies and the TaintRulePolicies.
pub(super) fn export_rule_limits(draft: &mut PolicyDraft<'_>) {
    draft.variable("selector", "has(object.spec.deviceSelector) ? object.spec.deviceSelector : {}");
    draft.variable("driver", "has(variables.selector.driver) ? variables.selector.driver : ''");
    draft.variable("taint", taint_map("object.spec.taint"));
    let stored = taint_map("oldObject.spec.taint");
    draft.variable("storedTaint", format!("request.operation != 'UPDATE' ? dyn({{}}) : dyn({stored})"));
    // It is not within what the stored rule reaches, so nothing but the taint of a rule with effect None changes.
    let same_or_none = Test::equals("variables.taint.effect", "None").or(is_same(STORED_TAINT, NEW_TAINT));
    let update = Test::equals("request.operation", "UPDATE");
    let excuses = Test::all([update, selects_more().not(), same_or_none, covers(STORED_TAINT, NEW_TAINT)]);
    draft.variable("storedSelectorExcuses", excuses.text());
    check_taint(draft);
    let is_ours = |bound: &&BoundPolicy<'_>| matches!(bound.source.policy.spec, PolicySpec::TaintRule(_));
    let ours: Vec<BoundPolicy<'_>> = draft.policies.iter().filter(is_ours).cloned().collect();
    for bound in ours {
        let binds = bound.binds.clone().and(bound.source.matches_driver(DRIVER.name, DRIVER.can_be_empty));
        check_selector(draft, &bound, &binds);
        check_annotations(draft, &bound, &binds);
        if bound.source.spec.get("twoSteps").bool() == Some(true) {
            let message =
                "create the rule with `effect: None`, wait for its status, and change only the effect then";
            let test = binds.clone().not().or(two_steps(draft));
            draft.validate(&test, bound.source.message(message));
        }
    }
}

/// Adds the checks of the TaintPolicies.
fn check_taint(draft: &mut PolicyDraft<'_>) {
    let policies = taints::read(draft, DRIVER);
    let about_taint = |test: &Test| Test::call(format!("[variables.taint].all(t, {})", test.text()));
    let not_allowed = taints::is_not_allowed(&policies);
    if not_allowed != Test::Never {
        draft.validate(&about_taint(&not_allowed.not()), taints::not_allowed_message(&policies));
    }
    for policy in &policies {
        let checks =
            [(policy.denies(), "a taint is denied"), (policy.lacks_data(), "a taint must set `data`")];
        for (test, what) in checks.into_iter().filter(|(test, _)| *test != Test::Never) {
            draft.validate(&about_taint(&test.not()), policy.source.message(what));
        }
    }
}

/// Requires the criteria of `requireSelector`. A stored rule without them excuses an update that reaches no further.
fn check_selector(draft: &mut PolicyDraft<'_>, bound: &BoundPolicy<'_>, binds: &Test) {
    let excused = Test::call("variables.storedSelectorExcuses");
    for name in texts(bound.source.spec.get("requireSelector")) {
        let has = |field: &str| Test::call(format!("has(variables.selector.{field})"));
        let (test, what) = if name == "any" {
            let any = Test::any(CRITERIA.into_iter().chain(["selectors"]).map(has));
            let same = "has(object.spec.deviceSelector) == has(oldObject.spec.deviceSelector)";
            let test = any.or(excused.clone().and(Test::relation(same)));
            (test, "`driver`, `pool` or `device` is required".to_owned())
        } else {
            (has(name).or(excused.clone()), format!("`deviceSelector.{name}` is required"))
        };
        draft.validate(&binds.clone().not().or(test), bound.source.message(&what));
    }
}

/// Requires the annotations of `requireAnnotations` and `maxAgeSeconds`. A stored rule without them excuses
/// an update that reaches no further.
fn check_annotations(draft: &mut PolicyDraft<'_>, bound: &BoundPolicy<'_>, binds: &Test) {
    const EXPIRES: &str = "tollgate.dev/expires";
    let spec = bound.source.spec;
    let mut names: Vec<&str> = texts(spec.get("requireAnnotations")).collect();
    if names.contains(&EXPIRES) {
        let message = "tollgate.dev/expires must be set, but its value is not checked: expressions cannot read the time";
        let field = "spec.requireAnnotations";
        draft.omissions.insert(bound.source.omission(field, OmissionReason::Time, message));
    } else if spec.get("maxAgeSeconds").exists() {
        names.push(EXPIRES);
    }
    for name in names {
        let key = literal(name);
        let value = |object: &str| {
            let all = format!("{object}.metadata.annotations");
            format!("(has({all}) && {key} in {all} ? [{all}[{key}]] : [])")
        };
        let is_set = Test::call(format!("{}.exists(a, a.trim() != '')", value("object")));
        let is_stored = Test::relation(format!("{} == {}", value("object"), value("oldObject")));
        let excused = Test::call("variables.storedSelectorExcuses").and(is_stored);
        let message = bound.source.message(&format!("the annotation {name} is required"));
        draft.validate(&binds.clone().not().or(is_set).or(excused), message);
    }
}

/// True if the effect is None, or is raised after the controller has reported on the stored rule.
fn two_steps(draft: &PolicyDraft<'_>) -> Test {
    let none = Test::equals("object.spec.taint.effect", "None");
    let selector = "has(object.spec.deviceSelector) == has(oldObject.spec.deviceSelector) \
                    && (!has(object.spec.deviceSelector) \
                    || object.spec.deviceSelector == oldObject.spec.deviceSelector)";
    let before = "oldObject.spec.taint.effect";
    let not_raised = Test::equals(before, "NoExecute")
        .or(Test::equals(before, "NoSchedule").and(Test::equals("object.spec.taint.effect", "NoSchedule")));
    let is_observed = Test::call("has(oldObject.status)")
        .and(Test::call("has(oldObject.status.conditions)"))
        .and(Test::call(format!(
            "oldObject.status.conditions.exists(c, c.type == '{EVICTION_IN_PROGRESS}' \
             && has(c.observedGeneration) && c.observedGeneration == oldObject.metadata.generation)"
        )));
    let with_status = draft.profiles.iter().any(|profile| profile.rule_status);
    let without = draft.profiles.iter().any(|profile| !profile.rule_status);
    let may_raise = Test::all([
        if with_status { is_observed } else { Test::Always },
        // These releases do not report what a rule would evict.
        if without { Test::equals(before, "None") } else { Test::Always },
    ]);
    none.or(Test::all([
        Test::equals("request.operation", "UPDATE"),
        Test::call(format!("({selector})")),
        is_same(STORED_TAINT, NEW_TAINT),
        not_raised.or(may_raise),
    ]))
}
