//! The `tollgate` program: hands the arguments to `cli` and returns its exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    tollgate::run(std::env::args_os())
}
