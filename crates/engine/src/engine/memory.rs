//! How much memory a decision takes, so that a server can reserve it before.

/// Bytes for findings and namespace labels, independent of the size of the body.
const WORK_FLOOR: usize = 7 << 18;
/// Bytes of memory for each byte of a body with ordinary values.
const WORK_FACTOR: usize = 8;
/// Bytes of memory for each byte of a body that has a value for every two bytes.
const DENSE_FACTOR: usize = 36;
/// Maximum memory for a dense body. Dense bodies of more than 1 MiB are not evaluated.
const DENSE_WORK: usize = 24 << 20;

/// Returns the maximum number of bytes needed to evaluate a body of `body` bytes. `tests/engine/shapes.rs`
/// measures it.
pub const fn memory_needed(body: usize) -> usize {
    let plain = body.saturating_mul(WORK_FACTOR);
    let dense = body.saturating_mul(DENSE_FACTOR);
    let dense = if dense < DENSE_WORK { dense } else { DENSE_WORK };
    WORK_FLOOR.saturating_add(if dense > plain { dense } else { plain })
}
