//! `make load`: what the server costs, beside a bare one, on this machine and in this run.
//!
//! Loopback only and bounded in time (about two minutes). Server processor time (user + system) is read from /proc;
//! short rounds of the servers compared alternate, and the middle one of each is taken: a machine that is slower for a
//! while is slower for all of them. Prints one table per bar of the project.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "a program that measures, and builds JSON"
)]
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a measurement that fails ends")]
#![allow(dead_code, reason = "shares the client of the tests")]

#[path = "../../tests/support/balancer.rs"]
mod balancer;
mod chaos;
mod chart;
#[path = "../../tests/serve/client.rs"]
mod client;
mod cluster;
#[path = "../../tests/cluster/double.rs"]
mod double;
#[path = "../../tests/cluster/http.rs"]
mod http;
mod limits;
mod mix;
mod reviews;
#[path = "../../tests/serve/running.rs"]
mod running;
mod server;
mod slow_clients;
mod soak;

use std::time::{Duration, Instant};

use client::{Client, request};
use reviews::{CLASS_NAME, DEVICE_NAME};
use server::Server;

/// Rounds of each server; odd, for there is one in the middle.
const ROUNDS: usize = 25;
/// Connections of the load generator.
const CONNECTIONS: u32 = 8;

fn main() {
    let only: Option<String> = std::env::args().nth(1);
    if only.as_deref() == Some("ask") {
        return send_from_arguments();
    }
    let folder = std::env::temp_dir().join(format!("tollgate-load-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    server::make_certificates(&folder);
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if only.as_deref() == Some("limits") {
        let holds = limits::run(&folder);
        let _ = std::fs::remove_dir_all(folder);
        std::process::exit(i32::from(!holds));
    }
    if let Some(run @ ("chaos" | "soak")) = only.as_deref() {
        let holds = if run == "chaos" {
            chaos::run(&folder, &std::env::args().nth(2).unwrap_or_default())
        } else {
            let [minutes, out] =
                [2, 3].map(|place| std::env::args().nth(place).expect("load soak MINUTES FOLDER"));
            soak::run(&folder, minutes.parse().expect("a number"), std::path::Path::new(&out))
        };
        let _ = std::fs::remove_dir_all(folder);
        std::process::exit(i32::from(!holds));
    }
    if wanted("cpu") {
        processor_time(&folder);
    }
    if wanted("start") {
        start_to_ready(&folder);
    }
    if wanted("crowd") {
        slow_clients::run(&folder);
    }
    if wanted("memory") {
        memory(&folder);
    }
    let _ = std::fs::remove_dir_all(folder);
}

/// `load ask FOLDER ADDRESS claim|slice COUNT`: only sends requests, for profiling a server that is already running.
fn send_from_arguments() {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let authorities = std::fs::read_to_string(format!("{}/ca.crt", arguments[0])).expect("a CA");
    let client = Client::new(arguments[1].parse().expect("an address"), &authorities);
    let body = if arguments[2] == "slice" { reviews::slice() } else { reviews::claim() };
    send_requests(&client, &body, arguments[3].parse().expect("a count"));
}

/// Sends `count` requests over several connections; every response must be a 200 that allows.
pub(crate) fn send_requests(client: &Client, body: &[u8], count: u32) {
    send_stamped(client, body, count, |_, _| {});
}

/// The same with bytes that `stamp` may change before each request, given a number that no other request has.
fn send_stamped(client: &Client, body: &[u8], count: u32, stamp: impl Fn(&mut [u8], u32) + Sync) {
    let bytes = request("POST", "/validate?timeout=10s", "application/json", body);
    std::thread::scope(|scope| {
        for connection in 0..CONNECTIONS {
            let (mut bytes, stamp) = (bytes.clone(), &stamp);
            scope.spawn(move || {
                let mut link = client.connect().expect("connected");
                for round in 0..count / CONNECTIONS {
                    stamp(&mut bytes, round * CONNECTIONS + connection);
                    link.send(&bytes).expect("sent");
                    let reply = link.receive().expect("an answer");
                    assert_eq!(reply.status, 200, "{}", reply.text());
                    assert!(reply.body.ends_with(br#""allowed":true}}"#), "{}", reply.text());
                    if reply.closes() {
                        link = client.connect().expect("connected");
                    }
                }
            });
        }
    });
}

/// Writes a number after everything that begins so: names that were never there.
fn rename(bytes: &mut [u8], begins: &str, number: u32) {
    let digits = format!("{number:08}");
    let mut at = 0;
    while let Some(found) = find(&bytes[at..], begins.as_bytes()) {
        let start = at + found + begins.len();
        bytes[start..start + digits.len()].copy_from_slice(digits.as_bytes());
        at = start;
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

fn processor_time(folder: &std::path::Path) {
    println!("processor time of the server per request, µs (the middle of {ROUNDS} rounds, alternating)\n");
    println!("{:<48}{:>8}{:>10}{:>8}{:>8}", "", "µs", "floor", "ratio", "bar");
    let servers = [
        Server::floor(folder),
        Server::tollgate(folder, &["--log-level", "warn"], None),
        Server::tollgate(folder, &["--log-level", "info"], Some(&folder.join("log"))),
    ];
    let (claim, slice) = (reviews::claim(), reviews::slice());
    let bodies = [
        (format!("claim with CEL, {} bytes", claim.len()), claim, 8_000, [2.3, 2.8], CLASS_NAME),
        (format!("slice, {} bytes", slice.len()), slice, 320, [3.75, 3.75], DEVICE_NAME),
    ];
    let number = std::sync::atomic::AtomicU32::new(0);
    for (name, body, count, bars, renamed) in bodies {
        let mut rounds = [const { Vec::new() }; 3];
        for round in 0..=ROUNDS {
            for (index, server) in servers.iter().enumerate() {
                let before = server.processor_time();
                send_stamped(&server.client(), &body, count, |bytes, _| {
                    rename(bytes, renamed, number.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
                });
                let used =
                    server.processor_time().saturating_sub(before).as_secs_f64() * 1e6 / f64::from(count);
                // The first round warms up.
                if round > 0 {
                    rounds[index].push(used);
                }
            }
        }
        let middle = rounds.map(|mut rounds| {
            rounds.sort_by(f64::total_cmp);
            rounds[ROUNDS / 2]
        });
        for (index, what) in [(1, "no decision log"), (2, "JSON log to a file")] {
            let ratio = middle[index] / middle[0];
            let bar = bars[index - 1];
            println!("{:<48}{:>8.1}{:>10.1}{ratio:>8.2}{bar:>8.2}  {what}", name, middle[index], middle[0]);
        }
    }
    println!();
}

fn start_to_ready(folder: &std::path::Path) {
    let mut times: Vec<Duration> = (0..10)
        .map(|_| {
            let start = Instant::now();
            let server = Server::tollgate(folder, &["--log-level", "off"], None);
            while !client::plain(server.ops(), "GET", "/readyz", "").is_ok_and(|reply| reply.status == 200) {
                std::thread::yield_now();
            }
            start.elapsed()
        })
        .collect();
    times.sort();
    println!("start to ready, ms: median {:.1}, most {:.1} (bar 100)\n", millis(times[5]), millis(times[9]));
}

fn memory(folder: &std::path::Path) {
    let server = Server::tollgate(folder, &["--log-level", "warn"], None);
    let (client, claim, slice) = (server.client(), reviews::claim(), reviews::slice());
    println!("resident memory, MiB (bar 48, and no growth in the second half)\n");
    println!("{:>10}{:>10}{:>10}", "requests", "now", "peak");
    println!("{:>10}{:>10.1}{:>10.1}", 0, server.resident("VmRSS"), server.resident("VmHWM"));
    for tenth in 1..=10 {
        send_requests(&client, &claim, 19_000);
        send_requests(&client, &slice, 1_000);
        println!(
            "{:>10}{:>10.1}{:>10.1}",
            tenth * 20_000,
            server.resident("VmRSS"),
            server.resident("VmHWM")
        );
    }
    println!();
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
