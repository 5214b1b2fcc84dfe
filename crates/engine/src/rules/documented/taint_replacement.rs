//! FoundationDBCluster: which taints of a node have its processes replaced, and after how long.
//!
//! From the operator's design "Tainted Node Eviction". Its custom resource takes any string and any number, and the
//! operator passes over options that make no sense without a word. No options means the feature is off.

use crate::admission::DecodedAttributes;
use crate::rules::upstream::lists;
use crate::rules::{Cx, rules};
use tollgate_api::view::{Body, FoundationDbCluster, Replacements, TaintOption};
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};
use tollgate_formats::names::{self, KeyWord, Unit};

rules! { Documented, Deny;
    /// The key is missing, or neither a label name nor `*`.
    KEY = "taint-option-key",
    /// Two options have one key.
    DUPLICATE = "duplicate-taint-option",
    /// A duration is missing or negative.
    DURATION = "taint-option-duration",
}

const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

pub(super) fn check(cx: &mut Cx<'_, '_>, admission: &DecodedAttributes<'_>) {
    let Body::FoundationDb(cluster) = admission.object.body else { return };
    if admission.is_status() {
        return;
    }
    for way in FoundationDbCluster::WAYS {
        if let Some(replacements) = cluster.replacements(way) {
            Path::ROOT.descend(way, &mut |at| check_replacements(cx, at, replacements));
        }
    }
}

fn check_replacements(cx: &mut Cx<'_, '_>, at: &Path<'_>, replacements: Replacements<'_>) {
    let (options, options_at) =
        (replacements.taint_replacement_options(), at.field("taintReplacementOptions"));
    for (index, option) in options.iter().enumerate() {
        check_option(cx, &options_at.index(index), option);
    }
    lists::duplicates(options.iter().map(|option| option.key().unwrap_or_default()), |index, key| {
        if !key.is_empty() {
            let option_at = options_at.index(index);
            let detail = if key == "*" { "only one wildcard is allowed" } else { "" };
            cx.report(DUPLICATE, &option_at.field("key"), ErrorType::Duplicate, BadValue::str(key), detail);
        }
    });
    if let Some(seconds) = replacements.taint_replacement_time_seconds().filter(|seconds| *seconds < 0) {
        let at = at.field("taintReplacementTimeSeconds");
        cx.report(DURATION, &at, ErrorType::Invalid, BadValue::Int(seconds), NOT_NEGATIVE);
    }
}

fn check_option(cx: &mut Cx<'_, '_>, at: &Path<'_>, option: TaintOption<'_>) {
    let key_at = at.field("key");
    match option.key() {
        None | Some("") => cx.report(
            KEY,
            &key_at,
            ErrorType::Required,
            BadValue::Omitted,
            "set `key` to the key of a taint, or to `*`",
        ),
        Some("*") => {}
        Some(key) => names::label_key(key, Unit::Bytes, KeyWord::QualifiedName, &mut |detail| {
            cx.report(KEY, &key_at, ErrorType::Invalid, BadValue::str(key), detail);
            cx.help(KEY, "`*` matches all keys; other patterns are not supported");
        }),
    }
    let duration_at = at.field("durationInSeconds");
    match option.duration_in_seconds() {
        None => cx.report(
            DURATION,
            &duration_at,
            ErrorType::Required,
            BadValue::Omitted,
            "the operator ignores an entry without a duration",
        ),
        Some(seconds) if seconds < 0 => {
            cx.report(DURATION, &duration_at, ErrorType::Invalid, BadValue::Int(seconds), NOT_NEGATIVE);
            cx.help(
                DURATION,
                "the operator ignores this entry; set the duration to 0 or more, or remove the entry",
            );
        }
        Some(_) => {}
    }
}
