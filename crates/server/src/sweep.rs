//! The connections of a worker: aborts those that take too long, periodically and for all of them (none has a timer of
//! its own), and makes room for a new one when there are too many.
//!
//! The idle timeout is longer than that of any client, so that the client closes the connection. A new connection is
//! always accepted: whom it displaces is decided by `eviction`.

use std::cell::{Cell, OnceCell, RefCell};
use std::net::IpAddr;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use actix_web::rt::time::sleep;

use super::clock;
use super::connection::{Connection, Phase};
use super::eviction;
use super::settings::Limits;

/// One out of this many connections is closed at once when there are too many, so that choosing them costs little per
/// connection.
const EVICTED_CONNECTIONS_DIVISOR: usize = 64;

/// Maximum duration of each phase of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionTimeouts(Limits);

impl ConnectionTimeouts {
    pub(super) fn new(limits: Limits) -> ConnectionTimeouts {
        ConnectionTimeouts(limits)
    }

    /// The longest that a connection may be in a phase; `None` for no limit.
    fn for_phase(&self, phase: Phase) -> Option<Duration> {
        match phase {
            Phase::Handshake | Phase::Head => Some(self.0.head_timeout),
            Phase::Idle => Some(self.0.idle_timeout),
            // The handler has its own timeout for these.
            Phase::Body | Phase::Evaluating => None,
            Phase::Responding | Phase::Closing => Some(self.0.write_timeout),
        }
    }

    /// Time between two sweeps: an eighth of the shortest timeout, within bounds.
    fn sweep_interval(&self) -> Duration {
        let Limits { head_timeout, idle_timeout, write_timeout, .. } = self.0;
        let shortest = head_timeout.min(idle_timeout).min(write_timeout);
        (shortest / 8).clamp(Duration::from_millis(5), Duration::from_millis(500))
    }
}

thread_local! {
    static LAST_SWEEP_TIME: Cell<Option<Instant>> = const { Cell::new(None) };
    static CONNECTIONS: RefCell<Vec<Weak<Connection>>> = const { RefCell::new(Vec::new()) };
    static SWEEP_STARTED: OnceCell<()> = const { OnceCell::new() };
    static SEQUENCE_NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// The time of this worker's last sweep: precise enough for timeouts of seconds, and without a system call. It stands
/// still while the worker is busy, since input that arrived meanwhile was not late.
pub(super) fn last_sweep_time() -> Instant {
    LAST_SWEEP_TIME.get().unwrap_or_else(clock::monotonic_now)
}

/// Returns a larger number with each call, to order events for which [`last_sweep_time`] is too coarse.
pub(super) fn next_sequence_number() -> u64 {
    let next = SEQUENCE_NUMBER.get() + 1;
    SEQUENCE_NUMBER.set(next);
    next
}

/// The maximum number of connections that a worker may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerConnectionLimits {
    pub(super) connections: usize,
    /// Maximum number of connections from one address; no more than `connections`.
    pub(super) per_address: usize,
}

/// Makes room for one more connection from this address on this worker: aborts others if there are too many. Returns
/// how many were aborted.
pub(super) fn abort_to_make_room(room: WorkerConnectionLimits, address: IpAddr) -> usize {
    let WorkerConnectionLimits { connections: most, per_address } = room;
    CONNECTIONS.with_borrow_mut(|connections| {
        if connections.len() < most.min(per_address) {
            return 0;
        }
        connections.retain(|connection| connection.upgrade().is_some_and(|open| !open.is_aborted()));
        let mut open: Vec<Rc<Connection>> = connections.iter().filter_map(Weak::upgrade).collect();
        let evict = |open: &[Rc<Connection>], excess: usize, limit: usize| {
            let holdings: Vec<_> = open.iter().map(|connection| connection.eviction_candidate()).collect();
            eviction::connections_to_close(&holdings, excess, limit)
                .into_iter()
                .filter_map(|index| open.get(index))
                .for_each(|connection| connection.abort());
        };
        if per_address < most {
            let own: Vec<_> =
                open.iter().filter(|open| open.eviction_candidate().address == address).cloned().collect();
            evict(&own, (own.len() + 1).saturating_sub(per_address), per_address);
            open.retain(|connection| !connection.is_aborted());
        }
        if open.len() >= most {
            evict(&open, open.len() + 1 + most / EVICTED_CONNECTIONS_DIVISOR - most, most);
        }
        let before = connections.len();
        connections.retain(|connection| connection.upgrade().is_some_and(|open| !open.is_aborted()));
        before - connections.len()
    })
}

/// Adds a connection of this worker to the sweep.
pub(super) fn register_connection(connection: &Rc<Connection>) {
    CONNECTIONS.with_borrow_mut(|connections| connections.push(Rc::downgrade(connection)));
}

/// Starts the task that aborts slow connections of this worker; a second call does nothing.
pub(super) fn ensure_worker_sweep(timeouts: ConnectionTimeouts) {
    let is_first = SWEEP_STARTED.with(|runs| runs.set(()).is_ok());
    if is_first {
        actix_web::rt::spawn(async move {
            let period = timeouts.sweep_interval();
            let mut last = clock::monotonic_now();
            let mut now = last;
            loop {
                LAST_SWEEP_TIME.set(Some(now));
                sleep(period).await;
                let instant = clock::monotonic_now();
                now += instant.saturating_duration_since(last).min(2 * period);
                last = instant;
                abort_timed_out(timeouts, now);
            }
        });
    }
}

/// Aborts the connections of this worker that have been in their phase for too long.
fn abort_timed_out(timeouts: ConnectionTimeouts, now: Instant) {
    let open: Vec<Rc<Connection>> = CONNECTIONS.with_borrow_mut(|connections| {
        let open: Vec<Rc<Connection>> = connections.iter().filter_map(Weak::upgrade).collect();
        if open.len() < connections.len() {
            connections.retain(|connection| connection.strong_count() > 0);
            connections.shrink_to(open.len() * 2);
        }
        open
    });
    for connection in &open {
        let age = now.saturating_duration_since(connection.phase_start());
        if timeouts.for_phase(connection.phase()).is_some_and(|most| age > most) {
            connection.abort();
        } else if connection.phase() == Phase::Idle && age > timeouts.0.write_timeout {
            // By now the client has read it, or the system has given up on the client.
            connection.shrink_response_reservation(0);
        }
    }
}
