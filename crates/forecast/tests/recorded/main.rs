//! The recorded scenarios: what a real scheduler and its controllers did, in two releases, and what the forecast says.
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]
#![allow(
    clippy::print_stdout,
    clippy::disallowed_macros,
    reason = "the table is printed for those who look at it"
)]

mod cases;
mod laws;
mod scenario;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read as _;
use tollgate_allocator::AllocatorSemantics;
use tollgate_api::profile::Profile;
use tollgate_cel::evaluate::{BEHAVIOUR_V1_36, BEHAVIOUR_V1_37};
use tollgate_document::doc::parse;
use tollgate_forecast::SimulatedRelease;

const SCENARIOS: &[u8] = include_bytes!("scenarios.jsonl.gz");

/// Number of results that agree with the recording.
#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Agreement {
    /// Number of compared pods, counted once for each recorded outcome.
    pub(crate) pods: u32,
    pub(crate) bound: u32,
    pub(crate) places: u32,
    pub(crate) messages: u32,
}

/// The agreement by topic, and the differences.
#[derive(Default)]
pub(crate) struct Table {
    topics: BTreeMap<String, Agreement>,
    differences: Vec<String>,
}

impl Table {
    pub(crate) fn topic(&mut self, name: &str) -> &mut Agreement {
        self.topics.entry(name.to_owned()).or_default()
    }

    pub(crate) fn differs(&mut self, what: String) {
        self.differences.push(what);
    }

    fn total(&self) -> Agreement {
        self.topics.values().fold(Agreement::default(), |sum, a| Agreement {
            pods: sum.pods + a.pods,
            bound: sum.bound + a.bound,
            places: sum.places + a.places,
            messages: sum.messages + a.messages,
        })
    }

    fn print(&self) -> String {
        let mut text =
            format!("{:22} {:>5} {:>5} {:>6} {:>8}\n", "topic", "pods", "bound", "places", "messages");
        let total = ("all".to_owned(), self.total());
        for (topic, a) in self.topics.iter().chain([(&total.0, &total.1)]) {
            let Agreement { pods, bound, places, messages } = a;
            let _ = writeln!(text, "{topic:22} {pods:5} {bound:5} {places:6} {messages:8}");
        }
        text
    }

    /// Asserts that everything agrees, except for the listed messages.
    fn assert_agrees(&self, pods: u32, other_messages: &[&str]) {
        print!("{}", self.print());
        let unexpected: Vec<&String> = self
            .differences
            .iter()
            .filter(|difference| !other_messages.iter().any(|other| difference.starts_with(other)))
            .collect();
        let shown = unexpected.iter().take(40).map(|text| text.as_str()).collect::<Vec<_>>().join("\n");
        assert!(unexpected.is_empty(), "{}\n{} differ:\n{shown}", self.print(), unexpected.len());
        assert_eq!(self.total().pods, pods, "{}", self.print());
    }
}

pub(crate) fn releases() -> [(&'static str, SimulatedRelease); 2] {
    let release = |name: &str, semantics, behaviour| SimulatedRelease {
        profile: Profile::named(name).expect("a release"),
        semantics,
        behaviour,
    };
    [
        ("1.36", release("1.36", AllocatorSemantics::V1_36, BEHAVIOUR_V1_36)),
        ("1.37", release("1.37", AllocatorSemantics::V1_37_0, BEHAVIOUR_V1_37)),
    ]
}

pub(crate) fn unzip(bytes: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes).read_to_string(&mut text).expect("gzip");
    text
}

#[test]
fn recorded_scenarios() {
    let mut table = Table::default();
    for line in unzip(SCENARIOS).lines() {
        let doc = parse(line).expect("JSON");
        for (name, release) in releases() {
            scenario::compare(doc.root(), name, release, &mut table);
        }
    }
    // Which of two slices that disagree is listed first is random in both releases. The three recorded plays of 1.36
    // went the same way; when 1.36.4 played it sixteen more times, one play went the other way, as the forecast says.
    // And preemption, by which a pod gets its node, is not modelled: the forecast says so.
    let other = ["pools-14-counts-disagree 1.36 ", "scarcity-07-cpu-preemption-with-device "];
    table.assert_agrees(555, &other);
}

#[test]
fn recorded_allocator_cases() {
    let mut table = Table::default();
    for line in unzip(cases::CASES).lines() {
        let doc = parse(line).expect("JSON");
        for (name, release) in releases() {
            cases::compare(doc.root(), name, release, &mut table);
        }
    }
    table.assert_agrees(4000, &[]);
}
