//! The pages over plain sockets: sessions, details, changes and questions.

use std::time::Duration;

use crate::program::run;
use crate::running::{example, rule, start};

#[test]
fn the_link_opens_the_pages_once() {
    let running = start("ui-once", &example());
    let cookie = running.open_session();
    let path = running.link.trim_start_matches(running.origin.as_str());
    let (head, body) = running.send(&format!("GET {path}"), &[], "");
    assert!(head.starts_with("HTTP/1.1 403") && body.contains("used before"), "{head}\n{body}");
    let (head, body) = running.send("GET /", &[], "");
    assert!(head.starts_with("HTTP/1.1 403") && !body.contains("gpu"), "{head}\n{body}");
    let (head, body) = running.send("GET /", &[&cookie], "");
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("gpu-node-03"), "{head}");
    assert!(!body.contains("token="), "the token is nowhere");
    let policy =
        head.lines().find_map(|line| line.strip_prefix("content-security-policy: ")).expect("a policy");
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
    for path in ["/../Cargo.toml", "/dump.yaml", "/%2e%2e/dump.yaml", "/device", "/device?id="] {
        let (head, _) = running.send(&format!("GET {path}"), &[&cookie], "");
        assert!(head.starts_with("HTTP/1.1 404"), "{path}: {head}");
    }
}

/// The page is drawn from the report of `devices`, and a file from its JSON.
#[test]
fn the_page_shows_what_a_file_shows() {
    let running = start("ui-file", &(example() + &rule("fire", "gpu-node-03", "NoExecute")));
    let (_, page) = running.send("GET /", &[&running.open_session()], "");
    let folder = running.dump.parent().expect("a folder");
    let (_, file, _) = run(folder, &["devices", "--state", "dump.yaml", "-o", "html"]);
    for (start, end) in [("<div class=\"nodes", "<p class=\"choice"), ("<table class=\"t-", "</table>")] {
        let parts = |text: &str| -> Vec<String> {
            let parts = text.split(start).skip(1).filter_map(|rest| rest.split(end).next());
            parts.map(ToOwned::to_owned).collect()
        };
        assert!(!parts(&file).is_empty(), "{start}");
        assert_eq!(parts(&page), parts(&file));
    }
}

#[test]
fn a_changed_dump_is_read_again_and_a_broken_one_is_not_shown() {
    let running = start("ui-follow", &example());
    let cookie = running.open_session();
    let (_, page) = running.send("GET /", &[&cookie], "");
    let revision =
        page.split("data-revision=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a revision");
    let updates = |since: &str| running.send(&format!("GET /updates?since={since}"), &[&cookie], "").1;
    running.replace_dump(&(example() + &rule("fire", "gpu-node-03", "NoExecute")));
    let changes = updates(revision);
    assert_eq!(changes.matches("<article").count(), 1, "only the card of the node: {changes}");
    assert!(
        changes.contains("example.com/<wbr>fire:<wbr>NoExecute from fire")
            && changes.contains("\"trouble\":null"),
        "{changes}"
    );
    let next =
        changes.split("\"revision\":").nth(1).and_then(|rest| rest.split(',').next()).expect("a revision");
    running.replace_dump("apiVersion: v1\nkind: List\nitems: [");
    let changes = updates(next);
    assert!(changes.contains("\"trouble\":\"") && changes.contains("\"cards\":[]"), "{changes}");
    let (_, page) = running.send("GET /", &[&cookie], "");
    assert!(page.contains("from fire"), "the last state stays");
}

#[test]
fn answers_are_those_of_the_commands() {
    let running = start("ui-questions", &example());
    let cookie = running.open_session();
    let answer = running.ask(&cookie, r#"{"targets":["node/gpu-node-03"],"effect":"NoExecute"}"#);
    let folder = running.dump.parent().expect("a folder");
    let state = ["--state", "dump.yaml", "-o", "json"];
    let (_, impact, _) = run(folder, &[&["impact", "--target", "node/gpu-node-03"], &state[..]].concat());
    let evicted =
        impact.split("\"evicted\":").nth(1).and_then(|rest| rest.split(',').next()).expect("a number");
    assert!(answer.contains(&format!("{evicted} pods")), "{evicted}: {answer}");
    let (_, plan, _) = run(folder, &[&["drain", "node/gpu-node-03", "--dry-run"], &state[..]].concat());
    let waves = plan.split("\"waves\":").last().and_then(|rest| rest.split(',').next()).expect("a number");
    assert!(answer.contains("Who goes, and when") && answer.contains("Where they go"), "{answer}");
    assert!(answer.contains("drain the devices"), "the plan with {waves} waves: {answer}");
    assert!(answer.contains("kind: DeviceTaintRule"), "{answer}");
    assert!(answer.contains("tollgate drain node/gpu-node-03 --dry-run --state dump.yaml"), "{answer}");
    assert!(answer.contains("kubectl apply -f rule.yaml"), "{answer}");
    assert!(
        answer.contains("What if node/gpu-node-03 is tainted with tollgate.dev/drain and effect NoExecute?"),
        "{answer}"
    );
    assert!(answer.contains("This answer is about a dump."), "{answer}");
    // The rule belongs to the first answer and not to the drain, whose dry run comes before the drain itself.
    let mut rest = answer.as_str();
    for part in [
        "Where they go",
        "The rule of the answer above",
        "drain the devices",
        "--dry-run --state",
        "Drain instead",
    ] {
        rest = rest.split_once(part).unwrap_or_else(|| panic!("no {part:?} in {rest}")).1;
    }
    // The same by the rule that it stands for.
    let rule = "apiVersion: resource.k8s.io/v1beta2\\nkind: DeviceTaintRule\\nmetadata: {name: r}\\nspec:\\n  deviceSelector: {driver: gpu.example.com, pool: gpu-node-03}\\n  taint: {key: example.com/r, effect: NoExecute}\\n";
    let by_rule = running.ask(&cookie, &format!("{{\"rule\":\"{rule}\"}}"));
    assert!(by_rule.contains(&format!("{evicted} pods")), "{by_rule}");
    assert!(by_rule.contains("tollgate drain gpu.example.com/gpu-node-03 --dry-run"), "{by_rule}");
}

/// Several windows can ask at the same time, also while an answer is computed; only a newer question of the same window
/// takes the place of its earlier one.
#[test]
fn every_window_gets_its_answer() {
    let running = start("ui-windows", &example());
    let cookie = running.open_session();
    let ask_about = |page: &str, target: &str| {
        let question = format!(r#"{{"page":"{page}","targets":["{target}"]}}"#);
        let origin = format!("Origin: {}", running.origin);
        running.send("POST /what-if", &[&cookie, &origin, "Content-Type: application/json"], &question)
    };
    let ask = |page: &str, node: &str| ask_about(page, &format!("node/{node}"));
    std::thread::scope(|scope| {
        let asked: Vec<_> = (1..=6)
            .map(|number| {
                let (page, node) = (format!("w{number}"), format!("gpu-node-0{number}"));
                scope.spawn(move || (ask(&page, &node), node))
            })
            .collect();
        for window in asked {
            let ((head, body), node) = window.join().expect("an answer");
            assert!(head.starts_with("HTTP/1.1 200"), "{head} {body}");
            assert!(body.contains(&format!("What if node/{node} is tainted")), "{node}: {body}");
        }
        // These wait for three long answers. The second of a window replaces the first.
        let long: Vec<_> = ["a", "b", "c"].map(|page| scope.spawn(move || ask_about(page, "*"))).into();
        std::thread::sleep(Duration::from_millis(100));
        let first = scope.spawn(|| ask("same", "gpu-node-01"));
        std::thread::sleep(Duration::from_millis(100));
        let second = scope.spawn(|| ask("same", "gpu-node-02"));
        let status = |head: &str| head.split(' ').nth(1).map(str::to_owned);
        let heads = [first, second].map(|asked| status(&asked.join().expect("an answer").0));
        assert_eq!(heads, [Some("409".to_owned()), Some("200".to_owned())]);
        for asked in long {
            assert_eq!(status(&asked.join().expect("an answer").0).as_deref(), Some("200"));
        }
    });
}

/// A drain needs a driver, and an impact does not.
#[test]
fn a_question_about_all_devices_is_answered_without_a_plan() {
    let running = start("ui-everything", &example());
    let cookie = running.open_session();
    let answer = running.ask(&cookie, r#"{"targets":["*"]}"#);
    assert!(answer.contains("Who goes, and when"), "{answer}");
    assert!(answer.contains("no plan for a drain: a drain needs the name of a driver"), "{answer}");
    assert!(!answer.contains("try '--help'"), "{answer}");
}

#[test]
fn a_wrong_rule_has_findings_with_line_and_column() {
    let running = start("ui-findings", &example());
    let cookie = running.open_session();
    for (question, expected) in [
        (r#"{"rule":"a: ["}"#, "data-line"),
        (
            r#"{"rule":"apiVersion: resource.k8s.io/v1beta2\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec:\n  taint: {key: a, effect: NoSuch}\n"}"#,
            "line 5, column",
        ),
        (
            r#"{"rule":"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"}"#,
            "contains no DeviceTaintRule",
        ),
        (r#"{"targets":["node/gpu-node-99"]}"#, "did you mean"),
        (r#"{"targets":["gpu-*"]}"#, "is a pattern"),
        (r#"{"targets":["node/gpu-node-03"],"effect":"Evict"}"#, "unknown effect"),
        (r#"{"devices":["d000000000000"]}"#, "the picked devices are gone"),
        (r#"{"what":1}"#, "cannot read the question"),
        (r#"{"rule":""}"#, "the question has neither devices nor a rule"),
        ("nonsense", "cannot read the question"),
    ] {
        let answer = running.ask(&cookie, question);
        assert!(answer.contains(expected), "{question}: {answer}");
        assert!(!answer.contains("Who goes"), "nothing is computed: {answer}");
    }
}
