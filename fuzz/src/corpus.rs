//! The stored inputs of a target: reads them (`stored`) and replaces them.
#![expect(clippy::disallowed_methods, reason = "writes the stored inputs")]

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::stored;

/// Returns the stored inputs of a target; nothing if it is new.
///
/// # Panics
/// If the file is damaged.
pub fn read(target: &str) -> Vec<Vec<u8>> {
    if stored::path(target).exists() { stored::read(target) } else { Vec::new() }
}

/// Writes the inputs of a target, the shortest first.
pub fn write(target: &str, mut inputs: Vec<Vec<u8>>) -> std::io::Result<()> {
    inputs.sort_by(|one, other| one.len().cmp(&other.len()).then_with(|| one.cmp(other)));
    inputs.dedup();
    let mut out = GzEncoder::new(Vec::new(), Compression::best());
    for input in inputs {
        let length = u32::try_from(input.len()).map_err(std::io::Error::other)?;
        out.write_all(&length.to_le_bytes())?;
        out.write_all(&input)?;
    }
    std::fs::write(stored::path(target), out.finish()?)
}
