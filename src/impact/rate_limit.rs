//! The eviction rate limit of draft r2: a token bucket of ten, refilled at the taint's rate. No release has it.
//!
//! Only the bucket of the proposed taint is simulated; a pod that another taint evicts as well may go earlier.

use super::eviction::UnixNanos;

/// Evictions that do not wait.
const BURST: UnixNanos = 10;

/// Delays the evictions, in order, so that after a burst no more than `per_second` happen.
pub(super) fn delay_evictions(moments: &mut [UnixNanos], now: UnixNanos, per_second: i64) {
    let second: UnixNanos = 1_000_000_000;
    let interval = second / UnixNanos::from(per_second.max(1));
    // The moment at which the bucket would be full again; it is full in the beginning.
    let mut full_at = UnixNanos::MIN;
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
    use super::delay_evictions;

    const SECOND: i128 = 1_000_000_000;

    #[test]
    fn ten_at_once_then_the_rate() {
        let mut moments = [0; 35];
        delay_evictions(&mut moments, 5 * SECOND, 10);
        assert!(moments[..10].iter().all(|moment| *moment == 0), "{moments:?}");
        assert_eq!(moments[10], 5 * SECOND + SECOND / 10);
        assert_eq!(moments[34], 5 * SECOND + 25 * SECOND / 10);
    }

    #[test]
    fn the_bucket_fills_again() {
        let mut moments: Vec<i128> =
            std::iter::repeat_n(0, 12).chain(std::iter::repeat_n(60 * SECOND, 12)).collect();
        delay_evictions(&mut moments, 0, 1);
        assert_eq!(moments[11], 2 * SECOND);
        assert_eq!(moments[12], 60 * SECOND);
        assert_eq!(moments[21], 60 * SECOND);
        assert_eq!(moments[22], 61 * SECOND);
    }
}
