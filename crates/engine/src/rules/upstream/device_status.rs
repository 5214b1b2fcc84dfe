//! `status.devices` of a claim: what drivers report about the devices that are allocated.
//!
//! Before it validates, the server silently removes the entries of devices that this very update deallocates; the
//! entries after them move up, and the paths in its messages contain the new indexes.

use std::collections::HashSet;

use super::{allocation, conditions, config, lists, naming, network_data};
use crate::rules::RuleContext;
use crate::rules::table::{
    DEVICE_STATUS_DATA, DEVICE_STATUS_NAME, DEVICE_STATUS_UNALLOCATED, DUPLICATE_DEVICE_STATUS,
};
use tollgate_api::equal;
use tollgate_api::fields::DEVICE_STATUS;
use tollgate_api::profile::DeviceIdFormatInErrors;
use tollgate_api::view::{AllocationResult, ClaimStatus, DeviceStatus, List, View as _};
use tollgate_document::field::{Path, Segment};
use tollgate_document::finding::BadValue;
use tollgate_formats::gofmt;

/// The device that an entry or a result is about: driver, pool, device and share id, case-sensitive.
type DeviceIdentity<'d> = (&'d str, &'d str, &'d str, &'d str);

/// Returns the device that an entry is about; an absent share id counts as empty.
fn device_identity(device: DeviceStatus<'_>) -> DeviceIdentity<'_> {
    (device.driver(), device.pool(), device.device(), device.share_id().unwrap_or_default())
}

/// Returns the device that an entry is about, and whether it has a share id.
fn identity_and_has_share_id(device: DeviceStatus<'_>) -> (DeviceIdentity<'_>, bool) {
    (device_identity(device), device.share_id().is_some())
}

/// Returns a function that tells whether the device of an entry is allocated.
fn is_allocated_predicate<'d>(status: ClaimStatus<'d>) -> impl Fn(DeviceStatus<'d>) -> bool {
    let results = status.allocation().map(|allocation| allocation.devices().results());
    let identity = |result: AllocationResult<'d>| -> DeviceIdentity<'d> {
        (result.driver(), result.pool(), result.device(), result.share_id().unwrap_or_default())
    };
    let allocated = lists::ItemsByKey::from_items(results.unwrap_or(List::absent()).iter(), identity);
    move |device| allocated.get(&device_identity(device)).is_some()
}

/// Checks the device status entries that remain after the server has removed those of devices that this
/// update deallocates.
// upstream v1.36 dropDeallocatedStatusDevices, validateResourceClaimStatusUpdate
pub fn check_device_statuses_kept_by_server(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    new: ClaimStatus<'_>,
    old: ClaimStatus<'_>,
) {
    let (allocated, before) = (is_allocated_predicate(new), is_allocated_predicate(old));
    let is_left = |device| allocated(device) || !before(device);
    let left = || new.devices().iter().enumerate().filter(|(_, device)| is_left(*device));
    // Entries are told apart by their share id, so the stored entry of the same device has the same one.
    let stored = lists::ItemsByKey::from_items(old.devices().iter(), identity_and_has_share_id);
    for (position, (index, device)) in left().enumerate() {
        let at = at.with_segment(Segment::Moved { from: index, to: position });
        let is_stored = stored.get(&identity_and_has_share_id(device)).is_some();
        check_device_status(cx, &at, device, allocated(device), is_stored);
    }
    let unchanged = left().count() == old.devices().len()
        && left()
            .zip(old.devices().iter())
            .all(|((_, device), stored)| equal::same_struct(device.json(), stored.json(), &DEVICE_STATUS));
    cx.check_with_declarative_if_changed(unchanged, |cx| {
        let entry_at = |index, position| at.with_segment(Segment::Moved { from: index, to: position });
        // Declarative validation tells an empty share id from none; hand-written validation does not.
        let mut told = HashSet::new();
        if cx.is_declarative {
            lists::for_each_duplicate_by(
                left().enumerate(),
                |(_, (_, device))| (device_identity(device), device.share_id()),
                |(position, (index, device))| {
                    told.insert(position);
                    let value = BadValue::Json(cx.struct_json(device.json(), &DEVICE_STATUS).into());
                    cx.report(DUPLICATE_DEVICE_STATUS, &entry_at(index, position))
                        .declarative_only()
                        .duplicate(value, "");
                },
            );
        }
        lists::for_each_duplicate_by(
            left().enumerate(),
            |(_, (_, device))| device_identity(device),
            |(position, (index, device))| {
                if !told.contains(&position) {
                    report_repeated_status(cx, &entry_at(index, position), device);
                }
            },
        );
    });
}

// upstream v1.36 validateDeviceStatus
fn check_device_status(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    device: DeviceStatus<'_>,
    is_allocated: bool,
    is_stored: bool,
) {
    naming::check_driver_name(cx, DEVICE_STATUS_NAME, &at.field("driver"), device.driver());
    naming::check_pool_name(cx, DEVICE_STATUS_NAME, &at.field("pool"), device.pool());
    naming::check_dns_label(cx, DEVICE_STATUS_NAME, &at.field("device"), device.device());
    if let Some(share) = device.share_id() {
        let unchanged = cx.is_declarative && is_stored;
        cx.check_with_declarative_if_changed(unchanged, |cx| {
            allocation::check_share_id(cx, DEVICE_STATUS_NAME, &at.field("shareID"), share)
        });
    }
    if !is_allocated {
        let value = printed_identity(cx, device);
        cx.report(DEVICE_STATUS_UNALLOCATED, at).invalid(value, "must be an allocated device in the claim");
    }
    let conditions_at = at.field("conditions");
    conditions::check_condition_count(cx, &conditions_at, device.conditions());
    conditions::check_conditions(cx, &conditions_at, device.conditions());
    if !device.data().is_null_or_absent() {
        config::check_raw_json(cx, DEVICE_STATUS_DATA, &at.field("data"), device.data(), false);
    }
    if let Some(data) = device.network_data() {
        network_data::check_network_data(cx, &at.field("networkData"), data);
    }
}

/// Reports an entry for a device that has one already.
fn report_repeated_status(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, device: DeviceStatus<'_>) {
    // `deviceID` is no field: only the server's path has it.
    let key_at = at.with_segment(Segment::HubField("deviceID"));
    let at = if cx.profile.duplicates_at_key_field { &key_at } else { at };
    let value = printed_identity(cx, device);
    cx.report(DUPLICATE_DEVICE_STATUS, at).duplicate(value, "");
}

/// Returns the identity of a device as the release's Go code prints it.
fn printed_identity(cx: &RuleContext<'_, '_>, device: DeviceStatus<'_>) -> BadValue {
    let (driver, pool, name, share) = device_identity(device);
    let text = match cx.profile.device_id_format {
        DeviceIdFormatInErrors::Slashes => [driver, pool, name].join("/"),
        DeviceIdFormatInErrors::EmptyObjects => {
            r#"{"Driver":{},"Pool":{},"Device":{},"ShareID":{}}"#.to_owned()
        }
        DeviceIdFormatInErrors::Strings => {
            let [driver, pool, name, share] = [driver, pool, name, share].map(gofmt::json_string);
            format!(r#"{{"Driver":{driver},"Pool":{pool},"Device":{name},"ShareID":{share}}}"#)
        }
    };
    BadValue::Json(text.into())
}
