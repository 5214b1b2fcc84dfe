//! DeviceToleration, of requests, sub-requests and (from 1.37 on) of allocation results.

use super::lists;
use super::taint::{explain_effect, key_hint, supported};
use crate::rules::{Cx, rules};
use tollgate_api::view::{List, Toleration};
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};
use tollgate_formats::names;

rules! { Upstream, Deny;
    /// The key is not a label name.
    KEY = "toleration-key",
    /// The operator is neither Equal nor Exists.
    OPERATOR = "toleration-operator",
    /// The value is not a label value, or given with Exists.
    VALUE = "toleration-value",
    /// The effect is unknown to the release.
    EFFECT = "toleration-effect",
}

/// The tolerations of one request; no release limits their number.
pub fn check_list(cx: &mut Cx<'_, '_>, at: &Path<'_>, list: List<'_, Toleration<'_>>) {
    for (index, toleration) in list.iter().enumerate() {
        check(cx, &at.index(index), toleration);
    }
}

// upstream v1.36 validateDeviceToleration
fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    let (unit, word) = (cx.profile.label_unit, cx.profile.label_key_word);
    let (key, value) = (toleration.key(), toleration.value());
    // Most keys are right, and their hints are not asked for.
    if !key.is_empty() && !names::is_label_key(key) {
        names::label_key(key, unit, word, &mut |detail| {
            cx.report_covered(KEY, &at.field("key"), ErrorType::Invalid, BadValue::str(key), detail);
        });
        if key == "*" {
            cx.help(KEY, "to tolerate every taint, remove `key` and set `operator: Exists`");
        } else if let Some(help) = key_hint(key) {
            cx.help(KEY, help);
        }
    }
    let value_at = at.field("value");
    match toleration.operator() {
        "Exists" if !value.is_empty() => {
            cx.report(
                VALUE,
                &value_at,
                ErrorType::Invalid,
                BadValue::str(value),
                "must be empty for operator `Exists`",
            );
            cx.help(VALUE, "remove `value`, or set `operator: Equal`");
        }
        "Exists" => {}
        // None is `Equal`: the server fills it in before it looks, we only as far as it is worth it.
        "" | "Equal" => names::label_value(value, unit, &mut |detail| {
            cx.report(VALUE, &value_at, ErrorType::Invalid, BadValue::str(value), detail);
        }),
        other => {
            let detail = supported(&["Equal", "Exists"]);
            let (at, value) = (at.field("operator"), lists::named(cx, other));
            cx.report_covered(OPERATOR, &at, ErrorType::NotSupported, value, detail);
            cx.did_you_mean(OPERATOR, &at, other, &["Equal", "Exists"]);
        }
    }
    let effect = toleration.effect();
    if !effect.is_empty() && !cx.profile.effects.contains(&effect) {
        let (value, detail) = (lists::named(cx, effect), supported(cx.profile.effects));
        let at = at.field("effect");
        cx.report_covered(EFFECT, &at, ErrorType::NotSupported, value, detail);
        explain_effect(cx, EFFECT, &at, effect);
    }
}
