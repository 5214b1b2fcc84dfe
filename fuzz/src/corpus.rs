//! The stored inputs of a target, `fuzz/corpus/NAME.gz`: each input after its length (four bytes, little-endian).
#![expect(clippy::disallowed_methods, reason = "reads and writes the stored inputs")]

use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// Returns the file with the inputs of a target.
pub fn path(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(format!("{target}.gz"))
}

/// Reads the stored inputs of a target.
///
/// # Panics
/// If there is no such file, or if it is damaged.
pub fn read(target: &str) -> Vec<Vec<u8>> {
    let packed = std::fs::read(path(target)).unwrap_or_else(|error| panic!("{target}: {error}"));
    let mut bytes = Vec::new();
    GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).expect("gzip");
    let (mut rest, mut inputs) = (bytes.as_slice(), Vec::new());
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (input, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        inputs.push(input.to_vec());
        rest = after;
    }
    inputs
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
    std::fs::write(path(target), out.finish()?)
}
