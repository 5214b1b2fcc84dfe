//! How much may be in flight: requests, and bytes of their bodies.
//!
//! A request is in flight from its head to its answer, except while it waits for a slow client: thousands of clients
//! that send nothing must not keep others out. What they have sent so far is bounded in bytes instead.

use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

/// Bytes of a body that are not counted: what any admission may have.
const FREE_BYTES: usize = 64 << 10;

/// The limits and what is used of them.
#[derive(Debug)]
pub(super) struct Gate {
    in_flight: Gauge,
    shed: Counter,
    most_requests: i64,
    bytes: AtomicUsize,
    most_bytes: usize,
}

/// One request in flight.
#[derive(Debug)]
pub(super) struct Permit<'g>(&'g Gate);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.in_flight.dec();
    }
}

/// The bytes of one body.
#[derive(Debug)]
pub(super) struct Hold<'g> {
    gate: &'g Gate,
    seen: usize,
    counted: usize,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        if self.counted > 0 {
            self.gate.bytes.fetch_sub(self.counted, Ordering::Relaxed);
        }
    }
}

/// There is no room.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Full;

impl Gate {
    pub(super) fn new(most_requests: usize, most_bytes: usize, in_flight: Gauge, shed: Counter) -> Gate {
        let most_requests = i64::try_from(most_requests).unwrap_or(i64::MAX);
        Gate { in_flight, shed, most_requests, bytes: AtomicUsize::new(0), most_bytes }
    }

    /// Lets one more request in, if there is room.
    pub(super) fn enter(&self) -> Result<Permit<'_>, Full> {
        let before = self.in_flight.inc();
        let permit = Permit(self);
        if before < self.most_requests {
            return Ok(permit);
        }
        self.shed.inc();
        Err(Full)
    }

    /// Requests in flight now.
    pub(super) fn in_flight(&self) -> i64 {
        self.in_flight.get()
    }

    /// Begins to count the bytes of a body.
    pub(super) fn hold(&self) -> Hold<'_> {
        Hold { gate: self, seen: 0, counted: 0 }
    }
}

impl Hold<'_> {
    /// Counts more bytes of the body, if there is room.
    pub(super) fn take(&mut self, more: usize) -> Result<(), Full> {
        self.seen += more;
        let counted = self.seen.saturating_sub(FREE_BYTES);
        let new = counted - self.counted;
        if new == 0 {
            return Ok(());
        }
        let before = self.gate.bytes.fetch_add(new, Ordering::Relaxed);
        self.counted = counted;
        if before + new <= self.gate.most_bytes {
            return Ok(());
        }
        self.gate.shed.inc();
        Err(Full)
    }
}

#[cfg(test)]
mod tests {
    use super::{FREE_BYTES, Full, Gate};
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;

    #[test]
    fn room_is_given_back() {
        let gate = Gate::new(2, 1000, Gauge::default(), Counter::default());
        let (first, second) = (gate.enter(), gate.enter());
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(gate.enter().err(), Some(Full));
        drop(first);
        assert!(gate.enter().is_ok());
        assert_eq!(gate.in_flight(), 1);
    }

    #[test]
    fn only_large_bodies_are_counted() {
        let gate = Gate::new(1, 1000, Gauge::default(), Counter::default());
        let mut small: Vec<_> = (0..100).map(|_| gate.hold()).collect();
        assert!(small.iter_mut().all(|hold| hold.take(FREE_BYTES).is_ok()));
        let mut large = gate.hold();
        assert_eq!(large.take(FREE_BYTES + 600), Ok(()));
        assert_eq!(small.first_mut().expect("one").take(401), Err(Full));
        drop(small);
        assert_eq!(large.take(400), Ok(()));
        assert_eq!(large.take(1), Err(Full));
    }
}
