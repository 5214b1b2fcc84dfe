//! Status of a classic claim: its phase and what follows from it, its users, and the data that scheduler and driver
//! exchange.
//!
//! Pending → Allocated (the driver has allocated) → Reallocate (the scheduler wants it elsewhere) → Pending (the
//! driver has freed it). A claim without a phase is pending.

use crate::admission::DecodedAttributes;
use crate::rules::table::{
    CLAIM_PHASE, CLAIM_PHASE_TRANSITION, CLAIM_RESERVED_FOR, CLAIM_SCHEDULING, CLAIM_USER_LIMIT,
    CLASSIC_DRIVER,
};
use crate::rules::upstream::lists::at_most_message;
use crate::rules::upstream::{naming, node_selector, owner_references};
use crate::rules::{RuleContext, duplicates};
use tollgate_api::view::{
    ClassicClaim, ClassicClaimStatus, ObjectBody, OwnerReference, SchedulingStatus, Strings,
};
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};

const CLAIM_PHASES: [&str; 3] = ["Allocated", "Pending", "Reallocate"];
/// The value of `userLimit` for any number of users.
const UNLIMITED_USERS: i64 = -1;

pub(super) fn check_classic_status(
    cx: &mut RuleContext<'_, '_>,
    admission: &DecodedAttributes<'_>,
    claim: ClassicClaim<'_>,
) {
    let (status, at) = (claim.status(), Path::ROOT.field("status"));
    check_status_driver(cx, admission, status, &at.field("driverName"));
    check_phase(cx, admission, claim, &at.field("phase"));
    check_user_limit_and_reserved_for(cx, &at, status);
    if let Some(scheduling) = status.scheduling() {
        check_scheduling(cx, &at.field("scheduling"), scheduling);
    }
}

/// Returns the phase of a claim; `Pending` if it has none.
fn phase_or_pending(status: ClassicClaimStatus<'_>) -> &str {
    Some(status.phase()).filter(|phase| !phase.is_empty()).unwrap_or("Pending")
}

/// True if a driver holds a resource for the claim.
fn has_allocated_resource(status: ClassicClaimStatus<'_>) -> bool {
    matches!(status.phase(), "Allocated" | "Reallocate")
}

/// Checks that the driver name, "a copy of the driver name from the ResourceClass at the time when allocation started",
/// is set from then on and does not change until the resource is freed.
fn check_status_driver(
    cx: &mut RuleContext<'_, '_>,
    admission: &DecodedAttributes<'_>,
    status: ClassicClaimStatus<'_>,
    at: &Path<'_>,
) {
    let name = status.driver_name();
    if name.is_empty() {
        if has_allocated_resource(status) {
            let detail =
                format_args!("the claim is {}, and only this driver can free its resource", status.phase());
            cx.report(CLASSIC_DRIVER, at).required(detail);
        }
        return;
    }
    naming::check_driver_name(cx, CLASSIC_DRIVER, at, name);
    let Some(ObjectBody::ClassicClaim(stored)) = admission.old_object.map(|old| old.body) else { return };
    let stored = stored.status();
    if has_allocated_resource(stored)
        && has_allocated_resource(status)
        && !stored.driver_name().is_empty()
        && stored.driver_name() != name
    {
        cx.report(CLASSIC_DRIVER, at)
            .invalid(name, "field is immutable while the claim is allocated")
            .help(format_args!("{} allocated the resource and must free it", stored.driver_name()));
    }
}

fn check_phase(
    cx: &mut RuleContext<'_, '_>,
    admission: &DecodedAttributes<'_>,
    claim: ClassicClaim<'_>,
    at: &Path<'_>,
) {
    let new = phase_or_pending(claim.status());
    if !CLAIM_PHASES.contains(&new) {
        cx.report(CLAIM_PHASE, at).not_supported_with_suggestion(
            BadValue::json_quoted_string(new),
            new,
            &CLAIM_PHASES,
        );
        return;
    }
    let Some(ObjectBody::ClassicClaim(stored)) = admission.old_object.map(|old| old.body) else { return };
    let old = phase_or_pending(stored.status());
    let next = match old {
        "Pending" => "Allocated",
        "Allocated" => "Reallocate",
        _ => "Pending",
    };
    if old != new && new != next && CLAIM_PHASES.contains(&old) {
        cx.report(CLAIM_PHASE_TRANSITION, at)
            .invalid(BadValue::json_quoted_string(new), format_args!("the phase after {old} must be {next}"));
        return;
    }
    if old == new || new != "Reallocate" {
        return;
    }
    // "Each ResourceClaim with delayed allocation is checked": allocated, and not currently in use.
    if stored.spec().allocation_mode() == "Immediate" {
        let detail = "must not be Reallocate for a claim with immediate allocation, because the scheduler does not select a node";
        cx.report(CLAIM_PHASE_TRANSITION, at).forbidden(detail);
    }
    if !stored.status().reserved_for().is_empty() {
        cx.report(CLAIM_PHASE_TRANSITION, at)
            .forbidden("must not be Reallocate while the claim is in use (`reservedFor` is not empty)");
    }
}

fn check_user_limit_and_reserved_for(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    status: ClassicClaimStatus<'_>,
) {
    let given = status.user_limit();
    if given < UNLIMITED_USERS {
        cx.report(CLAIM_USER_LIMIT, &at.field("userLimit"))
            .invalid(BadValue::Int(given), "must be a number of users, or -1 for no limit");
    }
    let (users, users_at) = (status.reserved_for(), at.field("reservedFor"));
    owner_references::check_owner_references(cx, &users_at, users);
    // "The default is 1", and Go reads an absent number as 0.
    let limit = usize::try_from(if given == 0 { 1 } else { given });
    let mut count = users.len();
    if limit.is_ok_and(|limit| count > limit) {
        // Each user counts only once.
        duplicates::for_each_repeat(users.iter(), user_identity, |_, _| count -= 1);
    }
    if let Ok(limit) = limit
        && count > limit
    {
        cx.report(CLAIM_RESERVED_FOR, &users_at)
            .too_many(BadValue::Excess { count, limit }, at_most_message(limit))
            .help("`userLimit` limits how many consumers can use the resource at the same time (default: 1)");
    }
    if !users.is_empty()
        && CLAIM_PHASES.contains(&phase_or_pending(status))
        && phase_or_pending(status) != "Allocated"
    {
        let detail = "may not be specified unless `phase` is Allocated";
        let value = BadValue::Excess { count: users.len(), limit: 0 };
        cx.report(CLAIM_RESERVED_FOR, &users_at).error_of_type(ErrorType::Forbidden, value, detail);
    }
}

/// Returns what identifies a user: the UID or, if there is none, name, kind and apiVersion.
fn user_identity(user: OwnerReference<'_>) -> [&[u8]; 4] {
    match user.uid() {
        "" => ["", user.name(), user.kind(), user.api_version()].map(str::as_bytes),
        uid => [uid, "", "", ""].map(str::as_bytes),
    }
}

fn check_scheduling(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, scheduling: SchedulingStatus<'_>) {
    let (scheduler_at, driver_at) = (at.field("scheduler"), at.field("driver"));
    let (scheduler, driver) = (scheduling.scheduler(), scheduling.driver());
    if !scheduler.selected_node().is_empty() {
        naming::check_dns_subdomain(
            cx,
            CLAIM_SCHEDULING,
            &scheduler_at.field("selectedNode"),
            scheduler.selected_node(),
        );
    }
    check_node_names(cx, &scheduler_at.field("potentialNodes"), scheduler.potential_nodes());
    check_node_names(cx, &driver_at.field("unsuitableNodes"), driver.unsuitable_nodes());
    if let Some(selector) = driver.available_on_nodes() {
        node_selector::check_node_selector(
            cx,
            CLAIM_SCHEDULING,
            &driver_at.field("availableOnNodes"),
            selector,
        );
    }
}

fn check_node_names(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, names: Strings<'_>) {
    for (index, name) in names.iter().enumerate() {
        naming::check_dns_subdomain(cx, CLAIM_SCHEDULING, &at.index(index), name);
    }
}
