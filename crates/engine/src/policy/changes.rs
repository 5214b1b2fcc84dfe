//! Differences between two sets of policies as written: every policy that is added, removed or changed.
//!
//! This covers every kind and every field, including schema files; the effect on the tolerations of a namespace is in
//! `compare`. Where a field alone makes a policy weaker or stricter, the line says so.

use std::collections::BTreeSet;

use super::schema::percentage;
use super::{Policy, PolicySet};
use tollgate_document::doc::{self, Value, ValueKind};
use tollgate_formats::{gofmt, gotime};

/// Most characters of a value that are shown.
const MAX_SHOWN: usize = 200;
/// Values nested deeper than this are compared as a whole.
const MAX_DEPTH: usize = 64;

/// A policy that changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyChange {
    /// `TaintRulePolicy safe-rules`
    pub policy: String,
    /// `added at p.yaml:1`, or `spec.twoSteps: true → absent (weaker)`.
    pub lines: Vec<String>,
}

impl PolicySet {
    /// Returns the policies that `new` adds, removes or changes compared with this set, by kind and name.
    pub fn changes(&self, new: &PolicySet) -> Vec<PolicyChange> {
        let title = |policy: &Policy| format!("{} {}", policy.spec.kind().name(), policy.name);
        let find =
            |set: &'_ PolicySet, wanted: &str| set.policies.iter().position(|policy| title(policy) == wanted);
        let both = self.policies.iter().chain(&new.policies);
        let titles: BTreeSet<String> = both.map(|policy| title(policy)).collect();
        let mut changes = Vec::new();
        for policy in titles {
            let before = find(self, &policy).and_then(|index| self.policies.get(index));
            let after = find(new, &policy).and_then(|index| new.policies.get(index));
            let lines = match (before, after) {
                (None, Some(after)) => vec![format!("added at {}", after.source)],
                (Some(before), None) => vec![format!("removed, was at {}", before.source)],
                (Some(before), Some(after)) => changed_lines(before, after),
                (None, None) => Vec::new(),
            };
            if !lines.is_empty() {
                changes.push(PolicyChange { policy, lines });
            }
        }
        changes
    }
}

/// Returns one line for each field and each schema file that differs between two versions of a policy.
fn changed_lines(before: &Policy, after: &Policy) -> Vec<String> {
    let mut lines = Vec::new();
    // Both were serialized by `Value::to_json`, so they parse.
    if let (Ok(old), Ok(new)) = (doc::parse(&before.json), doc::parse(&after.json)) {
        compare_fields("", old.root(), new.root(), 0, &mut lines);
    }
    for (field, text) in &after.schema_files {
        let was = before.schema_files.iter().find(|(other, _)| other == field);
        if was.is_some_and(|(_, was)| was != text) {
            lines.push(format!("{field}: the content of the file changes"));
        }
    }
    lines
}

/// Adds a line for each field below `at` that differs.
fn compare_fields(at: &str, old: Value<'_>, new: Value<'_>, depth: usize, lines: &mut Vec<String>) {
    let is_flat = |list: Value<'_>| list.items().all(Value::is_empty);
    let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    match (old.kind(), new.kind()) {
        (ValueKind::Object, ValueKind::Object) if depth < MAX_DEPTH => {
            let members = old.members().chain(new.members());
            let names: BTreeSet<&str> = members.map(|(key, _)| key.text()).collect();
            for name in names {
                compare_fields(&below(name), old.get(name), new.get(name), depth + 1, lines);
            }
        }
        (ValueKind::Array, ValueKind::Array) if depth < MAX_DEPTH && !(is_flat(old) && is_flat(new)) => {
            for index in 0..old.len().max(new.len()) {
                compare_fields(&format!("{at}[{index}]"), old.at(index), new.at(index), depth + 1, lines);
            }
        }
        _ => {
            let (was, is) = (shorten_value(old), shorten_value(new));
            if old.exists() != new.exists() || old.to_json() != new.to_json() {
                let effect = strictness(at, old, new).map(|word| format!(" ({word})")).unwrap_or_default();
                lines.push(format!("{at}: {was} → {is}{effect}"));
            }
        }
    }
}

/// Returns a value as JSON, cut to [`MAX_SHOWN`] characters; `absent` if it does not exist.
fn shorten_value(value: Value<'_>) -> String {
    if !value.exists() {
        return "absent".to_owned();
    }
    gofmt::shorten(&value.to_json(), MAX_SHOWN).into_owned()
}

/// Returns whether the change of this field alone makes the policy `stricter` or `weaker`; `None` if that is not
/// certain.
fn strictness(at: &str, old: Value<'_>, new: Value<'_>) -> Option<&'static str> {
    let word = |stricter: bool| if stricter { "stricter" } else { "weaker" };
    let rank = |value: Value<'_>, absent: u8| match value.str() {
        "Deny" => 3,
        "Warn" => 2,
        "Audit" => 1,
        "Allow" => 0,
        _ => absent,
    };
    let by = |old: i128, new: i128| (old != new).then(|| word(new > old));
    let flag = |value: Value<'_>| i128::from(value.bool().unwrap_or_default());
    // A larger limit is weaker; no limit is weakest.
    let limit = |value: Value<'_>| value.int().map_or(i128::MIN, |limit| -i128::from(limit));
    // Later is weaker; from the start is strictest.
    let from = |value: Value<'_>| {
        let time = gotime::parse(value.str()).ok();
        time.map_or(i128::MAX, |time| -i128::from(time.seconds))
    };
    // A number and a percentage cannot be compared.
    let tainted = |value: Value<'_>| match (value.int(), percentage(value.str())) {
        (Some(number), _) => (false, -i128::from(number)),
        (None, percent) => (true, percent.map_or(i128::MIN, |percent| -i128::from(percent))),
    };
    match at {
        "spec.maxTainted.devices" => {
            let ((was, old), (is, new)) = (tainted(old), tainted(new));
            if was == is { by(old, new) } else { None }
        }
        "spec.maxAgeSeconds" => by(limit(old), limit(new)),
        "spec.enforceFrom" => by(from(old), from(new)),
        "spec.action" | "spec.onUnknown" => by(rank(old, 3).into(), rank(new, 3).into()),
        "spec.unknown" => by(rank(old, 0).into(), rank(new, 0).into()),
        "spec.twoSteps" => by(flag(old), flag(new)),
        "spec.requireSelector"
        | "spec.requireAnnotations"
        | "spec.maxImpact"
        | "spec.maxTainted"
        | "spec.data"
        | "spec.validations" => by(i128::from(old.exists()), i128::from(new.exists())),
        _ if at.starts_with("spec.maxImpact.") || at == "spec.maxEvictionsPerSecond" => {
            by(limit(old), limit(new))
        }
        _ if at.starts_with("spec.data[") && at.ends_with(".required") => by(flag(old), flag(new)),
        _ => None,
    }
}
