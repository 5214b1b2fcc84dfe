//! DeviceTaint, of a device and of a rule.

use super::lists::{self, at_most_message};
use crate::rules::RuleContext;
use crate::rules::table::{TAINT_EFFECT, TAINT_KEY, TAINT_VALUE, TOO_MANY_TAINTS};
use tollgate_api::conform::suggest;
use tollgate_api::view::{List, Taint};
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, RuleId};
use tollgate_formats::gofmt;
use tollgate_formats::names::{self, LastValidDomainCache};

/// The taints of one device, and whether the stored object has the same ones.
pub struct NewAndStoredDeviceTaints<'d> {
    pub new: List<'d, Taint<'d>>,
    /// True if the stored device of the same name has the same taints.
    pub unchanged: bool,
    /// The taints of the stored device, in releases where these excuse unknown effects.
    pub stored: Option<List<'d, Taint<'d>>>,
}

/// Checks the taints of the device at `at`.
// upstream v1.36 validateDevice: unchanged taints are skipped whole. Declarative validation knows only effects, and
// no limit.
pub fn check_device_taints(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    NewAndStoredDeviceTaints { new, unchanged, stored }: NewAndStoredDeviceTaints<'_>,
) {
    let kept = unchanged && cx.profile.skips_unchanged_taints;
    let limit = cx.profile.limits.taints_per_device;
    let over = new.len() > limit;
    if over && !kept {
        cx.report(TOO_MANY_TAINTS, at).too_many(BadValue::count(new.len()), at_most_message(limit));
    }
    let judge = |cx: &mut RuleContext<'_, '_>| {
        let mut domains = LastValidDomainCache::default();
        for (index, taint) in new.iter().enumerate() {
            let at = at.index(index);
            let [key, value, effect] = taint.key_value_effect();
            if cx.is_hand_written {
                if !domains.is_label_key(key) {
                    check_key(cx, &at, key);
                }
                check_value(cx, &at, value);
            }
            // Nearly every effect is known: the rest is asked only about others.
            if !cx.profile.effects.contains(&effect) {
                // The effect of a stored taint may be that of a later release. A valid list has no more than the limit.
                // KEP-5055 r3: "Validation must be prepared to allow unknown enums in stored objects"
                let stored = stored.filter(|_| !effect.is_empty()).into_iter();
                let mut stored = stored.flat_map(List::iter).take(limit);
                if !stored.any(|old| is_same_key_and_effect(old, taint)) {
                    check_effect(cx, &at, effect);
                }
            }
        }
    };
    if kept || over && cx.profile.stops_at_list_limit {
        cx.check_declaratively_only(judge)
    } else {
        judge(cx)
    }
}

/// Checks one taint. `old` is the stored taint of a rule.
// upstream v1.36 validateDeviceTaint
pub fn check_taint(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, new: Taint<'_>, old: Option<Taint<'_>>) {
    check_key(cx, at, new.key());
    check_value(cx, at, new.value());
    let kept = cx.profile.skips_unchanged_taints && old.is_some_and(|old| old.effect() == new.effect());
    if !kept {
        check_effect(cx, at, new.effect());
    }
}

/// True if both taints have the same key and effect.
pub fn is_same_key_and_effect(old: Taint<'_>, new: Taint<'_>) -> bool {
    old.key() == new.key() && old.effect() == new.effect()
}

fn check_key(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, key: &str) {
    let problems = key_problems(cx, key);
    for (index, detail) in problems.iter().enumerate() {
        let hint = key_hint(key).filter(|_| index + 1 == problems.len());
        cx.report(TAINT_KEY, &at.field("key")).invalid(key, detail.clone()).help_if(hint);
    }
}

/// Returns the messages about an invalid taint key; empty if it is valid.
pub fn key_problems(cx: &RuleContext<'_, '_>, key: &str) -> Vec<names::Problem> {
    let mut problems = Vec::new();
    names::check_label_key(key, cx.profile.label_unit, cx.profile.label_key_word, &mut |problem| {
        problems.push(problem);
    });
    problems
}

fn check_value(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, value: &str) {
    if !value.is_empty() {
        names::check_label_value(value, cx.profile.label_unit, &mut |detail| {
            cx.report(TAINT_VALUE, &at.field("value")).invalid(value, detail);
        });
    }
}

fn check_effect(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, effect: &str) {
    let at = at.field("effect");
    if effect.is_empty() {
        let effects = cx.profile.effects;
        let help = || suggest::hint_use_one_of(effects).replacen("use", "set `effect` to", 1);
        cx.report(TAINT_EFFECT, &at).covered_by_declarative().required("").help(help);
    } else if !cx.profile.effects.contains(&effect) {
        report_unknown_effect(cx, TAINT_EFFECT, &at, effect);
    }
}

/// Returns a hint about a malformed key.
pub fn key_hint(key: &str) -> Option<&'static str> {
    if key.contains(['=', ':']) {
        return Some("write `key`, `value` and `effect` as separate fields");
    }
    if key.matches('/').count() > 1 {
        return Some(
            "a key has at most one slash, between the domain and the name, as in `example.com/broken`",
        );
    }
    let is_odd = |letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '-' | '_' | '.' | '/');
    (key.is_empty() || key.contains(is_odd))
        .then_some("use a name with an optional domain, such as `example.com/broken`")
}

/// Reports an unknown effect, with the most similar known one.
pub fn report_unknown_effect(cx: &mut RuleContext<'_, '_>, rule: RuleId, at: &Path<'_>, effect: &str) {
    let (effects, value) = (cx.profile.effects, lists::named_go_string(cx, effect));
    let reported =
        cx.report(rule, at).covered_by_declarative().not_supported(value, || supported_values(effects));
    if effect.eq_ignore_ascii_case("PreferNoSchedule") {
        reported.help(
            "`PreferNoSchedule` is supported only for node taints and their tolerations; for devices, use `NoSchedule` or `NoExecute`",
        );
    } else {
        reported.did_you_mean(at, effect, effects);
    }
}

/// Returns `supported values: "A", "B"`.
pub fn supported_values(values: &[&str]) -> String {
    format!("supported values: {}", gofmt::quote_sorted_list(values))
}
