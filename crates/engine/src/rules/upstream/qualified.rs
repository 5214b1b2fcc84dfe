//! Names of attributes and capacities: `id`, or `domain/id`.

use super::naming::{self, DRIVER_LIMIT, ID_LIMIT, too_long};
use crate::rules::Cx;
use tollgate_document::field::Path;
use tollgate_document::finding::{ErrorType, RuleId};
use tollgate_formats::names::{self, Unit};

/// Checks a qualified name. Names with three or more parts are accepted unchecked, as in every release.
// upstream v1.36 validateQualifiedName
pub fn check_qualified_name(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    if is_plain(name) {
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
                naming::check_driver(cx, rule, at, domain);
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
/// for valid names, for which the caller then calls [`check_qualified_name`].
pub fn is_plain(name: &str) -> bool {
    let (domain, id) = names::split_prefix(name);
    domain.is_none_or(|domain| domain.len() <= DRIVER_LIMIT && names::is_subdomain(domain))
        && id.len() <= ID_LIMIT
        && names::is_c_identifier(id)
}

/// Reports an empty domain or id.
fn report_empty_part(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>, detail: &'static str) {
    if cx.profile.old_qualified_names {
        cx.report(rule, at).required(detail);
    } else {
        cx.report(rule, at).invalid("", detail);
    }
}

/// Checks the id of a qualified name: a C identifier of at most 32 bytes.
// upstream v1.36 validateCIdentifier
pub fn check_identifier(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>, id: &str) {
    if id.len() > ID_LIMIT {
        cx.report(rule, at).too_long(too_long(ID_LIMIT));
    }
    if !names::is_c_identifier(id) {
        let kind =
            if cx.profile.c_identifier_is_type_error { ErrorType::TypeInvalid } else { ErrorType::Invalid };
        cx.report(rule, at).of_kind(kind, id, names::C_IDENTIFIER);
    }
}

/// True if hand-written validation accepts the name as one with a domain, which it reads in lower case.
pub fn is_full_name(name: &str) -> bool {
    let mut parts = name.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(domain), Some(id), None) => {
            let mut fits = domain.len() <= DRIVER_LIMIT && id.len() <= ID_LIMIT && names::is_c_identifier(id);
            names::dns_subdomain(&names::lower(domain), Unit::Characters, &mut |_| fits = false);
            fits
        }
        (_, second, _) => second.is_some(),
    }
}
