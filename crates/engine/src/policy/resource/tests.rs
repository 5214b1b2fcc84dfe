//! Tests the loading of policy resources, and requests that match a policy that cannot be evaluated.

use std::sync::Arc;

use super::{Acceptance, PolicyResource};
use crate::engine::{Attributes, Engine, LabelsIfKnown, Verdict};
use crate::policy::{PolicyFile, PolicyKind, PolicySet};
use crate::rules::{FindingLevel, RuleSet};
use tollgate_api::profile::Profile;
use tollgate_document::doc;
use tollgate_formats::gotime;

fn toleration_policy_resource(name: &str, generation: i64, spec: &str) -> PolicyResource {
    let json = format!(
        r#"{{"apiVersion":"tollgate.dev/v1alpha1","kind":"TolerationPolicy","metadata":{{"name":"{name}",
            "uid":"uid-{name}","generation":{generation},"managedFields":[{{}}]}},"spec":{spec},"status":{{}}}}"#
    );
    PolicyResource::new(PolicyKind::Toleration, json)
}

fn load(files: &[PolicyFile], resources: &[PolicyResource], previous: Option<&PolicySet>) -> PolicySet {
    PolicySet::load_with_resources(files, &|_| Err("no files".to_owned()), resources, previous).unwrap()
}

/// The findings about a claim in a namespace, each with its level.
fn policy_findings_for_claim_in_namespace(
    set: PolicySet,
    namespace: &str,
) -> Vec<(FindingLevel, String, String)> {
    let claim = format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"c","namespace":"{namespace}"}},
            "spec":{{"devices":{{"requests":[{{"name":"r","exactly":{{"deviceClassName":"gpu.example.com",
            "tolerations":[{{"key":"example.com/a","operator":"Exists"}}]}}}}]}}}}}}"#
    );
    policy_findings_for_object(set, &claim)
}

fn policy_findings_for_object(set: PolicySet, object: &str) -> Vec<(FindingLevel, String, String)> {
    let object = doc::parse(object).unwrap();
    let engine = Engine::new(vec![Profile::DEFAULT], RuleSet::compile(|_| true)).with_policies(Arc::new(set));
    let request = Attributes::for_create(object.root(), "", "2026-01-01T00:00:00Z");
    let Verdict::Checked(found) = engine.validate(&request, LabelsIfKnown::Unknown) else {
        panic!("skipped")
    };
    let ours = found.into_iter().filter(|found| found.policy.is_some());
    ours.map(|found| (found.level, found.policy.unwrap().to_string(), found.finding.detail.into())).collect()
}

#[test]
fn a_resource_is_a_policy_with_its_name_and_generation() {
    let set = load(
        &[],
        &[toleration_policy_resource("research", 3, r#"{"allow":[{"key":"example.com/b"}]}"#)],
        None,
    );
    assert_eq!(set.policy_resource_states()[0].acceptance, Acceptance::Accepted);
    let found = policy_findings_for_claim_in_namespace(set, "ml");
    let [(level, policy, detail)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((*level, &**policy), (FindingLevel::Deny, "TolerationPolicy/research generation 3"));
    assert!(detail.contains("in policy TolerationPolicy/research,"), "{detail}");
}

#[test]
fn the_text_of_a_file_counts() {
    let text = "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {name: a}\nspec: {}\n";
    let files = [PolicyFile { name: "a.yaml".to_owned(), text: text.to_owned() }];
    let deny_all = r#"{"allow":[]}"#;
    let set = load(&files, &[toleration_policy_resource("a", 1, deny_all)], None);
    assert_eq!(set.policy_resource_states()[0].acceptance, Acceptance::ReplacedByFile);
    assert_eq!(policy_findings_for_claim_in_namespace(set, "ml"), []);
    assert_eq!(
        policy_findings_for_claim_in_namespace(
            load(&files, &[toleration_policy_resource("b", 1, deny_all)], None),
            "ml"
        )
        .len(),
        1
    );
}

/// A broken spec, the field named in the error, and the resulting level in the namespaces `ml` and `web`.
#[test]
fn requests_that_a_broken_policy_matches_get_its_failure_policy() {
    let deny = Some(FindingLevel::Deny);
    let table = [
        (r#"{"allow":[{"key":"no key"}]}"#, "spec.allow[0].key", deny, deny),
        (r#"{"alow":[]}"#, "spec.alow", deny, deny),
        (r#"{"match":{"namespaces":["ml"]},"alow":[]}"#, "spec.alow", deny, None),
        (r#"{"match":{"namespace":["ml"]}}"#, "spec.match.namespace", deny, deny),
        (r#"{"match":{"namespaces":["ML"]}}"#, "spec.match.namespaces[0]", deny, deny),
        (
            r#"{"match":{"namespaces":["ml"],"operations":["create"]}}"#,
            "spec.match.operations[0]",
            deny,
            None,
        ),
        (r#"{"match":{"excludeNamespaces":["web"],"drivers":["a"]}}"#, "spec.match.drivers", deny, None),
        (
            r#"{"failurePolicy":"Ignore","alow":[]}"#,
            "spec.alow",
            Some(FindingLevel::Warn),
            Some(FindingLevel::Warn),
        ),
        (r#"{"failurePolicy":"ignore"}"#, "spec.failurePolicy", deny, deny),
        (r#"{"action":"Warn","alow":[]}"#, "spec.alow", Some(FindingLevel::Warn), Some(FindingLevel::Warn)),
        (
            r#"{"action":"Audit","alow":[]}"#,
            "spec.alow",
            Some(FindingLevel::Audit),
            Some(FindingLevel::Audit),
        ),
        (
            r#"{"matchConditions":[{"name":"a","expression":"request.namespace == 'ml'"}],"validations":[{"expression":"1 +"}]}"#,
            "spec.validations[0].expression",
            deny,
            None,
        ),
        (
            r#"{"matchConditions":[{"name":"a","expression":"request.namespace == 'ml'"},{"name":"b","expression":"1 +"}]}"#,
            "spec.matchConditions[1].expression",
            deny,
            deny,
        ),
        (r#"{"match":[]}"#, "spec.match", deny, deny),
        ("null", "spec", deny, deny),
        (r#"[]"#, "spec", deny, deny),
    ];
    for (spec, field, in_ml, in_web) in table {
        for (namespace, expected) in [("ml", in_ml), ("web", in_web)] {
            let set = load(&[], &[toleration_policy_resource("broken", 1, spec)], None);
            let Acceptance::Rejected(errors) = &set.policy_resource_states()[0].acceptance else {
                panic!("{spec}")
            };
            assert_eq!(errors[0].field, field, "{spec}: {errors:?}");
            assert!(set.can_deny_regardless_of_contents(
                tollgate_api::profile::ApiKind::ResourceClaim,
                crate::policy::PolicySubset::Every
            ));
            let found = policy_findings_for_claim_in_namespace(set, namespace);
            assert_eq!(found.first().map(|found| found.0), expected, "{spec} in {namespace}: {found:?}");
            if let Some((_, _, detail)) = found.first() {
                let start = format!("cannot evaluate policy TolerationPolicy/broken: {field}: ");
                assert!(detail.starts_with(&start), "{detail}");
            }
        }
    }
}

#[test]
fn only_what_changed_is_compiled_again_and_the_set_is_the_same() {
    let spec = r#"{"allow":[{"key":"example.com/b"}]}"#;
    let first = load(
        &[],
        &[toleration_policy_resource("b", 1, spec), toleration_policy_resource("a", 1, "{}")],
        None,
    );
    let again = load(
        &[],
        &[toleration_policy_resource("a", 2, r#"{"alow":[]}"#), toleration_policy_resource("b", 1, spec)],
        Some(&first),
    );
    let fresh = load(
        &[],
        &[toleration_policy_resource("b", 1, spec), toleration_policy_resource("a", 2, r#"{"alow":[]}"#)],
        None,
    );
    assert_eq!(again.digest(), fresh.digest());
    assert_ne!(again.digest(), first.digest());
    let policy = |set: &PolicySet, name: &str| {
        let state = set.policy_resource_states().iter().find(|state| &*state.name == name).unwrap();
        Arc::clone(state.policy.as_ref().unwrap())
    };
    assert!(Arc::ptr_eq(&policy(&first, "b"), &policy(&again, "b")));
    assert!(!Arc::ptr_eq(&policy(&first, "a"), &policy(&again, "a")));
}

#[test]
fn what_only_files_may_have_is_refused() {
    let text = format!(r#"{{"contact":"{}"}}"#, "x".repeat(300_000));
    let many = format!(r#"{{"allow":[{}]}}"#, vec![r#"{"key":"a/b"}"#; 1_025].join(","));
    for (spec, field) in [(&text, "spec"), (&many, "spec.allow")] {
        let set = load(&[], &[toleration_policy_resource("large", 1, spec)], None);
        let Acceptance::Rejected(errors) = &set.policy_resource_states()[0].acceptance else {
            panic!("accepted")
        };
        assert_eq!(errors[0].field, field);
    }
    let spec = r#"{"apiVersion":"tollgate.dev/v1alpha1","kind":"TaintPolicy","metadata":{"name":"t"},
        "spec":{"data":[{"key":"a/b","schemaFile":"a.json"}]}}"#;
    let set = load(&[], &[PolicyResource::new(PolicyKind::Taint, spec)], None);
    let Acceptance::Rejected(errors) = &set.policy_resource_states()[0].acceptance else {
        panic!("accepted")
    };
    assert_eq!(errors[0].field, "spec.data[0].schemaFile");
    assert!(errors[0].message.contains("`schema`"));
}

#[test]
fn the_entry_that_expires_next_is_named() {
    let spec = r#"{"allow":[{"key":"a/b","expires":"2026-03-01T00:00:00Z"},{"key":"c/*","expires":"2026-02-01T00:00:00Z"}],
        "deny":[{"key":"d/e","expires":"2026-04-01T00:00:00Z"}]}"#;
    let set = load(&[], &[toleration_policy_resource("p", 1, spec)], None);
    let next = |now: &str| {
        let expiry = set.policy_resource_states()[0].next_expiry(gotime::parse_rfc3339(now).unwrap())?;
        Some(format!("{} {}", gotime::rfc3339(expiry.time), expiry.entry))
    };
    let table = [
        ("2026-01-01T00:00:00Z", Some("2026-02-01T00:00:00Z allow[1] c/*")),
        ("2026-02-01T00:00:00Z", Some("2026-03-01T00:00:00Z allow[0] a/b")),
        ("2026-03-15T00:00:00Z", Some("2026-04-01T00:00:00Z deny[0] d/e")),
        ("2026-04-01T00:00:00Z", None),
    ];
    for (now, expected) in table {
        assert_eq!(next(now).as_deref(), expected, "{now}");
    }
}

#[test]
fn a_broken_policy_is_about_its_drivers_only() {
    let policy = |kind: PolicyKind, spec: &str| {
        let metadata = r#""metadata":{"name":"broken"}"#;
        load(&[], &[PolicyResource::new(kind, format!(r#"{{{metadata},"spec":{spec}}}"#))], None)
    };
    let slice = r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"s"},"spec":{
        "driver":"DRIVER","nodeName":"n","pool":{"name":"n","generation":1,"resourceSliceCount":1},"devices":[]}}"#;
    let claim = r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c","namespace":"ml"},
        "spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"g"}}],
        "config":[{"opaque":{"driver":"DRIVER","parameters":{}}}]}}}"#;
    let rule = r#"{"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{"name":"r"},
        "spec":{"deviceSelector":{"driver":"DRIVER"},"taint":{"key":"a/b","effect":"NoSchedule"}}}"#;
    let of_a = r#"{"match":{"drivers":["a.example.com"]},"tipo":1}"#;
    let validating =
        r#"{"match":{"drivers":["a.example.com"]},"tipo":1,"validations":[{"expression":"true"}]}"#;
    let table = [
        (PolicyKind::Taint, slice, of_a, [true, false]),
        (PolicyKind::Taint, rule, of_a, [true, false]),
        (PolicyKind::TaintRule, rule, of_a, [true, false]),
        (PolicyKind::Parameter, claim, of_a, [true, false]),
        (PolicyKind::Taint, slice, validating, [true, true]),
    ];
    for (kind, object, spec, expected) in table {
        for (driver, expected) in ["a.example.com", "b.example.com"].into_iter().zip(expected) {
            let found = policy_findings_for_object(policy(kind, spec), &object.replace("DRIVER", driver));
            assert_eq!(!found.is_empty(), expected, "{} {driver} {spec}", kind.name());
        }
    }
}
