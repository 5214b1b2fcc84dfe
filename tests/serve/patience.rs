//! Tests the timeouts of connections: silent ones, slow headers, clients that do not read, and too many of them.

use std::io::Read as _;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tollgate::Engine;
use tollgate_api::review::Request;
use tollgate_engine::engine::{Decision, respond};

use crate::client::request;
use crate::running::{Running, until};

const REVIEW: &[u8] = br#"{"request":{"uid":"u","operation":"DELETE"}}"#;

#[test]
fn a_silent_connection_is_told_nothing_and_asks_later() {
    let server = Running::start(|settings| settings.limits.head_timeout = Duration::from_millis(100));
    let mut link = server.client().connect().expect("connected");
    for _ in 0..3 {
        // Far longer than a head may take: an API server dials ahead, and keeps what it does not need at once.
        assert_eq!(
            link.silence(Duration::from_millis(700)),
            Some(Vec::new()),
            "nothing came, and it is open"
        );
        assert_eq!(link.post("/validate", REVIEW).expect("an answer").status, 200);
    }
}

#[test]
fn silent_connections_are_closed_without_a_word_when_their_time_is_over() {
    let server = Running::start(|settings| settings.limits.idle_timeout = Duration::from_millis(300));
    let mut silent = server.client().connect().expect("connected");
    let mut asked = server.client().connect().expect("connected");
    assert_eq!(asked.post("/validate", REVIEW).expect("an answer").status, 200);
    for link in [&mut silent, &mut asked] {
        assert_eq!(link.until_end(), Vec::<u8>::new());
    }
    until("the connections to be gone", || server.metric("tollgate_connections") == 0);
}

#[test]
fn idle_connections_outlive_those_of_a_go_client() {
    let limits = tollgate::server::Limits::default();
    assert!(limits.idle_timeout > Duration::from_secs(90), "a Go client ends an idle connection after 90 s");
    assert!(limits.head_timeout < Duration::from_secs(90) && limits.write_timeout < Duration::from_secs(90));
}

#[test]
fn the_head_of_a_later_request_may_not_take_longer_than_that_of_the_first() {
    let server = Running::start(|settings| settings.limits.head_timeout = Duration::from_millis(300));
    let mut link = server.client().connect().expect("connected");
    assert_eq!(link.post("/validate", REVIEW).expect("an answer").status, 200);
    link.send(b"POST /validate HTTP/1.1\r\nHost: loc").expect("sent");
    assert_eq!(link.until_end(), Vec::<u8>::new());
    // Nor may it come byte by byte.
    let mut link = server.client().connect().expect("connected");
    let whole = request("POST", "/validate", "application/json", REVIEW);
    let sent = whole.iter().position(|byte| {
        std::thread::sleep(Duration::from_millis(20));
        link.send(&[*byte]).is_err()
    });
    assert!(sent.is_some(), "all of it was taken");
}

#[test]
fn who_says_nothing_does_not_keep_others_out() {
    let server = Running::start(|settings| {
        settings.workers = 1;
        settings.limits.max_connections = 16;
        settings.limits.head_timeout = Duration::from_mins(10);
        settings.limits.idle_timeout = Duration::from_mins(10);
    });
    let client = server.client();
    let mut old = client.connect().expect("connected");
    assert_eq!(old.post("/validate", REVIEW).expect("an answer").status, 200);
    let silent: Vec<_> = (0..8).map(|_| client.connect().expect("connected")).collect();
    // Not even a handshake; some of them wait in line.
    let sockets: Vec<_> = (0..8).map(|_| TcpStream::connect(server.address).expect("connected")).collect();
    assert_eq!(client.post("/validate", REVIEW).expect("an answer").status, 200);
    assert_eq!(old.post("/validate", REVIEW).expect("who asked is the last to go").status, 200);
    drop((silent, sockets));
}

#[test]
fn who_says_nothing_on_the_plain_port_does_not_keep_probes_out() {
    let server = Running::start(|settings| {
        settings.limits.head_timeout = Duration::from_mins(10);
        settings.limits.idle_timeout = Duration::from_mins(10);
    });
    let silent: Vec<_> = (0..300).map(|_| TcpStream::connect(server.ops).expect("connected")).collect();
    assert_eq!(server.get("/livez").status, 200);
    drop(silent);
}

fn says_much(engine: &Engine, request: &Request<'_>, decision: &Decision) -> Vec<u8> {
    let mut answer = respond(engine, request, decision).encode_admission_review();
    answer.resize(4 << 20, b' ');
    answer
}

#[test]
fn an_answer_that_nobody_reads_is_given_up() {
    let server = Running::start(|settings| {
        settings.respond = says_much;
        settings.limits.write_timeout = Duration::from_millis(500);
        // Half of what all responses may take is enough for four.
        settings.limits.max_memory = 320 << 20;
    });
    let held = || server.metric("tollgate_held_bytes{share=\"common\"}");
    let deaf: Vec<_> = (0..4)
        .map(|_| {
            let mut link = server.client().connect().expect("connected");
            link.send(&request("POST", "/validate", "application/json", REVIEW)).expect("sent");
            link
        })
        .collect();
    until("answers that wait for their readers", || held() >= 16 << 20);
    // One that reads a little now and then is not better; at another address, where memory is left for it.
    let mut drip = server.client().from(Ipv4Addr::new(127, 0, 0, 2)).connect().expect("connected");
    drip.send(&request("POST", "/validate", "application/json", REVIEW)).expect("sent");
    let mut buffer = [0; 4 << 10];
    let mut read = 0;
    while let Ok(count @ 1..) = drip.socket().read(&mut buffer) {
        read += count;
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(read < 4 << 20, "the whole answer came");
    until("the connections to be gone", || server.metric("tollgate_connections") == 0);
    assert_eq!(held(), 0, "and their memory with them");
    drop(deaf);
    // Who reads has all of it.
    let reply = server.client().post("/validate", REVIEW).expect("an answer");
    assert_eq!((reply.status, reply.body.len()), (200, 4 << 20));
}

#[test]
fn an_answer_that_the_system_has_and_nobody_reads_is_given_up() {
    // Small enough for the buffers of the system: we have written it, and only the system can tell.
    let server = Running::start(|settings| settings.limits.write_timeout = Duration::from_millis(500));
    let mut deaf = server.client().connect().expect("connected");
    rustix::net::sockopt::set_socket_recv_buffer_size(deaf.socket(), 1).expect("set");
    let body = br#"{"request":{"uid":"u"}}"#;
    let many: Vec<u8> = request("POST", "/validate", "application/json", body).repeat(2_000);
    let _ = deaf.send_what_fits(&many);
    until("the connection to be gone", || server.metric("tollgate_connections") == 0);
}

static EVALUATED: AtomicUsize = AtomicUsize::new(0);
static MAY_GO_ON: AtomicBool = AtomicBool::new(false);

fn counts_and_waits(engine: &Engine, request: &Request<'_>, decision: &Decision) -> Vec<u8> {
    EVALUATED.fetch_add(1, Ordering::SeqCst);
    while !MAY_GO_ON.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(5));
    }
    respond(engine, request, decision).encode_admission_review()
}

#[test]
fn a_large_body_whose_client_has_left_is_not_evaluated() {
    let server = Running::start(|settings| {
        settings.workers = 1;
        settings.respond = counts_and_waits;
    });
    let evaluated = || EVALUATED.load(Ordering::SeqCst);
    let [mut first, mut last] = [0; 2].map(|_| server.client().connect().expect("connected"));
    let impatient: Vec<_> = (0..5).map(|_| server.client().connect().expect("connected")).collect();
    first.send(&request("POST", "/validate", "application/json", REVIEW)).expect("sent");
    until("the worker to be busy", || evaluated() == 1);
    let large = [REVIEW, b" ".repeat(100_000).as_slice()].concat();
    let large = request("POST", "/validate", "application/json", &large);
    for mut link in impatient {
        link.send(&large).expect("sent");
    }
    last.send(&large).expect("sent");
    MAY_GO_ON.store(true, Ordering::SeqCst);
    assert_eq!(first.receive().expect("an answer").status, 200);
    assert_eq!(last.receive().expect("an answer for who stayed").status, 200);
    until("the others to be gone", || server.metric("tollgate_connections") == 2);
    assert_eq!(evaluated(), 2);
}
