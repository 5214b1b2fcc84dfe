//! The eviction rates of draft r2: each taint has a token bucket of ten, refilled at its rate. No release has them.
//!
//! "A pod may be affected by more than one taint. In that case, the smallest delay required to satisfy any of the rate
//! limits is used": each of its taints takes a token from its own bucket, and the pod is evicted at the earliest of the
//! resulting times. Pods that only other taints evict are not simulated.
//!
//! Invariant: tokens are taken in order of time, so the same evictions always get the same times.

use std::collections::HashMap;

use super::eviction::UnixNanos;
use super::record::Taint;

/// Number of tokens in a full bucket: so many evictions of a taint happen without waiting.
const BURST_EVICTIONS: UnixNanos = 10;

/// A taint that evicts a pod, with the time and the rate limit of its evictions.
#[derive(Clone, Copy, Debug)]
pub(super) struct DueEviction<'s> {
    /// The time of the eviction without a rate limit.
    pub(super) due: UnixNanos,
    /// The taint where it is stored, not a copy: its address identifies its token bucket.
    pub(super) taint: &'s Taint,
    /// Evictions per second; `None` for no limit.
    pub(super) rate: Option<i64>,
}

/// A token bucket that is full at first.
struct TokenBucket {
    interval: UnixNanos,
    /// The time at which the bucket is full again.
    full_at: UnixNanos,
}

impl TokenBucket {
    fn new(per_second: i64) -> TokenBucket {
        let second: UnixNanos = 1_000_000_000;
        TokenBucket { interval: second / UnixNanos::from(per_second.max(1)), full_at: UnixNanos::MIN }
    }

    /// Takes a token for an eviction that is due at `due`. Returns the time at which the token is available.
    fn take_token(&mut self, due: UnixNanos) -> UnixNanos {
        let earliest = self.full_at.saturating_sub((BURST_EVICTIONS - 1) * self.interval);
        let goes = due.max(earliest);
        self.full_at = self.full_at.max(goes) + self.interval;
        goes
    }
}

/// Returns when each pod is evicted, by the taints that evict it; a pod without any is evicted at `now`.
pub(super) fn rate_limited_eviction_times(pods: &[&[DueEviction<'_>]], now: UnixNanos) -> Vec<UnixNanos> {
    let mut queue: Vec<(UnixNanos, usize, DueEviction<'_>)> = Vec::new();
    for (pod, evictions) in pods.iter().enumerate() {
        queue.extend(evictions.iter().map(|eviction| (eviction.due.max(now), pod, *eviction)));
    }
    queue.sort_by_key(|(due, pod, _)| (*due, *pod));
    let mut buckets: HashMap<*const Taint, TokenBucket> = HashMap::new();
    let mut moments: Vec<Option<UnixNanos>> = vec![None; pods.len()];
    for (due, pod, eviction) in queue {
        let Some(moment) = moments.get_mut(pod) else { continue };
        // Another taint has evicted it by then.
        if moment.is_some_and(|moment| moment < due) {
            continue;
        }
        let goes = match eviction.rate {
            Some(rate) => {
                let bucket = buckets.entry(std::ptr::from_ref(eviction.taint));
                bucket.or_insert_with(|| TokenBucket::new(rate)).take_token(due)
            }
            None => due,
        };
        *moment = Some(moment.map_or(goes, |moment| moment.min(goes)));
    }
    moments.into_iter().map(|moment| moment.unwrap_or(now)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::record::Taint;
    use super::{DueEviction, rate_limited_eviction_times};

    const SECOND: i128 = 1_000_000_000;

    fn taint() -> Taint {
        Taint {
            key: "k".into(),
            value: "".into(),
            effect: "NoExecute".into(),
            added: None,
            rate: None,
            patch: None,
        }
    }

    fn times(dues: &[i128], now: i128, rate: i64) -> Vec<i128> {
        let taint = taint();
        let evictions: Vec<[DueEviction<'_>; 1]> =
            dues.iter().map(|due| [DueEviction { due: *due, taint: &taint, rate: Some(rate) }]).collect();
        rate_limited_eviction_times(&evictions.iter().map(<[_; 1]>::as_slice).collect::<Vec<_>>(), now)
    }

    #[test]
    fn ten_at_once_then_the_rate() {
        let moments = times(&[0; 35], 5 * SECOND, 10);
        assert!(moments[..10].iter().all(|moment| *moment == 5 * SECOND), "{moments:?}");
        assert_eq!(moments[10], 5 * SECOND + SECOND / 10);
        assert_eq!(moments[34], 5 * SECOND + 25 * SECOND / 10);
    }

    #[test]
    fn the_bucket_fills_again() {
        let dues: Vec<i128> =
            std::iter::repeat_n(0, 12).chain(std::iter::repeat_n(60 * SECOND, 12)).collect();
        let moments = times(&dues, 0, 1);
        assert_eq!(moments[11], 2 * SECOND);
        assert_eq!(moments[12], 60 * SECOND);
        assert_eq!(moments[21], 60 * SECOND);
        assert_eq!(moments[22], 61 * SECOND);
    }

    #[test]
    fn the_highest_rate_of_several_taints_counts() {
        let (slow, fast) = (taint(), taint());
        let of = |taint, rate| DueEviction { due: 0, taint, rate: Some(rate) };
        let both = [of(&slow, 1), of(&fast, 100)];
        let moments = rate_limited_eviction_times(&[&both[..]; 30], 0);
        // One burst and not two, and the fast rate and not the sum of both.
        assert_eq!(moments[9], 0);
        assert_eq!(moments[10], SECOND / 100);
        assert_eq!(moments[29], 20 * SECOND / 100);
        // A taint without a rate does not wait at all.
        let unlimited = [of(&slow, 1), DueEviction { due: 0, taint: &fast, rate: None }];
        assert!(rate_limited_eviction_times(&[&unlimited[..]; 30], 0).iter().all(|moment| *moment == 0));
    }

    #[test]
    fn a_taint_that_is_due_later_overtakes_a_slow_one() {
        let (slow, fast) = (taint(), taint());
        let pod = [
            DueEviction { due: 0, taint: &slow, rate: Some(1) },
            DueEviction { due: 3 * SECOND, taint: &fast, rate: Some(100) },
        ];
        let moments = rate_limited_eviction_times(&[&pod[..]; 16], 0);
        assert_eq!(moments[11], 2 * SECOND);
        assert_eq!(moments[12], 3 * SECOND);
        assert_eq!(moments[15], 3 * SECOND);
    }
}
