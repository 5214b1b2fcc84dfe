//! A pod in the shape of KEP-3063: no release that is supported today reads it.

use crate::admission::DecodedAttributes;
use crate::rules::{Cx, rules};
use crate::site;
use tollgate_api::view::Container;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};

rules! { Lint, Warn;
    /// A template inside of a pod, or a container's claim that is only a name.
    CLASSIC = "classic-pod-claim",
}

const TEMPLATE: &str =
    "only KEP-3063 defines claim templates inside pods; Kubernetes releases drop this field";
const NAME: &str = "only KEP-3063 allows a plain name here; Kubernetes requires an object with `name`";

pub(super) fn check(cx: &mut Cx<'_, '_>, admission: &DecodedAttributes<'_>) {
    if admission.is_status() {
        return;
    }
    site::visit_claim_templates(admission.object, &mut |at, _| {
        cx.report(CLASSIC, at, ErrorType::Forbidden, BadValue::Omitted, TEMPLATE);
        cx.help(CLASSIC, "create a ResourceClaimTemplate and set `resourceClaimTemplateName` to its name");
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
                check_uses(cx, &resources_at.field("claims"), container);
            }
        }
    });
}

fn check_uses(cx: &mut Cx<'_, '_>, at: &Path<'_>, container: Container<'_>) {
    for (index, claim) in container.resources().claims().iter().enumerate() {
        if claim.is_bare() {
            cx.report(CLASSIC, &at.index(index), ErrorType::Forbidden, BadValue::Omitted, NAME);
            cx.help(CLASSIC, format!("write `- name: {}`", claim.name()));
        }
    }
}
