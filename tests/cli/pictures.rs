//! `-o html` of the program: which commands have it, what a page says about its data, and that the reports that the
//! browser tests draw are those of the program.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test that cannot read its data has failed"
)]

use std::path::Path;

use crate::program::run;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const STATE: [&str; 8] = [
    "--state",
    "examples/cluster.yaml",
    "--state",
    "examples/forecast/nodes.yaml",
    "--kubernetes",
    "1.37",
    "--now",
    "2026-11-16T09:30:00Z",
];

/// The commands whose reports are drawn, with the files in `crates/picture/tests/reports` and the titles of their
/// pages.
const REPORTS: [(&str, &[&str], &str); 5] = [
    ("devices.json", &["devices"], "<h1>Devices</h1>"),
    (
        "impact.jsonl",
        &[
            "impact",
            "--target",
            "gpu.example.com/gpu-node-01",
            "--target",
            "gpu.example.com/gpu-node-05",
            "--key",
            "gpu.example.com/degraded",
        ],
        "<h1>Impact of 2 changes</h1>",
    ),
    (
        "forecast.json",
        &["forecast", "examples/forecast/drain.yaml", "examples/forecast/job.yaml"],
        "<h1>Forecast for 2 objects</h1>",
    ),
    ("drain.json", &["drain", "node/gpu-node-03"], "<h1>Drain of node/gpu-node-03</h1>"),
    ("audit.json", &["audit", "--policy", "examples/introduce-policies/warn"], "<h1>Audit</h1>"),
];

/// The arguments of a report in a format. An audit reads only what it checks.
fn arguments<'a>(command: &[&'a str], format: &'a str) -> Vec<&'a str> {
    let state = if command[0] == "audit" { [&STATE[..2], &STATE[4..]].concat() } else { STATE.to_vec() };
    [command, &state, &["-o", format]].concat()
}

#[test]
fn reports_that_are_drawn_are_those_of_the_program() {
    for (file, command, _) in REPORTS {
        let (_, report, _) = run(Path::new(ROOT), &arguments(command, "json"));
        let file = Path::new(ROOT).join("crates/picture/tests/reports").join(file);
        if std::env::var("SNAPSHOTS").as_deref() == Ok("overwrite") {
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("the folder is made");
            std::fs::write(&file, &report).expect("the report is written");
        }
        let recorded = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(recorded == report, "{}: run this test with SNAPSHOTS=overwrite", file.display());
    }
}

#[test]
fn a_page_says_where_its_data_come_from_and_exits_like_the_report() {
    for (_, command, title) in REPORTS {
        let (expected, _, _) = run(Path::new(ROOT), &arguments(command, "json"));
        let (code, page, _) = run(Path::new(ROOT), &arguments(command, "html"));
        assert_eq!(code, expected, "{command:?}");
        let typed = format!("tollgate {}", arguments(command, "html").join(" "));
        for part in [
            "<!DOCTYPE html>",
            "default-src 'none'; style-src 'sha256-",
            title,
            "examples/cluster.yaml",
            "of context production (https://production.example.com:6443)",
            "2026-11-16T09:00:00Z</time>, 30 min before this report",
            "<dd>complete</dd>",
            &typed,
            "/blob/main/docs/",
        ] {
            assert!(page.contains(part), "{command:?}: no {part:?} in {page}");
        }
        let has_capacity = !["devices", "audit"].contains(&command[0]);
        assert_eq!(page.contains("<h2>Devices by class, before and after"), has_capacity, "{command:?}");
    }
}

/// Each page says what a reader must know before the next step.
#[test]
fn a_page_says_what_to_do_next_and_what_to_beware_of() {
    for (place, parts) in [
        (0, &["with NoSchedule, pods that use it keep running; with NoExecute, they are evicted unless"][..]),
        (
            1,
            &[
                "7 fit elsewhere, and <strong class=\"warn\">replacements of 8 can be evicted again",
                "8 can be evicted again</span>",
            ],
        ),
        (2, &["do not respect PodDisruptionBudgets; <code>tollgate impact</code> counts the violations"]),
        (
            3,
            &[
                "run <code>tollgate drain node/gpu-node-03</code>",
                "run <code>tollgate undrain node/gpu-node-03</code>",
                "This plan is about a dump, but the commands act on a cluster",
            ],
        ),
        (4, &["The specs of ResourceClaims and ResourceClaimTemplates cannot be edited."]),
    ] {
        let command = REPORTS[place].1;
        let (_, page, _) = run(Path::new(ROOT), &arguments(command, "html"));
        for part in parts {
            assert!(page.contains(part), "{command:?}: no {part:?} in {page}");
        }
    }
}

#[test]
fn an_incomplete_state_is_said_on_the_page() {
    let (code, page, _) = run(
        Path::new(ROOT),
        &["devices", "--state", "examples/forecast/nodes.yaml", "--kubernetes", "1.37", "-o", "html"],
    );
    assert_eq!(code, 0);
    assert!(page.contains("incomplete</strong>: the dump contains no ResourceSlices"), "{page}");
    assert!(page.contains("at a time that the dump does not record"), "{page}");
}

#[test]
fn without_a_dry_run_a_drain_has_no_page() {
    let (code, out, errors) =
        run(Path::new(ROOT), &["drain", "node/gpu-node-03", "--context", "no-such-context", "-o", "html"]);
    assert_eq!((code, out.as_str()), (2, ""), "{errors}");
    assert!(errors.contains("-o html requires --dry-run or --state"), "{errors}");
}

#[test]
fn devices_whose_counters_are_used_up_are_not_counted_as_free() {
    let folder = crate::program::folder("partitions");
    let train = r#"
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: research}
spec:
  containers: [{name: main, image: train, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: whole}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: whole, namespace: research}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu
        selectors: [{cel: {expression: "device.attributes['gpu.example.com'].size == 2"}}]
"#;
    std::fs::write(folder.join("train.yaml"), train).expect("the file is written");
    let state = Path::new(ROOT).join("tests/cli/forecast/partitions.yaml");
    let state = state.to_str().expect("a path in UTF-8");
    // Of 6 devices, `whole` of node a is blocked by the half that a pod uses. After each change, node b or its halves
    // are used up as well.
    for command in [
        &["drain", "node/a"][..],
        &["impact", "--target", "gpu.example.com/a", "--key", "example.com/broken"],
        &["forecast", "train.yaml"],
    ] {
        let flags = ["--state", state, "--assume-complete", "--kubernetes", "1.37", "-o", "html"];
        let (_, page, errors) = run(&folder, &[command, &flags].concat());
        assert!(page.contains("4 → 1 free"), "{command:?}: {errors}{page}");
    }
}

#[test]
fn a_blocked_device_is_not_shown_as_tainted() {
    let folder = crate::program::folder("states-of-a-class");
    let state = r#"
apiVersion: v1
kind: Node
metadata: {name: cordoned}
spec: {unschedulable: true}
---
apiVersion: v1
kind: Node
metadata: {name: open}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: cordoned}
spec:
  driver: gpu.example.com
  nodeName: cordoned
  pool: {name: cordoned, generation: 1, resourceSliceCount: 1}
  devices: [{name: blocked}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: open}
spec:
  driver: gpu.example.com
  nodeName: open
  pool: {name: open, generation: 1, resourceSliceCount: 1}
  devices: [{name: held, taints: [{key: example.com/degraded, effect: NoSchedule}]}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: train, namespace: research}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
status:
  allocation:
    devices: {results: [{request: gpu, driver: gpu.example.com, pool: open, device: held}]}
"#;
    std::fs::write(folder.join("state.yaml"), state).expect("the file is written");
    let arguments = ["devices", "--state", "state.yaml", "--kubernetes", "1.37", "-o", "html"];
    let (_, page, errors) = run(&folder, &arguments);
    for part in ["1 allocated and tainted</span>", "1 blocked, neither allocated nor tainted</span>"] {
        assert!(page.contains(part), "no {part:?}: {errors}{page}");
    }
    assert!(!page.contains("tainted and not allocated"), "{page}");
}
