//! As much of an HTTP/1.1 server as the double needs: one thread per connection, plain or TLS, chunked answers.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

/// A connection, with or without TLS.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Stream {
    pub(crate) fn new(socket: TcpStream, tls: Option<&Arc<ServerConfig>>) -> io::Result<Stream> {
        Ok(match tls {
            None => Stream::Plain(socket),
            Some(config) => {
                let connection = ServerConnection::new(config.clone()).map_err(io::Error::other)?;
                Stream::Tls(Box::new(StreamOwned::new(connection, socket)))
            }
        })
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.write_all(bytes),
            Stream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    /// Sends a complete response.
    pub(crate) fn answer(&mut self, code: u16, body: &Value) -> io::Result<()> {
        self.answer_warning(code, body, &[])
    }

    /// Sends a complete response with warnings.
    pub(crate) fn answer_warning(&mut self, code: u16, body: &Value, warnings: &[String]) -> io::Result<()> {
        let body = go_text(body);
        let mut head = format!(
            "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        for warning in warnings {
            head.push_str("Warning: 299 - \"");
            head.push_str(warning);
            head.push_str("\"\r\n");
        }
        head.push_str("\r\n");
        self.write(format!("{head}{body}").as_bytes())
    }

    /// Sends a text in chunks of arbitrary length.
    pub(crate) fn answer_text(&mut self, text: &str) -> io::Result<()> {
        self.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        text.as_bytes().chunks(4099).try_for_each(|part| self.chunk(part))?;
        self.chunk(b"")
    }

    /// Starts a chunked response.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        self.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    }

    /// Sends one chunk. An empty chunk ends the response.
    pub(crate) fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(format!("{:x}\r\n", bytes.len()).as_bytes())?;
        self.write(bytes)?;
        self.write(b"\r\n")
    }
}

/// An HTTP request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Reads a request; `None` at the end of the connection. `unread` contains bytes after the previous one.
    pub(crate) fn read(stream: &mut Stream, unread: &mut Vec<u8>) -> io::Result<Option<Request>> {
        let head = loop {
            if let Some(end) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if !fill(stream, unread)? {
                return Ok(None);
            }
        };
        let text = String::from_utf8_lossy(&unread[..head]).into_owned();
        let mut lines = text.lines();
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pair = |text: &str| {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            (name.to_owned(), value.replace("%3D", "=").replace("%2F", "/"))
        };
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut request = Request {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.split('&').filter(|part| !part.is_empty()).map(pair).collect(),
            headers,
            body: Vec::new(),
        };
        let length: usize = request.header("content-length").parse().unwrap_or_default();
        while unread.len() < head + length {
            if !fill(stream, unread)? {
                return Ok(None);
            }
        }
        request.body = unread[head..head + length].to_vec();
        unread.drain(..head + length);
        Ok(Some(request))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        find(&self.headers, name)
    }

    pub(crate) fn query(&self, name: &str) -> &str {
        find(&self.query, name)
    }
}

fn find<'a>(pairs: &'a [(String, String)], name: &str) -> &'a str {
    pairs.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str())
}

fn fill(stream: &mut Stream, unread: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0_u8; 16 << 10];
    let count = stream.read(&mut buffer)?;
    unread.extend_from_slice(&buffer[..count]);
    Ok(count > 0)
}

/// Formats JSON with the keys in the order of an API server: identifying fields first, long fields last.
pub(crate) fn go_text(value: &Value) -> String {
    const FIRST: [&str; 11] = [
        "type",
        "kind",
        "apiVersion",
        "metadata",
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "continue",
        "object",
    ];
    let mut out = String::new();
    write_go(&mut out, value, &|key| FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len()));
    out
}

fn write_go(out: &mut String, value: &Value, rank: &dyn Fn(&str) -> usize) {
    match value {
        // Labels and annotations in any order, and fast.
        Value::Object(members) if members.len() > 64 => out.push_str(&value.to_string()),
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by_key(|(key, _)| rank(key));
            out.push('{');
            for (index, (key, value)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_go(out, value, rank);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_go(out, item, rank);
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}
