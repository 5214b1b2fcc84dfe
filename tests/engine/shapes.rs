//! What a hostile body costs, in bytes: every list, map, text and struct of every kind, long and wrong in every way
//! that has a name (`shapes/bodies.rs`). Nothing here reads a clock; `make shapes` does, with larger bodies.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    reason = "bytes of a few megabytes, and tables of this file"
)]

mod bodies;

use bodies::{HostileField, RequestKind, Style};
use tollgate_api::profile::Profile;
use tollgate_api::schema::FieldType;
use tollgate_engine::engine::{Endpoint, Engine, LabelsIfKnown, admit, memory_bytes_for_body};
use tollgate_engine::rules::RuleSet;

/// Maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: usize = 1 << 20;

struct Cost {
    body: usize,
    /// Peak number of allocated bytes.
    peak: u64,
    /// Total number of allocated bytes, as a measure of time.
    total: u64,
    answer: usize,
}

fn engine(profile: &str) -> Engine {
    Engine::new(
        vec![Profile::named(profile).expect("a profile")],
        RuleSet::parse("upstream,documented,lint,decoding,strict").expect("origins"),
    )
}

fn cost(engine: &Engine, body: &str, endpoint: Endpoint) -> Cost {
    cost_in(engine, body, endpoint, LabelsIfKnown::Unknown)
}

fn cost_in(engine: &Engine, body: &str, endpoint: Endpoint, labels: LabelsIfKnown<'_>) -> Cost {
    let mut answer = 0;
    let counted = allocation_counter::measure(|| {
        answer = admit(engine, body.as_bytes(), endpoint, "2026-11-15T03:04:05Z", &labels)
            .map_or(0, |answer| answer.len());
    });
    Cost { body: body.len(), peak: counted.bytes_max, total: counted.bytes_total, answer }
}

/// Measures a request with a new engine, which has no caches.
fn measure_with_new_engine(
    profile: &str,
    place: &HostileField,
    style: Style,
    ask: RequestKind,
    bytes: usize,
) -> Cost {
    let endpoint = if ask == RequestKind::Mutate { Endpoint::Mutate } else { Endpoint::Validate };
    cost(&engine(profile), &bodies::review(place, style, ask, bytes), endpoint)
}

/// Measures every field of a profile in every `step`-th style.
fn search(
    profile: &str,
    is_wanted: fn(&HostileField) -> bool,
    step: usize,
    wrong: &mut Vec<String>,
) -> usize {
    let mut rows = 0;
    let places = bodies::places(Profile::named(profile).expect("a profile"));
    for (number, place) in places.into_iter().enumerate().filter(|(_, place)| is_wanted(place)) {
        for (turn, &style) in Style::of(place.ty()).iter().enumerate().skip(number % step).step_by(step) {
            // One way of asking for each list: neighbours have the others.
            let ask = match place.ty() {
                FieldType::List(_) | FieldType::Map { .. } => {
                    RequestKind::ALL[(number + turn) % RequestKind::ALL.len()]
                }
                _ => RequestKind::Create,
            };
            // Sixteen times: vectors that double come out alike.
            let small = measure_with_new_engine(profile, &place, style, ask, 4 << 10);
            let large = measure_with_new_engine(profile, &place, style, ask, 93 << 10);
            rows += 1;
            let grown = large.total as f64 * small.body as f64 / (small.total as f64 * large.body as f64);
            // What is bounded by itself may grow until it is.
            let is_linear = grown <= 1.2 || large.total < 48 << 20;
            let is_bounded =
                [&small, &large].iter().all(|cost| cost.peak as usize <= memory_bytes_for_body(cost.body));
            if large.answer > MAX_RESPONSE_BYTES || !is_bounded || !is_linear {
                wrong.push(format!(
                    "{} {style:?} {ask:?}: {} at once of {} bytes; {} bytes: {} at once, {} in all, {} said, {grown:.1} times as much a byte",
                    place.name(),
                    small.peak,
                    small.body,
                    large.body,
                    large.peak,
                    large.total,
                    large.answer,
                ));
            }
        }
    }
    rows
}

fn check_every_field(profile: &str, is_wanted: fn(&HostileField) -> bool, step: usize) {
    let mut wrong = Vec::new();
    let rows = search(profile, is_wanted, step, &mut wrong);
    assert!(rows > 1_000 / step, "{rows}");
    assert!(wrong.is_empty(), "{} of {rows}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_field_of_every_type_costs_no_more_than_its_length() {
    check_every_field("kep-5055", |_| true, 3);
}

/// Takes minutes; run by `make shapes`.
#[test]
#[ignore = "takes minutes"]
fn every_field_of_every_type_in_every_style_costs_no_more_than_its_length() {
    check_every_field("kep-5055", |_| true, 1);
    check_every_field("1.33", |_| true, 1);
}

#[test]
fn every_field_of_the_oldest_release_costs_no_more_than_its_length() {
    // Other APIs have no releases: the test above has them, and nearly all of the code is the same.
    check_every_field("1.33", |place| place.kind.has_full_schema(), 6);
}

fn review(api_version: &str, kind: &str, object: &str) -> String {
    let (group, version) = api_version.split_once('/').expect("a group");
    format!(
        r#"{{"request":{{"uid":"u","kind":{{"group":"{group}","version":"{version}","kind":"{kind}"}},"operation":"CREATE","object":{{"apiVersion":"{api_version}","kind":"{kind}",{object}}}}}}}"#
    )
}

fn bounded(body: &str, endpoint: Endpoint) -> Cost {
    let cost = cost(&engine("kep-5055"), body, endpoint);
    assert!(
        cost.answer > 0 && cost.answer <= MAX_RESPONSE_BYTES,
        "{} bytes said of {}",
        cost.answer,
        cost.body
    );
    assert!(cost.peak as usize <= memory_bytes_for_body(cost.body), "{} bytes of {}", cost.peak, cost.body);
    cost
}

#[test]
fn two_thousand_controllers_are_answered_in_a_mebibyte() {
    let owner = |index: usize| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Pod","name":"pod-{index}","uid":"u-{index}","controller":true}}"#
        )
    };
    let owners: Vec<String> = (0..2_000).map(owner).collect();
    let object = format!(r#""metadata":{{"name":"a","ownerReferences":[{}]}},"spec":{{}}"#, owners.join(","));
    let body = review("resource.k8s.io/v1", "DeviceClass", &object);
    bounded(&body, Endpoint::Validate);
    let answer = admit(
        &engine("kep-5055"),
        body.as_bytes(),
        Endpoint::Validate,
        "2026-11-15T03:04:05Z",
        &LabelsIfKnown::Unknown,
    )
    .unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.contains("more findings were left out") && answer.contains("… (shortened)"));
    assert!(answer.contains(r#""allowed":false"#));
}

#[test]
fn broken_selectors_are_answered_in_a_mebibyte() {
    let selector = format!(r#"{{"cel":{{"expression":"{}"}}}}"#, "a.b == c && ".repeat(850));
    let selectors = vec![selector; 32].join(",");
    let request = |index: usize| {
        format!(r#"{{"name":"r-{index}","exactly":{{"deviceClassName":"a","selectors":[{selectors}]}}}}"#)
    };
    let requests: Vec<String> = (0..24).map(request).collect();
    let object =
        format!(r#""metadata":{{"name":"a"}},"spec":{{"devices":{{"requests":[{}]}}}}"#, requests.join(","));
    bounded(&review("resource.k8s.io/v1", "ResourceClaim", &object), Endpoint::Validate);
}

#[test]
fn a_list_past_its_limit_is_not_filled_in() {
    for (count, is_filled) in [(16, true), (17, false), (300_000, false)] {
        let tolerations = vec!["{}"; count].join(",");
        let object = format!(
            r#""metadata":{{"name":"a"}},"spec":{{"devices":{{"requests":[{{"name":"r","exactly":{{"deviceClassName":"a","allocationMode":"All","tolerations":[{tolerations}]}}}}]}}}}"#
        );
        let body = review("resource.k8s.io/v1", "ResourceClaim", &object);
        bounded(&body, Endpoint::Validate);
        let cost = bounded(&body, Endpoint::Mutate);
        assert_eq!(cost.answer > 200, is_filled, "{count}: {} bytes", cost.answer);
    }
}

#[test]
fn what_is_sent_back_is_bounded_too() {
    let long = "n".repeat(3 << 20);
    for field in ["uid", "name", "namespace", "operation"] {
        let object = r#""metadata":{},"spec":{"devices":7}"#;
        let body = review("resource.k8s.io/v1", "ResourceClaim", object)
            .replace(r#""uid":"u""#, &format!(r#""{field}":"{long}""#));
        let cost = cost(&engine("kep-5055"), &body, Endpoint::Validate);
        assert!(cost.answer <= MAX_RESPONSE_BYTES, "{field}: {} bytes", cost.answer);
    }
    let object = format!(r#""metadata":{{"name":"{long}","labels":{{"{long}":"{long}"}}}},"spec":{{}}"#);
    bounded(&review("resource.k8s.io/v1", "ResourceClaim", &object), Endpoint::Validate);
}

/// A claim with these requests, each with a toleration whose long value is covered by a more general
/// toleration.
fn claim(requests: impl Iterator<Item = String>) -> String {
    let requests: Vec<String> = requests.collect();
    format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"a","uid":"u","resourceVersion":"1"}},"spec":{{"devices":{{"requests":[{}]}}}}}}"#,
        requests.join(",")
    )
}

#[test]
fn what_is_stored_and_wrong_past_the_room_excuses_itself_and_nothing_else() {
    // An empty key without Exists is refused by us alone: stored ones are excused, however many.
    let request = |index: usize, tolerations: usize| {
        let tolerations =
            vec![r#"{"operator":"Equal","value":"v","effect":"NoSchedule"}"#; tolerations].join(",");
        format!(
            r#"{{"name":"r-{index}","exactly":{{"deviceClassName":"a","allocationMode":"ExactCount","count":1,"tolerations":[{tolerations}]}}}}"#
        )
    };
    let stored = claim((0..5_500).map(|index| request(index, 2)));
    let engine = Engine::new(
        vec![Profile::named("kep-5055").expect("a profile")],
        RuleSet::parse("empty-key-without-exists").expect("a rule"),
    );
    for (new, allowed) in [
        (claim((0..5_500).map(|index| request(index, 2)).chain([request(5_500, 0)])), true),
        (claim((0..5_500).map(|index| request(index, 2)).chain([request(5_500, 1)])), false),
        (claim((0..5_500).map(|index| request(index, 2 + usize::from(index == 5_499)))), false),
    ] {
        let body = format!(
            r#"{{"request":{{"uid":"u","kind":{{"group":"resource.k8s.io","version":"v1","kind":"ResourceClaim"}},"operation":"UPDATE","object":{new},"oldObject":{stored}}}}}"#
        );
        let answer = admit(
            &engine,
            body.as_bytes(),
            Endpoint::Validate,
            "2026-11-15T03:04:05Z",
            &LabelsIfKnown::Unknown,
        )
        .unwrap();
        let answer = String::from_utf8(answer).unwrap();
        assert_eq!(answer.contains(r#""allowed":true"#), allowed, "{}", answer.get(..400).unwrap_or(&answer));
        assert!(allowed || answer.contains("(and") || answer.matches("FieldValue").count() == 1);
    }
}

/// Expressions about everything in a request.
const EXPRESSIONS: &[&str] = &[
    "object != oldObject",
    "object.spec.devices.config.all(c, c.opaque.parameters.all(x, x != 1))",
    "oldObject == null || oldObject.spec.devices.config.map(c, c.opaque.parameters).size() >= 0",
    "object.spec.devices.config.map(c, c.opaque.parameters.map(x, [x, x])).size() >= 0",
    "request.userInfo.extra.all(key, request.userInfo.extra[key].filter(x, true).size() >= 0)",
    "size(object.metadata.labels) >= 0 && !('x' in object.metadata.labels)",
    "'%s'.format([object]) != ''",
    "namespaceObject.metadata.labels.all(key, namespaceObject.metadata.labels[key] != 'x')",
    "namespaceObject.metadata.labels.map(key, [key, key]).size() >= 0 && '%s'.format([namespaceObject]) != ''",
];

/// The maximum amount of labels that a namespace can have: 64 KiB.
fn namespace_labels() -> String {
    let label = |number: usize| format!(r#""label-{number:05}":"value-of-label-{number:05}""#);
    format!("{{{}}}", (0..1_990).map(label).collect::<Vec<_>>().join(","))
}

#[test]
fn expressions_need_no_more_memory_than_is_reserved() {
    let policy = |(number, expression): (usize, &&str)| {
        format!(
            "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {{name: p{number}}}\nspec:\n  validations:\n  - expression: >-\n      {expression}"
        )
    };
    let policies = EXPRESSIONS.iter().enumerate().map(policy).collect::<Vec<_>>().join("\n---\n");
    let file = tollgate_engine::policy::PolicyFile { name: "p.yaml".to_owned(), text: policies };
    let set =
        tollgate_engine::policy::PolicySet::load(&[file], &|_| Err("no files".to_owned())).expect("policies");
    let engine = engine("1.37").with_policies(std::sync::Arc::new(set));
    let labels = namespace_labels();
    let namespace = tollgate_document::doc::parse(&labels).expect("JSON");
    let known = LabelsIfKnown::Known(namespace.root());
    let mut wrong = Vec::new();
    for item in ["[]", "0", "{\"a\":{}}"] {
        for bytes in [300_usize, 30_000, 64_000, 450_000, 650_000, 900_000] {
            let items = vec![item; bytes / (item.len() + 1)].join(",");
            let labels: Vec<String> = (0..bytes / 12).map(|number| format!(r#""l{number}":"""#)).collect();
            let claim = |labels: &str, parameters: &str| {
                format!(
                    r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"a","namespace":"n","labels":{{{labels}}}}},"spec":{{"devices":{{"requests":[{{"name":"r","exactly":{{"deviceClassName":"a"}}}}],"config":[{{"opaque":{{"driver":"a.example.com","parameters":[{parameters}]}}}}]}}}}}}"#
                )
            };
            let review = |object: &str, more: &str| {
                format!(
                    r#"{{"request":{{"uid":"u","kind":{{"group":"resource.k8s.io","version":"v1","kind":"ResourceClaim"}},"namespace":"n","name":"a"{more},"object":{object}}}}}"#
                )
            };
            for body in [
                review(&claim("", &items), r#","operation":"CREATE""#),
                review(&claim(&labels.join(","), ""), r#","operation":"CREATE""#),
                review(
                    &claim("", &items),
                    &format!(r#","operation":"UPDATE","oldObject":{}"#, claim("", "1")),
                ),
                review(
                    &claim("", ""),
                    &format!(r#","operation":"CREATE","userInfo":{{"extra":{{"a":[{items}]}}}}"#),
                ),
            ] {
                let cost = cost_in(&engine, &body, Endpoint::Validate, known);
                if cost.peak as usize > memory_bytes_for_body(cost.body) {
                    let begin = body.get(..200).unwrap_or(&body);
                    wrong.push(format!("{item}: {} bytes of {}: {begin}", cost.peak, cost.body));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_review_that_is_too_dense_is_refused() {
    let dense = format!(r#"{{"request":{{"a":[{}0]}}}}"#, "0,".repeat(3 << 20));
    let error = admit(
        &engine("kep-5055"),
        dense.as_bytes(),
        Endpoint::Validate,
        "2026-11-15T03:04:05Z",
        &LabelsIfKnown::Unknown,
    )
    .unwrap_err();
    assert!(error.detail.contains("too many for its length"), "{error}");
}
