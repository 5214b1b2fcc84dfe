//! Entries that are stored and that this process does not need: how long they stay.
//!
//! Another replica may need them: it has other flags, or policies that have not reached this process yet. A ConfigMap
//! takes more than a minute to reach all replicas. Until they are removed, they have the CA of this process, so it does
//! no harm to wait.

use std::time::Duration;

use tokio::time::Instant;

/// Number of `Timing::max_backoff` for which the entries stay at first: 10 minutes by default.
const DELAY_IN_BACKOFFS: u32 = 20;

/// Since when such entries are stored, and how long they stay.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnneededEntries {
    /// `None` if there are none.
    since: Option<Instant>,
    delay: Duration,
}

impl UnneededEntries {
    pub(super) fn none(max_backoff: Duration) -> UnneededEntries {
        UnneededEntries { since: None, delay: max_backoff.saturating_mul(DELAY_IN_BACKOFFS) }
    }

    /// Notes whether such entries are stored now.
    pub(super) fn note(&mut self, are_stored: bool, now: Instant) {
        let since = self.since.unwrap_or(now);
        self.since = are_stored.then_some(since);
    }

    pub(super) fn are_stored(&self) -> bool {
        self.since.is_some()
    }

    /// True if they were stored for so long that no other replica seems to need them either.
    pub(super) fn is_removal_due(&self, now: Instant) -> bool {
        self.since.is_some_and(|since| now.saturating_duration_since(since) >= self.delay)
    }

    /// Notes that they were removed. Those that come back are needed by another replica, and stay twice as long.
    pub(super) fn note_removal(&mut self, now: Instant) {
        if self.is_removal_due(now) {
            self.delay = self.delay.saturating_mul(2);
        }
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Instant, UnneededEntries};

    #[test]
    fn entries_that_come_back_stay_twice_as_long() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut entries = UnneededEntries::none(second);
        assert!(!entries.is_removal_due(begin + 100 * second), "there are none");
        entries.note(true, begin);
        entries.note(true, begin + 19 * second);
        assert!(!entries.is_removal_due(begin + 19 * second));
        assert!(entries.is_removal_due(begin + 20 * second));
        entries.note_removal(begin + 20 * second);
        assert!(!entries.are_stored());
        entries.note(true, begin + 21 * second);
        assert!(!entries.is_removal_due(begin + 60 * second));
        assert!(entries.is_removal_due(begin + 61 * second));
    }
}
