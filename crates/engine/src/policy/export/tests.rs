//! The exported expressions give the verdicts of the engine, and no field is lost.

mod evaluate;
mod requests;

use std::collections::BTreeSet;

use super::super::kind::PolicyKind;
use super::super::schema::{FieldType, ObjectSchema};
use super::omission::{FieldTreatment, Omission, OmissionReason, field_treatment};
use super::{AdmissionPolicyExport, PolicySet};
use crate::policy::PolicyFile;
use tollgate_api::profile::Profile;
use tollgate_formats::gotime;

pub(super) const NOW: &str = "2026-11-17T00:00:00Z";

/// Loads policies from a text.
fn load(text: &str) -> PolicySet {
    let file = PolicyFile { name: "p.yaml".to_owned(), text: text.to_owned() };
    PolicySet::load(&[file], &|path| Err(path.to_owned())).unwrap()
}

/// Exports policies for a release.
fn export(set: &PolicySet, release: &str) -> AdmissionPolicyExport {
    set.export_as_admission_policies(&[Profile::named(release).unwrap()], gotime::parse_rfc3339(NOW).unwrap())
}

fn spec(kind: PolicyKind) -> &'static ObjectSchema {
    let row = kind.document_schema().fields.iter().find(|field| field.name == "spec").unwrap();
    let FieldType::Object(spec) = &row.ty else { panic!("{} has no spec", kind.name()) };
    spec
}

/// A new field must not be exported as if it did nothing.
#[test]
fn every_field_is_exported_or_listed() {
    for kind in PolicyKind::ALL {
        for field in spec(kind).fields {
            let is_unknown = matches!(
                field_treatment(kind, field.name),
                FieldTreatment::LeftOut(OmissionReason::UnknownField, _)
            );
            assert!(
                !is_unknown,
                "{}: say in policy/export/omission.rs what happens to {}",
                kind.name(),
                field.name
            );
        }
        let later = field_treatment(kind, "aFieldOfALaterRelease");
        assert!(matches!(later, FieldTreatment::LeftOut(OmissionReason::UnknownField, _)));
    }
}

/// Parts that depend on time, cluster state, JSON Schemas or failures are listed as omissions, and the export
/// is never stricter than the policy.
#[test]
fn what_cannot_be_expressed_is_listed_and_left_out() {
    let policy = |kind: &str, spec: &str| {
        format!("apiVersion: tollgate.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: p}}\nspec: {spec}\n")
    };
    let table = [
        ("TolerationPolicy", "{allow: [{key: a/b, expires: 2026-11-16T00:00:00Z}]}", None),
        ("TolerationPolicy", "{deny: [{key: a/b, expires: 2026-11-16T00:00:00Z}]}", None),
        (
            "TolerationPolicy",
            "{allow: [{key: a/b, expires: 2026-12-01T00:00:00Z}]}",
            Some(("spec.allow[0].expires", OmissionReason::Time)),
        ),
        (
            "TolerationPolicy",
            "{deny: [{key: a/b, expires: 2026-12-01T00:00:00Z}]}",
            Some(("spec.deny[0].expires", OmissionReason::Time)),
        ),
        ("TolerationPolicy", "{defaults: [{key: a/b}]}", Some(("spec.defaults", OmissionReason::Defaults))),
        (
            "TaintRulePolicy",
            "{maxImpact: {pods: 1}, onUnknown: Warn}",
            Some(("spec.maxImpact", OmissionReason::ClusterState)),
        ),
        (
            "TaintPolicy",
            "{data: [{key: a/b, schema: {type: object}}]}",
            Some(("spec.data[0].schema", OmissionReason::JsonSchema)),
        ),
        ("ParameterPolicy", "{unknown: Deny}", Some(("spec.unknown", OmissionReason::JsonSchema))),
        (
            "TaintPolicy",
            "{failurePolicy: Ignore, matchConditions: [{expression: object.a == 1}], allow: []}",
            Some(("spec.matchConditions", OmissionReason::IgnoredFailure)),
        ),
        (
            "TaintPolicy",
            "{validations: [{expression: \"object.kind in ['a', 1]\"}]}",
            Some(("spec.validations[0].expression", OmissionReason::Expression)),
        ),
        (
            "TaintPolicy",
            "{validations: [{expression: \"object.kind.reverse() != 'a'\"}]}",
            Some(("spec.validations[0].expression", OmissionReason::Expression)),
        ),
        (
            "TaintPolicy",
            "{validations: [{expression: \"'%s'.format([object.spec]) != 'a'\"}]}",
            Some(("spec.validations[0].expression", OmissionReason::Expression)),
        ),
        (
            "TaintPolicy",
            "{match: {resources: [ResourceSlicePatch]}, allow: []}",
            Some(("spec.match.resources", OmissionReason::Kind)),
        ),
        (
            "TolerationPolicy",
            "{validations: [{expression: 'true'}]}",
            Some(("spec.validations", OmissionReason::AmbiguousKeys)),
        ),
    ];
    for (kind, spec, expected) in table {
        let exported = export(&load(&policy(kind, spec)), "1.37");
        let listed: Vec<(&str, OmissionReason)> = exported
            .omissions
            .iter()
            .map(|Omission { field, reason, .. }| (field.as_str(), *reason))
            .collect();
        assert_eq!(listed, expected.into_iter().collect::<Vec<_>>(), "{spec}");
        let is_weaker =
            spec.contains("deny: [{") || spec.contains("Ignore") || spec.contains("expression: \"");
        let denies = exported.policies.iter().any(|policy| policy.validations.len() > 1);
        assert!(!(is_weaker && denies), "{spec}: {:?}", exported.policies);
    }
}

/// The message about an error contains the expression, and an API server drops a warning with a line break.
#[test]
fn validations_of_policies_are_one_line() {
    let text = "apiVersion: tollgate.dev/v1alpha1
kind: TaintRulePolicy
metadata: {name: p}
spec:
  action: Warn
  validations:
  - expression: |
      object.spec.taint.key != 'a/b'  // not this one
      && object.spec.nothing == 1
  - expression: object.spec.nothing
";
    let exported = export(&load(text), "1.37");
    let policy = exported.policies.first().unwrap();
    let [.., first, second] = policy.validations.as_slice() else { panic!("{policy:?}") };
    assert_eq!(
        [&first.expression, &second.expression],
        ["variables.validation_p_0", "variables.validation_p_1"]
    );
    let [.., first, second] = policy.variables.as_slice() else { panic!("{policy:?}") };
    assert_eq!([&first.name, &second.name], ["validation_p_0", "validation_p_1"]);
    assert!(first.expression.contains("// not this one\n&& object.spec.nothing == 1"), "{first:?}");
    // It must be bool, and its type is not known.
    assert_eq!(second.expression, "((\nobject.spec.nothing\n) && true)");
}

/// A variable, because the message shares the values that Tollgate gives `object` and `request` with the validation.
#[test]
fn message_expressions_are_exported_with_the_name_of_the_policy() {
    let text = "apiVersion: tollgate.dev/v1alpha1
kind: TolerationPolicy
metadata: {name: p}
spec:
  contact: gpu-team
  validations:
  - expression: size(object.spec.devices.requests) <= 1
    messageExpression: \"'too many in ' + request.namespace\"
  - expression: object.metadata.name != 'x'
    messageExpression: object.metadata.name
  - expression: object.metadata.name != 'y'
    messageExpression: \"'%s'.format([object.metadata.name])\"
";
    let exported = export(&load(text), "1.37");
    let policy = exported.policies.first().unwrap();
    let messages = policy.validations.iter().map(|validation| validation.message_expression.as_deref());
    let expected = [
        None,
        Some(
            "variables.message_p_0.trim() == '' ? '' : variables.message_p_0.trim() + ' (policy p; contact: gpu-team)'",
        ),
        Some(
            "variables.message_p_1.trim() == '' ? '' : variables.message_p_1.trim() + ' (policy p; contact: gpu-team)'",
        ),
        None,
    ];
    assert_eq!(messages.collect::<Vec<_>>(), expected);
    let variable = |name: &str| policy.variables.iter().find(|variable| variable.name == name).unwrap();
    assert_eq!(
        variable("message_p_0").expression,
        "[variables.request].map(request, (\n'too many in ' + request.namespace\n))[0]"
    );
    // An API server accepts only strings.
    assert_eq!(
        variable("message_p_1").expression,
        "[variables.object].map(object, [(\nobject.metadata.name\n)].map(text, type(text) == string ? string(text) : '')[0])[0]"
    );
    let omission = exported.omissions.iter().find(|omission| omission.reason == OmissionReason::Expression);
    assert_eq!(omission.unwrap().field, "spec.validations[2].messageExpression");
}

#[test]
fn policies_with_similar_names_have_variables_of_their_own() {
    let policy = |name: &str| {
        format!(
            "apiVersion: tollgate.dev/v1alpha1\nkind: TaintRulePolicy\nmetadata: {{name: {name}}}\n\
             spec: {{validations: [{{expression: object.spec.nothing}}]}}\n"
        )
    };
    let text = ["a-b.c", "a.b-c", "a-b-c"].map(policy).join("---\n");
    let exported = export(&load(&text), "1.37");
    let variables = exported.policies.iter().flat_map(|policy| &policy.variables);
    let names =
        variables.map(|variable| variable.name.as_str()).filter(|name| name.starts_with("validation_"));
    let names: BTreeSet<&str> = names.collect();
    let expected = ["validation_a_b_c_0", "validation_a_b_c_2_0", "validation_a_b_c_3_0"];
    assert_eq!(names, BTreeSet::from(expected));
}
