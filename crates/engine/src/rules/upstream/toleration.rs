//! DeviceToleration, of requests, sub-requests and (from 1.37 on) of allocation results.

use super::lists;
use super::taint::{key_hint, key_problems, report_unknown_effect};
use crate::rules::RuleContext;
use crate::rules::table::{TOLERATION_EFFECT, TOLERATION_KEY, TOLERATION_OPERATOR, TOLERATION_VALUE};
use tollgate_api::view::{List, Toleration};
use tollgate_document::field::Path;
use tollgate_formats::names;

/// Checks the tolerations of one request or result; no release limits their number.
pub fn check_tolerations(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, list: List<'_, Toleration<'_>>) {
    for (index, toleration) in list.iter().enumerate() {
        check_toleration(cx, &at.index(index), toleration);
    }
}

// upstream v1.36 validateDeviceToleration
fn check_toleration(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    let (key, value) = (toleration.key(), toleration.value());
    // Most keys are right, and their hints are not asked for.
    if !key.is_empty() && !names::is_label_key(key) {
        let hint = match key {
            "*" => Some("to tolerate every taint, remove `key` and set `operator: Exists`"),
            key => key_hint(key),
        };
        let problems = key_problems(cx, key);
        for (index, detail) in problems.iter().enumerate() {
            let hint = hint.filter(|_| index + 1 == problems.len());
            cx.report(TOLERATION_KEY, &at.field("key"))
                .covered_by_declarative()
                .invalid(key, detail.clone())
                .help_if(hint);
        }
    }
    let value_at = at.field("value");
    match toleration.operator() {
        "Exists" if !value.is_empty() => {
            cx.report(TOLERATION_VALUE, &value_at)
                .invalid(value, "must be empty for operator `Exists`")
                .help("remove `value`, or set `operator: Equal`");
        }
        "Exists" => {}
        // None is `Equal`: the server fills it in before it looks, we only as far as it is worth it.
        "" | "Equal" => names::check_label_value(value, cx.profile.label_unit, &mut |detail| {
            cx.report(TOLERATION_VALUE, &value_at).invalid(value, detail);
        }),
        other => {
            let (at, value) = (at.field("operator"), lists::named_go_string(cx, other));
            cx.report(TOLERATION_OPERATOR, &at).covered_by_declarative().not_supported_with_suggestion(
                value,
                other,
                &["Equal", "Exists"],
            );
        }
    }
    let effect = toleration.effect();
    if !effect.is_empty() && !cx.profile.effects.contains(&effect) {
        report_unknown_effect(cx, TOLERATION_EFFECT, &at.field("effect"), effect);
    }
}
