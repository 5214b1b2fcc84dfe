//! The state of one connection: its phase, since when, and how many of its bytes are buffered.
//!
//! The socket reports reads and writes (`stream`), the handler reports the progress of the request (`handler`), and a
//! connection that takes too long, or must make room for others, is aborted (`sweep`). Its buffers are bounded: reading
//! pauses until what was read is consumed, and buffers beyond the first few KiB are reserved from the limiter for the
//! life of the connection.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Instant;

use prometheus_client::metrics::gauge::Gauge;

use super::eviction::ConnectionEvictionCandidate;
use super::limiter::{LimitReached, LoadLimiter, PeerMemory};
use super::{clock, sweep};

/// Bytes read ahead with the buffers that every connection has.
const INITIAL_READ_LIMIT: usize = 4 << 10;
/// Bytes read ahead with larger buffers; a TLS record is 16 KiB. This also bounds the head of a request.
const EXTENDED_READ_LIMIT: usize = 56 << 10;
/// Additional bytes of memory that a connection with larger buffers takes.
const EXTRA_BUFFER_COST: usize = 64 << 10;
/// Responses up to this length fit into the buffers that every connection has.
const SHORT_RESPONSE_BYTES: usize = 4 << 10;
/// Bytes of a written response that the system may still buffer.
pub(super) const SEND_BUFFER: usize = 128 << 10;

/// What a connection is doing, which decides about its timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Before the end of the TLS handshake.
    Handshake,
    /// Between requests, or before the first.
    Idle,
    /// The head of a request is being received.
    Head,
    /// The body of a request is being received.
    Body,
    /// The request is being evaluated.
    Evaluating,
    /// The response is being written.
    Responding,
    /// The response is being written, and the connection closes afterwards: input is discarded.
    Closing,
}

/// The memory budget that pays for the buffers of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ChargedBufferBudget {
    /// No budget: the connection has only the buffers that every connection has.
    Initial,
    /// Larger buffers, reserved from the common budget.
    Common,
    /// Larger buffers, reserved from the budget of small bodies.
    Small,
}

/// The state of one client connection, for timeouts and limits.
#[derive(Debug)]
pub(super) struct Connection {
    limiter: Arc<LoadLimiter>,
    address: IpAddr,
    peer: Arc<PeerMemory>,
    open: Gauge,
    is_open: Cell<bool>,
    expires: Cell<Option<Instant>>,
    phase: Cell<Phase>,
    since: Cell<Instant>,
    progress: Cell<u64>,
    had_request: Cell<bool>,
    aborted: Cell<bool>,
    unconsumed: Cell<usize>,
    read_paused: Cell<bool>,
    buffers: Cell<ChargedBufferBudget>,
    response: Cell<usize>,
    waker: RefCell<Option<Waker>>,
}

impl Connection {
    pub(super) fn new(limiter: Arc<LoadLimiter>, open: Gauge, address: IpAddr) -> Rc<Connection> {
        let connection = Rc::new(Connection {
            peer: limiter.peer_memory(address),
            limiter,
            address,
            open,
            is_open: Cell::new(false),
            expires: Cell::new(None),
            phase: Cell::new(Phase::Handshake),
            since: Cell::new(sweep::last_sweep_time()),
            progress: Cell::new(sweep::next_sequence_number()),
            had_request: Cell::new(false),
            aborted: Cell::new(false),
            unconsumed: Cell::new(0),
            read_paused: Cell::new(false),
            buffers: Cell::new(ChargedBufferBudget::Initial),
            response: Cell::new(0),
            waker: RefCell::new(None),
        });
        sweep::register_connection(&connection);
        connection
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Returns when the current phase began.
    pub(super) fn phase_start(&self) -> Instant {
        self.since.get()
    }

    /// The properties by which [`crate::eviction`] chooses the connections to close.
    pub(super) fn eviction_candidate(&self) -> ConnectionEvictionCandidate {
        ConnectionEvictionCandidate {
            address: self.address,
            has_served: self.had_request.get(),
            progress: self.progress.get(),
        }
    }

    /// Returns the memory that all connections from the same address have reserved.
    pub(super) fn peer_memory(&self) -> &PeerMemory {
        &self.peer
    }

    /// Begins a phase, with its own timeout.
    fn enter_phase(&self, phase: Phase) {
        self.phase.set(phase);
        self.since.set(sweep::last_sweep_time());
        self.progress.set(sweep::next_sequence_number());
    }

    // — reported by the handler —

    /// Records the end of the TLS handshake; `has_begun` if the first request arrived with its last message. After
    /// `expires` the connection closes with its next response.
    pub(super) fn handshake_done(&self, expires: Option<Instant>, has_begun: bool) {
        self.expires.set(expires);
        self.is_open.set(true);
        self.open.inc();
        self.enter_phase(if has_begun { Phase::Head } else { Phase::Idle });
        self.mark_input_consumed();
    }

    /// True if the connection closes after its next response: it is old, so that new replicas get connections, or
    /// memory is short and its buffers are large.
    pub(super) fn should_close_after_response(&self) -> bool {
        self.expires.get().is_some_and(|expires| clock::monotonic_now() >= expires)
            || (self.buffers.get() != ChargedBufferBudget::Initial && self.limiter.common.is_nearly_full())
    }

    /// Records that a handler was called; the body may follow.
    pub(super) fn request_started(&self) {
        self.had_request.set(true);
        self.enter_phase(Phase::Body);
        self.mark_input_consumed();
    }

    /// Records that everything read so far was consumed and is counted elsewhere.
    pub(super) fn mark_input_consumed(&self) {
        self.unconsumed.set(0);
        if self.read_paused.take() {
            self.wake();
        }
    }

    /// Records that the body is complete.
    pub(super) fn body_received(&self) {
        self.enter_phase(Phase::Evaluating);
    }

    /// Records that a response of this length is about to be written, and reserves memory for it.
    pub(super) fn reserve_and_start_response(&self, length: usize, closes: bool) -> Result<(), LimitReached> {
        if length > SHORT_RESPONSE_BYTES {
            self.limiter.common.reserve(length, Some(&self.peer))?;
            self.response.set(self.response.get() + length);
        }
        self.enter_phase(if closes { Phase::Closing } else { Phase::Responding });
        Ok(())
    }

    // — reported by the socket —

    /// True if more bytes may be read now. If not, the task is woken when they may. Reserves memory for larger buffers
    /// if they are needed, and aborts the connection if there is none.
    pub(super) fn reserve_for_read_or_pause(&self) -> bool {
        let read = self.unconsumed.get();
        match self.phase.get() {
            Phase::Evaluating | Phase::Responding => self.read_paused.set(true),
            Phase::Closing if read >= INITIAL_READ_LIMIT => {
                // Let the task that discards it run.
                self.unconsumed.set(0);
                self.wake();
            }
            _ if read < INITIAL_READ_LIMIT => return true,
            _ if !self.ensure_buffer_budget() => self.abort(),
            _ if read < EXTENDED_READ_LIMIT => return true,
            _ => self.read_paused.set(true),
        }
        false
    }

    /// Reserves memory for larger buffers, from the budget of small bodies only if the common one is used up. False if
    /// neither has enough.
    fn ensure_buffer_budget(&self) -> bool {
        if self.buffers.get() == ChargedBufferBudget::Initial {
            if self.limiter.common.reserve(EXTRA_BUFFER_COST, Some(&self.peer)).is_ok() {
                self.buffers.set(ChargedBufferBudget::Common);
            } else if self.limiter.small.reserve(EXTRA_BUFFER_COST, None).is_ok() {
                self.buffers.set(ChargedBufferBudget::Small);
            } else {
                self.limiter.count_rejected_request();
                return false;
            }
        }
        true
    }

    /// Records that bytes were read; the first ones begin the head of a request.
    pub(super) fn on_read(&self, bytes: usize) {
        self.unconsumed.set(self.unconsumed.get() + bytes);
        if bytes > 0 && self.phase.get() == Phase::Idle {
            self.enter_phase(Phase::Head);
            self.shrink_response_reservation(0);
        }
    }

    /// Records that everything written has been passed to the system.
    pub(super) fn on_flushed(&self) {
        if self.phase.get() == Phase::Responding {
            self.shrink_response_reservation(SEND_BUFFER);
            self.enter_phase(Phase::Idle);
            self.mark_input_consumed();
        }
    }

    /// Shrinks the reservation for the response to at most `limit`.
    pub(super) fn shrink_response_reservation(&self, limit: usize) {
        let held = self.response.get();
        if held > limit {
            self.response.set(limit);
            self.limiter.common.release(held - limit, Some(&self.peer));
        }
    }

    // — called by the listener —

    /// Polls the future that serves the connection, until it ends or the connection is aborted. An aborted connection
    /// gets nothing more, not even an alert, whatever it was doing.
    pub(super) async fn serve_until_aborted<T: Default, E>(
        &self,
        serving: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let mut serving = pin!(serving);
        poll_fn(|cx| {
            if self.is_aborted() {
                return Poll::Ready(Ok(T::default()));
            }
            self.set_waker(cx.waker());
            serving.as_mut().poll(cx)
        })
        .await
    }

    /// Remembers the task that serves the connection.
    fn set_waker(&self, waker: &Waker) {
        let mut known = self.waker.borrow_mut();
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
    }

    // — called by the sweep —

    /// Makes the task of the connection end at its next poll, and wakes it.
    pub(super) fn abort(&self) {
        self.aborted.set(true);
        self.wake();
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.aborted.get()
    }

    fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        match self.buffers.get() {
            ChargedBufferBudget::Initial => {}
            ChargedBufferBudget::Common => self.limiter.common.release(EXTRA_BUFFER_COST, Some(&self.peer)),
            ChargedBufferBudget::Small => self.limiter.small.release(EXTRA_BUFFER_COST, None),
        }
        self.limiter.common.release(self.response.get(), Some(&self.peer));
        self.limiter.forget_peer_after_last_connection(self.address, &self.peer);
        if self.is_open.get() {
            self.open.dec();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;

    use super::{
        Connection, EXTENDED_READ_LIMIT, EXTRA_BUFFER_COST, INITIAL_READ_LIMIT, LimitReached, LoadLimiter,
        Phase, SEND_BUFFER,
    };
    use crate::memory::MemoryPlan;

    fn limiter(common: usize, small: usize) -> Arc<LoadLimiter> {
        let plan =
            MemoryPlan { connections: 1, common, small, working: 0, small_working: 0, one_peer: common };
        Arc::new(LoadLimiter::new(1, plan, Gauge::default(), Counter::default()))
    }

    #[test]
    fn reading_pauses_until_what_was_read_is_consumed() {
        let limiter = limiter(EXTRA_BUFFER_COST, 0);
        let connection = Connection::new(limiter.clone(), Gauge::default(), Ipv4Addr::LOCALHOST.into());
        connection.handshake_done(None, false);
        connection.on_read(INITIAL_READ_LIMIT);
        assert_eq!((connection.phase(), limiter.common.used()), (Phase::Head, 0));
        assert!(connection.reserve_for_read_or_pause(), "with larger buffers");
        assert_eq!(limiter.common.used(), EXTRA_BUFFER_COST);
        connection.on_read(EXTENDED_READ_LIMIT);
        assert!(!connection.reserve_for_read_or_pause() && !connection.is_aborted());
        connection.request_started();
        assert!(connection.reserve_for_read_or_pause() && connection.eviction_candidate().has_served);
        connection.body_received();
        assert!(!connection.reserve_for_read_or_pause(), "not while the request is evaluated");
        drop(connection);
        assert_eq!(limiter.common.used(), 0);
    }

    #[test]
    fn without_memory_a_connection_is_aborted_and_a_long_response_refused() {
        let limiter = limiter(0, 0);
        let connection = Connection::new(limiter.clone(), Gauge::default(), Ipv4Addr::LOCALHOST.into());
        connection.handshake_done(None, false);
        assert_eq!(connection.reserve_and_start_response(1 << 20, false), Err(LimitReached));
        assert_eq!(connection.reserve_and_start_response(10, false), Ok(()), "a short one needs none");
        connection.on_flushed();
        connection.on_read(INITIAL_READ_LIMIT);
        assert!(!connection.reserve_for_read_or_pause() && connection.is_aborted());
    }

    #[test]
    fn a_response_is_counted_until_the_client_has_read_it() {
        let limiter = limiter(4 * SEND_BUFFER, 0);
        let connection = Connection::new(limiter.clone(), Gauge::default(), Ipv4Addr::LOCALHOST.into());
        connection.handshake_done(None, false);
        assert_eq!(connection.reserve_and_start_response(2 * SEND_BUFFER, false), Ok(()));
        assert_eq!(limiter.common.used(), 2 * SEND_BUFFER);
        connection.on_flushed();
        assert_eq!((connection.phase(), limiter.common.used()), (Phase::Idle, SEND_BUFFER));
        connection.on_read(1);
        assert_eq!(limiter.common.used(), 0, "the next request has begun");
    }
}
