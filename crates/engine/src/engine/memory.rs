//! Estimates the memory that a decision needs, so that a server can reserve it in advance.

/// Bytes for findings and namespace labels, independent of the size of the body.
const BASE_BYTES: usize = 7 << 18;
/// Bytes of memory for each byte of a body with ordinary values.
const BYTES_PER_BODY_BYTE: usize = 8;
/// Bytes of memory for each byte of a body that has a value for every two bytes.
const BYTES_PER_DENSE_BODY_BYTE: usize = 36;
/// The most memory that a body of many small values is estimated to need. `parse_review_unless_too_dense` rejects, by
/// their number of keys and values, bodies that would need more.
const MAX_DENSE_BODY_MEMORY: usize = 24 << 20;

/// Returns the maximum number of bytes needed to evaluate a body of `body` bytes. `tests/engine/shapes.rs`
/// measures it.
pub const fn memory_bytes_for_body(body: usize) -> usize {
    let plain = body.saturating_mul(BYTES_PER_BODY_BYTE);
    let dense = body.saturating_mul(BYTES_PER_DENSE_BODY_BYTE);
    let dense = if dense < MAX_DENSE_BODY_MEMORY { dense } else { MAX_DENSE_BODY_MEMORY };
    BASE_BYTES.saturating_add(if dense > plain { dense } else { plain })
}
