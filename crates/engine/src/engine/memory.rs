//! How much memory a decision takes, so that a server can reserve it before.

/// Memory that findings and the labels of a namespace take, whatever the body.
const WORK_FLOOR: usize = 7 << 18;
/// Memory beside that, as a multiple of a body's length. Texts that have a value for every two bytes take more than
/// that of a long text with long values; beyond a mebibyte, texts that are so dense are not evaluated at all.
const WORK_FACTOR: usize = 8;
const DENSE_FACTOR: usize = 36;
const DENSE_WORK: usize = 24 << 20;

/// Most memory that evaluating a body of this length takes. `tests/engine/shapes.rs` measures it.
pub const fn memory_needed(body: usize) -> usize {
    let plain = body.saturating_mul(WORK_FACTOR);
    let dense = body.saturating_mul(DENSE_FACTOR);
    let dense = if dense < DENSE_WORK { dense } else { DENSE_WORK };
    WORK_FLOOR.saturating_add(if dense > plain { dense } else { plain })
}
