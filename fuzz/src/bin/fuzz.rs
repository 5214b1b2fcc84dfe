//! The program that libFuzzer drives: `TOLLGATE_FUZZ=TARGET fuzz [FLAGS OF LIBFUZZER] [FOLDER]`.
#![no_main]
#![expect(clippy::disallowed_methods, clippy::exit, reason = "the target is chosen by the environment")]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tollgate_fuzz::Target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("TOLLGATE_FUZZ").unwrap_or_default();
    tollgate_fuzz::target(&name).unwrap_or_else(|| std::process::exit(2))
});

fuzz_target!(|data: &[u8]| (TARGET.run)(data));
