//! Owner references: complete, at most one controller, never an Event.

use crate::rules::table::OWNER_REFERENCE;
use crate::rules::{RuleContext, duplicates};
use tollgate_api::fields::OWNER_REFERENCE as OWNER_REFERENCE_FIELDS;
use tollgate_api::view::{List, OwnerReference, View as _};
use tollgate_document::field::{Path, Segment};
use tollgate_document::finding::BadValue;
use tollgate_formats::gofmt;

/// Checks the owner references, without the repeats that the server removes, and that at most one is a controller.
// upstream v1.36 ValidateOwnerReferences
pub fn check_owner_references(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    owners: List<'_, OwnerReference<'_>>,
) {
    let mut controller: Option<OwnerReference<'_>> = None;
    let repeats = repeated_indexes(owners);
    let kept = || owners.iter().enumerate().filter(|(index, _)| repeats.binary_search(index).is_err());
    for (to, (index, owner)) in kept().enumerate() {
        let own_at = at.user_only_index(index);
        let moved_at = at.with_segment(Segment::Moved { from: index, to });
        let entry_at = if cx.profile.indexes_owner_references { moved_at } else { own_at };
        check_owner_reference(cx, &entry_at, owner);
        if owner.controller() != Some(true) {
            continue;
        }
        let Some(first) = controller else {
            controller = Some(owner);
            continue;
        };
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {}/{} and {}/{}",
            gofmt::byte_prefix(first.kind(), cx.max_value_bytes()),
            gofmt::byte_prefix(first.name(), cx.max_value_bytes()),
            owner.kind(),
            owner.name()
        );
        let value = owners_json(cx, kept().map(|(_, owner)| owner));
        cx.report(OWNER_REFERENCE, &own_at).invalid(value, detail);
    }
}

// upstream v1.36 validateOwnerReference
fn check_owner_reference(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, owner: OwnerReference<'_>) {
    check_owner_version(cx, &at.field("apiVersion"), owner.api_version());
    for (field, value) in [("kind", owner.kind()), ("name", owner.name()), ("uid", owner.uid())] {
        if value.is_empty() {
            report_empty(cx, &at.field(field), "must not be empty");
        }
    }
    if owner.kind() == "Event" && matches!(owner.api_version(), "v1" | "/v1") {
        let json = cx.struct_json(owner.json(), &OWNER_REFERENCE_FIELDS);
        cx.report(OWNER_REFERENCE, at)
            .invalid(BadValue::Json(json.into()), "/v1, Kind=Event is disallowed from being an owner");
    }
}

fn check_owner_version(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, version: &str) {
    if version.is_empty() {
        return report_empty(cx, at, "version must not be empty");
    }
    // Nothing may be before the slash: `/v1` is the core group.
    let part = version.split_once('/').map_or(version, |(_, version)| version);
    if part.is_empty() || part.contains('/') {
        let detail = if cx.profile.indexes_owner_references {
            "must be <group>/<version> or <version>"
        } else {
            "version must not be empty"
        };
        cx.report(OWNER_REFERENCE, at).invalid(version, detail);
    }
}

/// Reports an empty field; `old_detail` is the message of older releases.
fn report_empty(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, old_detail: &'static str) {
    if cx.profile.indexes_owner_references {
        cx.report(OWNER_REFERENCE, at).required("must not be empty");
    } else {
        cx.report(OWNER_REFERENCE, at).invalid("", old_detail);
    }
}

/// Returns the indexes of references that repeat an earlier one, in ascending order; the server removes them before it
/// validates.
// upstream v1.36 dedupOwnerReferencesAndAddWarning
fn repeated_indexes<'d>(owners: List<'d, OwnerReference<'d>>) -> Vec<usize> {
    let flags = |owner: OwnerReference<'_>| (owner.controller(), owner.block_owner_deletion());
    let identity = |owner: OwnerReference<'d>| {
        [owner.uid(), owner.name(), owner.kind(), owner.api_version()].map(str::as_bytes)
    };
    let mut repeats = Vec::new();
    duplicates::for_each_repeat(owners.iter(), identity, |(_, first), (index, later)| {
        if flags(first) == flags(later) {
            repeats.push(index);
        }
    });
    repeats
}

/// Returns the owner references as JSON, as the server prints them.
fn owners_json<'d>(cx: &RuleContext<'_, '_>, owners: impl Iterator<Item = OwnerReference<'d>>) -> BadValue {
    let mut out = String::from("[");
    for owner in owners {
        if out.len() > cx.max_value_bytes() {
            break;
        }
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&cx.struct_json(owner.json(), &OWNER_REFERENCE_FIELDS));
    }
    out.push(']');
    BadValue::Json(out.into())
}
