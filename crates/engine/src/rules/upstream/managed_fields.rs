//! Managed fields, for clients that write them themselves.
//!
//! The server ignores all entries if it cannot decode one of them, drops entries that own no fields, and validates the
//! rest. So an unknown operation or fields type is never reported.

use crate::rules::RuleContext;
use crate::rules::table::MANAGED_FIELDS;
use tollgate_api::profile::ApiKind;
use tollgate_api::view::{List, ManagedFields};
use tollgate_document::doc::{Value, ValueKind};
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;
use tollgate_formats::gofmt;

/// Maximum number of bytes of the name of a manager.
const MAX_MANAGER_BYTES: usize = 128;
/// Maximum number of bytes of the name of a subresource.
const MAX_SUBRESOURCE_BYTES: usize = 256;

/// Checks the entries that the server keeps. Reports nothing if one entry cannot be decoded, because the server then
/// ignores all of them.
// upstream v1.36 ValidateManagedFields, after decodeLiveOrNew
pub fn check_managed_fields_kept_by_server(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    entries: List<'_, ManagedFields<'_>>,
    kind: ApiKind,
) {
    // Whether the fields can be decoded matters only if there is a fault to report, and reading them costs the most.
    if entries.iter().all(has_valid_manager_and_subresource) || !entries.iter().all(can_be_decoded) {
        return;
    }
    // The server keeps an entry that owns something and is of the API group of the object.
    let is_kept = |(_, entry): &(usize, ManagedFields<'_>)| {
        let group = entry.api_version().split_once('/').map_or("", |(group, _)| group);
        group == kind.group() && !entry.fields_v1().is_empty()
    };
    for (index, entry) in entries.iter().enumerate().filter(is_kept) {
        let at = at.index(index);
        check_manager(cx, &at.field("manager"), entry.manager());
        if entry.subresource().len() > MAX_SUBRESOURCE_BYTES {
            cx.report(MANAGED_FIELDS, &at.field("subresource")).too_long(MAX_SUBRESOURCE_BYTES);
        }
    }
}

/// True if there is nothing to report about an entry.
fn has_valid_manager_and_subresource(entry: ManagedFields<'_>) -> bool {
    let manager = entry.manager();
    manager.len() <= MAX_MANAGER_BYTES
        && manager.chars().all(gofmt::is_printable)
        && entry.subresource().len() <= MAX_SUBRESOURCE_BYTES
}

/// True if the server can decode an entry. If it cannot decode one, it uses the entries of the stored object instead.
// upstream v1.36 DecodeManagedFields
fn can_be_decoded(entry: ManagedFields<'_>) -> bool {
    matches!(entry.operation(), "Apply" | "Update")
        && !entry.api_version().is_empty()
        && entry.fields_type() == "FieldsV1"
        && is_valid_field_set(entry.fields_v1())
}

/// True if the value is a valid set of field paths: nested objects whose keys are `.` or begin with `f:`, `k:`, `v:` or
/// `i:`.
fn is_valid_field_set(fields: Value<'_>) -> bool {
    fields.is_null_or_absent()
        || fields.kind() == ValueKind::Object
            && fields.members().all(|(key, inner)| {
                let key = key.text();
                (key == "." || ["f:", "k:", "v:", "i:"].iter().any(|prefix| key.starts_with(prefix)))
                    && is_valid_field_set(inner)
            })
}

// upstream v1.36 ValidateFieldManager
fn check_manager(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, manager: &str) {
    if manager.len() > MAX_MANAGER_BYTES {
        cx.report(MANAGED_FIELDS, at).too_long(MAX_MANAGER_BYTES);
    }
    for (position, letter) in manager.char_indices().filter(|(_, letter)| !gofmt::is_printable(*letter)) {
        let detail = format!("invalid character U+{:04X} (at position {position})", u32::from(letter));
        // One finding for each letter: not with all of it each time.
        let value = BadValue::str(gofmt::byte_prefix(manager, cx.max_value_bytes().saturating_add(8)));
        cx.report(MANAGED_FIELDS, at).invalid(value, detail);
    }
}
