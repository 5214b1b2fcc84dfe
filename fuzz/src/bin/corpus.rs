//! The commands alone, without libFuzzer: `corpus run TARGET` is how coverage is measured.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    tollgate_fuzz::command::run(&arguments).unwrap_or(ExitCode::from(2))
}
