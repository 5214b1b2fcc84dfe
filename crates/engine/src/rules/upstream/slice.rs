//! ResourceSlice: driver, pool, nodes, and the lists of devices and counters. One device is in `device`.

use super::counters::{self, CounterSetIndex};
use super::device::{self, DeviceContext};
use super::lists::{self, at_most_message};
use super::{attributes, hub, naming, node_selector, partition, skip_operations, taint};
use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::{
    DEVICES_WITH_SHARED_COUNTERS, DUPLICATE_DEVICE, SLICE_DRIVER, SLICE_IMMUTABLE_FIELD,
    SLICE_NODE_SELECTION, SLICE_POOL, TOO_MANY_DEVICES,
};
use tollgate_api::profile::CounterRules;
use tollgate_api::view::{Device, ObjectBody, SliceSpec, SliceTaint, Strings, View as _};
use tollgate_api::{equal, fields};
use tollgate_document::doc::Value;
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

// upstream v1.36 ValidateResourceSlice, ValidateResourceSliceUpdate
pub fn check_slice(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    let ObjectBody::Slice(slice) = admission.object.body else { return };
    let old = admission
        .old_object
        .and_then(|old| if let ObjectBody::Slice(old) = old.body { Some(old.spec()) } else { None });
    check_spec(cx, &Path::ROOT.field("spec"), slice.spec(), old);
}

// upstream v1.36 validateResourceSliceSpec
fn check_spec(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, spec: SliceSpec<'_>, old: Option<SliceSpec<'_>>) {
    naming::check_driver_name(cx, SLICE_DRIVER, &at.field("driver"), spec.driver());
    check_pool(cx, &at.field("pool"), spec);
    if let Some(old) = old {
        check_immutable_fields(cx, at, spec, old);
    }
    check_slice_nodes(cx, at, spec);
    if cx.profile.devices_exclude_counters && spec.shared_counters().is_given() && spec.devices().is_given() {
        cx.report(DEVICES_WITH_SHARED_COUNTERS, at)
            .invalid("", "only one of `sharedCounters` or `devices` is allowed");
    }
    check_devices(cx, &at.field("devices"), spec, old);
    if cx.profile.counters == CounterRules::Totals {
        counters::check_counter_totals(cx, at, spec);
    }
    let stored = old.map(SliceSpec::shared_counters);
    counters::check_counter_sets(cx, &at.field("sharedCounters"), spec.shared_counters(), stored);
    partition::check_partition_type_attribute(cx, at, spec, old);
    let stored = old.map_or(Strings(Value::absent()), SliceSpec::skip_node_operations);
    skip_operations::check_skip_node_operations(
        cx,
        &at.field("skipNodeOperations"),
        spec.skip_node_operations(),
        stored,
    );
    check_slice_taints(cx, &at.field("taints"), spec, old);
}

// upstream v1.36 validateResourcePool
fn check_pool(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, spec: SliceSpec<'_>) {
    let pool = spec.pool();
    naming::check_pool_name(cx, SLICE_POOL, &at.field("name"), pool.name());
    if pool.resource_slice_count() <= 0 {
        let (at, count) = (at.field("resourceSliceCount"), BadValue::Int(pool.resource_slice_count()));
        cx.report(SLICE_POOL, &at).invalid(count, "must be greater than zero");
    }
    if pool.generation() < 0 {
        let (at, generation) = (at.field("generation"), BadValue::Int(pool.generation()));
        cx.report(SLICE_POOL, &at).invalid(generation, "must be greater than or equal to zero");
    }
}

/// Reports changes of the driver, the pool name or the node name, which are immutable.
fn check_immutable_fields(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    new: SliceSpec<'_>,
    old: SliceSpec<'_>,
) {
    let detail = "field is immutable";
    if new.pool().name() != old.pool().name() {
        let (pool_at, value) = (at.field("pool"), BadValue::str(new.pool().name()));
        cx.report(SLICE_IMMUTABLE_FIELD, &pool_at.field("name")).invalid(value, detail);
    }
    if new.driver() != old.driver() {
        let value = BadValue::str(new.driver());
        cx.report(SLICE_IMMUTABLE_FIELD, &at.field("driver")).invalid(value, detail);
    }
    let node = new.node_name_if_set_in_version(cx.version);
    if node != old.node_name_if_set_in_version(cx.version) {
        // A pointer: printed as JSON since 1.34, as what it points to before.
        let value = match node {
            Some(node) => lists::named_go_string(cx, node),
            None => lists::nil_value(cx),
        };
        cx.report(SLICE_IMMUTABLE_FIELD, &at.field("nodeName")).invalid(value, detail);
    }
}

/// Checks that the slice specifies its nodes in exactly one way.
fn check_slice_nodes(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, spec: SliceSpec<'_>) {
    let (name, all) =
        (spec.node_name_if_set_in_version(cx.version), spec.all_nodes_if_set_in_version(cx.version));
    match name {
        Some("") => {
            cx.report(SLICE_NODE_SELECTION, &at.field("nodeName"))
                .invalid("", "must be either unset or set to a non-empty string");
        }
        Some(name) => naming::check_dns_subdomain(cx, SLICE_NODE_SELECTION, &at.field("nodeName"), name),
        None => {}
    }
    if let Some(selector) = spec.node_selector() {
        let selector_at = at.field("nodeSelector");
        node_selector::check_node_selector(cx, SLICE_NODE_SELECTION, &selector_at, selector);
        if selector.terms().len() != 1 {
            let (at, terms) = (
                selector_at.field("nodeSelectorTerms"),
                hub::go_printed_value(cx, selector.terms().value(), &hub::PRINTED_NODE_TERMS_TYPE),
            );
            cx.report(SLICE_NODE_SELECTION, &at).invalid(terms, "must have exactly one node selector term");
        }
    }
    if all == Some(false) {
        naming::report_explicit_false(cx, SLICE_NODE_SELECTION, &at.field("allNodes"));
    }
    if spec.per_device_node_selection() == Some(false) {
        naming::report_explicit_false(cx, SLICE_NODE_SELECTION, &at.field("perDeviceNodeSelection"));
    }
    let set = [
        ("`nodeName`", name.is_some_and(|name| !name.is_empty())),
        ("`nodeSelector`", spec.node_selector().is_some()),
        ("`allNodes`", all == Some(true)),
        ("`perDeviceNodeSelection`", spec.per_device_node_selection() == Some(true)),
    ];
    let details = [
        "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required",
        "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple \
         fields are set",
    ];
    naming::check_exactly_one_field_set(cx, SLICE_NODE_SELECTION, at, &set, details);
}

/// Checks the list of devices: its length, duplicate names, and each device.
fn check_devices(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    spec: SliceSpec<'_>,
    old: Option<SliceSpec<'_>>,
) {
    let version = cx.version;
    let devices = spec.devices();
    let limits = cx.profile.limits;
    let limit_by = |device: Device<'_>| {
        let body = device.body(version);
        if !body.consumes_counters().is_empty()
            || cx.profile.list_attributes && attributes::has_list_values(body.attributes())
        {
            limits.advanced_devices
        } else if !body.taints().is_empty() {
            limits.tainted_devices
        } else {
            limits.devices
        }
    };
    // Most slices are short enough for any limit.
    let is_short = devices.len() <= limits.advanced_devices.min(limits.tainted_devices);
    let lowest = || devices.iter().map(limit_by).min().unwrap_or(limits.devices);
    let limit = if is_short { limits.devices } else { lowest() };
    let over = devices.len() > limit;
    if over {
        let (count, detail) = (BadValue::count(devices.len()), at_most_message(limit));
        cx.report(TOO_MANY_DEVICES, at).too_many(count, detail);
    }
    // Declarative validation knows no limit and no device by name: it skips all of them or none.
    let ty = fields::slice_spec(version);
    let unchanged = old.is_some_and(|old| equal::same_member(spec.json(), old.json(), ty, "devices"));
    let judge = |cx: &mut RuleContext<'_, '_>| {
        // Newer releases keep devices and counters in different slices.
        let shared = (cx.profile.counters == CounterRules::Totals)
            .then(|| CounterSetIndex::new(spec.shared_counters()));
        let per_device = spec.per_device_node_selection() == Some(true);
        // Only releases that stop at the limit ask for the stored device, so that the search stays short.
        let stored = old.filter(|_| cx.is_hand_written && cx.profile.skips_unchanged_taints);
        for (index, device) in spec.devices().iter().enumerate() {
            let old = stored.and_then(|old| old.devices().iter().find(|old| old.name() == device.name()));
            let around = DeviceContext { per_device, shared: shared.as_ref(), old };
            device::check_device(cx, &at.index(index), device, &around);
        }
        lists::for_each_duplicate(spec.devices().iter().map(Device::name), |index, name| {
            let device_at = at.index(index);
            let name_at = device_at.field("name");
            let at = if cx.profile.duplicates_at_key_field { &name_at } else { &device_at };
            cx.report(DUPLICATE_DEVICE, at).duplicate(name, "");
        });
    };
    cx.check_with_declarative_if_changed(unchanged, |cx| {
        if over && cx.profile.stops_at_list_limit { cx.check_declaratively_only(judge) } else { judge(cx) }
    });
}

/// Checks the taints of a slice (draft r2) like those of devices. The draft's own limits are documented
/// rules.
fn check_slice_taints(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    spec: SliceSpec<'_>,
    old: Option<SliceSpec<'_>>,
) {
    let ty = fields::slice_spec(cx.version);
    let kept = old.is_some_and(|old| equal::same_member(spec.json(), old.json(), ty, "taints"));
    if !cx.profile.slice_taints || kept {
        return;
    }
    // A valid list has no more than the draft allows: neither are more compared, nor with more.
    let searched = cx.profile.documented.slice_taints.unwrap_or_default();
    let stored = old.filter(|_| cx.profile.keeps_stored_effects).map(SliceSpec::taints);
    for (index, entry) in spec.taints().iter().enumerate() {
        let mut stored =
            stored.filter(|_| index < searched).into_iter().flat_map(|stored| stored.iter().take(searched));
        let is_stored = |old: &SliceTaint<'_>| {
            old.device() == entry.device()
                && taint::is_same_key_and_effect(
                    old.nested_or_inlined_taint(),
                    entry.nested_or_inlined_taint(),
                )
        };
        let stored = stored.find(is_stored).map(SliceTaint::nested_or_inlined_taint);
        taint::check_taint(
            cx,
            &entry.nested_or_inlined_taint_path(&at.index(index)),
            entry.nested_or_inlined_taint(),
            stored,
        );
    }
}
