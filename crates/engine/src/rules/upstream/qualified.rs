//! Names of attributes and capacities: `id`, or `domain/id`.

use super::naming::{self, MAX_ATTRIBUTE_ID_BYTES, MAX_DRIVER_BYTES};
use crate::rules::RuleContext;
use tollgate_document::field::Path;
use tollgate_document::finding::{ErrorType, RuleId};
use tollgate_formats::names::{self, LastValidDomainCache, LengthUnitWord};

/// Checks a qualified name. Names with three or more parts are accepted unchecked, as in every release.
// upstream v1.36 validateQualifiedName
pub fn check_qualified_name(cx: &mut RuleContext<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    if is_surely_valid(name, &mut LastValidDomainCache::default()) {
        return;
    }
    if name.is_empty() && cx.profile.old_qualified_names {
        cx.report(rule, at).required("name required");
        return;
    }
    let mut parts = name.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(id), None, None) => check_identifier(cx, rule, at, id),
        (Some(domain), Some(id), None) => {
            if domain.is_empty() {
                report_empty_part(cx, rule, at, "the domain must not be empty");
            } else {
                naming::check_driver_name(cx, rule, at, domain);
            }
            if id.is_empty() {
                report_empty_part(cx, rule, at, "the name must not be empty");
            } else {
                check_identifier(cx, rule, at, id);
            }
        }
        _ => {}
    }
}

/// A fast check: true only for names that [`check_qualified_name`] accepts in every release. It can be false
/// for valid names, for which the caller then calls [`check_qualified_name`]. Only this function may fill
/// `domains`: it remembers domains of at most [`MAX_DRIVER_BYTES`], and a remembered domain is not measured again.
pub fn is_surely_valid<'d>(name: &'d str, domains: &mut LastValidDomainCache<'d>) -> bool {
    let is_id = |id: &str| id.len() <= MAX_ATTRIBUTE_ID_BYTES && names::is_c_identifier(id);
    if domains.strip_cached_domain(name).is_some_and(is_id) {
        return true;
    }
    let (domain, id) = names::split_prefix(name);
    domain.is_none_or(|domain| domain.len() <= MAX_DRIVER_BYTES && domains.has_subdomain_shape(domain))
        && is_id(id)
}

/// Reports an empty domain or id.
fn report_empty_part(cx: &mut RuleContext<'_, '_>, rule: RuleId, at: &Path<'_>, detail: &'static str) {
    if cx.profile.old_qualified_names {
        cx.report(rule, at).required(detail);
    } else {
        cx.report(rule, at).invalid("", detail);
    }
}

/// Checks the id of a qualified name: a C identifier of at most 32 bytes.
// upstream v1.36 validateCIdentifier
pub fn check_identifier(cx: &mut RuleContext<'_, '_>, rule: RuleId, at: &Path<'_>, id: &str) {
    if id.len() > MAX_ATTRIBUTE_ID_BYTES {
        cx.report(rule, at).too_long(MAX_ATTRIBUTE_ID_BYTES);
    }
    if !names::is_c_identifier(id) {
        let kind =
            if cx.profile.c_identifier_is_type_error { ErrorType::TypeInvalid } else { ErrorType::Invalid };
        cx.report(rule, at).error_of_type(kind, id, names::INVALID_C_IDENTIFIER);
    }
}

/// True if hand-written validation accepts the name as one with a domain. It ignores the case of the domain, and
/// accepts names with three or more parts unchecked.
pub fn is_name_with_domain(name: &str) -> bool {
    let mut parts = name.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(domain), Some(id), None) => {
            let mut fits = domain.len() <= MAX_DRIVER_BYTES
                && id.len() <= MAX_ATTRIBUTE_ID_BYTES
                && names::is_c_identifier(id);
            names::check_dns_subdomain(&names::go_to_lower(domain), LengthUnitWord::Characters, &mut |_| {
                fits = false
            });
            fits
        }
        (_, second, _) => second.is_some(),
    }
}
