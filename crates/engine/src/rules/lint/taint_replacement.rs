//! FoundationDBCluster: options for tainted nodes that will not do what they seem to say.

use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::{
    IGNORED_REPLACEMENT_FIELD, REDUNDANT_TAINT_OPTION, TAINT_REPLACEMENT_OFF, ZERO_CONCURRENT_REPLACEMENTS,
};
use tollgate_api::view::{FoundationDbCluster, ObjectBody, Replacements, TaintOption};
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    let ObjectBody::FoundationDb(cluster) = admission.object.body else { return };
    if admission.is_status() {
        return;
    }
    for (index, way) in FoundationDbCluster::REPLACEMENT_PATHS.into_iter().enumerate() {
        let Some(replacements) = cluster.replacements_at_path(way) else { continue };
        Path::ROOT.call_with_nested_field_path(way, &mut |at| {
            if index > 0 {
                let detail =
                    "the operator ignores this field and reads `spec.automationOptions.replacements` instead";
                cx.report(IGNORED_REPLACEMENT_FIELD, at)
                    .forbidden(detail)
                    .short_detail("ignored; use `spec.automationOptions.replacements`");
            }
            check_replacements(cx, at, replacements);
        });
    }
}

fn check_replacements(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, replacements: Replacements<'_>) {
    if !replacements.taints_of_prose().is_empty() {
        cx.report(IGNORED_REPLACEMENT_FIELD, &at.field("taints"))
            .forbidden("the operator ignores this field and reads `taintReplacementOptions` instead");
    }
    if let Some(count) = replacements.max_concurrent_replacements().filter(|count| *count <= 0) {
        cx.report(ZERO_CONCURRENT_REPLACEMENTS, &at.field("maxConcurrentReplacements"))
            .invalid(BadValue::Int(count), format_args!("{count} stops all automatic replacements"))
            .help("set the field to 1 or more (default: 1); to turn automatic replacements off, set `enabled: false`");
    }
    let (options, options_at) =
        (replacements.taint_replacement_options(), at.field("taintReplacementOptions"));
    match replacements.enabled() {
        _ if options.is_empty() => {
            if let Some(seconds) = replacements.taint_replacement_time_seconds() {
                cx.report(TAINT_REPLACEMENT_OFF, &at.field("taintReplacementTimeSeconds"))
                    .invalid(BadValue::Int(seconds), "has no effect without `taintReplacementOptions`");
            }
        }
        Some(true) => {}
        Some(false) => {
            cx.report(TAINT_REPLACEMENT_OFF, &options_at)
                .forbidden("has no effect: `enabled: false` turns automatic replacements off");
        }
        None => {
            cx.report(TAINT_REPLACEMENT_OFF, &options_at)
                .forbidden("has no effect unless `enabled: true` turns automatic replacements on");
        }
    }
    let is_wildcard = |option: &TaintOption<'_>| option.key() == Some("*");
    let Some(wildcard) = options.iter().find(is_wildcard).and_then(TaintOption::duration_in_seconds) else {
        return;
    };
    for (index, option) in options.iter().enumerate().filter(|(_, option)| !is_wildcard(option)) {
        if let Some(seconds) = option.duration_in_seconds().filter(|seconds| *seconds == wildcard) {
            let (at, detail) = (options_at.index(index), "has no effect: `*` has the same duration");
            cx.report(REDUNDANT_TAINT_OPTION, &at.field("durationInSeconds"))
                .invalid(BadValue::Int(seconds), detail)
                .help("remove this entry");
        }
    }
}
