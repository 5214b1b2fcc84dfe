//! Whether a union of policy entries covers a toleration, and if not, what is missing.
//!
//! A toleration matches a set of taints ([`ToleratedTaints`]): keys × values × effects, with a duration for NoExecute. A
//! [`PolicyEntry`] describes such a set too. There are infinitely many keys and values but finitely many entries, so no
//! collection of exact keys, prefixes or values adds up to all of them: for each effect, *one* entry has to contain every
//! key and every value that the toleration matches. Effects are finite, so entries do add up over effects.
//!
//! This file knows nothing about policies: the caller keeps track of whose entry it was.
//!
//! Invariant: exact, held by brute force in `tests/engine/coverage.rs`; nothing is allocated.

use std::cmp::Reverse;

use tollgate_api::view::Toleration;

/// A set of effects.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Effects(u8);

impl Effects {
    /// Nothing.
    pub const EMPTY: Effects = Effects(0);
    pub const NONE: Effects = Effects(1);
    pub const NO_SCHEDULE: Effects = Effects(2);
    pub const NO_EXECUTE: Effects = Effects(4);
    /// Any other effect, from a future release.
    pub const OTHER: Effects = Effects(8);
    /// The effects that exist.
    pub const KNOWN: Effects = Effects(7);
    /// Every effect, including future ones.
    pub const ALL: Effects = Effects(15);

    const NAMED: [(Effects, &'static str); 3] =
        [(Effects::NONE, "None"), (Effects::NO_SCHEDULE, "NoSchedule"), (Effects::NO_EXECUTE, "NoExecute")];

    /// The effect of that name.
    pub fn named(name: &str) -> Effects {
        let found = Effects::NAMED.iter().find(|(_, known)| *known == name);
        found.map_or(Effects::OTHER, |(effect, _)| *effect)
    }

    /// In one or the other.
    #[must_use]
    pub const fn or(self, other: Effects) -> Effects {
        Effects(self.0 | other.0)
    }

    /// In both.
    #[must_use]
    pub const fn and(self, other: Effects) -> Effects {
        Effects(self.0 & other.0)
    }

    /// In this one only.
    #[must_use]
    pub const fn without(self, other: Effects) -> Effects {
        Effects(self.0 & !other.0)
    }

    /// No effect.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// All of `other` are here.
    pub const fn contains(self, other: Effects) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names of those that have one.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Effects::NAMED.into_iter().filter(move |(effect, _)| self.contains(*effect)).map(|(_, name)| name)
    }
}

/// The taints that a toleration matches. `None` means every.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToleratedTaints<'a> {
    /// The key, or every key.
    pub key: Option<&'a str>,
    /// The value, or every value.
    pub value: Option<&'a str>,
    pub effects: Effects,
    /// For how long NoExecute is tolerated; `None` is forever.
    pub seconds: Option<i64>,
}

impl<'a> ToleratedTaints<'a> {
    /// The taints that a toleration matches, for as long as it says. An unknown operator is treated as `Exists`, which
    /// matches most.
    pub fn as_written(toleration: Toleration<'a>) -> ToleratedTaints<'a> {
        let exact = matches!(toleration.operator(), "" | "Equal");
        ToleratedTaints {
            key: Some(toleration.key()).filter(|key| !key.is_empty()),
            value: exact.then(|| toleration.value()),
            effects: match toleration.effect() {
                "" => Effects::KNOWN,
                name => Effects::named(name),
            },
            seconds: toleration.toleration_seconds().map(|seconds| seconds.max(0)),
        }
    }

    /// [`ToleratedTaints::as_written`], where a toleration without an effect keeps pods from being evicted: its
    /// seconds are ignored, so it is forever.
    pub fn forever_without_effect(toleration: Toleration<'a>) -> ToleratedTaints<'a> {
        let written = ToleratedTaints::as_written(toleration);
        ToleratedTaints { seconds: written.seconds.filter(|_| !toleration.effect().is_empty()), ..written }
    }

    /// The effects that affect pods. Effect None does not, so it needs no permission.
    fn affecting_pods(self) -> Effects {
        self.effects.without(Effects::NONE)
    }

    /// True if it contains every taint of `other`, for at least as long.
    pub fn contains(&self, other: &ToleratedTaints<'_>) -> bool {
        let within = |mine: Option<&str>, theirs: Option<&str>| mine.is_none() || mine == theirs;
        within(self.key, other.key)
            && within(self.value, other.value)
            && self.effects.contains(other.effects)
            && (!other.effects.contains(Effects::NO_EXECUTE) || is_long_enough(self.seconds, other.seconds))
    }
}

/// True if `limit` is at least `seconds`; `None` is forever.
fn is_long_enough(limit: Option<i64>, seconds: Option<i64>) -> bool {
    limit.is_none_or(|limit| seconds.is_some_and(|seconds| seconds <= limit))
}

/// The keys of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyPattern {
    /// `*`
    Any,
    /// `prefix/*`; kept with its slash.
    Prefix(Box<str>),
    /// One key.
    Exact(Box<str>),
}

impl KeyPattern {
    /// `*`, `prefix/*`, or a key; `None` if a star stands anywhere else.
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

    /// True if it contains every key that the toleration matches.
    pub fn contains(&self, key: Option<&str>) -> bool {
        match (self, key) {
            (KeyPattern::Any, _) => true,
            (_, None) => false,
            (KeyPattern::Prefix(prefix), Some(key)) => key.starts_with(&**prefix),
            (KeyPattern::Exact(only), Some(key)) => &**only == key,
        }
    }

    /// How many bytes of the key it begins with.
    fn common_prefix_length(&self, key: Option<&str>) -> usize {
        let (KeyPattern::Prefix(text) | KeyPattern::Exact(text), Some(key)) = (self, key) else { return 0 };
        text.bytes().zip(key.bytes()).take_while(|(mine, theirs)| mine == theirs).count()
    }

    /// Smaller is more specific.
    fn breadth(&self) -> u8 {
        match self {
            KeyPattern::Exact(_) => 0,
            KeyPattern::Prefix(_) => 1,
            KeyPattern::Any => 2,
        }
    }

    /// True if it contains some key that the toleration matches.
    fn intersects(&self, key: Option<&str>) -> bool {
        key.is_none() || self.contains(key)
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
    /// The values; `None` is every value.
    pub values: Option<Vec<Box<str>>>,
    pub effects: Effects,
    /// How long NoExecute may be tolerated; `None` is forever.
    pub seconds: Option<i64>,
}

impl PolicyEntry {
    fn contains_values(&self, value: Option<&str>) -> bool {
        match (&self.values, value) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(values), Some(value)) => values.iter().any(|known| &**known == value),
        }
    }

    /// The effects for which this entry contains every tolerated taint, for as long as it is tolerated.
    fn covered_effects(&self, tolerated: &ToleratedTaints<'_>) -> Effects {
        if !self.keys.contains(tolerated.key) || !self.contains_values(tolerated.value) {
            return Effects::EMPTY;
        }
        let effects = self.effects.and(tolerated.effects);
        if is_long_enough(self.seconds, tolerated.seconds) {
            effects
        } else {
            effects.without(Effects::NO_EXECUTE)
        }
    }

    /// True if the entry contains a tolerated taint. Seconds are ignored: a denied taint may not be tolerated at all.
    pub fn intersects(&self, tolerated: &ToleratedTaints<'_>) -> bool {
        let values = || match (&self.values, tolerated.value) {
            (None, _) => true,
            (Some(values), None) => !values.is_empty(),
            (Some(values), Some(value)) => values.iter().any(|known| &**known == value),
        };
        !self.effects.and(tolerated.effects).is_empty() && self.keys.intersects(tolerated.key) && values()
    }

    /// What this entry lacks to cover the toleration for all of `effects`.
    fn shortfall(&self, tolerated: &ToleratedTaints<'_>, effects: Effects) -> Shortfall {
        let shared = self.effects.and(effects);
        let limited =
            shared.contains(Effects::NO_EXECUTE) && !is_long_enough(self.seconds, tolerated.seconds);
        Shortfall {
            keys: !self.keys.contains(tolerated.key),
            values: !self.contains_values(tolerated.value),
            effects: effects.without(self.effects),
            seconds: self.seconds.filter(|_| limited),
        }
    }
}

/// What an entry lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shortfall {
    /// The key, or some keys.
    pub keys: bool,
    /// The value, or some values.
    pub values: bool,
    /// These effects.
    pub effects: Effects,
    /// Time: the toleration lasts longer than this.
    pub seconds: Option<i64>,
}

impl Shortfall {
    /// How much the toleration has to change to fit, apart from its key. `value` is what it compares.
    fn distance(self, missing: Effects, value: Option<&str>) -> u8 {
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

/// The effects that no entry covers; empty if the toleration is covered.
pub fn uncovered<'e>(
    tolerated: &ToleratedTaints<'_>,
    entries: impl IntoIterator<Item = &'e PolicyEntry>,
) -> Effects {
    let mut missing = tolerated.affecting_pods();
    for entry in entries {
        if missing.is_empty() {
            break;
        }
        missing = missing.without(entry.covered_effects(tolerated));
    }
    missing
}

/// The entry that is nearest to covering the missing effects: its index and what it lacks.
pub fn nearest<'e>(
    tolerated: &ToleratedTaints<'_>,
    missing: Effects,
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
