//! What `tollgate validate` costs over 10,000 documents, beside only parsing the same YAML with the same parser.
//!
//! One run, one thread, alternating rounds, best of each: the ratio is the number that counts (bar: at most 2). Then
//! the real program over folders of 1,000 and 10,000 clean files: time, and peak memory, which must not grow with the
//! number of files.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a bench reads the clock, writes files, prints, and stops when its input is broken"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tollgate::{Attributes, Engine, LabelsIfKnown, Operation, Profile, RuleSet, documents};
use tollgate_document::source::list;

const DOCUMENTS: usize = 10_000;

fn main() {
    let texts: Vec<String> = (0..100).map(|file| manifest(file * 100, 100)).collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    let engine = Engine::new(
        vec![Profile::named("kep-5055").expect("a profile")],
        RuleSet::parse("upstream,documented,lint,decoding,strict").expect("origins"),
    );
    let (mut parse, mut validate) = (Duration::MAX, Duration::MAX);
    for _ in 0..7 {
        parse = parse.min(timed(|| texts.iter().for_each(|text| only_parse(text))));
        validate = validate.min(timed(|| {
            let diagnostic: usize = texts.iter().map(|text| judge(&engine, text)).sum();
            assert_eq!(diagnostic, DOCUMENTS);
        }));
    }
    println!("{DOCUMENTS} documents, {bytes} bytes, one thread");
    println!("  only parsing (granit-parser events)   {:>8.1} ms", millis(parse));
    println!("  reading, decoding and all rules       {:>8.1} ms", millis(validate));
    println!("  ratio                                 {:>8.2}   (bar: 2)", millis(validate) / millis(parse));
    for files in [1_000, 10_000] {
        run_program(files);
    }
}

fn timed(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn only_parse(text: &str) {
    for event in granit_parser::Parser::new_from_str(text) {
        std::hint::black_box(event.expect("YAML"));
    }
}

fn judge(engine: &Engine, text: &str) -> usize {
    let mut judged = 0;
    for document in documents(text) {
        let document = document.expect("YAML");
        for item in list::objects(document.doc.root()) {
            let verdict = engine.validate(
                &Attributes {
                    operation: Operation::Create,
                    subresource: "",
                    object: item.typed_value(),
                    old_object: None,
                    namespace: "",
                    user: tollgate::Value::absent(),
                    now: "2026-01-02T03:04:05Z".into(),
                },
                LabelsIfKnown::Unknown,
            );
            assert!(verdict.findings().is_empty(), "{verdict:?}");
            judged += 1;
        }
    }
    judged
}

/// `count` documents: claims with tolerations and selectors, rules, and small slices.
fn manifest(first: usize, count: usize) -> String {
    let mut out = String::new();
    for index in first..first + count {
        out.push_str("---\n");
        _ = match index % 3 {
            0 => write!(
                out,
                "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata:\n  name: claim-{index}\n  namespace: ml\n  labels:\n    app: training\nspec:\n  devices:\n    requests:\n    - name: gpu\n      exactly:\n        deviceClassName: gpu.example.com\n        count: 2\n        selectors:\n        - cel:\n            expression: device.driver == \"gpu.example.com\"\n        tolerations:\n        - key: gpu.example.com/degraded\n          operator: Exists\n          effect: NoSchedule\n        - key: gpu.example.com/degraded\n          operator: Equal\n          value: thermal\n          effect: NoExecute\n          tolerationSeconds: 600\n"
            ),
            1 => write!(
                out,
                "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata:\n  name: rule-{index}\nspec:\n  deviceSelector:\n    driver: gpu.example.com\n    pool: node-{index}\n    device: gpu-0\n  taint:\n    key: gpu.example.com/maintenance\n    value: planned\n    effect: NoSchedule\n    timeAdded: 2026-01-01T00:00:00Z\n"
            ),
            _ => write!(
                out,
                "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata:\n  name: slice-{index}\nspec:\n  driver: gpu.example.com\n  nodeName: node-{index}\n  pool:\n    name: node-{index}\n    generation: 1\n    resourceSliceCount: 1\n  devices:\n  - name: gpu-0\n    attributes:\n      model: {{string: H100}}\n      driverVersion: {{version: 1.2.3}}\n    capacity:\n      memory: {{value: 80Gi}}\n    taints:\n    - key: gpu.example.com/ecc\n      value: corrected\n      effect: None\n  - name: gpu-1\n    attributes:\n      model: {{string: H100}}\n    capacity:\n      memory: {{value: 80Gi}}\n"
            ),
        };
    }
    out
}

/// The real program over that many clean files.
fn run_program(files: usize) {
    let folder = std::env::temp_dir().join(format!("tollgate-bench-{}-{files}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for file in 0..files {
        std::fs::write(folder.join(format!("{file:05}.yaml")), manifest(file, 1)).expect("a file");
    }
    let start = Instant::now();
    let peak = run_and_watch(&folder);
    println!(
        "tollgate validate, {files:>6} files            {:>8.1} ms   peak memory {peak} KiB",
        millis(start.elapsed())
    );
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

/// Runs the program and reads its peak memory while it lives.
fn run_and_watch(folder: &Path) -> u64 {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .arg("validate")
        .arg(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        if let Ok(text) = std::fs::read_to_string(&status) {
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib = line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse().ok());
            peak = peak.max(kib.unwrap_or(0));
        }
        if let Some(status) = child.try_wait().expect("the program ends") {
            assert!(status.success(), "{status}");
            return peak;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
