//! Keys that a Go decoder takes for others: the same one twice, and names that differ from a known one in case only.
//!
//! Drivers decode with Go's `encoding/json`, which takes the last of equal keys, merges objects, and falls back to
//! comparing names without case. A schema check is useless if the driver reads another field than the one that was
//! checked, so such keys are violations. A name is known if `properties` of a subschema that may apply, in any branch,
//! contains it; all other keys count as keys of a map and are not checked. For expressions, which have no schema, the
//! known names are those that they contain ([`ExpressionFieldNames`]).

use std::collections::{BTreeSet, HashMap};

use super::budget::EvaluationMeter;
use super::faults::SchemaViolationSink;
use super::graph::SchemaGraph;
use super::{fold, shortened_name};
use tollgate_document::doc::{Value, ValueKind};
use tollgate_document::field::Path;

/// The fields that determine the type of a value.
pub(in crate::policy) const TYPE_FIELDS: [&str; 2] = ["apiVersion", "kind"];

/// What is needed to check the keys of a value: the subschemas, which say the known names, and the step meter.
#[derive(Clone, Copy)]
pub(super) struct KeyCheckContext<'r> {
    pub(super) graph: &'r SchemaGraph,
    pub(super) meter: &'r EvaluationMeter<'r>,
}

/// Reports duplicate keys, and keys that differ from a known name only in case, at any depth. The known names are the
/// `properties` of the subschemas that apply; at the top level, these are `schemas` with all that they reference, and
/// `names` are known as well.
pub(super) fn report_duplicate_and_miscased_keys(
    key_check: KeyCheckContext<'_>,
    value: Value<'_>,
    schemas: &[u32],
    names: &[&str],
    at: &Path<'_>,
    faults: &mut SchemaViolationSink<'_>,
) {
    if faults.is_full() || value.is_empty() || !key_check.meter.take_steps(value.len() as u64) {
        return;
    }
    let schemas = key_check.graph.with_in_place_subschemas(schemas, key_check.meter);
    match value.kind() {
        ValueKind::Object => {
            report_duplicate_keys(value, at, faults, |_| true);
            for (key, member) in value.members() {
                if faults.is_full() || !key_check.meter.take_steps(schemas.len() as u64) {
                    return;
                }
                let key_at = at.field(key.text());
                if let Some(intended_name) =
                    known_name_differing_in_case(key_check.graph, key.text(), &schemas, names)
                {
                    report_other_case(&key_at, key, member, &intended_name, faults);
                }
                if !member.is_empty() {
                    let known = schemas.iter().filter_map(|number| key_check.graph.get(*number));
                    let below: Vec<u32> =
                        known.flat_map(|schema| schema.subschemas_for_member(key, key_check.meter)).collect();
                    report_duplicate_and_miscased_keys(key_check, member, &below, &[], &key_at, faults);
                }
            }
        }
        ValueKind::Array => {
            for (index, item) in value.items().enumerate().filter(|(_, item)| !item.is_empty()) {
                if faults.is_full() || !key_check.meter.take_steps(schemas.len() as u64) {
                    return;
                }
                let known = schemas.iter().filter_map(|number| key_check.graph.get(*number));
                let below: Vec<u32> = known.flat_map(|schema| schema.subschemas_for_item(index)).collect();
                report_duplicate_and_miscased_keys(key_check, item, &below, &[], &at.index(index), faults);
            }
        }
        _ => {}
    }
}

/// The names of fields that the expressions of a policy read, to find keys of objects that a Go decoder would confuse
/// with them.
#[derive(Debug, Default)]
pub(in crate::policy) struct ExpressionFieldNames {
    /// The names, by their case-folded form.
    names: HashMap<String, BTreeSet<String>>,
    /// True if the expressions read parameters or data, possibly with computed names.
    looks_inside: bool,
}

/// Fields with opaque values, which the API server does not decode, and the fields that contain them.
const OPAQUE_FIELDS: [&str; 4] = ["config", "opaque", "parameters", "data"];

impl ExpressionFieldNames {
    /// Collects the names that some expressions read.
    pub(in crate::policy) fn from_names<'n>(names: impl Iterator<Item = &'n String>) -> ExpressionFieldNames {
        let mut sought = ExpressionFieldNames::default();
        for name in names {
            sought.looks_inside |= OPAQUE_FIELDS.contains(&name.as_str());
            sought.names.entry(fold::case_folded(name)).or_default().insert(name.clone());
        }
        sought
    }

    /// Returns the sought name that a Go decoder confuses the key with; `None` if the key is exactly that name, or
    /// unrelated.
    fn confusable_name(&self, key: &str) -> Option<&str> {
        if !self.looks_inside {
            return None;
        }
        let names = self.names.get(fold::case_folded(key).as_str())?;
        if names.contains(key) { None } else { names.first().map(String::as_str) }
    }
}

/// Reports keys of a value, at any depth, that are duplicates or that a Go decoder confuses with one of the names in
/// `sought`, so that an expression would see another value than the decoder.
pub(super) fn report_keys_confusable_with_names(
    meter: &EvaluationMeter<'_>,
    value: Value<'_>,
    sought: &ExpressionFieldNames,
    at: &Path<'_>,
    faults: &mut SchemaViolationSink<'_>,
) {
    if faults.is_full() || value.is_empty() || !meter.take_steps(value.len() as u64) {
        return;
    }
    if value.kind() == ValueKind::Array {
        for (index, item) in value.items().enumerate() {
            report_keys_confusable_with_names(meter, item, sought, &at.index(index), faults);
        }
        return;
    }
    report_duplicate_keys(value, at, faults, |_| true);
    if sought.looks_inside {
        report_case_variants(value, at, faults);
    }
    for (key, member) in value.members() {
        let key_at = at.field(key.text());
        if let Some(name) = sought.confusable_name(key.text()) {
            report_other_case(&key_at, key, member, name, faults);
        }
        report_keys_confusable_with_names(meter, member, sought, &key_at, faults);
    }
}

/// Reports keys of an object that differ only in case.
fn report_case_variants(value: Value<'_>, at: &Path<'_>, faults: &mut SchemaViolationSink<'_>) {
    let mut first: HashMap<String, &str> = HashMap::new();
    for (key, member) in value.members() {
        let known = *first.entry(fold::case_folded(key.text())).or_insert(key.text());
        if known != key.text() {
            report_other_case(&at.field(key.text()), key, member, &shortened_name(known), faults);
        }
    }
}

/// Reports duplicate and miscased keys of an object that a Go decoder reads as `apiVersion` or `kind`.
pub(super) fn report_confusable_api_version_and_kind(
    value: Value<'_>,
    at: &Path<'_>,
    faults: &mut SchemaViolationSink<'_>,
) {
    let intended_name = |key: &str| TYPE_FIELDS.into_iter().find(|name| fold::is_same_folded(name, key));
    report_duplicate_keys(value, at, faults, |key| intended_name(key).is_some());
    for (key, member) in value.members() {
        if let Some(name) = intended_name(key.text()).filter(|name| *name != key.text()) {
            report_other_case(&at.field(key.text()), key, member, name, faults);
        }
    }
}

/// Returns the values of all keys that a Go decoder reads as this name.
pub(in crate::policy) fn values_of_case_variants<'d>(
    value: Value<'d>,
    name: &'static str,
) -> impl Iterator<Item = &'d str> {
    let members = value.members();
    members.filter(move |(key, _)| fold::is_same_folded(key.text(), name)).map(|(_, value)| value.str())
}

/// Reports a member whose key Go decoders read as `name`.
fn report_other_case(
    at: &Path<'_>,
    key: Value<'_>,
    member: Value<'_>,
    name: &str,
    faults: &mut SchemaViolationSink<'_>,
) {
    let text = format!(
        "key \"{}\" differs from \"{name}\" only in case, and Go decoders read it as \"{name}\": write \"{name}\"",
        shortened_name(key.text())
    );
    faults.report(at, member.to_json(), text, true);
}

/// Reports each key that an object contains twice, among those for which `matters` is true.
fn report_duplicate_keys(
    value: Value<'_>,
    at: &Path<'_>,
    faults: &mut SchemaViolationSink<'_>,
    matters: impl Fn(&str) -> bool,
) {
    let mut keys: Vec<&str> = value.members().map(|(key, _)| key.text()).filter(|key| matters(key)).collect();
    keys.sort_unstable();
    let mut last = None;
    for pair in keys.windows(2) {
        let [one, next] = pair else { continue };
        if one == next && last != Some(*one) && !faults.is_full() {
            last = Some(*one);
            let text = format!(
                "key \"{}\" is set twice, and decoders differ in which value they use",
                shortened_name(one)
            );
            faults.report(&at.field(one), json_with_duplicates(value), text, true);
        }
    }
}

/// Returns an object as JSON with all its members, duplicates included, in their order.
fn json_with_duplicates(value: Value<'_>) -> String {
    let members = value.members().map(|(key, member)| {
        format!("{}:{}", tollgate_formats::gofmt::json_string(key.text()), member.to_json())
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// Returns the known name that a Go decoder confuses the key with; `None` if there is none, or if the key is a known
/// name itself.
fn known_name_differing_in_case(
    graph: &SchemaGraph,
    key: &str,
    schemas: &[u32],
    names: &[&str],
) -> Option<String> {
    let known = || schemas.iter().filter_map(|number| graph.get(*number));
    if names.contains(&key) || known().any(|schema| schema.properties.contains_key(key)) {
        return None;
    }
    if let Some(name) = names.iter().find(|name| fold::is_same_folded(name, key)) {
        return Some((*name).to_owned());
    }
    if known().all(|schema| schema.properties.is_empty()) {
        return None;
    }
    let folded = fold::case_folded(key);
    known().find_map(|schema| schema.folded.get(folded.as_str())).map(ToString::to_string)
}
