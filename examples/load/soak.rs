//! `make soak MINUTES=N`: a long run with the requests of a real cluster, and what the server takes over time.
//!
//! Ninety of a hundred requests are claims, seven are slices of a driver, two are denied claims, and one is a slice with a
//! long answer. The policies change once a minute and the certificate every ten minutes. Every ten seconds a line is
//! written: memory, descriptors, threads and the latencies of these ten seconds. The slopes count after the first sixth
//! of the run: before that, caches fill.
#![expect(clippy::cast_precision_loss, reason = "numbers for a chart")]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::client::{Client, request};
use crate::server::{self, Server};
use crate::{millis, rename, reviews};

/// Requests per second: those of a busy cluster.
const RATE: u32 = 200;
const CONNECTIONS: u32 = 4;
const INTERVAL: Duration = Duration::from_secs(10);
/// The most that memory may grow, in MiB an hour.
const MAX_SLOPE: f64 = 0.5;

/// What was seen in one interval.
struct Sample {
    seconds: f64,
    memory_mib: f64,
    descriptors: usize,
    threads: usize,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    requests: usize,
}

#[derive(Default)]
struct Counts {
    times: Mutex<Vec<Duration>>,
    failed: AtomicUsize,
    wrong: AtomicUsize,
}

/// Runs for so many minutes, writes `soak.csv` and `soak.svg`, and returns true if the bars hold.
pub(crate) fn run(folder: &Path, minutes: u64, out: &Path) -> bool {
    let policies = folder.join("policies");
    std::fs::create_dir_all(&policies).expect("a folder");
    write_policy(&policies, 0);
    let policies_flag = policies.display().to_string();
    let server = Server::deployed(folder, &["--log-level", "warn", "--policies", &policies_flag]);
    let (over, counts) = (AtomicBool::new(false), Counts::default());
    let length = Duration::from_secs(minutes * 60);
    let mut samples = Vec::new();
    std::thread::scope(|scope| {
        for connection in 0..CONNECTIONS {
            let (client, over, counts) = (server.client(), &over, &counts);
            scope.spawn(move || send_mix(&client, connection, over, counts));
        }
        let start = Instant::now();
        let mut number = 0;
        while start.elapsed() < length {
            std::thread::sleep(INTERVAL);
            number += 1;
            if number % 6 == 0 {
                write_policy(&policies, number);
            }
            if number % 60 == 0 {
                server::renew_certificate(folder);
            }
            samples.push(sample(&server, start.elapsed(), &counts));
        }
        over.store(true, Ordering::Relaxed);
    });
    std::fs::create_dir_all(out).expect("a folder");
    std::fs::write(out.join("soak.csv"), csv(&samples)).expect("written");
    std::fs::write(out.join("soak.svg"), picture(&samples)).expect("written");
    judge(&samples, &counts)
}

fn write_policy(folder: &Path, number: u32) {
    let text = format!(
        "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {{name: soak}}\nspec:\n  match: {{namespaces: [\"other-{number}\"]}}\n  deny:\n  - {{key: example.com/never}}\n"
    );
    let file = folder.join("policy.yaml");
    std::fs::write(file.with_extension("new"), text).expect("written");
    std::fs::rename(file.with_extension("new"), file).expect("renamed");
}

/// Sends its share of the requests, each at its time, whatever the answers take.
fn send_mix(client: &Client, connection: u32, over: &AtomicBool, counts: &Counts) {
    let as_request = |body: &[u8]| request("POST", "/validate?timeout=10s", "application/json", body);
    let (mut claim, mut slice) = (as_request(&reviews::claim()), as_request(&reviews::slice()));
    let refused_claim = String::from_utf8(reviews::claim())
        .expect("UTF-8")
        .replace("\"operator\":\"Exists\"", "\"operator\":\"Never!\"");
    let (refused_claim, denied) = (as_request(refused_claim.as_bytes()), as_request(&reviews::denied()));
    let pause = Duration::from_secs(1) * CONNECTIONS / RATE;
    let (start, mut number) = (Instant::now(), 0_u32);
    let mut link = None;
    while !over.load(Ordering::Relaxed) {
        let due = pause * number;
        if let Some(early) = due.checked_sub(start.elapsed()) {
            std::thread::sleep(early);
        }
        number += 1;
        let unique = number * CONNECTIONS + connection;
        let (bytes, is_allowed) = match unique % 100 {
            0 => (&denied, false),
            1 | 2 => (&refused_claim, false),
            3..=9 => {
                rename(&mut slice, reviews::DEVICE_NAME, unique);
                (&slice, true)
            }
            _ => {
                rename(&mut claim, reviews::CLASS_NAME, unique);
                (&claim, true)
            }
        };
        let sent = Instant::now();
        let Ok(mut open) = link.take().map_or_else(|| client.connect(), Ok) else {
            counts.failed.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        match open.send(bytes).and_then(|()| open.receive()) {
            Ok(reply) => {
                counts.times.lock().expect("no panic").push(sent.elapsed());
                let allowed = reply.text().contains("\"allowed\":true");
                if reply.status != 200 || allowed != is_allowed {
                    counts.wrong.fetch_add(1, Ordering::Relaxed);
                }
                link = (!reply.closes()).then_some(open);
            }
            Err(_) => _ = counts.failed.fetch_add(1, Ordering::Relaxed),
        }
    }
}

fn sample(server: &Server, elapsed: Duration, counts: &Counts) -> Sample {
    let mut times = std::mem::take(&mut *counts.times.lock().expect("no panic"));
    times.sort();
    let at = |share: usize| times.get((times.len() * share / 100).min(times.len().saturating_sub(1)));
    let latency = |share: usize| at(share).copied().map_or(0.0, millis);
    Sample {
        seconds: elapsed.as_secs_f64(),
        memory_mib: server.resident("VmRSS"),
        descriptors: server.descriptors(),
        threads: server.threads(),
        p50_ms: latency(50),
        p99_ms: latency(99),
        max_ms: times.last().copied().map_or(0.0, millis),
        requests: times.len(),
    }
}

fn csv(samples: &[Sample]) -> String {
    let mut out = "seconds,memory_mib,descriptors,threads,p50_ms,p99_ms,max_ms,requests\n".to_owned();
    for sample in samples {
        let Sample { seconds, memory_mib, descriptors, threads, p50_ms, p99_ms, max_ms, requests } = sample;
        _ = writeln!(
            out,
            "{seconds:.0},{memory_mib:.2},{descriptors},{threads},{p50_ms:.3},{p99_ms:.3},{max_ms:.3},{requests}"
        );
    }
    out
}

/// Slope of a least-squares line, in units an hour.
fn slope(samples: &[Sample], value: impl Fn(&Sample) -> f64) -> f64 {
    let count = samples.len() as f64;
    let mean = |value: &dyn Fn(&Sample) -> f64| samples.iter().map(value).sum::<f64>() / count;
    let (middle, level) = (mean(&|sample| sample.seconds), mean(&value));
    let above: f64 = samples.iter().map(|sample| (sample.seconds - middle) * (value(sample) - level)).sum();
    let below: f64 = samples.iter().map(|sample| (sample.seconds - middle).powi(2)).sum();
    3_600.0 * above / below.max(1.0)
}

fn judge(samples: &[Sample], counts: &Counts) -> bool {
    let warm = &samples[samples.len() / 6..];
    let memory = slope(warm, |sample| sample.memory_mib);
    let descriptors = warm.iter().map(|sample| sample.descriptors);
    let (fewest, most) = (descriptors.clone().min().unwrap_or(0), descriptors.max().unwrap_or(0));
    let half = |part: &[Sample]| {
        let mut late: Vec<f64> = part.iter().map(|sample| sample.p99_ms).collect();
        late.sort_by(f64::total_cmp);
        late[late.len() / 2]
    };
    let (first, second) = warm.split_at(warm.len() / 2);
    let (before, after) = (half(first), half(second));
    let requests: usize = samples.iter().map(|sample| sample.requests).sum();
    let (failed, wrong) = (counts.failed.load(Ordering::Relaxed), counts.wrong.load(Ordering::Relaxed));
    println!("{requests} requests, {failed} without an answer, {wrong} with a wrong one");
    println!(
        "memory {:.1} MiB at the end, slope {memory:+.2} MiB/h (bar {MAX_SLOPE})",
        samples.last().map_or(0.0, |last| last.memory_mib)
    );
    println!(
        "descriptors {fewest} to {most}; p99 {before:.2} ms in the first half, {after:.2} ms in the second"
    );
    memory <= MAX_SLOPE && most <= fewest + 8 && after <= before * 1.5 + 0.5 && failed == 0 && wrong == 0
}

/// Three charts, one below the other: memory, descriptors, latencies.
fn picture(samples: &[Sample]) -> String {
    const WIDTH: f64 = 720.0;
    const HEIGHT: f64 = 120.0;
    const GAP: f64 = 44.0;
    type Line<'a> = (&'a str, &'a str, Box<dyn Fn(&Sample) -> f64 + 'a>);
    let charts: [(&str, Vec<Line<'_>>); 3] = [
        ("memory, MiB", vec![("memory", "#0969da", Box::new(|sample| sample.memory_mib))]),
        ("file descriptors", vec![("descriptors", "#0969da", Box::new(|sample| sample.descriptors as f64))]),
        (
            "latency, ms",
            vec![
                ("p50", "#0969da", Box::new(|sample| sample.p50_ms)),
                ("p99", "#bc4c00", Box::new(|sample| sample.p99_ms)),
            ],
        ),
    ];
    let end = samples.last().map_or(1.0, |last| last.seconds);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n<title>Soak run of {:.0} minutes</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        WIDTH + 70.0,
        3.0 * (HEIGHT + GAP),
        end / 60.0
    );
    for (index, (title, lines)) in charts.iter().enumerate() {
        let top = index as f64 * (HEIGHT + GAP) + 24.0;
        let values = samples.iter().flat_map(|sample| lines.iter().map(move |(_, _, value)| value(sample)));
        let highest = values.fold(0.0_f64, f64::max).max(0.001) * 1.1;
        _ = writeln!(out, "<text x=\"50\" y=\"{:.0}\">{title}</text>", top - 8.0);
        for part in 0..=2 {
            let (y, value) = (top + HEIGHT * f64::from(part) / 2.0, highest * f64::from(2 - part) / 2.0);
            _ = writeln!(
                out,
                "<path d=\"M50 {y:.1}h{WIDTH}\" stroke=\"#d0d7de\"/><text x=\"44\" y=\"{:.1}\" text-anchor=\"end\">{value:.1}</text>",
                y + 4.0
            );
        }
        for (place, (name, color, value)) in lines.iter().enumerate() {
            let point = |sample: &Sample| {
                let (x, y) =
                    (50.0 + WIDTH * sample.seconds / end, top + HEIGHT * (1.0 - value(sample) / highest));
                format!("{x:.1},{y:.1}")
            };
            let points: Vec<String> = samples.iter().map(point).collect();
            _ = writeln!(out, "<polyline fill=\"none\" stroke=\"{color}\" points=\"{}\"/>", points.join(" "));
            if lines.len() > 1 {
                _ = writeln!(
                    out,
                    "<text x=\"{}\" y=\"{:.0}\" fill=\"{color}\">{name}</text>",
                    150 + 50 * place,
                    top - 8.0
                );
            }
        }
        _ = writeln!(
            out,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{:.0} min</text>",
            50.0 + WIDTH,
            top + HEIGHT + 14.0,
            end / 60.0
        );
    }
    out + "</svg>\n"
}
