//! The install manifests: they decode as the types of a real release without loss, and are what the program prints.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "reads files, builds JSON")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]

use std::process::Command;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use serde_json::{Value, json};

/// The documents of a YAML text as JSON.
fn documents(text: &str) -> Vec<Value> {
    tollgate::documents(text)
        .map(|document| {
            let document = document.unwrap_or_else(|fault| panic!("{fault:?}"));
            serde_json::from_str(&document.doc.root().to_json()).expect("JSON")
        })
        .collect()
}

/// The workload and the static webhook configurations.
fn base() -> Vec<Value> {
    let mut all = folder("manifests/base");
    for file in ["validating", "mutating"] {
        all.extend(documents_of(&format!("{}/manifests/webhooks/{file}.yaml", env!("CARGO_MANIFEST_DIR"))));
    }
    all
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
    // The base lists every file but itself, and no webhook configuration: without a CA it would refuse claims at once.
    let listed = documents.iter().find(|document| document["kind"] == "Kustomization").expect("a base");
    assert_eq!(listed["resources"].as_array().expect("a list").len(), KINDS.len() - 2);
    let workload = folder("manifests/base");
    assert!(workload.iter().all(|document| !document["kind"].to_string().contains("Webhook")));
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

const OVERLAYS: [&str; 4] = ["classic-dra", "foundationdb", "kep-5055-r1", "pods"];

#[test]
fn printed_overlays_are_the_files_with_a_bundle() {
    let all = OVERLAYS.join(",");
    let printed = printed(&["--url", "https://192.0.2.1", "--ca-bundle", "Q0E=", "--with", &all]);
    let names = |documents: &[Value]| -> Vec<String> {
        let webhooks =
            documents.iter().flat_map(|document| document["webhooks"].as_array().into_iter().flatten());
        webhooks.map(|webhook| webhook["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let of_overlays: Vec<Value> = OVERLAYS
        .iter()
        .flat_map(|overlay| ["validating", "mutating"].map(|endpoint| format!("{overlay}-{endpoint}")))
        .map(|file| format!("{}/manifests/webhooks/{file}.yaml", env!("CARGO_MANIFEST_DIR")))
        .filter(|path| std::path::Path::new(path).exists())
        .flat_map(|path| documents_of(&path))
        .collect();
    assert!(names(&printed).ends_with(&names(&of_overlays)), "{:?}", names(&printed));
    for document in &printed {
        for webhook in document["webhooks"].as_array().into_iter().flatten() {
            assert_eq!(webhook["clientConfig"]["caBundle"], "Q0E=", "{}", webhook["name"]);
        }
    }
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
fn the_self_managed_overlay_may_write_only_what_it_registers() {
    let (added, patches) = overlay("self-managed");
    assert_eq!(check_types(&added), ["ClusterRole", "ClusterRoleBinding", "ServiceAccount"]);
    check_binding(&added, &patches, "tollgate-register");
    let role = find(&added, "ClusterRole");
    let rules = &role["rules"];
    assert_eq!(rules.as_array().map(Vec::len), Some(2));
    let rule = &rules[0];
    assert_eq!(rule["apiGroups"], json!(["admissionregistration.k8s.io"]));
    assert_eq!(rule["verbs"], json!(["list", "watch", "create", "patch"]));
    assert_eq!(
        rule["resources"],
        json!(["validatingwebhookconfigurations", "mutatingwebhookconfigurations"])
    );
    // Every configuration that `--register` and `--register-with` write, and no other.
    let mut names: Vec<Value> = folder("manifests/webhooks")
        .iter()
        .filter(|document| document["kind"] != "Kustomization")
        .map(|document| document["metadata"]["name"].clone())
        .collect();
    names.sort_by_key(ToString::to_string);
    names.dedup();
    let mut allowed = rule["resourceNames"].as_array().expect("names").clone();
    allowed.sort_by_key(ToString::to_string);
    assert_eq!(allowed, names);
    // Its own ClusterRole is the owner of what it registers.
    let name = &role["metadata"]["name"];
    assert_eq!(rules[1]["resources"], json!(["clusterroles"]));
    assert_eq!(rules[1]["resourceNames"], json!([name]));
    assert_eq!(rules[1]["verbs"], json!(["get"]));
    let container = &find(&patches, "Deployment")["spec"]["template"]["spec"]["containers"][0];
    let arguments = container["args"].as_array().expect("a list");
    assert!(arguments.contains(&json!("--register=service")));
    let owner = format!("--register-owner={}", name.as_str().expect("a name"));
    assert!(arguments.contains(&json!(owner)), "{arguments:?}");
}

/// Kustomize refuses a base that contains the overlay which uses it ("cycle detected").
#[test]
fn no_kustomization_uses_a_folder_that_contains_it() {
    let root = std::path::PathBuf::from(format!("{}/manifests", env!("CARGO_MANIFEST_DIR")));
    let mut open = vec![root.clone()];
    let mut seen = 0;
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.ends_with("kustomization.yaml") {
                seen += 1;
                let own = documents_of(path.to_str().expect("UTF-8")).remove(0);
                let here = folder.canonicalize().expect("a folder");
                for used in own["resources"].as_array().expect("resources").iter().filter_map(Value::as_str) {
                    let used =
                        folder.join(used).canonicalize().unwrap_or_else(|error| panic!("{used}: {error}"));
                    assert!(!here.starts_with(&used), "{} uses {}", here.display(), used.display());
                    let is_base = used.is_dir() && used.join("kustomization.yaml").is_file();
                    assert!(used.is_file() || is_base, "{}", used.display());
                }
            }
        }
    }
    assert_eq!(seen, 7);
}

#[test]
fn manifests_without_a_ca_say_so() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .arg("manifests")
            .args(arguments)
            .output()
            .expect("run");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run(&[]);
    assert!(code == Some(0) && said.contains("no caBundle") && said.contains("--cert-dir"), "{said}");
    assert_eq!(run(&["--ca-bundle", "Q0E="]), (Some(0), String::new()));
    // Nothing that goes into a manifest can end its line.
    for arguments in [
        ["--namespace", "a\nb: c"],
        ["--namespace", "A"],
        ["--image", "a\nb"],
        ["--url", "https://a\nb"],
        ["--url", "http://a"],
        ["--ca-bundle", "?"],
    ] {
        let (code, said) = run(&arguments);
        assert!(code == Some(2) && !said.is_empty(), "{arguments:?}: {code:?} {said}");
    }
    let (code, said) = run(&["--ca-file", "/dev/zero"]);
    assert!(code == Some(3) && said.contains("larger than 1048576 bytes"), "{code:?} {said}");
}

#[test]
fn manifests_for_policies_register_only_what_these_need() {
    let folder = std::env::temp_dir().join(format!("tollgate-manifests-policy-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("made");
    let file = folder.join("policy.yaml");
    let names = |spec: &str| -> Vec<String> {
        let text = format!(
            "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {{name: a}}\nspec: {spec}\n"
        );
        std::fs::write(&file, text).expect("written");
        let documents = printed(&["--ca-bundle", "Q0E=", "--policy", file.to_str().expect("UTF-8")]);
        let webhooks =
            documents.iter().flat_map(|document| document["webhooks"].as_array().into_iter().flatten());
        webhooks
            .map(|webhook| webhook["name"].as_str().expect("a name").replace(".tollgate.dev", ""))
            .collect()
    };
    let narrow = names("{allow: []}");
    assert!(!narrow.contains(&"other-claims.validate".to_owned()), "{narrow:?}");
    assert!(!narrow.iter().any(|name| name.ends_with(".mutate")), "{narrow:?}");
    let wide = names("{defaults: [{key: a/b, operator: Exists}], validations: [{expression: 'true'}]}");
    assert!(wide.contains(&"other-claims.validate".to_owned()), "{wide:?}");
    assert!(wide.contains(&"claims.mutate".to_owned()), "{wide:?}");
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn the_overlay_that_watches_may_only_read_what_it_watches() {
    let (added, patches) = overlay("cluster");
    assert_eq!(check_types(&added), ["ClusterRole", "ClusterRoleBinding"]);
    let (below, _) = overlay("self-managed");
    let binding = find(&added, "ClusterRoleBinding");
    assert_eq!(binding["roleRef"]["name"], find(&added, "ClusterRole")["metadata"]["name"]);
    assert_eq!(binding["subjects"][0]["name"], find(&below, "ServiceAccount")["metadata"]["name"]);
    let mut resources = Vec::new();
    for rule in find(&added, "ClusterRole")["rules"].as_array().expect("rules") {
        if let Some(urls) = rule.get("nonResourceURLs") {
            assert_eq!((urls, &rule["verbs"]), (&json!(["/metrics"]), &json!(["get"])), "feature gates");
            continue;
        }
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
