//! Claims of a pod, and which containers use them. Pod templates are judged like pods.
//!
//! KEP-3063 has the same checks in the same words; where a pod is written in its shape, `template` takes the place of
//! `resourceClaimTemplateName`, and a container's claim is only a name.

use std::collections::HashSet;

use super::{hub, lists, naming};
use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::{CONTAINER_CLAIM, POD_CLAIM_NAME, POD_CLAIM_SOURCE};
use crate::site;
use tollgate_api::view::{Container, ContainerClaim, List, PodClaim, PodClaims, View as _};
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, Edit, Fix};

/// Checks the claims of a pod or pod template, and the claims that its containers use.
// upstream v1.36 ValidatePodSpec
pub fn check_pod_claims(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    if admission.is_status() {
        return;
    }
    site::visit_pod_spec(admission.object, &mut |at, spec| {
        let claims_at = at.field("resourceClaims");
        let mut repeated = Vec::new();
        lists::for_each_duplicate(spec.resource_claims().iter().map(PodClaim::name), |index, _| {
            repeated.push(index)
        });
        for (index, claim) in spec.resource_claims().iter().enumerate() {
            check_pod_claim_name(cx, &claims_at.index(index), claim, repeated.binary_search(&index).is_ok());
            check_claim_source(cx, &claims_at.index(index), claim);
        }
        check_containers(cx, &at.field("containers"), spec, spec.containers());
        check_containers(cx, &at.field("initContainers"), spec, spec.init_containers());
        check_containers(cx, &at.field("ephemeralContainers"), spec, spec.ephemeral_containers());
    });
}

// upstream v1.36 validatePodResourceClaim
fn check_pod_claim_name(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, claim: PodClaim<'_>, is_repeated: bool) {
    let (name, name_at) = (claim.name(), at.field("name"));
    if name.is_empty() {
        cx.report(POD_CLAIM_NAME, &name_at).required("");
    } else if is_repeated {
        cx.report(POD_CLAIM_NAME, &name_at).duplicate(name, "");
    } else {
        naming::check_dns_label(cx, POD_CLAIM_NAME, &name_at, name);
    }
}

fn check_claim_source(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, claim: PodClaim<'_>) {
    check_exactly_one_source(cx, at, claim);
    if let Some(name) = claim.resource_claim_name() {
        naming::check_dns_subdomain(cx, POD_CLAIM_SOURCE, &at.field("resourceClaimName"), name);
    }
    if let Some(name) = claim.resource_claim_template_name() {
        naming::check_dns_subdomain(cx, POD_CLAIM_SOURCE, &at.field("resourceClaimTemplateName"), name);
    }
}

fn check_exactly_one_source(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, claim: PodClaim<'_>) {
    let by_name = claim.resource_claim_name().is_some();
    let by_template = claim.resource_claim_template_name().is_some();
    let detail = match (by_name, by_template, claim.template().is_some()) {
        (true, true, false) => {
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        }
        (true, _, true) => "at most one of `resourceClaimName` or `template` may be specified",
        (false, true, true) => "at most one of `resourceClaimTemplateName` or `template` may be specified",
        (false, false, false) if !has_unknown_source(claim) => {
            "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        }
        _ => return,
    };
    let value = hub::go_printed_value(cx, claim.json(), &hub::POD_CLAIM_TYPE);
    let reported = cx.report(POD_CLAIM_SOURCE, at).invalid(value, detail);
    if !claim.json().get("source").is_null_or_absent() {
        reported.help("Kubernetes 1.31 removed `source`: move its fields one level up").fix_if_fixable(
            || {
                let edit = Edit::Unnest { at: at.field("source").owned() };
                Fix::safe("Move the fields of `source` one level up", edit)
            },
        );
    }
}

/// True if the claim has a field that Tollgate does not know, which may be a source in a newer release.
fn has_unknown_source(claim: PodClaim<'_>) -> bool {
    let known = ["name", "source", "resourceClaimName", "resourceClaimTemplateName", "template"];
    claim.json().members().any(|(key, value)| !known.contains(&key.text()) && !value.is_null_or_absent())
}

/// Checks the claims that containers use: that they exist, and that none is used twice by the same container.
// upstream v1.36 validateResourceClaimNames
fn check_containers(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    spec: PodClaims<'_>,
    containers: List<'_, Container<'_>>,
) {
    for (index, container) in containers.iter().enumerate() {
        let claims = container.resources().claims();
        if claims.is_empty() {
            continue;
        }
        let container_at = at.index(index);
        let resources_at = container_at.field("resources");
        let claims_at = resources_at.field("claims");
        let names = lists::index_names(spec.resource_claims().iter().map(PodClaim::name));
        let mut used = ClaimsUsedByContainer::default();
        for (index, claim) in claims.iter().enumerate() {
            let (name, at) = (claim.name(), claims_at.index(index));
            if name.is_empty() {
                cx.report(CONTAINER_CLAIM, &at).required("");
                continue;
            }
            check_not_used_twice(cx, &at, claim, &mut used);
            if names.get(name).is_none() {
                report_unknown_claim(cx, &at, spec, name);
            }
        }
    }
}

/// The claims that the container has used so far.
#[derive(Default)]
struct ClaimsUsedByContainer<'d> {
    names: HashSet<&'d str>,
    /// Pairs of claim and request. An empty request means all requests of the claim.
    requests: HashSet<(&'d str, &'d str)>,
}

/// Reports a claim, or a request of it, that the container already uses.
fn check_not_used_twice<'d>(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    claim: ContainerClaim<'d>,
    used: &mut ClaimsUsedByContainer<'d>,
) {
    let (name, request) = (claim.name(), claim.request());
    let is_used = !used.names.insert(name);
    if used.requests.contains(&(name, "")) {
        cx.report(CONTAINER_CLAIM, at).duplicate(name, "");
        return;
    }
    if request.is_empty() && is_used {
        cx.report(CONTAINER_CLAIM, at).duplicate(name, "");
    }
    if !request.is_empty() {
        naming::check_dns_label(cx, CONTAINER_CLAIM, &at.field("request"), request);
    }
    if !used.requests.insert((name, request)) {
        let key = format!("{name}/{request}");
        cx.report(CONTAINER_CLAIM, at).duplicate(BadValue::str(&key), "");
    }
}

/// Maximum number of names that a message lists. Upstream lists all, but a hostile pod has a million of them.
const MAX_LISTED_NAMES: usize = 64;
/// Maximum length of a name that is listed.
const MAX_LISTED_NAME_BYTES: usize = 64;

/// Reports a reference to a claim that the pod does not have, and lists the existing ones.
fn report_unknown_claim(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, spec: PodClaims<'_>, name: &str) {
    let names = || spec.resource_claims().iter().map(PodClaim::name).filter(|name| !name.is_empty());
    let mut known: Vec<&str> =
        names().filter(|name| name.len() <= MAX_LISTED_NAME_BYTES).take(MAX_LISTED_NAMES).collect();
    known.sort_unstable();
    known.dedup();
    let detail = if names().next().is_none() {
        "must be one of the names in pod.spec.resourceClaims which is empty".to_owned()
    } else {
        format!("must be one of the names in pod.spec.resourceClaims: {}", known.join(", "))
    };
    cx.report(CONTAINER_CLAIM, at).not_found(name, detail).did_you_mean(&at.field("name"), name, &known);
}
