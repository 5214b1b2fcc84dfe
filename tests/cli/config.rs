//! Configuration files of repositories that mean no good, of several folders at once, and what wins over what.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_methods, reason = "writes the files that it checks")]

use std::path::{Path, PathBuf};
use std::process::Command;

use super::program::{folder, run, tollgate};

const CLAIM: &str = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c, namespace: ml}\nspec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, tolerations: [{operator: Exists}]}}]}}\n";
const BAD_RULE: &str = "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec:\n  deviceSelector: {driver: d.example.com, pool: p}\n  taint: {key: example.com/a, effect: X}\n";
const POLICY: &str =
    "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {name: p}\nspec:\n  allow: []\n";

/// A repository with these files.
fn repository(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let root = folder(&format!("config-{name}"));
    std::fs::create_dir_all(root.join("repo/.git")).unwrap();
    for (path, text) in files {
        let path = root.join("repo").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    root.join("repo")
}

fn code(folder: &Path, arguments: &[&str]) -> i32 {
    run(folder, arguments).0
}

#[test]
fn a_repository_cannot_silence_what_others_refuse() {
    let names =
        ["taint-effect", "upstream", "documented", "decoding", "strict", "policy", "policy-toleration"];
    for name in names {
        for level in ["allow", "warn"] {
            let config = format!("levels: {{{name}: {level}}}\n");
            let root = repository("silence", &[(".tollgate.yaml", &config), ("a.yaml", BAD_RULE)]);
            let (status, out, err) = run(&root, &["validate", "a.yaml"]);
            assert_eq!((status, out.as_str()), (3, ""), "{name}: {err}");
            let column = 12 + name.len();
            let expected = format!(
                ".tollgate.yaml:1:{column}: levels.{name}: a configuration file can lower only the levels of lints"
            );
            assert!(err.contains(&expected), "{err}\n{expected}");
            // The same on the command line is the user's own decision.
            assert_eq!(code(&root, &["validate", "a.yaml", "--no-config", "--allow", "upstream"]), 0);
        }
    }
}

#[test]
fn a_flag_wins_over_the_variable_of_the_other_flag() {
    let files = [
        ("allow.yaml", "levels: {toleration-without-effect: allow, blanket-toleration: allow}\n"),
        ("a.yaml", CLAIM),
    ];
    let root = repository("precedence", &files);
    let warnings = |variable: Option<(&str, &str)>, flags: &[&str]| {
        let mut command = tollgate(&root, &["validate", "a.yaml", "-o", "concise"]);
        command.args(flags).envs(variable);
        String::from_utf8(command.output().unwrap().stdout).unwrap().contains("warning")
    };
    assert!(warnings(None, &[]) && !warnings(None, &["--config", "allow.yaml"]));
    assert!(!warnings(Some(("TOLLGATE_CONFIG", "allow.yaml")), &[]));
    assert!(warnings(Some(("TOLLGATE_CONFIG", "allow.yaml")), &["--no-config"]));
    assert!(!warnings(Some(("TOLLGATE_NO_CONFIG", "1")), &["--config", "allow.yaml"]));
    let (code, _, err) = run(&root, &["validate", "a.yaml", "--no-config", "--config", "allow.yaml"]);
    assert!(code == 2 && err.contains("--config and --no-config cannot be used together"), "{err}");
}

#[test]
fn what_policies_of_flags_see_is_not_changed_by_a_repository() {
    for (config, flag) in [
        ("namespaces: mine.yaml\n", "--namespaces"),
        ("featureGates: {DRADeviceTaints: false}\n", "--feature-gates"),
        ("classes: mine.yaml\n", "--classes"),
    ] {
        let files = [(".tollgate.yaml", config), ("mine.yaml", ""), ("a.yaml", CLAIM)];
        let root = repository("weaken", &files);
        std::fs::write(root.join("../admin.yaml"), POLICY).unwrap();
        let (status, _, err) =
            run(&root, &["validate", "a.yaml", "--policy", "../admin.yaml", "--kubernetes", "1.37"]);
        assert_eq!(status, 3, "{config}{err}");
        assert!(err.contains(".tollgate.yaml:1:") && err.contains(flag), "{err}");
    }
}

#[test]
fn a_policy_in_a_repository_reads_nothing_outside_of_it() {
    let policy = |file: &str| {
        format!(
            "apiVersion: tollgate.dev/v1alpha1\nkind: ParameterPolicy\nmetadata: {{name: p}}\n\
             spec: {{schemas: [{{apiVersion: a.b/v1, kind: K, schemaFile: {file}}}]}}\n"
        )
    };
    let (outside, inside, folder) = (policy("../token"), policy("token"), policy("."));
    let files =
        [("a.yaml", &*outside), ("b.yaml", &*inside), ("c.yaml", &*folder), ("token", "s3cret-token")];
    let root = repository("schema", &files);
    std::fs::write(root.join("../token"), "s3cret-token").unwrap();
    let (status, out, err) = run(&root, &["validate", "."]);
    assert_eq!(status, 3, "{out}{err}");
    assert!(!out.contains("s3cret") && !err.contains("s3cret"), "{out}{err}");
    for expected in ["outside the repository", "which is an object", "not a regular file"] {
        assert!(out.contains(expected), "{expected}: {out}");
    }
}

#[test]
fn policies_of_flags_are_not_removed_by_a_repository() {
    let allows_all = POLICY.replace("allow: []", "allow: [{key: '*'}]");
    let files = [
        (".tollgate.yaml", "policies: mine.yaml\nlevels: {lint: allow}\n"),
        ("mine.yaml", allows_all.as_str()),
        ("a.yaml", CLAIM),
    ];
    let root = repository("policies", &files);
    std::fs::write(root.join("../admin.yaml"), POLICY).unwrap();
    assert_eq!(code(&root, &["validate", "a.yaml"]), 0);
    assert_eq!(code(&root, &["validate", "a.yaml", "--policy", "../admin.yaml"]), 1);
    let by_variable =
        tollgate(&root, &["validate", "a.yaml"]).env("TOLLGATE_POLICY", "../admin.yaml").status();
    assert_eq!(by_variable.unwrap().code(), Some(1));
    let shown = run(&root, &["config", "--policy", "../admin.yaml"]).1;
    assert!(shown.contains("policies      ../admin.yaml"), "{shown}");
    // Policies of the repository deny as any others do.
    std::fs::write(root.join("mine.yaml"), POLICY).unwrap();
    assert_eq!(code(&root, &["validate", "a.yaml"]), 1);
}

#[cfg(unix)]
#[test]
fn nothing_outside_of_the_repository_is_read() {
    use std::os::unix::fs::symlink;
    let secret = "s3cret: [\n";
    for config in [
        "policies: ../secret.yaml",
        "policies: [link.yaml]",
        "policies: inside",
        "policies: schema.yaml",
        "namespaces: ../secret.yaml",
        "namespaces: link.yaml",
        "classes: [../secret.yaml]",
        "classes: link.yaml",
    ] {
        let parameters = "apiVersion: tollgate.dev/v1alpha1\nkind: ParameterPolicy\nmetadata: {name: p}\nspec:\n  schemas:\n  - {apiVersion: a/v1, kind: A, schemaFile: ../secret.yaml}\n";
        let files = [
            (".tollgate.yaml", config),
            ("a.yaml", CLAIM),
            ("inside/x.yaml", POLICY),
            ("schema.yaml", parameters),
        ];
        let root = repository("outside", &files);
        std::fs::write(root.join("../secret.yaml"), secret).unwrap();
        symlink("../secret.yaml", root.join("link.yaml")).unwrap();
        symlink("../../secret.yaml", root.join("inside/y.yaml")).unwrap();
        let (status, out, err) = run(&root, &["validate", "a.yaml"]);
        assert_eq!((status, out.as_str()), (3, ""), "{config}: {err}");
        assert!(
            err.contains("outside") && !err.contains("s3cret") && !err.contains("bracket"),
            "{config}: {err}"
        );
        let absolute = config.replace("../secret.yaml", &root.join("../secret.yaml").display().to_string());
        std::fs::write(root.join(".tollgate.yaml"), absolute).unwrap();
        assert_eq!(code(&root, &["validate", "a.yaml"]), 3, "{config}");
        // A file that the command line names is trusted.
        if !config.contains("inside") {
            std::fs::write(root.join("../secret.yaml"), "# nothing\n").unwrap();
            let (_, _, err) = run(&root, &["validate", "a.yaml", "--config", ".tollgate.yaml"]);
            assert!(!err.contains("outside the repository"), "{config}: {err}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_configuration_is_a_regular_file_of_the_repository() {
    use std::os::unix::fs::symlink;
    let root = repository("regular", &[("a.yaml", CLAIM), ("ok.yaml", "levels: {lint: allow}\n")]);
    let config = root.join(".tollgate.yaml");
    let refused = |expected: &str| {
        let (status, out, err) = run(&root, &["validate", "a.yaml"]);
        assert_eq!((status, out.as_str()), (3, ""), "{err}");
        assert!(err.contains(expected) && !err.contains("s3cret"), "{err}");
        // None of that is asked for.
        assert_eq!(code(&root, &["validate", "a.yaml", "--no-config"]), 0);
        std::fs::remove_file(&config).or_else(|_| std::fs::remove_dir(&config)).unwrap();
    };
    symlink("/dev/zero", &config).unwrap();
    refused("not a regular file");
    assert!(Command::new("mkfifo").arg(&config).status().unwrap().success());
    refused("not a regular file");
    std::fs::create_dir(&config).unwrap();
    refused("not a regular file");
    std::fs::write(root.join("../secret.yaml"), "s3cret: true\n").unwrap();
    symlink("../secret.yaml", &config).unwrap();
    refused("outside the repository");
    symlink("nowhere", &config).unwrap();
    refused("no such file or folder");
    std::fs::write(&config, "#".repeat(300 << 10)).unwrap();
    refused("larger than 262144 bytes");
    std::fs::write(&config, format!("exclude: {}", "[".repeat(100_000))).unwrap();
    refused("yaml: ");
    std::fs::write(&config, "failOn: deny\n".repeat(15_000)).unwrap();
    refused("14979 more errors");
    for glob in ["a[z-a]", "dep["] {
        std::fs::write(&config, format!("exclude: ['{glob}']\n")).unwrap();
        refused(".tollgate.yaml:1:11: ");
    }
    // A link inside of the repository is one of its files; so is an empty one.
    symlink("ok.yaml", &config).unwrap();
    assert_eq!(code(&root, &["validate", "a.yaml", "--fail-on", "warn"]), 0);
    std::fs::remove_file(&config).unwrap();
    std::fs::write(&config, "\n").unwrap();
    assert_eq!(code(&root, &["validate", "a.yaml", "--fail-on", "warn"]), 1);
}

#[test]
fn each_file_has_the_settings_of_its_nearest_configuration() {
    let files = [
        (".tollgate.yaml", "kubernetes: 1.36\nlevels: {lint: allow}\n"),
        ("a.yaml", CLAIM),
        ("x/y/b.yaml", CLAIM),
        ("strict/.tollgate.yaml", "levels: {blanket-toleration: deny}\nkubernetes: [1.36, 1.37]\n"),
        ("strict/deep/c.yaml", CLAIM),
        ("warned/.tollgate.yaml", "failOn: warn\n"),
        ("warned/d.yaml", CLAIM),
        ("sub/.git/HEAD", ""),
        ("sub/e.yaml", CLAIM),
    ];
    let root = repository("nearest", &files);
    for (path, status) in
        [("a.yaml", 0), ("x", 0), ("strict", 1), ("warned", 1), ("sub", 0), ("x/../strict/deep/c.yaml", 1)]
    {
        assert_eq!(code(&root, &["validate", path]), status, "{path}");
    }
    let (status, out, _) = run(&root, &["validate", "a.yaml", "x", "warned", "--fail-on", "deny"]);
    assert_eq!(status, 0, "{out}");
    // The repository inside the repository has no configuration.
    let (_, out, _) = run(&root, &["validate", ".", "-o", "json"]);
    let doc = tollgate::parse_json(&out).expect("JSON");
    assert_eq!(doc.root().get("profiles").to_json(), r#"["1.36","1.37","kep-5055"]"#);
    let profiles = |file: &str| {
        let mut results = doc.root().get("results").items();
        results.find(|result| result.get("file").str().ends_with(file)).unwrap().get("profiles").to_json()
    };
    assert_eq!(profiles("a.yaml"), r#"["1.36"]"#);
    assert_eq!(profiles("strict/deep/c.yaml"), r#"["1.36","1.37"]"#);
    assert_eq!(profiles("sub/e.yaml"), r#"["kep-5055"]"#);
    // Standard input is in the working folder.
    let from = |folder: &str| {
        let input = std::fs::File::open(root.join("a.yaml")).unwrap();
        let mut command = tollgate(&root.join(folder), &["validate", "-"]);
        command.stdin(input).output().unwrap().status.code()
    };
    assert_eq!((from("."), from("strict/deep")), (Some(0), Some(1)));
}

#[test]
fn flags_and_variables_win_key_by_key() {
    let files = [
        (
            ".tollgate.yaml",
            "kubernetes: 1.36\nfailOn: warn\nlevels: {lint: allow, blanket-toleration: warn}\n",
        ),
        ("a.yaml", CLAIM),
    ];
    let root = repository("wins", &files);
    for (arguments, status) in [
        (&[][..], 1),
        (&["--fail-on", "deny"], 0),
        (&["--allow", "blanket-toleration"], 0),
        // The file's rule is more specific than the flag's origin.
        (&["--allow", "lint"], 1),
        (&["--deny", "lint", "--fail-on", "deny"], 1),
        (&["--no-config"], 0),
    ] {
        assert_eq!(code(&root, &[&["validate", "a.yaml"], arguments].concat()), status, "{arguments:?}");
    }
    let by_variable = |name: &str, value: &str| {
        tollgate(&root, &["validate", "a.yaml"]).env(name, value).status().unwrap().code()
    };
    assert_eq!(by_variable("TOLLGATE_FAIL_ON", "deny"), Some(0));
    assert_eq!(by_variable("TOLLGATE_ALLOW", "blanket-toleration"), Some(0));
    assert_eq!(by_variable("TOLLGATE_NO_CONFIG", "1"), Some(0));
    let mut command = tollgate(&root, &["config", "--deny", "lint"]);
    let out =
        command.env("TOLLGATE_KUBERNETES", "1.37").env("TOLLGATE_WARN", "duplicate-taint").output().unwrap();
    let out = String::from_utf8(out.stdout).unwrap();
    let has = |row: [&str; 3]| out.lines().any(|line| row.iter().all(|cell| line.contains(cell)));
    assert!(has(["kubernetes", "1.37", "TOLLGATE_KUBERNETES"]), "{out}");
    assert!(has(["failOn", "warn", ".tollgate.yaml:2"]), "{out}");
    assert!(has(["levels.lint", "deny", "--deny"]), "{out}");
    assert!(has(["levels.blanket-toleration", "warn", ".tollgate.yaml:3"]), "{out}");
    assert!(has(["levels.duplicate-taint", "warn", "TOLLGATE_WARN"]), "{out}");
}
