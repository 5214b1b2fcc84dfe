//! Timeouts, and backoff between retries.

use std::time::Duration;

/// Timeouts and retry intervals of requests to an API server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// First delay after a failure. Each further delay is twice as long.
    pub min_backoff: Duration,
    /// Maximum delay between retries.
    pub max_backoff: Duration,
    /// Timeout of one request that is not a watch.
    pub request_timeout: Duration,
    /// Timeout of a lookup that an admission request waits for.
    pub lookup_timeout: Duration,
    /// Duration after which the API server closes a watch, which is then opened again. Bookmarks are best effort, so on
    /// a quiet cluster this is what shows that the cache is current.
    pub watch_timeout: Duration,
    /// Time without an event after which a watch is closed; a working one has ended by then.
    pub silence_timeout: Duration,
    /// Time after which a task that still runs resets its backoff.
    pub stable_after: Duration,
    /// Delay before a resource that the API server does not serve is requested again: it may be installed later.
    pub not_served_delay: Duration,
    /// Interval of checks for changed local files (certificates).
    pub check_interval: Duration,
    /// If true, everything is listed when the API server closes a watch, so that a lost event is missed for no longer
    /// than a watch lasts.
    pub list_after_watch: bool,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            min_backoff: Duration::from_millis(500),
            max_backoff: Duration::from_secs(30),
            request_timeout: Duration::from_secs(30),
            lookup_timeout: Duration::from_secs(1),
            watch_timeout: Duration::from_mins(1),
            silence_timeout: Duration::from_secs(80),
            stable_after: Duration::from_secs(30),
            not_served_delay: Duration::from_mins(5),
            check_interval: Duration::from_secs(10),
            list_after_watch: false,
        }
    }
}

/// Exponential backoff between retries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    timing: Timing,
    next: Duration,
}

impl Backoff {
    pub(super) fn new(timing: Timing) -> Backoff {
        Backoff { timing, next: timing.min_backoff }
    }

    /// Starts again with the first delay.
    pub(super) fn reset(&mut self) {
        self.next = self.timing.min_backoff;
    }

    /// Starts again with the first delay if something worked for at least as long as the next delay would last.
    /// Otherwise, watches that the API server closes every few seconds would soon be down for longer than they are up.
    pub(super) fn reset_if_worked_long_enough(&mut self, worked: Duration) {
        if worked >= self.next.min(self.timing.max_backoff) {
            self.reset();
        }
    }

    /// The next delay: between half of it and all of it, depending on `jitter`, so that replicas do not retry together.
    pub(super) fn next_delay(&mut self, jitter: u32) -> Duration {
        let pause = self.next.min(self.timing.max_backoff);
        self.next = pause.saturating_mul(2);
        let half = pause / 2;
        half + half * (jitter % 1024) / 1024
    }

    /// Waits for the next delay.
    pub(super) async fn wait(&mut self) {
        tokio::time::sleep(self.next_delay(jitter())).await;
    }
}

/// Returns a number that differs between replicas, to spread their retries over time.
fn jitter() -> u32 {
    use std::hash::{BuildHasher as _, RandomState};
    // Each `RandomState` has keys of its own.
    u32::try_from(RandomState::new().hash_one(0) & 0xffff).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Backoff, Timing};
    use std::time::Duration;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew() {
        let timing = Timing {
            min_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(5),
            ..Timing::default()
        };
        let mut backoff = Backoff::new(timing);
        let mut shortest = || backoff.next_delay(0).as_millis();
        assert_eq!([shortest(), shortest(), shortest(), shortest()], [500, 1000, 2000, 2500]);
        assert!(
            backoff.next_delay(1023) < timing.max_backoff
                && backoff.next_delay(1023) > timing.max_backoff * 9 / 10
        );
        backoff.reset();
        assert_eq!(backoff.next_delay(0), Duration::from_millis(500), "half of it at least");
        backoff.reset_if_worked_long_enough(Duration::from_millis(1999));
        assert_eq!(backoff.next_delay(0), Duration::from_secs(1), "it worked for less than the next 2 s");
        backoff.reset_if_worked_long_enough(Duration::from_secs(4));
        assert_eq!(backoff.next_delay(0), Duration::from_millis(500));
        for _ in 0..9 {
            backoff.next_delay(0);
        }
        backoff.reset_if_worked_long_enough(Duration::from_secs(5));
        assert_eq!(backoff.next_delay(0), Duration::from_millis(500), "no delay is longer than 5 s");
    }
}
