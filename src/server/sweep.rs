//! Ends connections that take too long, once in a while for all of a worker: no connection has a clock of its own.
//!
//! An idle connection may stay longer than any client keeps one, so that it is the client that ends it. Only when a
//! worker has nearly as many connections as it may have, those that have been idle for longest go, first those that
//! never asked anything: who opens connections and says nothing does not keep others out.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use actix_web::rt::time::sleep;

use super::clock;
use super::connection::{Connection, Phase};
use super::settings::Limits;

/// Nobody who has been silent for less than this is ended because there are many …
const GRACE: Duration = Duration::from_secs(1);
/// … and nobody who has asked something, for less than this.
const GRACE_OF_KNOWN: Duration = Duration::from_secs(10);

/// How long connections may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    limits: Limits,
    /// Connections of a worker, from which on idle ones go.
    many: usize,
}

impl Patience {
    /// For a worker that may have `most` connections.
    pub(super) fn new(limits: Limits, most: usize) -> Patience {
        Patience { limits, many: most - most / 4 }
    }

    fn with(&self, phase: Phase) -> Option<Duration> {
        match phase {
            Phase::Handshake | Phase::Head => Some(self.limits.head_timeout),
            Phase::Idle => Some(self.limits.idle_timeout),
            // The handler has its own clock for these.
            Phase::Body | Phase::Judging => None,
            Phase::Answering | Phase::Closing => Some(self.limits.write_timeout),
        }
    }

    /// How often to look.
    fn period(&self) -> Duration {
        let Limits { head_timeout, idle_timeout, write_timeout, .. } = self.limits;
        let shortest = head_timeout.min(idle_timeout).min(write_timeout);
        (shortest / 8).clamp(Duration::from_millis(5), Duration::from_millis(500))
    }
}

thread_local! {
    static NOW: Cell<Option<Instant>> = const { Cell::new(None) };
    static CONNECTIONS: RefCell<Vec<Weak<Connection>>> = const { RefCell::new(Vec::new()) };
    static RUNS: OnceCell<()> = const { OnceCell::new() };
}

/// The time of this worker at its last look: good enough for what takes seconds, and it costs nothing. It stands still
/// while the worker is at work on something else: what came meanwhile was not late, only not looked at.
pub(super) fn now() -> Instant {
    NOW.get().unwrap_or_else(clock::instant)
}

/// Looks after a connection of this worker.
pub(super) fn watch(connection: &Rc<Connection>) {
    CONNECTIONS.with_borrow_mut(|connections| connections.push(Rc::downgrade(connection)));
}

/// Looks after the connections of this worker for as long as it lives; a second call does nothing.
pub(super) fn start(patience: Patience) {
    let is_first = RUNS.with(|runs| runs.set(()).is_ok());
    if is_first {
        actix_web::rt::spawn(async move {
            let period = patience.period();
            let mut last = clock::instant();
            let mut now = last;
            loop {
                NOW.set(Some(now));
                sleep(period).await;
                let instant = clock::instant();
                now += instant.saturating_duration_since(last).min(2 * period);
                last = instant;
                sweep(patience, now);
            }
        });
    }
}

fn sweep(patience: Patience, now: Instant) {
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
        if patience.with(connection.phase()).is_some_and(|most| age > most) {
            connection.end();
        } else if connection.phase() == Phase::Idle && age > patience.limits.write_timeout {
            // By now the client has it, or the system has given up on the client.
            connection.keep_of_answer(0);
        }
    }
    open.retain(|connection| !connection.is_ended());
    let too_many = open.len().saturating_sub(patience.many);
    if too_many == 0 {
        return;
    }
    open.retain(|connection| {
        let grace = if connection.has_asked() { GRACE_OF_KNOWN } else { GRACE };
        // Not those in a handshake: who is slow there may only be waiting for us.
        connection.phase() == Phase::Idle && now.saturating_duration_since(connection.since()) > grace
    });
    open.sort_by_key(|connection| (connection.has_asked(), connection.since()));
    open.iter().take(too_many).for_each(|connection| connection.end());
}
