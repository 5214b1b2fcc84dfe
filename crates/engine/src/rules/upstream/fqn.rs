//! Fully qualified attribute names, `domain/id`: constraints, derived attributes, partition types.
//!
//! It has no rules of its own: the caller passes the rule to report. Names with three or more parts are accepted
//! unchecked, in every release.

use super::naming::{DRIVER_LIMIT, ID_LIMIT, too_long};
use super::{lists, qualified};
use crate::rules::Cx;
use tollgate_document::field::Path;
use tollgate_document::finding::RuleId;
use tollgate_formats::names::{self, Unit};

const NO_DOMAIN: &str = "a fully qualified name must be a domain and a name separated by a slash";

/// Checks a fully qualified name and reports in the words of the validator that checks this part.
pub fn check_fully_qualified_name(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    // Whatever hand-written validation refuses, declarative validation refuses too: it does not lower the domain.
    if cx.is_declarative {
        check_declarative(cx, rule, at, name)
    } else {
        check_hand_written(cx, rule, at, name)
    }
}

// upstream v1.36 validateFullyQualifiedName
fn check_hand_written(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    qualified::check_qualified_name(cx, rule, at, name);
    if name.contains('/') {
        return;
    }
    let value = lists::named_string(cx, name);
    if !cx.profile.old_qualified_names {
        cx.report(rule, at).invalid(value, NO_DOMAIN);
    } else if !name.is_empty() {
        cx.report(rule, at).invalid(value, "must include a domain");
    }
}

// upstream v1.37 validate.ResourceFullyQualifiedName
pub fn check_declarative(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    let mut parts = name.split('/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(id), None, None) => {
            check_identifier(cx, rule, at, id);
            cx.report(rule, at).declarative_native().invalid(id, NO_DOMAIN);
        }
        (Some(domain), Some(id), None) => {
            if domain.is_empty() {
                cx.report(rule, at).declarative_native().invalid("", "prefix must not be empty");
            } else {
                check_prefix(cx, rule, at, domain);
            }
            if id.is_empty() {
                cx.report(rule, at).declarative_native().invalid("", "name must not be empty");
            } else {
                check_identifier(cx, rule, at, id);
            }
        }
        _ => {}
    }
}

fn check_prefix(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>, domain: &str) {
    if domain.len() > DRIVER_LIMIT {
        cx.report(rule, at).declarative_native().too_long(too_long(DRIVER_LIMIT));
    }
    names::dns_subdomain(domain, Unit::Bytes, &mut |detail| {
        cx.report(rule, at).declarative_native().invalid(domain, format_args!("prefix: {detail}"));
    });
}

fn check_identifier(cx: &mut Cx<'_, '_>, rule: RuleId, at: &Path<'_>, id: &str) {
    if id.len() > ID_LIMIT {
        cx.report(rule, at).declarative_native().too_long(too_long(ID_LIMIT));
    }
    if !names::is_c_identifier(id) {
        cx.report(rule, at).declarative_native().invalid(id, names::C_IDENTIFIER);
    }
}
