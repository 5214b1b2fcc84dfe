//! Managed fields, for clients that write them themselves.
//!
//! The server drops entries it cannot decode; what it keeps is validated.

use super::lists;
use super::naming::too_long;
use super::taint::supported;
use crate::api::view::{List, ManagedFields};
use crate::field::Path;
use crate::finding::{BadValue, ErrorType};
use crate::gofmt;
use crate::rules::{Cx, rules};

rules! { Upstream, Deny;
    /// An entry of managedFields is malformed.
    ENTRY = "managed-fields",
}

/// Longest name of a manager, in bytes.
const MANAGER_LIMIT: usize = 128;
/// Longest name of a subresource, in bytes.
const SUBRESOURCE_LIMIT: usize = 256;

// upstream v1.36 ValidateManagedFields
pub(crate) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, entries: List<'_, ManagedFields<'_>>) {
    for (index, entry) in entries.iter().enumerate() {
        check_one(cx, &at.index(index), entry);
    }
}

fn check_one(cx: &mut Cx<'_, '_>, at: &Path<'_>, entry: ManagedFields<'_>) {
    let (operation, fields_type) = (entry.operation(), entry.fields_type());
    if !matches!(operation, "Apply" | "Update") {
        let (at, value) = (at.field("operation"), lists::named(cx, operation));
        if cx.profile.lists_managed_operations {
            cx.report(ENTRY, &at, ErrorType::NotSupported, value, supported(&["Apply", "Update"]));
        } else {
            cx.report(ENTRY, &at, ErrorType::Invalid, value, "must be `Apply` or `Update`");
        }
    }
    if !matches!(fields_type, "" | "FieldsV1") {
        let (at, value) = (at.field("fieldsType"), BadValue::str(fields_type));
        cx.report(ENTRY, &at, ErrorType::Invalid, value, "must be `FieldsV1`");
    }
    check_manager(cx, &at.field("manager"), entry.manager());
    if entry.subresource().len() > SUBRESOURCE_LIMIT {
        let at = at.field("subresource");
        cx.report(ENTRY, &at, ErrorType::TooLong, BadValue::Omitted, too_long(SUBRESOURCE_LIMIT));
    }
}

// upstream v1.36 ValidateFieldManager
fn check_manager(cx: &mut Cx<'_, '_>, at: &Path<'_>, manager: &str) {
    if manager.len() > MANAGER_LIMIT {
        cx.report(ENTRY, at, ErrorType::TooLong, BadValue::Omitted, too_long(MANAGER_LIMIT));
    }
    for (position, letter) in manager.char_indices().filter(|(_, letter)| !gofmt::is_printable(*letter)) {
        let detail = format!("invalid character U+{:04X} (at position {position})", u32::from(letter));
        // One finding for each letter: not with all of it each time.
        let value = BadValue::str(gofmt::head(manager, cx.max_text_bytes().saturating_add(8)));
        cx.report(ENTRY, at, ErrorType::Invalid, value, detail);
    }
}
