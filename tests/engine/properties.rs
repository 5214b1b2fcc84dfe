//! Laws that hold for every input: nothing panics, answers repeat byte for byte, paths lead into the document, one
//! object gives one answer in every shape, and defaults are filled in once.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![allow(clippy::indexing_slicing, reason = "indexes come from dice rolled below the length")]

use super::support::{NOW, attributes, corpus};
use proptest::prelude::*;
use tollgate_api::profile::{self, ApiKind, Profile, Version};
use tollgate_document::doc::{self, Value, ValueKind};
use tollgate_document::field::SegmentName;
use tollgate_engine::defaults::{DefaultsPurpose, default_edits};
use tollgate_engine::engine::{DecodedObject, Endpoint, Engine, LabelsIfKnown, Verdict, admit};
use tollgate_engine::rules::RuleSet;

/// A JSON tree that a test may damage.
#[derive(Clone, Debug)]
enum Tree {
    Leaf(String),
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

fn tree(value: Value<'_>) -> Tree {
    match value.kind() {
        ValueKind::Array => Tree::List(value.items().map(tree).collect()),
        ValueKind::Object => {
            Tree::Object(value.members().map(|(key, item)| (key.text().to_owned(), tree(item))).collect())
        }
        _ => Tree::Leaf(value.to_json()),
    }
}

fn text(tree: &Tree) -> String {
    match tree {
        Tree::Leaf(text) => text.clone(),
        Tree::List(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(",")),
        Tree::Object(members) => {
            let members = members.iter().map(|(key, item)| format!("{}:{}", quoted(key), text(item)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    tollgate_formats::gofmt::push_json_string(&mut out, text);
    out
}

/// A pseudorandom number generator; proptest supplies and shrinks the seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % sides.max(1)
    }
}

const ODD_LEAVES: &[&str] = &[
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "1e2",
    "9223372036854775808",
    "\"\"",
    "\"x\"",
    "\"-bad-\"",
    "\"a/b/c\"",
    "\"2025-13-01T00:00:00Z\"",
    "\"1Gi\"",
    "\"\\ud800\"",
    "\"İ\"",
    "{}",
    "[]",
    "[null]",
    "{\"\":null}",
    "\"NoExecute\"",
];

/// Damages a document at one position: replaces a leaf, drops, duplicates or renames a member, or duplicates
/// an item.
fn damage(tree: &mut Tree, dice: &mut Dice) {
    match tree {
        Tree::Leaf(leaf) => ODD_LEAVES[dice.roll(ODD_LEAVES.len())].clone_into(leaf),
        Tree::List(items) if !items.is_empty() && dice.roll(6) > 0 => {
            let at = dice.roll(items.len());
            damage(&mut items[at], dice);
        }
        Tree::List(items) => match items.first().cloned() {
            Some(first) => items.push(first),
            None => items.push(Tree::Leaf("null".to_owned())),
        },
        Tree::Object(members) if members.is_empty() => {
            members.push(("surprise".to_owned(), Tree::Leaf("1".to_owned())))
        }
        Tree::Object(members) => {
            let at = dice.roll(members.len());
            match dice.roll(9) {
                0 => drop(members.remove(at)),
                1 => members.push(members[at].clone()),
                2 => members[at].0.push('x'),
                3 => members[at].1 = Tree::Leaf(ODD_LEAVES[dice.roll(ODD_LEAVES.len())].to_owned()),
                _ => damage(&mut members[at].1, dice),
            }
        }
    }
}

/// A slice with four devices of the same model.
const REPEATING_SLICE: &str = r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"node-1"},
"spec":{"driver":"gpu.example.com","pool":{"name":"node-1","generation":1,"resourceSliceCount":1},"nodeName":"node-1","devices":[
{"name":"gpu-0","attributes":{"gpu.example.com/model":{"string":"a100"},"uuid":{"string":"u-0"},"sdk":{"version":"1.2.3"}},"capacity":{"memory":{"value":"80Gi"}},"taints":[{"key":"gpu.example.com/hot","value":"0","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:00Z"},{"key":"gpu.example.com/old","effect":"NoExecute","timeAdded":"2026-01-01T00:00:00Z"}]},
{"name":"gpu-1","attributes":{"gpu.example.com/model":{"string":"a100"},"uuid":{"string":"u-1"},"sdk":{"version":"1.2.3"}},"capacity":{"memory":{"value":"80Gi"}},"taints":[{"key":"gpu.example.com/hot","value":"1","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:00Z"},{"key":"gpu.example.com/old","effect":"NoExecute","timeAdded":"2026-01-01T00:00:00Z"}]},
{"name":"gpu-2","attributes":{"gpu.example.com/model":{"string":"a100"},"uuid":{"string":"u-2"},"sdk":{"version":"1.2.3"}},"capacity":{"memory":{"value":"80Gi"}},"taints":[{"key":"gpu.example.com/hot","value":"0","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:00Z"},{"key":"gpu.example.com/old","effect":"NoExecute","timeAdded":"2026-01-01T00:00:00Z"}]},
{"name":"gpu-3","attributes":{"gpu.example.com/model":{"string":"a100"},"uuid":{"string":"u-3"},"sdk":{"version":"1.2.3"}},"capacity":{"memory":{"value":"80Gi"}},"taints":[{"key":"gpu.example.com/hot","value":"1","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:00Z"},{"key":"gpu.example.com/old","effect":"NoExecute","timeAdded":"2026-01-01T00:00:00Z"}]}]}}"#;

/// A valid claim. Whether it may use admin access depends on its namespace.
const CLAIM: &str = r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"train","namespace":"ml"},
"spec":{"devices":{"requests":[
{"name":"gpu","exactly":{"deviceClassName":"gpu.example.com","allocationMode":"ExactCount","count":2,"adminAccess":true,"selectors":[{"cel":{"expression":"device.driver == 'gpu.example.com'"}}],"tolerations":[{"key":"gpu.example.com/hot","operator":"Exists","effect":"NoSchedule"},{"key":"gpu.example.com/old","operator":"Equal","value":"yes","effect":"NoExecute","tolerationSeconds":600}]}},
{"name":"nic","firstAvailable":[{"name":"fast","deviceClassName":"nic.example.com","allocationMode":"ExactCount","count":1},{"name":"slow","deviceClassName":"nic.example.com","allocationMode":"ExactCount","count":1}]}],
"constraints":[{"requests":["gpu","nic"],"matchAttribute":"gpu.example.com/numa"}],
"config":[{"requests":["gpu"],"opaque":{"driver":"gpu.example.com","parameters":{"kind":"x"}}}]}}}"#;

/// The nested member with this path of names; `None` if it does not exist.
fn part<'t>(object: &'t mut Tree, names: &[&str]) -> Option<&'t mut Tree> {
    names.iter().try_fold(object, |tree, name| {
        let Tree::Object(members) = tree else { return None };
        Some(&mut members.iter_mut().find(|(key, _)| key == name)?.1)
    })
}

/// The devices of a slice.
fn devices(slice: &mut Tree) -> &mut Tree {
    part(slice, &["spec", "devices"]).expect("only devices are damaged")
}

fn engine(profiles: &[&'static Profile]) -> Engine {
    Engine::new(
        profiles.to_vec(),
        RuleSet::parse("upstream,documented,lint,decoding,strict").expect("origins"),
    )
    .with_api_server_verdicts()
}

/// All findings of a verdict as text.
fn findings_text(verdict: &Verdict) -> String {
    let lines: Vec<String> = verdict.findings().iter().map(|diagnostic| format!("{diagnostic:?}")).collect();
    lines.join("\n")
}

/// Number of path steps that remain where the document ends. For duplicate keys, the one that leads furthest
/// counts, because the server merges them.
fn steps_left(at: Value<'_>, steps: &[&SegmentName]) -> usize {
    let Some((step, rest)) = steps.split_first() else { return 0 };
    let next: Vec<Value<'_>> = match step {
        SegmentName::Index(index) => at.items().nth(*index).into_iter().collect(),
        SegmentName::Field(name) | SegmentName::Key(name) => {
            at.members().filter(|(key, _)| key.text() == &**name).map(|(_, value)| value).collect()
        }
    };
    next.into_iter().map(|value| steps_left(value, rest)).min().unwrap_or(steps.len())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_objects_are_judged_the_same_twice_and_by_paths_that_exist(seed in any::<u64>()) {
        thread_local! { static CASES: String = corpus("cases.jsonl"); }
        CASES.with(|cases| {
            let mut dice = Dice(seed);
            let lines: Vec<&str> = cases.lines().collect();
            let line = lines[dice.roll(lines.len())];
            let original = doc::parse(line).expect("JSON");
            let mut object = tree(original.root());
            let Tree::Object(members) = &mut object else { unreachable!("a case is an object") };
            for (key, member) in members.iter_mut() {
                if key == "object" {
                    for _ in 0..=dice.roll(3) {
                        damage(member, &mut dice);
                    }
                }
            }
            let damaged = text(&object);
            let doc = doc::parse(&damaged).expect("JSON");
            let engine = engine(profile::ALL);
            let first = engine.validate(&attributes(doc.root()), LabelsIfKnown::Unknown);
            let second = engine.validate(&attributes(doc.root()), LabelsIfKnown::Unknown);
            assert_eq!(findings_text(&first), findings_text(&second));
            for diagnostic in first.findings() {
                let steps: Vec<&SegmentName> = diagnostic.finding.at.user_steps().collect();
                let left = steps_left(doc.root().get("object"), &steps);
                // A missing field may be named, with what it would hold: never more than that.
                assert!(left <= 3, "{diagnostic} leads nowhere in {damaged}");
            }
        });
    }

    #[test]
    fn devices_that_repeat_each_other_are_judged_like_strangers(seed in any::<u64>()) {
        let mut dice = Dice(seed);
        let original = doc::parse(REPEATING_SLICE).expect("JSON");
        let mut object = tree(original.root());
        let mut stored = object.clone();
        for _ in 0..dice.roll(6) {
            damage(devices(&mut object), &mut dice);
            // What is wrong with one device is wrong with others too, or was so before.
            if let Tree::List(devices) = devices(&mut object)
                && dice.roll(2) == 0
                && !devices.is_empty()
            {
                let (from, to) = (dice.roll(devices.len()), dice.roll(devices.len()));
                devices[to] = devices[from].clone();
            }
            if dice.roll(2) == 0 {
                stored = object.clone();
            }
        }
        let case = if dice.roll(2) == 0 {
            format!(r#"{{"operation":"CREATE","object":{}}}"#, text(&object))
        } else {
            format!(r#"{{"operation":"UPDATE","object":{},"oldObject":{}}}"#, text(&object), text(&stored))
        };
        let doc = doc::parse(&case).expect("JSON");
        // A copy is not taken for what its text says: every device of it is read whole.
        let copy = doc::apply_changes(doc.root(), &[]);
        for _ in 0..2 {
            let profile = profile::ALL[dice.roll(profile::ALL.len())];
            let engine = engine(&[profile]);
            let (fast, whole) = (engine.validate(&attributes(doc.root()), LabelsIfKnown::Unknown), engine.validate(&attributes(copy.root()), LabelsIfKnown::Unknown));
            prop_assert_eq!(findings_text(&fast), findings_text(&whole), "{}: {}", profile.name, case);
        }
    }

    #[test]
    fn an_engine_that_remembers_answers_like_a_new_one(seed in any::<u64>()) {
        let mut dice = Dice(seed);
        let template = CLAIM.replacen("ResourceClaim", "ResourceClaimTemplate", 1).replacen("\"spec\":", "\"spec\":{\"spec\":", 1) + "}";
        let claim = if dice.roll(2) == 0 { CLAIM.to_owned() } else { CLAIM.replace("\"adminAccess\":true,", "") };
        let (kind, first, names): (_, _, &[&str]) = match dice.roll(4) {
            0 => ("ResourceClaim", claim, &["spec"]),
            1 => ("ResourceClaimTemplate", template, &["spec", "spec"]),
            _ => ("ResourceSlice", REPEATING_SLICE.to_owned(), &["spec", "devices"]),
        };
        let profile = profile::ALL[dice.roll(profile::ALL.len())];
        let rules = || RuleSet::parse("upstream,documented,lint,decoding").expect("origins");
        let remembers = Engine::new(vec![profile], rules());
        let allowing = doc::parse(r#"{"resource.k8s.io/admin-access":"true","resource.kubernetes.io/admin-access":"true"}"#).expect("JSON");
        let mut object = tree(doc::parse(&first).expect("JSON").root());
        for _ in 0..6 {
            let stored = text(&object);
            if dice.roll(3) > 0 {
                let whole = dice.roll(4) == 0;
                let Some(part) = part(&mut object, if whole { &[] } else { names }) else { break };
                damage(part, &mut dice);
            }
            let (operation, old) = if dice.roll(3) == 0 { ("UPDATE", stored.as_str()) } else { ("CREATE", "null") };
            let version = if dice.roll(4) == 0 { "v1beta2" } else { "v1" };
            let object = text(&object).replacen("resource.k8s.io/v1\"", &format!("resource.k8s.io/{version}\""), 1);
            // What an object says last, in any case of letters, is what it is.
            let says = [r#""Kind":"ResourceSlice","#, r#""kind":"ResourceClaimTemplate","#, r#""KIND":"ResourceClaim","#, r#""ApiVersion":"resource.k8s.io/v1beta1","#];
            let object = match dice.roll(2 * says.len()) {
                odd if odd < says.len() => object.replacen("\"metadata\":", &format!("{}\"metadata\":", says[odd]), 1),
                _ => object,
            };
            let resource = format!("{}s", kind.to_lowercase());
            let review = format!(
                r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","kind":{{"group":"resource.k8s.io","version":"{version}","kind":"{kind}"}},"resource":{{"group":"resource.k8s.io","version":"{version}","resource":"{resource}"}},"namespace":"ml","operation":"{operation}","object":{object},"oldObject":{old}}}}}"#
            );
            // An engine that was used before says the same as a new one.
            for time in 1..=3 {
                let answer = |engine: &Engine| {
                    let labels = match time {
                        2 => LabelsIfKnown::Unknown,
                        3 => LabelsIfKnown::Known(Value::absent()),
                        _ => LabelsIfKnown::Known(allowing.root()),
                    };
                    let answer = admit(engine, review.as_bytes(), Endpoint::Validate, NOW, &labels).expect("a review");
                    String::from_utf8(answer).expect("UTF-8")
                };
                let new = answer(&Engine::new(vec![profile], rules()));
                prop_assert_eq!(&answer(&remembers), &new, "time {}, {}: {}", time, profile.name, review);
            }
        }
    }

    #[test]
    fn the_same_tolerations_give_the_same_findings_in_every_shape(
        tolerations in prop::collection::vec(("[a-z./-]{0,12}", "Equal|Exists|In|", "[a-z_ -]{0,6}", "NoExecute|NoSchedule|None|Bad|"), 0..4)
    ) {
        let list: Vec<String> = tolerations.iter().map(|(key, operator, value, effect)| {
            let members = [("key", key), ("operator", operator), ("value", value), ("effect", effect)];
            let members: Vec<String> = members.iter().map(|(name, text)| format!("\"{name}\":{}", quoted(text))).collect();
            format!("{{{}}}", members.join(","))
        }).collect();
        let list = list.join(",");
        let flat = format!(r#"{{"name":"r","deviceClassName":"c","tolerations":[{list}]}}"#);
        let nested = format!(r#"{{"name":"r","exactly":{{"deviceClassName":"c","tolerations":[{list}]}}}}"#);
        let claim = |version: &str, request: &str| format!(
            r#"{{"operation":"CREATE","object":{{"apiVersion":"resource.k8s.io/{version}","kind":"ResourceClaim","metadata":{{"name":"a"}},"spec":{{"devices":{{"requests":[{request}]}}}}}}}}"#
        );
        for profile in ["1.34", "1.36", "1.37", "kep-5055"] {
            let shapes = [claim("v1", &nested), claim("v1beta2", &nested), claim("v1beta1", &flat)];
            let answers: Vec<Vec<String>> = shapes.iter().map(|shape| {
                let doc = doc::parse(shape).expect("JSON");
                let engine = engine(&[Profile::named(profile).expect("a profile")]);
                // Which versions are served by default, and how long, is the one thing in which they differ.
                let of_versions = ["soon-removed-version", "version-off-by-default"];
                let is_shared = |found: &&tollgate_engine::engine::Diagnostic| !of_versions.contains(&found.finding.rule.id);
                let verdict = engine.validate(&attributes(doc.root()), LabelsIfKnown::Unknown);
                verdict.findings().iter().filter(is_shared).map(|diagnostic| {
                    let field = diagnostic.finding.user_path().replace(".exactly", "");
                    format!("{} {field} {}", diagnostic.finding.rule, diagnostic.finding.server_message_without_path())
                }).collect()
            }).collect();
            prop_assert_eq!(&answers[0], &answers[1]);
            prop_assert_eq!(&answers[0], &answers[2]);
        }
    }
}

#[test]
fn defaults_are_filled_in_once() {
    let cases = corpus("cases.jsonl");
    let mut filled = 0;
    for line in cases.lines() {
        let case = doc::parse(line).expect("JSON");
        let object = case.root().get("object");
        let api_version = object.get("apiVersion").str();
        let version = Version::parse(api_version.rsplit('/').next().unwrap_or_default());
        let (Some(kind), Some(version)) = (ApiKind::parse_dra_kind(object.get("kind").str()), version) else {
            continue;
        };
        for profile in profile::ALL {
            let prepared = DecodedObject::decode(object, kind, version, profile);
            if prepared.has_fatal_errors() {
                continue;
            }
            let ready = prepared.defaulted_if_changed(None, profile, NOW);
            let once = prepared.view_of_defaulted(ready.as_ref()).value().to_json();
            let again = doc::parse(&once).expect("JSON");
            let again = DecodedObject::decode(again.root(), kind, version, profile);
            let edits = default_edits(
                again.without_defaults(),
                None,
                profile,
                "2030-01-01T00:00:00Z",
                DefaultsPurpose::Validation,
            );
            assert!(edits.is_empty(), "{}: {edits:?}", profile.name);
            filled += usize::from(
                !default_edits(prepared.without_defaults(), None, profile, NOW, DefaultsPurpose::Validation)
                    .is_empty(),
            );
        }
    }
    assert!(filled > 5_000, "only {filled} objects had something to fill in");
}

#[test]
fn a_fault_that_was_stored_excuses_no_other_device() {
    let taint = r#"{"key":"not a key","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:00Z"}"#;
    let device = |name: &str| format!(r#"{{"name":"{name}","taints":[{taint}]}}"#);
    let slice = |devices: &str| {
        format!(
            r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"node-1"}},"spec":{{"driver":"gpu.example.com","pool":{{"name":"node-1","generation":1,"resourceSliceCount":1}},"nodeName":"node-1","devices":[{devices}]}}}}"#
        )
    };
    let (old, new) = (device("old"), device("new"));
    let (stored, changed) = (slice(&old), slice(&format!("{old},{new}")));
    let case = format!(r#"{{"operation":"UPDATE","object":{changed},"oldObject":{stored}}}"#);
    let doc = doc::parse(&case).expect("JSON");
    let verdict = engine(&[Profile::named("1.36").expect("a profile")])
        .validate(&attributes(doc.root()), LabelsIfKnown::Unknown);
    let keys = verdict.findings().iter().filter(|diagnostic| diagnostic.finding.rule.id == "taint-key");
    let places: Vec<String> = keys.map(|diagnostic| diagnostic.finding.user_path()).collect();
    assert_eq!(places, ["spec.devices[1].taints[0].key"]);
}
