//! The `tollgate` program: hands the arguments to `cli` and returns its exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    tollgate::cli::run(std::env::args_os())
}
