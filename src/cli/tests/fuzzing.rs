//! Replays the stored inputs of the fuzz targets for private modules. `fuzz/tests/replay.rs` replays those of the others.
#![allow(clippy::panic, reason = "a test that cannot read its data has failed")]

use std::io::Read as _;

use crate::cli::fuzzing::{fix, lsp};

fn replay(target: &str, run: fn(&[u8])) {
    let path = format!("{}/fuzz/corpus/{target}.gz", env!("CARGO_MANIFEST_DIR"));
    #[expect(clippy::disallowed_methods, reason = "reads the stored inputs")]
    let packed = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).expect("gzip");
    let (mut rest, mut count) = (bytes.as_slice(), 0);
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (input, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        run(input);
        (rest, count) = (after, count + 1);
    }
    assert!(count > 0, "{path} has no inputs");
}

#[test]
fn stored_manifests_are_fixed() {
    replay("fix", fix);
}

#[test]
fn stored_editor_sessions_are_answered() {
    replay("lsp", lsp);
}
