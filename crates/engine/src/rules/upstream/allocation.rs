//! `status.allocation` of a claim: which devices it got. Set once, then only cleared.
//!
//! Only a new allocation is judged: what is stored was judged by the release that stored it.

use super::constraints::{self, RequestNames};
use super::naming::{self, MAX_POOL_BYTES};
use super::{binding, claim, config, hub, lists, node_selector, skip_operations, toleration};
use crate::admission::AdminAccess;
use crate::rules::RuleContext;
use crate::rules::table::{
    ADMIN_ACCESS, ALLOCATION_CHANGED, ALLOCATION_CONFIG_SOURCE, ALLOCATION_NODE_SELECTOR, RESULT_DEVICE,
    RESULT_SHARE_ID, TOO_MANY_RESULTS,
};
use tollgate_api::equal;
use tollgate_api::fields::{ALLOCATION, CLAIM_STATUS};
use tollgate_api::schema::FieldType;
use tollgate_api::view::{Allocation, AllocationResult, ClaimStatus, Strings, View as _};
use tollgate_document::doc::Value;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, RuleId};
use tollgate_formats::gofmt;
use tollgate_formats::names::{self, LengthUnitWord};

/// Maximum number of results of one allocation.
const RESULTS_LIMIT: usize = 32;
/// Maximum number of configurations from the claim and the class together.
const CONFIGS_LIMIT: usize = 64;
/// The schema type of an allocation, for printing one that was changed.
static ALLOCATION_TYPE: FieldType = FieldType::Struct(&ALLOCATION);
const CONFIG_SOURCES: &[&str] = &["FromClaim", "FromClass"];

/// Checks an allocation that is new, or that a stored one is unchanged. Nothing if the new status has none.
// upstream v1.36 validateResourceClaimStatusUpdate; v1.37 validate.UpdatePointer with NoModify
pub fn check_allocation_new_or_unchanged(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    new: ClaimStatus<'_>,
    old: ClaimStatus<'_>,
    names: &RequestNames<'_>,
) {
    let Some(allocation) = new.allocation() else { return };
    if old.allocation().is_none() {
        return check_new_allocation(cx, at, allocation, names);
    }
    if equal::same_member(new.json(), old.json(), &CLAIM_STATUS, "allocation") {
        return;
    }
    if cx.is_declarative {
        cx.report(ALLOCATION_CHANGED, at)
            .declarative_only()
            .invalid(BadValue::Null, "field cannot be modified once set");
    } else {
        let value = hub::go_printed_value(cx, allocation.json(), &ALLOCATION_TYPE);
        cx.report(ALLOCATION_CHANGED, at).invalid(value, "field is immutable");
    }
}

/// Checks a new allocation: its results, configurations and node selector.
// upstream v1.36 validateAllocationResult, validateDeviceAllocationResult, validateDeviceAllocationConfiguration,
// validateAllocationConfigSource
fn check_new_allocation(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    allocation: Allocation<'_>,
    names: &RequestNames<'_>,
) {
    let devices_at = at.field("devices");
    let (results_at, config_at) = (devices_at.field("results"), devices_at.field("config"));
    let (results, configs) = (allocation.devices().results(), allocation.devices().config());
    if lists::report_too_many_and_should_continue(
        cx,
        TOO_MANY_RESULTS,
        &results_at,
        results.len(),
        RESULTS_LIMIT,
    ) {
        for (index, result) in results.iter().enumerate() {
            check_allocated_device(cx, &results_at.index(index), result, names);
        }
    }
    if lists::report_too_many_and_should_continue(
        cx,
        TOO_MANY_RESULTS,
        &config_at,
        configs.len(),
        CONFIGS_LIMIT,
    ) {
        for (index, config) in configs.iter().enumerate() {
            let at = config_at.index(index);
            let (source, source_at) = (config.source(), at.field("source"));
            if source.is_empty() {
                cx.report(ALLOCATION_CONFIG_SOURCE, &source_at).covered_by_declarative().required("");
            } else if !CONFIG_SOURCES.contains(&source) {
                let value = lists::named_go_string(cx, source);
                cx.report(ALLOCATION_CONFIG_SOURCE, &source_at)
                    .covered_by_declarative()
                    .not_supported_with_suggestion(value, source, CONFIG_SOURCES);
            }
            constraints::check_references(cx, &at.field("requests"), config.requests(), names);
            config::check_opaque(cx, &at, config.opaque(), false);
        }
    }
    if let Some(selector) = allocation.node_selector() {
        node_selector::check_node_selector(cx, ALLOCATION_NODE_SELECTOR, &at.field("nodeSelector"), selector);
    }
}

/// Checks one allocated device.
// upstream v1.36 validateDeviceRequestAllocationResult
fn check_allocated_device(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    result: AllocationResult<'_>,
    names: &RequestNames<'_>,
) {
    constraints::check_reference(cx, &at.field("request"), result.request(), names);
    config::check_driver_name_with_declarative(cx, RESULT_DEVICE, &at.field("driver"), result.driver());
    check_pool_name(cx, &at.field("pool"), result.pool());
    naming::check_dns_label(cx, RESULT_DEVICE, &at.field("device"), result.device());
    binding::check_binding_conditions(
        cx,
        at,
        result.binding_conditions(),
        result.binding_failure_conditions(),
    );
    if cx.profile.judges_result_tolerations {
        toleration::check_tolerations(cx, &at.field("tolerations"), result.tolerations());
    }
    if let Some(share) = result.share_id() {
        check_share_id(cx, RESULT_SHARE_ID, &at.field("shareID"), share);
    }
    let nothing_stored = Strings(Value::absent());
    skip_operations::check_skip_node_operations(
        cx,
        &at.field("skipNodeOperations"),
        result.skip_node_operations(),
        nothing_stored,
    );
}

/// Checks the pool name of a result. Declarative validation, which covers it, reports each bad segment of the name.
// upstream v1.37 validate.ResourcePoolName
fn check_pool_name(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, pool: &str) {
    if !cx.is_declarative {
        return naming::check_pool_name(cx, RESULT_DEVICE, at, pool);
    }
    if pool.is_empty() {
        cx.report(RESULT_DEVICE, at).declarative_only().required("");
        return;
    }
    if pool.len() > MAX_POOL_BYTES {
        cx.report(RESULT_DEVICE, at).declarative_only().too_long(MAX_POOL_BYTES);
    }
    for (number, segment) in pool.split('/').enumerate() {
        if segment.is_empty() {
            let detail = format!("segment {number}: must not be empty");
            let value = BadValue::str(gofmt::byte_prefix(pool, cx.max_value_bytes().saturating_add(8)));
            cx.report(RESULT_DEVICE, at).declarative_only().invalid(value, detail);
            continue;
        }
        names::check_dns_subdomain(segment, LengthUnitWord::Bytes, &mut |detail| {
            cx.report(RESULT_DEVICE, at)
                .declarative_only()
                .invalid(segment, format_args!("segment {number}: {detail}"));
        });
    }
}

/// Checks the share id of a result or of a device's status.
// upstream v1.36 validateUID; v1.37 validate.UUID
pub fn check_share_id(cx: &mut RuleContext<'_, '_>, rule: RuleId, at: &Path<'_>, share: &str) {
    if cx.is_declarative {
        if !names::is_lowercase_uuid(share) {
            cx.report(rule, at).declarative_only().invalid(share, names::NOT_LOWERCASE_UUID);
        }
    } else if let Some(detail) = names::uid_problem(share) {
        cx.report(rule, at).invalid(share, detail);
    }
}

/// Reports admin access in an allocation if the namespace does not allow it, unless the stored allocation has it
/// already.
// upstream v1.36 AuthorizedForAdminStatus
pub fn check_new_admin_access_in_allocation(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    new: ClaimStatus<'_>,
    old: ClaimStatus<'_>,
) {
    if cx.context.admin_access != AdminAccess::Refused || first_admin_result(old).is_some() {
        return;
    }
    if let Some(index) = first_admin_result(new) {
        let (rule, detail) = (ADMIN_ACCESS, claim::admin_access_detail(cx));
        cx.report(rule, &at.field("devices").field("results").index(index).field("adminAccess"))
            .forbidden(detail);
    }
}

/// Returns the index of the first result with admin access.
fn first_admin_result(status: ClaimStatus<'_>) -> Option<usize> {
    let results = status.allocation()?.devices().results();
    results.iter().position(|result| result.admin_access() == Some(true))
}
