//! The webhook configurations in the install manifests: they register the kinds and versions that profiles serve, the
//! base some and the overlays the others, and no more; they fail open where they must.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "reads files, builds JSON")]

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhookConfiguration,
};
use serde_json::Value;
use tollgate_api::profile::{self, ApiKind};
use tollgate_document::doc;
use tollgate_engine::engine::{Attributes, Engine, LabelsIfKnown, Operation};
use tollgate_engine::policy::{PolicyFile, PolicySet};
use tollgate_engine::rules::RuleSet;

const OVERLAYS: [&str; 4] = ["classic-dra", "foundationdb", "kep-5055-r1", "pods"];

fn documents(text: &str) -> Vec<Value> {
    tollgate_document::source::documents(text)
        .map(|document| {
            let document = document.unwrap_or_else(|fault| panic!("{fault:?}"));
            serde_json::from_str(&document.doc.root().to_json()).expect("JSON")
        })
        .collect()
}

fn file(path: &str) -> Vec<Value> {
    let path = format!("{}/manifests/{path}", env!("CARGO_MANIFEST_DIR"));
    documents(&std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}")))
}

/// The webhook configurations that an overlay makes `--register` write.
fn listed(overlay: &str) -> Vec<Value> {
    let patch = file(&format!("components/{overlay}/deployment.yaml")).remove(0);
    let with = patch.pointer("/spec/template/spec/containers/0/env/0").expect("a variable");
    assert_eq!(*with, serde_json::json!({"name": "TOLLGATE_REGISTER_WITH", "value": overlay}));
    let mut found = file(&format!("webhooks/{overlay}-validating.yaml"));
    if ["classic-dra", "kep-5055-r1"].contains(&overlay) {
        found.extend(file(&format!("webhooks/{overlay}-mutating.yaml")));
    }
    found
}

/// Checks that a document decodes without loss, which means that no field is misspelled.
fn check_whole<T: serde::de::DeserializeOwned + serde::Serialize>(document: &Value) -> T {
    let typed: T =
        serde_json::from_value(document.clone()).unwrap_or_else(|error| panic!("{error}: {document:#}"));
    assert_eq!(&serde_json::to_value(&typed).expect("JSON"), document);
    typed
}

/// The resources that a webhook is registered for, as group, version and resource.
fn registered(name: &str, rules: Option<Vec<RuleWithOperations>>) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for rule in rules.unwrap_or_default() {
        assert_eq!(
            rule.operations.as_deref(),
            Some(&["CREATE".to_owned(), "UPDATE".to_owned()][..]),
            "{name}"
        );
        for group in rule.api_groups.iter().flatten() {
            for version in rule.api_versions.iter().flatten() {
                for resource in rule.resources.iter().flatten() {
                    let kind = kind_of(group, resource.split('/').next().unwrap_or_default());
                    let scope = if kind.is_namespaced() { "Namespaced" } else { "Cluster" };
                    assert_eq!(rule.scope.as_deref(), Some(scope), "{name}: {resource}");
                    found.push((group.clone(), version.clone(), resource.clone()));
                }
            }
        }
    }
    found
}

fn kind_of(group: &str, resource: &str) -> ApiKind {
    let is_it = |kind: &ApiKind| kind.group() == group && kind.resource() == resource;
    ApiKind::ALL.into_iter().find(is_it).unwrap_or_else(|| panic!("{group}/{resource} is not judged"))
}

fn check_conditions(name: &str, conditions: Option<Vec<MatchCondition>>) {
    let conditions = conditions.expect("conditions");
    let first = conditions.first().map(|condition| condition.name.as_str());
    let changed = ["spec-changed", "status-changed", "class-changed", "finalizers-removed"];
    assert!(first.is_some_and(|first| changed.contains(&first)), "{name}: {first:?}");
}

/// Resource names and the kinds behind them.
const RESOURCES: [(&str, ApiKind); 5] = [
    ("resourceclaims", ApiKind::ResourceClaim),
    ("resourceclaimtemplates", ApiKind::ResourceClaimTemplate),
    ("resourceslices", ApiKind::ResourceSlice),
    ("devicetaintrules", ApiKind::DeviceTaintRule),
    ("deviceclasses", ApiKind::DeviceClass),
];

/// Checks that every version that a release serves is registered, and no others.
fn check_rules(name: &str, rules: &[RuleWithOperations]) -> Vec<String> {
    let mut resources = Vec::new();
    for rule in rules {
        assert_eq!(rule.api_groups.as_deref(), Some(&["resource.k8s.io".to_owned()][..]), "{name}");
        assert_eq!(
            rule.operations.as_deref(),
            Some(&["CREATE".to_owned(), "UPDATE".to_owned()][..]),
            "{name}"
        );
        for resource in rule.resources.iter().flatten() {
            let known = RESOURCES.iter().find(|(known, _)| known == resource);
            let (_, kind) = known.unwrap_or_else(|| panic!("{name}: {resource}"));
            let mut served: Vec<&str> = profile::ALL
                .iter()
                .filter(|profile| profile.name.starts_with("1."))
                .flat_map(|profile| profile.versions(*kind).iter().map(|version| version.name()))
                .collect();
            served.sort_unstable();
            served.dedup();
            let mut registered: Vec<&str> = rule.api_versions.iter().flatten().map(String::as_str).collect();
            registered.sort_unstable();
            assert_eq!(registered, served, "{name}: {resource}");
            resources.push(resource.clone());
        }
    }
    resources
}

#[test]
fn webhooks_are_narrow_and_cover_what_releases_serve() {
    let find = |name: &str| file(&format!("webhooks/{name}.yaml")).remove(0);
    let validating: ValidatingWebhookConfiguration =
        serde_json::from_value(find("validating")).expect("decodes");
    let mut policies = Vec::new();
    let mut resources = Vec::new();
    for webhook in validating.webhooks.into_iter().flatten() {
        let name = webhook.name.clone();
        resources.extend(check_rules(&name, webhook.rules.as_deref().unwrap_or_default()));
        policies.push(webhook.failure_policy.expect("a policy"));
        assert_eq!(webhook.match_policy.as_deref(), Some("Equivalent"), "{name}");
        assert_eq!((webhook.side_effects.as_str(), webhook.timeout_seconds), ("None", Some(3)), "{name}");
        assert_eq!(webhook.admission_review_versions, ["v1"], "{name}");
        // An entry without it must fail open: labels and finalizers can be changed while nobody answers.
        match webhook.match_conditions.as_deref() {
            Some([first, ..]) => assert_eq!(first.name, "spec-changed", "{name}"),
            _ => assert_eq!(
                (&*name, policies.last().map(String::as_str)),
                ("classes.validate.tollgate.dev", Some("Ignore"))
            ),
        }
        assert_eq!(
            webhook.client_config.service.expect("a service").path.as_deref(),
            Some("/validate"),
            "{name}"
        );
    }
    // What is wide only because of parameters, `validations` and lints fails open.
    assert_eq!(policies, ["Fail", "Ignore", "Ignore", "Ignore", "Fail", "Ignore"]);
    let mut all: Vec<&str> = resources.iter().map(String::as_str).collect();
    all.dedup();
    assert_eq!(
        all,
        [
            "resourceclaims",
            "resourceclaimtemplates",
            "resourceclaims",
            "resourceclaimtemplates",
            "resourceslices",
            "devicetaintrules",
            "deviceclasses"
        ]
    );
    let mutating: MutatingWebhookConfiguration = serde_json::from_value(find("mutating")).expect("decodes");
    let mut resources = Vec::new();
    for webhook in mutating.webhooks.into_iter().flatten() {
        let name = webhook.name.clone();
        resources.extend(check_rules(&name, webhook.rules.as_deref().unwrap_or_default()));
        assert_eq!(webhook.failure_policy.as_deref(), Some("Ignore"), "{name}");
        assert_eq!(webhook.match_policy.as_deref(), Some("Equivalent"), "{name}");
        assert_eq!((webhook.side_effects.as_str(), webhook.timeout_seconds), ("None", Some(3)), "{name}");
        assert_eq!(
            webhook.client_config.service.expect("a service").path.as_deref(),
            Some("/mutate"),
            "{name}"
        );
    }
    assert_eq!(
        resources,
        ["resourceclaims", "resourceclaimtemplates"],
        "the API server fills in all other defaults"
    );
}

#[test]
fn overlays_register_every_kind_that_the_base_does_not() {
    let mut validated = BTreeSet::new();
    for overlay in OVERLAYS {
        for document in listed(overlay) {
            assert_eq!(document["metadata"]["name"], format!("tollgate-{overlay}"));
            if document["kind"] == "MutatingWebhookConfiguration" {
                let typed: MutatingWebhookConfiguration = check_whole(&document);
                for webhook in typed.webhooks.into_iter().flatten() {
                    assert_eq!(webhook.failure_policy.as_deref(), Some("Ignore"), "{}", webhook.name);
                    assert!(!registered(&webhook.name, webhook.rules).is_empty());
                    check_conditions(&webhook.name, webhook.match_conditions);
                    let service = webhook.client_config.service.expect("a service");
                    assert_eq!(service.path.as_deref(), Some("/mutate"), "{}", webhook.name);
                }
                continue;
            }
            let typed: ValidatingWebhookConfiguration = check_whole(&document);
            for webhook in typed.webhooks.into_iter().flatten() {
                let rules = registered(&webhook.name, webhook.rules);
                // Pods, status, databases and drivers that let go of a claim are not kept from going on.
                let must_go_on = |(group, _, resource): &(String, String, String)| {
                    resource.ends_with("/status")
                        || webhook.name.starts_with("finalizers.")
                        || !kind_of(group, resource.split('/').next().unwrap_or_default()).has_full_schema()
                };
                let expected = if rules.iter().any(must_go_on) { "Ignore" } else { "Fail" };
                assert_eq!(webhook.failure_policy.as_deref(), Some(expected), "{}", webhook.name);
                assert_eq!((webhook.side_effects.as_str(), webhook.timeout_seconds), ("None", Some(3)));
                check_conditions(&webhook.name, webhook.match_conditions);
                let service = webhook.client_config.service.expect("a service");
                assert_eq!(service.path.as_deref(), Some("/validate"), "{}", webhook.name);
                validated.extend(rules);
            }
        }
    }
    let registered: BTreeSet<ApiKind> = validated
        .iter()
        .map(|(group, version, resource)| {
            let kind = kind_of(group, resource.split('/').next().unwrap_or_default());
            let served = profile::DEFAULT.versions(kind);
            assert!(served.iter().any(|served| served.name() == version), "{group}/{version} {resource}");
            kind
        })
        .collect();
    let base =
        ["resourceclaims", "resourceclaimtemplates", "resourceslices", "devicetaintrules", "deviceclasses"];
    let in_base = |kind: &ApiKind| kind.group() == "resource.k8s.io" && base.contains(&kind.resource());
    let missing: Vec<ApiKind> =
        ApiKind::ALL.into_iter().filter(|kind| !in_base(kind) && !registered.contains(kind)).collect();
    assert!(missing.is_empty(), "no overlay registers {missing:?}");
    for resource in ["pods/ephemeralcontainers", "resourceclaims/status"] {
        assert!(validated.iter().any(|(_, _, known)| known == resource), "{resource}");
    }
}

/// Match conditions are evaluated like those of a policy, because the API server uses the same language.
#[test]
fn only_what_uses_claims_is_asked_about() {
    let pod = |claims: &str| format!(r#"{{"containers":[{{"name":"a"}}]{claims}}}"#);
    let with = r#","resourceClaims":[{"name":"a","resourceClaimName":"a"}]"#;
    for (webhook, type_meta, wrap) in [
        ("pods", r#""apiVersion":"v1","kind":"Pod""#, (|spec: &str| spec.to_owned()) as fn(&str) -> String),
        ("workloads", r#""apiVersion":"apps/v1","kind":"Deployment""#, |spec| {
            format!(r#"{{"template":{{"spec":{spec}}}}}"#)
        }),
        ("jobs", r#""apiVersion":"batch/v1","kind":"Job""#, |spec| {
            format!(r#"{{"template":{{"spec":{spec}}}}}"#)
        }),
        ("cronjobs", r#""apiVersion":"batch/v1","kind":"CronJob""#, |spec| {
            format!(r#"{{"jobTemplate":{{"spec":{{"template":{{"spec":{spec}}}}}}}}}"#)
        }),
    ] {
        let conditions = conditions_of(&format!("{webhook}.validate.tollgate.dev"));
        for (claims, extra, asked) in [
            (with, "", true),
            ("", "", false),
            // Being deleted is no excuse.
            (with, r#","deletionTimestamp":"2026-01-01T00:00:00Z""#, true),
        ] {
            let spec = wrap(&pod(claims));
            let object = format!(r#"{{{type_meta},"metadata":{{"name":"a"{extra}}},"spec":{spec}}}"#);
            assert_eq!(conditions_hold(&conditions, &object), asked, "{webhook}: {object}");
        }
    }
}

fn conditions_of(webhook: &str) -> Vec<Value> {
    let all = listed("pods");
    let found = all.iter().flat_map(|document| document["webhooks"].as_array().into_iter().flatten());
    let found = found.clone().find(|found| found["name"] == webhook).unwrap_or_else(|| panic!("{webhook}"));
    found["matchConditions"].as_array().expect("a list").clone()
}

/// True if all conditions hold, tested with a policy that denies all requests that pass them.
fn conditions_hold(conditions: &[Value], object: &str) -> bool {
    let policy = serde_json::json!({
        "apiVersion": "tollgate.dev/v1alpha1", "kind": "ParameterPolicy", "metadata": {"name": "p"},
        "spec": {"matchConditions": conditions, "validations": [{"expression": "false", "message": "asked"}]},
    });
    let files = [PolicyFile { name: "policy.yaml".to_owned(), text: policy.to_string() }];
    let policies = PolicySet::load(&files, &|_| Err("no files".to_owned())).expect("a policy that loads");
    let engine = Engine::new(vec![profile::DEFAULT], RuleSet::parse("policy").expect("an origin"));
    let engine = engine.with_policies(Arc::new(policies));
    let object = doc::parse(object).expect("JSON");
    let verdict = engine.validate(
        &Attributes {
            operation: Operation::Create,
            subresource: "",
            object: object.root(),
            old_object: None,
            namespace: "default",
            user: doc::Value::absent(),
            now: "2026-01-02T03:04:05Z".into(),
        },
        LabelsIfKnown::Unknown,
    );
    for diagnostic in verdict.findings() {
        assert!(diagnostic.finding.detail.contains("asked"), "{}", diagnostic.finding.detail);
    }
    !verdict.findings().is_empty()
}
