//! Sizes and costs: ranges of what `size()` could return, and the server's arithmetic on them.
//!
//! Sums and products saturate; factors are floating-point numbers and round up, because an estimate has to be the
//! server's to the unit.

use super::number::double_of_uint;

/// The smallest and the largest number of characters, bytes, elements or entries that a value can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SizeRange {
    pub(super) min: u64,
    pub(super) max: u64,
}

/// Cost of reading one character: a tenth. cel-go `StringTraversalCostFactor`
pub(super) const COST_PER_CHARACTER: f64 = 0.1;
/// Cost of one character of a regular expression: a quarter. cel-go `RegexStringLengthCostFactor`
pub(super) const COST_PER_PATTERN_CHARACTER: f64 = 0.25;
/// Cost of making a list, whatever is in it.
pub(super) const CREATE_LIST_COST: u64 = 10;
/// Cost of creating a map, whatever is in it.
pub(super) const CREATE_MAP_COST: u64 = 30;
/// Cost of creating a message.
pub(super) const CREATE_STRUCT_COST: u64 = 40;
/// Cost of reading one character and writing it to a new text.
pub(super) const COST_PER_COPIED_CHARACTER: f64 = 2.0 * COST_PER_CHARACTER;

/// An amount times a factor, rounded up. The server computes in float64. cel-go `multiplyByCostFactor`
pub(super) fn multiply_rounding_up(amount: u64, factor: f64) -> u64 {
    round_up(double_of_uint(amount) * factor)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from a float ends at the largest number"
)]
fn round_up(amount: f64) -> u64 {
    amount.ceil() as u64
}

impl SizeRange {
    pub(super) const UNKNOWN: SizeRange = SizeRange { min: 0, max: u64::MAX };

    pub(super) const fn exactly(size: u64) -> SizeRange {
        SizeRange { min: size, max: size }
    }

    pub(super) const fn up_to(max: u64) -> SizeRange {
        SizeRange { min: 0, max }
    }

    pub(super) fn plus(self, other: SizeRange) -> SizeRange {
        SizeRange { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) fn times(self, other: SizeRange) -> SizeRange {
        SizeRange { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Returns a size range that covers both ranges.
    pub(super) fn union(self, other: SizeRange) -> SizeRange {
        SizeRange { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// The cost of reading a value of the largest size; `factor` is the cost of each part.
    pub(super) fn max_read_cost(self, factor: f64) -> u64 {
        multiply_rounding_up(self.max, factor)
    }

    /// The cost of reading a text of the largest size.
    pub(super) fn max_text_read_cost(self) -> u64 {
        self.max_read_cost(COST_PER_CHARACTER)
    }

    /// The size of the result of `replace`: the maximum replaces the shortest matches with the longest
    /// replacements, the minimum the other way round. upstream v1.34 `EstimateCallCost`, case replace
    pub(super) fn size_after_replace(self, old: SizeRange, new: SizeRange) -> SizeRange {
        let replaced = |length: u64, old: u64, new: u64, is_kept: bool| match old {
            0 => length.saturating_add(1).saturating_mul(new).saturating_add(length),
            _ if is_kept => length,
            _ => round_up(double_of_uint(length) / double_of_uint(old)).saturating_mul(new),
        };
        SizeRange {
            min: replaced(self.min, old.max, new.min, old.max <= new.min),
            max: replaced(self.max, old.min, new.max, new.max <= old.min),
        }
    }
}
