//! Constraints of a claim, and references to its requests, which configuration and allocation results have too.

use super::{fqn, lists, naming};
use crate::rules::RuleContext;
use crate::rules::table::{CONSTRAINT_ATTRIBUTE, REQUEST_REFERENCE, TOO_MANY_CONSTRAINTS};
use tollgate_api::view::{Constraint, List, Request, Strings, SubRequest};
use tollgate_document::field::Path;

/// Maximum number of constraints of one claim.
const CONSTRAINTS_LIMIT: usize = 32;
/// Maximum number of references of one constraint or configuration.
const MAX_REQUEST_REFERENCES: usize = 32;
const UNKNOWN_REQUEST_DETAIL: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

/// The requests of a claim, to look up whether one has the name of a reference, and which sub-requests it has.
// upstream v1.36 gatherRequestNames, requestNames.Has
pub type RequestNames<'d> = lists::NestedNames<'d, Request<'d>>;

impl<'d> lists::NamedGroup<'d> for Request<'d> {
    fn group_name(self) -> &'d str {
        self.name()
    }

    fn inner_names(self) -> impl Iterator<Item = &'d str> {
        self.first_available().iter().map(SubRequest::name)
    }
}

/// Checks the constraints of a claim.
// upstream v1.36 validateDeviceClaim, validateDeviceConstraint
pub fn check_constraints(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    list: List<'_, Constraint<'_>>,
    names: &RequestNames<'_>,
) {
    if !lists::report_too_many_and_should_continue(
        cx,
        TOO_MANY_CONSTRAINTS,
        at,
        list.len(),
        CONSTRAINTS_LIMIT,
    ) {
        return;
    }
    for (index, constraint) in list.iter().enumerate() {
        let at = at.index(index);
        check_references(cx, &at.field("requests"), constraint.requests(), names);
        let (same, distinct) = (constraint.match_attribute(), constraint.distinct_attribute());
        if let Some(name) = same {
            fqn::check_fully_qualified_name(cx, CONSTRAINT_ATTRIBUTE, &at.field("matchAttribute"), name);
        }
        match distinct {
            // Where both are given, hand-written validation looks at the first only.
            Some(name) if same.is_none() || cx.is_declarative => {
                fqn::check_fully_qualified_name(
                    cx,
                    CONSTRAINT_ATTRIBUTE,
                    &at.field("distinctAttribute"),
                    name,
                );
            }
            None if same.is_none() && cx.profile.consumable_capacity => {
                let detail = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple \
                              fields are set";
                cx.report(CONSTRAINT_ATTRIBUTE, &at).required(detail);
            }
            None if same.is_none() => {
                cx.report(CONSTRAINT_ATTRIBUTE, &at.field("matchAttribute")).required("");
            }
            _ => {}
        }
    }
}

/// Checks the list of requests that a constraint or a configuration is for.
pub fn check_references(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    list: Strings<'_>,
    names: &RequestNames<'_>,
) {
    if !lists::report_too_many_and_should_continue(
        cx,
        REQUEST_REFERENCE,
        at,
        list.len(),
        MAX_REQUEST_REFERENCES,
    ) {
        return;
    }
    for (index, reference) in list.iter().enumerate() {
        check_reference(cx, &at.index(index), reference, names);
    }
    lists::for_each_duplicate(list.iter(), |index, reference| {
        cx.report(REQUEST_REFERENCE, &at.index(index)).covered_by_declarative().duplicate(reference, "");
    });
}

/// Checks a reference to a request or one of its alternatives: `request` or `request/subrequest`.
// upstream v1.36 validateRequestNameRef
pub fn check_reference(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    reference: &str,
    names: &RequestNames<'_>,
) {
    let (request, sub) = match reference.split_once('/') {
        None => (reference, None),
        Some((request, sub)) => (request, Some(sub)),
    };
    let has_more = sub.is_some_and(|sub| sub.contains('/'));
    if !has_more {
        naming::check_dns_label(cx, REQUEST_REFERENCE, at, request);
        if let Some(sub) = sub {
            naming::check_dns_label(cx, REQUEST_REFERENCE, at, sub);
        }
    }
    if has_more || !names.has(request, sub) {
        cx.report(REQUEST_REFERENCE, at).invalid(reference, UNKNOWN_REQUEST_DETAIL);
    }
}
