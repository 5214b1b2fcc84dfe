//! What a snapshot keeps of an object: a list of what is kept, so that whatever a release adds is left out.
//!
//! Specs of device objects are kept whole, because rules judge them whole; of pods, budgets and statuses only what impact
//! and the rules read. Opaque parameters keep their apiVersion and kind, by which policies select.

use crate::cluster::{BUDGETS, FOUNDATIONDB, ListedKind, NAMESPACES, PODS};
use crate::doc::{Builder, Doc, Span, Value, ValueKind};

/// What is kept of a value.
enum Keep {
    All,
    /// These members of an object.
    Fields(&'static [(&'static str, Keep)]),
    /// The same of every item of a list.
    Items(&'static Keep),
    /// All of it, but opaque parameters only as far as their type, at any depth.
    WithoutParameters,
    /// The annotations that were asked for.
    Annotations,
}

use Keep::{All, Annotations, Fields, Items, WithoutParameters};

const METADATA: Keep = Fields(&[
    ("name", All),
    ("generateName", All),
    ("namespace", All),
    ("uid", All),
    ("generation", All),
    ("creationTimestamp", All),
    ("deletionTimestamp", All),
    ("labels", All),
    ("annotations", Annotations),
    ("ownerReferences", All),
    ("finalizers", All),
]);

/// Kinds of resource.k8s.io and cdi.k8s.io.
const DEVICE_OBJECT: Keep = Fields(&[
    ("metadata", METADATA),
    ("spec", WithoutParameters),
    // ResourceClasses of cdi.k8s.io have no spec.
    ("driverName", All),
    ("parameters", WithoutParameters),
    (
        "status",
        Fields(&[
            ("allocation", Fields(&[("devices", Fields(&[("results", All)]))])),
            ("reservedFor", All),
            ("phase", All),
            ("driverName", All),
        ]),
    ),
]);

const CONTAINERS: Keep = Items(&Fields(&[("name", All), ("resources", Fields(&[("claims", All)]))]));

const POD: Keep = Fields(&[
    ("metadata", METADATA),
    (
        "spec",
        Fields(&[
            ("nodeName", All),
            ("resourceClaims", WithoutParameters),
            ("schedulingGroup", All),
            ("initContainers", CONTAINERS),
            ("containers", CONTAINERS),
            ("ephemeralContainers", CONTAINERS),
        ]),
    ),
    (
        "status",
        Fields(&[("phase", All), ("resourceClaimStatuses", All), ("extendedResourceClaimStatus", All)]),
    ),
]);

const BUDGET: Keep = Fields(&[
    ("metadata", METADATA),
    ("spec", Fields(&[("selector", All), ("minAvailable", All), ("maxUnavailable", All)])),
    ("status", Fields(&[("disruptionsAllowed", All)])),
]);

const NAMESPACE: Keep = Fields(&[("metadata", METADATA)]);

const FOUNDATIONDB_CLUSTER: Keep = Fields(&[
    ("metadata", METADATA),
    (
        "spec",
        Fields(&[
            ("automationOptions", Fields(&[("replacements", All), ("automaticReplacementOptions", All)])),
            ("automaticReplacementOptions", All),
        ]),
    ),
]);

/// Nothing in these APIs is nested deeper; copying is recursive.
const MAX_DEPTH: usize = 64;

/// What flags ask for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Projection<'a> {
    /// Opaque parameters are kept.
    pub(super) with_parameters: bool,
    /// Annotations that are kept.
    pub(super) annotations: &'a [String],
}

/// What is kept of an object of that kind.
pub(super) fn project<'d>(kind: &ListedKind, object: Value<'d>, projection: Projection<'_>) -> Doc<'d> {
    let keep = match kind.resource {
        resource if resource == PODS.resource => &POD,
        resource if resource == BUDGETS.resource => &BUDGET,
        resource if resource == NAMESPACES.resource => &NAMESPACE,
        resource if resource == FOUNDATIONDB.resource => &FOUNDATIONDB_CLUSTER,
        _ => &DEVICE_OBJECT,
    };
    let mut out = Builder::with_capacity(object.doc().source(), object.doc().syntax(), object.size());
    copy(&mut out, object, keep, projection, 0);
    out.finish()
}

fn copy(out: &mut Builder<'_>, value: Value<'_>, keep: &Keep, projection: Projection<'_>, depth: usize) {
    match (keep, value.kind()) {
        _ if depth > MAX_DEPTH => out.fixed(ValueKind::Null, Span::default(), "null"),
        (Fields(fields), ValueKind::Object) => members(
            out,
            value,
            &|key| fields.iter().find(|(name, _)| *name == key).map(|(_, keep)| keep),
            projection,
            depth,
        ),
        (Items(keep), ValueKind::Array) => {
            out.open(ValueKind::Array, value.span());
            value.items().for_each(|item| copy(out, item, keep, projection, depth + 1));
            out.close(value.span().end);
        }
        (WithoutParameters, ValueKind::Array) => {
            out.open(ValueKind::Array, value.span());
            value.items().for_each(|item| copy(out, item, keep, projection, depth + 1));
            out.close(value.span().end);
        }
        (WithoutParameters, ValueKind::Object) if !projection.with_parameters => {
            members(
                out,
                value,
                &|key| if key == "parameters" { Some(&TYPE_ONLY) } else { Some(&WithoutParameters) },
                projection,
                depth,
            );
        }
        (Annotations, ValueKind::Object) => {
            let is_kept = |key: &str| {
                let domain = key.split('/').next().unwrap_or_default();
                ["resource.kubernetes.io", "tollgate.dev"].contains(&domain)
                    || projection.annotations.iter().any(|name| name == key)
            };
            members(out, value, &|key| is_kept(key).then_some(&All), projection, depth);
        }
        // A value of another type than expected is what a rule will report: it is kept if it cannot contain anything.
        (Fields(_) | Items(_) | Annotations, ValueKind::Array | ValueKind::Object | ValueKind::String) => {
            out.fixed(ValueKind::Null, Span::default(), "null");
        }
        _ => out.copy(value),
    }
}

/// What is kept of opaque parameters.
const TYPE_ONLY: Keep = Fields(&[("apiVersion", All), ("kind", All)]);

fn members<'k>(
    out: &mut Builder<'_>,
    value: Value<'_>,
    keep: &dyn Fn(&str) -> Option<&'k Keep>,
    projection: Projection<'_>,
    depth: usize,
) {
    out.open(ValueKind::Object, value.span());
    for (key, member) in value.members() {
        if let Some(keep) = keep(key.text()) {
            out.copy(key);
            copy(out, member, keep, projection, depth + 1);
        }
    }
    out.close(value.span().end);
}

#[cfg(test)]
mod tests {
    use super::{Projection, project};
    use crate::cluster::{CLAIMS, ListedKind, PODS};
    use crate::doc;

    fn kept(kind: &ListedKind, object: &str, with_parameters: bool) -> String {
        let annotations = ["example.com/ticket".to_owned()];
        let projection = Projection { with_parameters, annotations: &annotations };
        project(kind, doc::parse(object).expect("JSON").root(), projection).root().to_json()
    }

    #[test]
    fn secrets_of_a_pod_stay_behind() {
        let pod = r#"{"metadata":{"name":"p","namespace":"a","uid":"u","managedFields":[{"manager":"m"}],
            "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"TOKEN","example.com/ticket":"7","resource.kubernetes.io/x":"y"}},
            "spec":{"nodeName":"n","serviceAccountName":"s","volumes":[{"secret":{"secretName":"TOKEN"}}],
            "containers":[{"name":"c","image":"i","command":["TOKEN"],"args":["TOKEN"],"env":[{"name":"A","value":"TOKEN"}],
            "resources":{"claims":[{"name":"gpu"}],"limits":{"cpu":"1"}}}],"resourceClaims":[{"name":"gpu","resourceClaimName":"c"}]},
            "status":{"phase":"Running","message":"TOKEN","conditions":[{"message":"TOKEN"}],"resourceClaimStatuses":[{"name":"gpu"}]}}"#;
        assert_eq!(
            kept(&PODS, pod, true),
            r#"{"metadata":{"annotations":{"example.com/ticket":"7","resource.kubernetes.io/x":"y"},"name":"p","namespace":"a","uid":"u"},"spec":{"containers":[{"name":"c","resources":{"claims":[{"name":"gpu"}]}}],"nodeName":"n","resourceClaims":[{"name":"gpu","resourceClaimName":"c"}]},"status":{"phase":"Running","resourceClaimStatuses":[{"name":"gpu"}]}}"#
        );
        assert_eq!(
            kept(&PODS, r#"{"metadata":"TOKEN","spec":{"containers":"TOKEN"}}"#, true),
            r#"{"metadata":null,"spec":{"containers":null}}"#
        );
    }

    #[test]
    fn parameters_keep_their_type() {
        let claim = r#"{"metadata":{"name":"c"},"spec":{"devices":{"config":[{"opaque":{"driver":"d","parameters":
            {"apiVersion":"x/v1","kind":"K","password":"TOKEN"}}}],"requests":[{"name":"r"}]}},
            "status":{"allocation":{"devices":{"config":[{"opaque":"TOKEN"}],"results":[{"device":"d"}]},"nodeSelector":{}},
            "devices":[{"data":"TOKEN"}],"reservedFor":[{"uid":"u"}]}}"#;
        let without = kept(&CLAIMS, claim, false);
        assert_eq!(
            without,
            r#"{"metadata":{"name":"c"},"spec":{"devices":{"config":[{"opaque":{"driver":"d","parameters":{"apiVersion":"x/v1","kind":"K"}}}],"requests":[{"name":"r"}]}},"status":{"allocation":{"devices":{"results":[{"device":"d"}]}},"reservedFor":[{"uid":"u"}]}}"#
        );
        let with = kept(&CLAIMS, claim, true);
        assert!(with.contains(r#""password":"TOKEN""#) && !with.contains(r#""data""#), "{with}");
    }
}
