//! metav1.Condition, in the status of devices and of DeviceTaintRules.

use super::lists;
use crate::rules::RuleContext;
use crate::rules::table::{STATUS_CONDITION, TOO_MANY_CONDITIONS};
use tollgate_api::view::{Condition, List};
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;
use tollgate_formats::gotime::Timestamp;
use tollgate_formats::names;

/// Maximum number of conditions of one device or rule.
const MAX_CONDITIONS: usize = 8;
const MAX_REASON_BYTES: usize = 1024;
const MAX_MESSAGE_BYTES: usize = 32 * 1024;
const STATUSES: &[&str] = &["False", "True", "Unknown"];

/// Reports too many conditions. The caller checks each condition even then.
pub fn check_condition_count(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, list: List<'_, Condition<'_>>) {
    if list.len() > MAX_CONDITIONS {
        cx.report(TOO_MANY_CONDITIONS, at)
            .too_many(BadValue::count(list.len()), lists::at_most_message(MAX_CONDITIONS));
    }
}

/// Checks that condition types are unique, and each condition.
// upstream v1.36 ValidateConditions
pub fn check_conditions(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, list: List<'_, Condition<'_>>) {
    lists::for_each_duplicate(list.iter().map(Condition::kind), |index, kind| {
        let at = at.index(index);
        let value = BadValue::str(kind);
        if cx.profile.keys_conditions {
            cx.report(STATUS_CONDITION, &at).duplicate(value, "");
        } else {
            cx.report(STATUS_CONDITION, &at.field("type")).duplicate(value, "");
        }
    });
    for (index, condition) in list.iter().enumerate() {
        check_condition(cx, &at.index(index), condition);
    }
}

// upstream v1.36 ValidateCondition
fn check_condition(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, condition: Condition<'_>) {
    check_type(cx, &at.field("type"), condition.kind());
    check_status(cx, &at.field("status"), condition.status());
    if condition.observed_generation() < 0 {
        let (at, value) = (at.field("observedGeneration"), BadValue::Int(condition.observed_generation()));
        cx.report(STATUS_CONDITION, &at).invalid(value, "must be greater than or equal to zero");
    }
    if condition.last_transition_time().is_none_or(Timestamp::is_go_zero_time) {
        cx.report(STATUS_CONDITION, &at.field("lastTransitionTime")).required("");
    }
    check_reason(cx, &at.field("reason"), condition.reason());
    if condition.message().len() > MAX_MESSAGE_BYTES {
        cx.report(STATUS_CONDITION, &at.field("message")).too_long(MAX_MESSAGE_BYTES);
    }
}

fn check_type(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, kind: &str) {
    if kind.is_empty() && cx.profile.keys_conditions {
        cx.report(STATUS_CONDITION, at).required("is required");
        return;
    }
    names::check_label_key(kind, cx.profile.label_unit, cx.profile.label_key_word, &mut |detail| {
        cx.report(STATUS_CONDITION, at).invalid(kind, detail);
    });
}

fn check_status(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, status: &str) {
    if status.is_empty() && cx.profile.keys_conditions {
        cx.report(STATUS_CONDITION, at).required("");
    } else if !STATUSES.contains(&status) {
        let value = lists::named_go_string(cx, status);
        cx.report(STATUS_CONDITION, at).not_supported_with_suggestion(value, status, STATUSES);
    }
}

fn check_reason(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, reason: &str) {
    if reason.is_empty() {
        cx.report(STATUS_CONDITION, at).required("");
        return;
    }
    if !names::is_condition_reason(reason) {
        cx.report(STATUS_CONDITION, at).invalid(reason, names::INVALID_CONDITION_REASON);
    }
    if reason.len() > MAX_REASON_BYTES {
        cx.report(STATUS_CONDITION, at).too_long(MAX_REASON_BYTES);
    }
}
