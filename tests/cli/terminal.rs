//! Tests the output on a terminal, which differs from that to a pipe, a file or a CI server: the tests open a
//! pseudo-terminal.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_methods, reason = "writes the files that it judges")]

use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::program::{folder, run, tollgate};

/// Runs the program with a terminal as its stdout: exit code, and what is on the terminal.
fn on_terminal(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&terminal).expect("granted");
    unlockpt(&terminal).expect("unlocked");
    let name = ptsname(&terminal, Vec::new()).expect("its name");
    let name = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
    let side = File::options().read(true).write(true).open(name).expect("its other side");
    let mut command = tollgate(folder, arguments);
    command.env("NO_COLOR", "1").envs(variables.iter().copied());
    let mut child = command.stdout(Stdio::from(side)).stderr(Stdio::null()).spawn().expect("it runs");
    // The program has the only other side now: when it ends, reading fails.
    drop(command);
    let (mut terminal, mut shown, mut buffer) = (File::from(terminal), Vec::new(), [0; 4096]);
    while let Ok(read) = terminal.read(&mut buffer) {
        if read == 0 {
            break;
        }
        shown.extend_from_slice(buffer.get(..read).expect("read bytes"));
    }
    let code = child.wait().expect("it ends").code().expect("an exit code");
    (code, String::from_utf8(shown).expect("UTF-8").replace("\r\n", "\n"))
}

const BAD_RULE: &str = "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec:\n  deviceSelector: {driver: d.example.com, pool: p}\n  taint: {key: example.com/a, effect: X}\n";

#[test]
fn test_data_does_not_bury_the_rest() {
    let folder = folder("terminal-fold");
    for (part, files) in [("apps", 1), ("test/testdata", 15), ("z", 1)] {
        std::fs::create_dir_all(folder.join(part)).unwrap();
        for number in 0..files {
            let text = format!("{BAD_RULE}---\n{BAD_RULE}---\na: b\n");
            std::fs::write(folder.join(part).join(format!("{number}.yaml")), text).unwrap();
        }
    }
    let count = |text: &str| text.matches("[taint-effect]").count();
    let (code, shown) = on_terminal(&folder, &["validate", "."], &[]);
    assert_eq!((code, count(&shown)), (1, 24), "{shown}");
    assert!(shown.contains("--> apps/0.yaml") && shown.contains("--> z/0.yaml"), "{shown}");
    let end = "17 files, 51 documents: 34 invalid, 17 skipped (17 not Kubernetes objects) (checked against kep-5055)\nNot shown: 10 findings in test/testdata; leave it out with `--exclude /test/testdata/`.\nTo list all findings, use `-o concise`.\n";
    assert!(shown.ends_with(end), "{shown}");
    // That advice is right.
    let (_, shown) = on_terminal(&folder, &["validate", ".", "--exclude", "/test/testdata/"], &[]);
    assert_eq!((count(&shown), shown.contains("Not shown")), (4, false), "{shown}");
    let (_, shown) = on_terminal(&folder, &["validate", ".", "-o", "concise"], &[]);
    assert_eq!((count(&shown), shown.contains("Not shown")), (34, false), "{shown}");
    // Skipped documents are listed whatever is folded.
    let (_, shown) = on_terminal(&folder, &["validate", ".", "--show-skipped"], &[]);
    assert!(shown.starts_with("error[taint-effect]"), "in the order of the files: {shown}");
    assert_eq!((count(&shown), shown.matches("skipped: ").count()), (24, 17), "{shown}");
    // A log has everything, and so have reports for programs, pipes, and files that were named.
    let (_, log) = on_terminal(&folder, &["validate", "."], &[("CI", "true")]);
    let (_, piped, _) = run(&folder, &["validate", "."]);
    assert_eq!((count(&log), count(&piped), log == piped), (34, 34, true), "{log}");
    assert!(!piped.contains(['\u{1e}', '\u{1b}']), "{piped}");
    let file = "test/all.yaml";
    std::fs::write(folder.join(file), format!("{BAD_RULE}---\n").repeat(30)).unwrap();
    let (_, shown) = on_terminal(&folder, &["validate", file, "--output-file", "text=report.txt"], &[]);
    assert_eq!(count(&shown), 30, "{shown}");
    let (_, shown) = on_terminal(&folder, &["validate", ".", "--output-file", "text=report.txt"], &[]);
    assert_eq!(count(&shown), 44, "{shown}");
    assert_eq!(count(&std::fs::read_to_string(folder.join("report.txt")).unwrap()), 64);
}

#[test]
fn one_line_per_skipped_document() {
    let folder = folder("concise-skipped");
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n---\na: {{ .b }}\n";
    std::fs::write(folder.join("a.yaml"), text).unwrap();
    let (code, out, err) = run(&folder, &["validate", ".", "-o", "concise", "--show-skipped"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let expected = "a.yaml:1:1: skipped[other-kind] a kind that Tollgate does not check (ConfigMap web)\n";
    assert!(out.starts_with(expected), "{out}");
    assert_eq!(out.matches(": skipped[").count(), 2, "{out}");
    let (_, out, _) = run(&folder, &["validate", ".", "-o", "concise"]);
    assert!(!out.contains("skipped["), "{out}");
}

#[test]
fn a_page_is_not_markdown() {
    let folder = folder("terminal-explain");
    let arguments = ["explain", "version-off-by-default"];
    let (code, shown) = on_terminal(&folder, &arguments, &[]);
    assert_eq!(code, 0, "{shown}");
    assert!(shown.starts_with("version-off-by-default\n\nlint · warn The release does not serve"), "{shown}");
    assert!(shown.contains("\n1.34 to 1.36        v1, which does not include DeviceTaintRule\n"), "{shown}");
    assert!(
        !shown.lines().any(|line| line.starts_with(['#', '|', '*'])) && !shown.contains("```"),
        "{shown}"
    );
    // Another program gets the page as it is.
    let (_, piped, _) = run(&folder, &arguments);
    assert!(piped.starts_with("# version-off-by-default\n\n**lint · warn**"), "{piped}");
    assert!(piped.contains("\n|---|---|\n"), "{piped}");
}
