//! A running `tollgate ui`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::program::{folder, tollgate};

/// The program, which ends with the value.
pub(crate) struct Running {
    process: Child,
    /// The address with the token.
    pub(crate) link: String,
    /// `http://127.0.0.1:PORT`
    pub(crate) origin: String,
    pub(crate) dump: PathBuf,
}

/// A dump of eight nodes with eight GPUs each.
pub(crate) fn example() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/cluster.yaml"))
        .expect("the example")
}

/// A rule as a document of a dump.
pub(crate) fn rule(name: &str, pool: &str, effect: &str) -> String {
    format!(
        "---\napiVersion: resource.k8s.io/v1beta2\nkind: DeviceTaintRule\nmetadata: {{name: {name}, uid: u-{name}}}\nspec:\n  \
         deviceSelector: {{driver: gpu.example.com, pool: {pool}}}\n  taint: {{key: example.com/{name}, effect: {effect}}}\n"
    )
}

/// Starts the program with a dump in a folder of that name.
pub(crate) fn start(name: &str, dump: &str) -> Running {
    let folder = folder(name);
    let file = folder.join("dump.yaml");
    std::fs::write(&file, dump).expect("the dump is written");
    let mut process = tollgate(&folder, &["ui", "--state", "dump.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    let mut line = String::new();
    BufReader::new(process.stdout.take().expect("stdout")).read_line(&mut line).expect("a line");
    let link = line.trim().strip_prefix("Open ").unwrap_or_else(|| panic!("{line}")).to_owned();
    let origin = link.split("/?").next().expect("an origin").to_owned();
    Running { process, link, origin, dump: file }
}

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

impl Running {
    /// Replaces the dump, as `tollgate snapshot` does: the new file appears whole.
    pub(crate) fn replace_dump(&self, text: &str) {
        let new = self.dump.with_extension("new");
        std::fs::write(&new, text).expect("the dump is written");
        std::fs::rename(&new, &self.dump).expect("the dump is replaced");
    }

    fn port(&self) -> u16 {
        self.origin.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port")
    }

    /// Sends a request and returns the answer: its head and its body.
    pub(crate) fn send(&self, line: &str, headers: &[&str], body: &str) -> (String, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port())).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_mins(2))).expect("a timeout");
        let host = self.origin.trim_start_matches("http://");
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let length =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let request = format!("{line} HTTP/1.1\r\nHost: {host}\r\n{headers}{length}\r\n{body}");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.to_owned(), body.to_owned())
    }

    /// Opens a session and returns its cookie as a header.
    pub(crate) fn open_session(&self) -> String {
        let path = self.link.trim_start_matches(self.origin.as_str());
        let (head, _) = self.send(&format!("GET {path}"), &[], "");
        let cookie = head
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "))
            .unwrap_or_else(|| panic!("{head}"));
        format!("Cookie: {}", cookie.split(';').next().expect("a value"))
    }

    /// Asks what would happen, and returns the answer.
    pub(crate) fn ask(&self, cookie: &str, question: &str) -> String {
        let origin = format!("Origin: {}", self.origin);
        let headers = [cookie, &origin, "Content-Type: application/json"];
        let (head, body) = self.send("POST /what-if", &headers, question);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}\n{body}");
        body
    }
}

/// Waits until something is the case; panics after a while.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_mins(1), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
    start.elapsed()
}
