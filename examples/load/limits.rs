//! `make limits`: the server at its limits, inside the memory of the manifest, and what others see of it.
//!
//! Everything at once: five thousand connections that send slowly, sixty-four bodies of the largest size, clients that
//! are denied at length and do not read it; and one that asks small things. Then more connections than there may be,
//! with a request now and then on each, and one at another address that asks. Ends with 1 if a bar is broken.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::client::{Client, Link, plain, request};
use crate::server::Server;
use crate::{millis, reviews};

/// The limit of the manifest, MiB.
const MEMORY_LIMIT_MIB: f64 = 256.0;
/// The longest that a small question may take, ms: a worker may be at work on a body of the largest size.
const MAX_LATENCY_MS: f64 = 2_000.0;
const SLOW_CONNECTIONS: usize = 5_000;
const LARGE_SENDERS: usize = 64;
const NON_READING_CLIENTS: usize = 128;
const TEST_DURATION: Duration = Duration::from_secs(20);
/// More than memory suffices for.
const BUSY_CONNECTIONS: usize = 6_000;
/// Between two requests on one of them.
const BUSY_INTERVAL: Duration = Duration::from_secs(6);

/// Outcomes of one kind of client.
#[derive(Default)]
struct RequestCounts {
    connected: AtomicUsize,
    answered: AtomicUsize,
    refused: AtomicUsize,
    ended: AtomicUsize,
}

impl RequestCounts {
    fn print_line(&self, name: &str) {
        let [connected, answered, refused, ended] =
            [&self.connected, &self.answered, &self.refused, &self.ended]
                .map(|count| count.load(Ordering::Relaxed));
        println!("{name:<40}{connected:>12}{answered:>10}{refused:>10}{ended:>10}");
    }
}

fn increment(count: &AtomicUsize) {
    count.fetch_add(1, Ordering::Relaxed);
}

/// True if all bars hold.
pub(crate) fn run(folder: &Path) -> bool {
    let everything = everything_at_once(folder);
    let busy = busy_connections(folder);
    println!("{}", if everything && busy { "all bars hold" } else { "a bar is broken" });
    everything && busy
}

fn everything_at_once(folder: &Path) -> bool {
    let server = Server::deployed(folder, &["--log-level", "off"]);
    let client = server.client();
    println!("memory, MiB (bar {MEMORY_LIMIT_MIB} for the peak)\n");
    println!("{:<40}{:>10}{:>10}{:>12}", "", "now", "peak", "of sockets");
    let show = |what: &str| {
        let (now, peak) = (server.resident("VmRSS"), server.resident("VmHWM"));
        println!("{what:<40}{now:>10.1}{peak:>10.1}{:>12.1}", socket_memory_mib());
    };
    show("idle");
    let over = AtomicBool::new(false);
    let (slow, large, denied) =
        (RequestCounts::default(), RequestCounts::default(), RequestCounts::default());
    let (mut times, mut failed) = (Vec::new(), 0);
    std::thread::scope(|scope| {
        let (client, over, slow, large, denied) = (&client, &over, &slow, &large, &denied);
        for part in 0..4 {
            scope.spawn(move || send_slowly(client, part, over, slow));
        }
        wait_until(|| slow.connected.load(Ordering::Relaxed) >= SLOW_CONNECTIONS, Duration::from_mins(1));
        show("with 5,000 that send slowly");
        for _ in 0..LARGE_SENDERS {
            scope.spawn(move || send_large(client, over, large));
        }
        for _ in 0..4 {
            scope.spawn(move || request_without_reading(client, over, denied));
        }
        (times, failed) = send_requests(client);
        show("with 64 large bodies, and deaf clients");
        over.store(true, Ordering::Relaxed);
    });
    std::thread::sleep(Duration::from_secs(3));
    show("3 s after");
    println!("\n{:<40}{:>12}{:>10}{:>10}{:>10}", "", "connections", "answered", "refused", "ended");
    slow.print_line("slow");
    large.print_line("large, 8 MiB");
    denied.print_line("not reading; \"answered\": bytes of one");
    let answers_hold = print_answers(times, failed);
    let held = plain(server.ops(), "GET", "/metrics", "").expect("metrics").text();
    let held: Vec<&str> = held.lines().filter(|line| line.starts_with("tollgate_held_bytes{")).collect();
    println!("{}", held.join("\n"));
    let given_back = held.iter().all(|line| line.ends_with(" 0"));
    server.resident("VmHWM") <= MEMORY_LIMIT_MIB && answers_hold && given_back
}

/// Connections of 127.0.0.2 that are never idle for long, more than there may be; the other client is at 127.0.0.1.
fn busy_connections(folder: &Path) -> bool {
    let server = Server::deployed(folder, &["--log-level", "off"]);
    let client = server.client();
    let others = client.from(Ipv4Addr::new(127, 0, 0, 2));
    let (over, counts) = (AtomicBool::new(false), RequestCounts::default());
    let (mut times, mut failed) = (Vec::new(), 0);
    let claim = reviews::claim();
    let mut kept = client.connect().expect("connected");
    let mut keeps = || kept.post("/validate", &claim).is_ok_and(|reply| reply.status == 200);
    let mut kept_open = keeps();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| send_now_and_then(&others, &over, &counts));
        }
        wait_until(|| counts.connected.load(Ordering::Relaxed) >= BUSY_CONNECTIONS, Duration::from_mins(1));
        (times, failed) = send_requests(&client);
        over.store(true, Ordering::Relaxed);
        kept_open &= keeps();
    });
    println!("\n{:<40}{:>12}{:>10}{:>10}{:>10}", "", "connections", "answered", "refused", "ended");
    counts.print_line("busy, of one address");
    println!("peak {:.1} MiB (bar {MEMORY_LIMIT_MIB})", server.resident("VmHWM"));
    println!("an idle connection of another address stays open (bar): {kept_open}");
    print_answers(times, failed) && kept_open && server.resident("VmHWM") <= MEMORY_LIMIT_MIB
}

/// Keeps its share of the busy connections: a small request on each, again and again.
fn send_now_and_then(client: &Client, over: &AtomicBool, counts: &RequestCounts) {
    let claim = reviews::claim();
    let mut links: Vec<Option<(Link, Instant)>> = (0..BUSY_CONNECTIONS / 4).map(|_| None).collect();
    while !over.load(Ordering::Relaxed) {
        for place in &mut links {
            if over.load(Ordering::Relaxed) {
                return;
            }
            if place.as_ref().is_some_and(|(_, asked)| asked.elapsed() < BUSY_INTERVAL) {
                continue;
            }
            let link = match place.take() {
                Some((link, _)) => Ok(link),
                None => client.connect().inspect(|_| increment(&counts.connected)),
            };
            let answered =
                link.and_then(|mut link| link.post("/validate", &claim).map(|reply| (link, reply)));
            match answered {
                Ok((link, reply)) => {
                    increment(if reply.status == 200 { &counts.answered } else { &counts.refused });
                    *place = Some((link, Instant::now()));
                }
                Err(_) => increment(&counts.ended),
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Prints how long answers took; true if the bars hold.
fn print_answers(mut times: Vec<Duration>, failed: usize) -> bool {
    times.sort();
    let [middle, late, most] =
        [times.len() / 2, times.len() * 99 / 100, times.len() - 1].map(|index| millis(times[index]));
    println!(
        "\n{} small questions meanwhile, ms: p50 {middle:.2}, p99 {late:.2}, most {most:.2} (bar {MAX_LATENCY_MS}); {failed} without an answer (bar 0)",
        times.len()
    );
    most <= MAX_LATENCY_MS && failed == 0
}

fn wait_until(mut holds: impl FnMut() -> bool, most: Duration) {
    let start = Instant::now();
    while !holds() && start.elapsed() < most {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Memory of all sockets of this machine, both ends.
fn socket_memory_mib() -> f64 {
    let text = std::fs::read_to_string("/proc/net/sockstat").expect("Linux");
    let pages =
        text.lines().find_map(|line| line.strip_prefix("TCP:")?.split(" mem ").nth(1)?.trim().parse().ok());
    pages.map(|pages: f64| pages * 4096.0 / 1_048_576.0).expect("pages of TCP")
}

/// Keeps its share of the slow connections: heads and bodies that come in small pieces, with pauses.
fn send_slowly(client: &Client, part: usize, over: &AtomicBool, counts: &RequestCounts) {
    let body = vec![b' '; 1 << 20];
    let whole = request("POST", "/validate", "application/json", &body);
    let mut links: Vec<Option<(Link, usize)>> = (0..SLOW_CONNECTIONS / 4).map(|_| None).collect();
    while !over.load(Ordering::Relaxed) {
        for (number, place) in links.iter_mut().enumerate() {
            if over.load(Ordering::Relaxed) {
                return;
            }
            match place {
                None => {
                    *place = client.connect().ok().map(|link| (link, 0));
                    increment(&counts.connected);
                }
                Some((link, sent)) => {
                    // Half of them dawdle over the head, half over the body.
                    let piece = if (number + part).is_multiple_of(2) { 10 } else { 300 };
                    if link.send(&whole[*sent..*sent + piece]).is_ok() {
                        *sent += piece;
                    } else {
                        increment(&counts.ended);
                        *place = None;
                    }
                }
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A body of the largest size, again and again; told to come back, it does.
fn send_large(client: &Client, over: &AtomicBool, counts: &RequestCounts) {
    let body = reviews::largest();
    while !over.load(Ordering::Relaxed) {
        let Ok(mut link) = client.connect() else {
            increment(&counts.ended);
            continue;
        };
        increment(&counts.connected);
        // Who is refused may not be able to send all of it, and still reads why.
        let sent = link.send(&request("POST", "/validate", "application/json", &body));
        match link.receive() {
            Ok(reply) if reply.status == 200 => increment(&counts.answered),
            Ok(reply) => {
                assert_eq!(reply.status, 503, "{}", reply.text());
                increment(&counts.refused);
            }
            Err(_) => {
                increment(&counts.ended);
                let _ = sent;
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Denied at length, and not listening.
fn request_without_reading(client: &Client, over: &AtomicBool, counts: &RequestCounts) {
    let body = reviews::denied();
    let reply = client.post("/validate", &body).map(|reply| reply.body.len());
    if let Ok(length) = reply {
        counts.answered.fetch_max(length, Ordering::Relaxed);
    }
    let whole = request("POST", "/validate", "application/json", &body);
    let mut links = std::collections::VecDeque::new();
    while !over.load(Ordering::Relaxed) {
        if let Ok(mut link) = client.connect() {
            increment(&counts.connected);
            let _ = link.send(&whole);
            links.push_back(link);
        }
        while links.len() > NON_READING_CLIENTS {
            links.pop_front();
            increment(&counts.ended);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What an API server asks: small things, mostly on a connection it has. How long the answers took, and how many
/// questions got none.
fn send_requests(client: &Client) -> (Vec<Duration>, usize) {
    let claim = reviews::claim();
    let start = Instant::now();
    let (mut times, mut failed) = (Vec::new(), 0);
    let mut link: Option<Link> = None;
    while start.elapsed() < TEST_DURATION {
        let began = Instant::now();
        let kept = link.take().filter(|_| times.len() % 16 > 0);
        let mut open = match kept.map_or_else(|| client.connect(), Ok) {
            Ok(open) => open,
            Err(error) => {
                failed += 1;
                println!("no connection: {error}");
                continue;
            }
        };
        match open.post("/validate", &claim) {
            Ok(reply) if reply.status == 200 => {
                times.push(began.elapsed());
                link = (!reply.closes()).then_some(open);
            }
            other => {
                failed += 1;
                println!("no answer: {:?}", other.map(|reply| reply.text()));
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    (times, failed)
}
