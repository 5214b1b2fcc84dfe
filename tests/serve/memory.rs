//! Tests the memory limits of clients: every byte is counted, requests beyond the limit are asked to retry, and all
//! memory is released.

use tollgate::server::Limits;

use crate::client::{Link, request};
use crate::running::{Running, until};

const REVIEW: &[u8] = br#"{"request":{"uid":"u","operation":"DELETE"}}"#;

fn held(server: &Running, share: &str) -> i64 {
    server.metric(&format!("tollgate_held_bytes{{share=\"{share}\"}}"))
}

/// Reduces the memory limit to a few large bodies.
fn limit_memory(limits: &mut Limits) {
    limits.max_body = 1 << 20;
    limits.max_connections = 200;
    limits.max_in_flight = 64;
    limits.max_memory = 84 << 20;
}

/// Starts a request with a body of this length, and sends all but the last byte.
fn start_request(server: &Running, length: usize) -> (Link, u16) {
    let mut body = REVIEW.to_vec();
    body.resize(length, b' ');
    let mut link = server.client().connect().expect("connected");
    let whole = request("POST", "/validate", "application/json", &body);
    let sent = link.send(&whole[..whole.len() - 1]);
    let mut status = 0;
    if sent.is_err() || link.silence(std::time::Duration::from_millis(150)) != Some(Vec::new()) {
        let reply = link.receive().expect("an answer");
        assert_eq!(reply.header("retry-after"), Some("1"), "{}", reply.text());
        assert!(reply.closes());
        status = reply.status;
    }
    (link, status)
}

#[test]
fn bodies_that_do_not_fit_are_told_to_come_back_and_small_ones_are_answered() {
    let server = Running::start(|settings| limit_memory(&mut settings.limits));
    let mut large: Vec<(Link, u16)> = (0..24).map(|_| start_request(&server, 1 << 20)).collect();
    let refused = large.iter().filter(|(_, status)| *status == 503).count();
    let taken = large.len() - refused;
    assert!(taken >= 1 && refused >= 1, "{taken} taken, {refused} refused");
    assert!(held(&server, "common") >= i64::try_from(taken << 20).expect("a number"));
    assert!(server.metric("tollgate_shed_total") >= 1);
    // Full; and what an API server asks is answered.
    for length in [REVIEW.len(), 3_000, 60_000] {
        let mut body = REVIEW.to_vec();
        body.resize(length, b' ');
        let reply = server.client().post("/validate", &body).expect("an answer");
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    // Those that were taken are answered, too.
    for (link, status) in &mut large {
        if *status == 0 {
            link.send(b" ").expect("sent");
            assert_eq!(link.receive().expect("an answer").status, 200);
        }
    }
    drop(large);
    until("all to be given back", || {
        ["common", "small", "working"].iter().all(|share| held(&server, share) == 0)
    });
    assert_eq!(start_request(&server, 1 << 20).1, 0, "there is room again");
}

#[test]
fn bytes_of_slow_senders_are_counted_and_given_back_when_they_go() {
    let server = Running::start(|settings| {
        settings.limits.head_timeout = std::time::Duration::from_mins(10);
        settings.limits.body_timeout = std::time::Duration::from_mins(10);
    });
    let mut slow = Vec::new();
    for count in 1..=20_i64 {
        let (link, status) = start_request(&server, 30_000);
        assert_eq!(status, 0);
        slow.push(link);
        until("it to be counted", || held(&server, "common") >= count * 30_000);
    }
    assert_eq!(held(&server, "small"), 0, "who is slow has no part in what is for others");
    let bodies = held(&server, "common");
    // Heads that do not end.
    for _ in 0..20 {
        let mut link = server.client().connect().expect("connected");
        let head = format!("POST /validate HTTP/1.1\r\nHost: localhost\r\nX-Long: {}", "x".repeat(15_000));
        link.send(head.as_bytes()).expect("sent");
        slow.push(link);
    }
    until("heads to be counted", || held(&server, "common") >= bodies + 20 * 15_000);
    drop(slow);
    until("all to be given back", || held(&server, "common") == 0);
}

#[test]
fn a_head_without_end_is_not_read() {
    let server = Running::start(|settings| {
        settings.limits.head_timeout = std::time::Duration::from_millis(500);
    });
    let mut link = server.client().connect().expect("connected");
    let endless = "x".repeat(4 << 20);
    let head = format!("POST /validate HTTP/1.1\r\nHost: localhost\r\nX-Long: {endless}");
    let _ = link.send(head.as_bytes());
    link.wait_for_end();
    until("all to be given back", || held(&server, "common") == 0);
}

#[test]
fn too_little_memory_is_told_at_start() {
    let any = "127.0.0.1:0".parse().expect("an address");
    let mut settings = tollgate::server::Settings::new(any, any);
    settings.limits.max_memory = 64 << 20;
    let told = tollgate::server::Server::bind(settings, crate::running::engine(), None, None);
    let told = told.err().expect("too little").to_string();
    assert!(told.contains("64 MiB of memory is not enough for requests of up to 8192 KiB"), "{told}");
}
