//! Sizes and costs: ranges of what `size()` could return, and arithmetic that saturates.
//!
//! Factors are ratios because the server multiplies by 0.1 and rounds up.

/// At least and at most how many characters, bytes, elements or entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) min: u64,
    pub(super) max: u64,
}

/// Reading a string costs a tenth of its length. cel-go `StringTraversalCostFactor`
pub(super) const PER_CHARACTER: Factor = Factor(1, 10);
/// A regular expression costs a quarter of its length. cel-go `RegexStringLengthCostFactor`
pub(super) const PER_PATTERN_CHARACTER: Factor = Factor(1, 4);
/// Reading a string and writing another.
pub(super) const PER_COPIED_CHARACTER: Factor = Factor(2, 10);

#[derive(Clone, Copy)]
pub(super) struct Factor(pub(super) u64, pub(super) u64);

impl Factor {
    pub(super) fn times(self, amount: u64) -> u64 {
        amount.saturating_mul(self.0).div_ceil(self.1)
    }
}

impl Size {
    pub(super) const UNKNOWN: Size = Size { min: 0, max: u64::MAX };

    pub(super) const fn exactly(size: u64) -> Size {
        Size { min: size, max: size }
    }

    pub(super) const fn up_to(max: u64) -> Size {
        Size { min: 0, max }
    }

    pub(super) fn plus(self, other: Size) -> Size {
        Size { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) fn times(self, other: Size) -> Size {
        Size { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    pub(super) fn union(self, other: Size) -> Size {
        Size { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// The size of `replace`'s result. upstream v1.34 `EstimateCallCost`, case replace
    pub(super) fn replaced(self, old: Size, new: Size) -> Size {
        let (count, kept) = if old.min == 0 {
            (self.max.saturating_add(1), self.max)
        } else if new.max <= old.min {
            (0, self.max)
        } else {
            (self.max.div_ceil(old.min), 0)
        };
        // The shortest result does not matter for a worst case.
        Size { min: 0, max: count.saturating_mul(new.max).saturating_add(kept) }
    }
}
