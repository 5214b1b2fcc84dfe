//! Reads the lines of a watch, and limits the memory for each.
//!
//! Invariant: a line that is too long is cut off, and the watch continues with the next one.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use http_body::Body as _;
use kube::client::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::api_error::ApiError;
use super::client::{KEPT_HEAD_BYTES, append_without_doubling, decode_lossy, error_chain};
use super::page::MAX_OBJECT_BYTES;

/// Maximum length in bytes of a line that may be in memory together with others. Longer lines are read one at a time,
/// whoever watches.
const SHORT_LINE: usize = 256 << 10;

/// Reads the response to a watch line by line.
pub(super) struct WatchLines {
    body: Body,
    unread: Vec<u8>,
    /// Bytes already searched for a line break.
    scanned: usize,
    /// True if only the beginning of the line is in `unread`; the rest is dropped as it arrives.
    is_too_long: bool,
    large: Arc<Semaphore>,
    /// Permit that is held from when a line becomes long until the next line.
    permit: Option<OwnedSemaphorePermit>,
}

/// A line of a watch: an event, or one that is too long.
#[derive(Debug)]
pub(super) enum CompleteOrTruncatedWatchLine {
    /// A complete watch event, as JSON.
    Event(String),
    /// The beginning of an event that is longer than the maximum.
    TooLong(String),
}

impl WatchLines {
    /// Creates a reader of the response; `large` is held while a long line is in memory.
    pub(super) fn new(body: Body, large: Arc<Semaphore>) -> WatchLines {
        WatchLines { body, unread: Vec::new(), scanned: 0, is_too_long: false, large, permit: None }
    }

    /// The next line; `None` at the end of the response. Cancel safe: received bytes are kept.
    pub(super) async fn next(&mut self) -> Result<Option<CompleteOrTruncatedWatchLine>, ApiError> {
        if self.unread.len() <= SHORT_LINE && !self.is_too_long {
            // What was long has been handed on and read by now.
            self.permit = None;
        }
        loop {
            let rest = self.unread.get(self.scanned..).unwrap_or_default();
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let rest = self.unread.split_off(self.scanned + end + 1);
                let line = decode_lossy(std::mem::replace(&mut self.unread, rest));
                self.scanned = 0;
                if std::mem::take(&mut self.is_too_long) {
                    return Ok(Some(CompleteOrTruncatedWatchLine::TooLong(line)));
                }
                if line.trim().is_empty() {
                    continue;
                }
                return Ok(Some(CompleteOrTruncatedWatchLine::Event(line)));
            }
            if self.unread.len() > MAX_OBJECT_BYTES {
                self.unread.truncate(KEPT_HEAD_BYTES);
                self.unread.shrink_to_fit();
                self.is_too_long = true;
            } else if self.is_too_long {
                self.unread.truncate(KEPT_HEAD_BYTES);
            }
            self.scanned = self.unread.len();
            if self.unread.len() > SHORT_LINE && self.permit.is_none() {
                self.permit = self.large.clone().acquire_owned().await.ok();
            }
            match poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await {
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        append_without_doubling(&mut self.unread, &bytes);
                    }
                }
                Some(Err(error)) => return Err(ApiError::Unreachable(error_chain(&error))),
                None => return Ok(None),
            }
        }
    }

    /// The next line, for watches of single objects: a line that is too long is an error.
    pub(super) async fn next_event_rejecting_too_long(&mut self) -> Result<Option<String>, ApiError> {
        match self.next().await? {
            None => Ok(None),
            Some(CompleteOrTruncatedWatchLine::Event(line)) => Ok(Some(line)),
            Some(CompleteOrTruncatedWatchLine::TooLong(_)) => Err(ApiError::Unreachable(format!(
                "the response has a line of more than {MAX_OBJECT_BYTES} bytes"
            ))),
        }
    }
}
