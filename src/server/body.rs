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
    let read = {
        let mut reading = pin!(collect(&mut payload, limits, &mut hold));
        if let Some(read) = at_second_sight(reading.as_mut()).await {
            read
        } else if let Ok(read) = timeout(IN_ONE_GO, &mut reading).await {
            read
        } else {
            permit = None;
            let rest = limits.patience.saturating_sub(IN_ONE_GO);
            timeout(rest, reading).await.unwrap_or(Err(NoBody::TooSlow))
        }
    };
    let bytes = read?;
    let permit = match permit {
        Some(permit) => permit,
        None => gate.enter().map_err(|Full| NoBody::TooBusy)?,
    };
    Ok(Received { bytes, _permit: permit, _hold: hold })
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

async fn collect(payload: &mut Payload, limits: Limits, hold: &mut Hold<'_>) -> Result<Body, NoBody> {
    let mut whole = Bytes::new();
    let mut pieces = Pieces(Vec::new());
    while let Some(chunk) = poll_fn(|cx| Pin::new(&mut *payload).poll_next(cx)).await {
        let chunk = chunk.map_err(|error| NoBody::Broken(error.to_string()))?;
        let length = whole.len() + pieces.0.len() + chunk.len();
        if length > limits.most {
            return Err(NoBody::TooLarge);
        }
        hold.take(chunk.len()).map_err(|Full| NoBody::TooBusy)?;
        if whole.is_empty() && pieces.0.is_empty() {
            whole = chunk;
            continue;
        }
        if pieces.0.is_empty() {
            // Believed only as far as the client has shown: room for what is announced, but at most fourfold.
            let room = limits.announced.unwrap_or(length).min(length.saturating_mul(4));
            pieces.0 = SPARE.try_with(|spare| spare.take(room.max(length))).unwrap_or_default();
            pieces.0.extend_from_slice(&std::mem::take(&mut whole));
        }
        pieces.0.extend_from_slice(&chunk);
    }
    Ok(if pieces.0.is_empty() { Body::Whole(whole) } else { Body::Pieces(pieces) })
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
#[derive(Debug)]
pub(super) struct Pieces(Vec<u8>);

impl Drop for Pieces {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.0);
        // Nobody needs room in a thread that ends.
        let _ = SPARE.try_with(|spare| spare.leave(bytes, LARGEST));
    }
}
