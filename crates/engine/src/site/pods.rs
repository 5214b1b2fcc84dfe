//! Finds pod specs in objects: in Pods, and in the pod templates of workloads.

use tollgate_api::view::{ClassicTemplate, Object, ObjectBody, PodClaims};
use tollgate_document::field::Path;

/// Calls `visit` for the PodSpec of a pod or workload; not for other objects.
pub fn visit_pod_spec<'d>(object: Object<'d>, visit: &mut dyn FnMut(&Path<'_>, PodClaims<'d>)) {
    if let ObjectBody::Pods(pods) = object.body {
        Path::ROOT.call_with_nested_field_path(pods.pod_spec_path(), &mut |at| visit(at, pods.pod_spec()));
    }
}

/// Calls `visit` for each claim template (KEP-3063) inside of a PodSpec.
pub fn visit_pod_claim_templates<'d>(
    object: Object<'d>,
    visit: &mut dyn FnMut(&Path<'_>, ClassicTemplate<'d>),
) {
    visit_pod_spec(object, &mut |at, spec| {
        let claims_at = at.field("resourceClaims");
        for (index, claim) in spec.resource_claims().iter().enumerate() {
            if let Some(template) = claim.template() {
                visit(&claims_at.index(index).field("template"), template);
            }
        }
    });
}
