//! Random numbers from a seed: the same seed gives the same numbers on every machine.

/// A pseudorandom number generator (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The generator for one simulated run.
    pub(crate) fn new(seed: u64, course: u32) -> Random {
        let mut mixed = Random(seed);
        let start = mixed.next() ^ u64::from(course).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Random(start)
    }

    /// The next random number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A random number below `count`; 0 if `count` is 0.
    pub(crate) fn number_below(&mut self, count: usize) -> usize {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let number = u128::from(self.next()) * u128::from(count);
        usize::try_from(number >> 64).unwrap_or(0)
    }
}
