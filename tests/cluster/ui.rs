//! `tollgate ui` at the double: the pages follow the watches, and say when the API server does not respond.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::double::Double;
use crate::live::{double, files};
use crate::program::tollgate;
use crate::state::RULES;

/// The running pages, which end with the value.
struct Pages {
    process: Child,
    /// `127.0.0.1:PORT`
    host: String,
    cookie: String,
}

impl Pages {
    fn start(double: &Double, name: &str) -> Pages {
        let mut process = tollgate(&files(name), &["ui"])
            .env("KUBECONFIG", double.kubeconfig())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("stdout")).read_line(&mut line).expect("a line");
        let link = line.trim().strip_prefix("Open http://");
        let link = link.unwrap_or_else(|| panic!("{line:?}, {:?}", process.wait()));
        let (host, query) = link.split_once('/').expect("an address with a token");
        let mut pages = Pages { process, host: host.to_owned(), cookie: String::new() };
        let answer = pages.get(&format!("/{query}"));
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
        cookie.split(';').next().expect("a value").clone_into(&mut pages.cookie);
        pages
    }

    /// The answer to a request, with its head.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.host).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_mins(2))).expect("a timeout");
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n", self.host, self.cookie);
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    /// The time of the state that the page shows.
    fn taken(&self) -> String {
        let page = self.get("/");
        let (_, taken) = page.split_once("data-taken=\"").expect("a time");
        taken.split('"').next().expect("a value").to_owned()
    }

    /// Waits until the changes after a revision are as expected, and returns the revision then.
    fn wait_until(&self, mut since: u64, what: &str, holds: impl Fn(&Value) -> bool) -> u64 {
        for _ in 0..100 {
            let answer = self.get(&format!("/updates?since={since}"));
            let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
            let changes: Value = serde_json::from_str(body).expect("JSON");
            since = changes["revision"].as_u64().expect("a revision");
            if holds(&changes) {
                return since;
            }
        }
        panic!("never: {what}");
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

#[test]
fn the_pages_follow_the_cluster_and_say_when_it_does_not_respond() {
    let double = double("ui-live");
    double.serves("/apis/resource.k8s.io/v1/deviceclasses");
    let pages = Pages::start(&double, "ui-live");
    let page = pages.get("/");
    assert!(page.contains("<strong>12 devices</strong>: 7 allocated, 5 free."), "{page}");
    let rule = json!({"metadata": {"name": "fire", "uid": "fire"}, "spec": {
        "deviceSelector": {"driver": "gpu.example.com", "pool": "node-1"},
        "taint": {"key": "example.com/fire", "effect": "NoSchedule"}}});
    double.put(RULES, rule);
    let has_taint = |changes: &Value| changes["parts"]["taints"].to_string().contains("example.com/fire");
    let revision = pages.wait_until(1, "the rule is shown", has_taint);
    // A proxy can refuse requests that are not about objects.
    double.refuse(&[("GET /version", 403)]);
    std::thread::sleep(Duration::from_secs(4));
    assert!(!pages.get("/").contains("data-trouble"));
    // The watches stay open, as they do in an API server that is being stopped.
    let old_since_after = |changed: String, why: &'static str| {
        move |changes: &Value| {
            changes["trouble"].to_string().contains(why)
                && changes["taken"].as_str().is_some_and(|taken| taken > changed.as_str())
        }
    };
    let is_old = old_since_after(pages.taken(), "the API server returned 503");
    std::thread::sleep(Duration::from_secs(2));
    double.refuse(&[("GET /version", 503)]);
    let revision = pages.wait_until(revision, "the state is old, since the last contact", is_old);
    double.refuse(&[]);
    let revision =
        pages.wait_until(revision, "the state is current again", |changes| changes["trouble"].is_null());
    // An API server that crashes closes them. Their last events may be a minute old.
    let is_old = old_since_after(pages.taken(), "the watch is interrupted: ");
    std::thread::sleep(Duration::from_secs(2));
    double.stop_listening();
    double.close_connections();
    pages.wait_until(revision, "the state is old, since the watches were closed", is_old);
    let requests = double.requests();
    assert!(requests.iter().all(|line| line.starts_with("GET ")), "{requests:?}");
}
