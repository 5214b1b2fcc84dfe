//! "Did you mean": hints for fields that the schema does not know, and for values of another type.
//!
//! Four sources for fields, in this order: the usual wrong places, other words for the same field, the same field in
//! another release, a near miss in spelling. A hint never changes a verdict. Fixes are in `mend`.

pub use super::near::{distance, hint_use_one_of, join_with_and, nearest_if_unambiguous};

use super::super::schema::{FieldType, StructSchema};
use super::Schema;
use crate::profile::Profile;
use tollgate_document::doc::{Syntax, Value, ValueKind};
use tollgate_document::field::{Path, PathAudience};

/// Fields that users often put into the wrong struct: the struct, the fields, and a hint, in which `{field}` is the
/// field.
const MISPLACED_FIELDS: &[(&str, &[&str], &str)] = &[
    (
        "ResourceClaimSpec",
        &["tolerations"],
        "tolerations belong to a request: `spec.devices.requests[].exactly.tolerations` \
         (v1beta1: `spec.devices.requests[].tolerations`)",
    ),
    (
        "DeviceClaim",
        &["tolerations"],
        "tolerations belong to a request: `requests[].exactly.tolerations` (v1beta1: `requests[].tolerations`)",
    ),
    (
        "ResourceClaimTemplateSpec",
        &["devices"],
        "a template contains the spec of a claim: use `spec.spec.devices`",
    ),
    (
        "ResourceClaimTemplateSpec",
        &["tolerations"],
        "a template contains the spec of a claim: use `spec.spec.devices.requests[].exactly.tolerations`",
    ),
    (
        "PodResourceClaim",
        &["tolerations"],
        "tolerations of device taints belong to a request of the claim: `spec.devices.requests[].exactly.tolerations` \
         in a ResourceClaim, `spec.spec.devices.requests[].exactly.tolerations` in a ResourceClaimTemplate",
    ),
    (
        "PodResourceClaim",
        &["devices"],
        "a pod only names a claim: `devices` belongs to the spec of a ResourceClaim or ResourceClaimTemplate",
    ),
    ("ResourceClaimSpec", &["requests"], "requests belong in `devices`: `spec.devices.requests`"),
    (
        "ResourceClaimSpec",
        &["resourceClassName"],
        "classic DRA was removed: set `spec.devices.requests[].exactly.deviceClassName` to a DeviceClass",
    ),
    ("DeviceSelector", &["expression"], "the expression belongs in `cel`: `cel.expression`"),
    (
        "DeviceSelector",
        &["matchLabels", "matchExpressions"],
        "devices have no labels: use an expression in `cel.expression`",
    ),
    ("ResourceClaimSpec", &["spec"], "only a ResourceClaimTemplate has `spec.spec`"),
    (
        "DeviceTaintRuleSpec",
        &["taints"],
        "a DeviceTaintRule has exactly one taint: `spec.taint` (an object, not a list)",
    ),
    (
        "DeviceTaintRuleSpec",
        &["driver", "pool", "device"],
        "criteria belong in `deviceSelector`: `spec.deviceSelector.{field}`",
    ),
    ("DeviceTaintRuleSpec", &["key", "effect"], "the fields of a taint belong in `spec.taint`"),
    ("DeviceTaintRuleSpec", &["effects"], "a rule has one effect: `spec.taint.effect`"),
    ("ResourceSliceSpec", &["poolName"], "the field is named `pool.name`"),
    (
        "ResourceSliceSpec",
        &["taints"],
        "taints belong to a device: `spec.devices[].taints` (v1beta1: `spec.devices[].basic.taints`)",
    ),
    (
        "DeviceTaint",
        &["operator"],
        "only tolerations have an operator; a taint has `key`, `value` and `effect`",
    ),
    ("DeviceTaint", &["tolerationSeconds"], "only tolerations have `tolerationSeconds`"),
    (
        "DeviceRequest",
        &["deviceClassName", "tolerations", "selectors"],
        "since v1beta2, the fields of a request are in `exactly`: `requests[].exactly.{field}`",
    ),
    (
        "DeviceRequest",
        &["exactly"],
        "before v1beta2, a request has no `exactly`: write its fields next to `name`",
    ),
    ("Device", &["basic"], "since v1beta2, a device has no `basic`: write its fields next to `name`"),
    (
        "Device",
        &["taints", "attributes", "capacity"],
        "before v1beta2, the fields of a device are in `basic`: `devices[].basic.{field}`",
    ),
];

/// Other words for fields: the struct, the words, and the name of the field.
const FIELD_SYNONYMS: &[(&str, &[&str], &str)] = &[
    ("CELDeviceSelector", &["expr", "rule", "cel"], "expression"),
    ("Device", &["labels"], "attributes"),
    ("DeviceAttribute", &["boolean"], "bool"),
    ("DeviceAttribute", &["integer", "number"], "int"),
    ("DeviceAttribute", &["text", "str"], "string"),
    ("DeviceClaim", &["constraint"], "constraints"),
    ("DeviceConstraint", &["matchAttributes"], "matchAttribute"),
    ("DeviceRequest", &["alternatives", "oneOf", "anyOf"], "firstAvailable"),
    ("DeviceRequest", &["exact"], "exactly"),
    ("DeviceSubRequest", &["deviceClass", "className", "class"], "deviceClassName"),
    ("DeviceSubRequest", &["mode"], "allocationMode"),
    ("DeviceSubRequest", &["quantity"], "count"),
    ("DeviceTaint", &["name"], "key"),
    ("DeviceTaint", &["time", "since", "addedAt"], "timeAdded"),
    ("DeviceTaintRuleSpec", &["deviceTaint", "taints"], "taint"),
    ("DeviceTaintRuleSpec", &["selector", "deviceSelectors", "devices", "match"], "deviceSelector"),
    ("DeviceTaintSelector", &["deviceName"], "device"),
    ("DeviceTaintSelector", &["driverName"], "driver"),
    ("DeviceTaintSelector", &["poolName"], "pool"),
    ("DeviceToleration", &["name"], "key"),
    ("DeviceToleration", &["op"], "operator"),
    ("DeviceToleration", &["seconds", "timeout", "duration"], "tolerationSeconds"),
    ("ExactDeviceRequest", &["deviceClass", "className", "class", "resourceClassName"], "deviceClassName"),
    ("ExactDeviceRequest", &["mode"], "allocationMode"),
    ("ExactDeviceRequest", &["quantity", "number", "replicas"], "count"),
    ("OpaqueDeviceConfiguration", &["driverName"], "driver"),
    ("OpaqueDeviceConfiguration", &["params", "config"], "parameters"),
    ("ResourceSliceSpec", &["driverName"], "driver"),
    ("ResourceSliceSpec", &["node"], "nodeName"),
    ("ResourceSliceSpec", &["selector"], "nodeSelector"),
];

/// Looks up the field `name` of the struct `ty` in a table, and returns the text of its row.
fn find_in_table(
    table: &[(&str, &[&str], &'static str)],
    ty: &StructSchema,
    name: &str,
) -> Option<&'static str> {
    let row = table.iter().find(|(owner, names, _)| *owner == ty.name && names.contains(&name));
    row.map(|(_, _, text)| *text)
}

/// The field of a struct for which another word is commonly used; `None` if the word is unknown.
pub(super) fn field_for_synonym(ty: &StructSchema, name: &str) -> Option<&'static str> {
    find_in_table(FIELD_SYNONYMS, ty, name)
}

/// The field that was probably intended by an unknown name: by a synonym or by its spelling. `None` if there
/// is not exactly one.
pub(super) fn meant_field(ty: &'static StructSchema, name: &str, schema: Schema) -> Option<&'static str> {
    let known =
        || ty.fields.iter().filter(|field| field.known.overlaps(schema.fields)).map(|field| field.json);
    let word = field_for_synonym(ty, name).filter(|word| known().any(|json| json == *word));
    // A field of another release is spelt right.
    let is_elsewhere = ty.fields.iter().any(|field| field.json == name);
    word.or_else(|| if is_elsewhere { None } else { nearest_if_unambiguous(name, known()) })
}

/// A hint for the unknown field `name` of `ty`, if there is one.
pub(super) fn hint_for_field(
    ty: &'static StructSchema,
    name: &str,
    schema: Schema,
    at: &Path<'_>,
) -> Option<String> {
    if let Some(hint) = find_in_table(MISPLACED_FIELDS, ty, name) {
        return Some(hint.replace("{field}", name));
    }
    match meant_field(ty, name, schema) {
        Some(json) if field_for_synonym(ty, name).is_some() => {
            return Some(format!("the field is named `{json}`"));
        }
        Some(json) => return Some(format!("did you mean `{json}`?")),
        None => {}
    }
    let rows = || ty.fields.iter().filter(|field| field.json == name);
    if rows().next().is_some() {
        let has = |release: &&&'static Profile| rows().any(|field| field.known.overlaps(release.fields));
        let releases: Vec<&str> = Profile::ALL
            .iter()
            .filter(|profile| profile.is_release)
            .filter(has)
            .map(|release| release.name)
            .collect();
        return Some(match releases.as_slice() {
            [] => format!("`{name}` exists only in a draft of KEP-5055, not in any Kubernetes release"),
            _ => format!("`{name}` is available only in Kubernetes {}", join_with_and(&releases)),
        });
    }
    if ty.name == schema.root.name || name.len() > 64 {
        return None;
    }
    // The field may belong one level up or down; naming the known ones is shorter than guessing.
    let names: Vec<&str> = ty
        .fields
        .iter()
        .filter(|field| field.known.overlaps(schema.fields))
        .map(|field| field.json)
        .collect();
    (names.len() <= 12).then(|| {
        let path = at.owned().print(PathAudience::User);
        format!("the fields of `{path}` are {}", join_with_and(&names))
    })
}

/// True if an object in place of a list is not an item of the list, but an object with the items by their names.
pub(super) fn is_keyed_by_name(value: Value<'_>, item: &FieldType) -> bool {
    let FieldType::Struct(item) = item else { return false };
    let is_field = |key: &str| item.fields.iter().any(|field| field.json.eq_ignore_ascii_case(key));
    value.kind() == ValueKind::Object && !value.members().any(|(key, _)| is_field(key.text()))
}

/// A hint on how to write a list in place of an object with the items by their names.
fn hint_for_list_keyed_by_name(value: Value<'_>, item: &FieldType, is_yaml: bool) -> String {
    let has_name =
        matches!(item, FieldType::Struct(item) if item.fields.iter().any(|field| field.json == "name"));
    let named = value.members().next().filter(|(key, value)| {
        has_name && value.kind() == ValueKind::Object && (1..=40).contains(&key.text().len())
    });
    match named {
        Some((key, _)) if is_yaml => {
            format!("this is a list: write `- name: {key}` instead of `{key}:`", key = key.text())
        }
        Some((key, _)) => format!("this is a list: write `[{{\"name\": \"{}\", …}}]`", key.text()),
        None if is_yaml => "this is a list: begin each item with `- ` and its fields".to_owned(),
        None => "this is a list: write `[{…}, …]`".to_owned(),
    }
}

/// A hint to quote a boolean or number where a string is expected, if it is one and short enough to repeat.
pub fn hint_to_quote(value: Value<'_>) -> Option<String> {
    let what = match value.kind() {
        ValueKind::Bool => "a boolean",
        ValueKind::Number => "a number",
        _ => return None,
    };
    let written = written_if_short(value)?;
    Some(if value.doc().syntax() == Syntax::Yaml {
        format!("YAML reads `{written}` as {what}; quote it if you mean a string: \"{written}\"")
    } else {
        format!("add quotes: \"{written}\"")
    })
}

/// The value as it is written; `None` if it is empty or too long to repeat in a hint.
fn written_if_short(value: Value<'_>) -> Option<&str> {
    let span = value.span();
    let written = value.doc().source().get(span.start as usize..span.end as usize)?;
    (1..=40).contains(&written.len()).then_some(written)
}

/// A hint on how to write a value of the wrong type, if there is one.
pub(super) fn hint_for_value(value: Value<'_>, ty: &FieldType) -> Option<String> {
    let wants_text =
        matches!(ty, FieldType::Str | FieldType::Named(_) | FieldType::CoreNamed(_) | FieldType::Uid);
    let short = written_if_short(value);
    let (written, is_short) = (short.unwrap_or_default(), short.is_some());
    let is_yaml = value.doc().syntax() == Syntax::Yaml;
    match (value.kind(), ty) {
        (ValueKind::Object, FieldType::List(_)) if value.is_empty() => {
            Some("`{}` is an empty object: write `[]` for an empty list".to_owned())
        }
        (ValueKind::Object, FieldType::List(item)) if is_keyed_by_name(value, item) => {
            Some(hint_for_list_keyed_by_name(value, item, is_yaml))
        }
        (ValueKind::Object, FieldType::List(_)) => Some(
            if is_yaml {
                "this is a list: write `- ` before the first field"
            } else {
                "this is a list: write `[{…}]`"
            }
            .to_owned(),
        ),
        (ValueKind::String, FieldType::List(_)) if is_short => {
            Some(format!("this is a list: write `[{written}]`"))
        }
        (ValueKind::Array, FieldType::Struct(_)) => {
            Some("this is one object, not a list: remove the `-`".to_owned())
        }
        (ValueKind::Array, FieldType::Map { .. }) => {
            Some("this is a map: write `key: value` without `-`".to_owned())
        }
        (ValueKind::Array, _) if wants_text => {
            Some("this is one value, not a list: remove the `-`".to_owned())
        }
        (ValueKind::Null | ValueKind::Array | ValueKind::Object, _) => None,
        (ValueKind::String, FieldType::Int) if is_short => Some(integer_hint(value.text(), written)),
        (ValueKind::Number, FieldType::Int) if is_short => Some(format!("`{written}` is not an integer")),
        (ValueKind::String, FieldType::Bool) if is_short => Some(match meant_bool(value.text()) {
            Some(meant) => format!("remove the quotes: `{meant}`"),
            None => "write `true` or `false`, without quotes".to_owned(),
        }),
        (_, FieldType::Bool) => Some("write `true` or `false`".to_owned()),
        (_, FieldType::Time) => Some(hint_for_time("")),
        (ValueKind::Bool | ValueKind::Number, _) if wants_text => hint_to_quote(value),
        (kind, FieldType::Struct(inner)) if is_short && member_for_scalar(inner, kind).is_some() => {
            let key = member_for_scalar(inner, kind).unwrap_or_default();
            Some(format!("this is an object: write `{{{key}: {written}}}`"))
        }
        (_, FieldType::Struct(inner)) => {
            let names: Vec<&str> = inner.fields.iter().take(4).map(|field| field.json).collect();
            Some(format!("this is an object with fields such as {}", join_with_and(&names)))
        }
        _ => None,
    }
}

/// The member of the struct `ty` that a scalar of this kind, written instead of the object, probably
/// represents.
pub(super) fn member_for_scalar(ty: &StructSchema, kind: ValueKind) -> Option<&'static str> {
    match (ty.name, kind) {
        ("DeviceAttribute", ValueKind::String) => Some("string"),
        ("DeviceAttribute", ValueKind::Number) => Some("int"),
        ("DeviceAttribute", ValueKind::Bool) => Some("bool"),
        ("DeviceCapacity" | "Counter", ValueKind::String | ValueKind::Number) => Some("value"),
        ("CELDeviceSelector", ValueKind::String) => Some("expression"),
        _ => None,
    }
}

/// A hint for a string where an integer is expected; `written` is the string as it is in the source.
fn integer_hint(text: &str, written: &str) -> String {
    if text.trim().parse::<i64>().is_ok() {
        return format!("remove the quotes: `{}`", text.trim());
    }
    match whole_seconds(text) {
        Some(seconds) => format!("write a number without a unit: `{written}` is `{seconds}` seconds"),
        None => "write an integer, without quotes and without a unit".to_owned(),
    }
}

/// The seconds of a duration such as `10m`; `None` if it is none, or has a fraction of a second.
pub(super) fn whole_seconds(text: &str) -> Option<i64> {
    let nanos = tollgate_formats::gotime::parse_duration(&text.replace(' ', "")).ok()?;
    (nanos % 1_000_000_000 == 0).then_some(nanos / 1_000_000_000)
}

/// The boolean for a text such as `yes` or `off`; `None` for other texts.
pub(super) fn meant_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// The time in RFC 3339, if only its form is wrong: a blank for `T`, lower-case letters, an offset without a colon.
/// `None` otherwise.
pub(super) fn corrected_time(text: &str) -> Option<String> {
    let mut out = text.trim().to_ascii_uppercase().replacen(' ', "T", 1).replace(' ', "");
    let offset = out.len().checked_sub(5)?;
    let (head, tail) = out.split_at_checked(offset)?;
    if head.len() > 10
        && tail.starts_with(['+', '-'])
        && tail.bytes().skip(1).all(|byte| byte.is_ascii_digit())
    {
        let (hours, minutes) = tail.split_at_checked(3)?;
        out = format!("{head}{hours}:{minutes}");
    }
    (text.len() <= 64 && out != text && tollgate_formats::gotime::parse_rfc3339(&out).is_ok()).then_some(out)
}

/// A hint for a text that is not a time.
pub(super) fn hint_for_time(text: &str) -> String {
    match corrected_time(text) {
        Some(meant) => format!("write the time in RFC 3339 format: `{meant}`"),
        None => "write the time in RFC 3339 format, with a time zone: `2026-01-31T15:04:05Z`".to_owned(),
    }
}

/// The quantity with a corrected suffix: `10Gi` for `10GiB`, `10 Gi` and `10gi`. `None` if the intention is
/// not clear.
pub(super) fn corrected_quantity(text: &str) -> Option<String> {
    let compact: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
    let digits = compact.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let suffix = compact.get(digits.len()..)?;
    let meant = match suffix.to_ascii_lowercase().as_str() {
        "" => "",
        "ki" | "kib" => "Ki",
        "mi" | "mib" => "Mi",
        "gi" | "gib" => "Gi",
        "ti" | "tib" => "Ti",
        "pi" | "pib" => "Pi",
        "gb" | "g" => "G",
        "mb" => "M",
        "tb" | "t" => "T",
        "kb" => "k",
        _ => return None,
    };
    let meant = format!("{digits}{meant}");
    let is_one = tollgate_formats::quantity::Quantity::parse(&meant).is_ok();
    (text.len() <= 64 && meant != text && is_one).then_some(meant)
}

/// A hint for a text that is not a quantity.
pub(super) fn hint_for_quantity(text: &str) -> String {
    match corrected_quantity(text) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "write a number with an optional suffix, such as `40Gi`, `500M` or `2`".to_owned(),
    }
}
