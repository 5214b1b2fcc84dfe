//! What is known of one connection: where it stands and since when, and how many of its bytes we hold.
//!
//! The socket tells what comes and goes (`stream`), the handler where its request stands (`admit`), and a connection
//! that takes too long is ended (`sweep`). What it may hold is bounded: so much is read and no more until somebody has
//! taken what was read, and room beyond the first few KiB is taken from the gate for as long as the connection lives.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use prometheus_client::metrics::gauge::Gauge;

use super::gate::{Full, Gate};
use super::{clock, sweep};

/// Read before anybody has taken any of it: what fits into the buffers that every connection has.
const FIRST: usize = 4 << 10;
/// The same once the connection has room for more; a TLS record is 16 KiB. It bounds the head of a request, too.
const MOST: usize = 56 << 10;
/// What the buffers of such a connection cost more.
const ROOM: usize = 64 << 10;
/// Answers up to this length fit into the buffers that every connection has.
const SHORT_ANSWER: usize = 4 << 10;
/// What the system may still hold of an answer that we have written.
pub(super) const SENT: usize = 128 << 10;

/// Where a connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Before the end of the TLS handshake.
    Handshake,
    /// Between requests, or before the first.
    Idle,
    /// A request has begun to come.
    Head,
    /// Its body is being received.
    Body,
    /// It is being judged.
    Judging,
    /// Its answer is being written.
    Answering,
    /// The same, and then the connection ends: what comes is thrown away.
    Closing,
}

/// How much room its buffers have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Room {
    /// What every connection has.
    First,
    /// More, taken from where large bodies are.
    Common,
    /// More, taken from where small bodies are.
    Small,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    gate: Arc<Gate>,
    open: Gauge,
    is_open: Cell<bool>,
    until: Cell<Option<Instant>>,
    phase: Cell<Phase>,
    since: Cell<Instant>,
    asked: Cell<bool>,
    ended: Cell<bool>,
    unclaimed: Cell<usize>,
    withheld: Cell<bool>,
    room: Cell<Room>,
    answer: Cell<usize>,
    waker: RefCell<Option<Waker>>,
}

impl Connection {
    pub(super) fn new(gate: Arc<Gate>, open: Gauge) -> Rc<Connection> {
        let connection = Rc::new(Connection {
            gate,
            open,
            is_open: Cell::new(false),
            until: Cell::new(None),
            phase: Cell::new(Phase::Handshake),
            since: Cell::new(sweep::now()),
            asked: Cell::new(false),
            ended: Cell::new(false),
            unclaimed: Cell::new(0),
            withheld: Cell::new(false),
            room: Cell::new(Room::First),
            answer: Cell::new(0),
            waker: RefCell::new(None),
        });
        sweep::watch(&connection);
        connection
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase.get()
    }

    pub(super) fn since(&self) -> Instant {
        self.since.get()
    }

    /// A request came on it.
    pub(super) fn has_asked(&self) -> bool {
        self.asked.get()
    }

    fn enter(&self, phase: Phase) {
        self.phase.set(phase);
        self.since.set(sweep::now());
    }

    // — told by the shell —

    /// The handshake is done, and the first request may have begun with its last message; after `until` it is told to go.
    pub(super) fn opened(&self, until: Option<Instant>, has_begun: bool) {
        self.until.set(until);
        self.is_open.set(true);
        self.open.inc();
        self.enter(if has_begun { Phase::Head } else { Phase::Idle });
        self.claim();
    }

    /// Told to go after its next answer: because of its age, so that a new replica gets its share, or because memory is
    /// short and it has more of it than others.
    pub(super) fn is_to_go(&self) -> bool {
        self.until.get().is_some_and(|until| clock::instant() >= until)
            || (self.room.get() != Room::First && self.gate.common.is_tight())
    }

    /// A handler has the request; its body may follow.
    pub(super) fn begins(&self) {
        self.asked.set(true);
        self.enter(Phase::Body);
        self.claim();
    }

    /// What was read so far is with somebody who counts it.
    pub(super) fn claim(&self) {
        self.unclaimed.set(0);
        if self.withheld.take() {
            self.wake();
        }
    }

    /// The body is complete.
    pub(super) fn is_judging(&self) {
        self.enter(Phase::Judging);
    }

    /// An answer of that length is about to be written.
    pub(super) fn answers(&self, length: usize, closes: bool) -> Result<(), Full> {
        if length > SHORT_ANSWER {
            self.gate.common.take(length)?;
            self.answer.set(self.answer.get() + length);
        }
        self.enter(if closes { Phase::Closing } else { Phase::Answering });
        Ok(())
    }

    // — told by the socket —

    /// More may be read now. If not, the task is woken when it may.
    pub(super) fn may_read(&self) -> bool {
        let read = self.unclaimed.get();
        match self.phase.get() {
            Phase::Judging | Phase::Answering => self.withheld.set(true),
            Phase::Closing if read >= FIRST => {
                // Whoever throws it away gets a turn.
                self.unclaimed.set(0);
                self.wake();
            }
            _ if read < FIRST => return true,
            _ if !self.has_room() => self.end(),
            _ if read < MOST => return true,
            _ => self.withheld.set(true),
        }
        false
    }

    /// Room for more than the first few KiB; where small bodies are only if there is no other.
    fn has_room(&self) -> bool {
        if self.room.get() == Room::First {
            if self.gate.common.take(ROOM).is_ok() {
                self.room.set(Room::Common);
            } else if self.gate.small.take(ROOM).is_ok() {
                self.room.set(Room::Small);
            } else {
                self.gate.shed();
                return false;
            }
        }
        true
    }

    pub(super) fn read(&self, bytes: usize) {
        self.unclaimed.set(self.unclaimed.get() + bytes);
        if bytes > 0 && self.phase.get() == Phase::Idle {
            self.enter(Phase::Head);
            self.keep_of_answer(0);
        }
    }

    /// All that was to be written is with the system.
    pub(super) fn flushed(&self) {
        if self.phase.get() == Phase::Answering {
            self.keep_of_answer(SENT);
            self.enter(Phase::Idle);
            self.claim();
        }
    }

    /// Counts no more than that of what is being answered.
    pub(super) fn keep_of_answer(&self, most: usize) {
        let held = self.answer.get();
        if held > most {
            self.answer.set(most);
            self.gate.common.give(held - most);
        }
    }

    /// The task that waits for the socket.
    pub(super) fn waits(&self, waker: &Waker) {
        let mut known = self.waker.borrow_mut();
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }

    // — told by the sweep —

    /// It ends at the next look at its socket, which is now.
    pub(super) fn end(&self) {
        self.ended.set(true);
        self.wake();
    }

    pub(super) fn is_ended(&self) -> bool {
        self.ended.get()
    }

    fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        match self.room.get() {
            Room::First => {}
            Room::Common => self.gate.common.give(ROOM),
            Room::Small => self.gate.small.give(ROOM),
        }
        self.gate.common.give(self.answer.get());
        if self.is_open.get() {
            self.open.dec();
        }
    }
}
