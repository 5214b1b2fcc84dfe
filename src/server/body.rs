//! Reads the body of a request: whole, within its limits, copied only if it came in pieces.

use std::future::poll_fn;
use std::ops::Deref;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use actix_web::rt::time::timeout;
use actix_web::web::{Bytes, Payload};
use futures_core::Stream as _;

use super::connection::Connection;
use super::gate::{BodyHold, Full, Gate, Permit};

/// How long a body may be on its way and still count as in flight. The API server sends head and body together; one
/// that takes longer waits for its client, not for us.
const IN_ONE_GO: Duration = Duration::from_millis(25);

/// Bytes of a body that is too large which are kept: the API server begins with the request's uid.
const HEAD: usize = 1 << 10;
/// Largest body that is read to its end. A review holds two objects of at most 3 MiB, and the API server writes some
/// letters with six.
const LARGEST_DROPPED: usize = 48 << 20;

/// Why there is no body.
#[derive(Debug)]
pub(super) enum NoBody {
    /// All of it was read and dropped, but for its first bytes; or not even that.
    TooLarge(Option<Vec<u8>>),
    TooSlow,
    TooBusy,
    Broken(String),
}

/// A body, and its place among the others.
#[derive(Debug)]
pub(super) struct Received<'g> {
    pub(super) bytes: Body,
    permit: Option<Permit<'g>>,
    _hold: BodyHold<'g>,
}

impl<'g> Received<'g> {
    /// It waits: until it is in flight again, others may take its place. Its bytes stay counted.
    pub(super) fn leave_flight(&mut self) {
        self.permit = None;
    }

    /// It goes on, if there is a place.
    pub(super) fn enter_flight(&mut self, gate: &'g Gate) -> Result<(), Full> {
        if self.permit.is_none() {
            self.permit = Some(gate.enter()?);
        }
        Ok(())
    }
}

/// What a body is measured by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Largest body in bytes.
    pub(super) most: usize,
    /// `Content-Length`, if given.
    pub(super) announced: Option<usize>,
    /// How long the whole body may take.
    pub(super) patience: Duration,
}

/// Receives a body.
pub(super) async fn receive<'g>(
    mut payload: Payload,
    limits: Limits,
    gate: &'g Gate,
    connection: Option<&Connection>,
) -> Result<Received<'g>, NoBody> {
    if limits.announced.is_some_and(|announced| announced > limits.most) {
        return Err(too_large(&mut payload, Vec::new(), limits, connection).await);
    }
    let mut permit = Some(gate.enter().map_err(|Full| NoBody::TooBusy)?);
    let mut gathered = Gathered::new(gate.body(), limits);
    let at_once = {
        let mut reading = pin!(collect(&mut payload, connection, &mut gathered));
        match at_second_sight(reading.as_mut()).await {
            Some(read) => Some(read),
            None => promptly(reading).await,
        }
    };
    let read = if let Some(read) = at_once {
        read
    } else {
        permit = None;
        gathered.give_back()?;
        let rest = limits.patience.saturating_sub(IN_ONE_GO);
        let reading = collect(&mut payload, connection, &mut gathered);
        timeout(rest, reading).await.unwrap_or(Err(NoBody::TooSlow))
    };
    if let Err(NoBody::TooLarge(_)) = read {
        let head = gathered.head();
        drop(gathered);
        return Err(too_large(&mut payload, head, limits, connection).await);
    }
    read?;
    let permit = match permit {
        Some(permit) => permit,
        None => gate.enter().map_err(|Full| NoBody::TooBusy)?,
    };
    let (bytes, hold) = gathered.body();
    Ok(Received { bytes, permit: Some(permit), _hold: hold })
}

/// Reads the rest of a body that is too large, and drops it: who is answered before having sent everything may take the
/// answer for a broken connection. Its first bytes tell which request it is.
async fn too_large(
    payload: &mut Payload,
    mut head: Vec<u8>,
    limits: Limits,
    connection: Option<&Connection>,
) -> NoBody {
    let reading = async {
        let mut length = 0;
        while let Some(chunk) = poll_fn(|cx| Pin::new(&mut *payload).poll_next(cx)).await {
            let chunk = chunk.ok()?;
            length += chunk.len();
            let missing = HEAD.saturating_sub(head.len()).min(chunk.len());
            head.extend_from_slice(chunk.get(..missing).unwrap_or_default());
            if let Some(connection) = connection {
                connection.claim();
            }
            if length > LARGEST_DROPPED {
                return None;
            }
        }
        Some(head)
    };
    NoBody::TooLarge(timeout(limits.patience, reading).await.ok().flatten())
}

/// What a future that is not ready at once comes to when everything that was ready has had its turn; `None` if it is
/// still waiting. A handler is called with the head of a request, and its body is handed on after that, even when both
/// came together: a clock that is started for so short a while costs a system call, which tells the worker of the new
/// deadline.
async fn at_second_sight<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
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

/// What reading comes to within [`IN_ONE_GO`]. A worker that was busy with another request looks late, and finds its own
/// clock run out before it has read what the client sent long ago: then the client gets the time once more.
async fn promptly<F: Future>(mut reading: Pin<&mut F>) -> Option<F::Output> {
    let began = super::clock::instant();
    if let Ok(read) = timeout(IN_ONE_GO, reading.as_mut()).await {
        return Some(read);
    }
    if began.elapsed() < 2 * IN_ONE_GO {
        return None;
    }
    timeout(IN_ONE_GO, reading).await.ok()
}

/// Gathers the rest of a body. What it has when it is given up is in `gathered`, and can be gone on with.
async fn collect(
    payload: &mut Payload,
    connection: Option<&Connection>,
    gathered: &mut Gathered<'_>,
) -> Result<(), NoBody> {
    while let Some(chunk) = poll_fn(|cx| Pin::new(&mut *payload).poll_next(cx)).await {
        gathered.add(chunk.map_err(|error| NoBody::Broken(error.to_string()))?)?;
        if let Some(connection) = connection {
            connection.claim();
        }
    }
    Ok(())
}

/// What has come of a body: one piece as it came, or several put together.
#[derive(Debug)]
struct Gathered<'g> {
    whole: Bytes,
    pieces: Vec<u8>,
    /// It is slow, and gets no room but what it needs.
    is_slow: bool,
    hold: BodyHold<'g>,
    limits: Limits,
}

impl<'g> Gathered<'g> {
    fn new(hold: BodyHold<'g>, limits: Limits) -> Gathered<'g> {
        Gathered { whole: Bytes::new(), pieces: Vec::new(), is_slow: false, hold, limits }
    }

    fn len(&self) -> usize {
        self.whole.len() + self.pieces.len()
    }

    /// Adds a piece: first there must be room, then it is used.
    fn add(&mut self, chunk: Bytes) -> Result<(), NoBody> {
        let length = self.len() + chunk.len();
        if length > self.limits.most {
            return Err(NoBody::TooLarge(None));
        }
        if self.len() == 0 {
            self.grow_to(length)?;
            // As it came it lies in a buffer that is larger: that is too much for one who waits.
            self.whole = if self.is_slow { Bytes::copy_from_slice(&chunk) } else { chunk };
            return Ok(());
        }
        if self.pieces.is_empty() {
            let room = self.room(length, length.saturating_mul(4));
            self.grow_to(room)?;
            self.pieces.reserve_exact(room);
            self.pieces.extend_from_slice(&std::mem::take(&mut self.whole));
        } else if length > self.pieces.capacity() {
            let room = self.room(length, length.saturating_mul(2));
            self.grow_to(room)?;
            self.pieces.reserve_exact(room - self.pieces.len());
        }
        self.pieces.extend_from_slice(&chunk);
        Ok(())
    }

    /// What is announced is believed only as far as the client has shown.
    fn room(&self, length: usize, most: usize) -> usize {
        self.limits.announced.unwrap_or(most).min(most).min(self.limits.most).max(length)
    }

    fn grow_to(&mut self, bytes: usize) -> Result<(), NoBody> {
        self.hold.grow_to(bytes).map_err(|Full| NoBody::TooBusy)
    }

    /// Gives up the buffer of the connection: a client that waits may do so for long, and with many connections.
    fn give_back(&mut self) -> Result<(), NoBody> {
        self.is_slow = true;
        if !self.whole.is_empty() {
            self.whole = Bytes::copy_from_slice(&self.whole);
        }
        let bytes = self.whole.len() + self.pieces.capacity();
        self.hold.is_slow(bytes).map_err(|Full| NoBody::TooBusy)
    }

    /// Its first bytes.
    fn head(&self) -> Vec<u8> {
        let start = if self.pieces.is_empty() { &*self.whole } else { &self.pieces };
        start.get(..HEAD.min(start.len())).unwrap_or_default().to_vec()
    }

    fn body(self) -> (Body, BodyHold<'g>) {
        let bytes = if self.pieces.is_empty() { Body::Whole(self.whole) } else { Body::Pieces(self.pieces) };
        (bytes, self.hold)
    }
}

/// The bytes of a body.
#[derive(Debug)]
pub(super) enum Body {
    /// As they came.
    Whole(Bytes),
    /// Put together.
    Pieces(Vec<u8>),
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Body::Whole(bytes) => bytes,
            Body::Pieces(pieces) => pieces,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use actix_web::web::Bytes;
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;

    use super::super::gate::WAITING;
    use super::super::memory::Shares;
    use super::{Gate, Gathered, Limits};

    fn shares(gate: &Gate) -> (usize, usize) {
        (gate.common.used(), gate.small.used())
    }

    #[test]
    fn a_slow_body_is_counted_with_the_others() {
        let large = 1 << 20;
        let shares_of = Shares { connections: 1, common: 1 << 20, small: 1 << 20, working: 0 };
        let gate = Gate::new(1, shares_of, Gauge::default(), Counter::default());
        let limits = Limits { most: large, announced: Some(100_000), patience: Duration::ZERO };
        let mut gathered = Gathered::new(gate.body(), limits);
        for piece in ["{\"a\"", ":", "["] {
            gathered.add(Bytes::from_static(piece.as_bytes())).expect("there is room");
        }
        assert_eq!(shares(&gate), (0, 20));
        gathered.give_back().expect("there is room");
        assert_eq!(shares(&gate), (20 + WAITING, 0));
        gathered.add(Bytes::from_static(b"1]}")).expect("there is room");
        assert_eq!(*gathered.body().0, *br#"{"a":[1]}"#);
        let mut late = Gathered::new(gate.body(), limits);
        late.give_back().expect("there is room");
        late.add(Bytes::from_static(b"{")).expect("there is room");
        late.add(Bytes::from_static(b"}")).expect("there is room");
        assert!(late.pieces.capacity() < 100, "what is announced is not believed");
        assert_eq!(*late.body().0, *b"{}");
        assert_eq!(shares(&gate), (0, 0));
    }

    #[test]
    fn room_is_counted_before_it_is_used() {
        let shares_of = Shares { connections: 1, common: 200_000, small: 100_000, working: 0 };
        let gate = Gate::new(1, shares_of, Gauge::default(), Counter::default());
        let limits = Limits { most: 1 << 20, announced: None, patience: Duration::ZERO };
        let mut gathered = Gathered::new(gate.body(), limits);
        let piece = Bytes::from(vec![b' '; 30_000]);
        let mut refused = 0;
        for _ in 0..10 {
            refused += usize::from(gathered.add(piece.clone()).is_err());
            let (common, small) = shares(&gate);
            assert!(common + small >= gathered.pieces.capacity().max(gathered.whole.len()));
        }
        assert!(refused > 0);
        drop(gathered);
        assert_eq!(shares(&gate), (0, 0));
    }
}
