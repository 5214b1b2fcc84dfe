//! Binding conditions, of a device and of an allocation result.

use super::go_json;
use super::lists::{self, KeySet};
use crate::rules::{Cx, rules};
use tollgate_api::view::Strings;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};
use tollgate_formats::names;

rules! { Upstream, Deny;
    /// Too many, malformed, repeated, overlapping, or one list without the other.
    CONDITIONS = "binding-conditions",
}

/// Most conditions in either list.
const LIMIT: usize = 4;

/// The two lists of one device or result, which lies at `at`.
// upstream v1.36 validateDeviceBindingParameters
pub fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, conditions: Strings<'_>, failures: Strings<'_>) {
    let (conditions_at, failures_at) = (at.field("bindingConditions"), at.field("bindingFailureConditions"));
    check_items(cx, &conditions_at, conditions);
    check_items(cx, &failures_at, failures);
    if !cx.is_hand_written() {
        return;
    }
    check_duplicates(cx, &conditions_at, conditions);
    check_duplicates(cx, &failures_at, failures);
    let known = KeySet::of(conditions.iter());
    for (index, failure) in failures.iter().enumerate().filter(|(_, failure)| known.has(failure)) {
        let detail = "bindingFailureConditions must not overlap with bindingConditions";
        cx.report(CONDITIONS, &failures_at.index(index), ErrorType::Invalid, BadValue::str(failure), detail);
    }
    if conditions.is_empty() && !failures.is_empty() {
        let detail = "bindingConditions are required to use bindingFailureConditions";
        cx.report(
            CONDITIONS,
            &conditions_at,
            ErrorType::Invalid,
            go_json::strings(conditions, cx.max_text_bytes()),
            detail,
        );
    }
    if failures.is_empty() && !conditions.is_empty() {
        let detail = "bindingFailureConditions are required to use bindingConditions";
        cx.report(
            CONDITIONS,
            &failures_at,
            ErrorType::Invalid,
            go_json::strings(failures, cx.max_text_bytes()),
            detail,
        );
    }
}

fn check_items(cx: &mut Cx<'_, '_>, at: &Path<'_>, list: Strings<'_>) {
    if !lists::check_max_items(cx, CONDITIONS, at, list.len(), LIMIT) || !cx.is_hand_written() {
        return;
    }
    let (unit, word) = (cx.profile.label_unit, cx.profile.label_key_word);
    for (index, condition) in list.iter().enumerate() {
        names::label_key(condition, unit, word, &mut |detail| {
            cx.report(CONDITIONS, &at.index(index), ErrorType::Invalid, BadValue::str(condition), detail);
        });
    }
}

fn check_duplicates(cx: &mut Cx<'_, '_>, at: &Path<'_>, list: Strings<'_>) {
    lists::duplicates(list.iter(), |index, condition| {
        cx.report(CONDITIONS, &at.index(index), ErrorType::Duplicate, BadValue::str(condition), "");
    });
}
