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
        for (field, map) in [("attributes", body.attributes().value()), ("capacity", body.capacity().value())]
        {
            let map_at = body_at.field(field);
            for (name, _) in map.members() {
                report_name_with_several_slashes(cx, &map_at.key(name.text()), name.text());
            }
        }
    }
}

fn check_constraint_attribute_names(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, spec: ClaimSpec<'_>) {
    let devices_at = at.field("devices");
    let constraints_at = devices_at.field("constraints");
    for (index, constraint) in spec.devices().constraints().iter().enumerate() {
        let constraint_at = constraints_at.index(index);
        for (field, name) in [
            ("matchAttribute", constraint.match_attribute()),
            ("distinctAttribute", constraint.distinct_attribute()),
        ] {
            if let Some(name) = name {
                report_name_with_several_slashes(cx, &constraint_at.field(field), name);
            }
        }
    }
}

fn report_name_with_several_slashes(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, name: &str) {
    if !has_at_most_one_slash(name) {
        cx.report(UNCHECKED_ATTRIBUTE_NAME, at).invalid(name, DETAIL).help(HELP);
    }
}
