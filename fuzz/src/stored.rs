//! Reads the stored inputs of a target, `fuzz/corpus/NAME.gz`: each input after its length (four bytes, little-endian).
//!
//! The crates whose targets are private have this file as a module of their tests as well.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

/// Returns the file with the inputs of a target.
pub(crate) fn path(target: &str) -> PathBuf {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("fuzz/corpus"));
    let folder = folders.into_iter().find(|folder| folder.is_dir()).unwrap_or_default();
    folder.join(format!("{target}.gz"))
}

/// Returns the stored inputs of a target. Panics if there are none, or if the file is damaged.
#[allow(clippy::disallowed_methods, reason = "reads the stored inputs")]
pub(crate) fn read(target: &str) -> Vec<Vec<u8>> {
    let packed = std::fs::read(path(target)).unwrap_or_else(|error| panic!("{target}: {error}"));
    let mut bytes = Vec::new();
    GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).expect("gzip");
    let (mut rest, mut inputs) = (bytes.as_slice(), Vec::new());
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (input, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        inputs.push(input.to_vec());
        rest = after;
    }
    assert!(!inputs.is_empty(), "{target} has no stored inputs");
    inputs
}
