//! Is this toleration inside that union of entries, and if not, what is missing.
//!
//! A toleration stands for a set of taints, its [`Reach`]: keys × values × effects, with a duration for NoExecute.
//! An [`Entry`] of a policy stands for such a set too. Keys and values are without number, entries are not, so no
//! pile of exact keys, prefixes or values adds up to all of them: for each effect *one* entry has to hold every key
//! and every value that the toleration reaches. Effects are few, so entries do add up over effects.
//!
//! It knows nothing of policies: whose entry it was is the caller's business.
//!
//! Invariant: exact, held by brute force in `tests/coverage.rs`; nothing is allocated.

use crate::api::view::Toleration;

/// A set of effects.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Effects(u8);

impl Effects {
    /// Nothing.
    pub const EMPTY: Effects = Effects(0);
    /// `None`
    pub const NONE: Effects = Effects(1);
    /// `NoSchedule`
    pub const NO_SCHEDULE: Effects = Effects(2);
    /// `NoExecute`
    pub const NO_EXECUTE: Effects = Effects(4);
    /// Anything else: an effect of a release to come.
    pub const OTHER: Effects = Effects(8);
    /// The effects there are.
    pub const KNOWN: Effects = Effects(7);
    /// Every effect, those to come included.
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

    /// Each effect by itself.
    pub fn each(self) -> impl Iterator<Item = Effects> {
        [Effects::NONE, Effects::NO_SCHEDULE, Effects::NO_EXECUTE, Effects::OTHER]
            .into_iter()
            .filter(move |effect| self.contains(*effect))
    }

    /// The names of those that have one.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Effects::NAMED.into_iter().filter(move |(effect, _)| self.contains(*effect)).map(|(_, name)| name)
    }
}

/// The taints a toleration stands for. `None` is "every".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach<'a> {
    /// The key, or every key.
    pub key: Option<&'a str>,
    /// The value, or every value.
    pub value: Option<&'a str>,
    /// The effects.
    pub effects: Effects,
    /// For how long NoExecute is tolerated; `None` is forever.
    pub seconds: Option<i64>,
}

impl<'a> Reach<'a> {
    /// What a toleration reaches. An operator of a release to come is taken for `Exists`: whatever it will mean, it
    /// cannot reach further.
    pub fn of(toleration: Toleration<'a>) -> Reach<'a> {
        let exact = matches!(toleration.operator(), "" | "Equal");
        Reach {
            key: Some(toleration.key()).filter(|key| !key.is_empty()),
            value: exact.then(|| toleration.value()),
            effects: match toleration.effect() {
                "" => Effects::KNOWN,
                name => Effects::named(name),
            },
            seconds: toleration.toleration_seconds().map(|seconds| seconds.max(0)),
        }
    }

    /// The part that does something. Effect None keeps no pod from anything, so it needs no permission.
    fn felt(self) -> Effects {
        self.effects.without(Effects::NONE)
    }

    /// True if every taint of `other` is one of these, for at least as long.
    pub fn contains(&self, other: &Reach<'_>) -> bool {
        let within = |mine: Option<&str>, theirs: Option<&str>| mine.is_none() || mine == theirs;
        within(self.key, other.key)
            && within(self.value, other.value)
            && self.effects.contains(other.effects)
            && (!other.effects.contains(Effects::NO_EXECUTE) || lasts(self.seconds, other.seconds))
    }
}

/// True if `limit` is at least `seconds`; `None` is forever.
fn lasts(limit: Option<i64>, seconds: Option<i64>) -> bool {
    limit.is_none_or(|limit| seconds.is_some_and(|seconds| seconds <= limit))
}

/// The keys of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Keys {
    /// `*`
    Every,
    /// `prefix/*`; kept with its slash.
    Under(Box<str>),
    /// One key.
    Exactly(Box<str>),
}

impl Keys {
    /// `*`, `prefix/*`, or a key; `None` if a star stands anywhere else.
    pub fn parse(text: &str) -> Option<Keys> {
        match text.strip_suffix('*') {
            Some("") => Some(Keys::Every),
            Some(prefix) if prefix.len() > 1 && prefix.ends_with('/') && !prefix.contains('*') => {
                Some(Keys::Under(prefix.into()))
            }
            Some(_) => None,
            None if text.is_empty() || text.contains('*') => None,
            None => Some(Keys::Exactly(text.into())),
        }
    }

    /// Every key of the reach is one of these.
    fn hold(&self, key: Option<&str>) -> bool {
        match (self, key) {
            (Keys::Every, _) => true,
            (_, None) => false,
            (Keys::Under(prefix), Some(key)) => key.starts_with(&**prefix),
            (Keys::Exactly(only), Some(key)) => &**only == key,
        }
    }

    /// Some key of the reach is one of these.
    fn meet(&self, key: Option<&str>) -> bool {
        key.is_none() || self.hold(key)
    }
}

impl std::fmt::Display for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Keys::Every => f.write_str("*"),
            Keys::Under(prefix) => write!(f, "{prefix}*"),
            Keys::Exactly(key) => f.write_str(key),
        }
    }
}

/// A set of taints that a policy allows or denies to tolerate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The keys.
    pub keys: Keys,
    /// The values; `None` is every value.
    pub values: Option<Vec<Box<str>>>,
    /// The effects.
    pub effects: Effects,
    /// How long NoExecute may be tolerated; `None` is forever.
    pub seconds: Option<i64>,
}

impl Entry {
    fn holds_values(&self, value: Option<&str>) -> bool {
        match (&self.values, value) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(values), Some(value)) => values.iter().any(|known| &**known == value),
        }
    }

    /// The effects for which this entry holds every taint of the reach, for as long as it lasts.
    fn holds(&self, reach: &Reach<'_>) -> Effects {
        if !self.keys.hold(reach.key) || !self.holds_values(reach.value) {
            return Effects::EMPTY;
        }
        let effects = self.effects.and(reach.effects);
        if lasts(self.seconds, reach.seconds) { effects } else { effects.without(Effects::NO_EXECUTE) }
    }

    /// True if a taint of the reach is in this entry. Seconds play no part: what is denied is denied for a moment too.
    pub fn hits(&self, reach: &Reach<'_>) -> bool {
        let values = match (&self.values, reach.value) {
            (None, _) => true,
            (Some(values), None) => !values.is_empty(),
            (Some(values), Some(value)) => values.iter().any(|known| &**known == value),
        };
        values && self.keys.meet(reach.key) && !self.effects.and(reach.effects).is_empty()
    }

    /// What this entry lacks to hold the reach for all of `effects`.
    fn lack(&self, reach: &Reach<'_>, effects: Effects) -> Lack {
        let shared = self.effects.and(effects);
        let limited = shared.contains(Effects::NO_EXECUTE) && !lasts(self.seconds, reach.seconds);
        Lack {
            keys: !self.keys.hold(reach.key),
            values: !self.holds_values(reach.value),
            effects: effects.without(self.effects),
            seconds: self.seconds.filter(|_| limited),
        }
    }
}

/// What an entry lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lack {
    /// The key, or all keys but some.
    pub keys: bool,
    /// The value, or all values but some.
    pub values: bool,
    /// These effects.
    pub effects: Effects,
    /// Time: the toleration lasts longer than this.
    pub seconds: Option<i64>,
}

impl Lack {
    /// Smaller is nearer: a wrong key is further away than all the rest together.
    fn distance(self) -> u8 {
        let partial = u8::from(!self.effects.is_empty());
        8 * u8::from(self.keys) + 3 * u8::from(self.values) + 2 * partial + u8::from(self.seconds.is_some())
    }
}

/// The effects of the reach that no entry holds; empty if the reach is covered.
pub fn uncovered<'e>(reach: &Reach<'_>, entries: impl IntoIterator<Item = &'e Entry>) -> Effects {
    let mut missing = reach.felt();
    for entry in entries {
        if missing.is_empty() {
            break;
        }
        missing = missing.without(entry.holds(reach));
    }
    missing
}

/// The entry that comes nearest to holding the reach for the effects that are missing: its number and what it lacks.
pub fn nearest<'e>(
    reach: &Reach<'_>,
    missing: Effects,
    entries: impl IntoIterator<Item = &'e Entry>,
) -> Option<(usize, Lack)> {
    let lacks = entries.into_iter().map(|entry| entry.lack(reach, missing));
    // The first of equals, and of those that only lack time the one that gives most.
    lacks.enumerate().min_by_key(|(_, lack)| (lack.distance(), lack.seconds.map(|seconds| -seconds)))
}
