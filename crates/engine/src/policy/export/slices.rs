//! TaintPolicies for slices. An update may keep what the stored slice has.
//!
//! As in `rules::ratchet`, each stored violation excuses one new violation of the same policy, on the same device, by
//! a taint of the same key and value that is not stronger. Strengths are ordered, so the new violations are all
//! excused if, for each of them, no more new than stored ones are at least as strong as it.

use super::draft::PolicyDraft;
use super::taints::{
    self, DriverExpr, TaintPolicyToExport, has_same_key_and_value, is_not_stronger, taint_map_expression,
};
use super::text::BoolExpr;

const SLICE_DRIVER_EXPRESSION: DriverExpr = DriverExpr { name: "object.spec.driver", can_be_empty: false };

/// Adds what TaintPolicies say about the taints of a slice's devices, as validations.
pub(super) fn export_slice_taints(draft: &mut PolicyDraft<'_>) {
    let devices = |object: &str| {
        format!(
            "(has({object}.spec.devices) && {object}.spec.devices != null ? {object}.spec.devices : [])\n.filter(d, has(d.taints) || (has(d.basic) && \
             has(d.basic.taints)))\n.map(d, {{'name': dyn(d.name), 'taints': dyn((has(d.taints) ? d.taints : \
             d.basic.taints).map(t,\n{}\n))}})",
            taint_map_expression("t")
        )
    };
    draft.declare_variable("devices", devices("object"));
    // A device goes by its name within a pool.
    let stored = format!(
        "request.operation != 'UPDATE' || object.spec.driver != oldObject.spec.driver || object.spec.pool.name != \
         oldObject.spec.pool.name ? [] : {}",
        devices("oldObject")
    );
    draft.declare_variable("storedDevices", stored);
    let policies = taints::read_taint_policies(draft, SLICE_DRIVER_EXPRESSION);
    let not_allowed = taints::is_not_allowed(&policies);
    // The allow lists are evaluated once for all policies.
    for (name, devices) in [("checkedDevices", "devices"), ("storedCheckedDevices", "storedDevices")] {
        let list = match &not_allowed {
            BoolExpr::Never => "[]".to_owned(),
            test => format!("d.taints.filter(t,\n{})", test.text()),
        };
        let checked = format!(
            "variables.{devices}.map(d, {{'name': dyn(d.name), 'taints': dyn(d.taints), 'notAllowed': dyn({list})}})"
        );
        draft.declare_variable(name, checked);
    }
    for (index, policy) in policies.iter().enumerate() {
        let is_closest = if not_allowed == BoolExpr::Never {
            BoolExpr::Never
        } else {
            taints::is_blamed(&policies, index)
        };
        let message = match policy.denies() {
            BoolExpr::Never => taints::not_allowed_message(&policies),
            _ => policy.source.violation_message("a taint is denied or not allowed"),
        };
        let statements = [("taints", policy.denies()), ("notAllowed", is_closest)];
        forbid_new_taints(draft, policy, "taints", &statements, message);
        let message = policy.source.violation_message("a taint must set `data`");
        forbid_new_taints(draft, policy, "data", &[("taints", policy.lacks_required_data())], message);
    }
}

/// Adds a validation that none of the tests in `statements` is true for a taint, except for taints that the stored
/// slice already has. Each statement is the field of a device that lists the taints to test, and the test.
fn forbid_new_taints(
    draft: &mut PolicyDraft<'_>,
    policy: &TaintPolicyToExport<'_>,
    name: &str,
    statements: &[(&str, BoolExpr)],
    message: String,
) {
    let lists: Vec<String> = statements
        .iter()
        .filter_map(|(list, test)| match test {
            BoolExpr::Never => None,
            BoolExpr::Always => Some(format!("d.{list}")),
            test @ BoolExpr::When(_) => Some(format!("d.{list}.filter(t, {})", test.text())),
        })
        .collect();
    if lists.is_empty() {
        return;
    }
    let violating = |devices: &str| {
        format!(
            "variables.{devices}.map(d, {{'name': dyn(d.name), 'taints': dyn({})}})\n.filter(d, size(d.taints) > 0)",
            lists.join("\n+ ")
        )
    };
    let id = &policy.source.id;
    let new = draft.declare_variable(&format!("{name}_{id}"), violating("checkedDevices"));
    let stored = draft.declare_variable(&format!("stored_{name}_{id}"), violating("storedCheckedDevices"));
    let counted = has_same_key_and_value("t", "n").and(is_not_stronger("t", "n"));
    let count = |device: &str| format!("size({device}.taints.filter(t, {}))", counted.text());
    let excused = format!(
        "{new}.all(d, {stored}.exists(s, s.name == d.name && d.taints.all(n,\n{}\n<= {})))",
        count("d"),
        count("s")
    );
    let none = BoolExpr::from_comparison(format!("size({new}) == 0"));
    draft.add_validation(&none.or(BoolExpr::from_call(excused)), message);
}
