//! Limits what clients may use at once: requests in flight, and bytes of memory.
//!
//! A request is in flight from the end of its body to its response: thousands of clients that send slowly must not
//! block others. Memory is counted wherever a client determines how much is needed: heads,
//! bodies, responses that the client has not read, and the evaluation of bodies. Small bodies that arrive
//! promptly have a budget of their own, so that an API server gets through while others use up the rest.
//!
//! One address may use at most as much of the common budget as it leaves to others, so one that sends large bodies
//! slowly, on any number of connections, does not keep the large bodies of others out.
//!
//! Invariant: reservations never exceed their budget, and are released when their holder is dropped.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use tollgate_engine::engine::memory_bytes_for_body;

use super::memory::MemoryPlan;

/// Largest body that counts as small; nearly every AdmissionReview is.
pub(super) const MAX_SMALL_BODY_BYTES: usize = 64 << 10;
/// Memory of a request that waits for its client, without its body: head, task, timer.
pub(super) const SLOW_REQUEST_OVERHEAD_BYTES: usize = 10 << 10;
/// The limits on requests in flight and on memory, and how much of each is in use.
#[derive(Debug)]
pub(super) struct LoadLimiter {
    in_flight: Gauge,
    shed: Counter,
    max_requests: i64,
    /// Budget for heads, large bodies, slow bodies and responses.
    pub(super) common: MemoryBudget,
    /// Budget for small bodies that arrive promptly.
    pub(super) small: MemoryBudget,
    /// Budget for the evaluation of bodies.
    pub(super) working: MemoryBudget,
    /// Budget for the evaluation of small bodies only.
    pub(super) small_working: MemoryBudget,
    peers: Mutex<HashMap<IpAddr, Arc<PeerMemory>>>,
}

/// Bytes of the common budget that all connections of one address have reserved.
#[derive(Debug, Default)]
pub(super) struct PeerMemory(AtomicUsize);

/// A limit on the memory for one purpose, and how much of it is reserved.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    used: AtomicUsize,
    limit: usize,
    /// Bytes that one address may always use, even if it leaves less to others.
    one_peer: usize,
}

/// The error of a request or reservation beyond a limit.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct LimitReached;

impl MemoryBudget {
    pub(super) fn new(limit: usize, one_peer: usize) -> MemoryBudget {
        MemoryBudget { used: AtomicUsize::new(0), limit, one_peer }
    }

    /// Reserves bytes; an error if there are not enough, or if the address would use more than all addresses leave
    /// unused. Must be returned with [`MemoryBudget::release`].
    pub(super) fn reserve(&self, bytes: usize, peer: Option<&PeerMemory>) -> Result<(), LimitReached> {
        let unused = self.limit.saturating_sub(self.used.fetch_add(bytes, Ordering::Relaxed));
        let of_peer = peer.map_or(0, |peer| peer.0.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes));
        if bytes <= unused && of_peer <= unused.max(self.one_peer) {
            return Ok(());
        }
        self.release(bytes, peer);
        Err(LimitReached)
    }

    /// Returns bytes to the budget that [`MemoryBudget::reserve`] has reserved.
    pub(super) fn release(&self, bytes: usize, peer: Option<&PeerMemory>) {
        if bytes > 0 {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            if let Some(peer) = peer {
                peer.0.fetch_sub(bytes, Ordering::Relaxed);
            }
        }
    }

    /// True if more than three quarters are in use.
    pub(super) fn is_nearly_full(&self) -> bool {
        self.used() > self.limit - self.limit / 4
    }

    /// Returns the number of reserved bytes of the budget.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// Counts one request in flight until it is dropped.
#[derive(Debug)]
pub(super) struct RequestPermit<'g>(&'g LoadLimiter);

impl Drop for RequestPermit<'_> {
    fn drop(&mut self) {
        self.0.in_flight.dec();
    }
}

/// Bytes of a budget reserved by one holder.
#[derive(Debug)]
pub(super) struct MemoryReservation<'g> {
    budget: &'g MemoryBudget,
    peer: Option<&'g PeerMemory>,
    bytes: usize,
}

impl<'g> MemoryReservation<'g> {
    fn empty(budget: &'g MemoryBudget, peer: Option<&'g PeerMemory>) -> MemoryReservation<'g> {
        MemoryReservation { budget, peer, bytes: 0 }
    }

    /// Grows the reservation to at least `bytes`.
    pub(super) fn grow_to(&mut self, bytes: usize) -> Result<(), LimitReached> {
        let missing = bytes.saturating_sub(self.bytes);
        if missing > 0 {
            self.budget.reserve(missing, self.peer)?;
            self.bytes += missing;
        }
        Ok(())
    }

    /// Shrinks the reservation to at most `bytes`.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        let excess = self.bytes.saturating_sub(bytes);
        self.budget.release(excess, self.peer);
        self.bytes -= excess;
    }
}

impl Drop for MemoryReservation<'_> {
    fn drop(&mut self) {
        self.budget.release(self.bytes, self.peer);
    }
}

impl LoadLimiter {
    pub(super) fn new(max_requests: usize, plan: MemoryPlan, in_flight: Gauge, shed: Counter) -> LoadLimiter {
        let max_requests = i64::try_from(max_requests).unwrap_or(i64::MAX);
        let common = MemoryBudget::new(plan.common, plan.one_peer);
        let others = [plan.small, plan.working, plan.small_working];
        let [small, working, small_working] = others.map(|limit| MemoryBudget::new(limit, 0));
        let peers = Mutex::default();
        LoadLimiter { in_flight, shed, max_requests, common, small, working, small_working, peers }
    }

    /// Returns the counter of memory that connections from this address use, for a new connection.
    pub(super) fn peer_memory(&self, address: IpAddr) -> Arc<PeerMemory> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).entry(address).or_default().clone()
    }

    /// Drops the memory counter of an address when its last connection ends.
    pub(super) fn forget_peer_after_last_connection(&self, address: IpAddr, peer: &Arc<PeerMemory>) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::strong_count(peer) <= 2 {
            peers.remove(&address);
        }
    }

    /// Admits one more request, if fewer than the limit are in flight.
    pub(super) fn acquire_request_permit(&self) -> Result<RequestPermit<'_>, LimitReached> {
        let before = self.in_flight.inc();
        let permit = RequestPermit(self);
        if before < self.max_requests { Ok(permit) } else { Err(LimitReached) }
    }

    /// Counts a request that was rejected because of load.
    pub(super) fn count_rejected_request(&self) {
        self.shed.inc();
    }

    /// Returns the number of requests in flight.
    pub(super) fn in_flight(&self) -> i64 {
        self.in_flight.get()
    }

    /// Starts an empty reservation for a body.
    pub(super) fn start_body_reservation<'g>(&'g self, peer: Option<&'g PeerMemory>) -> BodyReservation<'g> {
        let reservation = MemoryReservation::empty(&self.small, None);
        BodyReservation { limiter: self, peer, reservation, is_slow: false }
    }

    /// Reserves memory to evaluate a body of this length. A small one may use a budget that large ones leave alone. One
    /// that needs more than the whole budget is evaluated alone.
    pub(super) fn reserve_evaluation_memory(
        &self,
        body: usize,
    ) -> Result<MemoryReservation<'_>, LimitReached> {
        let bytes = memory_bytes_for_body(body);
        let mut reservation = MemoryReservation::empty(&self.small_working, None);
        if body <= MAX_SMALL_BODY_BYTES && reservation.grow_to(bytes).is_ok() {
            return Ok(reservation);
        }
        let mut reservation = MemoryReservation::empty(&self.working, None);
        reservation.grow_to(bytes.min(self.working.limit))?;
        Ok(reservation)
    }
}

/// The memory that is reserved for one request body while it arrives.
#[derive(Debug)]
pub(super) struct BodyReservation<'g> {
    limiter: &'g LoadLimiter,
    peer: Option<&'g PeerMemory>,
    reservation: MemoryReservation<'g>,
    is_slow: bool,
}

impl BodyReservation<'_> {
    /// Grows the reservation to at least `bytes`.
    pub(super) fn grow_to(&mut self, bytes: usize) -> Result<(), LimitReached> {
        let is_small = !self.is_slow && std::ptr::eq(self.reservation.budget, &raw const self.limiter.small);
        if is_small && bytes <= MAX_SMALL_BODY_BYTES && self.reservation.grow_to(bytes).is_ok() {
            return Ok(());
        }
        self.move_to_common(bytes)
    }

    /// Moves the reservation to the common budget, with `bytes`: a body that waits for its client is not among the
    /// prompt ones.
    pub(super) fn mark_slow_and_move_to_common(&mut self, bytes: usize) -> Result<(), LimitReached> {
        self.is_slow = true;
        self.move_to_common(bytes)?;
        self.reservation.shrink_to(bytes + SLOW_REQUEST_OVERHEAD_BYTES);
        Ok(())
    }

    /// Reserves bytes in the common budget, and releases those in the budget for small requests.
    fn move_to_common(&mut self, bytes: usize) -> Result<(), LimitReached> {
        let bytes = if self.is_slow { bytes.saturating_add(SLOW_REQUEST_OVERHEAD_BYTES) } else { bytes };
        if !std::ptr::eq(self.reservation.budget, &raw const self.limiter.common) {
            let mut reservation = MemoryReservation::empty(&self.limiter.common, self.peer);
            reservation.grow_to(bytes)?;
            self.reservation = reservation;
        }
        self.reservation.grow_to(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::{
        LimitReached, LoadLimiter, MAX_SMALL_BODY_BYTES, MemoryPlan, SLOW_REQUEST_OVERHEAD_BYTES,
        memory_bytes_for_body,
    };
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;

    fn limiter(common: usize) -> LoadLimiter {
        let small = 2 * MAX_SMALL_BODY_BYTES;
        let (working, small_working) = (
            memory_bytes_for_body(MAX_SMALL_BODY_BYTES + 1) + memory_bytes_for_body(1),
            2 * memory_bytes_for_body(MAX_SMALL_BODY_BYTES),
        );
        let plan = MemoryPlan { connections: 1, common, small, working, small_working, one_peer: 0 };
        LoadLimiter::new(2, plan, Gauge::default(), Counter::default())
    }

    fn used(limiter: &LoadLimiter) -> [usize; 3] {
        [limiter.common.used(), limiter.small.used(), limiter.working.used()]
    }

    #[test]
    fn room_is_given_back() {
        let limiter = limiter(1000);
        let (first, second) = (limiter.acquire_request_permit(), limiter.acquire_request_permit());
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(limiter.acquire_request_permit().err(), Some(LimitReached));
        drop(first);
        assert!(limiter.acquire_request_permit().is_ok());
        assert_eq!(limiter.in_flight(), 1);
    }

    #[test]
    fn every_byte_of_a_body_is_counted_and_given_back() {
        let limiter = limiter(MAX_SMALL_BODY_BYTES);
        let mut bodies = [0; 4].map(|_| limiter.start_body_reservation(None));
        for (body, expected) in bodies.iter_mut().zip([
            [0, MAX_SMALL_BODY_BYTES, 0],
            [0, 2 * MAX_SMALL_BODY_BYTES, 0],
            // The budget of small bodies is used up: it is counted in the common one.
            [MAX_SMALL_BODY_BYTES, 2 * MAX_SMALL_BODY_BYTES, 0],
        ]) {
            assert_eq!(body.grow_to(MAX_SMALL_BODY_BYTES), Ok(()));
            assert_eq!(used(&limiter), expected);
        }
        assert_eq!(bodies[3].grow_to(1), Err(LimitReached));
        assert_eq!(
            used(&limiter),
            [MAX_SMALL_BODY_BYTES, 2 * MAX_SMALL_BODY_BYTES, 0],
            "what was refused is not counted"
        );
        drop(bodies);
        assert_eq!(used(&limiter), [0; 3]);
    }

    #[test]
    fn large_and_slow_bodies_do_not_keep_small_ones_out() {
        let limiter = limiter(4 * MAX_SMALL_BODY_BYTES);
        let [mut large, mut slow, mut other] = [0; 3].map(|_| limiter.start_body_reservation(None));
        assert_eq!(large.grow_to(MAX_SMALL_BODY_BYTES), Ok(()));
        assert_eq!(large.grow_to(3 * MAX_SMALL_BODY_BYTES), Ok(()));
        assert_eq!(used(&limiter), [3 * MAX_SMALL_BODY_BYTES, 0, 0], "it left the share of the small ones");
        assert_eq!(slow.grow_to(MAX_SMALL_BODY_BYTES), Ok(()));
        assert_eq!(slow.mark_slow_and_move_to_common(100), Ok(()));
        assert_eq!(used(&limiter), [3 * MAX_SMALL_BODY_BYTES + 100 + SLOW_REQUEST_OVERHEAD_BYTES, 0, 0]);
        assert_eq!(slow.grow_to(MAX_SMALL_BODY_BYTES + 1), Err(LimitReached));
        assert_eq!(large.grow_to(4 * MAX_SMALL_BODY_BYTES), Err(LimitReached));
        assert_eq!(other.grow_to(MAX_SMALL_BODY_BYTES), Ok(()), "others get through");
    }

    /// An address has as many bodies as it likes, and leaves half of the memory; several leave less, but never nothing.
    #[test]
    fn an_address_uses_no_more_than_it_leaves_to_others() {
        let limiter = limiter(64 * MAX_SMALL_BODY_BYTES);
        let addresses = [1, 2, 3].map(|last| IpAddr::from([10, 0, 0, last]));
        let peers = addresses.map(|address| limiter.peer_memory(address));
        let mut bodies = Vec::new();
        for (peer, expected) in peers.iter().zip([32, 16, 8]) {
            let before = limiter.common.used();
            loop {
                let mut body = limiter.start_body_reservation(Some(peer));
                if body
                    .mark_slow_and_move_to_common(MAX_SMALL_BODY_BYTES - SLOW_REQUEST_OVERHEAD_BYTES)
                    .is_err()
                {
                    break;
                }
                bodies.push(body);
            }
            assert_eq!((limiter.common.used() - before) / MAX_SMALL_BODY_BYTES, expected);
        }
        drop(bodies);
        assert_eq!(used(&limiter), [0; 3]);
        for (address, peer) in addresses.into_iter().zip(&peers) {
            limiter.forget_peer_after_last_connection(address, peer);
        }
        assert!(limiter.peers.lock().expect("not poisoned").is_empty());
    }

    #[test]
    fn judging_bodies_is_counted() {
        let limiter = limiter(0);
        let large = limiter.reserve_evaluation_memory(MAX_SMALL_BODY_BYTES + 1);
        assert!(large.is_ok() && limiter.working.used() == memory_bytes_for_body(MAX_SMALL_BODY_BYTES + 1));
        let small = [0, 1].map(|_| limiter.reserve_evaluation_memory(MAX_SMALL_BODY_BYTES));
        assert!(small.iter().all(Result::is_ok), "a large one does not keep small ones waiting");
        assert_eq!(limiter.small_working.used(), 2 * memory_bytes_for_body(MAX_SMALL_BODY_BYTES));
        assert!(
            limiter.reserve_evaluation_memory(1).is_ok_and(|more| more.bytes == memory_bytes_for_body(1)),
            "the rest of the other budget"
        );
        let (first, second) = (
            limiter.reserve_evaluation_memory(MAX_SMALL_BODY_BYTES),
            limiter.reserve_evaluation_memory(MAX_SMALL_BODY_BYTES + 1),
        );
        assert!(first.is_err() && second.is_err(), "they wait");
        drop((large, small));
        assert_eq!((limiter.working.used(), limiter.small_working.used()), (0, 0));
        assert!(
            limiter.reserve_evaluation_memory(100 * MAX_SMALL_BODY_BYTES).is_ok(),
            "one that is too large for the share is judged alone"
        );
    }
}
