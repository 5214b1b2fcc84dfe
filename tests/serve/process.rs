//! The program itself: what it prints, what it logs, how it ends.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::client::{Client, plain, request};
use crate::reviews::recordings;
use crate::running::{Folder, until};

const REVIEW: &[u8] = br#"{"request":{"uid":"u-1","operation":"DELETE","namespace":"ml","name":"x"}}"#;

pub(crate) struct Process {
    child: Child,
    address: SocketAddr,
    pub(crate) ops: SocketAddr,
    authorities: String,
    log: Option<ChildStderr>,
}

impl Process {
    /// Starts `tollgate serve` on free ports, and reads the addresses from its log.
    pub(crate) fn start(arguments: &[&str]) -> Process {
        Process::of(Command::new(env!("CARGO_BIN_EXE_tollgate")).arg("serve").args(arguments))
    }

    /// Like [`Process::start`], with a command that ends in `tollgate serve`.
    pub(crate) fn of(command: &mut Command) -> Process {
        let mut child = command
            .args(["--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--workers", "2"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        let mut word = |name: &str| {
            let line = lines.next().expect("a line").expect("UTF-8");
            line.strip_prefix(name).unwrap_or_else(|| panic!("{name}: {line}")).trim().to_owned()
        };
        let address = |url: String| {
            let rest = url.split("://").nth(1).and_then(|rest| rest.split('/').next()).expect("a URL");
            rest.parse().expect("an address")
        };
        let (webhook, health, bundle) = (address(word("webhook")), address(word("health")), word("caBundle"));
        let bundle = base64::engine::general_purpose::STANDARD.decode(bundle).expect("base64");
        let log = child.stderr.take();
        let authorities = String::from_utf8(bundle).expect("PEM");
        Process { child, address: webhook, ops: health, authorities, log }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address, &self.authorities)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("signalled");
    }

    pub(crate) fn get(&self, path: &str) -> String {
        plain(self.ops, "GET", path, "").expect("an answer").text()
    }

    /// Waits for the end of the process. Returns the exit code and the log.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut log = String::new();
        if let Some(mut stderr) = self.log.take() {
            stderr.read_to_string(&mut log).expect("UTF-8");
        }
        (self.child.wait().expect("ended").code(), log)
    }
}

/// A test that fails leaves no server behind.
impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn sigterm_under_load_loses_no_request() {
    let drain = Duration::from_millis(2500);
    let process = Process::start(&["--drain", "2500ms", "--log-level", "warn"]);
    let (answered, told_to_go) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let load: Vec<_> = (0..6)
        .map(|_| {
            let (client, answered, told_to_go) = (process.client(), answered.clone(), told_to_go.clone());
            std::thread::spawn(move || {
                // A server that takes no connections any more has ended; a request that was sent is answered.
                while let Ok(mut link) = client.connect() {
                    loop {
                        let reply =
                            link.post("/validate?timeout=10s", REVIEW).expect("a request without an answer");
                        assert_eq!(reply.status, 200);
                        answered.fetch_add(1, Ordering::Relaxed);
                        if reply.closes() {
                            told_to_go.fetch_add(1, Ordering::Relaxed);
                            break;
                        }
                    }
                }
            })
        })
        .collect();
    // One request is half sent when the signal comes, and one connection is idle.
    let mut half = process.client().connect().expect("connected");
    let whole = request("POST", "/validate", "application/json", REVIEW);
    half.send(&whole[..whole.len() - 9]).expect("sent");
    let mut idle = process.client().connect().expect("connected");
    assert!(!idle.post("/validate", REVIEW).expect("an answer").closes());
    until("load", || answered.load(Ordering::Relaxed) > 100);
    let signalled = Instant::now();
    process.terminate();
    // Readiness fails, and only then do connections end.
    until("not ready", || plain(process.ops, "GET", "/readyz", "").is_ok_and(|reply| reply.status == 503));
    let verbose = plain(process.ops, "GET", "/readyz?verbose", "").expect("an answer").text();
    assert!(verbose.contains("[-]serving draining"), "{verbose}");
    assert_eq!(plain(process.ops, "GET", "/livez", "").expect("an answer").status, 200);
    half.send(&whole[whole.len() - 9..]).expect("sent");
    for reply in [half.receive().expect("an answer"), idle.post("/validate", REVIEW).expect("an answer")] {
        assert_eq!((reply.status, reply.closes()), (200, true));
    }
    let (code, log) = process.end();
    let took = signalled.elapsed();
    assert_eq!(code, Some(0), "{log}");
    // The bar: a kubelet waits no longer than this. And readiness was seen to fail long before.
    assert!(took <= drain, "ended after {took:?}");
    assert!(took >= drain / 2, "ended after {took:?}");
    for thread in load {
        thread.join().expect("every request was answered");
    }
    assert!(told_to_go.load(Ordering::Relaxed) > 6);
}

#[test]
#[cfg(target_os = "linux")]
fn connections_that_come_all_at_once_wait_in_line() {
    let process = Process::start(&["--log-level", "off", "--drain", "0s"]);
    let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").expect("Linux says how many may wait");
    let crowd = most.trim().parse().map_or(400, |most: usize| most.min(400));
    // While nobody accepts them, they are the system's. One that finds no place tries again after a second.
    process.signal(Signal::STOP);
    let waiting: Vec<_> = (0..crowd)
        .map_while(|_| {
            std::net::TcpStream::connect_timeout(&process.address, Duration::from_millis(900)).ok()
        })
        .collect();
    process.signal(Signal::CONT);
    assert_eq!(waiting.len(), crowd);
    assert_eq!(process.client().post("/validate", REVIEW).expect("an answer").status, 200);
    process.terminate();
    assert_eq!(process.end().0, Some(0));
}

#[test]
fn each_decision_is_one_line_of_json() {
    let process = Process::start(&["--drain", "0s"]);
    let mut link = process.client().connect().expect("connected");
    let text = recordings();
    let mut uids = Vec::new();
    for line in text.lines() {
        let recording: Value = serde_json::from_str(line).expect("JSON");
        let review = &recording["review"];
        uids.push(review["request"]["uid"].as_str().expect("a uid").to_owned());
        assert_eq!(link.post("/validate", review.to_string().as_bytes()).expect("an answer").status, 200);
    }
    process.terminate();
    let (code, log) = process.end();
    assert_eq!(code, Some(0), "{log}");
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
    let decisions: Vec<&Value> = lines.iter().filter(|line| line["message"] == "decision").collect();
    let logged: Vec<&str> = decisions.iter().filter_map(|line| line["uid"].as_str()).collect();
    assert_eq!(logged, uids);
    for decision in &decisions {
        let mut rules: Vec<&str> = decision["rules"].as_str().unwrap_or_default().split(',').collect();
        let listed = rules.len();
        rules.sort_unstable();
        rules.dedup();
        assert_eq!(rules.len(), listed, "each rule once: {decision}");
    }
    // Libraries log too, for example how many workers start.
    assert!(!log.contains("workers"), "{log}");
    let known = [
        "bodyMicros",
        "decision",
        "dryRun",
        "level",
        "message",
        "micros",
        "name",
        "namespace",
        "operation",
        "policies",
        "resource",
        "rules",
        "time",
        "uid",
        "webhook",
    ];
    for decision in &decisions {
        let names: Vec<&str> = decision.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(names, known, "{decision}");
    }
    assert!(decisions.iter().any(|line| line["decision"] == "denied" && line["rules"] != ""), "{log}");
    assert!(decisions.iter().any(|line| line["dryRun"] == true), "{log}");
    assert!(!log.contains("deviceClassName"), "bodies are never logged");
}

#[test]
fn the_log_level_is_changed_while_serving() {
    let process = Process::start(&["--drain", "0s", "--log-level", "warn", "--log-format", "text"]);
    let mut link = process.client().connect().expect("connected");
    let mut ask = |uid: &str| {
        let body = format!(r#"{{"request":{{"uid":"{uid}","operation":"DELETE"}}}}"#);
        assert_eq!(link.post("/validate", body.as_bytes()).expect("an answer").status, 200);
    };
    let level = |method: &str, body: &str| {
        let reply = plain(process.ops, method, "/log-level", body).expect("an answer");
        (reply.status, reply.text())
    };
    assert_eq!(level("GET", ""), (200, "warn\n".to_owned()));
    ask("silent");
    assert_eq!(level("PUT", "info"), (200, "info\n".to_owned()));
    ask("spoken");
    assert_eq!(level("PUT", "loud").0, 400);
    assert_eq!(level("PUT", "off"), (200, "off\n".to_owned()));
    ask("silent again");
    process.terminate();
    let (_, log) = process.end();
    assert!(log.contains("spoken") && !log.contains("silent"), "{log}");
}

#[test]
fn a_certificate_that_cannot_be_used_is_fatal_at_start() {
    let folder = Folder::new("fatal");
    let (certificate, key) = (folder.0.join("tls.crt"), folder.0.join("tls.key"));
    let start = || {
        let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(["serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"])
            .args(["--tls-cert".as_ref(), certificate.as_os_str(), "--tls-key".as_ref(), key.as_os_str()])
            .output()
            .expect("run");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = start();
    assert!(code == Some(3) && said.contains("cannot read"), "{said}");
    assert_eq!(said.lines().count(), 1, "no certificate is in use yet, so nothing is said about one: {said}");
    std::fs::write(&certificate, "nonsense").expect("written");
    std::fs::write(&key, "nonsense").expect("written");
    let (code, said) = start();
    assert!(code == Some(3) && said.contains("contains no certificate"), "{said}");
}

#[test]
fn the_log_level_is_not_changed_under_another_name() {
    let process = Process::start(&["--drain", "0s", "--log-level", "warn"]);
    let put = |headers: &str| {
        use std::io::Write as _;
        let mut socket = std::net::TcpStream::connect(process.ops).expect("connected");
        let head = format!(
            "PUT /log-level HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: 5\r\n\r\ndebug"
        );
        socket.write_all(head.as_bytes()).expect("sent");
        let mut reply = String::new();
        socket.read_to_string(&mut reply).expect("UTF-8");
        reply.split(' ').nth(1).and_then(|code| code.parse::<u16>().ok()).expect("a status")
    };
    for headers in [
        "Host: tollgate.example.com\r\n",
        "Host: 10.0.0.7:8081\r\n",
        "Host: localhost:8081\r\nOrigin: http://tollgate.example.com\r\n",
        "Host: localhost:8081\r\nOrigin: null\r\n",
    ] {
        assert_eq!(put(headers), 403, "{headers}");
    }
    assert_eq!(process.get("/log-level"), "warn\n");
    assert_eq!(put("Host: localhost:8081\r\n"), 200);
    assert_eq!(process.get("/log-level"), "debug\n");
    assert_eq!(plain(process.ops, "PUT", "/log-level", &"x".repeat(100_000)).expect("an answer").status, 413);
    process.terminate();
    assert_eq!(process.end().0, Some(0));
}

#[test]
#[cfg(target_os = "linux")]
fn full_disks_behind_stdout_and_stderr_do_not_end_the_server() {
    let folder = Folder::new("full");
    let free = || {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        socket.local_addr().expect("an address")
    };
    let (webhook, ops) = (free(), free());
    let full =
        || Stdio::from(std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["serve", "--listen", &webhook.to_string(), "--ops-listen", &ops.to_string(), "--drain", "0s"])
        .arg("--cert-dir")
        .arg(folder.0.join("certs"))
        .stdout(full())
        .stderr(full())
        .spawn()
        .expect("started");
    until("ready", || plain(ops, "GET", "/readyz", "").is_ok_and(|reply| reply.status == 200));
    let authorities = std::fs::read_to_string(folder.0.join("certs/ca.crt")).expect("a CA");
    let client = Client::new(webhook, &authorities);
    assert_eq!(client.post("/validate", REVIEW).expect("an answer").status, 200);
    until("lines that were lost to be counted", || {
        let metrics = plain(ops, "GET", "/metrics", "").expect("an answer").text();
        let count = metrics.lines().find_map(|line| line.strip_prefix("tollgate_log_lines_dropped_total "));
        count.and_then(|count| count.parse::<u64>().ok()).is_some_and(|count| count > 0)
    });
    kill_process(Pid::from_child(&child), Signal::TERM).expect("signalled");
    assert_eq!(child.wait().expect("ended").code(), Some(0));
}

/// Starts a server with flags that it cannot use; returns its exit status and what it says.
fn serve_that_ends(flags: &[&str]) -> (std::process::ExitStatus, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--log-level", "off"])
        .args(flags)
        .output()
        .expect("run");
    (output.status, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// What a flag asks for cannot be done: no error of the program.
#[test]
#[cfg(unix)]
fn settings_that_cannot_be_used_are_no_internal_errors() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("unusable");
    std::fs::set_permissions(&folder.0, std::fs::Permissions::from_mode(0o777)).expect("changed");
    let directory = folder.0.to_str().expect("UTF-8");
    for (flags, code, told) in [
        (&["--max-memory", "1MiB"][..], 2, "1 MiB of memory is not enough"),
        (&["--max-body", "300MiB"], 2, "or reduce --max-body"),
        (&["--cert-dir", directory], 3, "is world-writable"),
    ] {
        let (status, said) = serve_that_ends(flags);
        assert_eq!(status.code(), Some(code), "{flags:?}: {said}");
        assert!(said.contains(told), "{flags:?}: {said}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn files_without_end_are_not_read() {
    let folder = Folder::new("endless");
    let certificate = folder.0.join("tls.crt");
    std::fs::write(&certificate, "x".repeat(2 << 20)).expect("written");
    let certificate = certificate.to_str().expect("UTF-8");
    for (flags, told) in [
        (&["--tls-cert", "/dev/zero", "--tls-key", "/dev/zero"][..], "not a regular file"),
        (&["--tls-cert", certificate, "--tls-key", certificate], "larger than 1 MiB"),
        (&["--client-ca", "/dev/zero"], "not a regular file"),
        (&["--policy", "/dev/zero"], "must be a file or folder"),
        (&["--namespaces", "/dev/zero"], "must be a file or folder"),
        (&["--classes", "/dev/zero"], "larger than"),
    ] {
        let (status, said) = serve_that_ends(flags);
        assert!(!status.success() && said.contains(told), "{flags:?}: {said}");
    }
}
