//! `tollgate serve` as a process beside a double.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};

use crate::client::{Client, Reply, plain};
use crate::double::Double;

/// A review of something that is always admitted.
pub(crate) const REVIEW: &[u8] =
    br#"{"request":{"uid":"u-1","operation":"DELETE","namespace":"ml","name":"x"}}"#;

/// A running program, which is stopped when the value is dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) ops: SocketAddr,
    log: Arc<Mutex<String>>,
}

impl Process {
    /// Starts the program on free ports, with the double as its cluster and short delays.
    pub(crate) fn start(double: &Double, arguments: &[&str]) -> Process {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(["serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--workers", "2"])
            .args(["--cluster-retry", "50ms", "--drain", "0s", "--log-format", "text"])
            .args(arguments)
            .env("KUBECONFIG", double.kubeconfig())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        let mut word = |name: &str| {
            let line = lines.next().expect("a line").expect("UTF-8");
            let rest = line.strip_prefix(name).unwrap_or_else(|| panic!("{name}: {line}")).trim().to_owned();
            let rest = rest.split("://").nth(1).and_then(|rest| rest.split('/').next()).expect("a URL");
            rest.parse().expect("an address")
        };
        let (address, ops) = (word("webhook"), word("health"));
        let log = Arc::new(Mutex::new(String::new()));
        let (stderr, kept) = (child.stderr.take().expect("stderr"), log.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut log = kept.lock().expect("no panic inside");
                log.push_str(&line);
                log.push('\n');
            }
        });
        Process { child, address, ops, log }
    }

    /// Sends a signal to the process.
    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(id, signal).expect("it runs");
    }

    /// Peak memory of the process in bytes.
    pub(crate) fn peak_memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let mark = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a mark");
        let kib: usize = mark.trim().trim_end_matches(" kB").parse().expect("a number");
        kib << 10
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().expect("no panic inside").clone()
    }

    /// Sends a review like an API server that trusts these CAs.
    pub(crate) fn send_review(&self, authorities: &str, review: &[u8]) -> Reply {
        Client::new(self.address, authorities).post("/validate", review).expect("an answer")
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        plain(self.ops, "GET", path, "").expect("an answer")
    }

    /// The value of a metric, `name{labels}`.
    pub(crate) fn metric(&self, name: &str) -> Option<i64> {
        let text = self.get("/metrics").text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
