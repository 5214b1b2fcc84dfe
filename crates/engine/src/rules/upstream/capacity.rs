//! Capacities of a device: their names, and that only shared ones have a request policy.

use super::naming::{MAX_ATTRIBUTE_NAME_BYTES, path_of_bad_key};
use super::{qualified, request_policy};
use crate::rules::RuleContext;
use crate::rules::table::{CAPACITY_NAME, CAPACITY_REQUEST_POLICY};
use tollgate_api::view::DeviceBody;
use tollgate_document::field::Path;
use tollgate_formats::quantity::Quantity;

/// Checks the names of a device's capacities at `at`, and their request policies, which only devices with multiple
/// allocations may have.
// upstream v1.36 validateSingleAllocatableDeviceCapacity, validateMultiAllocatableDeviceCapacity
pub fn check_capacities(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, body: DeviceBody<'_>) {
    for (name, capacity) in body.capacity().iter() {
        let name_at = path_of_bad_key(cx.profile, at, name, MAX_ATTRIBUTE_NAME_BYTES);
        cx.with_findings_on_key(|cx| qualified::check_qualified_name(cx, CAPACITY_NAME, &name_at, name));
        let Some(policy) = capacity.request_policy() else { continue };
        let capacity_at = at.key_shortened_by_server(name, MAX_ATTRIBUTE_NAME_BYTES);
        let policy_at = capacity_at.field("requestPolicy");
        if body.allow_multiple_allocations() == Some(true) {
            let amount = capacity.quantity().unwrap_or(Quantity::ZERO);
            request_policy::check_request_policy(cx, &policy_at, policy, &amount);
        } else {
            cx.report(CAPACITY_REQUEST_POLICY, &policy_at).forbidden("allowMultipleAllocations must be true");
        }
    }
}
