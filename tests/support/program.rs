//! Running `tollgate` in a folder of its own, with none of its environment variables set.
#![allow(clippy::expect_used, reason = "a test that cannot run the program has failed")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// An empty folder of that name.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

pub(crate) fn tollgate(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null());
    for variable in [
        "KUBERNETES",
        "RULES",
        "FAIL_ON",
        "EXIT_ZERO",
        "OUTPUT",
        "MAX_FILE",
        "NAMESPACES",
        "POLICY",
        "DENY",
        "WARN",
        "ALLOW",
        "CONFIG",
        "NO_CONFIG",
        "BASELINE",
        "STATE",
        "FEATURE_GATES",
        "CONTEXT",
        "KUBECONFIG",
    ] {
        command.env_remove(format!("TOLLGATE_{variable}"));
    }
    // Where tests run in CI, a command must not ask for the context that only CI needs.
    command.env_remove("CI");
    command
}

/// Exit code, stdout, stderr.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = tollgate(folder, arguments).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (status.code().expect("an exit code"), text(stdout), text(stderr))
}
