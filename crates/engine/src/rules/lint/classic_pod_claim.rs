//! A pod in the shape of KEP-3063: no release that is supported today reads it.

use crate::admission::DecodedAttributes;
use crate::rules::Cx;
use crate::rules::table::CLASSIC_POD_CLAIM;
use crate::site;
use tollgate_api::view::Container;
use tollgate_document::field::Path;

const TEMPLATE: &str =
    "only KEP-3063 defines claim templates inside pods; Kubernetes releases drop this field";
const NAME: &str = "only KEP-3063 allows a plain name here; Kubernetes requires an object with `name`";

pub(super) fn check(cx: &mut Cx<'_, '_>, admission: &DecodedAttributes<'_>) {
    if admission.is_status() {
        return;
    }
    site::visit_claim_templates(admission.object, &mut |at, _| {
        cx.report(CLASSIC_POD_CLAIM, at)
            .forbidden(TEMPLATE)
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
                let container_at = list_at.index(index);
                let resources_at = container_at.field("resources");
                check_container_claims(cx, &resources_at.field("claims"), container);
            }
        }
    });
}

/// Reports the claims of a container that are written as plain names.
fn check_container_claims(cx: &mut Cx<'_, '_>, at: &Path<'_>, container: Container<'_>) {
    for (index, claim) in container.resources().claims().iter().enumerate() {
        if claim.is_bare() {
            cx.report(CLASSIC_POD_CLAIM, &at.index(index))
                .forbidden(NAME)
                .help(format_args!("write `- name: {}`", claim.name()));
        }
    }
}
