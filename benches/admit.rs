//! What one admission costs: a 400 KB slice and a small claim through decode and rules, as ratios in one run.
//!
//! Not a framework: best of many rounds of thread time on whatever machine this is. Absolute numbers are for this
//! machine only; the ratios travel.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a bench reads the clock, prints, and stops when its input is broken"
)]

#[path = "../examples/load/reviews.rs"]
#[expect(dead_code, reason = "shared with the load")]
mod reviews;

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use tollgate::{Attributes, Endpoint, Engine, LabelsIfKnown, Operation, Profile, RuleSet, Value, admit};

fn main() {
    reviews();
    let engine = Engine::new(
        vec![Profile::named("kep-5055").expect("a profile")],
        RuleSet::parse("upstream,documented,lint,decoding").expect("origins"),
    );
    for (name, text) in [("claim", claim()), ("slice", slice())] {
        let parse = best(|| drop(black_box(tollgate::parse_json(&text))));
        let all = best(|| {
            let doc = tollgate::parse_json(&text).expect("JSON");
            let verdict = engine.validate(&attributes(doc.root()), LabelsIfKnown::Unknown);
            assert!(verdict.findings().is_empty(), "{verdict:?}");
        });
        let scan = best(|| _ = black_box(text.bytes().fold(0_u8, u8::wrapping_add)));
        println!(
            "{name:<6} {:>7} bytes   parse {:>9.1} µs   parse + decode + rules {:>9.1} µs   ratio {:>5.2}   (touching every byte {:>7.1} µs)",
            text.len(),
            micros(parse),
            micros(all),
            micros(all) / micros(parse),
            micros(scan)
        );
    }
}

/// The webhook without HTTP: a whole review in, an answer out.
fn reviews() {
    let engine = || {
        Engine::new(
            vec![Profile::named("kep-5055").expect("a profile")],
            RuleSet::parse("upstream,documented,lint,decoding").expect("origins"),
        )
    };
    for (name, body) in [("claim", reviews::claim()), ("slice", reviews::slice())] {
        let remembers = engine();
        let again = best(|| {
            drop(black_box(admit(
                &remembers,
                &body,
                Endpoint::Validate,
                "2026-11-15T03:04:05Z",
                &LabelsIfKnown::Unknown,
            )))
        });
        let mut fresh = Duration::MAX;
        for _ in 0..50 {
            let new = engine();
            let start = Instant::now();
            drop(black_box(admit(
                &new,
                &body,
                Endpoint::Validate,
                "2026-11-15T03:04:05Z",
                &LabelsIfKnown::Unknown,
            )));
            fresh = fresh.min(start.elapsed());
        }
        println!(
            "{name:<6} {:>7} bytes   review to answer {:>9.1} µs   of an engine that never saw it {:>9.1} µs",
            body.len(),
            micros(again),
            micros(fresh)
        );
    }
}

fn attributes(object: Value<'_>) -> Attributes<'_> {
    Attributes {
        operation: Operation::Create,
        subresource: "",
        object,
        old_object: None,
        namespace: "default",
        user: Value::absent(),
        now: "2026-01-02T03:04:05Z".into(),
    }
}

fn best(mut run: impl FnMut()) -> Duration {
    (0..200)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn claim() -> String {
    r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"training","namespace":"ml"},
       "spec":{"devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"gpu.example.com","allocationMode":"ExactCount","count":2,
       "tolerations":[{"key":"gpu.example.com/degraded","operator":"Exists","effect":"NoSchedule"},
                      {"key":"gpu.example.com/degraded","operator":"Equal","value":"thermal","effect":"NoExecute","tolerationSeconds":600}]}}]}}}"#
        .to_owned()
}

fn slice() -> String {
    let mut devices = String::new();
    for device in 0..64 {
        let (mut taints, mut attributes) = (String::new(), String::new());
        for taint in 0..16 {
            let comma = if taint > 0 { "," } else { "" };
            _ = write!(
                taints,
                r#"{comma}{{"key":"health-of-the-device.gpu.vendor.example.com/condition-{taint}-reported-by-the-driver","value":"value-{device}-{taint}-with-some-length","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:00Z"}}"#
            );
        }
        for attribute in 0..32 {
            let comma = if attribute > 0 { "," } else { "" };
            _ = write!(
                attributes,
                r#"{comma}"resource.gpu.vendor.example.com/attribute_{attribute}":{{"string":"a value of some length {attribute}"}}"#
            );
        }
        let comma = if device > 0 { "," } else { "" };
        _ = write!(
            devices,
            r#"{comma}{{"name":"gpu-{device}","attributes":{{{attributes}}},"taints":[{taints}]}}"#
        );
    }
    format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"node-1"}},"spec":{{"driver":"gpu.vendor.example.com","pool":{{"name":"node-1","generation":1,"resourceSliceCount":1}},"nodeName":"node-1","devices":[{devices}]}}}}"#
    )
}
