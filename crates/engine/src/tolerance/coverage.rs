//! Checks whether a union of policy entries covers a toleration and, if not, what is missing.
//!
//! A toleration matches a set of taints ([`ToleratedTaints`]): keys × values × effects, with a duration for
//! NoExecute. A [`PolicyEntry`] describes such a set too. There are infinitely many keys and values but finitely many
//! entries, so no collection of exact keys, prefixes or values adds up to all of them: for each effect, *one* entry
//! has to contain every key and every value that the toleration matches. Effects are finite, so entries do add up
//! over effects.
//!
//! This file knows nothing about policies: the caller keeps track of whose entry it was.
//!
//! Invariant: the results are exact, which `tests/engine/coverage.rs` checks by brute force; nothing is allocated.

use std::cmp::Reverse;

use tollgate_api::view::Toleration;

/// A set of taint effects.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct EffectSet(u8);

impl EffectSet {
    /// The empty set.
    pub const EMPTY: EffectSet = EffectSet(0);
    pub const EFFECT_NONE: EffectSet = EffectSet(1);
    pub const NO_SCHEDULE: EffectSet = EffectSet(2);
    pub const NO_EXECUTE: EffectSet = EffectSet(4);
    /// Any other effect, from a future release.
    pub const OTHER_EFFECTS: EffectSet = EffectSet(8);
    /// The effects that exist in current releases.
    pub const KNOWN: EffectSet = EffectSet(7);
    /// Every effect, including future ones.
    pub const ALL: EffectSet = EffectSet(15);

    const EFFECT_NAMES: [(EffectSet, &'static str); 3] = [
        (EffectSet::EFFECT_NONE, "None"),
        (EffectSet::NO_SCHEDULE, "NoSchedule"),
        (EffectSet::NO_EXECUTE, "NoExecute"),
    ];

    /// Returns the effect of that name; [`EffectSet::OTHER_EFFECTS`] if it is unknown.
    pub fn from_name(name: &str) -> EffectSet {
        let found = EffectSet::EFFECT_NAMES.iter().find(|(_, known)| *known == name);
        found.map_or(EffectSet::OTHER_EFFECTS, |(effect, _)| *effect)
    }

    /// Returns the effects that are in either set.
    #[must_use]
    pub const fn union(self, other: EffectSet) -> EffectSet {
        EffectSet(self.0 | other.0)
    }

    /// Returns the effects that are in both sets.
    #[must_use]
    pub const fn intersection(self, other: EffectSet) -> EffectSet {
        EffectSet(self.0 & other.0)
    }

    /// Returns the effects that are in this set and not in `other`.
    #[must_use]
    pub const fn difference(self, other: EffectSet) -> EffectSet {
        EffectSet(self.0 & !other.0)
    }

    /// True if there are no effects in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True if all effects of `other` are in this set.
    pub const fn contains(self, other: EffectSet) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the names of the effects; [`EffectSet::OTHER_EFFECTS`] has none.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        EffectSet::EFFECT_NAMES
            .into_iter()
            .filter(move |(effect, _)| self.contains(*effect))
            .map(|(_, name)| name)
    }
}

/// The taints that a toleration matches, and for how long it tolerates them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToleratedTaints<'a> {
    /// The key; `None` for every key.
    pub key: Option<&'a str>,
    /// The value; `None` for every value.
    pub value: Option<&'a str>,
    /// The effects of the taints.
    pub effects: EffectSet,
    /// For how long a NoExecute taint is tolerated; `None` for forever.
    pub seconds: Option<i64>,
}

impl<'a> ToleratedTaints<'a> {
    /// Returns the taints that a toleration matches, for the duration in its `tolerationSeconds`. An unknown
    /// operator is treated as `Exists`, which matches most.
    pub fn from_toleration(toleration: Toleration<'a>) -> ToleratedTaints<'a> {
        let exact = matches!(toleration.operator(), "" | "Equal");
        ToleratedTaints {
            key: Some(toleration.key()).filter(|key| !key.is_empty()),
            value: exact.then(|| toleration.value()),
            effects: match toleration.effect() {
                "" => EffectSet::KNOWN,
                name => EffectSet::from_name(name),
            },
            seconds: toleration.toleration_seconds().map(|seconds| seconds.max(0)),
        }
    }

    /// True if every taint of `other` is among these, and NoExecute is tolerated for at least as long.
    pub fn contains(&self, other: &ToleratedTaints<'_>) -> bool {
        let within = |mine: Option<&str>, theirs: Option<&str>| mine.is_none() || mine == theirs;
        within(self.key, other.key)
            && within(self.value, other.value)
            && self.effects.contains(other.effects)
            && (!other.effects.contains(EffectSet::NO_EXECUTE) || is_long_enough(self.seconds, other.seconds))
    }
}

/// True if `limit` is at least `seconds`; `None` is forever.
fn is_long_enough(limit: Option<i64>, seconds: Option<i64>) -> bool {
    limit.is_none_or(|limit| seconds.is_some_and(|seconds| seconds <= limit))
}

/// The taint keys that a policy entry is for: one key, `prefix/*` or `*`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyPattern {
    /// Any key: `*`.
    Any,
    /// `prefix/*`; stored with its slash, without the star.
    Prefix(Box<str>),
    /// A single key.
    Exact(Box<str>),
}

impl KeyPattern {
    /// Parses `*`, `prefix/*`, or a key; `None` if it is empty or has a star anywhere else.
    pub fn parse(text: &str) -> Option<KeyPattern> {
        match text.strip_suffix('*') {
            Some("") => Some(KeyPattern::Any),
            Some(prefix) if prefix.len() > 1 && prefix.ends_with('/') && !prefix.contains('*') => {
                Some(KeyPattern::Prefix(prefix.into()))
            }
            Some(_) => None,
            None if text.is_empty() || text.contains('*') => None,
            None => Some(KeyPattern::Exact(text.into())),
        }
    }

    /// True if the pattern contains the key; if `key` is `None`, which is every key, only `*` does.
    pub fn contains(&self, key: Option<&str>) -> bool {
        match (self, key) {
            (KeyPattern::Any, _) => true,
            (_, None) => false,
            (KeyPattern::Prefix(prefix), Some(key)) => key.starts_with(&**prefix),
            (KeyPattern::Exact(only), Some(key)) => &**only == key,
        }
    }

    /// Returns the length in bytes of the common prefix of the pattern and the key; 0 for the pattern `*`, and if `key`
    /// is `None`, which is every key.
    fn common_prefix_length(&self, key: Option<&str>) -> usize {
        let (KeyPattern::Prefix(text) | KeyPattern::Exact(text), Some(key)) = (self, key) else { return 0 };
        text.bytes().zip(key.bytes()).take_while(|(mine, theirs)| mine == theirs).count()
    }

    /// Returns how general the pattern is, from 0 for one key to 2 for `*`.
    fn breadth(&self) -> u8 {
        match self {
            KeyPattern::Exact(_) => 0,
            KeyPattern::Prefix(_) => 1,
            KeyPattern::Any => 2,
        }
    }
}

impl std::fmt::Display for KeyPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            KeyPattern::Any => f.write_str("*"),
            KeyPattern::Prefix(prefix) => write!(f, "{prefix}*"),
            KeyPattern::Exact(key) => f.write_str(key),
        }
    }
}

/// A set of taints that a policy allows or denies to tolerate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyEntry {
    pub keys: KeyPattern,
    /// The values; `None` for every value.
    pub values: Option<Vec<Box<str>>>,
    pub effects: EffectSet,
    /// Maximum `tolerationSeconds` for NoExecute; `None` if unlimited.
    pub seconds: Option<i64>,
}

impl PolicyEntry {
    /// True if the entry includes the value; if `value` is `None`, only if it includes every value.
    fn contains_value_or_every_value(&self, value: Option<&str>) -> bool {
        let has =
            |values: &Vec<Box<str>>| value.is_some_and(|value| values.iter().any(|known| **known == *value));
        self.values.as_ref().is_none_or(has)
    }

    /// Returns the effects for which this entry includes every tolerated taint, for as long as it is tolerated.
    pub(crate) fn covered_effects(&self, tolerated: &ToleratedTaints<'_>) -> EffectSet {
        if !self.keys.contains(tolerated.key) || !self.contains_value_or_every_value(tolerated.value) {
            return EffectSet::EMPTY;
        }
        let effects = self.effects.intersection(tolerated.effects);
        if is_long_enough(self.seconds, tolerated.seconds) {
            effects
        } else {
            effects.difference(EffectSet::NO_EXECUTE)
        }
    }

    /// True if the entry includes a tolerated taint. Seconds are ignored, because a denied taint must not be
    /// tolerated for any time.
    pub fn intersects(&self, tolerated: &ToleratedTaints<'_>) -> bool {
        let has = |values: &Vec<Box<str>>| {
            values.iter().any(|known| tolerated.value.is_none_or(|value| **known == *value))
        };
        !self.effects.intersection(tolerated.effects).is_empty()
            && (tolerated.key.is_none() || self.keys.contains(tolerated.key))
            && self.values.as_ref().is_none_or(has)
    }

    /// Returns what this entry lacks to cover the toleration for all of `effects`.
    fn shortfall(&self, tolerated: &ToleratedTaints<'_>, effects: EffectSet) -> Shortfall {
        let shared = self.effects.intersection(effects);
        let limited =
            shared.contains(EffectSet::NO_EXECUTE) && !is_long_enough(self.seconds, tolerated.seconds);
        Shortfall {
            keys: !self.keys.contains(tolerated.key),
            values: !self.contains_value_or_every_value(tolerated.value),
            effects: effects.difference(self.effects),
            seconds: self.seconds.filter(|_| limited),
        }
    }
}

/// Which parts of a toleration a policy entry does not cover: key, value, effects or time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shortfall {
    /// True if it does not include the key, or not all keys.
    pub keys: bool,
    /// True if it does not include the value, or not all values.
    pub values: bool,
    /// Effects that the entry does not allow.
    pub effects: EffectSet,
    /// The maximum seconds of the entry, if the toleration lasts longer.
    pub seconds: Option<i64>,
}

impl Shortfall {
    /// Returns a weighted measure of how much the toleration, apart from its key, must change for the entry to cover
    /// it; 0 if nothing. `value` is the value that the toleration compares.
    fn distance(self, missing: EffectSet, value: Option<&str>) -> u8 {
        // Some value can stand for every value; another value is another taint.
        let values = if value.is_none() { 3 } else { 6 };
        let effects = if self.effects.is_empty() {
            0
        } else if self.effects == missing {
            // Nothing of what is missing is in the entry.
            5
        } else {
            2
        };
        values * u8::from(self.values) + effects + u8::from(self.seconds.is_some())
    }
}

/// Returns the effects for which no single entry includes every taint that the toleration matches; empty if the
/// toleration is covered.
pub fn uncovered_effects<'e>(
    tolerated: &ToleratedTaints<'_>,
    entries: impl IntoIterator<Item = &'e PolicyEntry>,
) -> EffectSet {
    // The effect None does not affect pods, so it needs no permission.
    let mut missing = tolerated.effects.difference(EffectSet::EFFECT_NONE);
    for entry in entries {
        if missing.is_empty() {
            break;
        }
        missing = missing.difference(entry.covered_effects(tolerated));
    }
    missing
}

/// Returns the index of the entry that is nearest to covering the missing effects, and what it lacks; `None` if there
/// are no entries.
pub fn nearest_entry<'e>(
    tolerated: &ToleratedTaints<'_>,
    missing: EffectSet,
    entries: impl IntoIterator<Item = &'e PolicyEntry>,
) -> Option<(usize, Shortfall)> {
    let found = entries.into_iter().enumerate().min_by_key(|(_, entry)| {
        let shortfall = entry.shortfall(tolerated, missing);
        // A wrong key outweighs everything else; among wrong keys, the one that begins like it is probably meant.
        let wrong_key = shortfall.keys.then(|| Reverse(entry.keys.common_prefix_length(tolerated.key)));
        // Of those that only lack seconds, the one that allows most; then the more specific key; then the first.
        let limit = shortfall.seconds.map(Reverse);
        (wrong_key, shortfall.distance(missing, tolerated.value), limit, entry.keys.breadth())
    });
    found.map(|(index, entry)| (index, entry.shortfall(tolerated, missing)))
}
