//! Every kustomization builds, and one that cannot be built is noticed.
#![allow(clippy::disallowed_types, reason = "builds JSON")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]

use serde_json::Value;

use super::{Files, build, order};
use crate::yaml::documents;

#[test]
fn every_kustomization_builds() {
    let files = Files::of_repository();
    let mut built = 0;
    for overlay in files.folders("overlays") {
        let objects = build(&files, &format!("overlays/{overlay}")).unwrap_or_else(|fault| panic!("{fault}"));
        assert!(objects.len() >= 8, "{overlay}");
        assert_eq!(objects[0]["kind"], "Namespace", "{overlay}");
        built += 1;
    }
    assert_eq!(built, 13);
    // Every file of every folder is used by the kustomization beside it; monitoring is for those without it, too.
    let kustomizations = files.0.iter().filter(|(path, _)| path.ends_with("/kustomization.yaml"));
    for (path, text) in kustomizations.filter(|(path, _)| !path.starts_with("monitoring/")) {
        let folder = path.trim_end_matches("kustomization.yaml");
        for file in files.0.keys().filter_map(|file| file.strip_prefix(folder)) {
            assert!(
                file == "kustomization.yaml" || text.contains(&format!("{file}\n")),
                "{folder}{file} is unused"
            );
        }
    }
    // Every component is used by an overlay, or is named here and built by a test of its own.
    let overlays: String = files
        .0
        .iter()
        .filter(|(path, _)| path.starts_with("overlays/"))
        .map(|(_, text)| text.as_str())
        .collect();
    for component in files.folders("components").iter().filter(|name| *name != "policies") {
        assert!(overlays.contains(&format!("- ../../components/{component}\n")), "{component}");
    }
}

/// Each of these errors must stop the build.
#[test]
fn a_kustomization_that_cannot_be_built_is_noticed() {
    type Plant = fn(&mut Files);
    let own = "overlays/ha/kustomization.yaml";
    let planted: [(&str, Plant, &str); 15] = [
        (
            "a cycle",
            |f| f.edit("overlays/self-managed/kustomization.yaml", "../../base", "../ha"),
            "cycle detected",
        ),
        (
            "itself",
            |f| f.edit("overlays/ha/kustomization.yaml", "../self-managed", "../ha"),
            "cycle detected",
        ),
        (
            // The layout of long ago: overlays within their base.
            "a base that contains its overlay",
            |f| {
                for file in ["kustomization", "namespace", "service", "deployment", "disruption", "network"] {
                    let text = f.0[&format!("base/{file}.yaml")].clone();
                    f.0.insert(format!("overlays/{file}.yaml"), text);
                }
                f.edit("overlays/self-managed/kustomization.yaml", "../../base", "..");
            },
            "cycle detected: overlays contains overlays/",
        ),
        ("a missing file", |f| drop(f.0.remove("base/service.yaml")), "base/service.yaml does not exist"),
        (
            "a missing folder",
            |f| f.edit("overlays/ha/kustomization.yaml", "../self-managed", "../managed"),
            "does not exist",
        ),
        (
            "a file of another folder",
            |f| f.edit("overlays/ha/kustomization.yaml", "- ../self-managed", "- ../../base/service.yaml"),
            "is not in or below",
        ),
        (
            "an object twice",
            |f| {
                f.edit(
                    "overlays/ha/kustomization.yaml",
                    "- ../self-managed",
                    "- ../self-managed\n- ../../base",
                )
            },
            "is there twice",
        ),
        (
            "a component among the resources",
            |f| f.edit("overlays/ha/kustomization.yaml", "- ../self-managed", "- ../../components/cluster"),
            "is not kustomize.config.k8s.io/v1beta1 Kustomization",
        ),
        (
            "a patch of an object that is not there",
            |f| f.edit("components/ha/disruption.yaml", "name: tollgate", "name: gate"),
            "no object",
        ),
        (
            "a target that selects nothing",
            |f| f.edit("components/ha/kustomization.yaml", "kind: Deployment", "kind: DaemonSet"),
            "selects nothing",
        ),
        (
            "a path that is not there",
            |f| f.edit("components/ha/deployment.yaml", "/spec/replicas", "/spec/replica"),
            "/spec/replica does not exist",
        ),
        (
            "a deletion of nothing",
            |f| f.edit("overlays/self-managed/deployment.yaml", "mountPath: /certs", "mountPath: /cert"),
            "hits nothing",
        ),
        (
            "a list without a known key",
            |f| {
                f.edit(
                    "overlays/self-managed/deployment.yaml",
                    "      volumes:",
                    "      topologySpreadConstraints: [{}]\n      volumes:",
                )
            },
            "use a JSON patch",
        ),
        (
            "an image that no container has",
            |f| f.edit("base/kustomization.yaml", "- name: tollgate\n", "- name: gate\n"),
            "no container has the image",
        ),
        (
            "a field that is not known",
            |f| f.edit("overlays/ha/kustomization.yaml", "components:", "namePrefix: a-\ncomponents:"),
            "namePrefix is not known",
        ),
    ];
    assert!(Files::of_repository().0.contains_key(own));
    for (fault, plant, expected) in planted {
        let mut files = Files::of_repository();
        plant(&mut files);
        match build(&files, "overlays/ha") {
            Ok(_) => panic!("{fault} is not noticed"),
            Err(said) => assert!(said.contains(expected), "{fault}: {said}"),
        }
    }
}

/// The printed objects decode to the same objects, so that the tests check what a user applies.
#[test]
fn objects_of_a_build_are_those_of_its_files() {
    let files = Files::of_repository();
    let objects = build(&files, "base").expect("it builds");
    let mut of_files: Vec<Value> = ["namespace", "service", "deployment", "disruption", "network"]
        .iter()
        .flat_map(|file| documents(&files.0[&format!("base/{file}.yaml")]))
        .collect();
    of_files.sort_by_key(order);
    assert_eq!(objects, of_files);
}
