//! The worst request: every list, map, text and struct of every kind, long and wrong in every way that has a name,
//! asked about in every way there is.
//!
//! A plain program: `cargo bench --bench shapes [-- words of a row]`. It prints the worst rows and ends with 1 if a
//! bar is broken: extra memory 8 times the body (and 12 MiB), 1 s for the largest body that is checked (8 MiB, or as
//! many keys and values as a review may have), answer 1 MiB, ten times the body in twelve times the time.
//!
//! Time is noisy: what else runs, and what the process did before, makes a row slower and never faster. A row that
//! seems to grow too fast is measured again, then in processes of its own; a slope stays a slope in every one of
//! them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_macros,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a program for people"
)]

#[path = "../tests/engine/shapes/bodies.rs"]
mod bodies;

use std::process::{Command, ExitCode};

use bodies::{HostileField, RequestKind, Style};
use tollgate::{Endpoint, Engine, LabelsIfKnown, Profile, RuleSet, admit};
use tollgate_api::schema::FieldType;

/// Bytes of the bodies that are compared.
const SIZES: [usize; 2] = [80 << 10, 800 << 10];
/// Bytes of the largest body that the server takes.
const LARGE: usize = 8 << 20;
/// Keys and values of the largest review that is checked.
const MAX_NODES: usize = 327_680;
/// Rows that are asked again with large bodies.
const AGAIN: usize = 12;

/// The one with the most fields, the oldest and the newest.
const PROFILES: [&str; 3] = ["kep-5055", "1.33", "1.37"];

const MEMORY: f64 = 8.0;
const SECONDS: f64 = 1.0;
const ANSWER: usize = 1 << 20;
const GROWTH: f64 = 12.0;

/// Before the name of a row: print its growth, and nothing else.
const ALONE: &str = "--alone";
/// Processes that measure a row alone.
const PROCESSES: usize = 6;

struct Row {
    name: String,
    place: HostileField,
    style: Style,
    ask: RequestKind,
    profile: &'static Profile,
    growth: f64,
    measured: Measured,
}

#[derive(Clone, Copy)]
struct Measured {
    body: usize,
    /// Bytes of the largest body of this sort that is checked.
    largest: usize,
    seconds: f64,
    memory: u64,
    answer: usize,
}

impl Row {
    fn is_over(&self) -> bool {
        let found = self.measured;
        self.growth > GROWTH || found.memory() > MEMORY || found.seconds() > SECONDS || found.answer > ANSWER
    }

    fn print(&self) {
        let found = self.measured;
        println!(
            "{:>6.1} times the time, {:>6.2} s for the largest, {:>6.1} times the memory, {:>8} bytes said of {:>8}  {}",
            self.growth,
            found.seconds(),
            found.memory(),
            found.answer,
            found.body,
            self.name
        );
    }
}

impl Measured {
    /// But for what findings take, whatever the body.
    fn memory(&self) -> f64 {
        self.memory.saturating_sub(12 << 20) as f64 / self.body as f64
    }

    /// For the largest body that is checked, if it goes on like this.
    fn seconds(&self) -> f64 {
        self.seconds * (self.largest as f64 / self.body as f64)
    }
}

fn main() -> ExitCode {
    let is_alone = std::env::args().any(|word| word == ALONE);
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let mut rows = Vec::new();
    for name in PROFILES {
        let profile = Profile::named(name).expect("a profile");
        for place in bodies::places(profile) {
            for &style in Style::of(place.ty()) {
                // A text has no order.
                let asks =
                    if matches!(place.ty(), FieldType::List(_) | FieldType::Map { .. }) { 4 } else { 2 };
                for ask in RequestKind::ALL.into_iter().rev().take(asks) {
                    let name = format!("{} {} {style:?} {ask:?}", profile.name, place.name());
                    if is_alone && words.contains(&name) {
                        println!("{}", row(name, &place, style, ask, profile).growth);
                        return ExitCode::SUCCESS;
                    }
                    if !is_alone && words.iter().all(|word| name.contains(word.as_str())) {
                        let mut row = row(name, &place, style, ask, profile);
                        for _ in 0..PROCESSES {
                            if row.growth > GROWTH {
                                row.growth = row.growth.min(growth_alone(&row.name));
                            }
                        }
                        if row.is_over() {
                            row.print();
                        }
                        rows.push(row);
                    }
                }
            }
        }
    }
    println!("{} rows", rows.len());
    let mut broken = false;
    for (name, is_right) in [("expressions", true), ("wrong expressions", false)] {
        for bytes in SIZES.into_iter().chain([LARGE]) {
            let body = bodies::expressions(bytes, is_right);
            let found =
                measure_body(&body, Endpoint::Validate, Profile::named("kep-5055").expect("a profile"), 1);
            broken |= found.seconds > SECONDS || found.answer > ANSWER;
            println!(
                "{:>9.2} s {:>6.2} times the memory, {} bytes said of {}  {name}",
                found.seconds,
                found.memory(),
                found.answer,
                found.body
            );
        }
    }
    let mut show = |title: &str, by: fn(&Row) -> f64, bar: f64| {
        rows.sort_by(|one, other| by(other).total_cmp(&by(one)));
        println!("\n{title} (bar {bar})");
        for row in rows.iter().take(if words.is_empty() { 25 } else { 5 }) {
            println!("{:>9.2}  {:>8} bytes  {}", by(row), row.measured.body, row.name);
        }
        broken |= rows.first().is_some_and(|row| by(row) > bar);
    };
    show("ten times the body, times the time", |row| row.growth, GROWTH);
    show("answer, bytes", |row| row.measured.answer as f64, ANSWER as f64);
    show("extra memory, times the body", |row| row.measured.memory(), MEMORY);
    show("seconds for the largest body, estimated", |row| row.measured.seconds(), f64::INFINITY);
    println!(
        "\nthe slowest and those that take most, as large as they are checked: seconds, memory, answer (bars {SECONDS}, {MEMORY}, {ANSWER})"
    );
    for _ in 0..2 {
        for row in rows.iter().take(AGAIN) {
            let found = measure_largest(row);
            broken |= found.seconds > SECONDS || found.memory() > MEMORY || found.answer > ANSWER;
            println!(
                "{:>9.2} {:>6.2} {:>9} bytes said of {:>8}  {}",
                found.seconds,
                found.memory(),
                found.answer,
                found.body,
                row.name
            );
        }
        rows.sort_by(|one, other| other.measured.memory().total_cmp(&one.measured.memory()));
    }
    if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The growth of a row in a process of its own.
fn growth_alone(name: &str) -> f64 {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program).args([ALONE, name]).output().expect("this program runs");
    let text = String::from_utf8(output.stdout).expect("text");
    text.trim().parse().expect("a number")
}

/// Seconds that this thread was on the processor: a busy machine does not count.
fn on_processor() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn row(name: String, place: &HostileField, style: Style, ask: RequestKind, profile: &'static Profile) -> Row {
    // Small bodies are asked about more often: the first time is slower.
    let mut small = measure(place, style, ask, profile, SIZES[0], 8);
    let mut large = measure(place, style, ask, profile, SIZES[1], 2);
    // What takes no time is all noise; and bodies do not grow to the byte.
    let growth = |small: Measured, large: Measured| {
        let size = large.body as f64 / small.body as f64;
        if large.seconds < 0.01 { 0.0 } else { large.seconds / small.seconds * (10.0 / size) }
    };
    // A neighbour in the processor's caches makes a row slower, never faster: the best of more rounds.
    for _ in 0..3 {
        if growth(small, large) > GROWTH {
            small.seconds = small.seconds.min(measure(place, style, ask, profile, SIZES[0], 24).seconds);
            large.seconds = large.seconds.min(measure(place, style, ask, profile, SIZES[1], 6).seconds);
        }
    }
    let mut growth = growth(small, large);
    // A list past the budget of findings is looked at once more: that is a step, not a slope. It is seen beyond it.
    // Both sizes are measured in turn, so that a busy minute of the machine is not the larger one's alone.
    let (mut tenth, mut largest) = (None, None);
    for _ in 0..8 {
        if growth <= GROWTH {
            break;
        }
        let tenth = faster(&mut tenth, measure(place, style, ask, profile, large.largest / 10, 12));
        let largest = faster(&mut largest, measure(place, style, ask, profile, large.largest / 50 * 49, 4));
        growth = largest.seconds / tenth.seconds * (10.0 * tenth.body as f64 / largest.body as f64);
    }
    Row { name, place: place.clone(), style, ask, profile, growth, measured: large }
}

/// The faster of two measurements of the same body.
fn faster(best: &mut Option<Measured>, now: Measured) -> Measured {
    let best = best.get_or_insert(now);
    best.seconds = best.seconds.min(now.seconds);
    *best
}

/// The row with the largest body that is not refused for its keys and values.
fn measure_largest(row: &Row) -> Measured {
    let mut bytes = row.measured.largest;
    loop {
        let found = measure(&row.place, row.style, row.ask, row.profile, bytes, 2);
        if found.answer > 0 || bytes <= row.measured.body {
            return found;
        }
        bytes = bytes / 50 * 49;
    }
}

/// Keys and values of a text, counted by what stands between them.
fn nodes(json: &str) -> usize {
    let (mut count, mut in_text, mut is_escaped, mut before) = (1, false, false, b' ');
    for byte in json.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b',' | b':' | b'{' | b'[' if !in_text => count += 1,
            // An empty list or object has nothing that its opening stands for.
            b'}' | b']' if !in_text && matches!(before, b'{' | b'[') => count -= 1,
            _ => {}
        }
        before = byte;
    }
    count
}

fn measure(
    place: &HostileField,
    style: Style,
    ask: RequestKind,
    profile: &'static Profile,
    bytes: usize,
    rounds: usize,
) -> Measured {
    let endpoint = if ask == RequestKind::Mutate { Endpoint::Mutate } else { Endpoint::Validate };
    measure_body(&bodies::review(place, style, ask, bytes), endpoint, profile, rounds)
}

fn measure_body(body: &str, endpoint: Endpoint, profile: &'static Profile, rounds: usize) -> Measured {
    let largest = LARGE.min(body.len() * MAX_NODES / nodes(body));
    let mut seconds = f64::INFINITY;
    let (mut memory, mut answer) = (0, 0);
    for _ in 0..rounds {
        let engine = Engine::new(
            vec![profile],
            RuleSet::parse("upstream,documented,lint,decoding,strict").expect("origins"),
        );
        // Once per engine: a body that it has seen before costs less, and both sizes must be new to it.
        let started = on_processor();
        let counted = allocation_counter::measure(|| {
            answer =
                admit(&engine, body.as_bytes(), endpoint, "2026-11-15T03:04:05Z", &LabelsIfKnown::Unknown)
                    .map_or(0, |answer| answer.len());
        });
        seconds = (on_processor() - started).min(seconds);
        memory = counted.bytes_max;
    }
    Measured { body: body.len(), largest, seconds, memory, answer }
}
