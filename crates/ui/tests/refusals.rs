//! The server on real sockets: who is served, and who is refused.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test whose connection breaks has failed")]
#![allow(clippy::disallowed_methods, reason = "the patience of the server is measured")]
#![allow(clippy::format_push_string, clippy::needless_for_each, reason = "requests are written line by line")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};
use tollgate_ui::{Answer, Bytes, Limits, LoopbackServer, Query, Site};

/// A site that says which path was asked for, and repeats questions.
struct Echo(watch::Sender<u64>);

impl Site for Echo {
    fn get(&self, path: &str, query: &Query) -> Option<Answer> {
        match path {
            "/" => Some(Answer::page("the secret page", "default-src 'none'; script-src 'sha256-x'")),
            "/device" => Some(Answer::html_fragment(query.get("id")?.to_owned())),
            _ => None,
        }
    }

    fn revision(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }

    fn changes_since(&self, revision: u64) -> Answer {
        Answer::json(format!("{{\"since\":{revision},\"now\":{}}}", *self.0.borrow()))
    }

    fn ask_replacing_earlier_question(&self, question: Bytes) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        if question.as_ref() != b"\"superseded\"" && question.as_ref() != b"\"late\"" {
            _ = sender.send(Answer::json(question));
        } else if question.as_ref() == b"\"late\"" {
            thread::spawn(move || {
                thread::sleep(Duration::from_secs(3));
                _ = sender.send(Answer::json("1"));
            });
        }
        receiver
    }
}

/// A running server and the cookie of a session.
struct Running {
    port: u16,
    cookie: String,
    token: String,
    site: Arc<Echo>,
}

const LIMITS: Limits = Limits {
    head: Duration::from_millis(700),
    body: Duration::from_millis(700),
    poll: Duration::from_millis(700),
    question: Duration::from_millis(700),
    connections: 300,
    polls: 3,
};

/// Starts a server, which runs until the test process ends, and opens a session.
fn start() -> Running {
    let server = LoopbackServer::bind(0).expect("a port");
    let link = server.session_url_issuer().issue_session_url().expect("a link");
    let site = Arc::new(Echo(watch::channel(1).0));
    let served = site.clone();
    thread::spawn(move || server.serve(served, LIMITS));
    let (address, token) =
        link.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.split_once("/?token=")).unwrap();
    let port = address.parse().unwrap();
    let opened = ask(port, &format!("GET /?token={token} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"));
    assert_eq!(status(&opened), 303, "{opened}");
    assert!(opened.contains("location: /\r\n"), "the token leaves the address: {opened}");
    let cookie = header(&opened, "set-cookie").expect("a cookie");
    let (cookie, flags) = cookie.split_once("; ").unwrap();
    assert_eq!(flags, "Path=/; HttpOnly; SameSite=Strict");
    Running { port, cookie: cookie.to_owned(), token: token.to_owned(), site }
}

/// Sends a text and returns everything that is answered until the connection ends.
fn ask(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The server may refuse before it has read everything.
    _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// The status of an answer; 0 if the connection ended without one.
fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
}

fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split("\r\n\r\n").next()?;
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

impl Running {
    /// Sends a request with a session, and more headers.
    fn send(&self, line: &str, headers: &[&str], body: &str) -> String {
        let Running { port, cookie, .. } = self;
        let mut text = format!("{line} HTTP/1.1\r\n");
        if !headers.iter().any(|header| header.starts_with("Host:")) {
            text.push_str(&format!("Host: 127.0.0.1:{port}\r\n"));
        }
        if !headers.iter().any(|header| header.starts_with("Cookie:")) {
            text.push_str(&format!("Cookie: {cookie}\r\n"));
        }
        headers.iter().for_each(|header| text.push_str(&format!("{header}\r\n")));
        if !body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        ask(*port, &format!("{text}\r\n{body}"))
    }

    fn own_origin(&self) -> String {
        format!("Origin: http://127.0.0.1:{}", self.port)
    }
}

#[test]
fn a_session_sees_the_page_and_all_answers_are_sealed() {
    let running = start();
    let page = running.send("GET /", &[], "");
    assert_eq!(status(&page), 200, "{page}");
    assert!(page.ends_with("the secret page"));
    let policy = header(&page, "content-security-policy").unwrap();
    assert_eq!(policy, "default-src 'none'; script-src 'sha256-x'; frame-ancestors 'none'");
    for answer in
        [page.as_str(), &running.send("GET /nowhere", &[], ""), &running.send("GET /", &["Cookie: a=b"], "")]
    {
        for (name, value) in [
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("connection", "close"),
        ] {
            assert_eq!(header(answer, name), Some(value), "{answer}");
        }
        assert!(header(answer, "content-security-policy").unwrap().contains("frame-ancestors 'none'"));
        assert_eq!(header(answer, "access-control-allow-origin"), None);
        assert_eq!(header(answer, "server"), None);
    }
    let head = running.send("HEAD /", &[], "");
    assert!(status(&head) == 200 && head.ends_with("\r\n\r\n"), "{head}");
    assert_eq!(running.send("GET /device?id=a%2Fb", &[], "").rsplit("\r\n").next(), Some("a/b"));
    let other = running.send("GET /", &[&format!("Host: localhost:{}", running.port)], "");
    assert_eq!(status(&other), 200);
}

#[test]
fn strangers_are_refused() {
    let running = start();
    let Running { port, token, .. } = &running;
    let own = running.own_origin();
    let rows: [(&str, &str, Vec<String>, u16); 24] = [
        ("no token", "GET /", vec!["Cookie: none=1".into()], 403),
        ("token twice", &format!("GET /?token={token}"), vec!["Cookie: none=1".into()], 403),
        ("guessed token", "GET /?token=AAAA", vec!["Cookie: none=1".into()], 403),
        ("guessed cookie", "GET /", vec![format!("Cookie: tollgate-{port}=AAAA")], 403),
        ("other host", "GET /", vec!["Host: attacker.example".into()], 421),
        ("rebinding", "GET /", vec![format!("Host: attacker.example:{port}")], 421),
        ("rebinding to localhost with a dot", "GET /", vec![format!("Host: localhost.:{port}")], 421),
        ("no port", "GET /", vec!["Host: 127.0.0.1".into()], 421),
        ("other origin", "GET /", vec!["Origin: http://attacker.example".into()], 403),
        ("opaque origin", "GET /", vec!["Origin: null".into()], 403),
        ("other port", "GET /", vec!["Origin: http://127.0.0.1:1".into()], 403),
        ("other site", "GET /", vec!["Sec-Fetch-Site: cross-site".into()], 403),
        ("other port, by the browser", "GET /", vec!["Sec-Fetch-Site: same-site".into()], 403),
        ("preflight", "OPTIONS /", vec![own.clone(), "Access-Control-Request-Method: POST".into()], 405),
        ("wrong method", "DELETE /", vec![own.clone()], 405),
        ("post elsewhere", "POST /", vec![own.clone(), "Content-Type: application/json".into()], 405),
        ("absolute form", "GET http://attacker.example/", vec![], 400),
        ("absolute form of this server", &format!("GET http://127.0.0.1:{port}/"), vec![], 400),
        ("path up", "GET /../../etc/passwd", vec![], 404),
        ("path up, encoded", "GET /%2e%2e/%2e%2e/etc/passwd", vec![], 404),
        ("path twice", "GET //", vec![], 404),
        ("page, encoded", "GET /%64evice?id=1", vec![], 404),
        ("backslash", "GET /..%5c..%5cwindows", vec![], 404),
        ("NUL", "GET /%00", vec![], 404),
    ];
    for (what, line, headers, expected) in rows {
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let answer = running.send(line, &headers, "");
        assert_eq!(status(&answer), expected, "{what}: {answer}");
        assert!(!answer.contains("secret"), "{what}: {answer}");
    }
    for (what, request) in [
        ("no host", "GET / HTTP/1.1\r\n\r\n".to_owned()),
        ("two hosts", format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: attacker.example\r\n\r\n")),
        ("no HTTP", "\u{1}\u{2}\u{3}\r\n\r\n".to_owned()),
        (
            "request smuggling",
            format!(
                "POST /what-if HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n"
            ),
        ),
    ] {
        let answer = ask(*port, &request);
        assert!(matches!(status(&answer), 0 | 400..500), "{what}: {answer}");
        assert!(!answer.contains("secret"), "{what}: {answer}");
    }
    let navigating = running.send("GET /", &["Cookie: a=b", "Accept: text/html,*/*"], "");
    assert!(navigating.contains("press Enter") && navigating.contains("<!doctype html>"), "{navigating}");
}

#[test]
fn questions_need_json_and_the_own_origin_and_are_bounded() {
    let running = start();
    let (own, json) = (running.own_origin(), "Content-Type: application/json");
    let post = |headers: &[&str], body: &str| status(&running.send("POST /what-if", headers, body));
    let answer = running.send("POST /what-if", &[&own, json], "{\"a\":1}");
    assert!(status(&answer) == 200 && answer.ends_with("{\"a\":1}"), "{answer}");
    assert_eq!(post(&[json], "{}"), 403, "no origin");
    assert_eq!(post(&[&own], "{}"), 415, "no type");
    assert_eq!(post(&[&own, "Content-Type: text/plain"], "{}"), 415, "a type of plain forms");
    assert_eq!(post(&[&own, "Content-Type: application/x-www-form-urlencoded"], "a=b"), 415);
    assert_eq!(post(&[&own, json, "Cookie: a=b"], "{}"), 403, "no session");
    assert_eq!(post(&[&own, json], &" ".repeat((1 << 20) + 1)), 413, "too large");
    assert_eq!(post(&[&own, json], &" ".repeat(1 << 20)), 200, "just not too large");
    let chunks = format!("{}0\r\n\r\n", format!("8000\r\n{}\r\n", " ".repeat(0x8000)).repeat(40));
    let chunked = format!(
        "POST /what-if HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nCookie: {}\r\n{own}\r\n{json}\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}",
        running.port, running.cookie
    );
    assert!(matches!(status(&ask(running.port, &chunked)), 0 | 413), "too large, in chunks");
    assert_eq!(post(&[&own, json], "\"superseded\""), 409);
    assert_eq!(post(&[&own, json], "\"late\""), 504);
    let long = format!("X: {}", "x".repeat(20 << 10));
    assert_eq!(status(&running.send("GET /", &[&long], "")), 431);
    let longer = format!("X: {}", "x".repeat(400 << 10));
    let answer = running.send("GET /", &[&longer], "");
    assert!(matches!(status(&answer), 0 | 400..500) && !answer.contains("secret"), "{answer}");
    assert_eq!(status(&running.send(&format!("GET /?{}", "x".repeat(8 << 10)), &[], "")), 431);
}

#[test]
fn slow_clients_do_not_stay() {
    let running = start();
    let slow = |beginning: String| {
        let start = Instant::now();
        let answer = ask(running.port, &beginning);
        (status(&answer), start.elapsed())
    };
    let host = format!("Host: 127.0.0.1:{}\r\n", running.port);
    let (code, time) = slow(format!("GET / HTTP/1.1\r\n{host}"));
    assert!(code == 408 && time < Duration::from_secs(5), "slow head: {code} after {time:?}");
    let (_, time) = slow(String::new());
    assert!(time < Duration::from_secs(5), "silent: {time:?}");
    let head = format!(
        "POST /what-if HTTP/1.1\r\n{host}Cookie: {}\r\n{}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
        running.cookie,
        running.own_origin()
    );
    let (code, time) = slow(head);
    assert!(code == 408 && time < Duration::from_secs(5), "slow body: {code} after {time:?}");
    // One byte at a time keeps nothing open either.
    let mut stream = TcpStream::connect(("127.0.0.1", running.port)).unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(5) && stream.write_all(b"G").is_ok() {
        thread::sleep(Duration::from_millis(50));
    }
    assert!(start.elapsed() < Duration::from_secs(5), "a dripping head");
}

#[test]
fn many_silent_connections_end_and_the_page_is_served() {
    let running = start();
    let crowd: Vec<TcpStream> =
        (0..600).filter_map(|_| TcpStream::connect(("127.0.0.1", running.port)).ok()).collect();
    assert!(crowd.len() > 300, "{}", crowd.len());
    let start = Instant::now();
    let page = running.send("GET /", &[], "");
    assert_eq!(status(&page), 200, "{page}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn a_page_hears_of_changes_and_not_too_many_pages_wait() {
    let running = start();
    let at_once = running.send("GET /updates?since=0", &[], "");
    assert!(at_once.ends_with("{\"since\":0,\"now\":1}"), "{at_once}");
    let start = Instant::now();
    let none = running.send("GET /updates?since=1", &[], "");
    assert!(none.ends_with("\"now\":1}") && start.elapsed() >= Duration::from_millis(600), "{none}");
    assert_eq!(status(&running.send("GET /updates", &[], "")), 400);
    assert_eq!(status(&running.send("GET /updates?since=-1", &[], "")), 400);
    thread::scope(|scope| {
        let waiting: Vec<_> =
            (0..6).map(|_| scope.spawn(|| status(&running.send("GET /updates?since=1", &[], "")))).collect();
        thread::sleep(Duration::from_millis(300));
        running.site.0.send_replace(2);
        let mut codes: Vec<u16> = waiting.into_iter().map(|thread| thread.join().unwrap()).collect();
        codes.sort_unstable();
        assert_eq!(codes, [200, 200, 200, 503, 503, 503]);
    });
}
