//! Fully qualified attribute names, `domain/id`: constraints, derived attributes, partition types.
//!
//! It has no rules of its own: the caller passes the rule to report. Names with three or more parts are accepted
//! unchecked, in every release.

use super::naming::{MAX_ATTRIBUTE_ID_BYTES, MAX_DRIVER_BYTES};
use super::{lists, qualified};
use crate::rules::RuleContext;
use tollgate_document::field::Path;
use tollgate_document::finding::RuleId;
use tollgate_formats::names::{self, LengthUnitWord};

const NO_DOMAIN_DETAIL: &str = "a fully qualified name must be a domain and a name separated by a slash";

/// Checks a fully qualified name and reports in the words of the validator that checks this part.
pub fn check_fully_qualified_name(cx: &mut RuleContext<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    // Whatever hand-written validation refuses, declarative validation refuses too: it does not lower the domain.
    if cx.is_declarative {
        check_declarative(cx, rule, at, name)
    } else {
        check_hand_written(cx, rule, at, name)
    }
}

// upstream v1.36 validateFullyQualifiedName
fn check_hand_written(cx: &mut RuleContext<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    qualified::check_qualified_name(cx, rule, at, name);
    if name.contains('/') {
        return;
    }
    let value = lists::named_go_string(cx, name);
    if !cx.profile.old_qualified_names {
        cx.report(rule, at).invalid(value, NO_DOMAIN_DETAIL);
    } else if !name.is_empty() {
        cx.report(rule, at).invalid(value, "must include a domain");
    }
}

// upstream v1.37 validate.ResourceFullyQualifiedName
pub fn check_declarative(cx: &mut RuleContext<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    let mut parts = name.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(id), None, None) => {
            check_identifier(cx, rule, at, id);
            cx.report(rule, at).declarative_only().invalid(id, NO_DOMAIN_DETAIL);
        }
        (Some(domain), Some(id), None) => {
            if domain.is_empty() {
                cx.report(rule, at).declarative_only().invalid("", "prefix must not be empty");
            } else {
                check_domain(cx, rule, at, domain);
            }
            if id.is_empty() {
                cx.report(rule, at).declarative_only().invalid("", "name must not be empty");
            } else {
                check_identifier(cx, rule, at, id);
            }
        }
        _ => {}
    }
}

fn check_domain(cx: &mut RuleContext<'_, '_>, rule: RuleId, at: &Path<'_>, domain: &str) {
    if domain.len() > MAX_DRIVER_BYTES {
        cx.report(rule, at).declarative_only().too_long(MAX_DRIVER_BYTES);
    }
    names::check_dns_subdomain(domain, LengthUnitWord::Bytes, &mut |detail| {
        cx.report(rule, at).declarative_only().invalid(domain, format_args!("prefix: {detail}"));
    });
}

fn check_identifier(cx: &mut RuleContext<'_, '_>, rule: RuleId, at: &Path<'_>, id: &str) {
    if id.len() > MAX_ATTRIBUTE_ID_BYTES {
        cx.report(rule, at).declarative_only().too_long(MAX_ATTRIBUTE_ID_BYTES);
    }
    if !names::is_c_identifier(id) {
        cx.report(rule, at).declarative_only().invalid(id, names::INVALID_C_IDENTIFIER);
    }
}
