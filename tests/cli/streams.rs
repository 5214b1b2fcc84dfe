//! Tests the process when its output is closed or it receives a signal: it never exits with 0 if something was
//! denied.
//!
//! Closed pipes are in `console.rs`.
#![cfg(unix)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_methods, reason = "writes the files that it judges")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use super::program::{folder, tollgate};
use tollgate::Format;

const BAD_RULE: &str = "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec:\n  deviceSelector: {driver: d.example.com, pool: p}\n  taint: {key: example.com/a, effect: X}\n";

/// A folder with many denials, more than a pipe holds.
fn denials(name: &str) -> PathBuf {
    let folder = folder(name);
    std::fs::create_dir(folder.join("many")).unwrap();
    for number in 0..60 {
        let text = format!("{BAD_RULE}---\n").repeat(10);
        std::fs::write(folder.join(format!("many/{number:03}.yaml")), text).unwrap();
    }
    folder
}

/// The status of a shell command; `"$@"` is the program with its arguments.
fn shell(folder: &Path, script: &str, arguments: &[&str]) -> ExitStatus {
    let program = tollgate(folder, arguments);
    let mut command = Command::new("bash");
    command.current_dir(folder).args(["-c", script, "bash"]).arg(program.get_program()).args(arguments);
    command.env_clear().stdin(Stdio::null()).stderr(Stdio::null()).status().expect("bash")
}

#[test]
fn a_stdout_that_takes_nothing_never_makes_a_denial_pass() {
    let folder = denials("stdout");
    for format in Format::ALL.map(Format::name) {
        let arguments = ["validate", "many", "-o", format];
        for (script, code) in [
            ("\"$@\" | head -1 > /dev/null; exit ${PIPESTATUS[0]}", 1),
            ("\"$@\" | true; exit ${PIPESTATUS[0]}", 1),
            ("set -o pipefail; \"$@\" | head -1 > /dev/null", 1),
            ("\"$@\" >&-", 1),
            ("\"$@\" >&- 2>&-", 1),
            ("\"$@\" <&- >&- 2>&-", 1),
            // A disk that is full is no verdict.
            ("\"$@\" > /dev/full", 4),
            ("\"$@\" > /dev/full 2>&1", 4),
        ] {
            assert_eq!(shell(&folder, script, &arguments).code(), Some(code), "{format}: {script}");
        }
    }
    let second = ["validate", "many", "--output-file", "json=/dev/full"];
    assert_eq!(shell(&folder, "\"$@\" > /dev/null", &second).code(), Some(4), "a second report");
    // Without a denial the same is a success, so the codes above are verdicts.
    std::fs::write(folder.join("good.yaml"), BAD_RULE.replace("effect: X", "effect: NoSchedule")).unwrap();
    for script in ["\"$@\" >&-", "\"$@\" | true; exit ${PIPESTATUS[0]}"] {
        assert_eq!(shell(&folder, script, &["validate", "good.yaml"]).code(), Some(0), "{script}");
    }
}

/// True if this process ignores the signal, which its children inherit. Shells set this for SIGINT of
/// background jobs, and nohup for SIGHUP.
fn is_ignored(number: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (number - 1)) != 0)
}

#[test]
fn a_signal_never_makes_a_denial_pass() {
    let folder = denials("signals");
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let mut child =
            tollgate(&folder, &["validate", "many"]).stdout(Stdio::piped()).spawn().expect("it runs");
        // The first denial is there, and more than the pipe holds is still to come: the process is in the middle.
        let mut reader = BufReader::with_capacity(16, child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        assert!(line.starts_with("error["), "{line}");
        let id = child.id().to_string();
        assert!(
            Command::new("kill").args([&format!("-{signal}"), id.as_str()]).status().expect("kill").success()
        );
        reader.read_to_end(&mut Vec::new()).expect("the rest");
        let status = child.wait().expect("it ends");
        let expected = if is_ignored(number) { (Some(1), None) } else { (None, Some(number)) };
        assert_eq!((status.code(), status.signal()), expected, "SIG{signal}");
    }
}
