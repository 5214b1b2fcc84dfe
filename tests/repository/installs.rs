//! Every way to install Tollgate: the overlays, the chart, `tollgate manifests`. All pass the same checks, and each
//! check notices a planted fault.
#![cfg_attr(
    not(feature = "online"),
    allow(dead_code, unused_imports, reason = "the checks need the whole program")
)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "builds JSON, reads files")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]

mod planted;

use serde_json::{Value, json};

use crate::chart;
use crate::install_checks::Installation;
use crate::kustomize::{Files, build, id, normalized};

/// Secrets and ConfigMaps that the user of an overlay creates.
fn from_user(overlay: &str) -> &'static [&'static str] {
    match overlay {
        "existing-secret" => &["tollgate-tls"],
        _ => &[],
    }
}

fn overlay(files: &Files, name: &str) -> Installation {
    let objects = build(files, &format!("overlays/{name}")).unwrap_or_else(|fault| panic!("{fault}"));
    Installation { objects, namespace_exists: false, from_user: from_user(name) }
}

#[test]
fn every_overlay_is_a_sound_installation() {
    let files = Files::of_repository();
    for name in files.folders("overlays") {
        assert_eq!(overlay(&files, &name).faults(), [""; 0], "{name}");
    }
}

/// Components can be combined in a kustomization of one's own, as `docs/guides/installation-options.md` shows.
#[test]
fn components_can_be_combined() {
    let mut files = Files::of_repository();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guides/installation-options.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, example) = page.split_once("```yaml\n# kustomization.yaml\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    files.0.insert("mine/kustomization.yaml".to_owned(), example.replace("manifests/", "../"));
    let objects = build(&files, "mine").unwrap_or_else(|fault| panic!("{fault}"));
    let mine = Installation { objects, namespace_exists: false, from_user: &["tollgate-policies"] };
    assert_eq!(mine.faults(), [""; 0]);
    let text = json!(mine.objects).to_string();
    for part in [
        "\"replicas\":3",
        "registry.example.com/tollgate:0.1.0",
        "tollgate-policies",
        "TOLLGATE_CLUSTER",
        "cert-manager.io/v1",
    ] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn every_values_file_gives_the_objects_of_its_overlay() {
    let files = Files::of_repository();
    let overlays = files.folders("overlays");
    let mut named: Vec<String> = files
        .0
        .keys()
        .filter_map(|path| path.strip_prefix("chart/values/")?.strip_suffix(".yaml"))
        .map(str::to_owned)
        .collect();
    named.sort();
    assert_eq!(named, overlays, "a values file for each overlay");
    for name in overlays {
        let rendered =
            chart::render(&files, Some(&files.0[&format!("chart/values/{name}.yaml")]), "tollgate-system");
        let rendered = rendered.unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let mut installed: Vec<Value> =
            rendered.into_iter().filter(|object| !chart::is_hook(object)).collect();
        // Without their definitions, all policies would be deleted.
        for definition in installed.iter_mut().filter(|object| object["kind"] == "CustomResourceDefinition") {
            let annotations =
                definition["metadata"].as_object_mut().and_then(|fields| fields.remove("annotations"));
            assert_eq!(annotations, Some(json!({"helm.sh/resource-policy": "keep"})), "{name}");
        }
        let sorted = |objects: &[Value]| {
            let mut objects: Vec<Value> = objects.iter().map(normalized).collect();
            objects.sort_by_key(id);
            objects
        };
        // Helm creates the namespace before the chart, which therefore cannot contain it.
        let mut built = overlay(&files, &name).objects;
        built.retain(|object| object["kind"] != "Namespace");
        for (one, other) in sorted(&installed).iter().zip(&sorted(&built)) {
            assert_eq!(one, other, "{name}");
        }
        assert_eq!(installed.len(), built.len(), "{name}");
        let chart = Installation { objects: installed, namespace_exists: true, from_user: from_user(&name) };
        assert_eq!(chart.faults(), [""; 0], "{name}");
    }
}
