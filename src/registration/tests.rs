//! Match conditions of every manifest, evaluated as an API server does: never an error, and never narrower than what
//! the engine has to say.

use std::io::Read as _;
use std::sync::Arc;

use super::{OptionalApi, WebhookDestination, WebhookEntries};
use tollgate_api::profile::{self, ApiKind};
use tollgate_document::doc::{self, Doc, Value};
use tollgate_document::source;
use tollgate_engine::engine::{Attributes, Diagnostic, Engine, LabelsIfKnown};
use tollgate_engine::policy::{PolicyFile, PolicySet, evaluate_expression};
use tollgate_engine::rules::table::RULE_TAKES_EFFECT;
use tollgate_engine::rules::{RuleInput, RuleOrigin, RuleSet};

/// An entry of a configuration: which requests it is sent.
struct WebhookEntry {
    name: String,
    groups: Vec<String>,
    resources: Vec<String>,
    conditions: Vec<String>,
}

fn string_items(list: Value<'_>) -> Vec<String> {
    list.items().map(|item| item.str().to_owned()).collect()
}

fn read_entries_of_configurations(configurations: &[String]) -> Vec<WebhookEntry> {
    let mut entries = Vec::new();
    for text in configurations {
        let document = source::documents(text).next().expect("a document").expect("YAML");
        for webhook in document.doc.root().get("webhooks").items() {
            let rule = webhook.get("rules").item(0);
            entries.push(WebhookEntry {
                name: webhook.get("name").str().to_owned(),
                groups: string_items(rule.get("apiGroups")),
                resources: string_items(rule.get("resources")),
                conditions: webhook
                    .get("matchConditions")
                    .items()
                    .map(|condition| condition.get("expression").str().to_owned())
                    .collect(),
            });
        }
    }
    entries
}

fn test_destination() -> WebhookDestination {
    WebhookDestination {
        url: None,
        namespace: "n".to_owned(),
        name: "t".to_owned(),
        only: None,
        fail_closed: false,
    }
}

fn all_base_entries() -> WebhookEntries {
    WebhookEntries { names: super::ALL_ENTRIES.to_vec(), closed: Vec::new() }
}

/// Every entry of every manifest.
fn read_entries_of_all_manifests() -> Vec<WebhookEntry> {
    let mut texts = test_destination().base_configurations(&all_base_entries(), None).to_vec();
    texts.extend(
        OptionalApi::ALL
            .into_iter()
            .flat_map(|api| test_destination().optional_configurations(api, &all_base_entries(), None)),
    );
    read_entries_of_configurations(&texts)
}

fn admission_request_json(kind: ApiKind, operation: &str) -> String {
    format!(
        r#"{{"operation":"{operation}","resource":{{"group":"{}","version":"v1","resource":"{}"}}}}"#,
        kind.group(),
        kind.resource()
    )
}

impl WebhookEntry {
    /// True if the API server sends the request to the webhook. Panics if it could not decide.
    fn is_called(&self, kind: ApiKind, operation: &str, object: Value<'_>, old: Value<'_>) -> bool {
        let is_listed = self.groups.iter().any(|group| group == kind.group())
            && self.resources.iter().any(|resource| resource.split('/').next() == Some(kind.resource()));
        if !is_listed {
            return false;
        }
        let request = admission_request_json(kind, operation);
        let request = doc::parse(&request).expect("JSON");
        let conditions = self.conditions.iter().map(|condition| {
            let outcome = evaluate_expression(condition, object, old, request.root());
            outcome.unwrap_or_else(|error| {
                panic!("{}: {error}\n{condition}\n{} {}", self.name, object.to_json(), old.to_json())
            })
        });
        // The API server evaluates all of them: an error in one counts even if another is false.
        let outcomes: Vec<bool> = conditions.collect();
        outcomes.into_iter().all(|holds| holds)
    }
}

/// Objects whose every part is as given, missing, null and empty.
fn variants_with_empty_or_missing_parts(object: &str) -> Vec<String> {
    let whole = doc::parse(object).expect("JSON");
    let mut found = vec![object.to_owned()];
    for part in whole.root().self_and_descendants().filter(|part| part.index() != 0) {
        let span = part.span();
        let (before, after) = (&object[..span.start as usize], &object[span.end as usize..]);
        // A key is no part of its own.
        if after.trim_start().starts_with(':') {
            continue;
        }
        for replacement in ["null", "{}", "[]", r#"{"renamed":1}"#] {
            let is_empty_of_its_kind = match part.kind() {
                doc::ValueKind::Object => replacement != "[]",
                doc::ValueKind::Array => ["null", "[]"].contains(&replacement),
                _ => replacement == "null",
            };
            if is_empty_of_its_kind {
                found.push(format!("{before}{replacement}{after}"));
            }
        }
        // Missing: under a name that nobody looks for.
        if let Some(key) = before.trim_end().strip_suffix(':').and_then(|key| key.strip_suffix('"')) {
            let start = key.rfind('"').expect("a key");
            found.push(format!(
                "{}\"x-{}\":{}{after}",
                &key[..start],
                &key[start + 1..],
                &object[span.start as usize..span.end as usize]
            ));
        }
    }
    found
}

const SPEC: &str = r#"{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"c","adminAccess":true,"tolerations":[{"key":"k"}]}},
    {"name":"b","firstAvailable":[{"name":"s","tolerations":[{"key":"k"}]}]},{"name":"f","tolerations":[{"key":"k"}]}],
    "config":[{"opaque":{"driver":"d","parameters":{"a":1}}}],"constraints":[{"matchAttribute":"a/b"}]}}"#;

fn variants_of_sample_objects() -> Vec<(ApiKind, String)> {
    let template = format!(r#"{{"metadata":{{"name":"a"}},"spec":{{"metadata":{{}},"spec":{SPEC}}}}}"#);
    let claim = format!(r#"{{"metadata":{{"name":"a"}},"spec":{SPEC},"status":{{"phase":"Pending"}}}}"#);
    let slice = r#"{"metadata":{"name":"a"},"spec":{"driver":"d","devices":[{"name":"a","taints":[{"key":"k"}]},
        {"name":"b","basic":{"attributes":{},"taints":[{"key":"k"}]}}],"taints":[{"device":"a"}]}}"#;
    let rule = r#"{"metadata":{"name":"a"},"spec":{"deviceSelector":{"driver":"d"},"taint":{"key":"k"}}}"#;
    let class = r#"{"metadata":{"name":"a"},"spec":{"selectors":[],"config":[{"opaque":{}}]}}"#;
    let patch = r#"{"metadata":{"name":"a"},"spec":{"devices":{"filter":{},"taints":[]}}}"#;
    let old_class = r#"{"metadata":{"name":"a"},"driverName":"d","parameters":{"a":1}}"#;
    let pod = r#"{"metadata":{"name":"a"},"spec":{"resourceClaims":[{"name":"a"}],"containers":[]}}"#;
    let workload =
        r#"{"metadata":{"name":"a"},"spec":{"template":{"spec":{"resourceClaims":[{"name":"a"}]}}}}"#;
    let cron = r#"{"metadata":{"name":"a"},"spec":{"jobTemplate":{"spec":{"template":{"spec":{"resourceClaims":[]}}}}}}"#;
    let database = r#"{"metadata":{"name":"a"},"spec":{"automationOptions":{"replacements":{}}}}"#;
    let table: [(ApiKind, &str); 16] = [
        (ApiKind::ResourceClaim, &claim),
        (ApiKind::ResourceClaimTemplate, &template),
        (ApiKind::ResourceSlice, slice),
        (ApiKind::DeviceTaintRule, rule),
        (ApiKind::DeviceClass, class),
        (ApiKind::ResourceSlicePatch, patch),
        (ApiKind::ClassicClass, old_class),
        (ApiKind::ClassicClaim, &claim),
        (ApiKind::Pod, pod),
        (ApiKind::Deployment, workload),
        (ApiKind::StatefulSet, workload),
        (ApiKind::DaemonSet, workload),
        (ApiKind::ReplicaSet, workload),
        (ApiKind::Job, workload),
        (ApiKind::CronJob, cron),
        (ApiKind::FoundationDbCluster, database),
    ];
    let shaped = table.into_iter().flat_map(|(kind, text)| {
        variants_with_empty_or_missing_parts(text).into_iter().map(move |text| (kind, text))
    });
    shaped.collect()
}

/// The parser's frames are large without optimisation.
fn with_a_large_stack(test: fn()) {
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(test).expect("a thread");
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

#[test]
fn no_match_condition_fails_on_any_shape() {
    with_a_large_stack(check_conditions_on_all_variants);
}

fn check_conditions_on_all_variants() {
    let (entries, objects) = (read_entries_of_all_manifests(), variants_of_sample_objects());
    assert!(objects.len() >= 200, "{}", objects.len());
    for (kind, object) in &objects {
        let object = doc::parse(object).unwrap_or_else(|error| panic!("{}: {object}", error.detail));
        let other = doc::parse("{\"metadata\":{},\"spec\":{\"other\":1}}").expect("JSON");
        let null = doc::parse("null").expect("JSON");
        for entry in &entries {
            entry.is_called(*kind, "CREATE", object.root(), null.root());
            entry.is_called(*kind, "UPDATE", object.root(), other.root());
            // Labels and finalizers of everything can be changed while nobody answers.
            let has = |part: &str| object.root().get(part).exists();
            let compared = if entry.name.starts_with("status.") { "status" } else { "spec" };
            // DeviceClasses are always sent, and fail open.
            let is_skipped = has(compared) || *kind == ApiKind::ClassicClass;
            if is_skipped && *kind != ApiKind::DeviceClass {
                let is_called = entry.is_called(*kind, "UPDATE", object.root(), object.root());
                assert!(!is_called, "{}: {}", entry.name, object.root().to_json());
            }
        }
    }
}

fn engine_with_policies(policies: &str) -> Engine {
    let files = [PolicyFile { name: "policy.yaml".to_owned(), text: policies.to_owned() }];
    let set = match policies {
        "" => PolicySet::default(),
        _ => PolicySet::load(&files, &|_| Err("no files".to_owned())).expect("policies that load"),
    };
    let rules = RuleSet::compile(|rule| rule.origin != RuleOrigin::Strict);
    Engine::new(vec![profile::DEFAULT], rules).with_policies(Arc::new(set))
}

fn policy_yaml(kind: &str, spec: &str) -> String {
    format!("apiVersion: tollgate.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: p}}\nspec: {spec}\n---\n")
}

/// The objects of the corpus of real servers.
fn read_conformance_corpus() -> String {
    let path = format!("{}/tests/conformance/cases.jsonl.gz", env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    #[expect(clippy::disallowed_methods, reason = "a test reads its data")]
    let file = std::fs::File::open(path).expect("the corpus");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("UTF-8");
    text
}

fn nesting_depth(value: Value<'_>) -> usize {
    let inside = value.items().chain(value.members().map(|(_, member)| member));
    1 + inside.map(nesting_depth).max().unwrap_or_default()
}

/// False for findings that never reach a webhook: those of the API server itself, and those about versions
/// that it does not serve.
fn can_reach_webhook(diagnostic: &Diagnostic) -> bool {
    let rule = diagnostic.finding.rule;
    let is_of_files =
        matches!(rule.depends_on, RuleInput::Server | RuleInput::Drafts) || rule == RULE_TAKES_EFFECT;
    [RuleOrigin::Documented, RuleOrigin::Lint, RuleOrigin::Policy].contains(&diagnostic.origin)
        && !is_of_files
}

#[test]
fn the_webhook_is_called_wherever_the_engine_finds_something() {
    with_a_large_stack(check_webhook_is_called_for_findings);
}

fn check_webhook_is_called_for_findings() {
    let corpus = read_conformance_corpus();
    let cases: Vec<Doc<'_>> = corpus.lines().map(|line| doc::parse(line).expect("JSON")).collect();
    let sets = [
        String::new(),
        policy_yaml("TolerationPolicy", "{allow: []}"),
        policy_yaml("ParameterPolicy", "{unknown: Deny, schemas: [{apiVersion: a/v1, kind: B, schema: {}}]}"),
        policy_yaml("TolerationPolicy", "{validations: [{expression: 'false', message: refused}]}"),
        policy_yaml("TolerationPolicy", "{matchConditions: [{name: a, expression: 'object.missing == 1'}]}"),
        policy_yaml("TaintPolicy", "{validations: [{expression: 'false', message: refused}]}"),
        policy_yaml("ParameterPolicy", "{validations: [{expression: 'false', message: refused}]}"),
        policy_yaml("TaintPolicy", "{allow: []}")
            + &policy_yaml("TaintRulePolicy", "{requireSelector: [driver]}"),
        policy_yaml(
            "TolerationPolicy",
            "{match: {namespaceSelector: {matchLabels: {a: b}}}, deny: [{key: x/y}]}",
        ),
        policy_yaml(
            "TolerationPolicy",
            "{match: {namespaceSelector: {matchLabels: {a: b}}}, defaults: [{key: x/y, operator: Exists}]}",
        ),
        policy_yaml(
            "ParameterPolicy",
            "{onUnavailable: Deny, unknown: Deny, schemas: [{apiVersion: a/v1, kind: B, schema: {}}]}",
        ) + &policy_yaml("TolerationPolicy", "{validations: [{expression: 'false', message: refused}]}"),
    ];
    let static_entries = read_entries_of_configurations(
        &test_destination().base_configurations(&WebhookEntries::of_static_manifests(), None),
    );
    let mut spoken = [0; 11];
    for (set, spoken) in sets.iter().zip(&mut spoken) {
        let engine = engine_with_policies(set);
        let entries = read_entries_of_configurations(
            &test_destination().base_configurations(&WebhookEntries::needed_by(&engine), None),
        );
        for case in &cases {
            let request = case.root();
            let object = request.get("object");
            let (group, name) = (
                object.get("apiVersion").str().split('/').next().unwrap_or_default(),
                object.get("kind").str(),
            );
            let Some(kind) = ApiKind::from_group_and_name(group, name)
                .filter(|_| request.get("subresource").str().is_empty())
            else {
                continue;
            };
            // A lookup that fails is a violation.
            let is_blind = set.contains("namespaceSelector");
            let labels =
                if is_blind { LabelsIfKnown::Unknown } else { LabelsIfKnown::Known(Value::absent()) };
            let admission = Attributes::for_create(object, "default", "2026-01-02T03:04:05Z");
            let verdict = engine.validate(&admission, labels);
            let findings = verdict.findings();
            // What the API server refuses never comes to us.
            let refused = findings
                .iter()
                .any(|diagnostic| [RuleOrigin::Upstream, RuleOrigin::Decoding].contains(&diagnostic.origin));
            if refused || !findings.iter().any(can_reach_webhook) {
                continue;
            }
            // Deeper objects are the business of the API server's own CEL; this evaluator refuses them.
            if nesting_depth(object) > 150 {
                continue;
            }
            *spoken += 1;
            let null = doc::parse("null").expect("JSON");
            for entries in [&entries, &static_entries] {
                let called = entries.iter().filter(|entry| !entry.name.contains(".mutate."));
                let called =
                    called.filter(|entry| entry.is_called(kind, "CREATE", object, null.root())).count();
                assert_eq!(
                    called,
                    1,
                    "{set}{}\n{:?}",
                    object.to_json(),
                    findings.first().map(|f| &f.finding)
                );
            }
        }
    }
    assert!(spoken.iter().all(|count| *count > 20), "{spoken:?}");
}

#[test]
fn a_registration_is_as_wide_as_the_policies_and_no_wider() {
    let names = |policies: &str| WebhookEntries::needed_by(&engine_with_policies(policies));
    let short = |entries: &WebhookEntries| {
        entries.names.iter().map(|name| name.trim_end_matches(".tollgate.dev")).collect::<Vec<_>>().join(" ")
    };
    let lints = "claims.validate claim-details.validate slices.validate other-slices.validate rules.validate";
    assert_eq!(short(&names("")), lints);
    let wide = names(&policy_yaml("TolerationPolicy", "{validations: [{expression: 'true'}]}"));
    assert_eq!(short(&wide), lints.replace("claim-details", "other-claims"));
    let parameters =
        names(&policy_yaml("ParameterPolicy", "{schemas: [{apiVersion: a/v1, kind: B, schema: {}}]}"));
    assert_eq!(short(&parameters), format!("{lints} classes.validate"));
    let defaults = names(&policy_yaml("TolerationPolicy", "{defaults: [{key: a/b, operator: Exists}]}"));
    assert_eq!(short(&defaults), format!("{lints} claims.mutate"));
    // Labels that cannot be looked up matter only to claims that a policy can say something about.
    let selected = |rest: &str| {
        let spec = format!("{{match: {{namespaceSelector: {{matchLabels: {{a: b}}}}}}, {rest}}}");
        short(&names(&policy_yaml("TolerationPolicy", &spec)))
    };
    assert_eq!(selected("allow: []"), lints);
    let all_claims = lints.replace("claim-details", "other-claims");
    assert_eq!(selected("defaults: [{key: a/b, operator: Exists}]"), format!("{all_claims} claims.mutate"));
    // Between two sets both are served.
    let both = wide.union_without_covered_entries(&parameters).union_without_covered_entries(&defaults);
    assert_eq!(
        short(&both),
        format!("{} classes.validate claims.mutate", lints.replace("claim-details", "other-claims"))
    );
    let quiet =
        Engine::new(vec![profile::DEFAULT], RuleSet::compile(|rule| rule.origin == RuleOrigin::Upstream));
    assert_eq!(short(&WebhookEntries::needed_by(&quiet)), "");
}

#[test]
fn a_policy_closes_the_entries_that_serve_it_and_no_others() {
    let entries = |policies: &str| WebhookEntries::needed_by(&engine_with_policies(policies));
    let closed = |entries: &WebhookEntries| {
        let own = |name: &&str| entries.contains(name) || !super::ALL_ENTRIES.contains(name);
        let names = entries.closed.iter().filter(|name| own(name));
        names.map(|name| name.trim_end_matches(".tollgate.dev")).collect::<Vec<_>>().join(" ")
    };
    let parameters = "schemas: [{apiVersion: a/v1, kind: B, schema: {}}], match: {resources: [RESOURCE]}";
    let parameters = |resource: &str| {
        let spec = format!("{{onUnavailable: Deny, {}}}", parameters.replace("RESOURCE", resource));
        policy_yaml("ParameterPolicy", &spec)
    };
    let validations = |when: &str| {
        policy_yaml(
            "TolerationPolicy",
            &format!("{{onUnavailable: {when}, validations: [{{expression: 'true'}}]}}"),
        )
    };
    for (policies, expected) in [
        (parameters("ResourceClaim"), "claim-details.validate"),
        (parameters("DeviceClass"), "classes.validate"),
        (parameters("Deployment"), "workloads.validate"),
        (validations("Allow"), ""),
        (validations("Deny"), "other-claims.validate"),
        (parameters("ResourceClaim") + &validations("Allow"), "claim-details.validate"),
        (parameters("ResourceClaim") + &validations("Deny"), "other-claims.validate"),
        (policy_yaml("TaintPolicy", "{onUnavailable: Deny, allow: []}"), "slices.validate"),
        (
            policy_yaml("TaintPolicy", "{onUnavailable: Deny, validations: [{expression: 'true'}]}"),
            "slices.validate other-slices.validate",
        ),
        (
            policy_yaml(
                "TolerationPolicy",
                "{onUnavailable: Deny, defaults: [{key: a/b, operator: Exists}]}",
            ),
            "claims.mutate",
        ),
        (policy_yaml("TolerationPolicy", "{onUnavailable: Deny, allow: []}"), ""),
    ] {
        let entries = entries(&policies);
        assert_eq!(closed(&entries), expected, "{policies}");
        let mut texts = test_destination().base_configurations(&entries, None).to_vec();
        texts.extend(test_destination().optional_configurations(OptionalApi::Pods, &entries, None));
        for text in &texts {
            let document = source::documents(text).next().expect("a document").expect("YAML");
            for webhook in document.doc.root().get("webhooks").items() {
                let name = webhook.get("name").str();
                let fails_closed = webhook.get("failurePolicy").str() == "Fail";
                let always = ["claims.validate.tollgate.dev", "rules.validate.tollgate.dev"].contains(&name);
                assert_eq!(fails_closed, always || entries.fails_closed(name), "{name}\n{policies}");
            }
        }
    }
    let (open, shut) = (entries(&validations("Allow")), entries(&parameters("ResourceClaim")));
    let both = open.union_without_covered_entries(&shut);
    assert_eq!(closed(&both), "claim-details.validate", "between two sets, both are served");
    assert!(both.contains(super::CLAIMS_WITHOUT_TOLERATIONS));
}
