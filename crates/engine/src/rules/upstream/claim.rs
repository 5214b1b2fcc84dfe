//! ResourceClaim and ResourceClaimTemplate: the spec as a whole, immutability, admin access.

use super::constraints::{self, RequestNames};
use super::derived::DerivedAttributeChecker;
use super::{config, hub, request};
use crate::admission::{AdminAccess, DecodedAttributes, Operation};
use crate::rules::RuleContext;
use crate::rules::table::{ADMIN_ACCESS, IMMUTABLE_CLAIM_SPEC};
use tollgate_api::equal::{is_top_level_field_equal, same_member};
use tollgate_api::fields;
use tollgate_api::profile::Version;
use tollgate_api::view::{ClaimSpec, DeviceClaim, Object, ObjectBody, Request, View};
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

/// Checks the spec of a claim or template; on an update, also that it is unchanged.
// upstream v1.36 ValidateResourceClaim, ValidateResourceClaimTemplate and their updates
pub fn check_claim(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    if admission.is_status() {
        return;
    }
    let spec_at = Path::ROOT.field("spec");
    let Some(spec) = claim_or_template_spec(admission.object) else { return };
    let is_claim = matches!(admission.object.body, ObjectBody::Claim(_));
    let at = if is_claim { spec_at } else { spec_at.field("spec") };
    if cx.operation == Operation::Create {
        check_admin_access(cx, &at, spec);
    }
    let is_checked = cx.operation == Operation::Create || !is_claim || cx.profile.rejudges_claim_spec;
    if is_checked {
        // The stored spec of a claim is not compared again.
        let stored = admission.old_object.filter(|_| !is_claim).and_then(claim_or_template_spec);
        check_spec(cx, &at, spec, stored);
    }
    let Some(old) = admission.old_object else { return };
    let is_same = is_top_level_field_equal(admission.object, old, "spec");
    if is_same
        && claim_or_template_spec(old).is_some_and(|old| same_requests_are_exact(spec, old, cx.version))
    {
        return;
    }
    // The immutability of a template is hand-written in every release, and so is that of the shape of a request.
    if is_claim && !is_same && cx.is_declarative {
        cx.report(IMMUTABLE_CLAIM_SPEC, &spec_at)
            .declarative_only()
            .invalid(BadValue::Null, "field is immutable");
    } else {
        let value = hub::go_printed_member(cx, admission.object, "spec");
        cx.report(IMMUTABLE_CLAIM_SPEC, &spec_at).invalid(value, "field is immutable");
    }
}

/// True if the same requests of both specs are exact ones. In flat versions, an empty list makes a request an exact one
/// although it counts as equal to an absent list.
// upstream v1.36 v1beta1/conversion.go hasAnyMainRequestFieldsSet
fn same_requests_are_exact(new: ClaimSpec<'_>, old: ClaimSpec<'_>, version: Version) -> bool {
    let is_exact = |request: Request<'_>| request.exactly(version).is_some();
    let (new, old) = (new.devices().requests(), old.devices().requests());
    !version.is_v1alpha3_or_v1beta1() || new.iter().map(is_exact).eq(old.iter().map(is_exact))
}

/// Returns the spec of a claim, or the one that a template gives its claims; `None` for other kinds.
fn claim_or_template_spec(object: Object<'_>) -> Option<ClaimSpec<'_>> {
    match object.body {
        ObjectBody::Claim(claim) => Some(claim.spec()),
        ObjectBody::Template(template) => Some(template.spec().spec()),
        _ => None,
    }
}

/// Checks the requests, constraints and configurations of a claim's spec.
// upstream v1.36 validateResourceClaimSpec, validateDeviceClaim
fn check_spec(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, new: ClaimSpec<'_>, old: Option<ClaimSpec<'_>>) {
    let at = at.field("devices");
    let (new, old) = (new.devices(), old.filter(|_| cx.is_declarative).map(ClaimSpec::devices));
    let version = cx.version;
    let is_same = |json| {
        old.is_some_and(|old| same_member(new.json(), old.json(), fields::device_claim(version), json))
    };
    let names = RequestNames::new(new.requests());
    let mut attributes = DerivedAttributeChecker::new(new.constraints());
    cx.check_with_declarative_if_changed(is_same("requests"), |cx| {
        let stored = old.map(DeviceClaim::requests);
        request::check_requests(cx, &at.field("requests"), new.requests(), stored, &mut attributes);
    });
    cx.check_with_declarative_if_changed(is_same("constraints"), |cx| {
        constraints::check_constraints(cx, &at.field("constraints"), new.constraints(), &names);
    });
    cx.check_with_declarative_if_changed(is_same("config"), |cx| {
        config::check_configs(cx, &at.field("config"), new.config().value(), Some(&names), false);
    });
    attributes.check_total_cost(cx, &at);
}

/// Reports the first request with admin access if the namespace does not allow it. The server prints the path of an old
/// version of claims, for templates too.
// upstream v1.36 resourceclaimspec AuthorizedForAdmin
fn check_admin_access(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, spec: ClaimSpec<'_>) {
    if cx.context.admin_access != AdminAccess::Refused {
        return;
    }
    let version = cx.version;
    let wants = |request: Request<'_>| {
        request.exactly(version).is_some_and(|exactly| exactly.admin_access() == Some(true))
    };
    if let Some(index) = spec.devices().requests().iter().position(wants) {
        let devices_at = at.field("devices");
        let requests_at = devices_at.field("requests");
        let request_at = requests_at.index(index);
        let exactly_at = Request::exactly_path(&request_at, version);
        let detail = admin_access_detail(cx);
        let server_at = format!("spec.devices.requests[{index}].adminAccess");
        cx.report(ADMIN_ACCESS, &exactly_at.field("adminAccess"))
            .forbidden(detail)
            .with_server_path(server_at);
    }
}

/// Returns the message that names the label the namespace needs for admin access.
pub fn admin_access_detail(cx: &RuleContext<'_, '_>) -> String {
    let label = cx.profile.admin_access_label;
    format!("admin access to devices requires the `{label}: true` label on the containing namespace")
}
