//! The process as a pipeline, a terminal and a CI server see it: exit codes, closed pipes, and texts that would rather
//! be commands.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_methods, reason = "writes the files that it judges")]

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use super::program::{folder, run, tollgate};

const RULE: &str = "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec:\n  deviceSelector: {driver: d.example.com, pool: p}\n  taint: {key: example.com/a, effect: NoExecute}\n";
const BAD_RULE: &str = "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec:\n  deviceSelector: {driver: d.example.com, pool: p}\n  taint: {key: example.com/a, effect: X}\n";
const CLAIM: &str = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c, namespace: ml}\nspec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, tolerations: [{key: example.com/a, operator: Exists, effect: NoSchedule}]}}]}}\n";

fn policy(action: &str) -> String {
    format!(
        "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {{name: p}}\nspec:\n  action: {action}\n  deny: [{{key: example.com/a}}]\n"
    )
}

#[test]
fn audit_is_neither_a_denial_nor_a_warning() {
    let folder = folder("audit");
    std::fs::write(folder.join("claim.yaml"), CLAIM).unwrap();
    std::fs::write(folder.join("audit.yaml"), policy("Audit")).unwrap();
    let audit = ["validate", "claim.yaml", "--policy", "audit.yaml", "--fail-on", "warn", "-o"];
    let shown = |format: &str| {
        let (code, out, err) = run(&folder, &[&audit[..], &[format]].concat());
        assert_eq!((code, err.as_str()), (0, ""), "{format}: {out}");
        out
    };
    let text = "1 file, 1 document: 1 valid (checked against kep-5055); 1 audit finding, see -o json\n";
    assert_eq!(shown("text"), text);
    assert_eq!(shown("github"), text);
    let json = shown("json");
    assert!(json.contains("\"verdict\":\"valid\"") && json.contains("\"level\":\"audit\""), "{json}");
    assert!(
        json.contains("\"invalid\":0,\"unreadable\":0,\"denied\":0,\"warned\":0,\"allowed\":0,"),
        "{json}"
    );
    assert!(shown("sarif").contains("\"level\":\"note\",\"message\""));
    let junit = shown("junit");
    assert!(junit.contains("failures=\"0\"") && !junit.contains("<failure"), "{junit}");
    // The other actions beside it, so that this is no test of a policy that finds nothing.
    for (action, code) in [("Warn", 1), ("Deny", 1)] {
        std::fs::write(folder.join("audit.yaml"), policy(action)).unwrap();
        assert_eq!(run(&folder, &audit[..6]).0, code, "{action}");
    }
    std::fs::write(folder.join("audit.yaml"), policy("Audit")).unwrap();
    let mut both = policy("Deny").replace("{name: p}", "{name: q}");
    _ = write!(both, "---\n{}", policy("Audit"));
    std::fs::write(folder.join("both.yaml"), both).unwrap();
    let (code, out, _) = run(&folder, &["validate", "claim.yaml", "--policy", "both.yaml"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.ends_with("1 invalid (checked against kep-5055); 1 audit finding, see -o json\n"), "{out}");
    let review = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"ml","kind":{"group":"resource.k8s.io","version":"v1","kind":"ResourceClaim"},"object":{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c","namespace":"ml"},"spec":{"devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu","allocationMode":"ExactCount","count":1,"tolerations":[{"key":"example.com/a","operator":"Exists","effect":"NoSchedule"}]}}]}}}}}"#;
    std::fs::write(folder.join("review.json"), review).unwrap();
    let arguments = ["review", "--findings", "review.json", "--policy", "audit.yaml", "--fail-on", "warn"];
    let (code, out, err) = run(&folder, &arguments);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("\"allowed\":true") && out.contains("\"level\":\"audit\""), "{out}");
}

/// Runs a command whose output is closed after `lines` lines. Returns the exit code.
fn exit_code_with_closed_output(folder: &Path, arguments: &[&str], lines: usize) -> i32 {
    let mut child =
        tollgate(folder, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut reader = BufReader::with_capacity(16, child.stdout.take().expect("a pipe"));
    for _ in 0..lines {
        reader.read_line(&mut String::new()).expect("a line");
    }
    drop(reader);
    let output = child.wait_with_output().expect("it ends");
    let noise = String::from_utf8_lossy(&output.stderr);
    assert!(!noise.contains("pipe") && !noise.contains("panic"), "{arguments:?}: {noise}");
    output.status.code().expect("no signal")
}

/// The exit code does not depend on whether the output is read completely.
#[test]
fn a_closed_pipe_does_not_change_the_exit_code() {
    let folder = folder("closed-pipe");
    for part in ["many", "clean", "unreadable", "tests"] {
        std::fs::create_dir_all(folder.join(part)).unwrap();
    }
    for number in 0..60 {
        std::fs::write(folder.join(format!("many/{number:03}.yaml")), format!("{BAD_RULE}---\n").repeat(10))
            .unwrap();
        std::fs::write(folder.join(format!("clean/{number:03}.yaml")), format!("{RULE}---\n").repeat(10))
            .unwrap();
    }
    // The verdict may be the last thing that is found.
    std::fs::write(folder.join("late.yaml"), format!("{}{BAD_RULE}", format!("{RULE}---\n").repeat(4000)))
        .unwrap();
    std::fs::write(folder.join("unreadable.yaml"), "a: [\n").unwrap();
    std::fs::write(folder.join("claim.yaml"), CLAIM).unwrap();
    std::fs::write(folder.join("deny.yaml"), policy("Deny")).unwrap();
    std::fs::write(
        folder.join("rule.yaml"),
        RULE.replace("{driver: d.example.com, pool: p}", "{driver: d.example.com}"),
    )
    .unwrap();
    std::fs::write(folder.join("state.yaml"), state(700)).unwrap();
    std::fs::write(folder.join("reviews.json"), reviews(300)).unwrap();
    let mut tests = String::from("policies: [../deny.yaml]\ntests:\n");
    for number in 0..600 {
        let expected = if number == 599 { "allow" } else { "deny" };
        _ = writeln!(
            tests,
            "- {{name: case {number} {}, expect: {expected}, object: {}}}",
            "x".repeat(200),
            claim_json()
        );
    }
    std::fs::write(folder.join("tests/all.test.yaml"), tests).unwrap();
    let cases: &[(&[&str], i32)] = &[
        (&["validate", "many"], 1),
        (&["validate", "many", "-o", "json"], 1),
        (&["validate", "many", "-o", "sarif"], 1),
        (&["validate", "many", "-o", "junit"], 1),
        (&["validate", "many", "-o", "github"], 1),
        (&["validate", "many", "--exit-zero"], 0),
        (&["validate", "late.yaml", "-o", "json"], 1),
        (&["validate", "clean", "-o", "json"], 0),
        (&["validate", "clean", "unreadable.yaml", "-o", "json"], 3),
        (&["mutate", "clean"], 0),
        (&["mutate", "clean", "unreadable.yaml"], 3),
        (&["mutate", "--diff", "clean", "unreadable.yaml"], 3),
        (&["review", "reviews.json", "--policy", "deny.yaml"], 1),
        (&["review", "reviews.json", "--policy", "deny.yaml", "--findings"], 1),
        (&["review", "reviews.json"], 0),
        (&["impact", "rule.yaml", "--state", "state.yaml", "--limit", "0", "--max", "pods=1"], 1),
        (&["impact", "rule.yaml", "--state", "state.yaml", "-o", "json", "--max", "pods=1"], 1),
        (&["impact", "rule.yaml", "--state", "state.yaml", "--limit", "0"], 0),
        (&["test", "tests"], 1),
        (&["test", "tests", "-o", "junit"], 1),
        (&["explain"], 0),
        (&["schema", "--help"], 0),
    ];
    for (arguments, code) in cases {
        let whole = tollgate(&folder, arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert_eq!(whole.expect("it runs").code(), Some(*code), "{arguments:?} read to the end");
        for lines in [0, 1] {
            assert_eq!(
                exit_code_with_closed_output(&folder, arguments, lines),
                *code,
                "{arguments:?} after {lines} lines"
            );
        }
    }
}

/// The exit code does not change if the reader of `--output-file` closes it.
#[cfg(unix)]
#[test]
fn a_closed_pipe_for_a_second_report_does_not_change_the_exit_code() {
    let folder = folder("closed-second-pipe");
    std::fs::write(folder.join("many.yaml"), format!("{BAD_RULE}---\n").repeat(2000)).unwrap();
    let made = Command::new("mkfifo").arg(folder.join("pipe")).status();
    assert!(made.expect("mkfifo").success());
    let mut head =
        Command::new("head").arg("-1").arg(folder.join("pipe")).stdout(Stdio::null()).spawn().expect("head");
    let (code, out, err) = run(&folder, &["validate", "many.yaml", "--output-file", "json=pipe"]);
    head.wait().expect("it ends");
    assert_eq!((code, err.as_str()), (1, ""));
    assert!(out.ends_with("2000 invalid (checked against kep-5055)\n"), "the report on stdout is whole");
}

fn claim_json() -> &'static str {
    r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c","namespace":"ml"},"spec":{"devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu","allocationMode":"ExactCount","count":1,"tolerations":[{"key":"example.com/a","operator":"Exists","effect":"NoSchedule"}]}}]}}}"#
}

/// Reviews of that claim, one per line.
fn reviews(count: usize) -> String {
    let one = |number: usize| {
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u{number}","operation":"CREATE","namespace":"ml","kind":{{"group":"resource.k8s.io","version":"v1","kind":"ResourceClaim"}},"object":{}}}}}{}"#,
            claim_json(),
            "\n"
        )
    };
    (0..count).map(one).collect()
}

/// A cluster with a device, a claim and a pod of each number.
fn state(count: usize) -> String {
    let mut out = String::new();
    for n in 0..count {
        _ = write!(
            out,
            "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: s{n}}}\nspec: {{driver: d.example.com, nodeName: n{n}, pool: {{name: p{n}, generation: 1, resourceSliceCount: 1}}, devices: [{{name: d}}]}}\n\
             ---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: c{n}, namespace: ml}}\nspec: {{devices: {{requests: [{{name: r, exactly: {{deviceClassName: c}}}}]}}}}\nstatus:\n  allocation: {{devices: {{results: [{{request: r, driver: d.example.com, pool: p{n}, device: d}}]}}}}\n  reservedFor: [{{resource: pods, name: pod{n}, uid: u{n}}}]\n\
             ---\napiVersion: v1\nkind: Pod\nmetadata: {{name: pod{n}, namespace: ml, uid: u{n}}}\nspec: {{nodeName: n{n}, resourceClaims: [{{name: r, resourceClaimName: c{n}}}]}}\n"
        );
    }
    out
}

/// Dropped fields have no effect, so `impact` must not compute a result without them.
#[test]
fn impact_does_not_answer_for_a_rule_that_loses_fields() {
    let folder = folder("impact-strict");
    std::fs::write(folder.join("state.yaml"), state(2)).unwrap();
    let cases = [
        ("selector", RULE.replace("deviceSelector", "selector"), "spec.selector"),
        ("taints", RULE.replace("  taint:", "  x: 1\n  taint:"), "spec.x"),
        ("twice", RULE.replace("  taint:", "  deviceSelector: {}\n  taint:"), "spec.deviceSelector"),
        ("type", RULE.replace("pool: p", "pool: 1"), "spec.deviceSelector.pool"),
        (
            "slice",
            "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: d.example.com, nodeName: n, pool: {name: p, generation: 1, resourceSliceCount: 1}, devices: [{name: d, taint: {key: a, effect: NoExecute}}]}\n".to_owned(),
            "spec.devices[0].taint",
        ),
    ];
    for (name, text, field) in cases {
        std::fs::write(folder.join("rule.yaml"), text).unwrap();
        let (code, out, err) = run(&folder, &["impact", "rule.yaml", "--state", "state.yaml"]);
        assert_eq!((code, out.as_str()), (1, ""), "{name}: {err}");
        assert!(err.starts_with("error: rule.yaml: ") && err.contains(field), "{name}: {err}");
        let (code, out, _) = run(&folder, &["impact", "rule.yaml", "--state", "state.yaml", "-o", "json"]);
        assert_eq!((code, out.as_str()), (1, ""), "{name}");
    }
    for (version, code) in [("resource.k8s.io/v9", 3), ("resource.k8s/v1", 3), ("v1", 3)] {
        let text = format!("{RULE}---\n{}", RULE.replace("resource.k8s.io/v1", version));
        std::fs::write(folder.join("rule.yaml"), text).unwrap();
        let (found, _, err) = run(&folder, &["impact", "rule.yaml", "--state", "state.yaml"]);
        assert_eq!(found, code, "{version}: {err}");
        assert!(err.contains("rule.yaml:8:13: ") && err.contains(version), "{err}");
    }
}

/// With a limit, `impact` must not succeed for an incomplete dump.
#[test]
fn impact_with_a_limit_wants_a_complete_dump() {
    let folder = folder("impact-incomplete");
    let rule = RULE.replace("{driver: d.example.com, pool: p}", "{driver: d.example.com}");
    std::fs::write(folder.join("rule.yaml"), rule).unwrap();
    let whole = state(2);
    let without = |kind: &str| -> String {
        let is_left = |document: &&str| !document.contains(&format!("\nkind: {kind}\n"));
        whole.split("---\n").filter(is_left).collect::<Vec<&str>>().join("---\n")
    };
    let list = |kind: &str, metadata: &str| {
        format!(
            "{whole}---\napiVersion: resource.k8s.io/v1\nkind: {kind}List\nmetadata: {metadata}\nitems: []\n"
        )
    };
    let limits = ["--max", "pods=10,devices=10,namespaces=10"];
    for (text, holes) in [
        (whole.clone(), None),
        (without("ResourceClaim"), Some("the dump contains no ResourceClaims")),
        (without("ResourceSlice"), Some("the dump contains no ResourceSlices")),
        (without("Pod"), Some("the dump contains no Pods")),
        (
            list("ResourceClaim", "{continue: abc}"),
            Some("state.yaml contains an incomplete ResourceClaimList"),
        ),
        (
            list("ResourceClaim", "{remainingItemCount: 7}"),
            Some("state.yaml contains an incomplete ResourceClaimList"),
        ),
        (list("ResourceClaim", "{resourceVersion: '7'}"), None),
        (
            format!(
                "{}---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimList\nitems: []\n",
                without("ResourceClaim")
            ),
            None,
        ),
    ] {
        std::fs::write(folder.join("state.yaml"), &text).unwrap();
        let asked = ["impact", "--state", "state.yaml", "rule.yaml"];
        let (code, out, err) = run(&folder, &[&asked[..], &["-o", "json"], &limits].concat());
        assert_eq!(code, if holes.is_some() { 3 } else { 0 }, "{holes:?}: {err}");
        if let Some(hole) = holes {
            let hint = ". If the cluster contains no such objects, add --assume-complete";
            let hint = if hole.starts_with("the dump contains no") { hint } else { "" };
            assert!(err.contains(&format!("error: cannot check --max: {hole}{hint}\n")), "{err}");
        }
        let expected = holes.map(|hole| format!("\"{hole}\"")).unwrap_or_default();
        assert!(out.contains(&format!("\"incomplete\":[{expected}]")), "{out}");
        let (code, _, err) = run(&folder, &asked);
        // A kind without objects may have none in the cluster; a list that was cut off is as in a cluster that cannot
        // be read.
        let (expected, said) = match holes {
            None => (0, String::new()),
            Some(hole) if hole.starts_with("the dump contains no") => {
                (0, format!("note: {hole}; it may be incomplete"))
            }
            Some(hole) => (3, format!("error: the dump is incomplete: {hole}")),
        };
        assert!(code == expected && err.starts_with(&said), "{code} {err}");
        assert_eq!(err.is_empty(), holes.is_none(), "{err}");
        let (code, _, err) = run(&folder, &[&asked[..], &["--assume-complete"], &limits].concat());
        let is_cut = text.contains("continue") || text.contains("remaining");
        assert_eq!(code, if is_cut { 3 } else { 0 }, "a list that was cut is never complete: {err}");
    }
    // What is over a limit in a part is over it in the whole.
    std::fs::write(folder.join("state.yaml"), list("Pod", "{continue: x}")).unwrap();
    let (code, _, err) = run(&folder, &["impact", "--state", "state.yaml", "rule.yaml", "--max", "pods=1"]);
    assert_eq!(code, 1, "{err}");
    std::fs::write(folder.join("state.yaml"), &whole).unwrap();
    std::fs::write(folder.join("empty.yaml"), "").unwrap();
    let (code, _, err) = run(
        &folder,
        &[&["impact", "--state", "state.yaml", "--state", "empty.yaml", "rule.yaml"][..], &limits].concat(),
    );
    assert_eq!(code, 3, "{err}");
}

#[test]
fn help_is_a_command_and_an_origin_is_explained() {
    let folder = folder("help");
    let (code, out, err) = run(&folder, &["help"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, run(&folder, &["--help"]).1);
    for command in ["validate", "impact", "explain", "taint"] {
        let (code, out, err) = run(&folder, &["help", command]);
        assert_eq!((code, err.as_str()), (0, ""), "{command}");
        assert!(out.contains(&format!("Usage: tollgate {command}")), "{out}");
    }
    assert_eq!(run(&folder, &["help", "policy", "diff"]).0, 0);
    assert_eq!(run(&folder, &["help", "nonsense"]).0, 2);
    let (_, all, _) = run(&folder, &["explain"]);
    let mut count = 0;
    for origin in ["upstream", "documented", "lint", "policy", "decoding", "strict"] {
        let (code, out, err) = run(&folder, &["explain", origin]);
        assert_eq!((code, err.as_str()), (0, ""), "{origin}");
        for line in out.lines().skip(1) {
            count += 1;
            assert_eq!(line.split_whitespace().nth(1), Some(origin), "{line}");
        }
    }
    assert_eq!(count, all.lines().count() - 1, "every rule has one origin");
    for word in ["lints", "upstrem", "nothing-like-it", "taint-efect"] {
        let (code, _, err) = run(&folder, &["explain", word]);
        assert_eq!(code, 2, "{err}");
        assert!(!err.contains(&format!("did you mean `{word}`")), "{err}");
    }
}

/// A hostile name with escape sequences, C1 controls, bidirectional and zero-width characters, and line
/// breaks that start workflow commands.
const HOSTILE: &str = "x\u{1b}[31m\u{9b}2J\u{85}\u{202e}\u{2066}\u{200b}\u{feff}\u{7f}\n::error::pwned\r::warning::x ##[error]y ##vso[z]";

/// The first control sequence or CI command in an output.
fn first_control_sequence(text: &str) -> Option<String> {
    let is_active =
        |c: &char| *c != '\n' && (c.is_control() || "\u{202e}\u{2066}\u{200b}\u{feff}".contains(*c));
    let active = text.chars().find(is_active).map(|c| format!("{c:?}"));
    let command =
        |line: &&str| line.trim_start().starts_with("::") || line.contains("##[") || line.contains("##vso[");
    active.or_else(|| text.lines().find(command).map(str::to_owned))
}

/// Texts from manifests cannot inject control sequences or workflow commands into the output.
#[test]
fn nothing_that_others_wrote_is_obeyed() {
    let folder = folder("obeyed");
    let json = |text: &str| serde_json::to_string(text).unwrap();
    // Raw in the text of the file where JSON allows it, so that the excerpt shows it.
    let raw: String = HOSTILE.chars().filter(|c| !c.is_ascii_control()).collect();
    let name: String = json(HOSTILE)
        .chars()
        .map(|c| if c.is_ascii() { c.to_string() } else { format!("\\u{:04x}", u32::from(c)) })
        .collect();
    let name = name.replace('\u{7f}', "\\u007f");
    let raw = json(&raw);
    let rule = |name: &str, spec: &str| {
        format!(
            r#"{{"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{{"name":{name},"labels":{{{name}:{name}}}}},"spec":{spec}}}"#
        )
    };
    let selector = r#""deviceSelector":{"driver":"d.example.com"}"#;
    let files = [
        ("rule.json", rule(&name, &format!(r#"{{{selector},{name}:1,"taint":{{"key":{name},"value":{raw},"effect":{raw}}}}}"#))),
        ("raw.json", rule(&raw, &format!(r#"{{{selector},{raw}:1,"taint":{{"key":{raw},"value":{raw},"effect":{raw}}}}}"#))),
        ("fine.json", rule("\"r\"", &format!(r#"{{{selector},"taint":{{"key":"example.com/a","effect":"NoExecute"}}}}"#))),
        ("broken.json", format!("{{\"a\": {raw} {raw}")),
        ("broken.yaml", format!("a: [{raw}\n# {raw}\n")),
        ("claim.json", claim_json().replace("\"name\":\"c\"", &format!("\"name\":\"c\",\"labels\":{{{name}:{raw}}}"))),
        ("review.json", reviews(1).replace("\"uid\":\"u0\"", &format!("\"uid\":{name}")).replace("\"c\"", &raw)),
        ("no-review.json", format!("{{\"request\": {{\"uid\": {raw}, \"x\": 1}}}} {raw}")),
        ("policy.yaml", format!("apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {{name: {name}}}\nspec:\n  action: Deny\n  deny: [{{key: example.com/a, reason: {name}}}]\n  validations: [{{expression: \"false\", message: {name}}}]\n")),
        ("policy-bad.yaml", format!("apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {{name: p}}\nspec:\n  {name}: 1\n  action: {name}\n")),
        ("fine.yaml", policy("Warn")),
        ("all.test.yaml", format!("policies: [fine.yaml]\ntests:\n- {{name: {name}, expect: allow, message: {name}, object: {}}}\n", claim_json())),
        ("bad.test.yaml", format!("policies: [fine.yaml]\ntests:\n- {{name: a, expect: {name}, object: {{}}}}\n")),
        ("state.yaml", state(2).replace("name: pod1", &format!("name: {name}")).replace("metadata: {name: s1}", &format!("metadata: {{name: {name}}}"))),
        ("bad-state.yaml", format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: {name}}}\nspec: {{nodeName: n, resourceClaims: [{{name: {name}, resourceClaimName: c}}]}}\n")),
        ("namespaces.yaml", format!("apiVersion: v1\nkind: {name}\nmetadata: {{name: {name}}}\n")),
        (&HOSTILE.replace('/', "_")[..], "a: [\n".to_owned()),
        (&format!("{HOSTILE}.yaml")[..], BAD_RULE.to_owned()),
        (&format!("{HOSTILE}.test.yaml")[..], "tests: 1\n".to_owned()),
    ]
    .map(|(name, text)| (name.to_owned(), text));
    for (name, text) in &files {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let mut runs: Vec<Vec<&str>> = Vec::new();
    for name in &names {
        for format in tollgate::Format::ALL.map(tollgate::Format::name) {
            runs.push(vec!["validate", name, "-o", format]);
        }
        runs.push(vec!["validate", "claim.json", "--policy", name]);
        runs.push(vec!["validate", "fine.json", "--state", name]);
        runs.push(vec!["validate", "fine.json", "--classes", name]);
        runs.push(vec!["validate", "fine.json", "--namespaces", name]);
        runs.push(vec!["mutate", "--patch", name]);
        runs.push(vec!["review", name, "--policy", "policy.yaml"]);
        runs.push(vec!["review", name, "--policy", "policy.yaml", "--findings"]);
        runs.push(vec!["test", name]);
        runs.push(vec!["test", name, "-o", "junit"]);
        runs.push(vec!["impact", name, "--state", "state.yaml"]);
        runs.push(vec!["impact", "fine.json", "--state", name]);
        runs.push(vec!["impact", "fine.json", "--state", name, "-o", "json"]);
        runs.push(vec!["impact", name, "--state", "state.yaml", "--max", "pods=0"]);
        for command in [
            "explain",
            "help",
            "certs",
            "taint",
            "completions",
            "validate",
            "--kubernetes",
            "validate\n::error::",
        ] {
            runs.push(vec![command, name]);
        }
        runs.push(vec!["taint", name, name]);
        runs.push(vec!["validate", "--rules", name]);
        runs.push(vec!["validate", "-o", name]);
        runs.push(vec!["validate", "--output-file", name]);
        runs.push(vec!["validate", "fine.json", "--now", name]);
        runs.push(vec!["validate", "fine.json", "--policy", "gone", "--namespaces", name]);
    }
    runs.push(vec!["validate", "."]);
    runs.push(vec!["test", "."]);
    let mut failures = String::new();
    for arguments in runs {
        let output = tollgate(&folder, &arguments).output().expect("it runs");
        for (stream, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
            let mut text = String::from_utf8(bytes).expect("UTF-8");
            if arguments.contains(&"github") && stream == "stdout" {
                let is_command =
                    |line: &&str| !line.starts_with("::error file=") && !line.starts_with("::warning file=");
                text = text.lines().filter(is_command).collect::<Vec<&str>>().join("\n");
            }
            if let Some(found) = first_control_sequence(&text) {
                _ = writeln!(failures, "{arguments:?} {stream}: {found}");
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// An annotation for GitHub is one line, and its properties cannot be forged.
#[test]
fn annotations_cannot_be_forged() {
    let folder = folder("annotations");
    let name = "a,line=1::b%0A:\n::error::c.yaml";
    std::fs::write(folder.join(name), BAD_RULE).unwrap();
    let (code, out, _) = run(&folder, &["validate", "-o", "github", name]);
    assert_eq!(code, 1);
    let mut lines = out.lines();
    let first = lines.next().expect("an annotation");
    assert!(
        first.starts_with(
            "::error file=a%2Cline=1%3A%3Ab%250A%3A\u{fffd}%3A%3Aerror%3A%3Ac.yaml,line=6,endLine=6,"
        ),
        "{first}"
    );
    assert!(lines.all(|line| !line.trim_start().starts_with("::")), "{out}");
}

/// Links that lead out of the folder are not followed.
#[cfg(unix)]
#[test]
fn links_that_leave_the_folder_are_not_followed() {
    use std::os::unix::fs::symlink;
    let folder = folder("links");
    for part in ["secret", "walked/..2026_01", "walked/real"] {
        std::fs::create_dir_all(folder.join(part)).unwrap();
    }
    std::fs::write(folder.join("secret/key.yaml"), "a: [SECRET\n").unwrap();
    std::fs::write(folder.join("secret/key.txt"), "a: [SECRET\n").unwrap();
    std::fs::write(folder.join("walked/..2026_01/rule.yaml"), RULE).unwrap();
    std::fs::write(folder.join("walked/real/rule.yaml"), RULE).unwrap();
    // As a kubelet lays out a volume.
    symlink("..2026_01", folder.join("walked/..data")).unwrap();
    symlink("..data/rule.yaml", folder.join("walked/rule.yaml")).unwrap();
    symlink("real", folder.join("walked/alias")).unwrap();
    let (code, out, err) = run(&folder, &["validate", "walked"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert_eq!(out, "2 files, 2 documents: 2 valid (checked against kep-5055)\n");

    symlink("../secret/key.txt", folder.join("walked/one.yaml")).unwrap();
    symlink(folder.join("secret"), folder.join("walked/two")).unwrap();
    symlink("../../secret/key.yaml", folder.join("walked/real/three.json")).unwrap();
    symlink("real/three.json", folder.join("walked/four.yaml")).unwrap();
    symlink("../secret/key.txt", folder.join("walked/ignored.txt")).unwrap();
    let note = "note: 4 symbolic links to targets outside their folders were not followed: walked/real/three.json, …\n";
    let (code, out, err) = run(&folder, &["validate", "walked"]);
    assert_eq!((code, err.as_str()), (0, note), "{out}");
    assert_eq!(
        out,
        "2 files, 2 documents: 2 valid (checked against kep-5055); not read: 4 outside the folder\n"
    );
    let (code, out, err) = run(&folder, &["mutate", "walked"]);
    assert_eq!((code, err.as_str()), (0, note), "{out}");
    // Where a hole would be a silence, it is an error.
    for arguments in [
        ["validate", "walked/real/rule.yaml", "--policy", "walked"],
        ["validate", "walked/real/rule.yaml", "--classes", "walked"],
        ["validate", "walked/real/rule.yaml", "--state", "walked"],
        ["impact", "walked", "--state", "walked/real"],
    ] {
        let (code, out, err) = run(&folder, &arguments);
        assert_eq!(code, 3, "{arguments:?}: {err}");
        assert!(!out.contains("SECRET") && !err.contains("SECRET"), "{arguments:?}: {out}{err}");
        assert!(err.contains("symbolic link"), "{arguments:?}: {err}");
    }
    // What is named is read.
    symlink("secret/key.yaml", folder.join("named.yaml")).unwrap();
    symlink("walked/real", folder.join("named")).unwrap();
    assert_eq!(run(&folder, &["validate", "named.yaml"]).0, 3);
    std::fs::remove_file(folder.join("walked/real/three.json")).unwrap();
    assert_eq!(
        run(&folder, &["validate", "named"]),
        (0, "1 file, 1 document: 1 valid (checked against kep-5055)\n".to_owned(), String::new())
    );
    // A policy volume of a kubelet.
    std::fs::create_dir_all(folder.join("policies/..2026_01")).unwrap();
    std::fs::write(folder.join("policies/..2026_01/p.yaml"), policy("Deny")).unwrap();
    symlink("..2026_01", folder.join("policies/..data")).unwrap();
    symlink("..data/p.yaml", folder.join("policies/p.yaml")).unwrap();
    std::fs::write(folder.join("claim.yaml"), CLAIM).unwrap();
    assert_eq!(run(&folder, &["validate", "claim.yaml", "--policy", "policies"]).0, 1);
}

/// A path need not be UTF-8, and a folder may be called like a test.
#[cfg(unix)]
#[test]
fn paths_are_used_as_they_are() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = folder("paths");
    let odd = folder.join(std::ffi::OsStr::from_bytes(b"a\xff.test.yaml"));
    std::fs::create_dir_all(&odd).unwrap();
    let tests = format!("tests:\n- {{name: a, expect: deny, object: {}}}\n", claim_json());
    std::fs::write(odd.join("p.test.yaml"), tests).unwrap();
    std::fs::write(odd.join("p.yaml"), policy("Deny")).unwrap();
    std::fs::write(odd.join(std::ffi::OsStr::from_bytes(b"\xfe\n.yaml")), BAD_RULE).unwrap();
    let (code, out, err) = run(&folder, &["test", "."]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.ends_with("1 passed, 0 failed\n"), "{out}");
    let (code, out, err) = run(&folder, &["validate", ".", "--rules", "upstream"]);
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    assert!(out.contains("\n3 files, 3 documents: 1 invalid, "), "{out}");
}

#[test]
fn certificates_that_are_replaced_are_named() {
    let folder = folder("replaced-certificates");
    let note = "note: replaced tls.crt and tls.key: ";
    for (arguments, is_replaced) in [
        (&["certs", "c", "--dns-name", "a.example.com"][..], false),
        (&["certs", "c", "--dns-name", "a.example.com"], false),
        (&["certs", "c"], true),
        (&["certs", "c"], false),
    ] {
        let (code, _, err) = run(&folder, arguments);
        assert_eq!((code, err.starts_with(note)), (0, is_replaced), "{arguments:?}: {err}");
    }
}
