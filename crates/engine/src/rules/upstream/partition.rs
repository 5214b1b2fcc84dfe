//! The attribute that names the partition type of a slice's devices.

use super::{fqn, go_json, qualified};
use crate::rules::{Cx, rules};
use tollgate_api::profile::Gate;
use tollgate_api::view::{Device, SliceSpec};
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};

rules! { Upstream, Deny;
    /// The name is malformed, nothing consumes counters, or a device lacks the attribute.
    ATTRIBUTE = "partition-type-attribute",
}

// upstream v1.37 validatePartitionTypeAttribute
pub fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, spec: SliceSpec<'_>, old: Option<SliceSpec<'_>>) {
    let Some(name) = spec.partition_type_attribute() else { return };
    let name_at = at.field("partitionTypeAttribute");
    let unchanged = old.is_some_and(|old| old.partition_type_attribute() == Some(name));
    cx.part(unchanged, |cx| {
        if cx.profile.gates.on.has(Gate::DRAPartitionableDevicesType) {
            fqn::declarative(cx, ATTRIBUTE, &name_at, name);
        } else {
            // A stored one stays, and may not become another one.
            cx.report_native(ATTRIBUTE, &name_at, ErrorType::Forbidden, BadValue::Omitted, "");
        }
    });
    let version = cx.version;
    let consumes = |device: &Device<'_>| !device.body(version).consumes_counters().is_empty();
    if !spec.devices().iter().any(|device| consumes(&device)) {
        let detail = "may only be set on a slice which declares devices that consume counters";
        cx.report(ATTRIBUTE, &name_at, ErrorType::Invalid, BadValue::str(name), detail);
        return;
    }
    if !qualified::is_full_name(name) {
        return;
    }
    // An attribute without a domain is the driver's own.
    let own = name.split_once('/').filter(|(domain, _)| *domain == spec.driver()).map(|(_, id)| id);
    let devices_at = at.field("devices");
    for (index, device) in spec.devices().iter().enumerate().filter(|(_, device)| consumes(device)) {
        let device_at = devices_at.index(index);
        let body_at = Device::body_at(&device_at, version);
        let attributes_at = body_at.field("attributes");
        let attributes = device.body(version).attributes();
        // The server calls the attribute by its full name, however the device does.
        let written = own.filter(|id| attributes.get(name).is_none() && attributes.get(id).is_some());
        let written = written.unwrap_or(name);
        let attribute_at = attributes_at.key(written);
        match attributes.get(written) {
            None => {
                let detail = "device consumes counters and `partitionTypeAttribute` names this attribute, \
                              so it must be set";
                cx.report(ATTRIBUTE, &attribute_at, ErrorType::Required, BadValue::Omitted, detail);
            }
            Some(attribute) if attribute.string().is_none() => {
                let detail = "must be a string value because `partitionTypeAttribute` names this attribute";
                let value = go_json::attribute(attribute, cx.profile, cx.max_text_bytes());
                let server_at = format!("spec.devices[{index}].attributes[{name}]");
                cx.report_as(ATTRIBUTE, &attribute_at, server_at, ErrorType::Invalid, value, detail);
            }
            Some(_) => {}
        }
    }
}
