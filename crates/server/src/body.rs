//! Reads the body of a request within its limits; copies it only if it arrives in several chunks.

use std::cell::Cell;
use std::future::poll_fn;
use std::ops::Deref;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use actix_web::rt::time::timeout;
use actix_web::web::{Bytes, Payload};
use futures_core::Stream as _;

use super::connection::Connection;
use super::limiter::{BodyReservation, LimitReached, LoadLimiter, MAX_SMALL_BODY_BYTES, RequestPermit};
use tollgate_formats::gotime;

/// Maximum time in which a small body must arrive to be counted as prompt. An API server sends head and body
/// together, so a slower body waits for its client, not for this server.
const PROMPT_BODY_TIMEOUT: Duration = Duration::from_millis(25);

/// Bytes kept of a body that is too large: the API server writes the request's uid first.
const KEPT_PREFIX_BYTES: usize = 1 << 10;
/// Largest body that is read to its end. A review holds two objects of at most 3 MiB, and the API server escapes some
/// characters with six bytes.
const MAX_DRAINED_BODY: usize = 48 << 20;

/// The reason why a request body was not received.
#[derive(Debug)]
pub(super) enum BodyError {
    /// The body is larger than allowed. Contains its first bytes, if the rest could be read and dropped.
    TooLarge(Option<Vec<u8>>),
    TooSlow,
    TooBusy,
    Broken(String),
}

/// A received body with its permit and its memory reservation.
#[derive(Debug)]
pub(super) struct ReceivedBody<'g> {
    pub(super) bytes: RequestBodyBytes,
    /// Counts the request as in flight. `None` while it waits for memory, which stays reserved.
    pub(super) permit: Option<RequestPermit<'g>>,
    _reservation: BodyReservation<'g>,
}

impl<'g> ReceivedBody<'g> {
    /// Acquires a permit again, if it has none.
    pub(super) fn acquire_permit_if_missing(&mut self, limiter: &'g LoadLimiter) -> Result<(), LimitReached> {
        if self.permit.is_none() {
            self.permit = Some(limiter.acquire_request_permit()?);
        }
        Ok(())
    }
}

/// Limits on the size and the duration of one request body.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyLimits<'q> {
    /// Largest body in bytes.
    pub(super) max_bytes: usize,
    /// `Content-Length`, if given.
    pub(super) content_length: Option<usize>,
    /// Time limit for the whole body.
    pub(super) timeout: BodyTimeout<'q>,
}

/// The time limit for a body: never longer than the caller waits for the response (`?timeout=10s`).
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyTimeout<'q> {
    /// The query of the request's URL. It is read only for a body that does not arrive at once.
    pub(super) query: &'q str,
    /// The limit of the server.
    pub(super) most: Duration,
}

impl BodyTimeout<'_> {
    pub(super) fn duration(self) -> Duration {
        let requested = self.query.split('&').find_map(|pair| pair.strip_prefix("timeout="));
        let nanos = requested.and_then(|text| u64::try_from(gotime::parse_duration(text).ok()?).ok());
        nanos.map_or(self.most, |nanos| self.most.min(Duration::from_nanos(nanos)))
    }
}

/// Reads a request body within its limits, and reserves memory for it as it arrives.
pub(super) async fn receive_body<'g>(
    mut payload: Payload,
    limits: BodyLimits<'g>,
    limiter: &'g LoadLimiter,
    connection: Option<&'g Connection>,
) -> Result<ReceivedBody<'g>, BodyError> {
    if limits.content_length.is_some_and(|content_length| content_length > limits.max_bytes) {
        return Err(drain_too_large(&mut payload, Vec::new(), limits, connection).await);
    }
    let mut buffer =
        BodyBuffer::new(limiter.start_body_reservation(connection.map(Connection::peer_memory)), limits);
    let at_once = {
        let mut reading = pin!(read_chunks(&mut payload, connection, &mut buffer));
        match poll_twice(reading.as_mut()).await {
            Some(read) => Some(read),
            None => within_prompt_timeout(reading).await,
        }
    };
    let read = if let Some(read) = at_once {
        read
    } else {
        buffer.mark_slow_and_shrink_buffers()?;
        let rest = limits.timeout.duration().saturating_sub(PROMPT_BODY_TIMEOUT);
        let reading = read_chunks(&mut payload, connection, &mut buffer);
        timeout(rest, reading).await.unwrap_or(Err(BodyError::TooSlow))
    };
    if let Err(BodyError::TooLarge(_)) = read {
        let head = buffer.prefix();
        drop(buffer);
        return Err(drain_too_large(&mut payload, head, limits, connection).await);
    }
    read?;
    let permit = limiter.acquire_request_permit().map_err(|LimitReached| BodyError::TooBusy)?;
    let (bytes, reservation) = buffer.into_body();
    Ok(ReceivedBody { bytes, permit: Some(permit), _reservation: reservation })
}

/// Reads and drops the rest of a body that is too large: a client that gets a response before it has sent everything
/// may report a broken connection. The first bytes identify the request.
async fn drain_too_large(
    payload: &mut Payload,
    mut head: Vec<u8>,
    limits: BodyLimits<'_>,
    connection: Option<&Connection>,
) -> BodyError {
    let reading = async {
        let mut length = 0;
        while let Some(chunk) = poll_fn(|cx| Pin::new(&mut *payload).poll_next(cx)).await {
            let chunk = chunk.ok()?;
            length += chunk.len();
            let missing = KEPT_PREFIX_BYTES.saturating_sub(head.len()).min(chunk.len());
            head.extend_from_slice(chunk.get(..missing).unwrap_or_default());
            if let Some(connection) = connection {
                connection.mark_input_consumed();
            }
            if length > MAX_DRAINED_BODY {
                return None;
            }
        }
        Some(head)
    };
    BodyError::TooLarge(timeout(limits.timeout.duration(), reading).await.ok().flatten())
}

/// Polls a future, and once more after all other ready tasks ran; `None` if it is still pending. actix delivers the
/// body after it has called the handler, even if both arrived together, and a timer for so short a wait would be
/// costly.
async fn poll_twice<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    let mut looked = false;
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if looked => Poll::Ready(None),
        Poll::Pending => {
            looked = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
}

/// Reads within [`PROMPT_BODY_TIMEOUT`]. A worker that was busy with another request polls late, and its timer may have
/// expired before it read what the client sent in time: then the client gets the same time again.
async fn within_prompt_timeout<F: Future>(mut reading: Pin<&mut F>) -> Option<F::Output> {
    let began = super::clock::monotonic_now();
    if let Ok(read) = timeout(PROMPT_BODY_TIMEOUT, reading.as_mut()).await {
        return Some(read);
    }
    if began.elapsed() < 2 * PROMPT_BODY_TIMEOUT {
        return None;
    }
    timeout(PROMPT_BODY_TIMEOUT, reading).await.ok()
}

/// Reads the rest of a body into `buffer`. Can be cancelled and called again: chunks that were read are kept.
async fn read_chunks(
    payload: &mut Payload,
    connection: Option<&Connection>,
    buffer: &mut BodyBuffer<'_>,
) -> Result<(), BodyError> {
    while let Some(chunk) = poll_fn(|cx| Pin::new(&mut *payload).poll_next(cx)).await {
        buffer.add(chunk.map_err(|error| BodyError::Broken(error.to_string()))?)?;
        if let Some(connection) = connection {
            connection.mark_input_consumed();
        }
    }
    Ok(())
}

/// Largest capacity that a worker keeps for the next body that arrives in several chunks: enough for a full slice.
const MAX_SPARE_BYTES: usize = 512 << 10;

thread_local! {
    /// An empty buffer that this worker reuses for the next such body. To allocate and free memory for every request
    /// would cost more than copying the body.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Chunks of a body, joined. When they are dropped, the next body can use their memory.
#[derive(Debug)]
pub(super) struct JoinedChunksRecycledOnDrop(Vec<u8>);

impl Drop for JoinedChunksRecycledOnDrop {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.0);
        bytes.clear();
        // A thread that ends keeps nothing.
        let _ = SPARE.try_with(|spare| {
            let other = spare.take();
            let is_better = (other.capacity()..=MAX_SPARE_BYTES).contains(&bytes.capacity());
            spare.set(if is_better { bytes } else { other });
        });
    }
}

/// The received part of a body: one chunk as it arrived, or several joined.
#[derive(Debug)]
struct BodyBuffer<'g> {
    whole: Bytes,
    joined: Vec<u8>,
    /// True if the body arrives slowly; its buffer then grows only as far as needed.
    is_slow: bool,
    reservation: BodyReservation<'g>,
    limits: BodyLimits<'g>,
}

impl<'g> BodyBuffer<'g> {
    fn new(reservation: BodyReservation<'g>, limits: BodyLimits<'g>) -> BodyBuffer<'g> {
        BodyBuffer { whole: Bytes::new(), joined: Vec::new(), is_slow: false, reservation, limits }
    }

    fn len(&self) -> usize {
        self.whole.len() + self.joined.len()
    }

    /// Adds a chunk of the body, after reserving memory for it.
    fn add(&mut self, chunk: Bytes) -> Result<(), BodyError> {
        let length = self.len() + chunk.len();
        if length > self.limits.max_bytes {
            return Err(BodyError::TooLarge(None));
        }
        if self.len() == 0 {
            self.grow_reservation_to(length)?;
            // The chunk is a slice of a larger buffer, which a slow body must not keep.
            self.whole = if self.is_slow { Bytes::copy_from_slice(&chunk) } else { chunk };
            return Ok(());
        }
        if self.joined.is_empty() {
            self.start_joining(length)?;
            self.joined.extend_from_slice(&std::mem::take(&mut self.whole));
        } else if length > self.joined.capacity() {
            let capacity = self.capacity_for(length, length.saturating_mul(2));
            self.grow_reservation_to(capacity)?;
            self.joined.reserve_exact(capacity - self.joined.len());
        }
        self.joined.extend_from_slice(&chunk);
        Ok(())
    }

    /// Gets memory for a body of which `length` bytes have arrived, in more than one chunk.
    fn start_joining(&mut self, length: usize) -> Result<(), BodyError> {
        let spare = SPARE.take();
        // A small body has a budget of its own, which is too small for the spare memory.
        let is_large = self.limits.content_length.is_some_and(|expected| {
            (MAX_SMALL_BODY_BYTES + 1..=spare.capacity()).contains(&expected) && length <= expected
        });
        if is_large && !self.is_slow && self.grow_reservation_to(spare.capacity()).is_ok() {
            self.joined = spare;
            return Ok(());
        }
        SPARE.set(spare);
        let capacity = self.capacity_for(length, length.saturating_mul(4));
        self.grow_reservation_to(capacity)?;
        self.joined.reserve_exact(capacity);
        Ok(())
    }

    /// The capacity to allocate for `length` bytes, at most `most`. `Content-Length` is trusted only up to a multiple
    /// of what has arrived.
    fn capacity_for(&self, length: usize, most: usize) -> usize {
        self.limits.content_length.unwrap_or(most).min(most).min(self.limits.max_bytes).max(length)
    }

    fn grow_reservation_to(&mut self, bytes: usize) -> Result<(), BodyError> {
        self.reservation.grow_to(bytes).map_err(|LimitReached| BodyError::TooBusy)
    }

    /// Marks the body as slow and gives up the read buffer of its connection: a slow client may wait for long, on many
    /// connections.
    fn mark_slow_and_shrink_buffers(&mut self) -> Result<(), BodyError> {
        self.is_slow = true;
        if !self.whole.is_empty() {
            self.whole = Bytes::copy_from_slice(&self.whole);
        }
        // The rest may never come.
        if self.joined.capacity() > self.joined.len().saturating_mul(4) {
            self.joined = self.joined.as_slice().to_vec();
        }
        let bytes = self.whole.len() + self.joined.capacity();
        self.reservation.mark_slow_and_move_to_common(bytes).map_err(|LimitReached| BodyError::TooBusy)
    }

    /// The first bytes of the body, which name the request of a review that is too large.
    fn prefix(&self) -> Vec<u8> {
        let start = if self.joined.is_empty() { &*self.whole } else { &self.joined };
        start.get(..KEPT_PREFIX_BYTES.min(start.len())).unwrap_or_default().to_vec()
    }

    fn into_body(self) -> (RequestBodyBytes, BodyReservation<'g>) {
        let bytes = if self.joined.is_empty() {
            RequestBodyBytes::Whole(self.whole)
        } else {
            RequestBodyBytes::Joined(JoinedChunksRecycledOnDrop(self.joined))
        };
        (bytes, self.reservation)
    }
}

/// The bytes of a received request body: one chunk as it arrived, or several joined.
#[derive(Debug)]
pub(super) enum RequestBodyBytes {
    /// One chunk, as it arrived.
    Whole(Bytes),
    /// Several chunks, joined.
    Joined(JoinedChunksRecycledOnDrop),
}

impl Deref for RequestBodyBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            RequestBodyBytes::Whole(bytes) => bytes,
            RequestBodyBytes::Joined(JoinedChunksRecycledOnDrop(joined)) => joined,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use actix_web::web::Bytes;
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;

    use super::{BodyBuffer, BodyLimits, BodyTimeout, LoadLimiter};
    use crate::limiter::SLOW_REQUEST_OVERHEAD_BYTES;
    use crate::memory::MemoryPlan;

    const NO_TIME: BodyTimeout<'static> = BodyTimeout { query: "", most: Duration::ZERO };

    fn limiter(common: usize, small: usize) -> LoadLimiter {
        let plan = MemoryPlan { connections: 1, common, small, working: 0, small_working: 0, one_peer: 0 };
        LoadLimiter::new(1, plan, Gauge::default(), Counter::default())
    }

    fn shares(limiter: &LoadLimiter) -> (usize, usize) {
        (limiter.common.used(), limiter.small.used())
    }

    #[test]
    fn a_slow_body_is_counted_with_the_others() {
        let large = 1 << 20;
        let limiter = limiter(1 << 20, 1 << 20);
        let limits = BodyLimits { max_bytes: large, content_length: Some(100_000), timeout: NO_TIME };
        let mut buffer = BodyBuffer::new(limiter.start_body_reservation(None), limits);
        for piece in ["{\"a\"", ":", "["] {
            buffer.add(Bytes::from_static(piece.as_bytes())).expect("within the limits");
        }
        assert_eq!(shares(&limiter), (0, 20));
        buffer.mark_slow_and_shrink_buffers().expect("within the limits");
        assert_eq!(shares(&limiter), (20 + SLOW_REQUEST_OVERHEAD_BYTES, 0));
        buffer.add(Bytes::from_static(b"1]}")).expect("within the limits");
        assert_eq!(*buffer.into_body().0, *br#"{"a":[1]}"#);
        let mut late = BodyBuffer::new(limiter.start_body_reservation(None), limits);
        late.mark_slow_and_shrink_buffers().expect("within the limits");
        late.add(Bytes::from_static(b"{")).expect("within the limits");
        late.add(Bytes::from_static(b"}")).expect("within the limits");
        assert!(late.joined.capacity() < 100, "Content-Length is not trusted");
        assert_eq!(*late.into_body().0, *b"{}");
        assert_eq!(shares(&limiter), (0, 0));
    }

    #[test]
    fn only_large_prompt_bodies_use_the_memory_of_one_before() {
        let limiter = limiter(1 << 20, 1 << 20);
        let begin = |length: usize, piece: usize| {
            let limits = BodyLimits { max_bytes: 1 << 20, content_length: Some(length), timeout: NO_TIME };
            let mut buffer = BodyBuffer::new(limiter.start_body_reservation(None), limits);
            for _ in 0..2 {
                buffer.add(Bytes::from(vec![b' '; piece])).expect("within the limits");
            }
            buffer
        };
        drop(begin(400_000, 200_000).into_body());
        assert_eq!(shares(&limiter), (0, 0));
        let large = begin(80_000, 40_000);
        assert_eq!((large.joined.capacity(), shares(&limiter)), (400_000, (400_000, 0)));
        drop(large.into_body());
        let small = begin(20_000, 10_000);
        assert_eq!((small.joined.capacity(), shares(&limiter)), (20_000, (0, 20_000)));
        drop(small.into_body());
        let mut slow = begin(100_000, 10);
        assert_eq!(slow.joined.capacity(), 400_000, "a small body left it as it was");
        slow.mark_slow_and_shrink_buffers().expect("within the limits");
        assert_eq!(shares(&limiter), (20 + SLOW_REQUEST_OVERHEAD_BYTES, 0));
        drop(slow);
        let first = begin(100_000, 10);
        assert_eq!(first.joined.capacity(), 80, "a slow body gives it back to the system");
    }

    #[test]
    fn room_is_counted_before_it_is_used() {
        let limiter = limiter(200_000, 100_000);
        let limits = BodyLimits { max_bytes: 1 << 20, content_length: None, timeout: NO_TIME };
        let mut buffer = BodyBuffer::new(limiter.start_body_reservation(None), limits);
        let piece = Bytes::from(vec![b' '; 30_000]);
        let mut refused = 0;
        for _ in 0..10 {
            refused += usize::from(buffer.add(piece.clone()).is_err());
            let (common, small) = shares(&limiter);
            assert!(common + small >= buffer.joined.capacity().max(buffer.whole.len()));
        }
        assert!(refused > 0);
        drop(buffer);
        assert_eq!(shares(&limiter), (0, 0));
    }

    #[test]
    fn the_callers_timeout_is_kept() {
        let most = Duration::from_secs(10);
        for (query, millis) in [
            ("", 10_000),
            ("timeout=3s", 3000),
            ("a=b&timeout=1500ms", 1500),
            ("timeout=1m30s", 10_000),
            ("timeout=0s", 0),
            ("timeout=soon", 10_000),
            ("timeout=99999999999999999999h", 10_000),
            ("timeout=5", 10_000),
            ("timeout=-5s", 10_000),
            ("timeout=", 10_000),
        ] {
            assert_eq!(BodyTimeout { query, most }.duration(), Duration::from_millis(millis), "{query}");
        }
    }
}
