//! The CustomResourceDefinitions on a real API server: `make e2e` plays it with [`crate::real`].
//!
//! Every policy of the repository is accepted. Every invalid one is refused by the schema at the field that Tollgate
//! names, or accepted with everything that Tollgate needs to reject it. All writes of policies are dry runs; the
//! definitions are deleted again if they were not there before.

use std::path::Path;

use serde_json::Value;
use tollgate_engine::policy::{PolicyKind, is_test_file, resource_errors};

use crate::e2e::Api;
use crate::running::until;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The documents of a file as JSON; none if it is not YAML.
fn read(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let parsed = tollgate::documents(&text).flatten();
    parsed.map(|document| serde_json::from_str(&document.doc.root().to_json()).expect("JSON")).collect()
}

/// The policies in the YAML files below a folder, with the names of their files.
fn policies(folder: &Path, found: &mut Vec<(String, PolicyKind, Value)>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.display().to_string();
        if path.is_dir() {
            policies(&path, found);
        } else if path.extension().is_some_and(|end| end == "yaml") && !is_test_file(&name) {
            for object in
                read(&path).into_iter().filter(|object| object["apiVersion"] == "tollgate.dev/v1alpha1")
            {
                let kind = PolicyKind::parse(object["kind"].as_str().unwrap_or_default());
                found.extend(kind.map(|kind| (name.clone(), kind, object)));
            }
        }
    }
}

/// The fields that Tollgate reports in an object.
fn faulty_fields(kind: PolicyKind, object: &Value) -> Vec<String> {
    let text = object.to_string();
    let document = tollgate::parse_json(&text).expect("JSON");
    resource_errors(kind, document.root()).into_iter().map(|error| error.field).collect()
}

pub(crate) fn play(api: &Api) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut made = Vec::new();
    for kind in PolicyKind::ALL {
        let path = format!("{DEFINITIONS}/{}.{}", kind.plural(), PolicyKind::GROUP);
        if !api.is_there(&path) {
            let file = root.join(format!("manifests/crds/{}.yaml", kind.plural()));
            let reply = api.create(DEFINITIONS, read(&file).first().expect("a definition"));
            assert_eq!(reply.0, 201, "{}", reply.1);
            made.push(path.clone());
        }
        let resources = format!("/apis/{}/{}/{}", PolicyKind::GROUP, PolicyKind::VERSION, kind.plural());
        until("the kind is served", || api.is_there(&resources));
    }
    let create = |kind: PolicyKind, object: &Value| {
        let (group, version, plural) = (PolicyKind::GROUP, PolicyKind::VERSION, kind.plural());
        api.create(&format!("/apis/{group}/{version}/{plural}?dryRun=All&fieldValidation=Strict"), object)
    };
    let mut all = Vec::new();
    for folder in ["policies", "examples", "tests/rules", "tests/repositories"] {
        policies(&root.join(folder), &mut all);
    }
    let (valid, invalid): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(_, kind, object)| faulty_fields(*kind, object).is_empty());
    for (file, kind, object) in &valid {
        let reply = create(*kind, object);
        assert_eq!(reply.0, 201, "{file}: {}", reply.1);
    }
    let (mut by_schema, mut accepted) = (0, 0);
    for (file, kind, object) in &invalid {
        let expected = faulty_fields(*kind, object);
        let name = format!("{file}: {}", object["metadata"]["name"]);
        let reply = create(*kind, object);
        match reply.0 {
            201 => {
                accepted += 1;
                assert_eq!(faulty_fields(*kind, &reply.1), expected, "{name} lost something: {}", reply.1);
            }
            422 => {
                by_schema += 1;
                let causes = reply.1["details"]["causes"].as_array().cloned().unwrap_or_default();
                let is_named = |cause: &Value| expected.iter().any(|field| cause["field"] == **field);
                assert!(causes.iter().any(is_named), "{name}: {expected:?}: {causes:?}");
            }
            _ => panic!("{name}: {}", reply.1),
        }
    }
    for path in &made {
        println!("delete {path}: {}", api.delete(path).0);
    }
    println!(
        "{} policies accepted; of {} invalid ones, the schema refused {by_schema}",
        valid.len(),
        invalid.len()
    );
    assert!(valid.len() >= 40 && by_schema >= 30 && accepted >= 10, "{} {by_schema} {accepted}", valid.len());
}
