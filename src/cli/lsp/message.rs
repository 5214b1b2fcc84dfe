//! JSON-RPC messages: which kind of message arrived, and how answers are written.
//!
//! Messages are parsed with `doc`, like all input. It replaces lone UTF-16 surrogates, which an editor may send, with
//! U+FFFD instead of failing. The supported methods are listed in `session`.
//!
//! Invariant: every request gets exactly one response; input that is not a message gets an error response, without an
//! id if it has none.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::value::RawValue;

use super::frame;
use crate::report::record::{Json, record};
use tollgate_document::doc::{self, Value, ValueKind};

/// Error codes of JSON-RPC and of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ErrorCode {
    ParseError = -32700,
    InvalidRequest = -32600,
    MethodNotFound = -32601,
    InvalidParams = -32602,
    InternalError = -32603,
    ServerNotInitialized = -32002,
    RequestCancelled = -32800,
}

/// A request or notification that arrived.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Message {
    /// The id as JSON; a notification has none.
    pub(super) id: Option<String>,
    pub(super) method: String,
    body: String,
}

/// The reason why a message is not handled.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum UnhandledMessage {
    /// It is a response to a request of this server, which needs no answer.
    Response,
    /// It is invalid; the error is sent to the client, with the id of the request if it is known.
    Bad { id: Option<String>, code: ErrorCode, message: String },
}

impl Message {
    /// Parses the body of a message.
    pub(super) fn parse(body: Vec<u8>) -> Result<Message, UnhandledMessage> {
        let bad = |id: Option<String>, code, message: &str| UnhandledMessage::Bad {
            id,
            code,
            message: message.to_owned(),
        };
        let body =
            String::from_utf8(body).map_err(|error| bad(None, ErrorCode::ParseError, &error.to_string()))?;
        let (id, method) = {
            let document =
                doc::parse(&body).map_err(|error| bad(None, ErrorCode::ParseError, &error.detail))?;
            let root = document.root();
            let id = root.get("id");
            let id = matches!(id.kind(), ValueKind::String | ValueKind::Number).then(|| id.to_json());
            let method = root.get("method");
            if root.kind() != ValueKind::Object {
                return Err(bad(None, ErrorCode::InvalidRequest, "a message must be an object"));
            }
            if !method.exists() && (root.get("result").exists() || root.get("error").exists()) {
                return Err(UnhandledMessage::Response);
            }
            if method.kind() != ValueKind::String {
                return Err(bad(id, ErrorCode::InvalidRequest, "a message must have a method"));
            }
            (id, method.text().to_owned())
        };
        Ok(Message { id, method, body })
    }

    /// Length of the message in bytes.
    pub(super) fn len(&self) -> usize {
        self.body.len()
    }

    /// Calls `call` with the parameters; with an absent value if there are none.
    pub(super) fn with_params<T>(&self, call: impl FnOnce(Value<'_>) -> T) -> T {
        match doc::parse(&self.body) {
            Ok(document) => call(document.root().get("params")),
            Err(_) => call(Value::absent()),
        }
    }
}

/// The output to the editor: responses, notifications and requests.
#[derive(Debug)]
pub(super) struct EditorOutput<W> {
    pub(super) output: W,
    requests: usize,
}

impl<W: Write> EditorOutput<W> {
    pub(super) fn new(output: W) -> EditorOutput<W> {
        EditorOutput { output, requests: 0 }
    }

    /// Sends the response to a request.
    pub(super) fn reply(&mut self, id: &str, result: impl Serialize) -> io::Result<()> {
        self.send(&record! { "jsonrpc": "2.0", "id": raw_id(id)?, "result": result })
    }

    /// Answers a request with an error. `id` is `None` if it could not be read.
    pub(super) fn reply_error(&mut self, id: Option<&str>, code: ErrorCode, message: &str) -> io::Result<()> {
        let error = record! { "code": code as i32, "message": message };
        self.send(&record! { "jsonrpc": "2.0", "id": raw_id(id.unwrap_or("null"))?, "error": error })
    }

    /// Sends a notification.
    pub(super) fn notify(&mut self, method: &str, params: impl Serialize) -> io::Result<()> {
        self.send(&record! { "jsonrpc": "2.0", "method": method, "params": params })
    }

    /// Sends a request to the editor. The response is ignored.
    pub(super) fn request_ignoring_response(
        &mut self,
        method: &str,
        params: impl Serialize,
    ) -> io::Result<()> {
        self.requests += 1;
        let id = self.requests;
        self.send(&record! { "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    fn send(&mut self, message: &Json) -> io::Result<()> {
        frame::write_frame(&mut self.output, message.get())
    }
}

/// Returns the id of a request as JSON, which must be repeated in the answer exactly as it was received.
fn raw_id(id: &str) -> io::Result<Json> {
    Ok(RawValue::from_string(id.to_owned())?)
}

#[cfg(test)]
mod tests {
    use super::{EditorOutput, ErrorCode, Message, UnhandledMessage};

    fn read(body: &str) -> Result<Message, UnhandledMessage> {
        Message::parse(body.as_bytes().to_vec())
    }

    #[test]
    fn messages_are_told_apart() {
        let request = read(r#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1}}"#).expect("a request");
        assert_eq!((request.id.as_deref(), request.method.as_str()), (Some("\"a\""), "m"));
        assert_eq!(request.with_params(|params| params.get("x").int()), Some(1));
        let notification = read(r#"{"id":null,"method":"m"}"#).expect("a notification");
        assert_eq!(notification.id, None);
        assert!(!notification.with_params(|params| params.get("x").exists()));
        assert_eq!(read(r#"{"id":1,"result":null}"#), Err(UnhandledMessage::Response));
        let table = [
            ("{", None, ErrorCode::ParseError),
            ("[]", None, ErrorCode::InvalidRequest),
            ("null", None, ErrorCode::InvalidRequest),
            (r#"{"id":7}"#, Some("7"), ErrorCode::InvalidRequest),
            (r#"{"id":8,"method":1}"#, Some("8"), ErrorCode::InvalidRequest),
        ];
        for (body, expected_id, expected) in table {
            let Err(UnhandledMessage::Bad { id, code, .. }) = read(body) else { panic!("{body}") };
            assert_eq!((id.as_deref(), code), (expected_id, expected), "{body}");
        }
        assert!(matches!(
            Message::parse(b"{\"method\":\"\xff\"}".to_vec()),
            Err(UnhandledMessage::Bad { code: ErrorCode::ParseError, .. })
        ));
    }

    #[test]
    fn answers_are_framed() {
        let mut client = EditorOutput::new(Vec::new());
        client.reply("1", "x").expect("written");
        client.reply_error(None, ErrorCode::ParseError, "no").expect("written");
        client.notify("n", [1]).expect("written");
        let text = String::from_utf8(client.output).expect("UTF-8");
        let expected = [
            r#"{"jsonrpc":"2.0","id":1,"result":"x"}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#,
            r#"{"jsonrpc":"2.0","method":"n","params":[1]}"#,
        ];
        let framed = expected.map(|body| format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        assert_eq!(text, framed.concat());
    }
}
