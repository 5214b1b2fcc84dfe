//! Every request that Tollgate sends to an API server, and the permission that it needs.
//!
//! Tests compare the ClusterRoles of the manifests and of the chart with this list, and the fake API server of the
//! tests rejects requests that are not in it. So a new kind of request must be added here first.

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
pub const API_CALLS: &[ApiCall] = &[
    webhook_configurations_call("validatingwebhookconfigurations"),
    webhook_configurations_call("mutatingwebhookconfigurations"),
    ApiCall {
        needed_by: NeededBy::RegisterOwner,
        target: CallTarget::Resource {
            group: "rbac.authorization.k8s.io",
            resource: "clusterroles",
            names: ObjectNames::Owner,
        },
        verbs: &["get"],
    },
    cluster_flag_url_call(CallTarget::PublicUrl("/version")),
    // Discovery of the served versions.
    cluster_flag_url_call(CallTarget::PublicUrl("/apis/resource.k8s.io")),
    cluster_flag_url_call(CallTarget::PublicUrl("/apis/resource.k8s.io/*")),
    // The feature gates of the API server.
    cluster_flag_url_call(CallTarget::Url("/metrics")),
    // One that is younger than the watch is read by name.
    objects_call(NeededBy::Cluster, "", "namespaces", &["get", "list", "watch"]),
    objects_call(NeededBy::ClusterState, "resource.k8s.io", "resourceslices", LIST_AND_WATCH),
    objects_call(NeededBy::ClusterState, "resource.k8s.io", "resourceclaims", LIST_AND_WATCH),
    objects_call(NeededBy::ClusterState, "resource.k8s.io", "devicetaintrules", LIST_AND_WATCH),
    objects_call(NeededBy::ClusterState, "", "pods", LIST_AND_WATCH),
    objects_call(NeededBy::ClusterState, "policy", "poddisruptionbudgets", LIST_AND_WATCH),
    tollgate_policies_call("tolerationpolicies", LIST_AND_WATCH),
    tollgate_policies_call("taintpolicies", LIST_AND_WATCH),
    tollgate_policies_call("taintrulepolicies", LIST_AND_WATCH),
    tollgate_policies_call("parameterpolicies", LIST_AND_WATCH),
    // The only changes: one replica at a time, which holds the Lease, says whether the policies are in force.
    tollgate_policies_call("tolerationpolicies/status", PATCH),
    tollgate_policies_call("taintpolicies/status", PATCH),
    tollgate_policies_call("taintrulepolicies/status", PATCH),
    tollgate_policies_call("parameterpolicies/status", PATCH),
    lease_call(NeededBy::PolicySource, ObjectNames::PolicyLease),
    // Whether the CustomResourceDefinitions are being deleted.
    ApiCall {
        needed_by: NeededBy::PolicySource,
        target: CallTarget::PublicUrl("/apis/tollgate.dev/v1alpha1"),
        verbs: &["get"],
    },
    metrics_call(NeededBy::Impact),
    objects_call(NeededBy::Impact, "resource.k8s.io", "resourceslices", LIST),
    objects_call(NeededBy::Impact, "resource.k8s.io", "resourceclaims", LIST),
    objects_call(NeededBy::Impact, "resource.k8s.io", "devicetaintrules", LIST),
    objects_call(NeededBy::Impact, "", "pods", LIST),
    objects_call(NeededBy::Impact, "policy", "poddisruptionbudgets", LIST),
    // Where evicted pods go. What is not permitted is left out.
    objects_call(NeededBy::Impact, "", "nodes", LIST),
    objects_call(NeededBy::Impact, "resource.k8s.io", "deviceclasses", LIST),
    objects_call(NeededBy::Impact, "resource.k8s.io", "resourceclaimtemplates", LIST),
    objects_call(NeededBy::Impact, "apps", "replicasets", LIST),
    objects_call(NeededBy::Impact, "apps", "statefulsets", LIST),
    objects_call(NeededBy::Impact, "batch", "jobs", LIST),
    metrics_call(NeededBy::Audit),
    objects_call(NeededBy::Audit, "resource.k8s.io", "resourceslices", LIST),
    objects_call(NeededBy::Audit, "resource.k8s.io", "resourceclaims", LIST),
    objects_call(NeededBy::Audit, "resource.k8s.io", "resourceclaimtemplates", LIST),
    objects_call(NeededBy::Audit, "resource.k8s.io", "deviceclasses", LIST),
    objects_call(NeededBy::Audit, "resource.k8s.io", "devicetaintrules", LIST),
    objects_call(NeededBy::Audit, "", "pods", LIST),
    objects_call(NeededBy::Audit, "", "namespaces", LIST),
    objects_call(NeededBy::Audit, "policy", "poddisruptionbudgets", LIST),
    objects_call(NeededBy::Audit, "admissionregistration.k8s.io", "validatingadmissionpolicies", LIST),
    // Policies that are custom resources, if their definitions are installed.
    audit_discovery_call("/apis/tollgate.dev/v1alpha1"),
    objects_call(NeededBy::Audit, "tollgate.dev", "tolerationpolicies", LIST),
    objects_call(NeededBy::Audit, "tollgate.dev", "taintpolicies", LIST),
    objects_call(NeededBy::Audit, "tollgate.dev", "taintrulepolicies", LIST),
    objects_call(NeededBy::Audit, "tollgate.dev", "parameterpolicies", LIST),
    // APIs that are installed on their own; without them the group is not in the discovery.
    audit_discovery_call("/apis/apps.foundationdb.org"),
    objects_call(NeededBy::Audit, "apps.foundationdb.org", "foundationdbclusters", LIST),
    audit_discovery_call("/apis/cdi.k8s.io"),
    objects_call(NeededBy::Audit, "cdi.k8s.io", "resourceclasses", LIST),
    objects_call(NeededBy::Audit, "cdi.k8s.io", "resourceclaims", LIST),
    // Nodes, and the workloads that pods belong to.
    objects_call(NeededBy::Snapshot, "", "nodes", LIST),
    objects_call(NeededBy::Snapshot, "apps", "replicasets", LIST),
    objects_call(NeededBy::Snapshot, "apps", "deployments", LIST),
    objects_call(NeededBy::Snapshot, "apps", "statefulsets", LIST),
    objects_call(NeededBy::Snapshot, "apps", "daemonsets", LIST),
    objects_call(NeededBy::Snapshot, "batch", "jobs", LIST),
    objects_call(NeededBy::Snapshot, "batch", "cronjobs", LIST),
    audit_discovery_call("/apis/jobset.x-k8s.io"),
    objects_call(NeededBy::Snapshot, "jobset.x-k8s.io", "jobsets", LIST),
    audit_discovery_call("/apis/leaderworkerset.x-k8s.io"),
    objects_call(NeededBy::Snapshot, "leaderworkerset.x-k8s.io", "leaderworkersets", LIST),
    audit_discovery_call("/apis/scheduling.k8s.io"),
    objects_call(NeededBy::Snapshot, "scheduling.k8s.io", "podgroups", LIST),
    audit_discovery_call("/apis/scheduling.x-k8s.io"),
    objects_call(NeededBy::Snapshot, "scheduling.x-k8s.io", "podgroups", LIST),
    // What a drain watches. Kinds of the other APIs have no objects where they are not served.
    metrics_call(NeededBy::Drain),
    objects_call(NeededBy::Drain, "", "namespaces", LIST_AND_WATCH),
    objects_call(NeededBy::Drain, "", "nodes", LIST_AND_WATCH),
    objects_call(NeededBy::Drain, "", "pods", LIST_AND_WATCH),
    objects_call(NeededBy::Drain, "resource.k8s.io", "resourceslices", LIST_AND_WATCH),
    objects_call(NeededBy::Drain, "resource.k8s.io", "resourceclaims", LIST_AND_WATCH),
    objects_call(NeededBy::Drain, "resource.k8s.io", "resourceclaimtemplates", LIST_AND_WATCH),
    objects_call(NeededBy::Drain, "resource.k8s.io", "deviceclasses", LIST_AND_WATCH),
    objects_call(NeededBy::Drain, "policy", "poddisruptionbudgets", LIST_AND_WATCH),
    objects_call(NeededBy::Drain, "apps", "replicasets", LIST_AND_WATCH),
    objects_call(NeededBy::Drain, "apps", "deployments", LIST_AND_WATCH),
    objects_call(NeededBy::Drain, "apps", "statefulsets", LIST_AND_WATCH),
    objects_call(NeededBy::Drain, "apps", "daemonsets", LIST_AND_WATCH),
    objects_call(NeededBy::Drain, "batch", "jobs", LIST_AND_WATCH),
    objects_call(NeededBy::Drain, "batch", "cronjobs", LIST_AND_WATCH),
    objects_call(NeededBy::Drain, "jobset.x-k8s.io", "jobsets", LIST_AND_WATCH),
    objects_call(NeededBy::Drain, "leaderworkerset.x-k8s.io", "leaderworkersets", LIST_AND_WATCH),
    objects_call(NeededBy::Drain, "scheduling.k8s.io", "podgroups", LIST_AND_WATCH),
    objects_call(NeededBy::Drain, "scheduling.x-k8s.io", "podgroups", LIST_AND_WATCH),
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

/// The RBAC verb of a request that changes some fields of an object.
const PATCH: &[&str] = &["patch"];

/// A request for policies that are custom resources.
const fn tollgate_policies_call(resource: &'static str, verbs: &'static [&'static str]) -> ApiCall {
    objects_call(NeededBy::PolicySource, "tollgate.dev", resource, verbs)
}

/// A request that reads or replaces a Lease that exists already.
const fn lease_call(needed_by: NeededBy, names: ObjectNames) -> ApiCall {
    let target = CallTarget::Resource { group: "coordination.k8s.io", resource: "leases", names };
    ApiCall { needed_by, target, verbs: &["get", "update"] }
}

/// A request that reads `/metrics`, which contains the feature gates of the API server.
const fn metrics_call(needed_by: NeededBy) -> ApiCall {
    ApiCall { needed_by, target: CallTarget::Url("/metrics"), verbs: &["get"] }
}

/// A request that reads the discovery of an API group, for `audit` and `snapshot`.
const fn audit_discovery_call(path: &'static str) -> ApiCall {
    ApiCall { needed_by: NeededBy::Audit, target: CallTarget::PublicUrl(path), verbs: &["get"] }
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

/// A request, for `--cluster`, that reads a path that is not an object.
const fn cluster_flag_url_call(target: CallTarget) -> ApiCall {
    ApiCall { needed_by: NeededBy::Cluster, target, verbs: &["get"] }
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
