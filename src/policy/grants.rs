//! Entries of `allow` and `deny`: read, told, and asked whether they still count.

use super::glob;
use super::schema::Faults;
use crate::doc::Value;
use crate::field::Path;
use crate::gotime::{self, Timestamp};
use crate::tolerance::coverage::{Effects, KeyPattern, PolicyEntry};

/// What all entries have.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// `allow[0]`
    pub(super) place: Box<str>,
    pub(super) values: Option<Vec<Box<str>>>,
    pub(super) effects: Effects,
    pub(super) reason: Option<Box<str>>,
    pub(super) expires: Option<Timestamp>,
}

impl Terms {
    /// Reads an entry of a list.
    pub(super) fn read(entry: Value<'_>, list: &str, index: usize) -> Terms {
        let (values, effects) = (entry.get("values"), entry.get("effects"));
        let reason = entry.get("reason");
        let all = |all: Effects, name: Value<'_>| all.or(Effects::named(name.str()));
        Terms {
            place: format!("{list}[{index}]").into(),
            values: values.exists().then(|| values.items().map(|value| value.str().into()).collect()),
            effects: if effects.exists() { effects.items().fold(Effects::EMPTY, all) } else { Effects::ALL },
            reason: reason.exists().then(|| reason.str().into()),
            expires: gotime::parse(entry.get("expires").str()).ok(),
        }
    }

    /// True if the entry has run out. Without a clock, what ends is taken to have ended.
    pub(super) fn is_over(&self, now: Option<Timestamp>) -> bool {
        self.expires.is_some_and(|expires| now.is_none_or(|now| expires <= now))
    }

    /// ` (reason)`, if there is one.
    pub(super) fn because(&self) -> String {
        self.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default()
    }

    /// `, values: [a, b], effects: [NoSchedule]`, as far as they are limited.
    pub(super) fn told(&self) -> String {
        let mut out = String::new();
        if let Some(values) = &self.values {
            out.push_str(", values: [");
            let quoted: Vec<String> = values.iter().map(|value| yaml(value)).collect();
            out.push_str(&quoted.join(", "));
            out.push(']');
        }
        if self.effects != Effects::ALL {
            out.push_str(", effects: [");
            out.push_str(&self.effects.names().collect::<Vec<_>>().join(", "));
            out.push(']');
        }
        out
    }
}

/// A value as people write it: quoted only where it must be.
pub(super) fn yaml(text: &str) -> String {
    let plain =
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte));
    if plain && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic()) {
        text.to_owned()
    } else {
        format!("{text:?}")
    }
}

/// An entry about tolerations.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) entry: PolicyEntry,
    pub(super) terms: Terms,
}

impl Grant {
    /// Reads a list of entries.
    pub(super) fn read_all(
        list: Value<'_>,
        name: &'static str,
        at: &Path<'_>,
        faults: &mut Faults,
    ) -> Vec<Grant> {
        let mut grants = Vec::new();
        for (index, entry) in list.items().enumerate() {
            let text = entry.get("key").str();
            let Some(keys) = KeyPattern::parse(text) else {
                let message = format!("{text:?} is neither a key nor `prefix/*` nor `*`");
                let (list_at, index_at);
                list_at = at.field(name);
                index_at = list_at.index(index);
                faults.say(&index_at.field("key"), message);
                continue;
            };
            let terms = Terms::read(entry, name, index);
            let entry = PolicyEntry {
                keys,
                values: terms.values.clone(),
                effects: terms.effects,
                seconds: entry.get("maxTolerationSeconds").int(),
            };
            grants.push(Grant { entry, terms });
        }
        grants
    }

    /// `{key: a/b, values: [c], maxTolerationSeconds: 600}`
    pub(super) fn told(&self) -> String {
        let seconds = self.entry.seconds.map(|seconds| format!(", maxTolerationSeconds: {seconds}"));
        let (key, terms) = (yaml(&self.entry.keys.to_string()), self.terms.told());
        format!("{{key: {key}{terms}{}}}", seconds.unwrap_or_default())
    }
}

/// An entry about taints: keys are globs, and `${driver}` stands for the driver.
#[derive(Clone, Debug)]
pub(super) struct TaintEntry {
    pub(super) key: Box<str>,
    pub(super) terms: Terms,
}

impl TaintEntry {
    /// Reads a list of entries.
    pub(super) fn read_all(list: Value<'_>, name: &str) -> Vec<TaintEntry> {
        let entries = list.items().enumerate();
        entries
            .map(|(index, entry)| TaintEntry {
                key: entry.get("key").str().into(),
                terms: Terms::read(entry, name, index),
            })
            .collect()
    }

    /// True if the taint is one of these. `driver` fills in `${driver}`.
    pub(super) fn has(&self, key: &str, value: &str, effect: &str, driver: &str) -> bool {
        self.has_key(key, driver)
            && self.terms.values.as_ref().is_none_or(|values| values.iter().any(|known| &**known == value))
            && self.terms.effects.contains(Effects::named(effect))
    }

    /// True if the key is one of these.
    pub(super) fn has_key(&self, key: &str, driver: &str) -> bool {
        key_matches(&self.key, key, driver)
    }

    /// `{key: "a/*", effects: [None]}`
    pub(super) fn told(&self) -> String {
        format!("{{key: {}{}}}", yaml(&self.key), self.terms.told())
    }
}

/// A key against a glob with `${driver}` in it.
pub(super) fn key_matches(pattern: &str, key: &str, driver: &str) -> bool {
    if pattern.contains(DRIVER) {
        // A driver is a DNS name, so nothing in it can be taken for a star.
        glob::matches(&pattern.replace(DRIVER, driver), key)
    } else {
        glob::matches(pattern, key)
    }
}

/// Stands for the driver of a slice, or of a rule's selector.
pub(super) const DRIVER: &str = "${driver}";
