//! The program that libFuzzer drives: `TOLLGATE_FUZZ=TARGET fuzz [FLAGS OF LIBFUZZER] [FOLDER]`. It has the commands of
//! `corpus` as well: `fuzz list`.
#![no_main]
#![expect(clippy::disallowed_methods, clippy::exit, reason = "libFuzzer has the main function")]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tollgate_fuzz::Target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("TOLLGATE_FUZZ").unwrap_or_default();
    tollgate_fuzz::target(&name).unwrap_or_else(|| std::process::exit(2))
});

/// Runs a command, if the arguments are one, and ends.
fn run_command() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let Some(code) = tollgate_fuzz::command::run(&arguments) {
        std::process::exit(i32::from(code != std::process::ExitCode::SUCCESS));
    }
}

fuzz_target!(init: run_command(), |data: &[u8]| (TARGET.run)(data));
