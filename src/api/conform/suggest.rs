//! "Did you mean": hints for fields that the schema does not know, and for values that YAML reads as something else.
//!
//! Three sources for fields, in this order: the usual wrong places, the same field in another release, a near miss in spelling.
//! A hint never changes a verdict.

use super::super::schema::{StructTy, Ty};
use super::Schema;
use crate::doc::{Syntax, Value, ValueKind};
use crate::field::{Path, PathStyle};

/// (struct, field, what to write instead).
const WRONG_PLACES: &[(&str, &str, &str)] = &[
    (
        "ResourceClaimSpec",
        "tolerations",
        "tolerations belong to a request: `spec.devices.requests[].exactly.tolerations` \
         (v1beta1: `spec.devices.requests[].tolerations`)",
    ),
    (
        "DeviceClaim",
        "tolerations",
        "tolerations belong to a request: `requests[].exactly.tolerations` (v1beta1: `requests[].tolerations`)",
    ),
    ("ResourceClaimTemplateSpec", "devices", "a template wraps a claim's spec: `spec.spec.devices`"),
    (
        "ResourceClaimTemplateSpec",
        "tolerations",
        "a template wraps a claim's spec: `spec.spec.devices.requests[].exactly.tolerations`",
    ),
    ("ResourceClaimSpec", "spec", "only a ResourceClaimTemplate has `spec.spec`"),
    ("DeviceTaintRuleSpec", "selector", "the field is called `deviceSelector`"),
    (
        "DeviceTaintRuleSpec",
        "taints",
        "a DeviceTaintRule has exactly one taint: `spec.taint` (an object, not a list)",
    ),
    ("DeviceTaintRuleSpec", "driver", "criteria belong into `deviceSelector`: `spec.deviceSelector.driver`"),
    ("DeviceTaintRuleSpec", "pool", "criteria belong into `deviceSelector`: `spec.deviceSelector.pool`"),
    ("DeviceTaintRuleSpec", "device", "criteria belong into `deviceSelector`: `spec.deviceSelector.device`"),
    ("DeviceTaintRuleSpec", "key", "a taint's fields belong into `spec.taint`"),
    ("DeviceTaintRuleSpec", "effect", "a taint's fields belong into `spec.taint`"),
    ("DeviceTaintRuleSpec", "effects", "a rule has one effect: `spec.taint.effect`"),
    ("DeviceTaintSelector", "driverName", "the field is called `driver`"),
    ("DeviceTaintSelector", "poolName", "the field is called `pool`"),
    ("DeviceTaintSelector", "deviceName", "the field is called `device`"),
    ("ResourceSliceSpec", "driverName", "the field is called `driver`"),
    ("ResourceSliceSpec", "poolName", "the field is called `pool.name`"),
    (
        "ResourceSliceSpec",
        "taints",
        "taints belong to a device: `spec.devices[].taints` (v1beta1: `spec.devices[].basic.taints`)",
    ),
    ("OpaqueDeviceConfiguration", "driverName", "the field is called `driver`"),
    ("DeviceToleration", "seconds", "the field is called `tolerationSeconds`"),
    ("DeviceTaint", "operator", "only tolerations have an operator; a taint has `key`, `value`, `effect`"),
    ("DeviceTaint", "tolerationSeconds", "only tolerations have `tolerationSeconds`"),
    (
        "DeviceRequest",
        "deviceClassName",
        "from v1beta2 on a request's fields lie in `exactly`: `requests[].exactly.deviceClassName`",
    ),
    (
        "DeviceRequest",
        "tolerations",
        "from v1beta2 on a request's fields lie in `exactly`: `requests[].exactly.tolerations`",
    ),
    (
        "DeviceRequest",
        "selectors",
        "from v1beta2 on a request's fields lie in `exactly`: `requests[].exactly.selectors`",
    ),
    (
        "DeviceRequest",
        "exactly",
        "before v1beta2 a request is flat: write the fields of `exactly` beside `name`",
    ),
    ("Device", "basic", "from v1beta2 on a device is flat: write the fields of `basic` beside `name`"),
    ("Device", "taints", "before v1beta2 a device's fields lie in `basic`: `devices[].basic.taints`"),
    ("Device", "attributes", "before v1beta2 a device's fields lie in `basic`: `devices[].basic.attributes`"),
    ("Device", "capacity", "before v1beta2 a device's fields lie in `basic`: `devices[].basic.capacity`"),
];

/// A hint for the unknown field `name` of `ty`.
pub(super) fn for_field(ty: &'static StructTy, name: &str, schema: Schema, at: &Path<'_>) -> Option<String> {
    let place = WRONG_PLACES.iter().find(|(owner, field, _)| *owner == ty.name && *field == name);
    if let Some((_, _, hint)) = place {
        return Some((*hint).to_owned());
    }
    if ty.fields.iter().any(|field| field.json == name) {
        return Some(format!("`{name}` exists in other releases of this API, not in this profile"));
    }
    let known = ty.fields.iter().filter(|field| field.known.overlaps(schema.fields)).map(|field| field.json);
    let lower = crate::gofmt::head(name, 256).to_lowercase();
    let near = known
        .map(|json| (distance(&json.to_lowercase(), &lower), json))
        .filter(|(distance, json)| *distance <= 1 + json.len().min(name.len()) / 5)
        .min_by_key(|(distance, _)| *distance);
    if let Some((_, json)) = near {
        return Some(format!("did you mean `{json}`?"));
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
        let path = at.owned().print(PathStyle::User);
        format!("`{path}` has the fields {}", names.join(", "))
    })
}

/// A hint for a value of the wrong type: `no`, `on` and `1e3` are texts only if they are quoted, and `{}` is no list.
pub(super) fn for_value(value: Value<'_>, ty: &Ty) -> Option<String> {
    if matches!(ty, Ty::List(_)) && value.kind() == ValueKind::Object && value.members().next().is_none() {
        return Some("`{}` is an empty object: write `[]` for an empty list".to_owned());
    }
    let wants_text = matches!(ty, Ty::Str | Ty::Named(_) | Ty::CoreNamed(_) | Ty::Uid | Ty::Time);
    let span = value.span();
    let written = value.doc().source().get(span.start as usize..span.end as usize)?;
    let what = match value.kind() {
        ValueKind::Bool => "a bool",
        ValueKind::Number => "a number",
        _ => return None,
    };
    let plain = wants_text && value.doc().syntax() == Syntax::Yaml && (1..=40).contains(&written.len());
    plain.then(|| format!("YAML reads `{written}` as {what}: quote it if it is a text"))
}

/// Edit distance with neighbours swapped counting as one step.
pub(crate) fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) =
        (left.chars().take(64).collect(), right.chars().take(64).collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let cost = usize::from(a != b);
            let cell = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX / 2);
            let mut best = (cell(&row, j) + cost).min(cell(&row, j + 1) + 1).min(cell(&next, j) + 1);
            let swapped = i > 0 && j > 0 && left.get(i - 1) == Some(b) && right.get(j - 1) == Some(a);
            if swapped {
                best = best.min(cell(&before, j - 1) + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distance_counts_edits_and_swaps() {
        for (left, right, expected) in
            [("driver", "driver", 0), ("taitns", "taints", 1), ("efect", "effect", 1), ("a", "xyz", 3)]
        {
            assert_eq!(distance(left, right), expected, "{left} {right}");
        }
    }
}
