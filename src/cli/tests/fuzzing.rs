//! Replays the stored inputs of the fuzz targets for private modules. `fuzz/tests/replay.rs` replays those of the
//! others.

#[path = "../../../fuzz/src/stored.rs"]
mod stored;

use crate::cli::fuzzing::{fuzz_fix, fuzz_lsp};

fn replay(target: &str, run: fn(&[u8])) {
    for input in stored::read(target) {
        run(&input);
    }
}

#[test]
fn stored_manifests_are_fixed() {
    replay("fix", fuzz_fix);
}

#[test]
fn stored_editor_sessions_are_answered() {
    replay("lsp", fuzz_lsp);
}

#[cfg(feature = "mcp")]
#[test]
fn stored_program_sessions_are_answered() {
    replay("mcp", crate::cli::fuzzing::fuzz_mcp);
}
