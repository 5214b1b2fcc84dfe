//! `tollgate lsp` as an editor uses it: the program, its pipes, framed messages.
//!
//! The sessions of `tests/lsp` are data: what is sent, and what comes back, message by message. Here is what plays
//! them, and what no session can hold.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_methods, reason = "reads sessions and writes the files they are about")]

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use tollgate::{Value, ValueKind, documents, parse_json};

use super::program::{folder, tollgate};

/// Timeout that only a hanging server reaches.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running language server.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<String>,
}

impl Server {
    fn start(folder: &Path, arguments: &[&str]) -> Server {
        let mut command = tollgate(folder, &[&["lsp"], arguments].concat());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            while let Some(length) = header(&mut output) {
                let mut body = vec![0; length];
                output.read_exact(&mut body).expect("a whole message");
                if sender.send(String::from_utf8(body).expect("UTF-8")).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Server { child, input, messages }
    }

    fn raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("it is open");
        // A server that ended on purpose reads no more.
        _ = input.write_all(bytes).and_then(|()| input.flush());
    }

    fn send(&mut self, body: &str) {
        self.raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    /// The next message; `None` at the end.
    fn next(&mut self) -> Option<String> {
        self.next_or_silence().expect("a message or the end")
    }

    /// The next message, or an error if none arrives in time.
    fn next_or_silence(&mut self) -> Result<Option<String>, RecvTimeoutError> {
        match self.messages.recv_timeout(PATIENCE) {
            Ok(message) => Ok(Some(message)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(silence) => Err(silence),
        }
    }

    /// Starts the session and opens a document.
    fn open(&mut self, uri: &str, text: &str) {
        self.send(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#);
        assert!(self.next().expect("an answer").contains("\"capabilities\""));
        self.send(r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#);
        let text = json(text);
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{{"textDocument":{{"uri":"{uri}","languageId":"yaml","version":1,"text":{text}}}}}}}"#
        ));
    }

    /// The exit code and what is on stderr, after the input is closed.
    fn finish(mut self) -> (i32, String) {
        drop(self.input.take());
        let output = self.child.wait_with_output().expect("it ends");
        (output.status.code().expect("no signal"), String::from_utf8(output.stderr).expect("UTF-8"))
    }
}

/// The length of the next message.
fn header(output: &mut impl std::io::BufRead) -> Option<usize> {
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    let length = line.trim_end().strip_prefix("Content-Length: ")?.parse().expect("a number");
    let mut blank = String::new();
    output.read_line(&mut blank).expect("a line");
    assert_eq!(blank, "\r\n");
    Some(length)
}

fn json(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => _ = write!(out, "\\{letter}"),
            letter if letter < ' ' => _ = write!(out, "\\u{:04x}", u32::from(letter)),
            letter => out.push(letter),
        }
    }
    out + "\""
}

/// The first part of `expected` that is missing in `found`. Objects may have more members; lists must have
/// the same length and order.
fn difference(expected: Value<'_>, found: Value<'_>, at: &str) -> Option<String> {
    let differs = || Some(format!("{at}: expected {}, found {}", expected.to_json(), found.to_json()));
    if expected.kind() != found.kind() {
        return differs();
    }
    match expected.kind() {
        ValueKind::Object => expected.members().find_map(|(key, value)| {
            difference(value, found.get(key.text()), &format!("{at}.{}", key.text()))
        }),
        ValueKind::Array if expected.len() != found.len() => differs(),
        ValueKind::Array => expected
            .items()
            .zip(found.items())
            .enumerate()
            .find_map(|(index, (expected, found))| difference(expected, found, &format!("{at}[{index}]"))),
        ValueKind::Null => None,
        _ if expected.text() == found.text() => None,
        _ => differs(),
    }
}

/// Runs a recorded session in its own folder.
fn play(path: &Path) {
    let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
    let folder = folder(&format!("lsp-{name}"));
    let session = std::fs::read_to_string(path).expect("UTF-8");
    let session = session.replace("$FOLDER", &folder.display().to_string());
    let session = documents(&session).next().expect("a document").expect("YAML");
    let root = session.doc.root();
    for (file, text) in root.get("files").members() {
        std::fs::write(folder.join(file.text()), text.str()).expect("written");
    }
    let arguments: Vec<&str> = root.get("arguments").items().map(Value::str).collect();
    let mut server = Server::start(&folder, &arguments);
    let mut published = None;
    // Reports that came before the response to a request that was sent after the text: either may be first.
    let mut early: VecDeque<String> = VecDeque::new();
    for (number, step) in root.get("steps").items().enumerate() {
        let at = format!("{name}: step {number}");
        let (kind, value) = step.members().next().expect("one key");
        match kind.text() {
            "send" => server.send(&value.to_json().replacen('{', r#"{"jsonrpc":"2.0","#, 1)),
            "raw" => server.raw(value.text().as_bytes()),
            "write" => std::fs::write(folder.join(value.get("file").str()), value.get("text").str()).unwrap(),
            "expect" => loop {
                let wants_response = value.get("id").exists();
                let kept = if wants_response { None } else { early.pop_front() };
                let message = kept.unwrap_or_else(|| {
                    let message = server.next_or_silence().unwrap_or_else(|_| panic!("{at}: silence"));
                    message.unwrap_or_else(|| panic!("{at}: the server ended"))
                });
                let found = parse_json(&message).expect("JSON");
                // A text that is checked again meanwhile may be reported once more; what counts is the newest version.
                let version = |message: Value<'_>| message.get("params").get("version").int();
                let is_repeated = match (version(found.root()), version(value)) {
                    (Some(found), Some(expected)) => found < expected,
                    (Some(found), None) => {
                        value.get("id").exists() && published.is_some_and(|newest| found <= newest)
                    }
                    (None, _) => false,
                };
                if is_repeated {
                    continue;
                }
                if wants_response && version(found.root()).is_some() {
                    early.push_back(message);
                    continue;
                }
                if let Some(difference) = difference(value, found.root(), "") {
                    panic!("{at}: {difference}\nin {}", found.root().to_json());
                }
                published = version(found.root()).or(published);
                break;
            },
            other => panic!("{at}: no such step: {other}"),
        }
    }
    drop(server.input.take());
    let left = early.pop_front().or_else(|| server.next());
    assert_eq!(left, None, "{name}: one message too many");
    let (code, stderr) = server.finish();
    assert_eq!(Some(i64::from(code)), root.get("exit").int(), "{name}: {stderr}");
    assert_eq!(stderr.trim_end(), root.get("stderr").str().trim_end(), "{name}");
}

#[test]
fn sessions() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lsp");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("sessions").map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(".session.yaml"));
    paths.sort();
    assert!(!paths.is_empty());
    for path in &paths {
        play(path);
    }
}

const RULE: &str = "apiVersion: resource.k8s.io/v1beta2\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec:\n  deviceSelector: {driver: d.example.com, pool: p}\n  taint: {key: example.com/a, effect: X}\n";

fn change(version: usize, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"textDocument/didChange","params":{{"textDocument":{{"uri":"file:///r.yaml","version":{version}}},"contentChanges":[{{"text":{}}}]}}}}"#,
        json(text)
    )
}

#[test]
fn of_rapid_changes_the_last_one_is_published_and_no_older_one_after_it() {
    let mut server = Server::start(&folder("lsp-rapid"), &[]);
    server.open("file:///r.yaml", RULE);
    for version in 2..200 {
        server.send(&change(version, &RULE.replace("effect: X", &format!("effect: X{version}"))));
    }
    let mut last = 0;
    while last < 199 {
        let message = server.next().expect("diagnostics");
        let document = parse_json(&message).expect("JSON");
        let params = document.root().get("params");
        let version = params.get("version").int().expect("a version");
        assert!(version > last, "{version} after {last}");
        last = version;
        let diagnostics = params.get("diagnostics").to_json();
        let expected = if version == 1 { "\\\"X\\\"".to_owned() } else { format!("\\\"X{version}\\\"") };
        assert!(diagnostics.contains(&expected), "{version}: {diagnostics}");
    }
    server.send(r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#);
    assert!(server.next().expect("an answer").contains("\"id\":2"));
    server.send(r#"{"jsonrpc":"2.0","method":"exit"}"#);
    assert_eq!(server.finish(), (0, String::new()));
}

/// Whatever bytes come between two messages, the second is answered.
#[test]
fn garbage_between_messages_is_survived() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut byte = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed.to_le_bytes()[3]
    };
    let mut server = Server::start(&folder("lsp-garbage"), &[]);
    server.open("file:///r.yaml", RULE);
    assert!(server.next().expect("diagnostics").contains("publishDiagnostics"));
    for round in 100..140 {
        let mut garbage: Vec<u8> = (0..usize::from(byte()) * 20).map(|_| byte()).collect();
        garbage.extend(b"\r\n");
        server.raw(&garbage);
        let id = format!("\"id\":{round},");
        server.send(&format!(r#"{{"jsonrpc":"2.0","id":{round},"method":"none"}}"#));
        while !server.next().expect("it lives").contains(&id) {}
    }
    assert_eq!(server.finish().0, 1, "no shutdown");
}

/// A large length must not cause an allocation, and a message that never completes must not block.
#[test]
fn a_huge_length_ends_the_session_with_a_message() {
    let mut server = Server::start(&folder("lsp-huge"), &[]);
    server.raw(b"Content-Length: 999999999999999\r\n\r\n{}");
    assert_eq!(server.next(), None);
    let (code, stderr) = server.finish();
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("Content-Length 999999999999999 is too large"), "{stderr}");
}
