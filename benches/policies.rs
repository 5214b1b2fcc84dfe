//! How soon a hostile policy or a hostile object is stopped.
//!
//! First expressions that would run for minutes, against an object with a list of 10,000 items, 40,000 labels and a
//! text of 200,000 letters: for each the best and the worst of a few whole requests through `engine::admit`, less what
//! the request costs without it. Then objects with as many tolerations, taints, parameters or requests as a review may
//! have (`policies/crowded.rs`), against policies with 500 entries.
//!
//! A plain program: `cargo bench --bench policies`. It ends with 1 if a best is over the bar.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_macros,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a program for people"
)]
#![expect(clippy::disallowed_methods, reason = "measures time")]

#[path = "policies/crowded.rs"]
mod crowded;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tollgate::{Endpoint, Engine, LabelsIfKnown, PolicyFile, PolicySet, RuleSet, admit};

/// What one expression may take.
const BAR: Duration = Duration::from_millis(50);
/// What a request with a crowded object may take, rules of the API server and lints included.
const CROWDED_BAR: Duration = Duration::from_secs(1);
const ROUNDS: usize = 7;

/// `l` is a list of 10,000 short texts, `s` a text of 200,000 letters, `m` a map of 40,000 labels.
const EXPRESSIONS: &[&str] = &[
    "l.all(a, l.all(b, l.all(c, a + b + c != '')))",
    "l.all(a, l.all(b, true))",
    "l.all(a, l.exists(b, b > a || true)) || l.map(a, l.map(b, b)).size() > 0",
    "l.map(a, l.map(b, l.map(c, c))).size() > 0",
    "l.filter(a, l.filter(b, l.filter(c, false).size() > 0).size() > 0).size() == 0",
    "l.exists_one(a, l.exists_one(b, b == a))",
    "l.all(a, l == l) || true",
    "l.all(a, object == object)",
    "l.all(a, a in l)",
    "l.all(a, s.contains('b') || true)",
    "l.all(a, s.split('').size() > 0)",
    "l.all(a, s.matches('(a+)+$'))",
    "s.matches('((a{0,50}){0,50})b') || s.matches('(a|aa)+$')",
    "l.all(a, 'x'.matches('(y{50}){50}' + a) || true)",
    "l.all(a, s.find('(a+)+b') == '')",
    "s.findAll('.*[^a]|a').size() > 0",
    "s.findAll('').size() > 0",
    "s.replace('a', s).size() > 0",
    "l.map(a, s).join(s).size() > 0",
    "l.map(a, s + s).size() > 0",
    "l.map(a, s).sum().size() > 0",
    "l.map(a, l).sum().size() > 0",
    "l.all(a, l.isSorted() || l.max() > l.min())",
    "l.all(a, l.indexOf('-') == l.lastIndexOf('-'))",
    "sets.equivalent(l, l) && sets.intersects(l, l.map(a, a + '-'))",
    "l.all(a, '%s %s'.format([l, object]).size() > 0)",
    "l.all(a, l.all(b, '%.100f'.format([1e300]).size() > 0))",
    "l.all(a, l.all(b, quantity('1e-1000').add(quantity('1e1000')).sub(1).sign() == 1))",
    "l.all(a, l.all(b, quantity('1e1000000000').asApproximateFloat() > 1.0))",
    "l.all(a, l.all(b, timestamp('2026-01-01T00:00:00Z') + duration('1h') > timestamp(1)))",
    "l.all(a, l.all(b, ip('::1') == ip('::2') || semver('1.2.3').isLessThan(semver('1.2.4'))))",
    "l.all(a, isQuantity(s) || isSemver(s) || isIP(s) || isCIDR(s))",
    "l.all(a, strings.quote(s).size() > 0)",
    "m == oldObject.metadata.labels",
    "m.all(a, a in oldObject.metadata.labels)",
    "l.all(a, has(object.metadata.labels.x) || a in m || true)",
    "s.indexOf(s.substring(100000) + 'b') == -1",
    "s.matches('[ab]*a[ab]{200}c') || s.matches('(.{0,100}a){5}c')",
    "[s + 'x'].map(big, l.map(a, big)).size() > 0",
];

fn policy(name: usize, expression: &str) -> String {
    let body = json!({"apiVersion": "tollgate.dev/v1alpha1", "kind": "TolerationPolicy",
        "metadata": {"name": format!("p{name}")}, "spec": {"validations": [{"expression": expression}]}});
    format!("{body}\n---\n")
}

/// The short names written out.
fn whole(expression: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    for letter in expression.chars().chain(['\0']) {
        if letter.is_ascii_alphanumeric() || letter == '_' {
            word.push(letter);
            continue;
        }
        let quoted = out.ends_with(['\'', '.', '%', '[']);
        out.push_str(match word.as_str() {
            "l" if !quoted || out.ends_with('[') => "object.metadata.finalizers",
            "s" if !quoted => "object.metadata.annotations.s",
            "m" if !quoted => "object.metadata.labels",
            other => other,
        });
        word.clear();
        if letter != '\0' {
            out.push(letter);
        }
    }
    out
}

fn load(texts: &[String], rules: &str) -> Result<Engine, String> {
    let text = PolicyFile { name: "p.yaml".to_owned(), text: texts.concat() };
    let set = PolicySet::load(&[text], &|_| Err("no files".to_owned()));
    let set = set.map_err(|errors| errors.iter().map(ToString::to_string).collect::<String>())?;
    let rules = RuleSet::parse(rules)?;
    Ok(Engine::new(vec![tollgate::Profile::DEFAULT], rules).with_policies(Arc::new(set)))
}

/// Best and worst of a few requests, and the last answer.
fn measure(engine: &Engine, review: &[u8], endpoint: Endpoint) -> (Duration, Duration, String) {
    let mut times = Vec::new();
    let mut answer = Vec::new();
    for _ in 0..ROUNDS {
        let before = Instant::now();
        answer = admit(engine, review, endpoint, "2026-06-01T00:00:00Z", &LabelsIfKnown::Unknown).unwrap();
        times.push(before.elapsed());
    }
    (*times.iter().min().unwrap(), *times.iter().max().unwrap(), String::from_utf8(answer).unwrap())
}

/// Prints a line for each crowded object; the slowest.
fn measure_crowded() -> Duration {
    println!("\n{:>10} {:>10} {:>10} {:>9}  objects against 500 entries", "best", "worst", "body", "answer");
    let mut slowest = Duration::ZERO;
    for row in crowded::rows() {
        let engine = load(&[row.policies], "upstream,documented,lint,decoding,strict,policy").unwrap();
        let (best, most, answer) = measure(&engine, row.review.as_bytes(), row.endpoint);
        slowest = slowest.max(best);
        println!("{best:>10.1?} {most:>10.1?} {:>10} {:>9}  {}", row.review.len(), answer.len(), row.name);
    }
    slowest
}

fn main() -> ExitCode {
    let names: Vec<String> = (0..10_000).map(|number| format!("example.com/f{number}")).collect();
    let labels: serde_json::Map<_, _> = (0..40_000).map(|number| (number.to_string(), json!(""))).collect();
    let object = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "n", "finalizers": names, "annotations": {"s": "a".repeat(200_000)},
            "labels": labels},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "g"}}]}}});
    let mut old = object.clone();
    old["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = json!("h");
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "UPDATE", "object": object, "oldObject": old, "namespace": "n", "name": "c",
        "kind": {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"},
        "resource": {"group": "resource.k8s.io", "version": "v1", "resource": "resourceclaims"}}})
    .to_string()
    .into_bytes();
    let (bare, _, _) = measure(&load(&[policy(0, "true")], "policy").unwrap(), &review, Endpoint::Validate);
    println!(
        "{bare:>10.1?} for the request with the expression `true`; the rest is what an expression adds\n"
    );
    println!("{:>10} {:>10}", "best", "worst");
    let mut worst = Duration::ZERO;
    let mut hostile = Vec::new();
    for (name, expression) in EXPRESSIONS.iter().enumerate() {
        let text = policy(name, &whole(expression));
        match load(std::slice::from_ref(&text), "policy") {
            Err(refused) => println!("{:>10} {:>10} {expression}: {refused}", "refused", ""),
            Ok(engine) => {
                let (best, most, answer) = measure(&engine, &review, Endpoint::Validate);
                let stopped = answer.contains("exceeds the step limit");
                let (best, most) = (best.saturating_sub(bare), most.saturating_sub(bare));
                worst = worst.max(best);
                let word = if stopped { "stopped" } else { "done" };
                println!("{best:>10.1?} {most:>10.1?} {word:>8} {expression}");
                hostile.push(text);
            }
        }
    }
    let (best, most, _) = measure(&load(&hostile, "policy").unwrap(), &review, Endpoint::Validate);
    println!("{best:>10.1?} {most:>10.1?} all of them in one set: the budget of a request");
    println!("\nthe slowest expression adds {worst:.1?}; the bar is {BAR:?}");
    let slowest = measure_crowded();
    println!("\nthe slowest crowded object takes {slowest:.1?}; the bar is {CROWDED_BAR:?}");
    if worst.max(best) <= BAR && slowest <= CROWDED_BAR { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
