//! Attributes of a device: names, exactly one value each, the lengths of values.

use super::naming::{MAX_ATTRIBUTE_NAME_BYTES, path_of_bad_key};
use super::{hub, qualified};
use crate::rules::RuleContext;
use crate::rules::table::{ATTRIBUTE_NAME, ATTRIBUTE_VALUE, TOO_MANY_ATTRIBUTES};
use tollgate_api::view::{Attribute, DeviceBody, Map, Strings, View as _};
use tollgate_document::doc::{FieldName, Value, ValueKind};
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, RuleId};
use tollgate_formats::names::{self, LastValidDomainCache};

/// Maximum number of attributes and capacities of a device, together.
const MAX_ATTRIBUTES: usize = 32;
/// Maximum length in bytes of a string or version attribute.
const MAX_ATTRIBUTE_VALUE_BYTES: usize = 64;
/// The fields that can hold a value, in the order in which the server names them.
const VALUE_FIELDS: [&str; 8] = ["int", "bool", "string", "version", "ints", "bools", "strings", "versions"];

/// Checks the number of attributes, capacities and values of the device at `at`.
// upstream v1.36 validateDevice
pub fn check_attribute_capacity_and_value_counts(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    body: DeviceBody<'_>,
) {
    let (mut attributes, mut values) = (0, 0);
    for (_, attribute) in body.attributes().value().members() {
        attributes += 1;
        values += attribute_value_count(attribute);
    }
    let entries = attributes + body.capacity().len();
    if entries > MAX_ATTRIBUTES {
        let detail =
            format_args!("the total number of attributes and capacities must not exceed {MAX_ATTRIBUTES}");
        cx.report(TOO_MANY_ATTRIBUTES, at).invalid(BadValue::count(entries), detail);
    }
    let limit = cx.profile.limits.attribute_values;
    if values > limit {
        let detail = format_args!("the total number of attribute values must not exceed {limit}");
        cx.report(TOO_MANY_ATTRIBUTES, at).invalid(BadValue::count(values), detail);
    }
}

/// Returns the number of list items of an attribute; 1 if it has none, however many scalars it has.
// upstream v1.36 numEntriesDeviceAttribute
fn attribute_value_count(attribute: Value<'_>) -> usize {
    // The object, one key and its value: nearly all attributes.
    if attribute.node_count() <= 3 {
        return 1;
    }
    let items: usize = attribute.members().map(|(_, value)| value.items().count()).sum();
    items.max(1)
}

/// True if one of the attributes has a list as value, even an empty one.
pub fn has_list_values(attributes: Map<'_, Attribute<'_>>) -> bool {
    attributes.iter().any(|(_, attribute)| has_list_value(attribute))
}

/// True if the attribute has a list as value. Nearly all attributes have none, and skip the checks of lists.
fn has_list_value(attribute: Attribute<'_>) -> bool {
    attribute.json().members().any(|(_, value)| value.kind() == ValueKind::Array)
}

/// Checks the names and values of the attributes at `at`.
pub fn check_attributes(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, attributes: Map<'_, Attribute<'_>>) {
    let mut domains = LastValidDomainCache::default();
    for (name, attribute) in attributes.iter() {
        if !qualified::is_surely_valid(name, &mut domains) {
            let name_at = path_of_bad_key(cx.profile, at, name, MAX_ATTRIBUTE_NAME_BYTES);
            cx.with_findings_on_key(|cx| qualified::check_qualified_name(cx, ATTRIBUTE_NAME, &name_at, name));
        }
        // Declarative paths have the whole name. A shortened one is another path: then both validators are heard.
        if name.len() > MAX_ATTRIBUTE_NAME_BYTES {
            cx.check_with_declarative_if_changed(true, |cx| {
                check_attribute_value(
                    cx,
                    &at.key_shortened_by_server(name, MAX_ATTRIBUTE_NAME_BYTES),
                    attribute,
                )
            });
            cx.check_declaratively_only(|cx| check_attribute_value(cx, &at.key(name), attribute));
        } else {
            check_attribute_value(cx, &at.key(name), attribute);
        }
    }
}

/// True if the attribute has one value only, and that is a number, a bool, or a string that is not too long. Nearly all
/// attributes are of this kind, and need no further checks.
fn has_one_trivially_valid_value(attribute: Attribute<'_>) -> bool {
    let mut members = attribute.json().members();
    let (Some((key, value)), None) = (members.next(), members.next()) else { return false };
    match value.kind() {
        ValueKind::Number | ValueKind::Bool => true,
        ValueKind::String => {
            key.is_key_named(const { FieldName::from_text("string") })
                && value.text().len() <= MAX_ATTRIBUTE_VALUE_BYTES
        }
        _ => false,
    }
}

/// Checks one value: its length, its version syntax, and that there is exactly one.
// upstream v1.36 validateDeviceAttribute
fn check_attribute_value(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, attribute: Attribute<'_>) {
    if has_one_trivially_valid_value(attribute) {
        return;
    }
    check_string_and_version(cx, ATTRIBUTE_VALUE, at, attribute);
    if has_list_value(attribute) {
        check_list_values(cx, at, attribute);
    }
    check_exactly_one_value_set(cx, at, attribute);
}

/// Checks the length of a string or version, and the syntax of a version.
pub fn check_string_and_version(
    cx: &mut RuleContext<'_, '_>,
    rule: RuleId,
    at: &Path<'_>,
    attribute: Attribute<'_>,
) {
    if attribute.string().is_some_and(|string| string.len() > MAX_ATTRIBUTE_VALUE_BYTES) {
        cx.report(rule, &at.field("string")).too_long(MAX_ATTRIBUTE_VALUE_BYTES);
    }
    if let Some(version) = attribute.version() {
        check_version_value(cx, rule, &at.field("version"), version);
    }
}

/// Checks the list values of an attribute.
fn check_list_values(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, attribute: Attribute<'_>) {
    // The list fields are the last four: `ints`, `bools`, `strings` and `versions`.
    for field in VALUE_FIELDS.into_iter().skip(4) {
        let list = Strings(attribute.json().get(field));
        if list.is_given() && list.is_empty() {
            let (value, detail) = (BadValue::Json("[]".into()), "must not be empty if specified");
            cx.report(ATTRIBUTE_VALUE, &at.field(field)).invalid(value, detail);
        }
    }
    let (strings_at, versions_at) = (at.field("strings"), at.field("versions"));
    for (index, string) in attribute.strings().iter().enumerate() {
        if string.len() > MAX_ATTRIBUTE_VALUE_BYTES {
            cx.report(ATTRIBUTE_VALUE, &strings_at.index(index)).too_long(MAX_ATTRIBUTE_VALUE_BYTES);
        }
    }
    for (index, version) in attribute.versions().iter().enumerate() {
        check_version_value(cx, ATTRIBUTE_VALUE, &versions_at.index(index), version);
    }
}

fn check_version_value(cx: &mut RuleContext<'_, '_>, rule: RuleId, at: &Path<'_>, version: &str) {
    if !names::is_semver(version) {
        cx.report(rule, at).invalid(version, names::INVALID_SEMVER);
    }
    if version.len() > MAX_ATTRIBUTE_VALUE_BYTES {
        cx.report(rule, at).too_long(MAX_ATTRIBUTE_VALUE_BYTES);
    }
}

/// Checks that an attribute has exactly one value. Only hand-written validation counts an empty list as a value.
fn check_exactly_one_value_set(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, attribute: Attribute<'_>) {
    // The document conforms: every member is one of `VALUE_FIELDS`, once.
    let values = || attribute.json().members().filter(|(_, value)| !value.is_null_or_absent());
    let is_filled = |value: Value<'_>| value.kind() != ValueKind::Array || !value.is_empty();
    if cx.is_declarative && values().filter(|(_, value)| is_filled(*value)).count() != 1 {
        let filled = |field: &&&str| {
            let value = attribute.json().get(field);
            !value.is_null_or_absent() && is_filled(value)
        };
        let names: Vec<&str> = VALUE_FIELDS.iter().filter(filled).copied().collect();
        let all = VALUE_FIELDS.map(|field| format!("`{field}`")).join(", ");
        let (value, detail) = if names.is_empty() {
            (String::new(), format!("must specify one of: {all}"))
        } else {
            (format!("{{{}}}", names.join(", ")), format!("must specify exactly one of: {all}"))
        };
        cx.report(ATTRIBUTE_VALUE, at).declarative_only().invalid(BadValue::str(&value), detail);
        return;
    }
    let detail = "exactly one value must be specified";
    match values().count() {
        1 => {}
        0 if cx.profile.missing_value_is_required => {
            cx.report(ATTRIBUTE_VALUE, at).required(detail);
        }
        0 => {
            cx.report(ATTRIBUTE_VALUE, at).invalid("", detail);
        }
        _ => {
            let value = hub::go_printed_value(cx, attribute.json(), &hub::PRINTED_ATTRIBUTE_TYPE);
            cx.report(ATTRIBUTE_VALUE, at).invalid(value, detail);
        }
    }
}
