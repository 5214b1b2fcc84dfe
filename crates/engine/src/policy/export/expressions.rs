//! `matchConditions` and `validations`: the expressions of policies, with the variables that Tollgate gives them.
//!
//! Tollgate shows expressions every object in the form of version v1, and only some fields of the request and of the
//! namespace. Here, variables of the ValidatingAdmissionPolicy have this form, and a loop over one item gives them the
//! names that the expression uses.

use std::collections::BTreeSet;

use super::ExportedValidation;
use super::draft::PolicyDraft;
use super::omission::{Omission, OmissionReason};
use super::source::{PolicyToExport, one_line};
use super::text::{BoolExpr, cel_string_literal};
use tollgate_api::profile::ApiKind;
use tollgate_cel::{ADMISSION_POLICY_ENV, Expression, ExpressionPurpose};
use tollgate_document::doc::Value;

/// How the match conditions of a policy are exported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ExportedConditions {
    None,
    Exact(BoolExpr),
    /// The expressions cannot be exported.
    LeftOut,
}

/// Returns the match conditions of a policy as one expression. Lists those that cannot be exported as omissions.
pub(super) fn export_conditions(
    source: &PolicyToExport<'_>,
    kind: ApiKind,
    omissions: &mut BTreeSet<Omission>,
) -> ExportedConditions {
    let list = source.spec.get("matchConditions");
    if list.is_empty() {
        return ExportedConditions::None;
    }
    if source.policy.expressions.ignores_failures {
        let message = "the restrictions of the policy are left out: with `failurePolicy: Ignore`, the policy also \
                       applies if a match condition fails, which cannot be expressed";
        omissions.insert(source.omission("spec.matchConditions", OmissionReason::IgnoredFailure, message));
        return ExportedConditions::LeftOut;
    }
    let mut tests = Vec::new();
    for (index, item) in list.items().enumerate() {
        let text = item.get("expression").str();
        match compile_if_exportable(text, ExpressionPurpose::Condition) {
            Ok(expression) => tests.push(BoolExpr::from_call(bind_variables(text, &expression, kind))),
            Err(why) => {
                let field = format!("spec.matchConditions[{index}].expression");
                let message = format!("the restrictions of the policy are left out: {why}");
                omissions.insert(source.omission(field, OmissionReason::Expression, message));
            }
        }
    }
    if tests.len() < list.len() {
        return ExportedConditions::LeftOut;
    }
    ExportedConditions::Exact(BoolExpr::all(tests))
}

/// Adds the `validations` of all policies in the draft, and lists those that cannot be exported as omissions.
pub(super) fn export_validations(draft: &mut PolicyDraft<'_>) {
    for bound in draft.policies.clone() {
        let source = bound.source;
        let has_raw_values = matches!(
            draft.kind,
            ApiKind::ResourceClaim | ApiKind::ResourceClaimTemplate | ApiKind::DeviceClass
        );
        let spec = source.spec;
        if has_raw_values && !(spec.get("validations").is_empty() && spec.get("matchConditions").is_empty()) {
            let message = "keys in opaque parameters that are set twice or differ only in case are not denied: \
                           expressions see only one of them";
            draft.omit(source, "spec.validations", OmissionReason::AmbiguousKeys, message);
        }
        for (index, item) in spec.get("validations").items().enumerate() {
            let text = item.get("expression").str();
            let expression = match compile_if_exportable(text, ExpressionPurpose::Condition) {
                Ok(expression) => expression,
                Err(why) => {
                    let field = format!("spec.validations[{index}].expression");
                    draft.omit(source, field, OmissionReason::Expression, format!("left out: {why}"));
                    continue;
                }
            };
            let message = match item.get("message").str() {
                "" => format!("failed expression: {}", one_line(text)),
                message => message.to_owned(),
            };
            // In a variable, because the message about an error contains the whole expression of the validation, and
            // the API server drops warnings with line breaks.
            let name = format!("validation_{}_{index}", source.id);
            let holds = draft.declare_variable(&name, bind_variables(text, &expression, draft.kind));
            let test = bound.binds.clone().not().or(BoolExpr::from_call(holds));
            if test != BoolExpr::Always {
                let message_expression = export_message_expression(draft, source, index, item);
                let fixed = ExportedValidation::new(&test, source.violation_message(&message));
                let validation = ExportedValidation { message_expression, ..fixed };
                draft.add_policy_validation(validation, source.policy.expressions.ignores_failures);
            }
        }
    }
}

/// Returns the `messageExpression` of a validation, with the name of the policy; `None` if it has none, or if it cannot
/// be exported, which is listed as an omission.
fn export_message_expression(
    draft: &mut PolicyDraft<'_>,
    source: &PolicyToExport<'_>,
    index: usize,
    validation: Value<'_>,
) -> Option<String> {
    let text = validation.get("messageExpression").str();
    if text.is_empty() {
        return None;
    }
    match compile_if_exportable(text, ExpressionPurpose::Message) {
        Ok(expression) => {
            let name = format!("message_{}_{index}", source.id);
            let message =
                draft.declare_variable(&name, bind_message_variables(text, &expression, draft.kind));
            let suffix = cel_string_literal(&format!(" {}", source.violation_message("")));
            // An empty message makes the API server use the fixed one.
            Some(format!("{message}.trim() == '' ? '' : {message}.trim() + {suffix}"))
        }
        Err(why) => {
            let field = format!("spec.validations[{index}].messageExpression");
            let message = format!("replaced by a fixed message: {why}");
            draft.omit(source, field, OmissionReason::Expression, message);
            None
        }
    }
}

/// Compiles an expression as an API server does for a ValidatingAdmissionPolicy, or returns why it is left out.
fn compile_if_exportable(text: &str, purpose: ExpressionPurpose) -> Result<Expression, String> {
    if text.contains(".format(") {
        return Err("an API server formats numbers, lists and maps differently".to_owned());
    }
    Expression::compile(text, purpose, &ADMISSION_POLICY_ENV).map_err(|faults| {
        let why = faults.first().map(|fault| one_line(&fault.message)).unwrap_or_default();
        format!("a ValidatingAdmissionPolicy cannot contain the expression: {why}")
    })
}

/// Returns the condition with its variables, such as `object`, bound to the values that Tollgate gives them: it is
/// wrapped in loops over one item, such as `[variables.object].all(object, …)`.
fn bind_variables(text: &str, expression: &Expression, kind: ApiKind) -> String {
    let mut text = parenthesized(text);
    if expression.has_unknown_type {
        // An API server does not accept an expression that may have another type than bool.
        text = format!("({text} && true)");
    }
    for name in reshaped_variables_in(&text, kind) {
        text = format!("[variables.{name}].all({name}, {text})");
    }
    text
}

/// Like [`bind_variables`], for an expression that returns a string.
fn bind_message_variables(text: &str, expression: &Expression, kind: ApiKind) -> String {
    let mut text = parenthesized(text);
    if expression.has_unknown_type {
        // An API server accepts only an expression that surely returns a string.
        text = format!("[{text}].map(text, type(text) == string ? string(text) : '')[0]");
    }
    for name in reshaped_variables_in(&text, kind) {
        text = format!("[variables.{name}].map({name}, {text})[0]");
    }
    text
}

/// Returns the expression in parentheses, on a line of its own, because it may end in a comment.
fn parenthesized(text: &str) -> String {
    format!("(\n{}\n)", text.trim())
}

/// Returns the variables that the expression uses and that have another form in a ValidatingAdmissionPolicy.
fn reshaped_variables_in(text: &str, kind: ApiKind) -> Vec<&'static str> {
    let names = ["namespaceObject", "request", "oldObject", "object"];
    names.into_iter().filter(|name| has_word(text, name) && is_reshaped(name, kind)).collect()
}

/// True if a variable has another form in Tollgate than in a ValidatingAdmissionPolicy.
fn is_reshaped(name: &str, kind: ApiKind) -> bool {
    match name {
        "object" | "oldObject" => versioned_items_path(kind).is_some(),
        "namespaceObject" => kind.is_namespaced(),
        _ => true,
    }
}

/// Declares the variables that expressions of policies read.
pub(super) fn declare_policy_expression_variables(draft: &mut PolicyDraft<'_>) {
    if let Some(path) = versioned_items_path(draft.kind) {
        let item = if draft.kind == ApiKind::ResourceSlice { DEVICE_AS_V1 } else { CLAIM_REQUEST_AS_V1 };
        draft.declare_variable("object", v1_conversion_expression("object", path, item));
        let old = v1_conversion_expression("oldObject", path, item);
        draft
            .declare_variable("oldObject", format!("request.operation != 'UPDATE' ? dyn(null) : dyn({old})"));
    }
    draft.declare_variable("request", VISIBLE_REQUEST_EXPRESSION);
    if draft.kind.is_namespaced() {
        draft.declare_variable("namespaceObject", VISIBLE_NAMESPACE_EXPRESSION);
    }
}

/// CEL expression for `request` with only the fields that Tollgate shows to expressions of policies.
const VISIBLE_REQUEST_EXPRESSION: &str = "{'kind': dyn(request.kind), 'resource': dyn(request.resource), 'subResource': dyn(''), \
'operation': dyn(request.operation), 'name': dyn(has(object.metadata.name) ? object.metadata.name : ''), \
'namespace': dyn(has(object.metadata.namespace) ? object.metadata.namespace : ''), 'userInfo': dyn(request.userInfo)}";

/// CEL expression for `namespaceObject` with only the fields that Tollgate shows to expressions of policies.
const VISIBLE_NAMESPACE_EXPRESSION: &str = "{'apiVersion': dyn('v1'), 'kind': dyn('Namespace'), \
'metadata': dyn({'name': dyn(request.namespace), 'labels': variables.namespaceLabels})}";

/// Returns the path to the items whose form differs between API versions: requests of claims, devices of slices; `None`
/// for other kinds.
fn versioned_items_path(kind: ApiKind) -> Option<&'static [&'static str]> {
    match kind {
        ApiKind::ResourceClaim => Some(&["spec", "devices", "requests"]),
        ApiKind::ResourceClaimTemplate => Some(&["spec", "spec", "devices", "requests"]),
        ApiKind::ResourceSlice => Some(&["spec", "devices"]),
        _ => None,
    }
}

/// CEL expression that converts a request `i` of version v1beta1 to the form of version v1.
const CLAIM_REQUEST_AS_V1: &str = "has(i.firstAvailable) || has(i.exactly) ? i \
: {'name': dyn(i.name), 'exactly': dyn(i.transformMap(k, v, k != 'name', v))}";
/// CEL expression that converts a device `i` of version v1beta1 to the form of version v1.
const DEVICE_AS_V1: &str = "!has(i.basic) ? i \
: (i.basic.map(k, k) + ['name']).transformMapEntry(n, k, {k: k == 'name' ? i.name : i.basic[k]})";

/// Returns a CEL expression for an object in the form of version v1: `item` converts each item at the path.
fn v1_conversion_expression(object: &str, path: &[&str], item: &str) -> String {
    let items = format!("v.map(i, {item})");
    let inner = path.iter().rev().fold(items, |inner, field| {
        format!("v.transformMap(k, v, k != '{field}' || v == null ? v : {inner})")
    });
    let whole = inner.strip_prefix("v.").unwrap_or(&inner);
    format!("request.kind.version in ['v1alpha3', 'v1beta1'] ? {object}.{whole} : {object}")
}

/// True if the text contains the word, and not as a part of another word.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}
