//! Status of ResourceClaim and DeviceTaintRule: what drivers, the scheduler and controllers write.
//!
//! A status request keeps the stored spec and most of the stored metadata, so nothing of either is looked at here
//! but the names of the requests. No rules of its own: each part has its file.

use super::constraints::RequestNames;
use super::{allocation, conditions, device_status, reserved_for};
use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use tollgate_api::view::{Claim, ObjectBody, TaintRule, View as _};
use tollgate_document::doc::Value;
use tollgate_document::field::Path;

/// Checks the new status of a ResourceClaim or DeviceTaintRule. Does nothing unless the request writes the status
/// subresource.
pub fn check_status(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    if !admission.is_status() {
        return;
    }
    match admission.object.body {
        ObjectBody::Claim(claim) => check_claim_status(cx, admission, claim),
        ObjectBody::Rule(rule) => check_rule_status(cx, rule),
        _ => {}
    }
}

// upstream v1.36 ValidateResourceClaimStatusUpdate
fn check_claim_status(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>, claim: Claim<'_>) {
    let old = match admission.old_object.map(|old| old.body) {
        Some(ObjectBody::Claim(old)) => old,
        _ => Claim::of(Value::absent()),
    };
    let is_deleted = old.metadata().deletion_timestamp().is_some();
    let (new, old, names) =
        (claim.status(), old.status(), RequestNames::new(old.spec().devices().requests()));
    let at = Path::ROOT.field("status");
    let (reserved_at, allocation_at) = (at.field("reservedFor"), at.field("allocation"));
    reserved_for::check_reserved_for(cx, &reserved_at, new, old);
    device_status::check_device_statuses_kept_by_server(cx, &at.field("devices"), new, old);
    reserved_for::check_may_be_reserved(cx, &reserved_at, new, old, is_deleted);
    allocation::check_allocation_new_or_unchanged(cx, &allocation_at, new, old, &names);
    allocation::check_new_admin_access_in_allocation(cx, &allocation_at, new, old);
}

// upstream v1.36 ValidateDeviceTaintRuleStatusUpdate
fn check_rule_status(cx: &mut RuleContext<'_, '_>, rule: TaintRule<'_>) {
    let status_at = Path::ROOT.field("status");
    let (at, list) = (status_at.field("conditions"), rule.status().conditions());
    conditions::check_conditions(cx, &at, list);
    conditions::check_condition_count(cx, &at, list);
}
