//! Owner references: complete, at most one controller, never an Event.

use crate::api::fields::OWNER_REFERENCE;
use crate::api::print;
use crate::api::view::{List, OwnerReference, View as _};
use crate::field::Path;
use crate::finding::{BadValue, ErrorType};
use crate::gofmt;
use crate::rules::{Cx, rules};

rules! { Upstream, Deny;
    /// An owner reference is incomplete, or names something that cannot own.
    OWNER = "owner-reference",
}

// upstream v1.36 ValidateOwnerReferences
pub(crate) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, owners: List<'_, OwnerReference<'_>>) {
    let mut controller: Option<OwnerReference<'_>> = None;
    for (index, owner) in owners.iter().enumerate() {
        let own_at = at.own_index(index);
        let entry_at = if cx.profile.indexes_owner_references { at.index(index) } else { own_at };
        check_one(cx, &entry_at, owner);
        if owner.controller() != Some(true) {
            continue;
        }
        let Some(first) = controller else {
            controller = Some(owner);
            continue;
        };
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {}/{} and {}/{}",
            gofmt::head(first.kind(), cx.max_text_bytes()),
            gofmt::head(first.name(), cx.max_text_bytes()),
            owner.kind(),
            owner.name()
        );
        cx.report(OWNER, &own_at, ErrorType::Invalid, list_json(cx, owners), detail);
    }
}

// upstream v1.36 validateOwnerReference
fn check_one(cx: &mut Cx<'_, '_>, at: &Path<'_>, owner: OwnerReference<'_>) {
    check_version(cx, &at.field("apiVersion"), owner.api_version());
    for (field, value) in [("kind", owner.kind()), ("name", owner.name()), ("uid", owner.uid())] {
        if value.is_empty() {
            missing(cx, &at.field(field), "must not be empty");
        }
    }
    if owner.kind() == "Event" && matches!(owner.api_version(), "v1" | "/v1") {
        let json = print::versioned(owner.json(), &OWNER_REFERENCE, cx.profile.fields, cx.max_text_bytes());
        let detail = "/v1, ErrorType=Event is disallowed from being an owner";
        cx.report(OWNER, at, ErrorType::Invalid, BadValue::Json(json.into()), detail);
    }
}

fn check_version(cx: &mut Cx<'_, '_>, at: &Path<'_>, version: &str) {
    if version.is_empty() {
        return missing(cx, at, "version must not be empty");
    }
    // Nothing may be before the slash: `/v1` is the core group.
    let part = version.split_once('/').map_or(version, |(_, version)| version);
    if part.is_empty() || part.contains('/') {
        let detail = if cx.profile.indexes_owner_references {
            "must be <group>/<version> or <version>"
        } else {
            "version must not be empty"
        };
        cx.report(OWNER, at, ErrorType::Invalid, BadValue::str(version), detail);
    }
}

fn missing(cx: &mut Cx<'_, '_>, at: &Path<'_>, old_detail: &'static str) {
    if cx.profile.indexes_owner_references {
        cx.report(OWNER, at, ErrorType::Required, BadValue::Omitted, "must not be empty");
    } else {
        cx.report(OWNER, at, ErrorType::Invalid, BadValue::str(""), old_detail);
    }
}

fn list_json(cx: &Cx<'_, '_>, owners: List<'_, OwnerReference<'_>>) -> BadValue {
    let mut out = String::from("[");
    for owner in owners.iter() {
        if out.len() > cx.max_text_bytes() {
            break;
        }
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&print::versioned(
            owner.json(),
            &OWNER_REFERENCE,
            cx.profile.fields,
            cx.max_text_bytes(),
        ));
    }
    out.push(']');
    BadValue::Json(out.into())
}
