//! A pod whose claim, or the template of it, is in another namespace: the pod waits for it forever.

use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::CLAIM_IN_OTHER_NAMESPACE;
use crate::site;
use tollgate_api::profile::ApiKind;
use tollgate_formats::names;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
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
                let Some(found) = claims.nearest_if_only_in_other_namespaces(kind, name, namespace) else {
                    continue;
                };
                let (kind, own) = (kind.name(), admission.object.kind().name());
                let (other, file, line) = (&found.namespace, &found.file, found.line);
                let detail = format_args!(
                    "the {kind} `{name}` is in the namespace `{other}` ({file}:{line}), but this {own} is in the \
                     namespace `{namespace}`; pods can use only claims and templates in their own namespace"
                );
                cx.report(CLAIM_IN_OTHER_NAMESPACE, &claim_at.field(field))
                    .not_found(name, detail)
                    .short_detail("is in another namespace than the pod")
                    .help(format_args!(
                        "set `namespace: {other}` in the {own}, or create the {kind} with `namespace: {namespace}`"
                    ));
            }
        }
    });
}
