//! ResourceSlicePatches laid over slices: `tests/patches/<case>.yaml` and the steps in `<case>.expect`.
//!
//! The order in which patches are listed must not matter, so every order of them is tried.
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_methods, reason = "reads the fixtures")]

use std::fmt::Write as _;

use tollgate_api::profile::{DEFAULT, Version};
use tollgate_api::view::{Slice, SlicePatch, View as _};
use tollgate_document::source::documents;
use tollgate_engine::impact::Snapshot;
use tollgate_engine::impact::other_apis::patches::PatchesByPrecedence;

fn patched_taints_text(text: &str, order: impl Fn(&mut Vec<SlicePatch<'_>>)) -> String {
    let documents: Vec<_> = documents(text).map(|document| document.expect("YAML")).collect();
    let of_kind = |kind: &'static str| {
        documents
            .iter()
            .map(|document| document.doc.root())
            .filter(move |root| root.get("kind").str() == kind)
    };
    let mut patches: Vec<SlicePatch<'_>> = of_kind("ResourceSlicePatch").map(SlicePatch::of).collect();
    order(&mut patches);
    let layers = PatchesByPrecedence::new(&patches, &Snapshot::new(), DEFAULT);
    let mut out = String::new();
    for root in of_kind("ResourceSlice") {
        let version = Version::parse(root.get("apiVersion").str().rsplit('/').next().unwrap_or_default());
        for device in layers.patched_devices_of_slice(Slice::of(root).spec(), version.expect("a version")) {
            _ = writeln!(out, "{}/{}/{}", device.driver, device.pool, device.device);
            for step in &device.steps {
                _ = writeln!(out, "  {step}");
            }
            let taints: Vec<String> = device.taints.iter().map(ToString::to_string).collect();
            _ = writeln!(out, "  = {}", taints.join(" "));
        }
    }
    out
}

fn check_patch_case(name: &str) {
    let read = |end: &str| {
        let path = format!("{}/tests/patches/{name}.{end}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).expect("a fixture")
    };
    let (text, expected) = (read("yaml"), read("expect"));
    assert_eq!(patched_taints_text(&text, |_| {}), expected);
    // Heap's algorithm, one swap at a time.
    let count = text.matches("kind: ResourceSlicePatch").count();
    let (mut counters, mut depth, mut swaps) = (vec![0_usize; count], 0, Vec::new());
    while depth < count {
        let counter = counters.get_mut(depth).expect("in range");
        if *counter < depth {
            swaps.push((if depth.is_multiple_of(2) { 0 } else { *counter }, depth));
            *counter += 1;
            depth = 0;
            let all = swaps.clone();
            let found = patched_taints_text(&text, |patches| {
                for (one, other) in &all {
                    patches.swap(*one, *other);
                }
            });
            assert_eq!(found, expected, "after {all:?}");
        } else {
            *counter = 0;
            depth += 1;
        }
    }
    assert!(swaps.len() >= 5, "only {} orders", swaps.len());
}

#[test]
fn the_strongest_of_five_patches_wins_each_key_and_effect() {
    check_patch_case("five");
}

#[test]
fn one_patch_and_equal_patches_have_an_order_too() {
    check_patch_case("one");
}
