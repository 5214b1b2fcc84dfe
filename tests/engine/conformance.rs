//! Parity with real API servers: every case of the corpus, judged exactly, compared error by error.
//!
//! The corpus (`tests/conformance`, never edited) holds objects and the answers of Kubernetes 1.34 to 1.37. Each test
//! prints a table of agreement per topic. While working: `CONFORMANCE_TOPIC=slice-capacity CONFORMANCE_DIFFS=10
//! cargo test --test engine conformance -- --nocapture` narrows the run and shows the differences.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::cast_precision_loss,
    reason = "prints the table; reads two variables for narrowing"
)]

use std::collections::{BTreeMap, BTreeSet};

use super::support::{self, corpus};
use tollgate_document::doc::{self, Value};
use tollgate_engine::engine::Verdict;

#[derive(Default, Clone, Copy)]
struct Score {
    cases: usize,
    verdict: usize,
    detailed: usize,
    fields: usize,
    texts: usize,
}

impl Score {
    fn add(&mut self, other: Score) {
        self.cases += other.cases;
        self.verdict += other.verdict;
        self.detailed += other.detailed;
        self.fields += other.fields;
        self.texts += other.texts;
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 100.0 } else { 100.0 * part as f64 / whole as f64 }
}

type Errors = (BTreeSet<(String, String)>, BTreeSet<String>);

fn expected_errors(expected: Value<'_>) -> Errors {
    let mut errors = Errors::default();
    for error in expected.get("errors").items() {
        errors.0.insert((error.get("type").str().to_owned(), error.get("field").str().to_owned()));
        errors.1.insert(error.get("rendered").str().to_owned());
    }
    errors
}

fn actual_errors(verdict: &Verdict) -> Errors {
    let mut errors = Errors::default();
    for diagnostic in verdict.findings() {
        let finding = &diagnostic.finding;
        errors.0.insert((finding.kind.cause_reason().to_owned(), finding.server_path()));
        errors.1.insert(format!("{}: {}", finding.server_path(), finding.server_message_without_path()));
    }
    errors
}

/// Topics whose bar is complete agreement.
fn is_core(topic: &str) -> bool {
    ["taint-", "toleration-", "rule-"].iter().any(|prefix| topic.starts_with(prefix))
        || ["devices-count-with-taints", "defaulting", "update-ratcheting", "decoding"].contains(&topic)
}

fn run(release: &str) {
    let only = std::env::var("CONFORMANCE_TOPIC").ok();
    let mut shown: usize = std::env::var("CONFORMANCE_DIFFS").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let (cases, expected) = (corpus("cases.jsonl"), corpus(&format!("expected-{release}.jsonl")));
    let mut scores: BTreeMap<String, Score> = BTreeMap::new();
    for (case, expected) in cases.lines().zip(expected.lines()) {
        let (case, expected) = (doc::parse(case).expect("JSON"), doc::parse(expected).expect("JSON"));
        let (case, expected) = (case.root(), expected.root());
        assert_eq!(case.get("id").str(), expected.get("id").str());
        let topic = case.get("topic").str();
        if only.as_deref().is_some_and(|only| only != topic) {
            continue;
        }
        let verdict = support::judge(release, "upstream,decoding", case);
        let agrees = Some(verdict.is_allowed()) == expected.get("valid").bool();
        let detailed = !expected.get("decodeError").exists() && !expected.get("panic").exists();
        let (want, got) = (expected_errors(expected), actual_errors(&verdict));
        let score = Score {
            cases: 1,
            verdict: usize::from(agrees),
            detailed: usize::from(detailed),
            fields: usize::from(detailed && agrees && want.0 == got.0),
            texts: usize::from(detailed && agrees && want.1 == got.1),
        };
        if shown > 0 && (!agrees || score.texts < score.detailed) {
            shown -= 1;
            let (id, note) = (case.get("id").str(), case.get("note").str());
            println!("{release} {id} ({note}) verdict {}", if agrees { "same" } else { "DIFFERS" });
            println!("  decodeError: {}", expected.get("decodeError").str());
            want.1.difference(&got.1).for_each(|text| println!("  - {text}"));
            got.1.difference(&want.1).for_each(|text| println!("  + {text}"));
        }
        scores.entry(topic.to_owned()).or_default().add(score);
    }
    report(release, &scores);
}

fn report(release: &str, scores: &BTreeMap<String, Score>) {
    let mut total = Score::default();
    let mut table =
        format!("{release:<28} {:>6} {:>9} {:>11} {:>9}\n", "cases", "verdict%", "type+field%", "rendered%");
    for (topic, score) in scores {
        total.add(*score);
        table.push_str(&line(topic, *score));
    }
    // Once: the releases are compared in parallel.
    println!("{table}{}", line("TOTAL", total));
    let missed: Vec<&String> = scores
        .iter()
        .filter(|(topic, score)| {
            is_core(topic) && (score.verdict < score.cases || score.texts < score.detailed)
        })
        .map(|(topic, _)| topic)
        .collect();
    assert!(missed.is_empty(), "{release}: core topics below complete agreement: {missed:?}");
}

fn line(name: &str, score: Score) -> String {
    format!(
        "{name:<28} {:>6} {:>9.2} {:>11.2} {:>9.2}\n",
        score.cases,
        percent(score.verdict, score.cases),
        percent(score.fields, score.detailed),
        percent(score.texts, score.detailed)
    )
}

#[test]
fn agrees_with_every_release() {
    std::thread::scope(|scope| {
        let runs = support::RELEASES.map(|release| scope.spawn(move || run(release)));
        for run in runs {
            run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}

#[test]
fn every_release_has_a_row_in_the_documents() {
    let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/understand/conformance.md"));
    for release in support::RELEASES {
        assert!(
            page.contains(&format!("| {release} |")),
            "docs/understand/conformance.md has no row for {release}"
        );
    }
}
