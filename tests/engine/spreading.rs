//! A stored violation does not spread: what a DeviceTaintRule or a device may become although it is refused on CREATE.
//!
//! The generated pairs are held against a model of their own: a universe of devices, and what the scheduler and the
//! eviction controller do to each of them.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]

use std::sync::Arc;

use tollgate_api::profile;
use tollgate_document::doc::{self, Value};
use tollgate_engine::engine::{Attributes, Diagnostic, Engine, LabelsIfKnown, Operation};
use tollgate_engine::policy::{PolicyFile, PolicySet};
use tollgate_engine::rules::RuleSet;

const NOW: &str = "2026-01-02T03:04:05Z";

fn engine(rules: &str, policy: &str) -> Engine {
    let text = PolicyFile { name: "p.yaml".to_owned(), text: policy.to_owned() };
    let set = PolicySet::load(&[text], &|path| Err(format!("no file {path}"))).expect("policies that load");
    Engine::new(vec![profile::DEFAULT], RuleSet::parse(rules).expect("rules")).with_policies(Arc::new(set))
}

fn policy(kind: &str, spec: &str) -> String {
    format!("{{apiVersion: tollgate.dev/v1alpha1, kind: {kind}, metadata: {{name: p}}, spec: {spec}}}")
}

fn findings_of(engine: &Engine, old: Option<&str>, new: &str) -> Vec<Diagnostic> {
    let new = doc::parse(new).expect("JSON");
    let old = old.map(|old| doc::parse(old).expect("JSON"));
    let admission = Attributes {
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        subresource: "",
        object: new.root(),
        old_object: old.as_ref().map(doc::Doc::root),
        namespace: "",
        user: Value::absent(),
        now: NOW.into(),
    };
    engine.validate(&admission, LabelsIfKnown::Unknown).findings().to_vec()
}

fn admits(engine: &Engine, old: Option<&str>, new: &str) -> bool {
    findings_of(engine, old, new).is_empty()
}

/// A rule with these members of its selector (or no selector) and of its taint.
fn rule(selector: Option<&str>, taint: &str) -> String {
    let selector = selector.map(|members| format!(r#""deviceSelector":{{{members}}},"#)).unwrap_or_default();
    format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{{"name":"r","resourceVersion":"1"}},"spec":{{{selector}"taint":{{{taint}}}}}}}"#
    )
}

fn taint(key: &str, effect: &str, time: u32, more: &str) -> String {
    format!(r#""key":"{key}","effect":"{effect}","timeAdded":"2026-01-01T00:0{time}:00Z"{more}"#)
}

const ONE: &str = r#""driver":"a.example","pool":"p","device":"d""#;

#[test]
fn a_denied_taint_that_is_stored_does_not_spread() {
    let denied = engine("policy", &policy("TaintPolicy", "{deny: [{key: bad/*}]}"));
    let fast = engine("policy", &policy("TaintPolicy", "{maxEvictionsPerSecond: 5}"));
    for (engine, more) in [(&denied, ""), (&fast, r#","evictionsPerSecond":8"#)] {
        let with = |effect: &str, time: u32, more: &str| taint("bad/a", effect, time, more);
        let old = rule(Some(ONE), &with("NoSchedule", 1, more));
        assert!(!admits(engine, None, &old), "refused on CREATE");
        assert!(admits(engine, Some(&old), &old));
        let same = with("NoSchedule", 1, more);
        for selector in [
            None,
            Some(""),
            Some(r#""driver":"a.example""#),
            Some(r#""driver":"a.example","device":"d""#),
            Some(r#""driver":"b.example","pool":"p","device":"d""#),
            Some(r#""driver":"a.example","pool":"q","device":"d""#),
            Some(r#""driver":"a.example","pool":"p","device":"e""#),
            Some(r#""deviceClassName":"c""#),
        ] {
            assert!(!admits(engine, Some(&old), &rule(selector, &same)), "{selector:?}");
        }
        for worse in [
            with("NoExecute", 1, more),
            with("NoSchedule", 0, more),
            with("NoSchedule", 1, r#","evictionsPerSecond":20"#),
            // Narrower, and harder.
            with("NoExecute", 2, more),
        ] {
            let narrower = r#""driver":"a.example","pool":"p","device":"d","deviceClassName":"c""#;
            for selector in [ONE, narrower] {
                let new = rule(Some(selector), &worse);
                assert!(admits(engine, None, &new) || !admits(engine, Some(&old), &new), "{new}");
            }
        }
        // From nothing to evictions.
        let silent = rule(Some(ONE), &with("None", 1, more));
        assert!(!admits(engine, Some(&silent), &rule(Some(ONE), &with("NoExecute", 1, more))));
        assert!(!admits(engine, Some(&silent), &rule(Some(""), &with("None", 1, more))));
        // Damage control.
        let old = rule(Some(r#""driver":"a.example""#), &with("NoExecute", 1, more));
        for (selector, taint) in [
            (ONE, with("NoExecute", 1, more)),
            (r#""driver":"a.example","deviceClassName":"c""#, with("NoExecute", 1, more)),
            (
                r#""driver":"a.example","selectors":[{"cel":{"expression":"true"}}]"#,
                with("NoExecute", 1, more),
            ),
            (r#""driver":"a.example""#, with("NoSchedule", 1, more)),
            (r#""driver":"a.example""#, with("None", 1, more)),
            // The server gives what changes its effect a new time; a clock may be behind.
            (r#""driver":"a.example""#, with("None", 0, more)),
            (r#""driver":"a.example""#, with("NoExecute", 2, more)),
            (ONE, with("None", 3, more)),
        ] {
            let new = rule(Some(selector), &taint);
            assert!(admits(engine, Some(&old), &new), "{new}");
        }
        if !more.is_empty() {
            let slower =
                rule(Some(r#""driver":"a.example""#), &with("NoExecute", 1, r#","evictionsPerSecond":7"#));
            assert!(!admits(engine, None, &slower) && admits(engine, Some(&old), &slower));
        }
    }
    // Another key or value is another taint.
    let old = rule(Some(ONE), &taint("bad/a", "NoExecute", 1, ""));
    for other in [taint("bad/b", "NoExecute", 1, ""), taint("bad/a", "NoExecute", 1, r#","value":"v""#)] {
        assert!(!admits(&denied, Some(&old), &rule(Some(ONE), &other)));
    }
}

#[test]
fn expressions_of_a_selector_narrow_it() {
    let engine = engine("policy", &policy("TaintPolicy", "{deny: [{key: bad/*}]}"));
    let with = |texts: &[&str]| {
        let all: Vec<String> =
            texts.iter().map(|text| format!(r#"{{"cel":{{"expression":"{text}"}}}}"#)).collect();
        rule(Some(&format!(r#""selectors":[{}]"#, all.join(","))), &taint("bad/a", "NoSchedule", 1, ""))
    };
    let old = with(&["device.driver == 'a'", "true"]);
    assert!(admits(&engine, Some(&old), &with(&["true", "false", "device.driver == 'a'"])));
    for other in [&["true"][..], &[], &["device.driver == 'a' || true", "true"]] {
        assert!(!admits(&engine, Some(&old), &with(other)), "{other:?}");
    }
}

/// A selector that is missing is every device to the scheduler and none to the eviction controller.
#[test]
fn a_missing_selector_is_both_more_and_less() {
    let engine = engine("policy", &policy("TaintPolicy", "{deny: [{key: bad/*}]}"));
    let with = |selector: Option<&str>, effect: &str| rule(selector, &taint("bad/a", effect, 1, ""));
    let (missing, empty) = (with(None, "NoExecute"), with(Some(""), "NoExecute"));
    assert!(!admits(&engine, Some(&missing), &empty), "the evictions begin");
    assert!(!admits(&engine, Some(&missing), &with(Some(ONE), "NoExecute")), "they begin there");
    assert!(!admits(&engine, Some(&with(Some(ONE), "NoSchedule")), &with(None, "NoSchedule")));
    assert!(admits(&engine, Some(&with(None, "NoSchedule")), &with(Some(ONE), "NoSchedule")));
    assert!(admits(&engine, Some(&missing), &with(None, "NoSchedule")));
}

#[test]
fn damage_control_passes_every_kind_of_policy() {
    let old = rule(Some(""), &taint("bad/a", "NoExecute", 1, r#","evictionsPerSecond":50,"data":{"a":1}"#));
    let lower = |effect: &str, rate: u32| {
        taint("bad/a", effect, 1, &format!(r#","evictionsPerSecond":{rate},"data":{{"a":1}}"#))
    };
    for (kind, spec) in [
        ("TaintPolicy", "{deny: [{key: '*'}]}"),
        ("TaintPolicy", "{allow: []}"),
        // Nothing is allowed but what the rule was.
        ("TaintPolicy", "{allow: [{key: bad/a, effects: [NoExecute]}]}"),
        ("TaintPolicy", "{maxEvictionsPerSecond: 1}"),
        ("TaintPolicy", "{data: [{key: bad/a, schema: {type: string}}]}"),
        ("TaintPolicy", "{match: {drivers: [a.*]}, deny: [{key: '${driver}/*'}, {key: bad/*}]}"),
        ("TaintPolicy", "{validations: [{expression: 'false'}]}"),
        ("TaintPolicy", "{validations: [{expression: 'object.nothing.of.that'}]}"),
        ("TaintPolicy", "{matchConditions: [{name: a, expression: 'object.nothing.of.that'}]}"),
        ("TaintRulePolicy", "{twoSteps: true}"),
        ("TaintRulePolicy", "{requireSelector: [driver, pool, device]}"),
        ("TaintRulePolicy", "{maxImpact: {devices: 0, pods: 0}}"),
        ("TaintRulePolicy", "{validations: [{expression: 'false'}]}"),
    ] {
        let engine = engine("policy", &policy(kind, spec));
        for new in [
            rule(Some(r#""driver":"a.example""#), &lower("NoExecute", 50)),
            rule(Some(""), &lower("NoSchedule", 50)),
            rule(Some(""), &lower("None", 50)),
            rule(Some(""), &lower("NoExecute", 20)),
            rule(Some(r#""pool":"p""#), &lower("None", 2)),
        ] {
            let found = findings_of(&engine, Some(&old), &new);
            assert!(found.is_empty(), "{spec}: {new}: {}", found[0]);
        }
    }
}

/// Lowering the effect of a taint does not excuse other changes to it.
#[test]
fn damage_control_does_not_carry_other_changes_through() {
    let schema = "{data: [{key: bad/a, schema: {type: string}}], deny: [{key: bad/*}]}";
    let engine = engine("policy", &policy("TaintPolicy", schema));
    let with = |effect: &str, more: &str| rule(Some(ONE), &taint("bad/a", effect, 1, more));
    let old = with("NoExecute", r#","data":1"#);
    assert!(admits(&engine, Some(&old), &with("None", r#","data":1"#)));
    assert!(admits(&engine, Some(&old), &with("None", r#","data":1,"description":"broken""#)));
    assert!(admits(&engine, Some(&old), &with("None", r#","data":"right""#)));
    let found = findings_of(&engine, Some(&old), &with("None", r#","data":2"#));
    assert_eq!(found.iter().map(|one| one.finding.rule.id).collect::<Vec<_>>(), ["policy-taint-data"]);
}

#[test]
fn limits_of_the_documentation_and_lints_do_not_spread_either() {
    let engine = engine("documented,lint", &policy("TaintPolicy", "{}"));
    let rules = |old: &str, new: &str| -> Vec<&str> {
        findings_of(&engine, Some(old), new).iter().map(|one| one.finding.rule.id).collect()
    };
    let long = format!(r#","description":"{}""#, "x".repeat(2000));
    let with = |selector: &str, effect: &str, more: &str| {
        rule(Some(selector), &taint("example.com/a", effect, 1, more))
    };
    let old = with(ONE, "NoSchedule", &long);
    assert_eq!(rules(&old, &with(ONE, "None", &long)), [""; 0]);
    assert_eq!(rules(&old, &with(ONE, "NoExecute", &long)), ["oversized-taint-description"]);
    assert_eq!(rules(&old, &with(r#""driver":"a.example""#, "None", &long)), ["oversized-taint-description"]);
    // Fewer are hit, and the same is said in other words.
    let all = with("", "NoExecute", "");
    assert_eq!(rules(&all, &with("", "NoSchedule", "")), [""; 0]);
    assert_eq!(rules(&with("", "NoSchedule", ""), &all), ["empty-taint-selector"]);
}

fn slice(kind: &str, entries: &[(&str, String)]) -> String {
    let all: Vec<String> = entries
        .iter()
        .map(|(device, taint)| match kind {
            "devices" => format!(r#"{{"name":"{device}","taints":[{taint}]}}"#),
            "nested" => format!(r#"{{"device":"{device}","taint":{taint}}}"#),
            _ => taint.replacen('{', &format!(r#"{{"device":"{device}","#), 1),
        })
        .collect();
    let field = if kind == "devices" { "devices" } else { "taints" };
    format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"s","resourceVersion":"1"}},"spec":{{"driver":"a.example","nodeName":"n","pool":{{"name":"p","generation":1,"resourceSliceCount":1}},"{field}":[{}]}}}}"#,
        all.join(",")
    )
}

#[test]
fn a_stored_taint_of_a_device_excuses_that_device_only() {
    let denied = engine("policy", &policy("TaintPolicy", "{deny: [{key: bad/*}]}"));
    let fast = engine("policy", &policy("TaintPolicy", "{maxEvictionsPerSecond: 5}"));
    for (engine, more) in [(&denied, ""), (&fast, r#","evictionsPerSecond":8"#)] {
        let with = |effect: &str, time: u32| format!("{{{}}}", taint("bad/a", effect, time, more));
        let (bad, good) =
            (with("NoSchedule", 1), r#"{"key":"good/a","effect":"None","timeAdded":"2026-01-01T00:00:00Z"}"#);
        for kind in ["devices", "nested", "inlined"] {
            let old = slice(kind, &[("a", bad.clone()), ("b", good.to_owned())]);
            assert!(!admits(engine, None, &old), "refused on CREATE");
            for (entries, expected) in [
                (vec![("b", good.to_owned()), ("a", bad.clone())], true),
                (vec![("a", bad.clone()), ("c", good.to_owned())], true),
                (vec![("a", with("None", 1))], true),
                (vec![("a", with("NoSchedule", 2))], true),
                // On another device: renamed, exchanged, beside, twice.
                (vec![("c", bad.clone())], false),
                (vec![("b", bad.clone()), ("a", good.to_owned())], false),
                (vec![("a", bad.clone()), ("b", bad.clone())], false),
                (vec![("a", bad.clone()), ("a", bad.clone())], false),
                // Harder, sooner, another one.
                (vec![("a", with("NoExecute", 1))], false),
                (vec![("a", with("NoSchedule", 0))], false),
                (vec![("a", bad.replace("bad/a", "bad/b"))], false),
                (vec![("a", bad.replacen('{', r#"{"value":"v","#, 1))], false),
            ] {
                let new = slice(kind, &entries);
                assert_eq!(admits(engine, Some(&old), &new), expected, "{new}");
            }
            // Names are names within a pool of a driver.
            for (from, to) in [(r#""name":"p""#, r#""name":"q""#), ("a.example", "b.example")] {
                assert!(!admits(engine, Some(&old), &old.replace(from, to)), "{kind}: {to}");
            }
        }
    }
}

#[test]
fn taints_of_a_device_excuse_each_other_in_any_order() {
    let engine = engine("policy", &policy("TaintPolicy", "{deny: [{key: bad/*}]}"));
    let with = |effects: &[&str]| {
        let all: Vec<String> =
            effects.iter().map(|effect| format!("{{{}}}", taint("bad/a", effect, 1, ""))).collect();
        slice("devices", &[("a", all.join(","))])
    };
    let old = with(&["NoExecute", "NoSchedule"]);
    for admitted in
        [&["NoSchedule", "NoExecute"][..], &["NoSchedule"], &["NoExecute"], &["None", "NoSchedule"]]
    {
        assert!(admits(&engine, Some(&old), &with(admitted)), "{admitted:?}");
    }
    for refused in [&["NoExecute", "NoExecute"][..], &["NoExecute", "NoSchedule", "None"]] {
        assert!(!admits(&engine, Some(&old), &with(refused)), "{refused:?}");
    }
}

#[test]
fn a_patch_that_is_stored_does_not_spread() {
    let engine = engine("policy", &policy("TaintPolicy", "{deny: [{key: bad/*}]}"));
    let patch = |filter: &str, effects: &[&str]| {
        let all: Vec<String> =
            effects.iter().map(|effect| format!("{{{}}}", taint("bad/a", effect, 1, ""))).collect();
        format!(
            r#"{{"apiVersion":"resource.k8s.io/v1alpha3","kind":"ResourceSlicePatch","metadata":{{"name":"s","resourceVersion":"1"}},"spec":{{"devices":{{"filter":{{{filter}}},"taints":[{}]}}}}}}"#,
            all.join(",")
        )
    };
    let old = patch(ONE, &["NoSchedule"]);
    assert!(!admits(&engine, None, &old) && admits(&engine, Some(&old), &old));
    for worse in
        [patch("", &["NoSchedule"]), patch(ONE, &["NoExecute"]), patch(ONE, &["NoSchedule", "NoExecute"])]
    {
        assert!(!admits(&engine, Some(&old), &worse), "{worse}");
    }
    let wide = patch(r#""driver":"a.example""#, &["NoSchedule"]);
    assert!(admits(&engine, Some(&wide), &old));
    assert!(admits(&engine, Some(&old), &patch(ONE, &["None"])));
}

/// A DeviceTaintRule of the model.
#[derive(Clone, PartialEq, Debug)]
struct Model {
    /// Driver, pool and device, each one of two or absent; `None` if there is no selector.
    selector: Option<[Option<usize>; 3]>,
    effect: usize,
    /// Evictions per second; none is ten.
    rate: Option<i64>,
    time: u32,
    key: usize,
}

const NAMES: [[&str; 2]; 3] = [["a.example", "b.example"], ["p", "q"], ["d", "e"]];
const EFFECTS: [&str; 3] = ["None", "NoSchedule", "NoExecute"];
const KEYS: [&str; 2] = ["bad/a", "worse/a"];

impl Model {
    fn json(&self) -> String {
        let selector = self.selector.map(|criteria| {
            let names = ["driver", "pool", "device"].into_iter().zip(NAMES).zip(criteria);
            let members = names.filter_map(|((name, values), value)| {
                value.map(|value| format!(r#""{name}":"{}""#, values[value]))
            });
            members.collect::<Vec<_>>().join(",")
        });
        let rate = self.rate.map(|rate| format!(r#","evictionsPerSecond":{rate}"#)).unwrap_or_default();
        rule(selector.as_deref(), &taint(KEYS[self.key], EFFECTS[self.effect], self.time, &rate))
    }

    /// Whether the rule taints a device for the scheduler, and for the eviction controller.
    fn reaches(&self, device: [usize; 3]) -> [bool; 2] {
        match self.selector {
            None => [true, false],
            Some(criteria) => {
                let fits = criteria
                    .into_iter()
                    .zip(device)
                    .all(|(criterion, name)| criterion.is_none_or(|one| one == name));
                [fits, fits]
            }
        }
    }

    /// True if the rule affects some device in a way that the other does not.
    fn does_more_than(&self, other: &Model) -> bool {
        let devices = (0..8).map(|bits| [bits & 1, (bits >> 1) & 1, bits >> 2]);
        let rate = |model: &Model| model.rate.unwrap_or(10);
        let is_harder = self.effect > other.effect
            || rate(self) > rate(other)
            || self.effect == other.effect && self.time < other.time
            || self.effect > 0 && self.key != other.key;
        devices.into_iter().any(|device| {
            let (mine, others) = (self.reaches(device), other.reaches(device));
            let counts = [true, self.effect == 2];
            (0..2).any(|who| counts[who] && mine[who] && (!others[who] || is_harder))
        })
    }
}

/// A pseudorandom number generator (with Knuth's constants).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % sides).expect("small")
    }

    fn maybe(&mut self) -> Option<usize> {
        let endpoint = self.roll(4);
        (endpoint < 2).then_some(endpoint)
    }

    fn model(&mut self) -> Model {
        Model {
            selector: (self.roll(8) > 0).then(|| [self.maybe(), self.maybe(), self.maybe()]),
            effect: self.roll(3),
            rate: [None, Some(1), Some(10), Some(30)][self.roll(4)],
            time: u32::try_from(self.roll(3)).expect("small"),
            key: self.roll(2),
        }
    }

    /// A random model that differs a little from `old`, or completely.
    fn next(&mut self, old: &Model) -> Model {
        let other = self.model();
        let mut new = old.clone();
        for _ in 0..=self.roll(3) {
            match self.roll(6) {
                0 => new.selector = other.selector,
                1 => new.effect = other.effect,
                2 => new.rate = other.rate,
                3 => new.time = other.time,
                4 => new.key = other.key,
                _ => {
                    if let (Some(criteria), Some(others)) = (&mut new.selector, other.selector) {
                        let which = self.roll(3);
                        criteria[which] = others[which];
                    }
                }
            }
        }
        new
    }

    /// A random rule that is narrower, weaker, slower or later than `old`.
    fn narrower_model(&mut self, old: &Model) -> Model {
        let mut new = old.clone();
        if let Some(criteria) = &mut new.selector {
            for criterion in criteria {
                *criterion = criterion.or_else(|| self.maybe());
            }
        }
        new.effect = self.roll(u64::try_from(old.effect).expect("small") + 1);
        if self.roll(2) == 0 {
            new.rate = Some(old.rate.unwrap_or(10).min(1));
        }
        new.time = old.time + u32::try_from(self.roll(2)).expect("small");
        new
    }
}

const POLICIES: [(&str, &str); 9] = [
    ("TaintPolicy", "{deny: [{key: bad/*}]}"),
    ("TaintPolicy", "{deny: [{key: worse/*, effects: [NoSchedule, NoExecute]}]}"),
    ("TaintPolicy", "{allow: [{key: bad/a, effects: [NoSchedule]}]}"),
    ("TaintPolicy", "{maxEvictionsPerSecond: 5}"),
    ("TaintPolicy", "{match: {drivers: [a.example]}, deny: [{key: '*'}]}"),
    ("TaintRulePolicy", "{requireSelector: [any]}"),
    ("TaintRulePolicy", "{requireSelector: [driver, pool]}"),
    ("TaintRulePolicy", "{maxImpact: {devices: 3}}"),
    ("TaintRulePolicy", "{validations: [{expression: 'object.spec.taint.effect != \"NoExecute\"'}]}"),
];

#[test]
fn what_reaches_more_is_judged_like_new_and_what_reaches_less_is_admitted() {
    let (mut dice, mut refused, mut excused) = (Dice(5055), 0, 0);
    for (kind, spec) in POLICIES {
        let engine = engine("policy", &policy(kind, spec));
        for _ in 0..700 {
            let old = dice.model();
            let new = dice.next(&old);
            if new.does_more_than(&old) && !admits(&engine, None, &new.json()) {
                refused += 1;
                assert!(!admits(&engine, Some(&old.json()), &new.json()), "{spec}: {old:?} -> {new:?}");
            }
            let less = dice.narrower_model(&old);
            assert!(!less.does_more_than(&old), "the model disagrees with itself: {old:?} -> {less:?}");
            let found = findings_of(&engine, Some(&old.json()), &less.json());
            assert!(found.is_empty(), "{spec}: {old:?} -> {less:?}: {}", found[0]);
            excused += usize::from(!admits(&engine, None, &less.json()));
        }
    }
    assert!(refused > 500 && excused > 500, "{refused} refused, {excused} excused");
}
