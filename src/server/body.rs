//! Reads the body of a request: whole, within its limits, copied only if it came in pieces.

use std::future::poll_fn;
use std::ops::Deref;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use actix_web::rt::time::timeout;
use actix_web::web::{Bytes, Payload};
use futures_core::Stream as _;

use super::gate::{Full, Gate, Hold, Permit};
use crate::spare::Spare;

/// How long a body may be on its way and still count as in flight. The API server sends head and body together; one
/// that takes longer waits for its client, not for us.
const IN_ONE_GO: Duration = Duration::from_millis(25);

/// Why there is no body.
#[derive(Debug)]
pub(super) enum NoBody {
    TooLarge,
    TooSlow,
    TooBusy,
    Broken(String),
}

/// A body, and its place among the others.
#[derive(Debug)]
pub(super) struct Received<'g> {
    pub(super) bytes: Body,
    _permit: Permit<'g>,
    _hold: Hold<'g>,
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
pub(super) async fn receive(
    mut payload: Payload,
    limits: Limits,
    gate: &Gate,
) -> Result<Received<'_>, NoBody> {
    if limits.announced.is_some_and(|announced| announced > limits.most) {
        return Err(NoBody::TooLarge);
    }
    let mut permit = Some(gate.enter().map_err(|Full| NoBody::TooBusy)?);
    let mut hold = gate.hold();
    let mut gathered = Gathered::default();
    let at_once = {
        let mut reading = pin!(collect(&mut payload, limits, &mut hold, &mut gathered));
        match at_second_sight(reading.as_mut()).await {
            Some(read) => Some(read),
            None => timeout(IN_ONE_GO, reading).await.ok(),
        }
    };
    if let Some(read) = at_once {
        read?;
    } else {
        permit = None;
        gathered.give_back();
        let rest = limits.patience.saturating_sub(IN_ONE_GO);
        let reading = collect(&mut payload, limits, &mut hold, &mut gathered);
        timeout(rest, reading).await.unwrap_or(Err(NoBody::TooSlow))?;
    }
    let permit = match permit {
        Some(permit) => permit,
        None => gate.enter().map_err(|Full| NoBody::TooBusy)?,
    };
    Ok(Received { bytes: gathered.body(), _permit: permit, _hold: hold })
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

/// Gathers the rest of a body. What it has when it is given up is in `gathered`, and can be gone on with.
async fn collect(
    payload: &mut Payload,
    limits: Limits,
    hold: &mut Hold<'_>,
    gathered: &mut Gathered,
) -> Result<(), NoBody> {
    while let Some(chunk) = poll_fn(|cx| Pin::new(&mut *payload).poll_next(cx)).await {
        let chunk = chunk.map_err(|error| NoBody::Broken(error.to_string()))?;
        if gathered.len() + chunk.len() > limits.most {
            return Err(NoBody::TooLarge);
        }
        hold.take(chunk.len()).map_err(|Full| NoBody::TooBusy)?;
        gathered.add(chunk, limits.announced);
    }
    Ok(())
}

/// What has come of a body: one piece as it came, or several put together.
#[derive(Default, Debug)]
struct Gathered {
    whole: Bytes,
    pieces: Pieces,
    /// It is slow, and gets no room but what it needs.
    is_slow: bool,
}

impl Gathered {
    fn len(&self) -> usize {
        self.whole.len() + self.pieces.0.len()
    }

    fn add(&mut self, chunk: Bytes, announced: Option<usize>) {
        if self.len() == 0 {
            self.whole = chunk;
            return;
        }
        if self.pieces.0.is_empty() {
            // Believed only as far as the client has shown: room for what is announced, but at most fourfold.
            let length = self.whole.len() + chunk.len();
            let room = announced.unwrap_or(length).min(length.saturating_mul(4)).max(length);
            self.pieces = Pieces::with_room(room, !self.is_slow);
            self.pieces.0.extend_from_slice(&std::mem::take(&mut self.whole));
        }
        self.pieces.0.extend_from_slice(&chunk);
    }

    /// Leaves room that was only lent: a client that waits may do so for long, and with many connections.
    fn give_back(&mut self) {
        self.is_slow = true;
        if self.pieces.0.capacity() / 4 > self.pieces.0.len() {
            let mut own = Pieces(Vec::with_capacity(self.pieces.0.len()));
            own.0.extend_from_slice(&self.pieces.0);
            self.pieces = own;
        }
    }

    fn body(self) -> Body {
        if self.pieces.0.is_empty() { Body::Whole(self.whole) } else { Body::Pieces(self.pieces) }
    }
}

/// The bytes of a body.
#[derive(Debug)]
pub(super) enum Body {
    /// As they came.
    Whole(Bytes),
    /// Put together.
    Pieces(Pieces),
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Body::Whole(bytes) => bytes,
            Body::Pieces(pieces) => &pieces.0,
        }
    }
}

/// The largest body whose room is kept.
const LARGEST: usize = 2 << 20;

thread_local! {
    static SPARE: Spare<u8> = const { Spare::new() };
}

/// A body that came in pieces, in room that an earlier one of the worker may have left.
#[derive(Default, Debug)]
pub(super) struct Pieces(Vec<u8>);

impl Pieces {
    fn with_room(room: usize, may_lend: bool) -> Pieces {
        let lent = if may_lend { SPARE.try_with(|spare| spare.take(room)).ok() } else { None };
        Pieces(lent.unwrap_or_else(|| Vec::with_capacity(room)))
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.0);
        // Nobody needs room in a thread that ends.
        let _ = SPARE.try_with(|spare| spare.leave(bytes, LARGEST));
    }
}

#[cfg(test)]
mod tests {
    use actix_web::web::Bytes;

    use super::{Gathered, LARGEST, SPARE};

    fn spare() -> usize {
        SPARE.with(|spare| {
            let room = spare.take(0);
            let capacity = room.capacity();
            spare.leave(room, LARGEST);
            capacity
        })
    }

    #[test]
    fn a_slow_body_keeps_no_room_that_was_lent() {
        let large = 1 << 20;
        SPARE.with(|spare| spare.leave(Vec::with_capacity(large), LARGEST));
        let mut gathered = Gathered::default();
        for piece in ["{\"a\"", ":", "["] {
            gathered.add(Bytes::from_static(piece.as_bytes()), Some(100_000));
        }
        assert!(gathered.pieces.0.capacity() >= large && spare() == 0, "what comes at once has it");
        gathered.give_back();
        assert!(gathered.pieces.0.capacity() < 100 && spare() >= large, "what is slow gives it back");
        gathered.add(Bytes::from_static(b"1]}"), Some(100_000));
        assert_eq!(*gathered.body(), *br#"{"a":[1]}"#);
        let mut late = Gathered::default();
        late.give_back();
        late.add(Bytes::from_static(b"{"), Some(9));
        late.add(Bytes::from_static(b"}"), Some(9));
        assert!(late.pieces.0.capacity() < 100 && spare() >= large, "and does not get it later");
        assert_eq!(*late.body(), *b"{}");
    }
}
