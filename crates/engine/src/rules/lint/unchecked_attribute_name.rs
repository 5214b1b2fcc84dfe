//! Names of attributes and capacities with two slashes or more: no release validates them.

use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::UNCHECKED_ATTRIBUTE_NAME;
use crate::site;
use tollgate_api::view::{ClaimSpec, Device, ObjectBody, SliceSpec};
use tollgate_document::field::Path;
use tollgate_formats::names::has_at_most_one_slash;

const DETAIL: &str = "API servers do not validate names with more than one slash";
const HELP: &str =
    "use an identifier, or a domain and an identifier separated by one slash, such as `example.com/model`";

pub(super) fn check(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    let spec_at = Path::ROOT.field("spec");
    match admission.object.body {
        _ if admission.is_status() => {}
        ObjectBody::Slice(slice) => check_attribute_and_capacity_names(cx, &spec_at, slice.spec()),
        _ => site::visit_claim_or_template_spec(admission.object, |at, spec| {
            check_constraint_attribute_names(cx, at, spec)
        }),
    }
}

fn check_attribute_and_capacity_names(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, spec: SliceSpec<'_>) {
    let devices_at = at.field("devices");
    for (index, device) in spec.devices().iter().enumerate() {
        let device_at = devices_at.index(index);
        let body_at = Device::body_path(&device_at, cx.version);
        let body = device.body(cx.version);
        let (attributes_at, capacity_at) = (body_at.field("attributes"), body_at.field("capacity"));
        for (name, _) in body.attributes().iter() {
            report_name_with_several_slashes(cx, &attributes_at.key(name), name);
        }
        for (name, _) in body.capacity().iter() {
            report_name_with_several_slashes(cx, &capacity_at.key(name), name);
        }
    }
}

fn check_constraint_attribute_names(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, spec: ClaimSpec<'_>) {
    let devices_at = at.field("devices");
    let constraints_at = devices_at.field("constraints");
    for (index, constraint) in spec.devices().constraints().iter().enumerate() {
        let constraint_at = constraints_at.index(index);
        if let Some(name) = constraint.match_attribute() {
            report_name_with_several_slashes(cx, &constraint_at.field("matchAttribute"), name);
        }
        if let Some(name) = constraint.distinct_attribute() {
            report_name_with_several_slashes(cx, &constraint_at.field("distinctAttribute"), name);
        }
    }
}

fn report_name_with_several_slashes(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, name: &str) {
    if !has_at_most_one_slash(name) {
        cx.report(UNCHECKED_ATTRIBUTE_NAME, at).invalid(name, DETAIL).help(HELP);
    }
}
