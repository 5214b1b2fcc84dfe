//! A pod with claim fields that only KEP-3063 (classic DRA) defines: no supported release reads them.

use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::CLASSIC_POD_CLAIM;
use crate::site;
use tollgate_api::view::Container;
use tollgate_document::field::Path;

const TEMPLATE_DETAIL: &str =
    "only KEP-3063 defines claim templates inside pods; Kubernetes releases drop this field";
const PLAIN_NAME_DETAIL: &str =
    "only KEP-3063 allows a plain name here; Kubernetes requires an object with `name`";

pub(super) fn check(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    if admission.is_status() {
        return;
    }
    site::visit_pod_claim_templates(admission.object, &mut |at, _| {
        cx.report(CLASSIC_POD_CLAIM, at)
            .forbidden(TEMPLATE_DETAIL)
            .help("create a ResourceClaimTemplate and set `resourceClaimTemplateName` to its name");
    });
    site::visit_pod_spec(admission.object, &mut |at, spec| {
        for (field, containers) in [
            ("initContainers", spec.init_containers()),
            ("containers", spec.containers()),
            ("ephemeralContainers", spec.ephemeral_containers()),
        ] {
            let list_at = at.field(field);
            for (index, container) in containers.iter().enumerate() {
                report_claims_written_as_plain_names(
                    cx,
                    &list_at.index(index).field("resources").field("claims"),
                    container,
                );
            }
        }
    });
}

/// Reports the claims of a container that are written as plain names.
fn report_claims_written_as_plain_names(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    container: Container<'_>,
) {
    for (index, claim) in container.resources().claims().iter().enumerate() {
        if claim.is_name_only() {
            cx.report(CLASSIC_POD_CLAIM, &at.index(index))
                .forbidden(PLAIN_NAME_DETAIL)
                .help(format_args!("write `- name: {}`", claim.name()));
        }
    }
}
