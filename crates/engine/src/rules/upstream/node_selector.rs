//! core/v1 NodeSelector, of slices, devices and allocations.
//!
//! It has no rules of its own: the caller passes the rule to report. The slice's own rule requires that its selector
//! has exactly one term.

use super::lists;
use crate::rules::RuleContext;
use tollgate_api::view::{NodeRequirement, NodeSelector};
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, RuleId};
use tollgate_formats::names::{self, LengthUnitWord};

/// Checks a node selector; findings are reported under `rule`.
// upstream v1.36 core ValidateNodeSelector, ValidateNodeSelectorTerm
pub fn check_node_selector(
    cx: &mut RuleContext<'_, '_>,
    rule: RuleId,
    at: &Path<'_>,
    selector: NodeSelector<'_>,
) {
    let terms_at = at.field("nodeSelectorTerms");
    let terms = selector.terms();
    if terms.is_empty() {
        cx.report(rule, &terms_at).required("must have at least one node selector term");
    }
    for (index, term) in terms.iter().enumerate() {
        let term_at = terms_at.index(index);
        let expressions_at = term_at.field("matchExpressions");
        for (index, requirement) in term.match_expressions().iter().enumerate() {
            check_match_expression(cx, rule, &expressions_at.index(index), requirement);
        }
        let fields_at = term_at.field("matchFields");
        for (index, requirement) in term.match_fields().iter().enumerate() {
            check_match_field(cx, rule, &fields_at.index(index), requirement);
        }
    }
}

/// Checks a requirement on the labels of a node.
// upstream v1.36 core ValidateNodeSelectorRequirement
fn check_match_expression(
    cx: &mut RuleContext<'_, '_>,
    rule: RuleId,
    at: &Path<'_>,
    requirement: NodeRequirement<'_>,
) {
    let (values, values_at) = (requirement.values(), at.field("values"));
    match requirement.operator() {
        "In" | "NotIn" if values.is_empty() => {
            cx.report(rule, &values_at).required("must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            cx.report(rule, &values_at)
                .forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        "Gt" | "Lt" if values.len() != 1 => {
            cx.report(rule, &values_at)
                .required("must be specified single value when `operator` is 'Lt' or 'Gt'");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => report_unknown_operator(cx, rule, at, other),
    }
    let (unit, word) = (cx.profile.label_unit, cx.profile.label_key_word);
    names::check_label_key(requirement.key(), unit, word, &mut |detail| {
        cx.report(rule, &at.field("key")).invalid(requirement.key(), detail);
    });
    for (index, value) in values.iter().enumerate() {
        names::check_label_value(value, unit, &mut |detail| {
            cx.report(rule, &values_at.index(index)).invalid(value, detail);
        });
    }
}

/// Checks a requirement on the fields of a node.
// upstream v1.36 core ValidateNodeFieldSelectorRequirement
fn check_match_field(
    cx: &mut RuleContext<'_, '_>,
    rule: RuleId,
    at: &Path<'_>,
    requirement: NodeRequirement<'_>,
) {
    let (values, values_at) = (requirement.values(), at.field("values"));
    match requirement.operator() {
        "In" | "NotIn" if values.len() != 1 => {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            cx.report(rule, &values_at).required(detail);
        }
        "In" | "NotIn" => {}
        other => report_unknown_operator(cx, rule, at, other),
    }
    if requirement.key() != "metadata.name" {
        let value = BadValue::str(requirement.key());
        cx.report(rule, &at.field("key")).invalid(value, "not a valid field selector key");
        return;
    }
    for (index, value) in values.iter().enumerate() {
        names::check_dns_subdomain(value, LengthUnitWord::Characters, &mut |detail| {
            cx.report(rule, &values_at.index(index)).invalid(value, detail);
        });
    }
}

fn report_unknown_operator(cx: &mut RuleContext<'_, '_>, rule: RuleId, at: &Path<'_>, operator: &str) {
    let value = lists::named_go_string(cx, operator);
    cx.report(rule, &at.field("operator")).invalid(value, "not a valid selector operator");
}
