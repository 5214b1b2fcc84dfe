//! One device of a slice: checks its name and nodes, and calls the checks of its other parts in the API server's order.

use super::counters::{self, CounterSetIndex};
use super::taint::{self, NewAndStoredDeviceTaints};
use super::{attributes, binding, capacity, lists, naming, node_resources, node_selector};
use crate::rules::RuleContext;
use crate::rules::table::{DEVICE_NAME, DEVICE_NODE_SELECTION};
use tollgate_api::view::{Device, DeviceBody, View as _};
use tollgate_api::{equal, fields};
use tollgate_document::field::Path;

/// Properties of the slice that the check of a device depends on.
pub struct DeviceContext<'a, 'd> {
    /// True if the slice sets `perDeviceNodeSelection`.
    pub per_device: bool,
    /// The counters of the slice, in releases that check the references of devices to them.
    pub shared: Option<&'a CounterSetIndex<'d>>,
    /// The stored device of the same name, in releases that compare with it.
    pub old: Option<Device<'d>>,
}

/// Checks one device of a slice.
// upstream v1.36 validateDevice
pub fn check_device<'d>(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    device: Device<'d>,
    around: &DeviceContext<'_, 'd>,
) {
    let body = device.body(cx.version);
    let body_at = Device::body_path(at, cx.version);
    let counters_at = body_at.field("consumesCounters");
    naming::check_dns_label(cx, DEVICE_NAME, &at.field("name"), device.name());
    attributes::check_attribute_capacity_and_value_counts(cx, at, body);
    attributes::check_attributes(cx, &body_at.field("attributes"), body.attributes());
    if !(cx.profile.skips_unchanged_capacity && is_field_unchanged(cx, body, around.old, "capacity")) {
        capacity::check_capacities(cx, &body_at.field("capacity"), body);
    }
    let same_taints = is_field_unchanged(cx, body, around.old, "taints");
    let stored = around.old.filter(|_| cx.profile.keeps_stored_effects);
    let stored = stored.map(|old| old.body(cx.version).taints());
    let taints = NewAndStoredDeviceTaints { new: body.taints(), unchanged: same_taints, stored };
    taint::check_device_taints(cx, &body_at.field("taints"), taints);
    counters::check_consumed_counters(cx, &counters_at, body.consumes_counters());
    if let Some(shared) = around.shared {
        counters::check_counter_references_and_count(cx, at, &counters_at, body.consumes_counters(), shared);
    }
    check_device_nodes(cx, at, &body_at, body, around.per_device);
    binding::check_binding_conditions(
        cx,
        &body_at,
        body.binding_conditions(),
        body.binding_failure_conditions(),
    );
    node_resources::check_node_resources(cx, &body_at, body);
}

/// True if the stored device has the same value in that field.
fn is_field_unchanged(
    cx: &RuleContext<'_, '_>,
    new: DeviceBody<'_>,
    old: Option<Device<'_>>,
    field: &str,
) -> bool {
    old.is_some_and(|old| {
        let old = old.body(cx.version);
        equal::same_member(new.json(), old.json(), fields::device_body(cx.version), field)
    })
}

/// Checks on which nodes the device at `at` is; its fields are at `body_at`.
fn check_device_nodes(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    body_at: &Path<'_>,
    body: DeviceBody<'_>,
    per_device: bool,
) {
    let (name, selector, all) = (body.node_name(), body.node_selector(), body.all_nodes());
    if !per_device {
        if name.is_some() || selector.is_some() || all.is_some() {
            let detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if \
                          `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
            let value = lists::nil_value(cx);
            cx.report(DEVICE_NODE_SELECTION, at).invalid(value, detail);
        }
        return;
    }
    match name {
        Some("") => {
            cx.report(DEVICE_NODE_SELECTION, &body_at.field("nodeName")).invalid("", "must not be empty");
        }
        Some(name) => {
            naming::check_dns_subdomain(cx, DEVICE_NODE_SELECTION, &body_at.field("nodeName"), name)
        }
        None => {}
    }
    if let Some(selector) = selector {
        node_selector::check_node_selector(
            cx,
            DEVICE_NODE_SELECTION,
            &body_at.field("nodeSelector"),
            selector,
        );
    }
    if all == Some(false) {
        naming::report_explicit_false(cx, DEVICE_NODE_SELECTION, &body_at.field("allNodes"));
    }
    let set = [
        ("`nodeName`", name.is_some_and(|name| !name.is_empty())),
        ("`nodeSelector`", selector.is_some()),
        ("`allNodes`", all == Some(true)),
    ];
    let detail = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                  `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    naming::check_exactly_one_field_set(cx, DEVICE_NODE_SELECTION, at, &set, [detail, detail]);
}
