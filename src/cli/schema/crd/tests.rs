//! The definitions in `manifests/crds` are the generated ones, and take every policy of the repository.

use std::path::Path;

use super::crd_yaml;
use tollgate_document::source::documents;
use tollgate_engine::policy::{PolicyKind, is_test_file, resource_errors};

/// `SNAPSHOTS=overwrite cargo test --lib schema::crd` rewrites the files.
#[test]
fn the_manifests_are_the_generated_definitions() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/crds");
    for kind in PolicyKind::ALL {
        let path = folder.join(format!("{}.yaml", kind.plural()));
        assert_file_matches_or_overwrite(&path, &crd_yaml(kind));
    }
    assert_file_matches_or_overwrite(
        &folder.join("../chart/templates/crds.yaml"),
        &generated_chart_template(),
    );
}

/// The definitions in the chart, which cannot read files outside of its folder. Helm must not delete them, because all
/// policies would go with them.
fn generated_chart_template() -> String {
    let labels = "  labels:\n    app.kubernetes.io/name: tollgate\n";
    let kept = format!("{labels}  annotations:\n    helm.sh/resource-policy: keep\n");
    let texts = PolicyKind::ALL.map(|kind| crd_yaml(kind).replacen(labels, &kept, 1));
    assert!(texts.iter().all(|text| text.contains(&kept) && !text.contains("{{")));
    format!("{{{{- if .Values.policyResources.enabled }}}}\n{}{{{{- end }}}}\n", texts.join("---\n"))
}

#[expect(clippy::disallowed_methods, reason = "reads and writes the manifests")]
fn assert_file_matches_or_overwrite(path: &Path, generated: &str) {
    if std::env::var_os("SNAPSHOTS").is_some_and(|action| action == "overwrite") {
        std::fs::write(path, generated).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == generated,
        "SNAPSHOTS=overwrite cargo test --lib schema::crd writes {}",
        path.display()
    );
}

#[test]
#[expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "reads files, takes a generic JSON tree"
)]
fn the_schemas_take_every_policy_that_loads() {
    let validators = PolicyKind::ALL.map(|kind| {
        let text = crd_yaml(kind);
        let json = documents(&text).next().unwrap().ok().unwrap().doc.root().to_json();
        let definition: serde_json::Value = serde_json::from_str(&json).unwrap();
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        (kind, jsonschema::validator_for(schema).unwrap())
    });
    let mut counts = [0; 2];
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/policies")).unwrap() {
        let path = entry.unwrap().path();
        if is_test_file(&path.to_string_lossy()) {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for document in documents(&text).flatten() {
            let root = document.doc.root();
            let kind = PolicyKind::parse(root.get("kind").str()).unwrap();
            assert_eq!(resource_errors(kind, root), [], "{}", path.display());
            let (_, validator) = validators.iter().find(|(known, _)| *known == kind).unwrap();
            let json = root.to_json();
            let errors = |json: &str| -> Vec<String> {
                let value = serde_json::from_str(json).unwrap();
                validator.iter_errors(&value).map(|error| error.to_string()).collect()
            };
            assert_eq!(errors(&json), Vec::<String>::new(), "{}", path.display());
            counts[0] += 1;
            // A word of no enum is refused.
            if json.contains("\"action\":\"Deny\"") {
                assert_ne!(
                    errors(&json.replace("\"action\":\"Deny\"", "\"action\":\"deny\"")),
                    Vec::<String>::new()
                );
                counts[1] += 1;
            }
        }
    }
    assert!(counts[0] >= 10 && counts[1] >= 5, "{counts:?}");
}
