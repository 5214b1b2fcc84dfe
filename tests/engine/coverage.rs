//! Coverage of tolerations, compared with brute force ([`cases`]), and the mistakes of other implementations.
#![allow(clippy::indexing_slicing, reason = "the dice know how many sides there are")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![allow(clippy::disallowed_macros, clippy::print_stdout, reason = "numbers for people, with --nocapture")]

mod cases;

use cases::{Dice, Tally};
use tollgate_api::view::{Toleration, View as _};
use tollgate_document::doc;
use tollgate_engine::tolerance::coverage::{
    EffectSet, KeyPattern, PolicyEntry, ToleratedTaints, nearest_entry, uncovered_effects,
};

#[test]
fn coverage_and_denial_agree_with_brute_force() {
    let mut dice = Dice(5055, &[]);
    let mut tally = Tally::default();
    for _ in 0..20_000 {
        cases::compare_coverage(&mut dice, &mut tally);
    }
    let Tally { cases, covered, hit } = tally;
    println!("{cases} cases, {covered} covered, {hit} entries hit");
    assert!(cases >= 100_000 && covered > cases / 20 && covered < cases / 2);
}

#[test]
fn containment_agrees_with_brute_force() {
    let mut dice = Dice(16, &[]);
    for _ in 0..4_000 {
        cases::compare_containment(&mut dice);
    }
}

fn entry(keys: &str, values: Option<&[&str]>, effects: &[&str], seconds: Option<i64>) -> PolicyEntry {
    let values = values.map(|values| values.iter().map(|value| Box::from(*value)).collect());
    let effects = effects.iter().fold(EffectSet::EMPTY, |all, name| all.union(EffectSet::from_name(name)));
    let effects = if effects.is_empty() { EffectSet::ALL } else { effects };
    PolicyEntry { keys: KeyPattern::parse(keys).unwrap(), values, effects, seconds }
}

fn is_covered(toleration: &str, entries: &[PolicyEntry]) -> bool {
    let document = doc::parse(toleration).unwrap();
    uncovered_effects(&ToleratedTaints::from_toleration(Toleration::of(document.root())), entries).is_empty()
}

fn is_hit(toleration: &str, by: &PolicyEntry) -> bool {
    let document = doc::parse(toleration).unwrap();
    by.intersects(&ToleratedTaints::from_toleration(Toleration::of(document.root())))
}

/// PodTolerationRestriction: an empty whitelist allows everything. Here no entry covers nothing.
#[test]
fn trap_one_no_entries_cover_nothing() {
    assert!(!is_covered(r#"{"key":"a.io/x","operator":"Exists"}"#, &[]));
    assert!(!is_covered("{}", &[]));
    assert!(is_covered(r#"{"operator":"Exists","effect":"None"}"#, &[]), "effect None needs no permission");
}

/// PodTolerationRestriction: seconds are compared only where the whitelist entry says NoExecute itself.
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
    let tolerated = ToleratedTaints::from_toleration(Toleration::of(document.root()));
    let missing = uncovered_effects(&tolerated, &entries);
    assert_eq!(missing, EffectSet::NO_EXECUTE);
    let (index, shortfall) = nearest_entry(&tolerated, missing, &entries).unwrap();
    assert_eq!((index, shortfall.seconds, shortfall.keys, shortfall.values), (3, Some(600), false, false));
}

/// Two entries for a toleration of NoExecute taints; the second one is nearer.
#[test]
fn the_nearest_entry_lacks_least() {
    let every_value = r#"{"key":"a.io/x","operator":"Exists","effect":"NoExecute"}"#;
    let one_value = r#"{"key":"a.io/x","value":"v","effect":"NoExecute"}"#;
    let (execute, schedule) = (&["NoExecute"][..], &["NoSchedule"][..]);
    let other_value = entry("a.io/x", Some(&["u"]), execute, None);
    let other_effect = entry("a.io/x", None, schedule, None);
    for (toleration, farther, nearer) in [
        (every_value, &other_effect, &other_value),
        (one_value, &other_value, &other_effect),
        (every_value, &entry("a.io/x", Some(&["u"]), execute, Some(60)), &other_value),
        (every_value, &other_value, &entry("a.io/x", None, execute, Some(60))),
        (every_value, &entry("b.io/x", None, execute, None), &other_effect),
        (every_value, &entry("b.io/x", None, execute, None), &entry("a.io/y", None, schedule, None)),
        // The more specific key.
        (every_value, &entry("*", None, schedule, None), &entry("a.io/*", None, schedule, None)),
        (every_value, &entry("a.io/*", None, schedule, None), &other_effect),
    ] {
        let document = doc::parse(toleration).unwrap();
        let tolerated = ToleratedTaints::from_toleration(Toleration::of(document.root()));
        for (entries, expected) in [([farther, nearer], 1), ([nearer, farther], 0)] {
            let missing = uncovered_effects(&tolerated, entries);
            let found = nearest_entry(&tolerated, missing, entries).map(|(index, _)| index);
            assert_eq!(found, Some(expected), "{toleration}: {entries:?}");
        }
    }
}
