//! FoundationDBCluster: options for tainted nodes that will not do what they seem to say.

use crate::admission::DecodedAttributes;
use crate::api::view::{Body, FoundationDbCluster, Replacements, TaintOption};
use crate::field::Path;
use crate::finding::{BadValue, ErrorType};
use crate::rules::{Cx, rules};

rules! { Lint, Warn;
    /// Options, and the feature is off.
    OFF = "taint-replacement-off",
    /// A field that the operator does not read.
    IGNORED = "ignored-replacement-field",
    /// Taints that nobody listed are acted on sooner than one that was.
    SHORTER = "wildcard-shorter-than-key",
    /// A key with the wildcard's duration.
    REDUNDANT = "redundant-taint-option",
    /// Nothing may be replaced at any time.
    ZERO = "zero-concurrent-replacements",
}

pub(crate) fn check(cx: &mut Cx<'_, '_>, admission: &DecodedAttributes<'_>) {
    let Body::FoundationDb(cluster) = admission.object.body else { return };
    if admission.is_status() {
        return;
    }
    for (index, way) in FoundationDbCluster::WAYS.into_iter().enumerate() {
        let Some(replacements) = cluster.replacements(way) else { continue };
        Path::ROOT.descend(way, &mut |at| {
            if index > 0 {
                let detail = "the operator reads `spec.automationOptions.replacements`";
                cx.report(IGNORED, at, ErrorType::Forbidden, BadValue::Omitted, detail);
            }
            check_replacements(cx, at, replacements);
        });
    }
}

fn check_replacements(cx: &mut Cx<'_, '_>, at: &Path<'_>, replacements: Replacements<'_>) {
    if !replacements.taints_of_prose().is_empty() {
        let detail = "the operator reads `taintReplacementOptions`";
        cx.report(IGNORED, &at.field("taints"), ErrorType::Forbidden, BadValue::Omitted, detail);
    }
    if let Some(count) = replacements.max_concurrent_replacements().filter(|count| *count <= 0) {
        let at = at.field("maxConcurrentReplacements");
        let detail = "lets the operator replace nothing: set it to 1 or more, or remove it (default: 1)";
        cx.report(ZERO, &at, ErrorType::Invalid, BadValue::Int(count), detail);
        cx.help(ZERO, "to switch automatic replacements off on purpose, set `enabled: false`");
    }
    let (options, options_at) =
        (replacements.taint_replacement_options(), at.field("taintReplacementOptions"));
    match replacements.enabled() {
        _ if options.is_empty() => {
            if let Some(seconds) = replacements.taint_replacement_time_seconds() {
                let at = at.field("taintReplacementTimeSeconds");
                let detail = "does nothing: without `taintReplacementOptions` the feature is off";
                cx.report(OFF, &at, ErrorType::Invalid, BadValue::Int(seconds), detail);
            }
        }
        Some(true) => {}
        Some(false) => {
            let detail = "does nothing: automatic replacements are switched off by `enabled: false`";
            cx.report(OFF, &options_at, ErrorType::Forbidden, BadValue::Omitted, detail);
        }
        None => {
            let detail = "does nothing unless automatic replacements are on: set `enabled: true`";
            cx.report(OFF, &options_at, ErrorType::Forbidden, BadValue::Omitted, detail);
        }
    }
    let is_wildcard = |option: &TaintOption<'_>| option.key() == Some("*");
    let Some(wildcard) = options.iter().find(is_wildcard).and_then(TaintOption::duration_in_seconds) else {
        return;
    };
    for (index, option) in options.iter().enumerate().filter(|(_, option)| !is_wildcard(option)) {
        if let Some(seconds) = option.duration_in_seconds() {
            check_against(cx, &options_at.index(index), seconds, wildcard);
        }
    }
}

fn check_against(cx: &mut Cx<'_, '_>, at: &Path<'_>, seconds: i64, wildcard: i64) {
    let at = at.field("durationInSeconds");
    if wildcard < seconds {
        let detail =
            format!("taints that are not listed are acted on sooner, after {wildcard} seconds by `*`");
        cx.report(SHORTER, &at, ErrorType::Invalid, BadValue::Int(seconds), detail);
    } else if wildcard == seconds {
        let detail = "changes nothing: `*` has the same duration";
        cx.report(REDUNDANT, &at, ErrorType::Invalid, BadValue::Int(seconds), detail);
    }
}
