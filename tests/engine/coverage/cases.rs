//! Random tolerations and policy entries, and what they cover: as computed, and by brute force over every taint of a
//! small universe.
//!
//! The universe has keys, values and an effect that no entry names: they stand for all that are not listed.

use tollgate_api::view::{Taint, Toleration, View as _};
use tollgate_document::doc;
use tollgate_engine::tolerance::coverage::{
    EffectSet, KeyPattern, PolicyEntry, ToleratedTaints, nearest_entry, uncovered_effects,
};
use tollgate_engine::tolerance::tolerates;

const KEYS: [&str; 7] = ["a.io/x", "a.io/y", "a.io/other", "b.io/x", "plain", "other.io/x", "other"];
const VALUES: [&str; 4] = ["", "u", "v", "other"];
const EFFECTS: [&str; 3] = ["None", "NoSchedule", "NoExecute"];
/// Durations asked of a taint; the last one stands for forever.
const DURATIONS: [i64; 5] = [0, 1, 60, 600, i64::MAX];

/// Numbers: first those that are given, then those of a seed (SplitMix64), the same on every run.
pub(crate) struct Dice<'a>(pub(crate) u64, pub(crate) &'a [u8]);

impl Dice<'_> {
    fn roll(&mut self, sides: usize) -> usize {
        if let Some((first, rest)) = self.1.split_first() {
            self.1 = rest;
            return usize::from(*first) % sides;
        }
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

fn random_toleration(dice: &mut Dice<'_>) -> String {
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

fn random_entry(dice: &mut Dice<'_>) -> PolicyEntry {
    let keys = dice.pick(&["*", "*", "a.io/*", "b.io/*", "a.io/x", "a.io/y", "b.io/x", "plain"]);
    let values = match dice.roll(3) {
        0 | 1 => None,
        _ => Some((0..dice.roll(4)).map(|_| dice.pick(&["", "u", "v"]).into()).collect()),
    };
    let effects = match dice.roll(3) {
        0 => EffectSet::ALL,
        _ => (0..=dice.roll(2))
            .fold(EffectSet::EMPTY, |all, _| all.union(EffectSet::from_name(dice.pick(&EFFECTS)))),
    };
    let seconds = (dice.roll(2) == 0).then(|| [0, 60, 600][dice.roll(3)]);
    PolicyEntry { keys: KeyPattern::parse(keys).unwrap(), values, effects, seconds }
}

/// True if the entry has the taint for that long: the definition, written down a second time.
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
    key_in && value_in && entry.effects.contains(EffectSet::from_name(effect)) && in_time
}

/// Every (taint, duration) of the universe that the toleration tolerates.
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

/// How many cases there were, and of which kind.
#[derive(Default, Clone, Copy, Debug)]
pub(crate) struct Tally {
    pub(crate) cases: u32,
    pub(crate) covered: u32,
    pub(crate) hit: u32,
}

/// Compares one toleration with six lists of entries.
pub(crate) fn compare_coverage(dice: &mut Dice<'_>, tally: &mut Tally) {
    let text = random_toleration(dice);
    let document = doc::parse(&text).unwrap();
    let toleration = Toleration::of(document.root());
    let tolerated = ToleratedTaints::from_toleration(toleration);
    let mut taints: Vec<(String, String, String, Option<i64>)> = vec![];
    each_taint(toleration, |key, value, effect, duration| {
        taints.push((key.to_owned(), value.to_owned(), effect.to_owned(), duration));
    });
    for _ in 0..6 {
        let entries: Vec<PolicyEntry> = (0..dice.roll(5)).map(|_| random_entry(dice)).collect();
        let is_covered = taints.iter().all(|(key, value, effect, duration)| {
            effect == "None" || entries.iter().any(|entry| has(entry, key, value, effect, *duration))
        });
        let missing = uncovered_effects(&tolerated, &entries);
        assert_eq!(missing.is_empty(), is_covered, "{text} in {entries:?}");
        for entry in &entries {
            let is_hit = taints.iter().any(|(key, value, effect, _)| has(entry, key, value, effect, None));
            assert_eq!(entry.intersects(&tolerated), is_hit, "{text} hit by {entry:?}");
            tally.hit += u32::from(is_hit);
        }
        if !missing.is_empty() && !entries.is_empty() {
            let (_, shortfall) = nearest_entry(&tolerated, missing, &entries).unwrap();
            let shortfalls = shortfall.keys
                || shortfall.values
                || !shortfall.effects.is_empty()
                || shortfall.seconds.is_some();
            assert!(shortfalls, "{text}: the nearest of {entries:?} lacks nothing");
        }
        tally.cases += 1;
        tally.covered += u32::from(is_covered);
    }
}

/// Compares two tolerations, of which one may contain the other.
pub(crate) fn compare_containment(dice: &mut Dice<'_>) {
    let (one, other) = (random_toleration(dice), random_toleration(dice));
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
        ToleratedTaints::from_toleration(outer).contains(&ToleratedTaints::from_toleration(inner)),
        inside,
        "{other} in {one}"
    );
}
