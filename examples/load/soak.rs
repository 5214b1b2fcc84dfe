//! `make soak MINUTES=N`: a long run with the requests of a real cluster, and what the server takes over time.
//!
//! One server, set up as by the manifests, with the cluster of `cluster.rs` and the requests of `mix.rs`. Every tenth
//! request opens a new connection. The policy file changes once a minute and the certificate every ten minutes. Every
//! ten seconds a line is written: memory, descriptors, threads, processor time and the latencies of these ten seconds.
//! The slopes count after the first sixth of the run: before that, caches fill.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::chart::{self, Sample};
use crate::client::Client;
use crate::cluster::{self, FLAGS, FakeCluster};
use crate::server::{self, Server};
use crate::{millis, mix};

/// Requests per second: those of a busy cluster.
const RATE: u32 = 200;
const CONNECTIONS: u32 = 4;
const INTERVAL: Duration = Duration::from_secs(10);
/// The most that memory may grow, in MiB an hour.
const MAX_SLOPE: f64 = 0.5;
/// So many requests of one connection, and then a new one.
const REQUESTS_PER_CONNECTION: u32 = 10;

#[derive(Default)]
struct Counts {
    /// Requests and whether they are small.
    times: Mutex<Vec<(Duration, bool)>>,
    failed: AtomicUsize,
    wrong: AtomicUsize,
    /// The first wrong answer.
    first: Mutex<Option<String>>,
}

/// Runs for so many minutes, writes `soak.csv` and `soak.svg`, and returns true if the bars hold.
pub(crate) fn run(folder: &Path, minutes: u64, out: &Path) -> bool {
    std::fs::create_dir_all(out).expect("a folder");
    let policies = folder.join("policies");
    cluster::write_policies(&policies);
    let mut cluster = FakeCluster::start("soak");
    let flags =
        [&FLAGS[..], &["--policy", policies.to_str().expect("UTF-8"), "--log-level", "info"]].concat();
    let server = Server::in_cluster(folder, &cluster.api_server, &flags, Path::new("/dev/null"), &[]);
    server.until_ready();
    let (over, counts) = (AtomicBool::new(false), Counts::default());
    let length = Duration::from_secs(minutes * 60);
    let mut samples = Vec::new();
    std::thread::scope(|scope| {
        for connection in 0..CONNECTIONS {
            let (client, over, counts) = (server.client(), &over, &counts);
            scope.spawn(move || send_mix(&client, connection, over, counts));
        }
        scope.spawn(|| {
            let start = Instant::now();
            for second in 1.. {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                cluster.next_second();
                std::thread::sleep(Duration::from_secs(second).saturating_sub(start.elapsed()));
            }
        });
        let start = Instant::now();
        let mut before = server.processor_time();
        for number in 1.. {
            if start.elapsed() >= length {
                break;
            }
            std::thread::sleep((INTERVAL * number).saturating_sub(start.elapsed()));
            if number % 6 == 0 {
                cluster::swap_policy_file(&policies, number);
            }
            if number % 60 == 0 {
                server::renew_certificate(folder);
            }
            let used = server.processor_time();
            samples.push(sample(&server, start.elapsed(), used.saturating_sub(before), &counts));
            before = used;
            std::fs::write(out.join("soak.csv"), chart::csv(&samples)).expect("written");
        }
        over.store(true, Ordering::Relaxed);
    });
    std::fs::write(out.join("soak.svg"), chart::picture(&samples)).expect("written");
    if let Some(first) = counts.first.lock().expect("no panic").take() {
        println!("the first wrong answer: {first}");
    }
    judge(&samples, &counts)
}

/// Sends its share of the requests, each at its time, whatever the answers take.
fn send_mix(client: &Client, connection: u32, over: &AtomicBool, counts: &Counts) {
    let mut samples = mix::samples();
    let deck = mix::deck(&samples);
    let pause = Duration::from_secs(1) * CONNECTIONS / RATE;
    let start = Instant::now();
    let mut link = None;
    for number in 0.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        std::thread::sleep((pause * number).saturating_sub(start.elapsed()));
        let turn = (number + connection * 25) as usize % deck.len();
        let sample = &mut samples[deck[turn]];
        let (is_small, expected, name) = (sample.is_small(), sample.expected, sample.name);
        let bytes = sample.bytes(number * CONNECTIONS + connection);
        let Ok(mut open) = link.take().map_or_else(|| client.connect(), Ok) else {
            counts.failed.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let sent = Instant::now();
        match open.send(bytes).and_then(|()| open.receive()) {
            Ok(reply) => {
                counts.times.lock().expect("no panic").push((sent.elapsed(), is_small));
                if !expected.is_met(&reply) {
                    counts.wrong.fetch_add(1, Ordering::Relaxed);
                    let mut first = counts.first.lock().expect("no panic");
                    first.get_or_insert_with(|| format!("{name}: {} {}", reply.status, reply.text()));
                }
                let is_last = number % REQUESTS_PER_CONNECTION == 0;
                link = (!reply.closes() && !is_last).then_some(open);
            }
            Err(_) => _ = counts.failed.fetch_add(1, Ordering::Relaxed),
        }
    }
}

fn sample(server: &Server, elapsed: Duration, used: Duration, counts: &Counts) -> Sample {
    let times = std::mem::take(&mut *counts.times.lock().expect("no panic"));
    let sorted = |wanted: &dyn Fn(bool) -> bool| {
        let mut part: Vec<Duration> =
            times.iter().filter(|(_, is_small)| wanted(*is_small)).map(|(time, _)| *time).collect();
        part.sort();
        part
    };
    let latency = |times: &[Duration], share: usize| {
        let at = (times.len() * share / 100).min(times.len().saturating_sub(1));
        times.get(at).copied().map_or(0.0, millis)
    };
    let (small, large) = (sorted(&|is_small| is_small), sorted(&|is_small| !is_small));
    Sample {
        seconds: elapsed.as_secs_f64(),
        memory_mib: server.resident("VmRSS"),
        descriptors: server.descriptors(),
        threads: server.threads(),
        processors: used.as_secs_f64() / INTERVAL.as_secs_f64(),
        p50_ms: latency(&small, 50),
        p99_ms: latency(&small, 99),
        large_p99_ms: latency(&large, 99),
        max_ms: times.iter().map(|(time, _)| *time).max().map_or(0.0, millis),
        requests: times.len(),
        failed: counts.failed.load(Ordering::Relaxed),
        wrong: counts.wrong.load(Ordering::Relaxed),
    }
}

fn judge(samples: &[Sample], counts: &Counts) -> bool {
    let warm = &samples[samples.len() / 6..];
    let memory = chart::slope(warm, |sample| sample.memory_mib);
    // Fewer are open while the API server is away, so only growth counts.
    let most = |part: &[Sample]| part.iter().map(|sample| sample.descriptors).max().unwrap_or(0);
    let median = |part: &[Sample]| {
        let mut late: Vec<f64> = part.iter().map(|sample| sample.p99_ms).collect();
        late.sort_by(f64::total_cmp);
        late[late.len() / 2]
    };
    let (first, second) = warm.split_at(warm.len() / 2);
    let (before, after) = (median(first), median(second));
    let (open_before, open_after) = (most(first), most(second));
    let requests: usize = samples.iter().map(|sample| sample.requests).sum();
    let (failed, wrong) = (counts.failed.load(Ordering::Relaxed), counts.wrong.load(Ordering::Relaxed));
    println!("{requests} requests, {failed} without an answer, {wrong} with a wrong one");
    println!(
        "memory {:.1} MiB at the end, slope {memory:+.2} MiB/h (bar {MAX_SLOPE})",
        samples.last().map_or(0.0, |last| last.memory_mib)
    );
    println!(
        "at most {open_before} descriptors in the first half, {open_after} in the second; p99 {before:.2} ms, {after:.2} ms"
    );
    memory <= MAX_SLOPE
        && open_after <= open_before + 2
        && after <= before * 1.5 + 0.5
        && failed == 0
        && wrong == 0
}
