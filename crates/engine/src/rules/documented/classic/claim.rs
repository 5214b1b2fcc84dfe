//! ResourceClaim of classic DRA: its spec, which is immutable. The spec of a template is checked in the same way.

use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::{
    CLASSIC_ALLOCATION_MODE, CLASSIC_CLASS_NAME, IMMUTABLE_CLASSIC_CLAIM, UNKNOWN_RESOURCE_CLASS,
};
use crate::rules::upstream::naming;
use tollgate_api::equal;
use tollgate_api::view::{ClassicClaim, ClassicClaimSpec, View as _};
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

const ALLOCATION_MODES: [&str; 2] = ["Delayed", "Immediate"];

pub(super) fn check_classic_claim(
    cx: &mut RuleContext<'_, '_>,
    admission: &DecodedAttributes<'_>,
    claim: ClassicClaim<'_>,
) {
    let at = Path::ROOT.field("spec");
    if let Some(old) = admission.old_object
        && !equal::is_top_level_field_equal(admission.object, old, "spec")
    {
        let value = BadValue::Json(claim.spec().json().to_json_cut_after(cx.max_value_bytes()).into());
        cx.report(IMMUTABLE_CLASSIC_CLAIM, &at)
            .invalid(value, "field is immutable")
            .help("delete the claim and create a new one");
    }
    check_classic_spec(cx, &at, claim.spec());
}

/// Checks the spec at `at`, of a claim or of a template.
pub(super) fn check_classic_spec(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, spec: ClassicClaimSpec<'_>) {
    let (name, name_at) = (spec.resource_class_name(), at.field("resourceClassName"));
    if name.is_empty() {
        cx.report(CLASSIC_CLASS_NAME, &name_at).required("");
    } else {
        naming::check_dns_subdomain(cx, CLASSIC_CLASS_NAME, &name_at, name);
        // Only if the existing classes are known.
        if let Some(classes) = cx.context.classes.filter(|classes| !classes.has(name)) {
            cx.report(UNKNOWN_RESOURCE_CLASS, &name_at)
                .not_found(name, "no known ResourceClass has this name")
                .help(classes.describe());
        }
    }
    let mode = spec.allocation_mode();
    if !mode.is_empty() && !ALLOCATION_MODES.contains(&mode) {
        let value = BadValue::json_quoted_string(mode);
        cx.report(CLASSIC_ALLOCATION_MODE, &at.field("allocationMode")).not_supported_with_suggestion(
            value,
            mode,
            &ALLOCATION_MODES,
        );
    }
}
