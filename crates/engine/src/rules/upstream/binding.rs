//! Binding conditions, of a device and of an allocation result.

use super::{hub, lists};
use crate::rules::RuleContext;
use crate::rules::table::BINDING_CONDITIONS;
use tollgate_api::view::Strings;
use tollgate_document::field::Path;
use tollgate_formats::names;

/// Maximum number of conditions in either of the two lists.
const MAX_BINDING_CONDITIONS: usize = 4;

/// Checks the binding conditions and binding failure conditions of the device or allocation result at `at`.
// upstream v1.36 validateDeviceBindingParameters
pub fn check_binding_conditions(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    conditions: Strings<'_>,
    failures: Strings<'_>,
) {
    let (conditions_at, failures_at) = (at.field("bindingConditions"), at.field("bindingFailureConditions"));
    check_condition_count_and_names(cx, &conditions_at, conditions);
    check_condition_count_and_names(cx, &failures_at, failures);
    if !cx.is_hand_written {
        return;
    }
    check_duplicates(cx, &conditions_at, conditions);
    check_duplicates(cx, &failures_at, failures);
    let known = lists::index_names(conditions.iter());
    for (index, failure) in failures.iter().enumerate().filter(|(_, failure)| known.get(*failure).is_some()) {
        cx.report(BINDING_CONDITIONS, &failures_at.index(index))
            .invalid(failure, "bindingFailureConditions must not overlap with bindingConditions");
    }
    if conditions.is_empty() && !failures.is_empty() {
        let detail = "bindingConditions are required to use bindingFailureConditions";
        let value = hub::go_printed_value(cx, conditions.0, &hub::STRING_LIST_TYPE);
        cx.report(BINDING_CONDITIONS, &conditions_at).invalid(value, detail);
    }
    if failures.is_empty() && !conditions.is_empty() {
        let detail = "bindingFailureConditions are required to use bindingConditions";
        let value = hub::go_printed_value(cx, failures.0, &hub::STRING_LIST_TYPE);
        cx.report(BINDING_CONDITIONS, &failures_at).invalid(value, detail);
    }
}

fn check_condition_count_and_names(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, list: Strings<'_>) {
    if !lists::report_too_many_and_should_continue(
        cx,
        BINDING_CONDITIONS,
        at,
        list.len(),
        MAX_BINDING_CONDITIONS,
    ) || !cx.is_hand_written
    {
        return;
    }
    let (unit, word) = (cx.profile.label_unit, cx.profile.label_key_word);
    for (index, condition) in list.iter().enumerate() {
        names::check_label_key(condition, unit, word, &mut |detail| {
            cx.report(BINDING_CONDITIONS, &at.index(index)).invalid(condition, detail);
        });
    }
}

fn check_duplicates(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, list: Strings<'_>) {
    lists::for_each_duplicate(list.iter(), |index, condition| {
        cx.report(BINDING_CONDITIONS, &at.index(index)).duplicate(condition, "");
    });
}
