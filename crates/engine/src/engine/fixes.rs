//! Fixes of findings: which of them are safe.

use super::KIND;
use tollgate_api::profile::ApiKind;
use tollgate_document::doc::Value;
use tollgate_document::finding::{Applicability, Edit, Finding, NewValue, is_taint_holding_field};

/// Levels of nesting of an object that are searched for taints.
const MAX_SEARCH_DEPTH: usize = 64;

/// Marks each fix as unsafe that must not be applied without an explicit request. This depends on whether the
/// object contains taints.
pub(super) fn mark_unsafe_fixes(findings: &mut [Finding], object: Value<'_>) {
    let mut has_taints = None;
    for fix in findings.iter_mut().filter_map(|finding| finding.fix.as_mut()) {
        // A kind that is to be corrected counts as what it becomes.
        let becomes = fix.edits.iter().find_map(|edit| match edit {
            Edit::Set { at, value: NewValue::Str(kind) } if at.user_json_pointer() == "/kind" => {
                Some(&**kind)
            }
            _ => None,
        });
        let is_rule = becomes.unwrap_or_else(|| object.field(KIND).str()) == ApiKind::DeviceTaintRule.name();
        if !fix
            .is_safe(is_rule || *has_taints.get_or_insert_with(|| has_taint_fields(object, MAX_SEARCH_DEPTH)))
        {
            fix.applicability = Applicability::Unsafe;
        }
    }
}

/// True if a field of the value has a name that is used for taints, or if the value is nested deeper than `depth`
/// levels, which no object of the API is.
fn has_taint_fields(value: Value<'_>, depth: usize) -> bool {
    let Some(below) = depth.checked_sub(1) else { return true };
    value.members().any(|(key, member)| is_taint_holding_field(key.text()) || has_taint_fields(member, below))
        || value.items().any(|item| has_taint_fields(item, below))
}
