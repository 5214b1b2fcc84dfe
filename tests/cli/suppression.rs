//! Comments and baselines that would silence more than they may, and what becomes of them in lists, JSON and SARIF.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_methods, reason = "writes the files that it checks")]

use std::fmt::Write as _;

use super::program::{folder, run};

const SPEC: &str = "spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, tolerations: [{operator: Exists, effect: NoSchedule}]}}]}}";

fn claim(name: &str) -> String {
    format!(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: {name}, namespace: ml}}\n{SPEC}\n"
    )
}

#[test]
fn items_of_a_list_are_objects_with_comments_of_their_own() {
    let folder = folder("suppressed-list");
    let item = |comment: &str, name: &str| {
        let claim = claim(name).replace('\n', "\n  ");
        format!("{comment}- {}\n", claim.trim_end())
    };
    let head = "# tollgate: allow(blanket-toleration) for the first\n";
    let other = "# tollgate: allow(blanket-toleration) for a ConfigMap, which is not checked\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n";
    let list = format!(
        "apiVersion: v1\nkind: List\nitems:\n{}{other}{}{}",
        item(head, "a"),
        item("", "b"),
        item(head, "c")
    );
    std::fs::write(folder.join("list.yaml"), list).unwrap();
    let (code, out, _) = run(&folder, &["validate", "list.yaml"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("items[2].spec.") && out.matches("warning[").count() == 1, "{out}");
    assert!(
        out.ends_with(
            "1 with warnings, 2 valid, 1 skipped (checked against kep-5055); not reported: 2 suppressed\n"
        ),
        "{out}"
    );
}

#[test]
fn sarif_has_what_is_suppressed_and_why() {
    let folder = folder("suppressed-sarif");
    let config = "overrides: [{objects: [{name: b}], levels: {lint: allow}, reason: not ours}]\n";
    std::fs::write(folder.join(".tollgate.yaml"), config).unwrap();
    let commented =
        format!("# tollgate: allow(blanket-toleration) tested\n{}---\n{}", claim("a"), claim("b"));
    std::fs::write(folder.join("claims.yaml"), format!("{commented}---\n{}", claim("c"))).unwrap();
    assert_eq!(run(&folder, &["validate", "claims.yaml", "--write-baseline", "known.json"]).0, 0);
    let (code, out, err) = run(
        &folder,
        &["validate", "claims.yaml", "--baseline", "known.json", "-o", "sarif", "--fail-on", "warn"],
    );
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for (kind, justification) in
        [("inSource", "tested"), ("external", "not ours"), ("external", "in the baseline")]
    {
        let expected =
            format!("\"suppressions\":[{{\"kind\":\"{kind}\",\"justification\":\"{justification}\"}}]");
        assert!(out.contains(&expected), "{expected}\n{out}");
    }
}

#[test]
fn what_is_denied_stays_denied_whatever_the_repository_says() {
    let folder = folder("suppressed-denials");
    let rule = "# tollgate: allow(taint-effect, upstream) hush\napiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec:\n  deviceSelector: {driver: d.example.com, pool: p}\n  taint: {key: example.com/a, effect: X} # tollgate: allow(taint-effect) hush\n";
    std::fs::write(folder.join("rule.yaml"), rule).unwrap();
    let (code, out, _) = run(&folder, &["validate", "rule.yaml"]);
    assert_eq!(code, 1, "{out}");
    assert_eq!(out.matches("[invalid-suppression]").count(), 3, "{out}");
    // The baseline gets the lints, and says that there is more.
    let (code, _, err) = run(&folder, &["validate", "rule.yaml", "--write-baseline", "known.json"]);
    assert_eq!(code, 1);
    assert!(
        err.contains(
            "known.json: 3 findings written; 1 other finding is not included, because it is not a lint"
        ),
        "{err}"
    );
    let known = std::fs::read_to_string(folder.join("known.json")).unwrap();
    assert!(known.contains("invalid-suppression") && !known.contains("\"taint-effect\""), "{known}");
    let forged = known.replace("\"rule\": \"invalid-suppression\"", "\"rule\": \"taint-effect\"");
    std::fs::write(folder.join("known.json"), forged).unwrap();
    let (code, out, err) = run(&folder, &["validate", "rule.yaml", "--baseline", "known.json"]);
    assert_eq!((code, out.as_str()), (3, ""));
    assert!(err.contains("a baseline can contain only lints, but taint-effect has origin upstream"), "{err}");
}

#[test]
fn a_flood_of_comments_costs_no_more_than_it_is_long() {
    let folder = folder("suppressed-flood");
    let mut text = String::new();
    for _ in 0..20_000 {
        text.push_str("# tollgate: allow(blanket-toleration) again\n");
    }
    text.push_str("apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nspec:\n  devices:\n    requests:\n");
    for number in 0..2_000 {
        _ = writeln!(
            text,
            "    - name: r{number}\n      exactly:\n        deviceClassName: gpu\n        tolerations:\n        - {{operator: Exists, effect: NoSchedule}} # tollgate: allow(blanket-toleration) here"
        );
    }
    std::fs::write(folder.join("claim.yaml"), text).unwrap();
    let (_, out, _) = run(&folder, &["validate", "claim.yaml", "--rules", "lint", "-o", "json"]);
    assert!(out.contains("\"suppressed\":2000"), "{}", out.lines().last().unwrap_or_default());
}

#[test]
fn a_baseline_names_files_relative_to_itself() {
    let folder = folder("baseline-paths");
    for inner in ["a/b", "other"] {
        std::fs::create_dir_all(folder.join(inner)).unwrap();
    }
    std::fs::write(folder.join("a/b/claim.yaml"), claim("c")).unwrap();
    std::fs::write(folder.join("a/gone.yaml"), claim("d")).unwrap();
    assert_eq!(run(&folder, &["validate", "a", "--write-baseline", "other/known.json"]).0, 0);
    let known = std::fs::read_to_string(folder.join("other/known.json")).unwrap();
    assert!(known.contains("\"file\": \"../a/b/claim.yaml\""), "{known}");
    let strict = |inner: &str, path: &str, baseline: &str| {
        let (code, out, _) =
            run(&folder.join(inner), &["validate", path, "--baseline", baseline, "--fail-on", "warn"]);
        (code, out.lines().last().unwrap_or_default().to_owned())
    };
    // From any folder, and for a part of the files.
    let one = (
        0,
        "1 file, 1 document: 1 valid (checked against kep-5055); not reported: 1 in the baseline".to_owned(),
    );
    assert_eq!(strict(".", "a/b", "other/known.json"), one);
    assert_eq!(strict("a/b", "../b/claim.yaml", "../../other/known.json"), one);
    std::fs::remove_file(folder.join("a/gone.yaml")).unwrap();
    let (code, last) = strict(".", "a", "other/known.json");
    assert_eq!(code, 0);
    assert!(last.contains("1 stale finding in the baseline"), "{last}");
    // The same file moved is another one.
    std::fs::rename(folder.join("a/b/claim.yaml"), folder.join("a/moved.yaml")).unwrap();
    assert_eq!(strict(".", "a", "other/known.json").0, 1);
    // The configuration of a repository can name it, inside of the repository.
    std::fs::create_dir_all(folder.join("other/.git")).unwrap();
    std::fs::rename(folder.join("a/moved.yaml"), folder.join("other/claim.yaml")).unwrap();
    std::fs::write(folder.join("other/.tollgate.yaml"), "baseline: known.json\n").unwrap();
    assert_eq!(
        run(&folder.join("other"), &["validate", "claim.yaml", "--write-baseline", "known.json"]).0,
        0
    );
    assert_eq!(run(&folder, &["validate", "other/claim.yaml", "--fail-on", "warn"]).0, 0);
    assert_eq!(run(&folder, &["validate", "other/claim.yaml", "--fail-on", "warn", "--no-config"]).0, 1);
    std::fs::write(folder.join("other/.tollgate.yaml"), "baseline: ../known.json\n").unwrap();
    assert_eq!(run(&folder, &["validate", "other/claim.yaml"]).0, 3);
}
