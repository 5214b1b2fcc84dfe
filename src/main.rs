//! The `tollgate` program: hands the arguments to `cli` and returns its exit code.

use std::process::ExitCode;

/// Large bodies come and go with every request: memory that stays saves the system from clearing it anew each time.
#[cfg(feature = "serve")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tollgate::cli::run(std::env::args_os())
}
