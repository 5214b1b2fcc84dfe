//! Draft r2's rate of evictions: a bucket of ten, refilled at the taint's rate. No release has it.
//!
//! Only the asked taint's own bucket is followed; a pod that another taint evicts too may go earlier.

use super::eviction::Moment;

/// Evictions that need not wait.
const BURST: Moment = 10;

/// Delays moments, in order, so that no more than `per_second` pass after a burst.
pub(super) fn paced(moments: &mut [Moment], now: Moment, per_second: i64) {
    let second: Moment = 1_000_000_000;
    let interval = second / Moment::from(per_second.max(1));
    // The moment at which the bucket would be full again; it is full in the beginning.
    let mut full_at = Moment::MIN;
    for moment in moments {
        let due = (*moment).max(now);
        let earliest = full_at.saturating_sub((BURST - 1) * interval);
        let goes = due.max(earliest);
        full_at = full_at.max(goes) + interval;
        *moment = if goes > due { goes } else { *moment };
    }
}

#[cfg(test)]
mod tests {
    use super::paced;

    const SECOND: i128 = 1_000_000_000;

    #[test]
    fn ten_at_once_then_the_rate() {
        let mut moments = [0; 35];
        paced(&mut moments, 5 * SECOND, 10);
        assert!(moments[..10].iter().all(|moment| *moment == 0), "{moments:?}");
        assert_eq!(moments[10], 5 * SECOND + SECOND / 10);
        assert_eq!(moments[34], 5 * SECOND + 25 * SECOND / 10);
    }

    #[test]
    fn the_bucket_fills_again() {
        let mut moments: Vec<i128> =
            std::iter::repeat_n(0, 12).chain(std::iter::repeat_n(60 * SECOND, 12)).collect();
        paced(&mut moments, 0, 1);
        assert_eq!(moments[11], 2 * SECOND);
        assert_eq!(moments[12], 60 * SECOND);
        assert_eq!(moments[21], 60 * SECOND);
        assert_eq!(moments[22], 61 * SECOND);
    }
}
