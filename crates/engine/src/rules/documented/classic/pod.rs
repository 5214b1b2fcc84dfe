//! Claim templates inside of pods: the fields that they may set, and the name of the claim that is generated from them.

use super::claim;
use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::{CLAIM_TEMPLATE_METADATA, GENERATED_CLAIM_NAME, NESTED_AND_INLINED_TEMPLATE};
use crate::rules::upstream::{meta, template_meta};
use crate::site;
use tollgate_api::profile::ApiKind;
use tollgate_api::view::{ClassicTemplate, ObjectBody, PodClaim, View as _};
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;
use tollgate_formats::names::{self, LengthUnitWord};

pub(super) fn check_claim_templates_inside_classic_pod(
    cx: &mut RuleContext<'_, '_>,
    admission: &DecodedAttributes<'_>,
) {
    site::visit_pod_spec(admission.object, &mut |at, spec| {
        let claims_at = at.field("resourceClaims");
        for (index, claim) in spec.resource_claims().iter().enumerate() {
            if let Some(template) = claim.template() {
                let claim_at = claims_at.index(index);
                check_generated_claim_name(cx, admission, &claim_at.field("name"), claim);
                check_classic_claim_template(cx, &claim_at.field("template"), template);
            }
        }
    });
}

/// Checks the name that the claim will have, `<pod name>-<resource name>`. Skips pod templates, whose pods get their
/// names later, and claims whose own name is malformed.
fn check_generated_claim_name(
    cx: &mut RuleContext<'_, '_>,
    admission: &DecodedAttributes<'_>,
    at: &Path<'_>,
    claim: PodClaim<'_>,
) {
    let ObjectBody::Pods(pods) = admission.object.body else { return };
    let pod = admission.object.metadata().name();
    if pods.kind != ApiKind::Pod || pod.is_empty() || claim.name().is_empty() {
        return;
    }
    // Names that are malformed by themselves are told of by themselves.
    let mut is_label = true;
    names::check_dns_label(claim.name(), LengthUnitWord::Characters, &mut |_| is_label = false);
    if !is_label {
        return;
    }
    let name = format!("{pod}-{}", claim.name());
    names::check_dns_subdomain(&name, LengthUnitWord::Characters, &mut |detail| {
        cx.report(GENERATED_CLAIM_NAME, at)
            .invalid(BadValue::str(&name), format_args!("final ResourceClaim name: {detail}"));
    });
}

fn check_classic_claim_template(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, template: ClassicTemplate<'_>) {
    let (metadata, metadata_at) = (template.metadata(), at.field("metadata"));
    meta::check_annotations(cx, &metadata_at.field("annotations"), metadata.annotations());
    meta::check_labels(cx, &metadata_at.field("labels"), metadata.labels());
    for (field, is_set) in template_meta::forbidden_fields(metadata) {
        if is_set {
            cx.report(CLAIM_TEMPLATE_METADATA, &metadata_at.field(field))
                .forbidden("cannot be set")
                .help("a template can set only the labels and annotations of its claim");
        }
    }
    let inlined = |field: &&str| !template.json().get(field).is_null_or_absent();
    let twice = ["resourceClassName", "parameters", "allocationMode"].into_iter().find(inlined);
    if let Some(field) = twice.filter(|_| !template.json().get("spec").is_null_or_absent()) {
        cx.report(NESTED_AND_INLINED_TEMPLATE, &at.field(field))
            .forbidden("may not be specified when `spec` is set")
            .also_at(&at.field("spec"));
    }
    claim::check_classic_spec(
        cx,
        &template.nested_or_inlined_spec_path(at),
        template.nested_or_inlined_spec(),
    );
}
