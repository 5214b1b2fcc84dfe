//! Completions as bash itself computes them; that all scripts know all names is tested beside their source.
#![allow(clippy::expect_used, reason = "a test that cannot run a shell has failed")]
#![expect(clippy::disallowed_methods, reason = "writes the script")]

use std::path::Path;
use std::process::Command;

use crate::program::{folder, run};

/// The completions that bash offers for the last word of a command line.
fn completions_for(script: &Path, words: &[&str]) -> Vec<String> {
    let [.., before, last] = words else { panic!("two words at least") };
    let ask = format!(
        "source '{}'\nCOMP_WORDS=({})\nCOMP_CWORD={}\n_tollgate tollgate '{last}' '{before}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        words.join(" "),
        words.len() - 1
    );
    let output = Command::new("bash").args(["--norc", "-c", &ask]).output().expect("bash runs");
    String::from_utf8(output.stdout).expect("UTF-8").split_whitespace().map(str::to_owned).collect()
}

#[test]
fn bash_offers_rules_releases_formats_and_gates() {
    let (code, script, _) = run(Path::new("."), &["completions", "bash"]);
    assert_eq!(code, 0);
    let file = folder("completions").join("tollgate.bash");
    std::fs::write(&file, script).expect("a file");
    for (words, expected) in [
        (&["tollgate", "explain", "taint-e"][..], &["taint-effect"][..]),
        (&["tollgate", "explain", "docu"], &["documented"]),
        (&["tollgate", "validate", "--kubernetes", "1.3"], &["1.33", "1.34", "1.35", "1.36", "1.37"]),
        (&["tollgate", "validate", "--kubernetes", "cl"], &["cluster"]),
        (&["tollgate", "validate", "--rules", "blanket"], &["blanket-toleration"]),
        (&["tollgate", "validate", "-o", "git"], &["github", "gitlab"]),
        (
            &["tollgate", "validate", "--feature-gates", "DRADeviceTaints="],
            &["DRADeviceTaints=true", "DRADeviceTaints=false"],
        ),
        (&["tollgate", "schema", "im"], &["impact"]),
        (&["tollgate", "profiles", "kep-5055-r"], &["kep-5055-r1", "kep-5055-r2", "kep-5055-r3"]),
    ] {
        let offered = completions_for(&file, words);
        let missing: Vec<&&str> =
            expected.iter().filter(|name| !offered.iter().any(|word| word == **name)).collect();
        assert!(missing.is_empty(), "{words:?}: {missing:?} not in {offered:?}");
    }
}
