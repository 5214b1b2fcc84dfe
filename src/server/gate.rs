//! How much clients may have of us at once: requests in flight, and bytes of memory.
//!
//! A request is in flight from its head to its answer, except while it waits for a slow client: thousands of clients
//! that send nothing must not keep others out. Bytes are counted wherever a client decides how many there are: heads,
//! bodies, answers that wait for their reader, and what judging a large body takes. Small bodies that come at once have
//! a share of their own, so that an API server gets through while others fill the rest.
//!
//! Invariant: what is taken from a share never exceeds it, and is given back when its holder is dropped.

use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use super::memory::Shares;

/// The largest body that has room among the small ones: what nearly every admission is.
pub(super) const SMALL: usize = 64 << 10;
/// What a request that waits for its client costs beside its body: its head, its task, its timer.
pub(super) const WAITING: usize = 10 << 10;
/// What judging takes at most, in units of the body.
pub(super) const WORKING: usize = 8;

/// The limits and what is used of them.
#[derive(Debug)]
pub(super) struct Gate {
    in_flight: Gauge,
    shed: Counter,
    most_requests: i64,
    /// Heads, large bodies, slow bodies, answers.
    pub(super) common: Share,
    /// Small bodies that come at once.
    pub(super) small: Share,
    /// What judging large bodies takes.
    pub(super) working: Share,
}

/// Bytes of one kind.
#[derive(Debug)]
pub(super) struct Share {
    used: AtomicUsize,
    most: usize,
}

/// There is no room.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Full;

impl Share {
    pub(super) fn new(most: usize) -> Share {
        Share { used: AtomicUsize::new(0), most }
    }

    /// Takes bytes, if there is room. They are given back with [`Share::give`].
    pub(super) fn take(&self, bytes: usize) -> Result<(), Full> {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) <= self.most {
            return Ok(());
        }
        self.give(bytes);
        Err(Full)
    }

    pub(super) fn give(&self, bytes: usize) {
        if bytes > 0 {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Little is left.
    pub(super) fn is_tight(&self) -> bool {
        self.used() > self.most - self.most / 4
    }

    /// Bytes taken now.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// One request in flight.
#[derive(Debug)]
pub(super) struct Permit<'g>(&'g Gate);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.in_flight.dec();
    }
}

/// Bytes of a share that one holder has.
#[derive(Debug)]
pub(super) struct Hold<'g> {
    share: &'g Share,
    bytes: usize,
}

impl<'g> Hold<'g> {
    fn none_of(share: &'g Share) -> Hold<'g> {
        Hold { share, bytes: 0 }
    }

    /// Has that many from now on: takes what is missing.
    pub(super) fn grow_to(&mut self, bytes: usize) -> Result<(), Full> {
        let missing = bytes.saturating_sub(self.bytes);
        if missing > 0 {
            self.share.take(missing)?;
            self.bytes += missing;
        }
        Ok(())
    }

    /// Has no more than that from now on.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        let excess = self.bytes.saturating_sub(bytes);
        self.share.give(excess);
        self.bytes -= excess;
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.share.give(self.bytes);
    }
}

impl Gate {
    pub(super) fn new(most_requests: usize, shares: Shares, in_flight: Gauge, shed: Counter) -> Gate {
        let most_requests = i64::try_from(most_requests).unwrap_or(i64::MAX);
        let [common, small, working] = [shares.common, shares.small, shares.working].map(Share::new);
        Gate { in_flight, shed, most_requests, common, small, working }
    }

    /// Lets one more request in, if there is room.
    pub(super) fn enter(&self) -> Result<Permit<'_>, Full> {
        let before = self.in_flight.inc();
        let permit = Permit(self);
        if before < self.most_requests { Ok(permit) } else { Err(Full) }
    }

    /// Counts one that was told to come back.
    pub(super) fn shed(&self) {
        self.shed.inc();
    }

    /// Requests in flight now.
    pub(super) fn in_flight(&self) -> i64 {
        self.in_flight.get()
    }

    /// Begins to count the bytes of a body.
    pub(super) fn body(&self) -> BodyHold<'_> {
        BodyHold { gate: self, hold: Hold::none_of(&self.small), is_slow: false }
    }

    /// What judging a body of that length takes. A small one takes nothing: there are as many as there are workers. One
    /// that is larger than the whole share is judged alone.
    pub(super) fn work_on(&self, body: usize) -> Result<Hold<'_>, Full> {
        let mut hold = Hold::none_of(&self.working);
        if body > SMALL {
            hold.grow_to(body.saturating_mul(WORKING).min(self.working.most))?;
        }
        Ok(hold)
    }
}

/// The bytes of one body.
#[derive(Debug)]
pub(super) struct BodyHold<'g> {
    gate: &'g Gate,
    hold: Hold<'g>,
    is_slow: bool,
}

impl BodyHold<'_> {
    /// Has room for that many bytes from now on.
    pub(super) fn grow_to(&mut self, bytes: usize) -> Result<(), Full> {
        let is_small = !self.is_slow && std::ptr::eq(self.hold.share, &raw const self.gate.small);
        if is_small && bytes <= SMALL && self.hold.grow_to(bytes).is_ok() {
            return Ok(());
        }
        self.in_common(bytes)
    }

    /// It waits for its client: the share of those that come at once is not for it.
    pub(super) fn is_slow(&mut self, bytes: usize) -> Result<(), Full> {
        self.is_slow = true;
        self.in_common(bytes)?;
        self.hold.shrink_to(bytes + WAITING);
        Ok(())
    }

    fn in_common(&mut self, bytes: usize) -> Result<(), Full> {
        let bytes = if self.is_slow { bytes.saturating_add(WAITING) } else { bytes };
        if !std::ptr::eq(self.hold.share, &raw const self.gate.common) {
            let mut hold = Hold::none_of(&self.gate.common);
            hold.grow_to(bytes)?;
            self.hold = hold;
        }
        self.hold.grow_to(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Full, Gate, SMALL, Shares, WAITING};
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;

    fn gate(common: usize) -> Gate {
        let shares = Shares { connections: 1, common, small: 2 * SMALL, working: 10 * SMALL };
        Gate::new(2, shares, Gauge::default(), Counter::default())
    }

    fn used(gate: &Gate) -> [usize; 3] {
        [gate.common.used(), gate.small.used(), gate.working.used()]
    }

    #[test]
    fn room_is_given_back() {
        let gate = gate(1000);
        let (first, second) = (gate.enter(), gate.enter());
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(gate.enter().err(), Some(Full));
        drop(first);
        assert!(gate.enter().is_ok());
        assert_eq!(gate.in_flight(), 1);
    }

    #[test]
    fn every_byte_of_a_body_is_counted_and_given_back() {
        let gate = gate(SMALL);
        let mut bodies = [gate.body(), gate.body(), gate.body(), gate.body()];
        for (body, expected) in bodies.iter_mut().zip([
            [0, SMALL, 0],
            [0, 2 * SMALL, 0],
            // No room among the small ones: it is counted with the others.
            [SMALL, 2 * SMALL, 0],
        ]) {
            assert_eq!(body.grow_to(SMALL), Ok(()));
            assert_eq!(used(&gate), expected);
        }
        assert_eq!(bodies[3].grow_to(1), Err(Full));
        assert_eq!(used(&gate), [SMALL, 2 * SMALL, 0], "what was refused is not counted");
        drop(bodies);
        assert_eq!(used(&gate), [0; 3]);
    }

    #[test]
    fn large_and_slow_bodies_do_not_keep_small_ones_out() {
        let gate = gate(4 * SMALL);
        let (mut large, mut slow) = (gate.body(), gate.body());
        assert_eq!(large.grow_to(SMALL), Ok(()));
        assert_eq!(large.grow_to(3 * SMALL), Ok(()));
        assert_eq!(used(&gate), [3 * SMALL, 0, 0], "it left the share of the small ones");
        assert_eq!(slow.grow_to(SMALL), Ok(()));
        assert_eq!(slow.is_slow(100), Ok(()));
        assert_eq!(used(&gate), [3 * SMALL + 100 + WAITING, 0, 0]);
        assert_eq!(slow.grow_to(SMALL + 1), Err(Full));
        assert_eq!(large.grow_to(4 * SMALL), Err(Full));
        assert_eq!(gate.body().grow_to(SMALL), Ok(()), "others get through");
    }

    #[test]
    fn judging_large_bodies_is_counted() {
        let gate = gate(0);
        let small = gate.work_on(SMALL);
        assert!(small.is_ok() && used(&gate) == [0; 3]);
        let first = gate.work_on(SMALL + 1);
        assert!(first.is_ok() && gate.work_on(SMALL + 1).is_err());
        drop(first);
        assert!(gate.work_on(100 * SMALL).is_ok(), "one that is too large for the share is judged alone");
    }
}
