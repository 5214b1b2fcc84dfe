//! DeviceTaintRules: TaintPolicies and TaintRulePolicies. A rule that only gets narrower or weaker always passes.

use super::super::kind::PolicySpec;
use super::draft::{PolicyDraft, PolicyInDraft};
use super::omission::OmissionReason;
use super::taints::{self, DriverExpr, has_same_key_and_value, is_not_stronger, taint_map_expression};
use super::text::{BoolExpr, cel_string_list, cel_string_literal};
use crate::impact::EVICTION_IN_PROGRESS;
use tollgate_document::doc::Value;

const RULE_DRIVER_EXPRESSION: DriverExpr = DriverExpr { name: "variables.driver", can_be_empty: true };

/// The fields of `deviceSelector` that name devices or a class, in all API versions.
const SELECTOR_FIELDS: [&str; 4] = ["driver", "pool", "device", "deviceClassName"];

/// Returns the test whether an update could make a rule select devices that the stored rule does not select.
fn selects_more() -> BoolExpr {
    let keeps = format!(
        "{}.all(f, !(f in oldObject.spec.deviceSelector) || (f in object.spec.deviceSelector \
         && object.spec.deviceSelector[f] == oldObject.spec.deviceSelector[f]))",
        cel_string_list(SELECTOR_FIELDS)
    );
    let expressions = "(!has(oldObject.spec.deviceSelector.selectors) \
                       || oldObject.spec.deviceSelector.selectors.all(s, \
                       has(object.spec.deviceSelector.selectors) && s in object.spec.deviceSelector.selectors))";
    // A rule without a selector selects all devices for the scheduler, and none for the eviction controller.
    BoolExpr::from_call(format!(
        "(has(oldObject.spec.deviceSelector)\n? !has(object.spec.deviceSelector) || !({keeps} && {expressions})\n: \
         has(object.spec.deviceSelector) && object.spec.taint.effect == 'NoExecute')"
    ))
}

/// Returns the match condition that is false for updates which only narrow or weaken a rule. It cannot use variables.
pub(super) fn widens_or_strengthens_condition() -> String {
    let is_within = format!(
        "[{}].all(new, [{}].all(old,\n{}))",
        taint_map_expression("object.spec.taint"),
        taint_map_expression("oldObject.spec.taint"),
        has_same_key_and_value("old", "new").and(is_not_stronger("old", "new")).text()
    );
    let within = selects_more().not().and(BoolExpr::from_call(is_within));
    BoolExpr::from_comparison("request.operation != 'UPDATE'").or(within.not()).text().to_owned()
}

/// The CEL expression for the taint of the new rule.
const NEW_TAINT: &str = "variables.taint";
/// The CEL expression for the taint of the stored rule.
const STORED_TAINT: &str = "variables.storedTaint";

/// Adds what TaintPolicies and TaintRulePolicies say about a DeviceTaintRule, as validations.
pub(super) fn export_rule_checks(draft: &mut PolicyDraft<'_>) {
    draft.declare_variable("selector", "has(object.spec.deviceSelector) ? object.spec.deviceSelector : {}");
    draft.declare_variable("driver", "has(variables.selector.driver) ? variables.selector.driver : ''");
    draft.declare_variable("taint", taint_map_expression("object.spec.taint"));
    let stored = taint_map_expression("oldObject.spec.taint");
    draft.declare_variable(
        "storedTaint",
        format!("request.operation != 'UPDATE' ? dyn({{}}) : dyn({stored})"),
    );
    // It is not within what the stored rule reaches, so nothing but the taint of a rule with effect None changes.
    let same_or_none = BoolExpr::equals_literal("variables.taint.effect", "None")
        .or(has_same_key_and_value(STORED_TAINT, NEW_TAINT));
    let update = BoolExpr::equals_literal("request.operation", "UPDATE");
    let excuses =
        BoolExpr::all([update, selects_more().not(), same_or_none, is_not_stronger(STORED_TAINT, NEW_TAINT)]);
    draft.declare_variable("storedSelectorExcuses", excuses.text());
    export_taint_checks(draft);
    for (bound, _) in draft.policies_of_kind(PolicySpec::taint_rule) {
        let binds = bound.binds.clone().and(
            bound.source.matches_driver(RULE_DRIVER_EXPRESSION.name, RULE_DRIVER_EXPRESSION.can_be_empty),
        );
        require_selector(draft, &bound, &binds);
        require_annotations(draft, &bound, &binds);
        if bound.source.spec.get("twoSteps").bool() == Some(true) {
            let message =
                "create the rule with `effect: None`, wait for its status, and change only the effect then";
            let test = binds.clone().not().or(respects_two_steps(draft));
            draft.add_validation(&test, bound.source.violation_message(message));
        }
    }
}

/// Adds what TaintPolicies say about the taint of a DeviceTaintRule, as validations.
fn export_taint_checks(draft: &mut PolicyDraft<'_>) {
    let policies = taints::read_taint_policies(draft, RULE_DRIVER_EXPRESSION);
    let about_taint =
        |test: &BoolExpr| BoolExpr::from_call(format!("[variables.taint].all(t, {})", test.text()));
    let not_allowed = taints::is_not_allowed(&policies);
    if not_allowed != BoolExpr::Never {
        draft.add_validation(&about_taint(&not_allowed.not()), taints::not_allowed_message(&policies));
    }
    for policy in &policies {
        let checks = [
            (policy.denies(), "a taint is denied"),
            (policy.lacks_required_data(), "a taint must set `data`"),
        ];
        for (test, what) in checks.into_iter().filter(|(test, _)| *test != BoolExpr::Never) {
            draft.add_validation(&about_taint(&test.not()), policy.source.violation_message(what));
        }
    }
}

/// Adds validations for `requireSelector`. An update that reaches no further than the stored rule may lack what the
/// stored rule lacks.
fn require_selector(draft: &mut PolicyDraft<'_>, bound: &PolicyInDraft<'_>, binds: &BoolExpr) {
    let excused = BoolExpr::from_call("variables.storedSelectorExcuses");
    for name in bound.source.spec.get("requireSelector").items().map(Value::str) {
        let has = |field: &str| BoolExpr::from_call(format!("has(variables.selector.{field})"));
        let (test, what) = if name == "any" {
            let any = BoolExpr::any(SELECTOR_FIELDS.into_iter().chain(["selectors"]).map(has));
            let same = "has(object.spec.deviceSelector) == has(oldObject.spec.deviceSelector)";
            let test = any.or(excused.clone().and(BoolExpr::from_comparison(same)));
            (test, "`driver`, `pool` or `device` is required".to_owned())
        } else {
            (has(name).or(excused.clone()), format!("`deviceSelector.{name}` is required"))
        };
        draft.add_validation(&binds.clone().not().or(test), bound.source.violation_message(&what));
    }
}

/// Adds validations for `requireAnnotations` and `maxAgeSeconds`. An update that reaches no further than the stored
/// rule may lack what the stored rule lacks.
fn require_annotations(draft: &mut PolicyDraft<'_>, bound: &PolicyInDraft<'_>, binds: &BoolExpr) {
    const EXPIRES_ANNOTATION: &str = "tollgate.dev/expires";
    let spec = bound.source.spec;
    let mut names: Vec<&str> = spec.get("requireAnnotations").items().map(Value::str).collect();
    if names.contains(&EXPIRES_ANNOTATION) {
        let message = "tollgate.dev/expires must be set, but its value is not checked: expressions cannot read the time";
        let field = "spec.requireAnnotations";
        draft.omit(bound.source, field, OmissionReason::Time, message);
    } else if spec.get("maxAgeSeconds").exists() {
        names.push(EXPIRES_ANNOTATION);
    }
    for name in names {
        let key = cel_string_literal(name);
        let value = |object: &str| {
            let all = format!("{object}.metadata.annotations");
            format!("(has({all}) && {key} in {all} ? [{all}[{key}]] : [])")
        };
        let is_set = BoolExpr::from_call(format!("{}.exists(a, a.trim() != '')", value("object")));
        let is_stored = BoolExpr::from_comparison(format!("{} == {}", value("object"), value("oldObject")));
        let excused = BoolExpr::from_call("variables.storedSelectorExcuses").and(is_stored);
        let message = bound.source.violation_message(&format!("the annotation {name} is required"));
        draft.add_validation(&binds.clone().not().or(is_set).or(excused), message);
    }
}

/// Returns the test for `twoSteps`: the effect is None, or is raised after the controller has reported on the stored
/// rule.
fn respects_two_steps(draft: &PolicyDraft<'_>) -> BoolExpr {
    let none = BoolExpr::equals_literal("object.spec.taint.effect", "None");
    let selector = "has(object.spec.deviceSelector) == has(oldObject.spec.deviceSelector) \
                    && (!has(object.spec.deviceSelector) \
                    || object.spec.deviceSelector == oldObject.spec.deviceSelector)";
    let before = "oldObject.spec.taint.effect";
    let not_raised =
        BoolExpr::equals_literal(before, "NoExecute").or(BoolExpr::equals_literal(before, "NoSchedule")
            .and(BoolExpr::equals_literal("object.spec.taint.effect", "NoSchedule")));
    let is_observed = BoolExpr::from_call("has(oldObject.status)")
        .and(BoolExpr::from_call("has(oldObject.status.conditions)"))
        .and(BoolExpr::from_call(format!(
            "oldObject.status.conditions.exists(c, c.type == '{EVICTION_IN_PROGRESS}' \
             && has(c.observedGeneration) && c.observedGeneration == oldObject.metadata.generation)"
        )));
    let with_status = draft.profiles.iter().any(|profile| profile.rule_status);
    let without = draft.profiles.iter().any(|profile| !profile.rule_status);
    let may_raise = BoolExpr::all([
        if with_status { is_observed } else { BoolExpr::Always },
        // These releases do not report what a rule would evict.
        if without { BoolExpr::equals_literal(before, "None") } else { BoolExpr::Always },
    ]);
    none.or(BoolExpr::all([
        BoolExpr::equals_literal("request.operation", "UPDATE"),
        BoolExpr::from_call(format!("({selector})")),
        has_same_key_and_value(STORED_TAINT, NEW_TAINT),
        not_raised.or(may_raise),
    ]))
}
