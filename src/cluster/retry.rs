//! How long things may take, and how long to wait before they are tried again.

use std::time::Duration;

/// How long things may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// The first pause after a failure; each one after it is twice as long.
    pub least: Duration,
    /// The longest pause.
    pub most: Duration,
    /// One answer that is not a watch.
    pub answer: Duration,
    /// One lookup that a request waits for.
    pub lookup: Duration,
    /// The API server ends a watch after this.
    pub watch: Duration,
    /// A watch without a word for this long is dead: a living one has a bookmark each minute.
    pub silence: Duration,
    /// Something that stood for this long did not fail.
    pub stable: Duration,
    /// How often we look at what others on this machine have changed (certificates).
    pub look: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            least: Duration::from_millis(500),
            most: Duration::from_secs(30),
            answer: Duration::from_secs(30),
            lookup: Duration::from_secs(1),
            watch: Duration::from_secs(290),
            silence: Duration::from_secs(150),
            stable: Duration::from_mins(1),
            look: Duration::from_secs(10),
        }
    }
}

/// Pauses that grow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    timing: Timing,
    next: Duration,
}

impl Backoff {
    pub(super) fn new(timing: Timing) -> Backoff {
        Backoff { timing, next: timing.least }
    }

    /// It worked.
    pub(super) fn reset(&mut self) {
        self.next = self.timing.least;
    }

    /// How long to wait now. `chance` spreads replicas: between half of the pause and all of it.
    pub(super) fn pause(&mut self, chance: u32) -> Duration {
        let pause = self.next.min(self.timing.most);
        self.next = pause.saturating_mul(2);
        let half = pause / 2;
        half + half * (chance % 1024) / 1024
    }

    /// Waits.
    pub(super) async fn wait(&mut self) {
        tokio::time::sleep(self.pause(chance())).await;
    }
}

/// A number that differs between replicas; nothing depends on it but the spread of pauses.
fn chance() -> u32 {
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
        let timing =
            Timing { least: Duration::from_secs(1), most: Duration::from_secs(5), ..Timing::default() };
        let mut backoff = Backoff::new(timing);
        let mut shortest = || backoff.pause(0).as_millis();
        assert_eq!([shortest(), shortest(), shortest(), shortest()], [500, 1000, 2000, 2500]);
        assert!(backoff.pause(1023) < timing.most && backoff.pause(1023) > timing.most * 9 / 10);
        backoff.reset();
        assert_eq!(backoff.pause(0), Duration::from_millis(500), "half of it at least");
    }
}
