//! The attribute that names the partition type of a slice's devices.

use super::{fqn, hub, qualified};
use crate::rules::RuleContext;
use crate::rules::table::PARTITION_TYPE_ATTRIBUTE;
use tollgate_api::profile::Gate;
use tollgate_api::view::{Device, SliceSpec, View as _};
use tollgate_document::field::Path;

// upstream v1.37 validatePartitionTypeAttribute
pub fn check_partition_type_attribute(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    spec: SliceSpec<'_>,
    old: Option<SliceSpec<'_>>,
) {
    let Some(name) = spec.partition_type_attribute() else { return };
    let name_at = at.field("partitionTypeAttribute");
    let unchanged = old.is_some_and(|old| old.partition_type_attribute() == Some(name));
    cx.check_with_declarative_if_changed(unchanged, |cx| {
        if cx.profile.gates.on.has(Gate::DRAPartitionableDevicesType) {
            fqn::check_declarative(cx, PARTITION_TYPE_ATTRIBUTE, &name_at, name);
        } else {
            // A stored one stays, and may not become another one.
            cx.report(PARTITION_TYPE_ATTRIBUTE, &name_at).declarative_only().forbidden("");
        }
    });
    let version = cx.version;
    let consumes = |device: &Device<'_>| !device.body(version).consumes_counters().is_empty();
    if !spec.devices().iter().any(|device| consumes(&device)) {
        cx.report(PARTITION_TYPE_ATTRIBUTE, &name_at)
            .invalid(name, "may only be set on a slice which declares devices that consume counters");
        return;
    }
    if !qualified::is_name_with_domain(name) {
        return;
    }
    // An attribute without a domain is the driver's own.
    let own = name.split_once('/').filter(|(domain, _)| *domain == spec.driver()).map(|(_, id)| id);
    let devices_at = at.field("devices");
    for (index, device) in spec.devices().iter().enumerate().filter(|(_, device)| consumes(device)) {
        let device_at = devices_at.index(index);
        let body_at = Device::body_path(&device_at, version);
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
                cx.report(PARTITION_TYPE_ATTRIBUTE, &attribute_at).required(detail);
            }
            Some(attribute) if attribute.string().is_none() => {
                let detail = "must be a string value because `partitionTypeAttribute` names this attribute";
                let value = hub::go_printed_value(cx, attribute.json(), &hub::PRINTED_ATTRIBUTE_TYPE);
                let server_at = format!("spec.devices[{index}].attributes[{name}]");
                cx.report(PARTITION_TYPE_ATTRIBUTE, &attribute_at)
                    .invalid(value, detail)
                    .with_server_path(server_at);
            }
            Some(_) => {}
        }
    }
}
