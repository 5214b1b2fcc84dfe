//! Tests the limits on clients: slow ones, large ones, too many at once, and failing requests. Memory and connections
//! have their own files (`memory`, `patience`).

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use tollgate::Engine;
use tollgate_api::review::Request;
use tollgate_engine::engine::{Decision, respond};

use crate::client::request;
use crate::running::{Running, until};

const REVIEW: &[u8] = br#"{"request":{"uid":"u","operation":"DELETE"}}"#;

fn panics_on_request(engine: &Engine, request: &Request<'_>, decision: &Decision) -> Vec<u8> {
    assert!(request.uid != "panic", "a panic that was asked for");
    respond(engine, request, decision).encode_admission_review()
}

#[test]
fn one_panic_is_one_500() {
    let server = Running::start(|settings| settings.respond = panics_on_request);
    let mut link = server.client().connect().expect("connected");
    for _ in 0..3 {
        let reply = link
            .post("/validate", br#"{"request":{"uid":"panic","operation":"DELETE"}}"#)
            .expect("an answer");
        assert_eq!(reply.status, 500);
        assert!(reply.text().contains("\"reason\":\"InternalError\""), "{}", reply.text());
        assert_eq!(link.post("/validate", REVIEW).expect("an answer").status, 200);
    }
    assert_eq!(server.metric("tollgate_panics_total"), 3);
    assert_eq!(server.metric("tollgate_in_flight"), 0);
}

/// Blocks requests until the test releases them.
static HELD: (Mutex<(usize, bool)>, Condvar) = (Mutex::new((0, false)), Condvar::new());

fn waits(engine: &Engine, request: &Request<'_>, decision: &Decision) -> Vec<u8> {
    if request.uid == "waits" {
        let mut held = HELD.0.lock().expect("not poisoned");
        held.0 += 1;
        HELD.1.notify_all();
        drop(HELD.1.wait_while(held, |held| !held.1).expect("not poisoned"));
    }
    respond(engine, request, decision).encode_admission_review()
}

#[test]
fn too_many_in_flight_are_told_to_come_back() {
    let server = Running::start(|settings| {
        settings.respond = waits;
        settings.workers = 2;
        settings.limits.max_in_flight = 1;
    });
    let client = server.client();
    let ask = |body: Vec<u8>| {
        let client = client.clone();
        std::thread::spawn(move || client.post("/validate", &body).expect("an answer"))
    };
    let slow = ask(br#"{"request":{"uid":"waits","operation":"DELETE"}}"#.to_vec());
    drop(HELD.1.wait_while(HELD.0.lock().expect("not poisoned"), |held| held.0 == 0).expect("not poisoned"));
    // One of two workers is held. Connections go to both in turn: the free one answers every other.
    let others: Vec<_> = (0..4).map(|_| ask(REVIEW.to_vec())).collect();
    until("the free worker's answer", || others.iter().any(std::thread::JoinHandle::is_finished));
    let (answered, waiting): (Vec<_>, Vec<_>) =
        others.into_iter().partition(std::thread::JoinHandle::is_finished);
    for reply in answered {
        let reply = reply.join().expect("answered");
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")), "{}", reply.text());
    }
    HELD.0.lock().expect("not poisoned").1 = true;
    HELD.1.notify_all();
    assert_eq!(slow.join().expect("answered").status, 200);
    for reply in waiting {
        reply.join().expect("answered");
    }
    assert!(server.metric("tollgate_shed_total") >= 1);
    assert_eq!(server.client().post("/validate", REVIEW).expect("an answer").status, 200);
}

#[test]
fn slow_bodies_are_not_in_flight_and_end_in_time() {
    let server = Running::start(|settings| {
        settings.limits.max_in_flight = 2;
        settings.limits.body_timeout = Duration::from_millis(700);
    });
    let client = server.client();
    let whole = request("POST", "/validate", "application/json", REVIEW);
    let mut slow: Vec<_> = (0..50)
        .map(|_| {
            let mut link = client.connect().expect("connected");
            link.send(&whole[..whole.len() - 5]).expect("sent");
            link
        })
        .collect();
    // Fifty wait for their clients; the limit is two; others get through at once, and so does one that goes on.
    assert_eq!(client.post("/validate", REVIEW).expect("an answer").status, 200);
    let mut lucky = client.connect().expect("connected");
    lucky.send(&whole[..10]).expect("sent");
    lucky.send(&whole[10..]).expect("sent");
    assert_eq!(lucky.receive().expect("an answer").status, 200);
    for link in &mut slow {
        let reply = link.receive().expect("an answer");
        assert_eq!(reply.status, 408, "{}", reply.text());
    }
    // The caller's own timeout is kept where it is shorter.
    let server = Running::start(|settings| settings.limits.body_timeout = Duration::from_mins(10));
    let mut link = server.client().connect().expect("connected");
    let whole = request("POST", "/validate?timeout=1s", "application/json", REVIEW);
    link.send(&whole[..whole.len() - 1]).expect("sent");
    let reply = link.receive().expect("an answer");
    assert_eq!((reply.status, reply.closes()), (408, true));
}

#[test]
fn slow_heads_and_silent_connections_are_ended() {
    let server = Running::start(|settings| settings.limits.head_timeout = Duration::from_millis(300));
    let silent: Vec<_> =
        (0..100).map(|_| std::net::TcpStream::connect(server.address).expect("connected")).collect();
    let mut slow: Vec<_> = (0..20)
        .map(|_| {
            let mut link = server.client().connect().expect("connected");
            link.send(b"POST /validate HTTP/1.1\r\nHost: loc").expect("sent");
            link
        })
        .collect();
    assert_eq!(server.client().post("/validate", REVIEW).expect("an answer").status, 200);
    for mut socket in silent {
        let read = std::io::Read::read(&mut socket, &mut [0; 64]);
        assert!(!matches!(read, Ok(1..)), "nothing is said to who says nothing");
    }
    for link in &mut slow {
        link.wait_for_end();
    }
    until("the connections to be gone", || server.metric("tollgate_connections") == 0);
}

#[test]
fn old_connections_are_told_to_go() {
    let server = Running::start(|settings| settings.max_connection_age = Duration::ZERO);
    let mut link = server.client().connect().expect("connected");
    let reply = link.post("/validate", REVIEW).expect("an answer");
    assert_eq!((reply.status, reply.closes()), (200, true));
    link.wait_for_end();
    let server = Running::start(|_| {});
    let mut link = server.client().connect().expect("connected");
    for _ in 0..3 {
        assert!(!link.post("/validate", REVIEW).expect("an answer").closes());
    }
}

#[test]
fn a_large_body_in_many_pieces_is_read_and_one_too_large_is_not() {
    let server = Running::start(|settings| settings.limits.max_body = 1 << 20);
    let mut link = server.client().connect().expect("connected");
    let mut body = REVIEW.to_vec();
    body.resize(1 << 20, b' ');
    assert_eq!(link.post("/validate", &body).expect("an answer").status, 200);
    // Chunked, so that the length is not announced.
    let chunked = |count: usize| {
        let mut bytes = b"POST /validate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        bytes.extend(format!("{:x}\r\n", REVIEW.len()).bytes().chain(REVIEW.iter().copied()).chain(*b"\r\n"));
        for _ in 0..count {
            bytes.extend(
                b"10000\r\n".iter().copied().chain(std::iter::repeat_n(b' ', 0x10000)).chain(*b"\r\n"),
            );
        }
        bytes.extend(b"0\r\n\r\n");
        bytes
    };
    link.send(&chunked(15)).expect("sent");
    assert_eq!(link.receive().expect("an answer").status, 200);
    // Padding is no way past a webhook that fails open: what is too large to be checked is denied, not refused.
    link.send(&chunked(16)).expect("sent");
    let reply = link.receive().expect("an answer");
    assert_eq!((reply.status, reply.closes()), (200, false));
    let text = reply.text();
    assert!(text.contains(r#""allowed":false"#) && text.contains(r#""uid":"u""#), "{text}");
    assert!(text.contains("larger than 1048576 bytes"), "{text}");
    body.resize(3 << 20, b' ');
    assert!(link.post("/validate", &body).expect("an answer").text().contains(r#""allowed":false"#));
    assert_eq!(link.post("/mutate", &body).expect("an answer").status, 413);
    // What is no review of an API server is refused as before.
    assert_eq!(link.post("/validate", &vec![b' '; 3 << 20]).expect("an answer").status, 413);
}

/// A review of an API server that is too dense to be checked is denied: answered with 400, it would get past a webhook
/// that fails open.
#[test]
fn a_review_that_is_too_dense_to_be_checked_is_denied() {
    let server = Running::start(|_| {});
    let dense =
        format!(r#"{{"request":{{"uid":"u","operation":"CREATE","object":[0{}]}}}}"#, ",0".repeat(600_000));
    let reply = server.client().post("/validate", dense.as_bytes()).expect("an answer");
    let text = reply.text();
    assert_eq!(reply.status, 200, "{text}");
    assert!(text.contains(r#""allowed":false"#) && text.contains("too many for its length"), "{text}");
    assert_eq!(server.client().post("/mutate", dense.as_bytes()).expect("an answer").status, 400);
}
