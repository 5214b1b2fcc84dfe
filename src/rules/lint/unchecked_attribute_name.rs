//! Names of attributes and capacities with two slashes or more: every release lets them through unread.

use crate::api::view::{Body, ClaimSpec, Device, SliceSpec, View as _};
use crate::admission::Attributes;
use crate::field::Path;
use crate::finding::{BadValue, Kind};
use crate::rules::{Cx, rules};

rules! { Lint, Warn;
    /// More than one slash in a name.
    UNCHECKED = "unchecked-attribute-name",
}

const DETAIL: &str = "no server checks a name with more than one slash";
const HELP: &str = "write an identifier, or a domain and an identifier separated by a slash";

pub(crate) fn check(cx: &mut Cx<'_, '_>, admission: &Attributes<'_>) {
    let spec_at = Path::ROOT.field("spec");
    match admission.object.body {
        _ if admission.is_status() => {}
        Body::Slice(slice) => check_slice(cx, &spec_at, slice.spec()),
        Body::Claim(claim) => check_claim(cx, &spec_at, claim.spec()),
        Body::Template(template) => check_claim(cx, &spec_at.field("spec"), template.spec().spec()),
        _ => {}
    }
}

fn check_slice(cx: &mut Cx<'_, '_>, at: &Path<'_>, spec: SliceSpec<'_>) {
    let devices_at = at.field("devices");
    // Devices repeat each other's attributes: what a device before has too, and rightly, is not read again.
    let clean = cx.begin();
    for (index, device) in spec.devices().iter().enumerate() {
        if device.value().is_vetted() {
            continue;
        }
        let device_at = devices_at.index(index);
        let body_at = Device::body_at(&device_at, cx.version);
        let body = device.body(cx.version);
        if !cx.knows(clean, body.attributes().value()) {
            for (name, _) in body.attributes().value().members() {
                if !cx.knows(clean, name) {
                    check_name(cx, &body_at.field("attributes").key(name.text()), name.text());
                }
            }
        }
        for (name, _) in body.capacity().iter() {
            check_name(cx, &body_at.field("capacity").key(name), name);
        }
    }
}

fn check_claim(cx: &mut Cx<'_, '_>, at: &Path<'_>, spec: ClaimSpec<'_>) {
    let devices_at = at.field("devices");
    let constraints_at = devices_at.field("constraints");
    for (index, constraint) in spec.devices().constraints().iter().enumerate() {
        let constraint_at = constraints_at.index(index);
        if let Some(name) = constraint.match_attribute() {
            check_name(cx, &constraint_at.field("matchAttribute"), name);
        }
        if let Some(name) = constraint.distinct_attribute() {
            check_name(cx, &constraint_at.field("distinctAttribute"), name);
        }
    }
}

fn check_name(cx: &mut Cx<'_, '_>, at: &Path<'_>, name: &str) {
    if name.bytes().filter(|byte| *byte == b'/').count() > 1 {
        cx.report(UNCHECKED, at, Kind::Invalid, BadValue::str(name), DETAIL);
        cx.help(UNCHECKED, HELP);
    }
}
