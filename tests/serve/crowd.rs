//! Peers that open more connections than there may be, and one at another address, or at theirs, that is answered all
//! the same.

use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::time::Duration;

use crate::client::{Client, Link, connect_from, request};
use crate::running::{Running, until};

const REVIEW: &[u8] = br#"{"request":{"uid":"u","operation":"DELETE"}}"#;
/// Source address of the many connections.
const CROWD_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
/// Source address of an API server.
const API_SERVER_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));
/// Maximum number of connections of the server, over both workers.
const MOST: usize = 128;

/// A server without timeouts.
fn server_without_timeouts() -> Running {
    let long = Duration::from_mins(10);
    Running::start(|settings| {
        settings.limits.max_connections = MOST;
        settings.limits.head_timeout = long;
        settings.limits.body_timeout = long;
        settings.limits.idle_timeout = long;
        settings.limits.write_timeout = long;
    })
}

/// What a connection sends before it stays open.
#[derive(Clone, Copy, Debug)]
enum SentPart {
    /// Nothing, not even a TLS handshake.
    Silent,
    /// Only a TLS handshake.
    Shaken,
    /// Half of the request headers.
    Head,
    /// Half of the request body.
    Body,
    /// A complete request, which is answered.
    Request,
    /// A complete request, and half of the body of the next one.
    RequestAndBody,
}

impl SentPart {
    const ALL: [SentPart; 6] = [
        SentPart::Silent,
        SentPart::Shaken,
        SentPart::Head,
        SentPart::Body,
        SentPart::Request,
        SentPart::RequestAndBody,
    ];

    /// Opens a connection, which the server may close at any time.
    fn open(self, client: &Client, server: &Running, from: IpAddr) -> Option<Held> {
        let whole = request("POST", "/validate", "application/json", REVIEW);
        if matches!(self, SentPart::Silent) {
            return connect_from(from, server.address).ok().map(|socket| (Some(socket), None));
        }
        let mut link = client.from(from).connect().ok()?;
        if matches!(self, SentPart::Request | SentPart::RequestAndBody) {
            link.send(&whole).ok()?;
            link.receive().ok()?;
        }
        let sent = match self {
            SentPart::Head => 40,
            SentPart::Body | SentPart::RequestAndBody => whole.len() - 5,
            SentPart::Silent | SentPart::Shaken | SentPart::Request => 0,
        };
        link.send(&whole[..sent]).ok()?;
        Some((None, Some(link)))
    }
}

/// A connection of the crowd, without or with TLS.
type Held = (Option<TcpStream>, Option<Link>);

fn send_request(link: &mut Link) {
    assert_eq!(link.post("/validate", REVIEW).expect("an answer").status, 200);
}

#[test]
fn whatever_others_do_with_their_connections_an_api_server_keeps_its_own_and_gets_new_ones() {
    for habit in SentPart::ALL {
        let server = server_without_timeouts();
        let client = server.client();
        let own = client.from(API_SERVER_ADDRESS);
        let mut old = own.connect().expect("connected");
        send_request(&mut old);
        let mut crowd = Vec::new();
        for _ in 0..2 * MOST {
            crowd.extend(habit.open(&client, &server, CROWD_ADDRESS));
        }
        // Its own are idle meanwhile, and older than all others.
        send_request(&mut old);
        for _ in 0..8 {
            send_request(&mut own.connect().expect("connected"));
            crowd.extend(habit.open(&client, &server, CROWD_ADDRESS));
        }
        send_request(&mut old);
        let open = usize::try_from(server.metric("tollgate_connections")).expect("a number");
        assert!(open <= MOST, "{habit:?}: {open} connections");
    }
}

/// Tiny requests on all connections, faster than any idle time that a server could set.
#[test]
fn busy_connections_of_others_are_no_reason_to_close_idle_ones() {
    let server = server_without_timeouts();
    let client = server.client();
    let mut old = client.from(API_SERVER_ADDRESS).connect().expect("connected");
    send_request(&mut old);
    let busy = |mut links: Vec<Link>| {
        while links.len() < MOST {
            links.extend(client.from(CROWD_ADDRESS).connect().ok());
        }
        links.retain_mut(|link| link.post("/validate", REVIEW).is_ok());
        links
    };
    let mut links = Vec::new();
    for _ in 0..5 {
        links = busy(links);
        send_request(&mut client.from(API_SERVER_ADDRESS).connect().expect("connected"));
    }
    send_request(&mut old);
}

/// Sends half a request, lets `others` connect, and sends the rest.
fn finishes_meanwhile(client: &Client, mut others: impl FnMut()) {
    let whole = request("POST", "/validate", "application/json", REVIEW);
    let mut link = client.connect().expect("connected");
    link.send(&whole[..whole.len() - 5]).expect("sent");
    others();
    link.send(&whole[whole.len() - 5..]).expect("still open");
    assert_eq!(link.receive().expect("an answer").status, 200);
}

#[test]
fn many_addresses_with_few_connections_each_do_not_interrupt_requests() {
    for habit in [SentPart::Silent, SentPart::Body, SentPart::Request] {
        let server = server_without_timeouts();
        let client = server.client();
        let mut crowd = Vec::new();
        let mut next = (1..=u8::MAX).cycle();
        let mut more = |count: usize| {
            for _ in 0..count {
                let from = Ipv4Addr::new(127, 0, 1, next.next().expect("a cycle"));
                crowd.extend(habit.open(&client, &server, from.into()));
            }
        };
        more(2 * MOST);
        let own = client.from(API_SERVER_ADDRESS);
        // With those that have ended and are not yet closed: no more than the part of one worker's connections from
        // which on their number counts, even if all of them are at the same worker.
        let mut several: Vec<Link> = (0..2).map(|_| own.connect().expect("connected")).collect();
        several.iter_mut().for_each(send_request);
        for _ in 0..2 {
            finishes_meanwhile(&own, || more(16));
        }
        several.iter_mut().for_each(send_request);
    }
}

/// If all connections come through one proxy, the address does not distinguish clients.
#[test]
fn at_the_same_address_requests_are_not_interrupted() {
    for habit in SentPart::ALL {
        let server = server_without_timeouts();
        let client = server.client().from(API_SERVER_ADDRESS);
        let mut crowd = Vec::new();
        let mut more = |count: usize| {
            crowd.extend((0..count).filter_map(|_| habit.open(&client, &server, API_SERVER_ADDRESS)));
        };
        more(2 * MOST);
        for _ in 0..4 {
            finishes_meanwhile(&client, || more(8));
        }
    }
}

#[test]
fn large_bodies_that_others_send_slowly_do_not_keep_large_ones_out() {
    let server = Running::start(|settings| {
        settings.limits.max_body = 1 << 20;
        settings.limits.max_connections = 200;
        settings.limits.max_memory = 84 << 20;
        settings.limits.body_timeout = Duration::from_mins(10);
    });
    let client = server.client();
    let mut body = REVIEW.to_vec();
    body.resize(1 << 20, b' ');
    let whole = request("POST", "/validate", "application/json", &body);
    let slow: Vec<Link> = (0..24)
        .map(|_| {
            let mut link = client.from(CROWD_ADDRESS).connect().expect("connected");
            // Some are refused before all of it is sent.
            let _ = link.send(&whole[..whole.len() - 1]);
            link
        })
        .collect();
    until("some to be refused", || server.metric("tollgate_shed_total") >= 1);
    for _ in 0..4 {
        let reply = client.from(API_SERVER_ADDRESS).post("/validate", &body).expect("an answer");
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    drop(slow);
}

/// Sends a request to the port without TLS. Returns the response and any bytes after it.
fn probe(server: &Running, from: IpAddr, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut socket = connect_from(from, server.ops).expect("connected");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
    socket.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).expect("sent");
    let mut text = String::new();
    socket.read_to_string(&mut text).expect("an answer, and the end");
    text
}

#[test]
fn probes_are_answered_whatever_others_do_on_their_port() {
    let server = server_without_timeouts();
    let answer = probe(&server, API_SERVER_ADDRESS, "/livez");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "not kept open: {answer}");
    let addresses: Vec<IpAddr> = (0..8).map(|last| Ipv4Addr::new(127, 0, 2, last + 1).into()).collect();
    for sent in ["", "GET /livez HTTP/1.1\r\nHo", "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"] {
        // From one address, and from several.
        for from in [&addresses[..1], &addresses[..]] {
            let mut held: Vec<TcpStream> = Vec::new();
            for number in 0..600 {
                use std::io::Write as _;
                let mut socket = connect_from(from[number % from.len()], server.ops).expect("connected");
                let _ = socket.write_all(sent.as_bytes());
                held.push(socket);
                if number % 100 == 99 {
                    for path in ["/livez", "/readyz"] {
                        let answer = probe(&server, API_SERVER_ADDRESS, path);
                        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
                        let answer = probe(&server, from[0], path);
                        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "the same address: {answer}");
                    }
                }
            }
        }
    }
}

/// One address can have at most a quarter of the connections to the probe port.
#[test]
fn an_address_has_a_bound_on_the_port_of_probes() {
    use std::io::Read as _;
    let server = server_without_timeouts();
    let mut held: Vec<TcpStream> =
        (0..100).map(|_| connect_from(CROWD_ADDRESS, server.ops).expect("connected")).collect();
    assert!(probe(&server, CROWD_ADDRESS, "/livez").contains("200 OK"));
    let ended = held.iter_mut().filter(|socket| {
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("set");
        matches!((&mut &**socket).read(&mut [0]), Ok(0))
    });
    let ended = ended.count();
    assert!((36..=40).contains(&ended), "{ended} of 100 ended");
}
