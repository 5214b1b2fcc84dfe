//! Every request that Tollgate sends to an API server, and the permission that it needs.
//!
//! Tests compare the ClusterRoles of the manifests and of the chart with this list, and the fake API server of the
//! tests rejects requests that are not in it. So a new kind of request must be added here first.

use std::sync::LazyLock;

use super::listed_kind::{
    ADMISSION_POLICIES, CLAIM_TEMPLATES, DEVICE_CLASSES, DEVICE_TAINT_RULES, JOBS, ListedKind, NAMESPACES,
    NODES, POD_DISRUPTION_BUDGETS, PODS, POLICY_KINDS, REPLICA_SETS, RESOURCE_CLAIMS, RESOURCE_SLICES,
    SNAPSHOT_KINDS, STATEFUL_SETS, WORKLOAD_KINDS,
};

/// A kind of request that Tollgate sends to an API server, and the flag or command that needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ApiCall {
    /// The flag or command that sends the request.
    pub needed_by: NeededBy,
    /// The resource or path that is requested.
    pub target: CallTarget,
    /// The RBAC verbs of the request.
    pub verbs: &'static [&'static str],
}

/// The flag or command that needs a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NeededBy {
    /// `--register`.
    Register,
    /// `--register-owner`.
    RegisterOwner,
    /// Any form of the flag `--cluster`, whatever it watches.
    Cluster,
    /// `--cluster=all`.
    ClusterState,
    /// `--policy-source` with `cluster`.
    PolicySource,
    /// The command `tollgate impact` without `--state`.
    Impact,
    /// The commands `tollgate audit` without `--state`, and `tollgate snapshot`.
    Audit,
    /// `tollgate snapshot`, in addition to what the audit lists. What is not permitted is left out of the snapshot.
    Snapshot,
    /// `tollgate drain` and `tollgate undrain`; `tollgate ui` lists and watches the same objects, and changes nothing.
    Drain,
    /// `tollgate drain --force-after`, in addition to what every drain needs.
    DrainForce,
}

/// The resource or path that is requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallTarget {
    /// Objects of an API group.
    Resource {
        /// API group; empty for the core group.
        group: &'static str,
        /// Plural name of the resource, such as `resourceslices`.
        resource: &'static str,
        /// Which objects of the resource are requested.
        names: ObjectNames,
    },
    /// A path that is not an object, for which a ClusterRole needs `nonResourceURLs`.
    Url(&'static str),
    /// A path that every authenticated client may request (ClusterRoles `system:discovery`,
    /// `system:public-info-viewer`, `system:basic-user`).
    PublicUrl(&'static str),
}

/// Which objects of a resource are requested: all, or those with certain names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectNames {
    /// All objects of the resource.
    All,
    /// The webhook configurations of `--register` and `--register-with`.
    Configurations,
    /// The ClusterRole of `--register-owner`.
    Owner,
    /// The Lease of `tollgate drain`, in the namespace of the manifests.
    DrainLease,
    /// The Lease of the replica that writes the status of policies, in the namespace of the manifests.
    PolicyLease,
}

/// Every kind of request that Tollgate sends to an API server, from which the ClusterRoles in the manifests are
/// checked.
pub static API_CALLS: LazyLock<Vec<ApiCall>> = LazyLock::new(|| {
    let of_kinds = KIND_CALLS.iter().flat_map(|(needed_by, verbs, kinds)| {
        kinds.iter().map(|kind| objects_call(*needed_by, kind.group, kind.resource, verbs))
    });
    of_kinds.chain(OTHER_CALLS).collect()
});

/// The kinds of objects that are listed or watched.
const KIND_CALLS: [(NeededBy, &[&str], &[ListedKind]); 11] = [
    (NeededBy::ClusterState, LIST_AND_WATCH, &IMPACT_KINDS),
    (NeededBy::PolicySource, LIST_AND_WATCH, &POLICY_KINDS),
    (NeededBy::Impact, LIST, &IMPACT_KINDS),
    // Where evicted pods go. What is not permitted is left out.
    (NeededBy::Impact, LIST, &[NODES, DEVICE_CLASSES, CLAIM_TEMPLATES, REPLICA_SETS, STATEFUL_SETS, JOBS]),
    // Among them APIs that are installed on their own; without them the group is not in the discovery.
    (NeededBy::Audit, LIST, &SNAPSHOT_KINDS),
    (NeededBy::Audit, LIST, &[ADMISSION_POLICIES]),
    // Policies that are custom resources, if their definitions are installed.
    (NeededBy::Audit, LIST, &POLICY_KINDS),
    (NeededBy::Snapshot, LIST, &[NODES]),
    (NeededBy::Snapshot, LIST, &WORKLOAD_KINDS),
    // What a drain watches. Kinds of the other APIs have no objects where they are not served.
    (NeededBy::Drain, LIST_AND_WATCH, &DRAIN_KINDS),
    (NeededBy::Drain, LIST_AND_WATCH, &WORKLOAD_KINDS),
];

/// The kinds of objects from which the impact of a rule is computed.
const IMPACT_KINDS: [ListedKind; 5] =
    [RESOURCE_SLICES, RESOURCE_CLAIMS, DEVICE_TAINT_RULES, PODS, POD_DISRUPTION_BUDGETS];

/// The kinds of objects that a drain watches besides workloads and the rules that it changes.
const DRAIN_KINDS: [ListedKind; 8] = [
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_SLICES,
    RESOURCE_CLAIMS,
    CLAIM_TEMPLATES,
    DEVICE_CLASSES,
    POD_DISRUPTION_BUDGETS,
];

/// All other requests.
const OTHER_CALLS: [ApiCall; 29] = [
    webhook_configurations_call("validatingwebhookconfigurations"),
    webhook_configurations_call("mutatingwebhookconfigurations"),
    ApiCall {
        needed_by: NeededBy::RegisterOwner,
        target: CallTarget::Resource {
            group: "rbac.authorization.k8s.io",
            resource: "clusterroles",
            names: ObjectNames::Owner,
        },
        verbs: GET,
    },
    discovery_call(NeededBy::Cluster, "/version"),
    // Discovery of the served versions.
    discovery_call(NeededBy::Cluster, "/apis/resource.k8s.io"),
    discovery_call(NeededBy::Cluster, "/apis/resource.k8s.io/*"),
    metrics_call(NeededBy::Cluster),
    // One that is younger than the watch is read by name.
    objects_call(NeededBy::Cluster, "", "namespaces", &["get", "list", "watch"]),
    // The only changes: one replica at a time, which holds the Lease, says whether the policies are in force.
    policy_status_call("tolerationpolicies/status"),
    policy_status_call("taintpolicies/status"),
    policy_status_call("taintrulepolicies/status"),
    policy_status_call("parameterpolicies/status"),
    lease_call(NeededBy::PolicySource, ObjectNames::PolicyLease),
    // Whether the CustomResourceDefinitions are being deleted.
    discovery_call(NeededBy::PolicySource, "/apis/tollgate.dev/v1alpha1"),
    metrics_call(NeededBy::Impact),
    metrics_call(NeededBy::Audit),
    discovery_call(NeededBy::Audit, "/apis/tollgate.dev/v1alpha1"),
    discovery_call(NeededBy::Audit, "/apis/apps.foundationdb.org"),
    discovery_call(NeededBy::Audit, "/apis/cdi.k8s.io"),
    discovery_call(NeededBy::Audit, "/apis/jobset.x-k8s.io"),
    discovery_call(NeededBy::Audit, "/apis/leaderworkerset.x-k8s.io"),
    discovery_call(NeededBy::Audit, "/apis/scheduling.k8s.io"),
    discovery_call(NeededBy::Audit, "/apis/scheduling.x-k8s.io"),
    metrics_call(NeededBy::Drain),
    // What a drain changes: its rules, the pods that leave, and the Lease that keeps others from draining.
    objects_call(
        NeededBy::Drain,
        "resource.k8s.io",
        "devicetaintrules",
        &["get", "list", "watch", "create", "update", "delete"],
    ),
    objects_call(NeededBy::Drain, "", "pods/eviction", &["create"]),
    lease_call(NeededBy::Drain, ObjectNames::DrainLease),
    ApiCall {
        needed_by: NeededBy::Drain,
        target: CallTarget::PublicUrl("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        verbs: &["create"],
    },
    objects_call(NeededBy::DrainForce, "", "pods", &["delete"]),
];

/// The RBAC verbs of a watch.
const LIST_AND_WATCH: &[&str] = &["list", "watch"];

/// The verbs of commands that read a resource once: they list it, and do not watch it.
const LIST: &[&str] = &["list"];

/// The verbs of a request that reads one object or path.
const GET: &[&str] = &["get"];

/// A request that changes the status of policies that are custom resources.
const fn policy_status_call(resource: &'static str) -> ApiCall {
    objects_call(NeededBy::PolicySource, "tollgate.dev", resource, &["patch"])
}

/// A request that reads or replaces a Lease that exists already.
const fn lease_call(needed_by: NeededBy, names: ObjectNames) -> ApiCall {
    let target = CallTarget::Resource { group: "coordination.k8s.io", resource: "leases", names };
    ApiCall { needed_by, target, verbs: &["get", "update"] }
}

/// A request that reads `/metrics`, which contains the feature gates of the API server.
const fn metrics_call(needed_by: NeededBy) -> ApiCall {
    ApiCall { needed_by, target: CallTarget::Url("/metrics"), verbs: GET }
}

/// A request that reads the release or the discovery of an API group.
const fn discovery_call(needed_by: NeededBy, path: &'static str) -> ApiCall {
    ApiCall { needed_by, target: CallTarget::PublicUrl(path), verbs: GET }
}

/// A request that writes webhook configurations, for `--register`. The verbs include `create`, which server-side apply
/// needs for an object that does not exist.
const fn webhook_configurations_call(resource: &'static str) -> ApiCall {
    let group = "admissionregistration.k8s.io";
    ApiCall {
        needed_by: NeededBy::Register,
        target: CallTarget::Resource { group, resource, names: ObjectNames::Configurations },
        verbs: &["list", "watch", "create", "patch"],
    }
}

/// A request with these verbs for all objects of a resource.
const fn objects_call(
    needed_by: NeededBy,
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
) -> ApiCall {
    let names = ObjectNames::All;
    ApiCall { needed_by, target: CallTarget::Resource { group, resource, names }, verbs }
}
