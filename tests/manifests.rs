//! The install manifests: they decode as the types of a real release without loss, and register what we judge.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "reads files, builds JSON")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]

use std::process::Command;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhookConfiguration,
};
use serde_json::{Value, json};
use tollgate::profile::{self, ApiKind};

/// The documents of a YAML text as JSON.
fn documents(text: &str) -> Vec<Value> {
    tollgate::source::documents(text)
        .map(|document| {
            let document = document.unwrap_or_else(|fault| panic!("{fault:?}"));
            serde_json::from_str(&document.doc.root().to_json()).expect("JSON")
        })
        .collect()
}

fn base() -> Vec<Value> {
    folder("manifests")
}

/// The documents of all files of a folder, in order.
fn folder(name: &str) -> Vec<Value> {
    let folder = format!("{}/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("manifests")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    files.iter().flat_map(|file| documents(&std::fs::read_to_string(file).expect("UTF-8"))).collect()
}

/// What `tollgate manifests` prints.
fn printed(arguments: &[&str]) -> Vec<Value> {
    let output =
        Command::new(env!("CARGO_BIN_EXE_tollgate")).arg("manifests").args(arguments).output().expect("run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    documents(&String::from_utf8(output.stdout).expect("UTF-8"))
}

/// Decodes and encodes: what is lost was misspelt.
fn round_trip<T: serde::de::DeserializeOwned + serde::Serialize>(document: &Value) -> Value {
    let typed: T =
        serde_json::from_value(document.clone()).unwrap_or_else(|error| panic!("{error}: {document:#}"));
    serde_json::to_value(typed).expect("JSON")
}

fn contains(whole: &Value, part: &Value, at: &str) {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            for (name, value) in part {
                let held = whole.get(name).unwrap_or_else(|| panic!("{at}.{name} is not a field"));
                contains(held, value, &format!("{at}.{name}"));
            }
        }
        (Value::Array(whole), Value::Array(part)) => {
            assert_eq!(whole.len(), part.len(), "{at}");
            for (index, (whole, part)) in whole.iter().zip(part).enumerate() {
                contains(whole, part, &format!("{at}[{index}]"));
            }
        }
        _ => assert_eq!(whole, part, "{at}"),
    }
}

fn check_types(documents: &[Value]) -> Vec<String> {
    use k8s_openapi::api::{apps::v1::Deployment, core::v1, networking, policy, rbac};
    let mut kinds = Vec::new();
    for document in documents {
        let kind = document["kind"].as_str().expect("a kind");
        let whole = match kind {
            "Namespace" => round_trip::<v1::Namespace>(document),
            "Service" => round_trip::<v1::Service>(document),
            "Secret" => round_trip::<v1::Secret>(document),
            "Deployment" => round_trip::<Deployment>(document),
            "PodDisruptionBudget" => round_trip::<policy::v1::PodDisruptionBudget>(document),
            "NetworkPolicy" => round_trip::<networking::v1::NetworkPolicy>(document),
            "ValidatingWebhookConfiguration" => round_trip::<ValidatingWebhookConfiguration>(document),
            "MutatingWebhookConfiguration" => round_trip::<MutatingWebhookConfiguration>(document),
            "ServiceAccount" => round_trip::<v1::ServiceAccount>(document),
            "ClusterRole" => round_trip::<rbac::v1::ClusterRole>(document),
            "ClusterRoleBinding" => round_trip::<rbac::v1::ClusterRoleBinding>(document),
            "Kustomization" => document.clone(),
            _ => panic!("{kind} is not expected"),
        };
        contains(&whole, document, kind);
        kinds.push(kind.to_owned());
    }
    kinds.sort();
    kinds
}

const KINDS: [&str; 7] = [
    "Deployment",
    "MutatingWebhookConfiguration",
    "Namespace",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "Service",
    "ValidatingWebhookConfiguration",
];

#[test]
fn every_manifest_decodes_without_loss() {
    let documents = base();
    let mut kinds = check_types(&documents);
    kinds.retain(|kind| kind != "Kustomization");
    assert_eq!(kinds, KINDS);
    // The base lists every file but itself.
    let listed = documents.iter().find(|document| document["kind"] == "Kustomization").expect("a base");
    assert_eq!(listed["resources"].as_array().expect("a list").len(), KINDS.len());
}

#[test]
fn the_printed_manifests_are_the_base_with_a_bundle() {
    let with_bundle = printed(&["--ca-bundle", "Q0E="]);
    assert_eq!(check_types(&with_bundle), KINDS);
    for document in &with_bundle {
        for webhook in document["webhooks"].as_array().into_iter().flatten() {
            assert_eq!(webhook["clientConfig"]["caBundle"], "Q0E=");
            assert_eq!(webhook["clientConfig"]["service"]["name"], "tollgate");
        }
    }
    let elsewhere = printed(&["--namespace", "guards", "--image", "example.com/tollgate:1"]);
    let text = serde_json::to_string(&elsewhere).expect("JSON");
    assert!(!text.contains("tollgate-system") && text.contains("example.com/tollgate:1"), "{text}");
    let outside = printed(&["--url", "https://192.0.2.1:8443/", "--ca-bundle", "Q0E="]);
    assert_eq!(check_types(&outside), ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]);
    let client = &outside[0]["webhooks"][0]["clientConfig"];
    assert_eq!(client["url"], "https://192.0.2.1:8443/validate");
    assert!(client.get("service").is_none());
}

#[cfg(feature = "serve")]
#[test]
fn a_directory_of_certs_gives_a_secret_and_its_bundle() {
    use base64::Engine as _;
    let folder = std::env::temp_dir().join(format!("tollgate-manifests-{}", std::process::id()));
    let name = folder.to_str().expect("UTF-8");
    let made = Command::new(env!("CARGO_BIN_EXE_tollgate")).args(["certs", name]).status().expect("run");
    assert!(made.success());
    let documents = printed(&["--cert-dir", name]);
    assert!(check_types(&documents).contains(&"Secret".to_owned()));
    let encoded = |file: &str| {
        let bytes = std::fs::read(folder.join(file)).expect("a file");
        Value::from(base64::engine::general_purpose::STANDARD.encode(bytes))
    };
    let find = |kind: &str| documents.iter().find(|document| document["kind"] == kind).expect("it is there");
    assert_eq!(find("Secret")["data"]["tls.crt"], encoded("tls.crt"));
    assert_eq!(find("Secret")["data"]["tls.key"], encoded("tls.key"));
    let webhook = &find("ValidatingWebhookConfiguration")["webhooks"][2];
    assert_eq!(webhook["clientConfig"]["caBundle"], encoded("ca.crt"));
    std::fs::remove_dir_all(folder).expect("removed");
}

/// Resource names and the kinds behind them.
const RESOURCES: [(&str, ApiKind); 4] = [
    ("resourceclaims", ApiKind::ResourceClaim),
    ("resourceclaimtemplates", ApiKind::ResourceClaimTemplate),
    ("resourceslices", ApiKind::ResourceSlice),
    ("devicetaintrules", ApiKind::DeviceTaintRule),
];

/// Every version that a release serves is registered, so that objects arrive as their authors wrote them; nothing is
/// registered that no release serves.
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
    let documents = base();
    let find =
        |kind: &str| documents.iter().find(|document| document["kind"] == kind).expect("it is there").clone();
    let validating: ValidatingWebhookConfiguration =
        serde_json::from_value(find("ValidatingWebhookConfiguration")).expect("decodes");
    let mut policies = Vec::new();
    let mut resources = Vec::new();
    for webhook in validating.webhooks.into_iter().flatten() {
        let name = webhook.name.clone();
        resources.extend(check_rules(&name, webhook.rules.as_deref().unwrap_or_default()));
        policies.push(webhook.failure_policy.expect("a policy"));
        assert_eq!(webhook.match_policy.as_deref(), Some("Equivalent"), "{name}");
        assert_eq!((webhook.side_effects.as_str(), webhook.timeout_seconds), ("None", Some(3)), "{name}");
        assert_eq!(webhook.admission_review_versions, ["v1"], "{name}");
        let conditions = webhook.match_conditions.expect("conditions");
        assert_eq!(conditions[0].name, "not-being-deleted", "{name}");
        assert_eq!(
            webhook.client_config.service.expect("a service").path.as_deref(),
            Some("/validate"),
            "{name}"
        );
    }
    assert_eq!(policies, ["Fail", "Ignore", "Fail"]);
    assert_eq!(resources, RESOURCES.map(|(name, _)| name));
    let mutating: MutatingWebhookConfiguration =
        serde_json::from_value(find("MutatingWebhookConfiguration")).expect("decodes");
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
    assert_eq!(resources, RESOURCES.map(|(name, _)| name));
}

/// What an overlay adds, and what it changes of the base.
fn overlay(name: &str) -> (Vec<Value>, Vec<Value>) {
    let folder_name = format!("manifests/overlays/{name}");
    let documents = folder(&folder_name);
    let own = documents.iter().find(|document| document["kind"] == "Kustomization").expect("an overlay");
    let read = |entry: &str| {
        let path = format!("{}/{folder_name}/{entry}", env!("CARGO_MANIFEST_DIR"));
        documents_of(&path)
    };
    let mut added = Vec::new();
    for entry in own["resources"].as_array().expect("resources").iter().filter_map(Value::as_str) {
        // What it builds on is checked by itself.
        if !entry.starts_with("..") {
            added.extend(read(entry));
        }
    }
    let patches = own["patches"].as_array().expect("patches").iter();
    let patches: Vec<Value> =
        patches.flat_map(|patch| read(patch["path"].as_str().expect("a path"))).collect();
    assert_eq!(documents.len(), 1 + added.len() + patches.len(), "{name}: every file is listed");
    // A patch changes something that is there.
    let base = base();
    for patch in &patches {
        let same = |document: &&Value| {
            let identity = |of: &Value| {
                [&of["kind"], &of["apiVersion"], &of["metadata"]["name"], &of["metadata"]["namespace"]]
                    .map(Clone::clone)
            };
            identity(document) == identity(patch)
        };
        assert!(base.iter().any(|document| same(&document)), "{name}: {patch:#}");
    }
    (added, patches)
}

fn documents_of(path: &str) -> Vec<Value> {
    documents(&std::fs::read_to_string(path).expect("UTF-8"))
}

fn find<'d>(documents: &'d [Value], kind: &str) -> &'d Value {
    documents.iter().find(|document| document["kind"] == kind).expect("it is there")
}

/// The ClusterRole is bound to the service account that the patched deployment runs as.
fn check_binding(added: &[Value], patches: &[Value], role: &str) {
    let binding = find(added, "ClusterRoleBinding");
    assert_eq!(find(added, "ClusterRole")["metadata"]["name"], role);
    assert_eq!(binding["roleRef"]["name"], role);
    let pod = &find(patches, "Deployment")["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], binding["subjects"][0]["name"]);
    assert_eq!(pod["serviceAccountName"], find(added, "ServiceAccount")["metadata"]["name"]);
    assert_eq!(pod["automountServiceAccountToken"], true);
}

#[test]
fn the_overlay_that_registers_may_write_only_what_it_registers() {
    let (added, patches) = overlay("register");
    assert_eq!(check_types(&added), ["ClusterRole", "ClusterRoleBinding", "ServiceAccount"]);
    check_binding(&added, &patches, "tollgate-register");
    let rules = &find(&added, "ClusterRole")["rules"];
    assert_eq!(rules.as_array().map(Vec::len), Some(1));
    let rule = &rules[0];
    assert_eq!(rule["apiGroups"], json!(["admissionregistration.k8s.io"]));
    assert_eq!(rule["verbs"], json!(["list", "watch", "create", "patch"]));
    let base = base();
    for kind in ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"] {
        let resource = format!("{}s", kind.to_lowercase());
        assert!(rule["resources"].as_array().expect("a list").contains(&json!(resource)));
        assert_eq!(rule["resourceNames"], json!([find(&base, kind)["metadata"]["name"]]));
        // It is not applied: a pod that is ready creates it.
        assert_eq!(find(&patches, kind)["$patch"], "delete");
    }
    let container = &find(&patches, "Deployment")["spec"]["template"]["spec"]["containers"][0];
    assert!(container["args"].as_array().expect("a list").contains(&json!("--register=service")));
}

#[test]
fn the_overlay_that_watches_may_only_read_what_it_watches() {
    let (added, patches) = overlay("cluster");
    assert_eq!(check_types(&added), ["ClusterRole", "ClusterRoleBinding"]);
    let (below, _) = overlay("register");
    let binding = find(&added, "ClusterRoleBinding");
    assert_eq!(binding["roleRef"]["name"], find(&added, "ClusterRole")["metadata"]["name"]);
    assert_eq!(binding["subjects"][0]["name"], find(&below, "ServiceAccount")["metadata"]["name"]);
    let mut resources = Vec::new();
    for rule in find(&added, "ClusterRole")["rules"].as_array().expect("rules") {
        for resource in rule["resources"].as_array().expect("a list") {
            let by_name = if resource == "namespaces" {
                json!(["get", "list", "watch"])
            } else {
                json!(["list", "watch"])
            };
            assert_eq!(rule["verbs"], by_name, "{resource}");
            resources.push(format!(
                "{}/{}",
                rule["apiGroups"][0].as_str().expect("a group"),
                resource.as_str().expect("a name")
            ));
        }
    }
    resources.sort();
    let watched = [
        "/namespaces",
        "/pods",
        "policy/poddisruptionbudgets",
        "resource.k8s.io/devicetaintrules",
        "resource.k8s.io/resourceclaims",
        "resource.k8s.io/resourceslices",
    ];
    assert_eq!(resources, watched);
    let container = &find(&patches, "Deployment")["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["env"], json!([{"name": "TOLLGATE_CLUSTER", "value": "all"}]));
}
