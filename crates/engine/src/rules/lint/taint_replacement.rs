//! FoundationDBCluster: options for tainted nodes that will not do what they seem to say.

use crate::admission::DecodedAttributes;
use crate::rules::{Cx, rules};
use tollgate_api::view::{Body, FoundationDbCluster, Replacements, TaintOption};
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};

rules! { Lint, Warn;
    /// Options, and the feature is off.
    OFF = "taint-replacement-off",
    /// A field that the operator does not read.
    IGNORED = "ignored-replacement-field",
    /// A key with the wildcard's duration.
    REDUNDANT = "redundant-taint-option",
    /// Nothing may be replaced at any time.
    ZERO = "zero-concurrent-replacements",
}

pub(super) fn check(cx: &mut Cx<'_, '_>, admission: &DecodedAttributes<'_>) {
    let Body::FoundationDb(cluster) = admission.object.body else { return };
    if admission.is_status() {
        return;
    }
    for (index, way) in FoundationDbCluster::WAYS.into_iter().enumerate() {
        let Some(replacements) = cluster.replacements(way) else { continue };
        Path::ROOT.descend(way, &mut |at| {
            if index > 0 {
                let detail =
                    "the operator ignores this field and reads `spec.automationOptions.replacements` instead";
                cx.report(IGNORED, at, ErrorType::Forbidden, BadValue::Omitted, detail);
                cx.short(IGNORED, "ignored; use `spec.automationOptions.replacements`");
            }
            check_replacements(cx, at, replacements);
        });
    }
}

fn check_replacements(cx: &mut Cx<'_, '_>, at: &Path<'_>, replacements: Replacements<'_>) {
    if !replacements.taints_of_prose().is_empty() {
        let detail = "the operator ignores this field and reads `taintReplacementOptions` instead";
        cx.report(IGNORED, &at.field("taints"), ErrorType::Forbidden, BadValue::Omitted, detail);
    }
    if let Some(count) = replacements.max_concurrent_replacements().filter(|count| *count <= 0) {
        let at = at.field("maxConcurrentReplacements");
        let detail = format!("{count} stops all automatic replacements");
        cx.report(ZERO, &at, ErrorType::Invalid, BadValue::Int(count), detail);
        cx.help(
            ZERO,
            "set the field to 1 or more (default: 1); to turn automatic replacements off, set `enabled: false`",
        );
    }
    let (options, options_at) =
        (replacements.taint_replacement_options(), at.field("taintReplacementOptions"));
    match replacements.enabled() {
        _ if options.is_empty() => {
            if let Some(seconds) = replacements.taint_replacement_time_seconds() {
                let at = at.field("taintReplacementTimeSeconds");
                let detail = "has no effect without `taintReplacementOptions`";
                cx.report(OFF, &at, ErrorType::Invalid, BadValue::Int(seconds), detail);
            }
        }
        Some(true) => {}
        Some(false) => {
            let detail = "has no effect: `enabled: false` turns automatic replacements off";
            cx.report(OFF, &options_at, ErrorType::Forbidden, BadValue::Omitted, detail);
        }
        None => {
            let detail = "has no effect unless `enabled: true` turns automatic replacements on";
            cx.report(OFF, &options_at, ErrorType::Forbidden, BadValue::Omitted, detail);
        }
    }
    let is_wildcard = |option: &TaintOption<'_>| option.key() == Some("*");
    let Some(wildcard) = options.iter().find(is_wildcard).and_then(TaintOption::duration_in_seconds) else {
        return;
    };
    for (index, option) in options.iter().enumerate().filter(|(_, option)| !is_wildcard(option)) {
        if let Some(seconds) = option.duration_in_seconds().filter(|seconds| *seconds == wildcard) {
            let (at, detail) = (options_at.index(index), "has no effect: `*` has the same duration");
            cx.report(
                REDUNDANT,
                &at.field("durationInSeconds"),
                ErrorType::Invalid,
                BadValue::Int(seconds),
                detail,
            );
            cx.help(REDUNDANT, "remove this entry");
        }
    }
}
