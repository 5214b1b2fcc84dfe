//! Coverage of tolerations, held against brute force: every taint of a small universe, one by one.
//!
//! The universe has keys, values and an effect that no entry names: they stand for all that are not listed.
#![allow(clippy::indexing_slicing, reason = "the dice know how many sides there are")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![allow(clippy::disallowed_macros, clippy::print_stdout, reason = "numbers for people, with --nocapture")]

use tollgate_api::view::{Taint, Toleration, View as _};
use tollgate_document::doc;
use tollgate_engine::tolerance::coverage::{
    Effects, KeyPattern, PolicyEntry, ToleratedTaints, nearest, uncovered,
};
use tollgate_engine::tolerance::tolerates;

const KEYS: [&str; 7] = ["a.io/x", "a.io/y", "a.io/other", "b.io/x", "plain", "other.io/x", "other"];
const VALUES: [&str; 4] = ["", "u", "v", "other"];
const EFFECTS: [&str; 3] = ["None", "NoSchedule", "NoExecute"];
/// Sample toleration durations in seconds; the last one means forever.
const DURATIONS: [i64; 5] = [0, 1, 60, 600, i64::MAX];

/// A seeded pseudorandom number generator (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % sides as u64).unwrap()
    }

    fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.roll(of.len())]
    }
}

fn random_toleration(dice: &mut Dice) -> String {
    let mut fields = vec![];
    let key = dice.pick(&["", "a.io/x", "a.io/y", "b.io/x", "plain"]);
    if !key.is_empty() {
        fields.push(format!(r#""key":"{key}""#));
    }
    match dice.roll(3) {
        0 => fields.push(r#""operator":"Exists""#.to_owned()),
        endpoint => {
            if endpoint == 1 {
                fields.push(r#""operator":"Equal""#.to_owned());
            }
            fields.push(format!(r#""value":"{}""#, dice.pick(&["", "u", "v"])));
        }
    }
    let effect = dice.pick(&["", "", "None", "NoSchedule", "NoExecute"]);
    if !effect.is_empty() {
        fields.push(format!(r#""effect":"{effect}""#));
    }
    if dice.roll(2) == 0 {
        fields.push(format!(r#""tolerationSeconds":{}"#, [-5, 0, 60, 61, 600][dice.roll(5)]));
    }
    format!("{{{}}}", fields.join(","))
}

fn random_entry(dice: &mut Dice) -> PolicyEntry {
    let keys = dice.pick(&["*", "*", "a.io/*", "b.io/*", "a.io/x", "a.io/y", "b.io/x", "plain"]);
    let values = match dice.roll(3) {
        0 | 1 => None,
        _ => Some((0..dice.roll(4)).map(|_| dice.pick(&["", "u", "v"]).into()).collect()),
    };
    let effects = match dice.roll(3) {
        0 => Effects::ALL,
        _ => (0..=dice.roll(2)).fold(Effects::EMPTY, |all, _| all.or(Effects::named(dice.pick(&EFFECTS)))),
    };
    let seconds = (dice.roll(2) == 0).then(|| [0, 60, 600][dice.roll(3)]);
    PolicyEntry { keys: KeyPattern::parse(keys).unwrap(), values, effects, seconds }
}

/// True if the entry contains the taint for this duration: an independent implementation of the definition.
fn has(entry: &PolicyEntry, key: &str, value: &str, effect: &str, duration: Option<i64>) -> bool {
    let key_in = match &entry.keys {
        KeyPattern::Any => true,
        KeyPattern::Prefix(prefix) => {
            key.split_once('/').is_some_and(|(domain, _)| format!("{domain}/") == **prefix)
        }
        KeyPattern::Exact(only) => **only == *key,
    };
    let value_in = entry.values.as_ref().is_none_or(|values| values.iter().any(|one| **one == *value));
    let in_time = duration.is_none_or(|duration| entry.seconds.is_none_or(|limit| duration <= limit));
    key_in && value_in && entry.effects.contains(Effects::named(effect)) && in_time
}

/// Calls `visit` for every taint and duration of the universe that the toleration tolerates.
fn each_taint(toleration: Toleration<'_>, mut visit: impl FnMut(&str, &str, &str, Option<i64>)) {
    let limit = toleration.toleration_seconds().map_or(i64::MAX, |seconds| seconds.max(0));
    for key in KEYS {
        for value in VALUES {
            for effect in EFFECTS {
                let text = format!(r#"{{"key":"{key}","value":"{value}","effect":"{effect}"}}"#);
                let document = doc::parse(&text).unwrap();
                if !tolerates(toleration, Taint::of(document.root())) {
                    continue;
                }
                if effect == "NoExecute" {
                    // All durations up to the limit, and the limit itself.
                    for duration in DURATIONS.into_iter().filter(|one| *one <= limit).chain([limit]) {
                        visit(key, value, effect, Some(duration));
                    }
                } else {
                    visit(key, value, effect, None);
                }
            }
        }
    }
}

#[test]
fn coverage_and_denial_agree_with_brute_force() {
    let mut dice = Dice(5055);
    let (mut cases, mut covered, mut hit) = (0u32, 0u32, 0u32);
    for _ in 0..20_000 {
        let text = random_toleration(&mut dice);
        let document = doc::parse(&text).unwrap();
        let toleration = Toleration::of(document.root());
        let tolerated = ToleratedTaints::as_written(toleration);
        let mut taints: Vec<(String, String, String, Option<i64>)> = vec![];
        each_taint(toleration, |key, value, effect, duration| {
            taints.push((key.to_owned(), value.to_owned(), effect.to_owned(), duration));
        });
        for _ in 0..6 {
            let entries: Vec<PolicyEntry> = (0..dice.roll(5)).map(|_| random_entry(&mut dice)).collect();
            let is_covered = taints.iter().all(|(key, value, effect, duration)| {
                effect == "None" || entries.iter().any(|entry| has(entry, key, value, effect, *duration))
            });
            let missing = uncovered(&tolerated, &entries);
            assert_eq!(missing.is_empty(), is_covered, "{text} in {entries:?}");
            for entry in &entries {
                let is_hit =
                    taints.iter().any(|(key, value, effect, _)| has(entry, key, value, effect, None));
                assert_eq!(entry.intersects(&tolerated), is_hit, "{text} hit by {entry:?}");
                hit += u32::from(is_hit);
            }
            if !missing.is_empty() && !entries.is_empty() {
                let (_, shortfall) = nearest(&tolerated, missing, &entries).unwrap();
                let shortfalls = shortfall.keys
                    || shortfall.values
                    || !shortfall.effects.is_empty()
                    || shortfall.seconds.is_some();
                assert!(shortfalls, "{text}: the nearest of {entries:?} lacks nothing");
            }
            cases += 1;
            covered += u32::from(is_covered);
        }
    }
    println!("{cases} cases, {covered} covered, {hit} entries hit");
    assert!(cases >= 100_000 && covered > cases / 20 && covered < cases / 2);
}

#[test]
fn containment_agrees_with_brute_force() {
    let mut dice = Dice(16);
    for _ in 0..4_000 {
        let (one, other) = (random_toleration(&mut dice), random_toleration(&mut dice));
        let (one_doc, other_doc) = (doc::parse(&one).unwrap(), doc::parse(&other).unwrap());
        let (outer, inner) = (Toleration::of(one_doc.root()), Toleration::of(other_doc.root()));
        let limit = outer.toleration_seconds().map_or(i64::MAX, |seconds| seconds.max(0));
        let mut inside = true;
        each_taint(inner, |key, value, effect, duration| {
            let text = format!(r#"{{"key":"{key}","value":"{value}","effect":"{effect}"}}"#);
            let document = doc::parse(&text).unwrap();
            inside &= tolerates(outer, Taint::of(document.root())) && duration.is_none_or(|d| d <= limit);
        });
        assert_eq!(
            ToleratedTaints::as_written(outer).contains(&ToleratedTaints::as_written(inner)),
            inside,
            "{other} in {one}"
        );
    }
}

fn entry(keys: &str, values: Option<&[&str]>, effects: &[&str], seconds: Option<i64>) -> PolicyEntry {
    let values = values.map(|values| values.iter().map(|value| Box::from(*value)).collect());
    let effects = effects.iter().fold(Effects::EMPTY, |all, name| all.or(Effects::named(name)));
    let effects = if effects.is_empty() { Effects::ALL } else { effects };
    PolicyEntry { keys: KeyPattern::parse(keys).unwrap(), values, effects, seconds }
}

fn is_covered(toleration: &str, entries: &[PolicyEntry]) -> bool {
    let document = doc::parse(toleration).unwrap();
    uncovered(&ToleratedTaints::as_written(Toleration::of(document.root())), entries).is_empty()
}

fn is_hit(toleration: &str, by: &PolicyEntry) -> bool {
    let document = doc::parse(toleration).unwrap();
    by.intersects(&ToleratedTaints::as_written(Toleration::of(document.root())))
}

/// PodTolerationRestriction: an empty whitelist allows everything. Here no entry covers nothing.
#[test]
fn trap_one_no_entries_cover_nothing() {
    assert!(!is_covered(r#"{"key":"a.io/x","operator":"Exists"}"#, &[]));
    assert!(!is_covered("{}", &[]));
    assert!(is_covered(r#"{"operator":"Exists","effect":"None"}"#, &[]), "effect None needs no permission");
}

/// PodTolerationRestriction compares seconds only if the whitelist entry itself has the effect NoExecute.
#[test]
fn trap_two_seconds_count_with_an_entry_for_all_effects() {
    let entries = [entry("a.io/x", None, &[], Some(60))];
    assert!(is_covered(
        r#"{"key":"a.io/x","operator":"Exists","effect":"NoExecute","tolerationSeconds":60}"#,
        &entries
    ));
    assert!(!is_covered(
        r#"{"key":"a.io/x","operator":"Exists","effect":"NoExecute","tolerationSeconds":61}"#,
        &entries
    ));
    assert!(!is_covered(r#"{"key":"a.io/x","operator":"Exists","effect":"NoExecute"}"#, &entries), "forever");
    assert!(is_covered(r#"{"key":"a.io/x","operator":"Exists","effect":"NoSchedule"}"#, &entries));
}

/// PodTolerationRestriction: a toleration without operator is not covered by an Equal entry unless deep-equal.
#[test]
fn trap_three_a_missing_operator_means_equal() {
    let entries = [entry("a.io/x", Some(&["u"]), &["NoSchedule"], None)];
    assert!(is_covered(r#"{"key":"a.io/x","value":"u","effect":"NoSchedule"}"#, &entries));
    assert!(is_covered(r#"{"key":"a.io/x","operator":"Equal","value":"u","effect":"NoSchedule"}"#, &entries));
    assert!(!is_covered(r#"{"key":"a.io/x","operator":"Exists","effect":"NoSchedule"}"#, &entries));
}

#[test]
fn entries_add_up_over_effects() {
    let both = [entry("a.io/x", None, &["NoSchedule"], None), entry("a.io/*", None, &["NoExecute"], None)];
    assert!(is_covered(r#"{"key":"a.io/x","operator":"Exists"}"#, &both));
    assert!(!is_covered(r#"{"key":"a.io/x","operator":"Exists"}"#, &both[..1]));
    assert!(!is_covered(r#"{"key":"a.io/y","operator":"Exists"}"#, &both));
}

#[test]
fn prefix_keys_hold_names_under_their_domain_only() {
    let entries = [entry("a.io/*", None, &[], None)];
    assert!(is_covered(r#"{"key":"a.io/x","operator":"Exists"}"#, &entries));
    for key in ["a.io", "a.iox/x", "b.a.io/x", "x"] {
        assert!(!is_covered(&format!(r#"{{"key":"{key}","operator":"Exists"}}"#), &entries), "{key}");
    }
    for key in ["", "a*", "a.io/x*", "*/x", "/*", "**", "*.io/*"] {
        assert_eq!(KeyPattern::parse(key), None, "{key}");
    }
}

#[test]
fn a_toleration_without_key_needs_a_star() {
    let listed = [entry("a.io/*", None, &[], None), entry("plain", None, &[], None)];
    assert!(!is_covered(r#"{"operator":"Exists"}"#, &listed));
    assert!(!is_covered("{}", &listed));
    assert!(is_covered("{}", &[entry("*", Some(&[""]), &[], None)]));
    assert!(!is_covered(r#"{"operator":"Exists"}"#, &[entry("*", Some(&[""]), &[], None)]));
    assert!(is_covered(r#"{"operator":"Exists"}"#, &[entry("*", None, &[], None)]));
}

#[test]
fn seconds_with_an_empty_effect_limit_the_no_execute_part() {
    let limited = [entry("a.io/x", None, &[], Some(60))];
    assert!(is_covered(r#"{"key":"a.io/x","operator":"Exists","tolerationSeconds":60}"#, &limited));
    assert!(!is_covered(r#"{"key":"a.io/x","operator":"Exists"}"#, &limited));
    let split =
        [entry("a.io/x", None, &["NoExecute"], Some(60)), entry("a.io/x", None, &["NoSchedule"], None)];
    assert!(is_covered(r#"{"key":"a.io/x","operator":"Exists","tolerationSeconds":-1}"#, &split));
    assert!(!is_covered(r#"{"key":"a.io/x","operator":"Exists","tolerationSeconds":61}"#, &split));
}

#[test]
fn effect_none_needs_no_permission_and_can_still_be_denied() {
    let none = r#"{"key":"a.io/x","operator":"Exists","effect":"None"}"#;
    assert!(is_covered(none, &[]));
    assert!(is_hit(none, &entry("a.io/x", None, &[], None)));
    assert!(is_hit(none, &entry("a.io/x", None, &["None"], None)));
    assert!(!is_hit(none, &entry("a.io/x", None, &["NoSchedule", "NoExecute"], None)));
}

#[test]
fn a_deny_entry_hits_whatever_reaches_into_it() {
    let lost = entry("a.io/lost", Some(&["u"]), &["NoExecute"], Some(0));
    assert!(is_hit(r#"{"operator":"Exists"}"#, &lost));
    assert!(
        is_hit(r#"{"key":"a.io/lost","value":"u","tolerationSeconds":600}"#, &lost),
        "seconds play no part"
    );
    assert!(!is_hit(r#"{"key":"a.io/lost","value":"v"}"#, &lost));
    assert!(!is_hit(r#"{"key":"a.io/lost","value":"u","effect":"NoSchedule"}"#, &lost));
    assert!(!is_hit("{}", &lost), "an empty value is not `u`");
}

#[test]
fn the_nearest_entry_is_the_one_with_the_right_key() {
    let entries = [
        entry("b.io/x", None, &[], None),
        entry("a.io/x", Some(&["u"]), &["NoSchedule"], None),
        entry("a.io/x", None, &["NoExecute"], Some(60)),
        entry("a.io/x", None, &["NoExecute"], Some(600)),
    ];
    let text = r#"{"key":"a.io/x","operator":"Exists","effect":"NoExecute"}"#;
    let document = doc::parse(text).unwrap();
    let tolerated = ToleratedTaints::as_written(Toleration::of(document.root()));
    let missing = uncovered(&tolerated, &entries);
    assert_eq!(missing, Effects::NO_EXECUTE);
    let (index, shortfall) = nearest(&tolerated, missing, &entries).unwrap();
    assert_eq!((index, shortfall.seconds, shortfall.keys, shortfall.values), (3, Some(600), false, false));
}
