//! Latency of one client next to five thousand slow or silent connections.

use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::client::{Client, Link, request};
use crate::server::Server;
use crate::{millis, reviews};

/// Connections of each of the five kinds.
const CONNECTIONS_PER_KIND: usize = 1_000;
const REQUESTS: usize = 1_500;

/// Connections that are held open.
struct SlowClients {
    links: Vec<Link>,
    sockets: Vec<TcpStream>,
}

pub(crate) fn run(folder: &Path) {
    let server = Server::tollgate(folder, &["--log-level", "off"], None);
    let client = server.client();
    println!(
        "answers beside {} slow or silent connections, ms ({REQUESTS} questions, one at a time)\n",
        5 * CONNECTIONS_PER_KIND
    );
    println!("{:<26}{:>8}{:>8}{:>8}{:>22}", "", "p50", "p99", "most", "open before, after");
    measure("alone", &client, &server, 0);
    let slow = connect_all(&server, &client);
    measure("in the crowd", &client, &server, slow.sockets.len());
    drop((slow.links, slow.sockets));
    println!("(bars: p50 twice that of alone, none over 250)\n");
}

/// Opens those with the longest timeout first, so that all of them are open for some seconds.
fn connect_all(server: &Server, client: &Client) -> SlowClients {
    let claim = reviews::claim();
    let whole = request("POST", "/validate", "application/json", &claim);
    let mut slow = SlowClients { links: Vec::new(), sockets: Vec::new() };
    // One request and then nothing, and a handshake with nothing after it: 120 s. Half a body: 10 s. Half a head: 5 s.
    for sent in [whole.len(), 0, whole.len() - 100, 40] {
        let link = || {
            let mut link = client.connect().expect("connected");
            link.send(&whole[..sent]).expect("sent");
            if sent == whole.len() {
                assert_eq!(link.receive().expect("an answer").status, 200);
            }
            link
        };
        let links = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| (0..CONNECTIONS_PER_KIND / 4).map(|_| link()).collect::<Vec<_>>()))
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("connected")).collect::<Vec<_>>()
        });
        slow.links.extend(links);
    }
    // Not even a handshake: 5 s.
    for _ in 0..CONNECTIONS_PER_KIND {
        slow.sockets.push(TcpStream::connect(server.address()).expect("connected"));
    }
    slow
}

/// Every fourth request uses a new connection, handshake included.
fn latencies(client: &Client) -> Vec<Duration> {
    let claim = reviews::claim();
    let mut link = client.connect().expect("connected");
    (0..REQUESTS)
        .map(|number| {
            let start = Instant::now();
            if number % 4 == 0 {
                link = client.connect().expect("connected");
            }
            assert_eq!(link.post("/validate", &claim).expect("an answer").status, 200);
            start.elapsed()
        })
        .collect()
}

/// `silent` connections have had no handshake; the server does not count them among its own.
fn measure(name: &str, client: &Client, server: &Server, silent: usize) {
    let open = || {
        let metrics = crate::client::plain(server.ops(), "GET", "/metrics", "").expect("metrics").text();
        let count = metrics.lines().find_map(|line| line.strip_prefix("tollgate_connections "));
        silent + count.and_then(|count| count.parse::<usize>().ok()).expect("a gauge")
    };
    let before = open();
    let mut times = latencies(client);
    let open = format!("{before}, {}", open());
    times.sort();
    println!(
        "{name:<26}{:>8.2}{:>8.2}{:>8.2}{open:>22}",
        millis(times[times.len() / 2]),
        millis(times[times.len() * 99 / 100]),
        millis(times[times.len() - 1])
    );
}
