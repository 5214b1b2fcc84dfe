//! A pod whose claim, or the template of it, is in another namespace: the pod waits for it forever.

use crate::admission::DecodedAttributes;
use crate::rules::{Cx, rules};
use crate::site;
use tollgate_api::profile::ApiKind;
use tollgate_document::finding::{BadValue, ErrorType};
use tollgate_formats::names;

rules! { Lint, Warn;
    /// A pod names a claim that the input has only in another namespace.
    OTHER_NAMESPACE = "claim-in-other-namespace",
}

pub(super) fn check(cx: &mut Cx<'_, '_>, admission: &DecodedAttributes<'_>) {
    let Some(claims) = cx.context.claims else { return };
    // Without a namespace, the object goes wherever it is applied. What is no name is filled in later.
    let namespace = admission.object.metadata().namespace();
    if admission.is_status() || !names::is_dns_label(namespace) {
        return;
    }
    site::visit_pod_spec(admission.object, &mut |at, spec| {
        let list_at = at.field("resourceClaims");
        for (index, claim) in spec.resource_claims().iter().enumerate() {
            let claim_at = list_at.index(index);
            for (field, kind, name) in [
                ("resourceClaimName", ApiKind::ResourceClaim, claim.resource_claim_name()),
                (
                    "resourceClaimTemplateName",
                    ApiKind::ResourceClaimTemplate,
                    claim.resource_claim_template_name(),
                ),
            ] {
                let Some(name) = name else { continue };
                let Some(found) = claims.elsewhere(kind, name, namespace) else { continue };
                let (kind, own) = (kind.name(), admission.object.kind().name());
                let (other, file, line) = (&found.namespace, &found.file, found.line);
                let detail = format!(
                    "the {kind} `{name}` is in the namespace `{other}` ({file}:{line}), but this {own} is in the \
                     namespace `{namespace}`; pods can use only claims and templates in their own namespace"
                );
                cx.report(
                    OTHER_NAMESPACE,
                    &claim_at.field(field),
                    ErrorType::NotFound,
                    BadValue::str(name),
                    detail,
                );
                cx.short(OTHER_NAMESPACE, "is in another namespace than the pod");
                cx.help(
                    OTHER_NAMESPACE,
                    format!(
                        "set `namespace: {other}` in the {own}, or create the {kind} with `namespace: {namespace}`"
                    ),
                );
            }
        }
    });
}
