//! The fields of objects that a snapshot keeps. Fields are listed explicitly, so new fields of later releases are left
//! out.
//!
//! Specs of device objects are kept completely, because rules check all of their fields. Pods, budgets and statuses
//! keep only what impact, drains and the rules read; nodes, pods and workloads also keep what decides where a pod can
//! run ([`workload`]). Opaque parameters keep their apiVersion and kind, by which policies select them.
//!
//! Invariant: parameters and annotations are found by their place in a kind, not by their name: an attribute of a
//! device may be called `parameters` or `metadata`.

mod workload;

use crate::cluster::{
    CLAIM_TEMPLATES, CLASSIC_DRA_CLAIMS, CLASSIC_DRA_CLASSES, COSCHEDULING_POD_GROUPS, CRON_JOBS,
    DAEMON_SETS, DEPLOYMENTS, DEVICE_CLASSES, DEVICE_TAINT_RULES, FOUNDATIONDB, JOB_SETS, JOBS,
    LEADER_WORKER_SETS, ListedKind, NAMESPACES, NODES, POD_DISRUPTION_BUDGETS, POD_GROUPS, PODS,
    REPLICA_SETS, RESOURCE_CLAIMS, STATEFUL_SETS,
};
use tollgate_document::doc::{Builder, Doc, Span, Value, ValueKind};

/// Which parts of a value a snapshot keeps.
enum KeptParts {
    All,
    /// Of an object, the members that the text names, separated by spaces, and parts of those in the list.
    Fields(&'static str, &'static [(&'static str, KeptParts)]),
    /// All members of an object; the listed members keep only the given parts.
    AllBut(&'static [(&'static str, KeptParts)]),
    /// Every item of a list, with only these parts of each.
    Items(&'static KeptParts),
    /// The conditions of these types; their messages only if messages are kept.
    Conditions(&'static [&'static str]),
    /// The name of a volume and of its source, such as `persistentVolumeClaim`. Of what is in the source, only the
    /// medium of an emptyDir: data in memory does not keep a pod from being evicted.
    Volume,
    /// Opaque parameters: all of them with `--with-parameters`, else only their apiVersion and kind.
    Parameters,
    /// The annotations that Tollgate reads, and those of `--keep-annotation`.
    Annotations,
    /// A message, if messages are kept.
    Message,
}

use KeptParts::{All, AllBut, Annotations, Conditions, Fields, Items, Message, Parameters, Volume};

impl KeptParts {
    /// Returns which parts of the member with that name are kept; `None` if it is left out.
    fn of_member(&self, name: &str) -> Option<&KeptParts> {
        let (whole, parts) = match self {
            Fields(whole, parts) => (whole.split_ascii_whitespace().any(|kept| kept == name), parts),
            AllBut(parts) => (true, parts),
            _ => return None,
        };
        let listed = parts.iter().find(|(kept, _)| *kept == name).map(|(_, parts)| parts);
        listed.or(whole.then_some(&All))
    }
}

const METADATA: KeptParts = Fields(
    "name generateName namespace uid generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds labels \
     ownerReferences finalizers",
    &[("annotations", Annotations)],
);

const CLAIM_STATUS: KeptParts = Fields(
    "reservedFor phase driverName",
    &[
        ("allocation", Fields("nodeSelector allocationTimestamp", &[("devices", Fields("results", &[]))])),
        ("devices", Items(&DEVICE_STATUS)),
    ],
);

/// Fields of the status of an allocated device, which its driver writes: its conditions, which can be binding
/// conditions.
const DEVICE_STATUS: KeptParts =
    Fields("driver pool device shareID", &[("conditions", Items(&Fields("type status", &[])))]);

/// Fields of the metadata in a template. Rules check all of it, so only annotations are left out.
const TEMPLATE_METADATA: KeptParts = AllBut(&[("annotations", Annotations)]);
const DEVICE_CONFIG: KeptParts = Items(&AllBut(&[("opaque", AllBut(&[("parameters", Parameters)]))]));
const CLAIM_SPEC: KeptParts = AllBut(&[("devices", AllBut(&[("config", DEVICE_CONFIG)]))]);
const CLASSIC_CLAIM_SPEC: KeptParts = AllBut(&[("parameters", Parameters)]);

/// Kinds without parameters and status, such as slices.
const SPEC: KeptParts = Fields("spec", &[]);
/// DeviceTaintRules. Of the status only conditions are kept, without their messages, in which the eviction controller
/// counts devices and pods.
const RULE: KeptParts = Fields("spec", &[("status", Fields("", &[("conditions", Items(&RULE_CONDITION))]))]);
const RULE_CONDITION: KeptParts =
    Fields("type status observedGeneration lastTransitionTime reason", &[("message", Message)]);
const CLAIM: KeptParts = Fields("", &[("spec", CLAIM_SPEC), ("status", CLAIM_STATUS)]);
const TEMPLATE: KeptParts =
    Fields("", &[("spec", AllBut(&[("metadata", TEMPLATE_METADATA), ("spec", CLAIM_SPEC)]))]);
const CLASS: KeptParts = Fields("", &[("spec", AllBut(&[("config", DEVICE_CONFIG)]))]);

const CLASSIC_CLAIM: KeptParts = Fields("", &[("spec", CLASSIC_CLAIM_SPEC), ("status", CLAIM_STATUS)]);
/// Fields of a ResourceClass, which has no spec.
const CLASSIC_CLASS: KeptParts = Fields("driverName", &[("parameters", Parameters)]);
/// Parts of a claim template in a pod of classic DRA, which has the fields of its spec in `spec` or in place of
/// it.
const CLASSIC_TEMPLATE: KeptParts =
    AllBut(&[("metadata", TEMPLATE_METADATA), ("spec", CLASSIC_CLAIM_SPEC), ("parameters", Parameters)]);

const POD_CLAIMS: KeptParts = Items(&AllBut(&[("template", CLASSIC_TEMPLATE)]));

const BUDGET: KeptParts = Fields(
    "",
    &[
        ("spec", Fields("selector minAvailable maxUnavailable unhealthyPodEvictionPolicy", &[])),
        (
            "status",
            Fields(
                "observedGeneration disruptedPods disruptionsAllowed currentHealthy desiredHealthy expectedPods",
                &[("conditions", Conditions(&["DisruptionAllowed"]))],
            ),
        ),
    ],
);

const NAMESPACE: KeptParts = Fields("", &[]);

const FOUNDATIONDB_CLUSTER: KeptParts = Fields("", &[("spec", FOUNDATIONDB_SPEC)]);
const FOUNDATIONDB_SPEC: KeptParts = Fields(
    "automaticReplacementOptions",
    &[("automationOptions", Fields("replacements automaticReplacementOptions", &[]))],
);

/// Annotations that say whether a pod may be evicted, that it is a mirror of a static pod, and what its controller does
/// after an eviction.
const EVICTION_ANNOTATIONS: [&str; 5] = [
    "kubernetes.io/config.mirror",
    "karpenter.sh/do-not-disrupt",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "batch.kubernetes.io/job-index-failure-count",
    "deprecated.daemonset.template.generation",
];

/// The flags that add optional fields to a snapshot.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::cli) struct OptionalFields<'a> {
    /// True if opaque parameters are kept.
    pub(in crate::cli) with_parameters: bool,
    /// Names of annotations to keep, besides those that Tollgate reads.
    pub(in crate::cli) annotations: &'a [String],
    /// True if the messages in conditions of DeviceTaintRules and pods are kept.
    pub(in crate::cli) with_messages: bool,
}

impl OptionalFields<'_> {
    /// For reports about a running cluster, in which an API server's words are shown and nothing is stored.
    pub(in crate::cli) const WITH_MESSAGES: OptionalFields<'static> =
        OptionalFields { with_parameters: false, annotations: &[], with_messages: true };
}

/// Returns the object without the fields that a snapshot leaves out.
pub(in crate::cli) fn keep_needed_fields<'d>(
    kind: &ListedKind,
    object: Value<'d>,
    projection: OptionalFields<'_>,
) -> Doc<'d> {
    let keep = match *kind {
        PODS => &workload::POD,
        NODES => &workload::NODE,
        REPLICA_SETS | DEPLOYMENTS | STATEFUL_SETS | DAEMON_SETS | JOBS => &workload::CONTROLLER,
        CRON_JOBS => &workload::CRON_JOB,
        JOB_SETS => &workload::JOB_SET,
        LEADER_WORKER_SETS => &workload::LEADER_WORKER_SET,
        POD_GROUPS | COSCHEDULING_POD_GROUPS => &workload::POD_GROUP,
        POD_DISRUPTION_BUDGETS => &BUDGET,
        NAMESPACES => &NAMESPACE,
        FOUNDATIONDB => &FOUNDATIONDB_CLUSTER,
        RESOURCE_CLAIMS => &CLAIM,
        CLAIM_TEMPLATES => &TEMPLATE,
        DEVICE_CLASSES => &CLASS,
        DEVICE_TAINT_RULES => &RULE,
        CLASSIC_DRA_CLAIMS => &CLASSIC_CLAIM,
        CLASSIC_DRA_CLASSES => &CLASSIC_CLASS,
        _ => &SPEC,
    };
    let mut out = Builder::with_capacity(object.doc().source(), object.doc().syntax(), object.node_count());
    let of_member = |key: &str| if key == "metadata" { Some(&METADATA) } else { keep.of_member(key) };
    if object.kind() == ValueKind::Object {
        copy_members(&mut out, object, &of_member, projection);
    } else {
        copy_kept(&mut out, object, keep, projection);
    }
    out.finish()
}

/// Copies the parts of a value that `keep` names. Recursion is limited by the depth of `keep`, which is fixed.
fn copy_kept(out: &mut Builder<'_>, value: Value<'_>, keep: &KeptParts, projection: OptionalFields<'_>) {
    match (keep, value.kind()) {
        (Fields(..) | AllBut(_), ValueKind::Object) => {
            copy_members(out, value, &|key| keep.of_member(key), projection);
        }
        (Items(keep), ValueKind::Array) => {
            out.open(ValueKind::Array, value.span());
            value.items().for_each(|item| copy_kept(out, item, keep, projection));
            out.close(value.span().end);
        }
        (Conditions(types), ValueKind::Array) => {
            out.open(ValueKind::Array, value.span());
            let is_kept = |item: &Value<'_>| types.iter().any(|kind| item.get("type").text_is(kind));
            value.items().filter(is_kept).for_each(|item| copy_kept(out, item, &CONDITION, projection));
            out.close(value.span().end);
        }
        (Volume, ValueKind::Object) => {
            let of_source = |key: &str| match key {
                "name" => &All,
                "emptyDir" => &Fields("medium", &[]),
                _ => &Fields("", &[]),
            };
            copy_members(out, value, &|key| Some(of_source(key)), projection)
        }
        (Parameters, _) if projection.with_parameters => out.copy(value),
        (Parameters, ValueKind::Object) => copy_kept(out, value, &API_VERSION_AND_KIND, projection),
        (Annotations, ValueKind::Object) => {
            let is_kept = |key: &str| {
                let domain = key.split('/').next().unwrap_or_default();
                ["resource.kubernetes.io", "tollgate.dev"].contains(&domain)
                    || EVICTION_ANNOTATIONS.contains(&key)
                    || projection.annotations.iter().any(|name| name == key)
            };
            copy_members(out, value, &|key| is_kept(key).then_some(&All), projection);
        }
        (All | Message, _) => out.copy(value),
        // A value of another type than expected is what a rule will report: it is kept if it cannot contain anything.
        (_, ValueKind::Array | ValueKind::Object | ValueKind::String) => {
            out.write_constant(ValueKind::Null, Span::default(), "null");
        }
        _ => out.copy(value),
    }
}

/// Fields of opaque parameters that are kept: their type, but not their contents.
const API_VERSION_AND_KIND: KeptParts = Fields("apiVersion kind", &[]);

/// Fields of a condition that are kept.
const CONDITION: KeptParts = Fields("type status reason lastTransitionTime", &[("message", Message)]);

/// Copies the members of an object for which `keep` returns something.
fn copy_members<'k>(
    out: &mut Builder<'_>,
    value: Value<'_>,
    keep: &dyn Fn(&str) -> Option<&'k KeptParts>,
    projection: OptionalFields<'_>,
) {
    out.open(ValueKind::Object, value.span());
    for (key, member) in value.members() {
        let keep = keep(key.text()).filter(|keep| projection.with_messages || !matches!(keep, Message));
        if let Some(keep) = keep {
            out.copy(key);
            copy_kept(out, member, keep, projection);
        }
    }
    out.close(value.span().end);
}

#[cfg(test)]
mod tests {
    use super::{OptionalFields, keep_needed_fields};
    use crate::cluster::{
        CLAIM_TEMPLATES, CLASSIC_DRA_CLAIMS, CLASSIC_DRA_CLASSES, DEVICE_CLASSES, DEVICE_TAINT_RULES,
        ListedKind, POD_DISRUPTION_BUDGETS, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES,
    };
    use tollgate_document::doc;

    fn kept(kind: &ListedKind, object: &str, with_parameters: bool) -> String {
        let annotations = ["example.com/ticket".to_owned()];
        let projection = OptionalFields { with_parameters, annotations: &annotations, with_messages: false };
        keep_needed_fields(kind, doc::parse(object).expect("JSON").root(), projection).root().to_json()
    }

    #[test]
    fn secrets_of_a_pod_stay_behind() {
        let pod = r#"{"metadata":{"name":"p","namespace":"a","uid":"u","managedFields":[{"manager":"m"}],
            "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"TOKEN","example.com/ticket":"7","resource.kubernetes.io/x":"y","karpenter.sh/do-not-disrupt":"true"}},
            "spec":{"nodeName":"n","serviceAccountName":"s","volumes":[{"name":"v","secret":{"secretName":"TOKEN"}},
            {"name":"m","emptyDir":{"medium":"Memory","sizeLimit":"1Gi"}}],
            "containers":[{"name":"c","image":"i","command":["TOKEN"],"args":["TOKEN"],"env":[{"name":"A","value":"TOKEN"}],
            "resources":{"claims":[{"name":"gpu"}],"limits":{"cpu":"1"}}}],"resourceClaims":[{"name":"gpu","resourceClaimName":"c"}]},
            "status":{"phase":"Running","message":"TOKEN","conditions":[{"type":"Initialized","message":"TOKEN"},{"type":"Ready",
            "status":"True","message":"TOKEN"}],"resourceClaimStatuses":[{"name":"gpu"}]}}"#;
        assert_eq!(
            kept(&PODS, pod, true),
            r#"{"metadata":{"annotations":{"example.com/ticket":"7","karpenter.sh/do-not-disrupt":"true","resource.kubernetes.io/x":"y"},"name":"p","namespace":"a","uid":"u"},"spec":{"containers":[{"name":"c","resources":{"claims":[{"name":"gpu"}],"limits":{"cpu":"1"}}}],"nodeName":"n","resourceClaims":[{"name":"gpu","resourceClaimName":"c"}],"volumes":[{"name":"v","secret":{}},{"emptyDir":{"medium":"Memory"},"name":"m"}]},"status":{"conditions":[{"status":"True","type":"Ready"}],"phase":"Running","resourceClaimStatuses":[{"name":"gpu"}]}}"#
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
            "devices":[{"data":"TOKEN","conditions":[{"type":"T","message":"TOKEN"}]}],"reservedFor":[{"uid":"u"}]}}"#;
        let without = kept(&RESOURCE_CLAIMS, claim, false);
        assert_eq!(
            without,
            r#"{"metadata":{"name":"c"},"spec":{"devices":{"config":[{"opaque":{"driver":"d","parameters":{"apiVersion":"x/v1","kind":"K"}}}],"requests":[{"name":"r"}]}},"status":{"allocation":{"devices":{"results":[{"device":"d"}]},"nodeSelector":{}},"devices":[{"conditions":[{"type":"T"}]}],"reservedFor":[{"uid":"u"}]}}"#
        );
        let with = kept(&RESOURCE_CLAIMS, claim, true);
        assert!(with.contains(r#""password":"TOKEN""#) && !with.contains(r#""data""#), "{with}");
    }

    /// A drain waits for the condition of the controller, and compares the counts in its message.
    #[test]
    fn the_status_of_rules_and_budgets_is_kept() {
        let condition = r#"{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"3 published devices selected.","observedGeneration":2,"reason":"NoEffect","status":"False","type":"EvictionInProgress"}"#;
        let rule = format!(
            r#"{{"metadata":{{"annotations":{{"tollgate.dev/reason":"r"}},"generation":2,"name":"r"}},"spec":{{"taint":{{"key":"k"}}}},"status":{{"conditions":[{condition}]}}}}"#
        );
        let projection = OptionalFields { with_parameters: false, annotations: &[], with_messages: true };
        let parsed = doc::parse(&rule).expect("JSON");
        assert_eq!(keep_needed_fields(&DEVICE_TAINT_RULES, parsed.root(), projection).root().to_json(), rule);
        let message = r#""message":"3 published devices selected.","#;
        assert_eq!(
            kept(&DEVICE_TAINT_RULES, &rule, false),
            rule.replace(message, ""),
            "a snapshot has no messages"
        );
        let budget = r#"{"metadata":{"generation":1,"name":"b"},"spec":{"minAvailable":1,"unhealthyPodEvictionPolicy":"AlwaysAllow"},"status":{"currentHealthy":2,"desiredHealthy":1,"disruptedPods":{"p":"2026-01-01T00:00:00Z"},"disruptionsAllowed":1,"expectedPods":2,"observedGeneration":1}}"#;
        assert_eq!(kept(&POD_DISRUPTION_BUDGETS, budget, false), budget);
    }

    #[test]
    fn parameters_and_annotations_are_found_in_every_kind() {
        const RAW: &str = r#"{"kind":"K","password":"TOKEN"}"#;
        let meta = r#"{"annotations":{"a":"TOKEN","example.com/ticket":"7"},"labels":{"l":"m"}}"#;
        let config = format!(r#"[{{"opaque":{{"driver":"d","parameters":{RAW}}}}}]"#);
        let devices = format!(r#"{{"devices":{{"config":{config},"requests":[{{"name":"parameters"}}]}}}}"#);
        let spec = format!(r#"{{"metadata":{meta},"spec":{{"parameters":{RAW}}},"parameters":{RAW}}}"#);
        for (kind, object) in [
            (
                &CLAIM_TEMPLATES,
                format!(r#"{{"metadata":{meta},"spec":{{"metadata":{meta},"spec":{devices}}}}}"#),
            ),
            (&RESOURCE_CLAIMS, format!(r#"{{"metadata":{meta},"spec":{devices}}}"#)),
            (&DEVICE_CLASSES, format!(r#"{{"metadata":{meta},"spec":{{"config":{config}}}}}"#)),
            (&CLASSIC_DRA_CLASSES, format!(r#"{{"metadata":{meta},"driverName":"d","parameters":{RAW}}}"#)),
            (&CLASSIC_DRA_CLAIMS, format!(r#"{{"metadata":{meta},"spec":{{"parameters":{RAW}}}}}"#)),
            (&PODS, format!(r#"{{"metadata":{meta},"spec":{{"resourceClaims":[{{"template":{spec}}}]}}}}"#)),
        ] {
            let of = |text: &str| kept(kind, text, false);
            let (found, whole) = (of(&object), object.replace(r#","password":"TOKEN""#, ""));
            assert!(!found.contains("TOKEN"), "{}: {found}", kind.resource);
            // Nothing else is missing.
            assert_eq!(found, of(&whole.replace(r#""a":"TOKEN","#, "")), "{}", kind.resource);
            assert!(found.matches(r#""kind":"K""#).count() == object.matches(RAW).count(), "{found}");
            assert!(found.matches(r#"ticket":"7""#).count() == object.matches(meta).count(), "{found}");
        }
    }

    #[test]
    fn attributes_may_have_any_name() {
        let slice = r#"{"metadata":{"name":"s"},"spec":{"devices":[{"attributes":{"metadata":{"string":"m"},"parameters":{"string":"p"}},"capacity":{"parameters":{"value":"1"}},"name":"d"}]}}"#;
        assert_eq!(kept(&RESOURCE_SLICES, slice, false), slice);
        let claim = r#"{"metadata":{"name":"c"},"spec":{"devices":{"requests":[{"exactly":{"capacity":{"requests":{"parameters":"1Gi"}}},"name":"r"}]}}}"#;
        assert_eq!(kept(&RESOURCE_CLAIMS, claim, false), claim);
    }
}
