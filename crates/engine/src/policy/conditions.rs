//! `matchConditions` and `validations`: expressions about the whole request.
//!
//! A policy does not apply if one of its conditions is false. An expression that cannot be evaluated is a violation, or
//! counts as true with `failurePolicy: Ignore`.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::cel::{Program, Variables};
use super::json_schema::{ExpressionFieldNames, JsonCheck};
use super::load::text_if_not_empty;
use super::schema::PolicyFaults;
use super::{Policy, ViolationReport, expression_fields};
use crate::admission::{Context, DecodedAttributes, LabelsIfKnown};
use crate::rules::table::{POLICY_LOOKUP, POLICY_VALIDATION};
use crate::site::{self, TaintTolerationOrSelector, visit_taints_tolerations_and_selectors};
use tollgate_api::profile::ApiKind;
use tollgate_cel::{ExpressionError, ExpressionPurpose};
use tollgate_document::doc::{self, Doc, Value, ValueKind};
use tollgate_document::field::Path;
use tollgate_formats::gofmt;

/// The compiled `matchConditions` and `validations` of a policy.
#[derive(Debug, Default)]
pub(super) struct PolicyExpressions {
    pub(super) conditions: Vec<MatchCondition>,
    validations: Vec<Validation>,
    /// True for `failurePolicy: Ignore`.
    pub(super) ignores_failures: bool,
    /// Names of fields that the expressions look for in objects, to find keys that could be confused with them.
    sought: ExpressionFieldNames,
}

/// The expressions of a policy because of which its verdict depends on all fields of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectDependency {
    /// Match conditions that read the object: it decides whether the policy applies.
    MatchConditions,
    Validations,
}

/// A compiled match condition: the policy applies only if it is true.
#[derive(Debug)]
pub(super) struct MatchCondition {
    name: Box<str>,
    program: Program,
}

/// A compiled validation: a request for which it is false is a violation.
#[derive(Debug)]
struct Validation {
    text: Box<str>,
    program: Program,
    message: Option<Box<str>>,
    message_program: Option<Program>,
}

impl PolicyExpressions {
    /// Compiles `matchConditions` and `validations` of `spec`, and reports their errors. `kinds` are the kinds of
    /// objects that policies of this kind can apply to.
    pub(super) fn read(
        spec: Value<'_>,
        at: &Path<'_>,
        kinds: &[ApiKind],
        faults: &mut PolicyFaults,
    ) -> PolicyExpressions {
        let kinds = matched_kinds(spec, kinds);
        let mut compile = |expression: Value<'_>, at: &Path<'_>, target| {
            // A missing expression was already reported as a missing field, or need not be there.
            let text = Some(expression.str()).filter(|text| !text.is_empty())?;
            let compiled = Program::compile(text, target);
            if let Ok((_, checked)) = &compiled {
                for fault in
                    checked.undefined_fields(&|name| expression_fields::types_of_variable(name, &kinds))
                {
                    faults.warn_in_text(at, text, fault.at, fault.message);
                }
            }
            let report = |fault: ExpressionError| faults.report_in_text(at, text, fault.at, fault.message);
            compiled.map(|(program, _)| program).map_err(|all| all.into_iter().for_each(report)).ok()
        };
        let mut read = PolicyExpressions {
            ignores_failures: spec.get("failurePolicy").str() == "Ignore",
            ..PolicyExpressions::default()
        };
        let list_at = at.field("matchConditions");
        for (index, item) in spec.get("matchConditions").items().enumerate() {
            let item_at = list_at.index(index);
            let name = match item.get("name").str() {
                "" => format!("matchConditions[{index}]").into(),
                name => name.into(),
            };
            if let Some(program) =
                compile(item.get("expression"), &item_at.field("expression"), ExpressionPurpose::Condition)
            {
                read.conditions.push(MatchCondition { name, program });
            }
        }
        let list_at = at.field("validations");
        for (index, item) in spec.get("validations").items().enumerate() {
            let item_at = list_at.index(index);
            let (expression, message) = (item.get("expression"), item.get("message"));
            let program = compile(expression, &item_at.field("expression"), ExpressionPurpose::Condition);
            let message_at = item_at.field("messageExpression");
            let message_program =
                compile(item.get("messageExpression"), &message_at, ExpressionPurpose::Message);
            if let Some(program) = program {
                read.validations.push(Validation {
                    text: expression.str().into(),
                    program,
                    message: text_if_not_empty(message),
                    message_program,
                });
            }
        }
        read.with_sought_names()
    }

    /// Returns the expressions on which the verdict depends, that is, all but `messageExpression`.
    fn programs_except_messages(&self) -> impl Iterator<Item = &Program> {
        let conditions = self.conditions.iter().map(|condition| &condition.program);
        conditions.chain(self.validations.iter().map(|validation| &validation.program))
    }

    /// True if an expression uses `namespaceObject`.
    pub(super) fn need_namespace_object(&self) -> bool {
        let messages = self.validations.iter().filter_map(|validation| validation.message_program.as_ref());
        self.programs_except_messages().chain(messages).any(|program| program.needs_namespace)
    }

    /// Returns because of which expressions, if any, the verdict on an object depends on all of its fields.
    pub(super) fn object_dependencies(&self) -> impl Iterator<Item = ObjectDependency> {
        let conditions = self.conditions.iter().any(|condition| condition.program.reads_object);
        let validations = !self.validations.is_empty();
        let conditions = conditions.then_some(ObjectDependency::MatchConditions);
        conditions.into_iter().chain(validations.then_some(ObjectDependency::Validations))
    }

    /// Returns the expressions of a broken policy: only its match conditions, or none if these are invalid, and its
    /// `failurePolicy`.
    pub(super) fn conditions_of_broken_policy(self, are_usable: bool) -> PolicyExpressions {
        let conditions = if are_usable { self.conditions } else { Vec::new() };
        PolicyExpressions { conditions, validations: Vec::new(), ..self }.with_sought_names()
    }

    /// Returns the expressions with the names of the fields that they look for.
    fn with_sought_names(self) -> PolicyExpressions {
        let names = self.programs_except_messages().flat_map(|program| &program.names);
        PolicyExpressions { sought: ExpressionFieldNames::from_names(names), ..self }
    }

    /// True if the policy has neither match conditions nor validations.
    pub(super) fn is_empty(&self) -> bool {
        self.conditions.is_empty() && self.validations.is_empty()
    }
}

/// Returns the kinds that `match.resources` lists; all if it lists none of them.
fn matched_kinds(spec: Value<'_>, all: &[ApiKind]) -> Vec<ApiKind> {
    let listed = spec.get("match").get("resources");
    let is_listed = |kind: &ApiKind| listed.items().any(|name| name.str() == kind.name());
    let matched: Vec<ApiKind> = all.iter().copied().filter(is_listed).collect();
    if matched.is_empty() { all.to_vec() } else { matched }
}

/// The CEL variables `request` and `namespaceObject` as JSON texts, from which
/// [`RequestAndNamespaceJson::parse_request_and_namespace`] makes documents.
pub(super) struct RequestAndNamespaceJson {
    request: String,
    namespace: Option<String>,
}

impl RequestAndNamespaceJson {
    /// Writes `request` from what Tollgate knows of a request, and `namespaceObject` with the namespace's name and
    /// labels.
    pub(super) fn from_request(
        admission: &DecodedAttributes<'_>,
        context: &Context<'_>,
    ) -> RequestAndNamespaceJson {
        let object = admission.object;
        let kind = object.kind();
        let version = object.version.name();
        let group = kind.group();
        let namespace = admission.effective_namespace_if_namespaced();
        let mut request = format!(
            r#"{{"kind":{{"group":"{group}","version":"{version}","kind":"{}"}},"resource":{{"group":"{group}","version":"{version}","resource":"{}"}},"subResource":"","operation":"{}","name":{},"namespace":{},"userInfo":"#,
            kind.name(),
            kind.resource(),
            admission.operation.name(),
            gofmt::json_string(object.metadata().name()),
            gofmt::json_string(namespace.unwrap_or_default()),
        );
        let user =
            if admission.user.is_null_or_absent() { "{}".to_owned() } else { admission.user.to_json() };
        // Whoever sends a request decides how long it is: no more than it takes.
        request.reserve_exact(user.len() + 1);
        request.push_str(&user);
        drop(user);
        request.push('}');
        let namespace = namespace.map(|name| {
            let (name, labels) = (gofmt::json_string(name), labels_json(context.labels));
            format!(
                r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":{name},"labels":{labels}}}}}"#
            )
        });
        RequestAndNamespaceJson { request, namespace }
    }

    /// Parses the texts of `request` and `namespaceObject`; the latter is `None` for cluster-scoped objects.
    pub(super) fn parse_request_and_namespace(&self) -> (Option<Doc<'_>>, Option<Doc<'_>>) {
        let namespace = self.namespace.as_ref().and_then(|text| doc::parse(text).ok());
        let request = doc::parse(&self.request).ok();
        // Both texts are written above: an expression must not see null instead.
        debug_assert!(request.is_some() && namespace.is_some() == self.namespace.is_some());
        (request, namespace)
    }
}

/// Returns the labels of a namespace as JSON; no labels if they are not known.
pub(super) fn labels_json(labels: LabelsIfKnown<'_>) -> String {
    match labels {
        LabelsIfKnown::Known(labels) if !labels.is_null_or_absent() => labels.to_json(),
        _ => "{}".to_owned(),
    }
}

/// The message that a `messageExpression` returned, without white space around it; `None` if an API server would use
/// the fixed message instead.
// upstream v1.37 validatingadmissionpolicy Validate
fn usable_message(evaluated: &str) -> Option<&str> {
    const MAX_BYTES: usize = 5 << 10;
    let message = evaluated.trim();
    (!message.is_empty() && evaluated.len() <= MAX_BYTES && !message.contains('\n')).then_some(message)
}

/// Visits the values that API servers store byte by byte: opaque parameters, and the data of taints.
fn visit_opaque_values(
    admission: &DecodedAttributes<'_>,
    context: &Context<'_>,
    visit: &mut dyn FnMut(&Path<'_>, Value<'_>),
) {
    site::visit_parameters(admission, context.classes, &mut |at, parameters| visit(at, parameters.value));
    visit_taints_tolerations_and_selectors(admission, &mut |site| {
        if let TaintTolerationOrSelector::Taint { at, taint } = site {
            visit(&at.field("data"), taint.taint.data());
        }
    });
}

/// Returns a text that is equal for two JSON values only if they have the same keys and values in the same order,
/// duplicates included.
fn exact_comparison_text(value: Value<'_>) -> String {
    let mut out = String::new();
    for part in value.self_and_descendants() {
        // Writing to a `String` cannot fail.
        _ = write!(out, "{:?} {} {:?};", part.kind(), part.len(), part.str());
        if part.kind() == ValueKind::Number {
            out.push_str(part.text());
        }
    }
    out
}

impl Policy {
    /// Reports keys in opaque values that Go decoders read as other keys, so that expressions would not see what a
    /// driver sees. Values that the stored object has as well are not reported. True if something was reported.
    pub(super) fn report_ambiguous_keys(&self, report: &mut ViolationReport<'_>) -> bool {
        let (admission, context) = (report.admission, report.context);
        if self.expressions.is_empty() {
            return false;
        }
        let before = report.reported;
        let mut stored: HashSet<String> = HashSet::new();
        if let Some(old) = admission.with_old_as_object() {
            visit_opaque_values(&old, context, &mut |_, value| {
                _ = stored.insert(exact_comparison_text(value))
            });
        }
        visit_opaque_values(admission, context, &mut |at, value| {
            let sought = &self.expressions.sought;
            if value.is_null_or_absent() {
                return;
            }
            if stored.is_empty() || !stored.contains(&exact_comparison_text(value)) {
                report.check_json(self, POLICY_VALIDATION, JsonCheck::SoughtKeys(sought), value, at);
            }
        });
        report.reported > before
    }

    /// True if every match condition holds, so that the policy applies. An expression that cannot be evaluated is
    /// reported, or counts as true with `failurePolicy: Ignore`.
    pub(super) fn match_conditions_hold(
        &self,
        variables: &Variables<'_>,
        report: &mut ViolationReport<'_>,
    ) -> bool {
        let mut failures = Vec::new();
        for condition in &self.expressions.conditions {
            if self.report_unavailable_namespace_labels(&condition.program, report) {
                return false;
            }
            match condition.program.evaluate_bool(variables) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(reason) => failures.push(format!("match condition {}: {reason}", condition.name)),
            }
        }
        if self.expressions.ignores_failures || failures.is_empty() {
            return true;
        }
        for failure in &failures {
            self.report_unevaluable(failure, report);
        }
        false
    }

    /// Reports that an expression cannot be evaluated: which one, and why.
    fn report_unevaluable(&self, failure: &str, report: &mut ViolationReport<'_>) {
        let detail = format!("cannot evaluate {}: {failure}", self.describe());
        report.report(self, POLICY_VALIDATION, &Path::ROOT).internal_error(detail);
    }

    /// Evaluates the validations, and reports a violation for each that is false, or that cannot be evaluated unless the
    /// policy has `failurePolicy: Ignore`. Stops at an expression that needs namespace labels which are not known.
    pub(super) fn check_validations(&self, variables: &Variables<'_>, report: &mut ViolationReport<'_>) {
        for (index, validation) in self.expressions.validations.iter().enumerate() {
            if self.report_unavailable_namespace_labels(&validation.program, report) {
                return;
            }
            match validation.program.evaluate_bool(variables) {
                Ok(true) => {}
                Ok(false) => {
                    let computed = validation.message_program.as_ref();
                    let computed = computed.and_then(|program| program.evaluate_string(variables).ok());
                    let fixed = validation.message.as_deref();
                    let message = match computed.as_deref().and_then(usable_message).or(fixed) {
                        Some(message) => message,
                        None => &format!("failed expression: {}", validation.text),
                    };
                    report.report_forbidden(self, POLICY_VALIDATION, &Path::ROOT, message);
                }
                Err(_) if self.expressions.ignores_failures => {}
                Err(reason) => self.report_unevaluable(&format!("validations[{index}]: {reason}"), report),
            }
        }
    }

    /// Reports that the labels of the namespace are not known if the expression uses them. True if it was reported.
    fn report_unavailable_namespace_labels(
        &self,
        program: &Program,
        report: &mut ViolationReport<'_>,
    ) -> bool {
        let namespace = report.admission.effective_namespace_if_namespaced();
        let is_unknown = program.needs_namespace
            && namespace.is_some()
            && matches!(report.context.labels, LabelsIfKnown::Unknown);
        if let Some(namespace) = namespace.filter(|_| is_unknown) {
            let detail = format!(
                "{} uses namespaceObject, but namespace {namespace:?} is not available",
                self.describe()
            );
            let metadata = Path::ROOT.field("metadata");
            report.report(self, POLICY_LOOKUP, &metadata.field("namespace")).internal_error(detail);
        }
        is_unknown
    }
}

/// Compiles and evaluates one expression. For tests of expressions that the API server evaluates, such as match
/// conditions of webhooks.
pub fn evaluate_expression(
    expression: &str,
    object: Value<'_>,
    old: Value<'_>,
    request: Value<'_>,
) -> Result<bool, String> {
    let (program, _) = Program::compile(expression, ExpressionPurpose::Condition)
        .map_err(|faults| faults.into_iter().map(|fault| fault.message).collect::<Vec<_>>().join("; "))?;
    program.evaluate_bool(&Variables::new(object, old, request, Value::absent()))
}
