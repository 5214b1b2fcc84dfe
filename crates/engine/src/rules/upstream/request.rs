//! Requests of a claim: exact ones and lists of alternatives.

use super::derived::{DerivedAttributeChecker, RequestRef};
use super::taint::supported_values;
use super::{lists, naming, selectors, toleration};
use crate::rules::RuleContext;
use crate::rules::table::{
    DUPLICATE_REQUEST, REQUEST_ALLOCATION_MODE, REQUEST_COUNT, REQUEST_DEVICE_CLASS, REQUEST_NAME,
    REQUEST_SHAPE, TOO_MANY_REQUESTS,
};
use tollgate_api::equal::same_member;
use tollgate_api::fields;
use tollgate_api::view::{List, Request, RequestBody, SubRequest, View};
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;
use tollgate_formats::names::{self, LengthUnitWord};

/// Maximum number of requests of one claim.
const REQUESTS_LIMIT: usize = 32;
/// Maximum number of alternatives of one request.
const ALTERNATIVES_LIMIT: usize = 8;

/// Checks the requests of a claim. `old` are the stored requests, if declarative validation compares with them.
// upstream v1.36 validateDeviceClaim
pub fn check_requests(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    new: List<'_, Request<'_>>,
    old: Option<List<'_, Request<'_>>>,
    attributes: &mut DerivedAttributeChecker<'_>,
) {
    if !lists::report_too_many_and_should_continue(cx, TOO_MANY_REQUESTS, at, new.len(), REQUESTS_LIMIT) {
        return;
    }
    let stored = lists::ItemsByKey::from_items(old.unwrap_or(List::absent()).iter(), Request::name);
    for (index, request) in new.iter().enumerate() {
        check_request(cx, &at.index(index), request, stored.get(&request.name()), attributes);
    }
    let ty = fields::device_request_struct(cx.version);
    lists::check_unique_key(cx, DUPLICATE_REQUEST, at, new.value(), ty, "name", BadValue::str);
}

// upstream v1.36 validateDeviceRequest
fn check_request(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    new: Request<'_>,
    old: Option<Request<'_>>,
    attributes: &mut DerivedAttributeChecker<'_>,
) {
    naming::check_dns_label(cx, REQUEST_NAME, &at.field("name"), new.name());
    let exactly = new.exactly(cx.version);
    let is_list = !new.first_available().is_empty();
    if exactly.is_none() && !is_list {
        let help = if cx.version.is_v1alpha3_or_v1beta1() {
            "add the fields of the request, such as `deviceClassName`, next to `name`"
        } else {
            "move the fields of the request into `exactly`"
        };
        cx.report(REQUEST_SHAPE, at)
            .required("exactly one of `exactly` or `firstAvailable` is required")
            .help(help);
    }
    if exactly.is_some() && is_list {
        let detail = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
        let value = lists::nil_value(cx);
        cx.report(REQUEST_SHAPE, at).invalid(value, detail);
        if cx.profile.stops_at_ambiguous_request {
            cx.check_declaratively_only(|cx| check_exact_and_alternatives(cx, at, new, old, attributes));
            return;
        }
    }
    check_exact_and_alternatives(cx, at, new, old, attributes);
}

/// Checks the exact request and the alternatives of a request, as far as present.
fn check_exact_and_alternatives(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    new: Request<'_>,
    old: Option<Request<'_>>,
    attributes: &mut DerivedAttributeChecker<'_>,
) {
    if let Some(exactly) = new.exactly(cx.version) {
        let stored = old.and_then(|old| old.exactly(cx.version));
        let at = Request::exactly_path(at, cx.version);
        let class_at = at.field("deviceClassName");
        if exactly.device_class_name().is_empty() {
            cx.report(REQUEST_DEVICE_CLASS, &class_at)
                .required("")
                .help("set `deviceClassName` to the name of a DeviceClass");
        } else {
            naming::check_dns_subdomain(cx, REQUEST_DEVICE_CLASS, &class_at, exactly.device_class_name());
        }
        check_request_body(
            cx,
            &at,
            exactly,
            stored,
            RequestRef { request: new.name(), sub: None },
            attributes,
        );
    }
    let ty = fields::device_request_struct(cx.version);
    let unchanged = old.is_some_and(|old| same_member(new.json(), old.json(), ty, "firstAvailable"));
    cx.check_with_declarative_if_changed(unchanged, |cx| {
        check_alternatives(cx, &at.field("firstAvailable"), new, old, attributes)
    });
}

// upstream v1.36 validateDeviceSubRequest
fn check_alternatives(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    new: Request<'_>,
    old: Option<Request<'_>>,
    attributes: &mut DerivedAttributeChecker<'_>,
) {
    let (list, stored) = (new.first_available(), old.map(Request::first_available));
    if !lists::report_too_many_and_should_continue(cx, TOO_MANY_REQUESTS, at, list.len(), ALTERNATIVES_LIMIT)
    {
        return;
    }
    let stored = lists::ItemsByKey::from_items(stored.unwrap_or(List::absent()).iter(), SubRequest::name);
    for (index, sub) in list.iter().enumerate() {
        let at = at.index(index);
        naming::check_dns_label(cx, REQUEST_NAME, &at.field("name"), sub.name());
        let (body, stored) = (sub.body(), stored.get(&sub.name()).map(SubRequest::body));
        cx.check_with_declarative_if_changed(is_field_unchanged(body, stored, "deviceClassName"), |cx| {
            let (at, class) = (at.field("deviceClassName"), body.device_class_name());
            if class.is_empty() {
                cx.report(REQUEST_DEVICE_CLASS, &at)
                    .covered_by_declarative()
                    .required("")
                    .help("set `deviceClassName` to the name of a DeviceClass");
                return;
            }
            let unit = if cx.is_declarative { LengthUnitWord::Bytes } else { LengthUnitWord::Characters };
            names::check_dns_subdomain(class, unit, &mut |detail| {
                cx.report(REQUEST_DEVICE_CLASS, &at).covered_by_declarative().invalid(class, detail);
            });
        });
        let owner = RequestRef { request: new.name(), sub: Some(sub.name()) };
        check_request_body(cx, &at, body, stored, owner, attributes);
    }
    let ty = &fields::SUB_REQUEST;
    lists::check_unique_key(cx, DUPLICATE_REQUEST, at, list.value(), ty, "name", BadValue::str);
}

/// Checks the fields that an exact request and an alternative have in common.
// upstream v1.36 validateExactDeviceRequest
fn check_request_body(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    new: RequestBody<'_>,
    old: Option<RequestBody<'_>>,
    owner: RequestRef<'_>,
    attributes: &mut DerivedAttributeChecker<'_>,
) {
    cx.check_with_declarative_if_changed(is_field_unchanged(new, old, "selectors"), |cx| {
        selectors::check_selectors(cx, &at.field("selectors"), new.selectors(), false);
    });
    cx.check_with_declarative_if_changed(is_field_unchanged(new, old, "derivedAttributes"), |cx| {
        attributes.check_derived_and_add_cost(
            cx,
            &at.field("derivedAttributes"),
            new.derived_attributes(),
            owner,
        );
    });
    cx.check_with_declarative_if_changed(is_field_unchanged(new, old, "allocationMode"), |cx| {
        check_allocation_mode(cx, at, new)
    });
    cx.check_with_declarative_if_changed(is_field_unchanged(new, old, "tolerations"), |cx| {
        toleration::check_tolerations(cx, &at.field("tolerations"), new.tolerations());
    });
}

// upstream v1.36 validateDeviceAllocationMode
fn check_allocation_mode(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, body: RequestBody<'_>) {
    let count = body.count();
    match body.allocation_mode() {
        "All" if count != 0 => {
            cx.report(REQUEST_COUNT, &at.field("count"))
                .invalid(BadValue::Int(count), "must not be specified when allocationMode is 'All'")
                .help("remove `count`, or set `allocationMode` to `ExactCount`");
        }
        "ExactCount" if count <= 0 => {
            cx.report(REQUEST_COUNT, &at.field("count"))
                .invalid(BadValue::Int(count), "must be greater than zero")
                .help("set `count` to 1 or more");
        }
        "All" | "ExactCount" => {}
        mode => {
            let (at, value) = (at.field("allocationMode"), lists::named_go_string(cx, mode));
            let known = ["All", "ExactCount"];
            if mode.is_empty() {
                // Optional for declarative validation, because a flat request may be a list of alternatives.
                cx.report(REQUEST_ALLOCATION_MODE, &at).not_supported(value, || supported_values(&known));
            } else {
                cx.report(REQUEST_ALLOCATION_MODE, &at)
                    .covered_by_declarative()
                    .not_supported_with_suggestion(value, mode, &known);
            }
        }
    }
}

/// True if an update left the field `json` of a request unchanged. It is compared as a field of a sub-request,
/// because its type is the same in every shape of request.
fn is_field_unchanged(new: RequestBody<'_>, old: Option<RequestBody<'_>>, json: &str) -> bool {
    old.is_some_and(|old| same_member(new.json(), old.json(), &fields::SUB_REQUEST, json))
}
