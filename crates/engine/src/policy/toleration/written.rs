//! A toleration as a user writes it: the defaults of a policy, and the tolerations that a denial suggests instead.
//!
//! Invariant: what [`allowed_instead`] returns was checked by the caller's `is_allowed`, so a refusal never offers what
//! would be refused again.

use super::super::entries::quote_unless_plain;
use crate::tolerance::coverage::{EffectSet, KeyPattern, PolicyEntry, ToleratedTaints};
use tollgate_api::conform::suggest::distance;
use tollgate_api::profile::Profile;
use tollgate_api::view::Toleration;
use tollgate_document::doc::{OwnedJsonValue, Value};

/// A toleration as a user would write it, with owned texts; an empty text is a field that is not set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::policy) struct WrittenToleration {
    key: Box<str>,
    operator: Box<str>,
    value: Box<str>,
    effect: Box<str>,
    seconds: Option<i64>,
}

impl WrittenToleration {
    /// Reads an entry of `defaults`; a missing operator becomes `Equal`.
    pub(in crate::policy) fn read_with_default_operator(item: Value<'_>) -> WrittenToleration {
        let operator = item.get("operator").str();
        WrittenToleration {
            key: item.get("key").str().into(),
            operator: if operator.is_empty() { "Equal" } else { operator }.into(),
            value: item.get("value").str().into(),
            effect: item.get("effect").str().into(),
            seconds: item.get("tolerationSeconds").int(),
        }
    }

    /// Copies a toleration of an object.
    pub(super) fn from_toleration(toleration: Toleration<'_>) -> WrittenToleration {
        WrittenToleration {
            key: toleration.key().into(),
            operator: toleration.operator().into(),
            value: toleration.value().into(),
            effect: toleration.effect().into(),
            seconds: toleration.toleration_seconds(),
        }
    }

    /// True if the toleration has a value although its operator is `Exists`, which ignores values.
    pub(super) fn has_useless_value(&self) -> bool {
        &*self.operator == "Exists" && !self.value.is_empty()
    }

    /// True if the toleration has seconds although its effect is not NoExecute, which alone uses them.
    pub(super) fn has_useless_seconds(&self) -> bool {
        self.seconds.is_some() && &*self.effect != "NoExecute"
    }

    /// Returns the taints that the toleration matches, and for how long, in the given profile.
    pub(super) fn tolerated_taints(&self, profile: &Profile) -> ToleratedTaints<'_> {
        self.tolerated_taints_with_duration(self.effect.is_empty() && profile.empty_effect_stops_eviction)
    }

    /// Returns the taints that the toleration matches: forever if `ignores_seconds` is true, otherwise for its
    /// `tolerationSeconds`.
    pub(super) fn tolerated_taints_with_duration(&self, ignores_seconds: bool) -> ToleratedTaints<'_> {
        ToleratedTaints {
            key: self.key(),
            value: self.compares_value().then_some(&*self.value),
            effects: if self.effect.is_empty() {
                EffectSet::KNOWN
            } else {
                EffectSet::from_name(&self.effect)
            },
            seconds: self.seconds.filter(|_| !ignores_seconds).map(|seconds| seconds.max(0)),
        }
    }

    /// Returns the key; `None`, for every key, if it is empty.
    pub(super) fn key(&self) -> Option<&str> {
        Some(&*self.key).filter(|key| !key.is_empty())
    }

    /// True if its operator compares values: `Equal`, or none.
    fn compares_value(&self) -> bool {
        matches!(&*self.operator, "" | "Equal")
    }

    /// Returns the text fields that are set, with their names.
    fn non_empty_text_fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let texts: [(&'static str, &str); 4] = [
            ("key", &self.key),
            ("operator", &self.operator),
            ("value", &self.value),
            ("effect", &self.effect),
        ];
        texts.into_iter().filter(|(_, text)| !text.is_empty())
    }

    /// Returns the toleration as a new JSON object, to be added to a list.
    pub(in crate::policy) fn to_new_json(&self) -> OwnedJsonValue {
        let mut fields: Vec<(&'static str, OwnedJsonValue)> = self
            .non_empty_text_fields()
            .map(|(name, text)| (name, OwnedJsonValue::Str(text.into())))
            .collect();
        fields.extend(self.seconds.map(|seconds| ("tolerationSeconds", OwnedJsonValue::Int(seconds))));
        OwnedJsonValue::Object(fields)
    }
}

/// Writes `{key: a/b, operator: Exists, effect: NoExecute}`, as YAML that can be pasted.
impl std::fmt::Display for WrittenToleration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields: Vec<String> = self
            .non_empty_text_fields()
            .map(|(name, text)| format!("{name}: {}", quote_unless_plain(text)))
            .collect();
        fields.extend(self.seconds.map(|seconds| format!("tolerationSeconds: {seconds}")));
        write!(f, "{{{}}}", fields.join(", "))
    }
}

/// Returns what to write instead of a toleration: one toleration with a narrower key, value or time or, if it has no
/// effect, one for each effect, because `tolerationSeconds` counts only beside `effect: NoExecute`. Empty if the entry
/// that `nearest` returns is not near enough.
pub(super) fn allowed_instead<'e>(
    wanted: &WrittenToleration,
    profile: &Profile,
    nearest: impl Fn(&ToleratedTaints<'_>) -> Option<&'e PolicyEntry>,
    is_allowed: impl Fn(&ToleratedTaints<'_>) -> bool,
) -> Vec<WrittenToleration> {
    let with_effect = |effect: &str| {
        let part = WrittenToleration { effect: effect.into(), ..wanted.clone() };
        let near = nearest_within_entry(&part, nearest(&part.tolerated_taints(profile))?)?;
        is_allowed(&near.tolerated_taints(profile)).then_some(near)
    };
    if let Some(near) = with_effect(&wanted.effect) {
        return vec![near];
    }
    match &*wanted.effect {
        "" => ["NoSchedule", "NoExecute"].into_iter().filter_map(with_effect).collect(),
        // Anything else would tolerate more.
        "None" => Vec::new(),
        _ => ["NoExecute", "NoSchedule"].into_iter().find_map(with_effect).into_iter().collect(),
    }
}

/// Returns the toleration with the same effect that an entry allows and that is nearest to the wanted one; `None` if
/// the entry is for other keys.
fn nearest_within_entry(wanted: &WrittenToleration, entry: &PolicyEntry) -> Option<WrittenToleration> {
    let mut near = wanted.clone();
    match &entry.keys {
        keys if keys.contains(wanted.key()) => {}
        // Fewer keys than wanted, or the one that was misspelt; another key would be of no use.
        KeyPattern::Exact(key)
            if wanted.key.is_empty() || distance(&wanted.key, key) <= 1 + key.len() / 10 =>
        {
            near.key.clone_from(key);
        }
        _ => return None,
    }
    if let Some(values) = &entry.values
        && !(wanted.compares_value() && values.contains(&wanted.value))
    {
        near.operator = "Equal".into();
        near.value = values.first()?.clone();
    }
    // Seconds count for NoExecute only.
    near.seconds = match (&*near.effect, entry.seconds, wanted.seconds) {
        ("NoExecute", Some(most), seconds) => Some(seconds.map_or(most, |seconds| seconds.min(most))),
        ("NoExecute" | "", _, seconds) => seconds,
        _ => None,
    };
    Some(near)
}

#[cfg(test)]
mod tests {
    use super::{WrittenToleration, allowed_instead};
    use crate::tolerance::coverage::{EffectSet, KeyPattern, PolicyEntry, nearest_entry, uncovered_effects};
    use tollgate_document::doc;

    fn entry(key: &str, values: Option<&[&str]>, effects: EffectSet, seconds: Option<i64>) -> PolicyEntry {
        PolicyEntry {
            keys: KeyPattern::parse(key).unwrap(),
            values: values.map(|values| values.iter().map(|value| (*value).into()).collect()),
            effects,
            seconds,
        }
    }

    /// Returns suggestions for a toleration based on these allow entries.
    fn offered_by(toleration: &str, entries: &[PolicyEntry]) -> String {
        let doc = doc::parse(toleration).unwrap();
        let wanted = WrittenToleration::read_with_default_operator(doc.root());
        let near = allowed_instead(
            &wanted,
            tollgate_api::profile::DEFAULT,
            |taints| nearest_entry(taints, taints.effects, entries).and_then(|(index, _)| entries.get(index)),
            |taints| uncovered_effects(taints, entries).is_empty(),
        );
        let texts: Vec<String> = near.iter().map(ToString::to_string).collect();
        if texts.is_empty() { "nothing".to_owned() } else { texts.join(" and ") }
    }

    /// Returns a suggestion for a toleration based on one allow entry: keys, values, effects, seconds.
    fn offered(
        toleration: &str,
        key: &str,
        values: Option<&[&str]>,
        effects: EffectSet,
        seconds: Option<i64>,
    ) -> String {
        offered_by(toleration, &[entry(key, values, effects, seconds)])
    }

    #[test]
    fn what_is_offered_is_as_near_as_the_entry_allows() {
        let forever = r#"{"key":"a/b","operator":"Exists","effect":"NoExecute"}"#;
        assert_eq!(
            offered(forever, "a/*", None, EffectSet::ALL, Some(600)),
            "{key: a/b, operator: Exists, effect: NoExecute, tolerationSeconds: 600}"
        );
        assert_eq!(
            offered(forever, "a/b", Some(&["hot", "cold"]), EffectSet::NO_SCHEDULE, None),
            "{key: a/b, operator: Equal, value: hot, effect: NoSchedule}"
        );
        assert_eq!(
            offered(forever, "c/d", None, EffectSet::ALL, None),
            "nothing",
            "another key is of no use"
        );
        let typo = r#"{"key":"gpu.example.com/degrade","operator":"Exists","effect":"NoSchedule"}"#;
        assert_eq!(
            offered(typo, "gpu.example.com/degraded", None, EffectSet::ALL, None),
            "{key: gpu.example.com/degraded, operator: Exists, effect: NoSchedule}"
        );
        assert_eq!(offered(forever, "c/*", None, EffectSet::ALL, None), "nothing", "a prefix is no key");
        let every = r#"{"operator":"Exists"}"#;
        assert_eq!(
            offered(every, "a/b", None, EffectSet::ALL, Some(60)),
            "{key: a/b, operator: Exists, effect: NoSchedule} and {key: a/b, operator: Exists, effect: NoExecute, \
             tolerationSeconds: 60}"
        );
        assert_eq!(offered(every, "a/b", None, EffectSet::ALL, None), "{key: a/b, operator: Exists}");
        let short = r#"{"key":"a/b","operator":"Exists","effect":"NoExecute","tolerationSeconds":5}"#;
        assert_eq!(
            offered(short, "a/b", Some(&["x"]), EffectSet::ALL, Some(60)),
            "{key: a/b, operator: Equal, value: x, effect: NoExecute, tolerationSeconds: 5}"
        );
    }

    #[test]
    fn what_is_offered_for_every_effect_takes_each_from_its_own_entry() {
        let every = r#"{"key":"a/b","operator":"Exists"}"#;
        let drain = || entry("a/b", Some(&["ecc", "hot"]), EffectSet::NO_EXECUTE, Some(3600));
        let schedule = || entry("a/*", None, EffectSet::NO_SCHEDULE, None);
        assert_eq!(
            offered_by(every, &[schedule(), drain()]),
            "{key: a/b, operator: Exists, effect: NoSchedule} and {key: a/b, operator: Equal, value: ecc, effect: \
             NoExecute, tolerationSeconds: 3600}"
        );
        assert_eq!(offered_by(every, &[schedule()]), "{key: a/b, operator: Exists, effect: NoSchedule}");
        let drained = r#"{"key":"a/b","operator":"Exists","effect":"NoExecute","tolerationSeconds":600}"#;
        let expected = "{key: a/b, operator: Equal, value: ecc, effect: NoExecute, tolerationSeconds: 600}";
        assert_eq!(offered_by(drained, &[schedule(), drain()]), expected);
        assert_eq!(offered_by(drained, &[drain(), schedule()]), expected, "whatever the order");
        let hot = r#"{"key":"a/b","value":"hot","tolerationSeconds":5}"#;
        let values = || entry("a/b", Some(&["ecc"]), EffectSet::ALL, Some(60));
        assert_eq!(
            offered_by(hot, &[values()]),
            "{key: a/b, operator: Equal, value: ecc, tolerationSeconds: 5}",
            "as written, but for the value"
        );
    }
}
