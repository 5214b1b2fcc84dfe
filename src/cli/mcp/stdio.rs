//! The transport for the SDK: messages on stdin and stdout, one per line.
//!
//! Used instead of the SDK's own transport, which does not answer a line that is too long, does not say which request a
//! malformed message was, and does not limit the number of running requests.
//!
//! Invariant: whatever arrives, memory has a limit, nothing but messages is written, and only the end of stdin or a
//! closed stdout ends the session.

use std::collections::HashMap;
use std::io::{self, BufRead, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::console::Console;
use crate::report::record::{Json, record};
use tollgate_document::doc::{self, ValueKind};

/// Maximum size of a message in bytes.
pub(super) const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// Maximum number of requests that run at a time, and of the bytes of their messages.
const MAX_RUNNING_REQUESTS: usize = 64;
const MAX_RUNNING_REQUEST_BYTES: usize = 8 << 20;
/// Maximum size of the ID of a request in bytes.
const MAX_ID_BYTES: usize = 256;
/// Maximum number of messages that wait between the transport and the threads that read stdin and write stdout.
pub(super) const MAX_QUEUED_MESSAGES: usize = 4;
/// Time that running requests get after the input has ended. Clients wait about twice as long before they kill the
/// server.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);
/// Error code of the response to a request that is refused because too many are running.
const TOO_MANY_REQUESTS: ErrorCode = ErrorCode(-32000);

type Received = RxJsonRpcMessage<RoleServer>;
type Sent = TxJsonRpcMessage<RoleServer>;

/// A line of the input, unless it was too long to be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    TooLong,
}

/// Reads the client's messages from stdin and writes the server's to stdout.
pub(super) struct StdioTransport {
    lines: mpsc::Receiver<Line>,
    out: mpsc::Sender<String>,
    /// An error response that must be written before the next message is read.
    reply: Option<String>,
    pub(super) requests: RunningRequests,
    /// When to stop waiting for requests, once the input has ended.
    deadline: Option<Instant>,
}

/// The requests that are not answered yet, with the bytes of their messages.
#[derive(Clone, Default)]
pub(super) struct RunningRequests(Arc<Mutex<HashMap<RequestId, usize>>>);

impl RunningRequests {
    /// True if all requests are answered.
    #[cfg(any(test, fuzzing))]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request that starts to run; an error if too many are running or one with this ID is.
    fn add_within_limits(&self, id: &RequestId, bytes: usize) -> Result<(), ErrorData> {
        let mut requests = self.lock();
        let invalid = |message: &'static str| Err(ErrorData::invalid_request(message, None));
        if matches!(id, RequestId::String(text) if text.len() > MAX_ID_BYTES) {
            return invalid("the ID of a request can have at most 256 bytes");
        }
        if requests.contains_key(id) {
            return invalid("a request with this ID is running");
        }
        if requests.len() >= MAX_RUNNING_REQUESTS
            || requests.values().sum::<usize>() + bytes > MAX_RUNNING_REQUEST_BYTES
        {
            return Err(ErrorData::new(
                TOO_MANY_REQUESTS,
                "too many requests at a time; wait for answers",
                None,
            ));
        }
        requests.insert(id.clone(), bytes);
        Ok(())
    }
}

impl StdioTransport {
    /// Opens stdin and stdout of this process. Also returns the handle of the thread that writes, which ends
    /// after the transport.
    pub(super) fn open() -> (StdioTransport, JoinHandle<()>) {
        let (sender, lines) = mpsc::channel(MAX_QUEUED_MESSAGES);
        // It lives as long as the process, because a read cannot be interrupted.
        std::thread::spawn(move || forward_stdin_lines(io::stdin().lock(), &sender));
        let (out, mut receiver) = mpsc::channel::<String>(MAX_QUEUED_MESSAGES);
        let writer = std::thread::spawn(move || {
            let mut console = Console::open();
            while let Some(line) = receiver.blocking_recv() {
                if writeln!(console, "{line}").and_then(|()| console.flush_stdout()).is_err()
                    || console.is_stdout_closed()
                {
                    return;
                }
            }
        });
        (StdioTransport::new(lines, out), writer)
    }

    /// Creates a transport that reads `lines` and sends responses to `out`.
    pub(super) fn new(lines: mpsc::Receiver<Line>, out: mpsc::Sender<String>) -> StdioTransport {
        StdioTransport { lines, out, reply: None, requests: RunningRequests::default(), deadline: None }
    }

    /// Parses a line as a message; `Err` with the error response if it is none or cannot be accepted; `None` for
    /// a blank line.
    fn parse_line_and_track_request(&self, line: Line) -> Option<Result<Received, Json>> {
        let Line::Whole(line) = line else {
            let message = format!("a message can have at most {} MiB", MAX_MESSAGE_BYTES >> 20);
            return Some(Err(error_response(&ErrorData::invalid_request(message, None), None)));
        };
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let refuse = |error: &ErrorData| Some(Err(error_response(error, id_of_message(&line).as_ref())));
        let message = match parse_message(&line) {
            Ok(message) => message,
            Err(why) if why.is_data() => {
                return refuse(&ErrorData::invalid_request("not a message of this protocol", None));
            }
            // The message of the error has a position and no text of the input.
            Err(why) => return refuse(&ErrorData::parse_error(why.to_string(), None)),
        };
        match &message {
            JsonRpcMessage::Request(request) => {
                if let Err(why) = self.requests.add_within_limits(&request.id, line.len()) {
                    return refuse(&why);
                }
            }
            // A cancelled request gets no answer.
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.requests.lock().remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Some(Ok(message))
    }
}

/// Parses a message. A text in it that was cut in the middle of an emoji, and so has half of a surrogate pair, gets
/// U+FFFD there.
fn parse_message(line: &[u8]) -> serde_json::Result<Received> {
    serde_json::from_slice(line).or_else(|error| {
        let repaired = if error.is_syntax() { rewrite_without_lone_surrogates(line) } else { None };
        repaired.and_then(|text| serde_json::from_str(&text).ok()).ok_or(error)
    })
}

fn rewrite_without_lone_surrogates(line: &[u8]) -> Option<String> {
    Some(doc::parse(std::str::from_utf8(line).ok()?).ok()?.root().to_json())
}

/// Returns the ID of a message as JSON, as it was sent; `None` if it has none. The message need not be valid, because
/// a client waits for the response to a request that is refused, too.
pub(super) fn id_of_message(line: &[u8]) -> Option<Json> {
    let message = doc::parse(std::str::from_utf8(line).ok()?).ok()?;
    let id = message.root().get("id");
    let json = id.to_json();
    let is_id = match id.kind() {
        ValueKind::String => true,
        // Not a number that is out of range, such as 1e400, because a client could not read the response.
        ValueKind::Number => serde_json::from_str::<f64>(&json).is_ok(),
        _ => false,
    };
    if is_id { RawValue::from_string(json).ok() } else { None }
}

fn error_response(error: &ErrorData, id: Option<&Json>) -> Json {
    let has_id = id.is_some();
    record! { "jsonrpc": "2.0", "id" if has_id: id, "error": error }
}

impl Transport<RoleServer> for StdioTransport {
    type Error = io::Error;

    fn send(&mut self, item: Sent) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (out, requests) = (self.out.clone(), self.requests.clone());
        async move {
            let line = serde_json::to_string(&item).map_err(io::Error::other)?;
            let sent = out.send(line).await;
            let id = match &item {
                JsonRpcMessage::Response(response) => Some(&response.id),
                JsonRpcMessage::Error(error) => error.id.as_ref(),
                JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
            };
            if let Some(id) = id {
                requests.lock().remove(id);
            }
            sent.map_err(|_closed| io::ErrorKind::BrokenPipe.into())
        }
    }

    /// Receives the next message; `None` when the session ends. No message is lost if the returned future is
    /// dropped.
    async fn receive(&mut self) -> Option<Received> {
        loop {
            if self.reply.is_some() {
                let slot = self.out.reserve().await.ok()?;
                if let Some(reply) = self.reply.take() {
                    slot.send(reply);
                }
            }
            let line = tokio::select! {
                line = self.lines.recv() => line,
                () = self.out.closed() => return None,
            };
            let Some(line) = line else {
                let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + SHUTDOWN_GRACE);
                while !self.requests.lock().is_empty() && Instant::now() < deadline {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                return None;
            };
            match self.parse_line_and_track_request(line) {
                None => {}
                Some(Ok(message)) => return Some(message),
                Some(Err(answer)) => self.reply = Some(answer.get().to_owned()),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends each line of the input to the channel, until the input ends or the receiver is gone.
fn forward_stdin_lines(mut input: impl BufRead, lines: &mpsc::Sender<Line>) {
    while let Ok(Some(line)) = read_line(&mut input) {
        if lines.blocking_send(line).is_err() {
            return;
        }
    }
}

/// Reads the next line without its end; `None` at the end of the input. Of a line that is too long, nothing is
/// kept.
pub(super) fn read_line(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let (mut is_started, mut is_too_long) = (false, false);
    loop {
        let available = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            available => available?,
        };
        if available.is_empty() && !is_started {
            return Ok(None);
        }
        is_started = true;
        let end = memchr::memchr(b'\n', available);
        let part = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
        is_too_long |= line.len() + part.len() > MAX_MESSAGE_BYTES;
        if is_too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(part);
        }
        let (used, is_end) = (part.len() + usize::from(end.is_some()), end.is_some() || available.is_empty());
        input.consume(used);
        if is_end {
            return Ok(Some(if is_too_long { Line::TooLong } else { Line::Whole(line) }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        ErrorData, Line, MAX_MESSAGE_BYTES, MAX_RUNNING_REQUEST_BYTES, RequestId, RunningRequests,
        id_of_message, parse_message, read_line,
    };

    #[test]
    fn long_lines_cost_themselves_only() {
        let long = "x".repeat(MAX_MESSAGE_BYTES + 1);
        let most = "y".repeat(MAX_MESSAGE_BYTES);
        let text = format!("a\n\n{long}\nb\r\n{most}\nend");
        let mut input = std::io::BufReader::with_capacity(1000, text.as_bytes());
        let mut lines = Vec::new();
        while let Some(line) = read_line(&mut input).expect("memory can be read") {
            lines.push(match line {
                Line::Whole(bytes) => bytes.len().to_string(),
                Line::TooLong => "too long".to_owned(),
            });
        }
        assert_eq!(lines, ["1", "0", "too long", "2", &MAX_MESSAGE_BYTES.to_string(), "3"]);
    }

    #[test]
    fn requests_are_bounded() {
        let requests = RunningRequests::default();
        let code = |result: Result<(), ErrorData>| result.map_err(|error| error.code.0);
        for id in 0..64 {
            assert_eq!(code(requests.add_within_limits(&RequestId::Number(id), 10)), Ok(()));
        }
        assert_eq!(code(requests.add_within_limits(&RequestId::Number(64), 10)), Err(-32000), "too many");
        assert_eq!(code(requests.add_within_limits(&RequestId::Number(1), 10)), Err(-32600), "twice");
        requests.lock().clear();
        assert_eq!(
            code(requests.add_within_limits(&RequestId::Number(1), MAX_RUNNING_REQUEST_BYTES)),
            Ok(())
        );
        assert_eq!(
            code(requests.add_within_limits(&RequestId::Number(2), 1)),
            Err(-32000),
            "too large together"
        );
        assert_eq!(
            code(requests.add_within_limits(&RequestId::String("x".repeat(257).into()), 1)),
            Err(-32600)
        );
    }

    #[test]
    fn ids_are_found_in_what_is_not_a_message() {
        let deep = format!(r#"{{"id":8,"params":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        for (line, expected) in [
            (r#"{"method":1,"id":"a"}"#, Some(r#""a""#)),
            (r#"{"id":18446744073709551615}"#, Some("18446744073709551615")),
            (r#"{"id":7,"params":{"name":"\ud83d"}}"#, Some("7")),
            (&deep, Some("8")),
            (r#"{"id":1e400}"#, None),
            (r#"{"id":[]}"#, None),
            ("[]", None),
        ] {
            assert!(parse_message(line.as_bytes()).is_err(), "{line}");
            assert_eq!(id_of_message(line.as_bytes()).as_ref().map(|id| id.get()), expected, "{line}");
        }
    }
}
