//! Aborts connections that take too long, periodically for all connections of a worker: none has a timer of its own.
//!
//! The idle timeout is longer than that of any client, so that the client closes the connection. Only when a worker is
//! close to its connection limit, the connections that were idle for longest are aborted, first those that never sent
//! a request: clients that open connections and send nothing do not block others.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use actix_web::rt::time::sleep;

use super::clock;
use super::connection::{Connection, Phase};
use super::settings::Limits;

/// A connection that was idle for less than this is not aborted because of the connection limit …
const IDLE_GRACE: Duration = Duration::from_secs(1);
/// … and one that has sent a request, for less than this.
const IDLE_GRACE_AFTER_REQUEST: Duration = Duration::from_secs(10);

/// Time limits of connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionTimeouts {
    limits: Limits,
    /// Number of connections of a worker above which idle ones are aborted.
    eviction_threshold: usize,
}

impl ConnectionTimeouts {
    /// For a worker that may have `most` connections.
    pub(super) fn new(limits: Limits, most: usize) -> ConnectionTimeouts {
        ConnectionTimeouts { limits, eviction_threshold: most - most / 4 }
    }

    fn for_phase(&self, phase: Phase) -> Option<Duration> {
        match phase {
            Phase::Handshake | Phase::Head => Some(self.limits.head_timeout),
            Phase::Idle => Some(self.limits.idle_timeout),
            // The handler has its own timeout for these.
            Phase::Body | Phase::Evaluating => None,
            Phase::Responding | Phase::Closing => Some(self.limits.write_timeout),
        }
    }

    /// Interval between two sweeps.
    fn period(&self) -> Duration {
        let Limits { head_timeout, idle_timeout, write_timeout, .. } = self.limits;
        let shortest = head_timeout.min(idle_timeout).min(write_timeout);
        (shortest / 8).clamp(Duration::from_millis(5), Duration::from_millis(500))
    }
}

thread_local! {
    static NOW: Cell<Option<Instant>> = const { Cell::new(None) };
    static CONNECTIONS: RefCell<Vec<Weak<Connection>>> = const { RefCell::new(Vec::new()) };
    static STARTED: OnceCell<()> = const { OnceCell::new() };
}

/// The time of this worker's last sweep: precise enough for timeouts of seconds, without a system call. It does not
/// advance while the worker is busy: input that arrived meanwhile was not late, only not polled.
pub(super) fn now() -> Instant {
    NOW.get().unwrap_or_else(clock::instant)
}

/// Adds a connection of this worker to the sweep.
pub(super) fn register(connection: &Rc<Connection>) {
    CONNECTIONS.with_borrow_mut(|connections| connections.push(Rc::downgrade(connection)));
}

/// Starts the sweep of this worker, for as long as it lives; a second call does nothing.
pub(super) fn start(timeouts: ConnectionTimeouts) {
    let is_first = STARTED.with(|runs| runs.set(()).is_ok());
    if is_first {
        actix_web::rt::spawn(async move {
            let period = timeouts.period();
            let mut last = clock::instant();
            let mut now = last;
            loop {
                NOW.set(Some(now));
                sleep(period).await;
                let instant = clock::instant();
                now += instant.saturating_duration_since(last).min(2 * period);
                last = instant;
                sweep(timeouts, now);
            }
        });
    }
}

fn sweep(timeouts: ConnectionTimeouts, now: Instant) {
    let mut open: Vec<Rc<Connection>> = CONNECTIONS.with_borrow_mut(|connections| {
        let open: Vec<Rc<Connection>> = connections.iter().filter_map(Weak::upgrade).collect();
        if open.len() < connections.len() {
            connections.retain(|connection| connection.strong_count() > 0);
            connections.shrink_to(open.len() * 2);
        }
        open
    });
    for connection in &open {
        let age = now.saturating_duration_since(connection.since());
        if timeouts.for_phase(connection.phase()).is_some_and(|most| age > most) {
            connection.abort();
        } else if connection.phase() == Phase::Idle && age > timeouts.limits.write_timeout {
            // By now the client has read it, or the system has given up on the client.
            connection.trim_response_to(0);
        }
    }
    open.retain(|connection| !connection.is_aborted());
    let too_many = open.len().saturating_sub(timeouts.eviction_threshold);
    if too_many == 0 {
        return;
    }
    open.retain(|connection| {
        let grace = if connection.has_served_request() { IDLE_GRACE_AFTER_REQUEST } else { IDLE_GRACE };
        // Not those in a handshake: a slow one may be waiting for the server.
        connection.phase() == Phase::Idle && now.saturating_duration_since(connection.since()) > grace
    });
    open.sort_by_key(|connection| (connection.has_served_request(), connection.since()));
    open.iter().take(too_many).for_each(|connection| connection.abort());
}
