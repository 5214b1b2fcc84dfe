//! Entries of `allow` and `deny`: how they are read, described and expire.

use std::borrow::Cow;

use crate::tolerance::coverage::{EffectSet, KeyPattern, PolicyEntry};
use tollgate_document::doc::Value;
use tollgate_formats::gotime::{self, Timestamp};

/// The fields that an entry about tolerations and one about taints have in common: values, effects, reason and expiry.
#[derive(Clone, Debug)]
pub(super) struct CommonEntryFields {
    /// Path of the entry, such as `allow[0]`.
    pub(super) location: Box<str>,
    pub(super) values: Option<Vec<Box<str>>>,
    pub(super) effects: EffectSet,
    pub(super) reason: Option<Box<str>>,
    pub(super) expires: Option<Timestamp>,
}

impl CommonEntryFields {
    /// Reads the common fields of the entry at an index of `allow` or `deny`.
    pub(super) fn read(entry: Value<'_>, list: &str, index: usize) -> CommonEntryFields {
        let (values, effects) = (entry.get("values"), entry.get("effects"));
        let (reason, expires) = (entry.get("reason"), entry.get("expires"));
        let end = gotime::parse_rfc3339(expires.str()).ok();
        // An entry that never expires would be the wrong reading of a bad time; the schema has refused those.
        debug_assert!(end.is_some() == expires.exists(), "{}", expires.str());
        let all = |all: EffectSet, name: Value<'_>| all.union(EffectSet::from_name(name.str()));
        CommonEntryFields {
            location: format!("{list}[{index}]").into(),
            values: values.exists().then(|| values.items().map(|value| value.str().into()).collect()),
            effects: if effects.exists() {
                effects.items().fold(EffectSet::EMPTY, all)
            } else {
                EffectSet::ALL
            },
            reason: reason.exists().then(|| reason.str().into()),
            expires: end,
        }
    }

    /// True if the entry has expired. Without a clock, every entry with `expires` counts as expired.
    pub(super) fn is_expired(&self, now: Option<Timestamp>) -> bool {
        self.expired_at(now).is_some()
    }

    /// Returns when the entry expired; `None` if it has not. Without a clock, every entry with `expires` counts as
    /// expired.
    pub(super) fn expired_at(&self, now: Option<Timestamp>) -> Option<Timestamp> {
        self.expires.filter(|expires| now.is_none_or(|now| *expires <= now))
    }

    /// True if the entry includes taints with that value and effect.
    pub(super) fn covers_value_and_effect(&self, value: &str, effect: &str) -> bool {
        self.effects.contains(EffectSet::from_name(effect))
            && self.values.as_ref().is_none_or(|values| values.iter().any(|known| &**known == value))
    }

    /// Returns where the entry is, what it says and why, for messages: `allow[0] {key: a/b} (reason)`.
    fn located(&self, description: &str) -> String {
        let reason = self.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        format!("{} {description}{reason}", self.location)
    }

    /// Returns the values and effects of the entry for messages, such as `, values: [a, b], effects: [NoSchedule]`. If
    /// the entry is for all values or all effects, they are left out.
    pub(super) fn values_and_effects_text(&self) -> String {
        let mut out = String::new();
        if let Some(values) = &self.values {
            let quoted: Vec<String> = values.iter().map(|value| quote_unless_plain(value)).collect();
            out = format!(", values: [{}]", quoted.join(", "));
        }
        if self.effects != EffectSet::ALL {
            let names: Vec<&str> = self.effects.names().collect();
            out = format!("{out}, effects: [{}]", names.join(", "));
        }
        out
    }
}

/// Returns the text as it is shown in messages: without quotes if it begins with a letter and contains only letters,
/// digits and `-._/`, else in double quotes with Rust's escapes. It is not always what YAML needs: `true` is not
/// quoted.
pub(super) fn quote_unless_plain(text: &str) -> String {
    let plain =
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte));
    if plain && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic()) {
        text.to_owned()
    } else {
        format!("{text:?}")
    }
}

/// A compiled entry of `allow` or `deny` in a TolerationPolicy.
#[derive(Clone, Debug)]
pub(super) struct TolerationEntry {
    pub(super) entry: PolicyEntry,
    pub(super) terms: CommonEntryFields,
}

impl TolerationEntry {
    /// Reads the entries of `list`, which is the field `name` of the policy: `allow` or `deny`.
    pub(super) fn read_all(list: Value<'_>, name: &'static str) -> Vec<TolerationEntry> {
        let grant = |(index, entry): (usize, Value<'_>)| {
            // The type of the field has refused anything else.
            let keys = KeyPattern::parse(entry.get("key").str())?;
            let terms = CommonEntryFields::read(entry, name, index);
            Some(TolerationEntry::new(keys, entry.get("maxTolerationSeconds").int(), terms))
        };
        list.items().enumerate().filter_map(grant).collect()
    }

    /// Creates an entry for these keys, with the values and effects of `terms`.
    pub(super) fn new(keys: KeyPattern, seconds: Option<i64>, terms: CommonEntryFields) -> TolerationEntry {
        let (values, effects) = (terms.values.clone(), terms.effects);
        TolerationEntry { entry: PolicyEntry { keys, values, effects, seconds }, terms }
    }

    /// Returns `{key: a/b, values: [c], maxTolerationSeconds: 600}`.
    pub(super) fn describe(&self) -> String {
        let seconds = self.entry.seconds.map(|seconds| format!(", maxTolerationSeconds: {seconds}"));
        let (key, terms) =
            (quote_unless_plain(&self.entry.keys.to_string()), self.terms.values_and_effects_text());
        format!("{{key: {key}{terms}{}}}", seconds.unwrap_or_default())
    }

    /// Returns `allow[0] {key: a/b} (reason)`.
    pub(super) fn describe_with_location(&self) -> String {
        self.terms.located(&self.describe())
    }
}

/// A compiled entry of `allow` or `deny` in a TaintPolicy. Its key is a glob that can contain `${driver}`.
#[derive(Clone, Debug)]
pub(super) struct TaintEntry {
    pub(super) key: Box<str>,
    pub(super) terms: CommonEntryFields,
}

impl TaintEntry {
    /// Reads the entries of `list`, which is the field `name` of the policy: `allow` or `deny`.
    pub(super) fn read_all(list: Value<'_>, name: &str) -> Vec<TaintEntry> {
        let entries = list.items().enumerate();
        entries
            .map(|(index, entry)| TaintEntry {
                key: entry.get("key").str().into(),
                terms: CommonEntryFields::read(entry, name, index),
            })
            .collect()
    }

    /// Returns `{key: "a/*", effects: [None]}`.
    fn describe(&self) -> String {
        format!("{{key: {}{}}}", quote_unless_plain(&self.key), self.terms.values_and_effects_text())
    }

    /// Returns `allow[0] {key: "a/*"} (reason)`.
    pub(super) fn describe_with_location(&self) -> String {
        self.terms.located(&self.describe())
    }
}

/// Replaces `${driver}` in a glob by the driver, which is a DNS name and so contains no wildcard.
pub(super) fn replace_driver_placeholder<'p>(pattern: &'p str, driver: &str) -> Cow<'p, str> {
    if pattern.contains(DRIVER_PLACEHOLDER) {
        Cow::Owned(pattern.replace(DRIVER_PLACEHOLDER, driver))
    } else {
        Cow::Borrowed(pattern)
    }
}

/// Placeholder for the driver of a slice or of a rule's selector.
pub(super) const DRIVER_PLACEHOLDER: &str = "${driver}";

#[cfg(test)]
mod tests {
    use super::{CommonEntryFields, quote_unless_plain, replace_driver_placeholder};
    use tollgate_document::doc;
    use tollgate_formats::gotime;

    #[test]
    fn an_entry_expires_at_its_time_and_without_a_clock() {
        let entry = doc::parse(r#"{"expires":"2026-01-02T00:00:00Z"}"#).unwrap();
        let terms = CommonEntryFields::read(entry.root(), "allow", 0);
        let time = |text: &str| gotime::parse_rfc3339(text).unwrap();
        assert_eq!(terms.expired_at(Some(time("2026-01-01T23:59:59Z"))), None);
        for now in [Some(time("2026-01-02T00:00:00Z")), None] {
            assert_eq!(terms.expired_at(now), Some(time("2026-01-02T00:00:00Z")));
            assert!(terms.is_expired(now));
        }
        let endless = doc::parse("{}").unwrap();
        assert!(!CommonEntryFields::read(endless.root(), "allow", 0).is_expired(None));
    }

    #[test]
    fn only_plain_words_are_shown_without_quotes() {
        for (text, expected) in [("a/b-c", "a/b-c"), ("", "\"\""), ("1", "\"1\""), ("a b", "\"a b\"")] {
            assert_eq!(quote_unless_plain(text), expected, "{text}");
        }
    }

    #[test]
    fn the_driver_is_filled_in() {
        assert_eq!(replace_driver_placeholder("${driver}/*", "gpu.example.com"), "gpu.example.com/*");
        assert_eq!(replace_driver_placeholder("${driver}/*", ""), "/*");
        assert_eq!(replace_driver_placeholder("a/*", "gpu.example.com"), "a/*");
    }
}
