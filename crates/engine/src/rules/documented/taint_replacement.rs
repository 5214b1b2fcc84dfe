//! FoundationDBCluster: the options that state for which taints of a node its processes are replaced, and after how
//! long.
//!
//! From the operator's design "Tainted Node Eviction". Its custom resource takes any string and any number, and the
//! operator silently ignores invalid options. Without options, the feature is off.

use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::{DUPLICATE_TAINT_OPTION, TAINT_OPTION_DURATION, TAINT_OPTION_KEY};
use crate::rules::upstream::lists;
use tollgate_api::view::{FoundationDbCluster, ObjectBody, Replacements, TaintOption};
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;
use tollgate_formats::names::{self, KeyErrorWord, LengthUnitWord};

const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

pub(super) fn check(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    let ObjectBody::FoundationDb(cluster) = admission.object.body else { return };
    if admission.is_status() {
        return;
    }
    for way in FoundationDbCluster::REPLACEMENT_PATHS {
        if let Some(replacements) = cluster.replacements_at_path(way) {
            Path::ROOT.call_with_nested_field_path(way, &mut |at| check_replacements(cx, at, replacements));
        }
    }
}

fn check_replacements(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, replacements: Replacements<'_>) {
    let (options, options_at) =
        (replacements.taint_replacement_options(), at.field("taintReplacementOptions"));
    for (index, option) in options.iter().enumerate() {
        check_replacement_entry(cx, &options_at.index(index), option);
    }
    lists::for_each_duplicate(options.iter().map(|option| option.key().unwrap_or_default()), |index, key| {
        if !key.is_empty() {
            let detail = if key == "*" { "only one wildcard is allowed" } else { "" };
            cx.report(DUPLICATE_TAINT_OPTION, &options_at.index(index).field("key")).duplicate(key, detail);
        }
    });
    if let Some(seconds) = replacements.taint_replacement_time_seconds().filter(|seconds| *seconds < 0) {
        cx.report(TAINT_OPTION_DURATION, &at.field("taintReplacementTimeSeconds"))
            .invalid(BadValue::Int(seconds), NOT_NEGATIVE);
    }
}

fn check_replacement_entry(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, option: TaintOption<'_>) {
    let key_at = at.field("key");
    match option.key() {
        None | Some("") => {
            cx.report(TAINT_OPTION_KEY, &key_at).required("set `key` to the key of a taint, or to `*`");
        }
        Some("*") => {}
        Some(key) => {
            names::check_label_key(key, LengthUnitWord::Bytes, KeyErrorWord::QualifiedName, &mut |detail| {
                cx.report(TAINT_OPTION_KEY, &key_at)
                    .invalid(key, detail)
                    .help("`*` matches all keys; other patterns are not supported");
            })
        }
    }
    let duration_at = at.field("durationInSeconds");
    match option.duration_in_seconds() {
        None => {
            cx.report(TAINT_OPTION_DURATION, &duration_at)
                .required("the operator ignores an entry without a duration");
        }
        Some(seconds) if seconds < 0 => {
            cx.report(TAINT_OPTION_DURATION, &duration_at)
                .invalid(BadValue::Int(seconds), NOT_NEGATIVE)
                .help("the operator ignores this entry; set the duration to 0 or more, or remove the entry");
        }
        Some(_) => {}
    }
}
