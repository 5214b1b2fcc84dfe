//! ResourceSlicePatch of draft r1: its filter, the attributes and capacities that it sets, and its taints.
//!
//! No server ever had the type. Paths, limits and texts are those of the code that was proposed for it
//! (kubernetes/kubernetes#130120) and of KEP-5055 r1; where both are silent, those of ResourceSlice.

use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::{
    PATCH_ATTRIBUTE_NAME, PATCH_ATTRIBUTE_VALUE, PATCH_FILTER, PATCH_TAINT_EFFECT, TOO_MANY_PATCH_ATTRIBUTES,
    TOO_MANY_PATCH_TAINTS,
};
use crate::rules::upstream::lists::at_most_message;
use crate::rules::upstream::naming::{MAX_ATTRIBUTE_NAME_BYTES, path_of_bad_key};
use crate::rules::upstream::taint::supported_values;
use crate::rules::upstream::{attributes, fqn, taint, taint_rule};
use tollgate_api::fields::DEVICE_PATCH_FILTER;
use tollgate_api::view::{Attribute, DevicePatch, ObjectBody, View};
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

/// Maximum number of attributes and capacities of a patch, together.
const MAX_PATCHED_ATTRIBUTES: usize = 32;
/// The effects that the first draft of KEP-5055 allows in a ResourceSlicePatch.
const PATCH_EFFECTS: [&str; 2] = ["NoExecute", "NoSchedule"];

pub(super) fn check(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    let ObjectBody::Patch(patch) = admission.object.body else { return };
    let spec_at = Path::ROOT.field("spec");
    let at = spec_at.field("devices");
    let devices = patch.spec().devices();
    let old = match admission.old_object.map(|old| old.body) {
        Some(ObjectBody::Patch(old)) => old.spec().devices().filter(),
        _ => None,
    };
    if let Some(filter) = devices.filter() {
        taint_rule::check_selector(
            cx,
            [PATCH_FILTER; 4],
            &at.field("filter"),
            filter,
            old,
            &DEVICE_PATCH_FILTER,
        );
    }
    check_patched_attributes(cx, &at, devices);
    check_taints(cx, &at.field("taints"), devices);
}

/// Checks the number, names and values of the attributes and capacities that a patch sets.
fn check_patched_attributes(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, patch: DevicePatch<'_>) {
    let (attributes, capacity) = (patch.attributes(), patch.capacity());
    let entries = attributes.len() + capacity.len();
    if entries > MAX_PATCHED_ATTRIBUTES {
        let detail =
            format!("the total number of attributes and capacities must not exceed {MAX_PATCHED_ATTRIBUTES}");
        let value = BadValue::Excess { count: entries, limit: MAX_PATCHED_ATTRIBUTES };
        cx.report(TOO_MANY_PATCH_ATTRIBUTES, at).invalid(value, detail);
    }
    let attributes_at = at.field("attributes");
    for (name, attribute) in attributes.iter() {
        check_patched_attribute_name(cx, &attributes_at, name);
        check_patched_value(cx, &attributes_at.key(name), attribute);
    }
    for (name, _) in capacity.iter() {
        check_patched_attribute_name(cx, &at.field("capacity"), name);
    }
}

fn check_patched_attribute_name(cx: &mut RuleContext<'_, '_>, map_at: &Path<'_>, name: &str) {
    let at = path_of_bad_key(cx.profile, map_at, name, MAX_ATTRIBUTE_NAME_BYTES);
    cx.with_findings_on_key(|cx| fqn::check_fully_qualified_name(cx, PATCH_ATTRIBUTE_NAME, &at, name));
}

/// Checks that an attribute has exactly one value; `null` counts as a value, because it removes the attribute.
fn check_patched_value(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, attribute: Attribute<'_>) {
    attributes::check_string_and_version(cx, PATCH_ATTRIBUTE_VALUE, at, attribute);
    let values = attribute.json().members().filter(|(_, value)| !value.is_null_or_absent()).count();
    if values != 1 {
        let value = BadValue::Json(attribute.json().to_json_cut_after(cx.max_value_bytes()).into());
        cx.report(PATCH_ATTRIBUTE_VALUE, at)
            .invalid(value, "exactly one value must be specified")
            .help("set one of `int`, `bool`, `string` or `version`; to remove the attribute, set `null: {}`");
    }
}

fn check_taints(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, patch: DevicePatch<'_>) {
    let (taints, count) = (patch.taints(), patch.taints().len());
    if let Some(limit) = cx.profile.documented.patch_taints.filter(|limit| count > *limit) {
        let value = BadValue::Excess { count, limit };
        cx.report(TOO_MANY_PATCH_TAINTS, at).too_many(value, at_most_message(limit));
    }
    for (index, new) in taints.iter().enumerate() {
        let at = at.index(index);
        taint::check_taint(cx, &at, new, None);
        // What the profile itself does not know is refused by the rule of all taints.
        if cx.profile.effects.contains(&new.effect()) && !PATCH_EFFECTS.contains(&new.effect()) {
            let value = BadValue::json_quoted_string(new.effect());
            cx.report(PATCH_TAINT_EFFECT, &at.field("effect"))
                .not_supported(value, || supported_values(&PATCH_EFFECTS));
        }
    }
}
