//! The kinds of objects that commands list, each with its group, its versions and the size of a page.
//!
//! Nothing is requested here; `list` does that.

use super::watch::percent_encode;

/// A kind of object that Tollgate lists or watches, with its group, versions and page size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedKind {
    /// Name of the kind, such as `ResourceSlice`.
    pub kind: &'static str,
    /// API group, such as `resource.k8s.io`; empty for the core group.
    pub group: &'static str,
    /// Plural name of the resource, such as `resourceslices`.
    pub resource: &'static str,
    /// The API versions to try, the newest first: if one is not served (404), the next is tried.
    pub versions: &'static [&'static str],
    /// True if the objects are in namespaces.
    pub namespaced: bool,
    /// Number of objects per page of a list, if they are small.
    pub page: usize,
}

/// Number of objects per page for kinds with small objects, the same as in kubectl.
const PAGE_SIZE: usize = 500;
/// Number of ResourceSlices per page. A slice has up to 128 devices with their attributes.
const SLICE_PAGE: usize = 24;
/// Number of policies per page. A policy can have up to 256 KiB.
const POLICY_PAGE: usize = 100;

const DRA: &str = "resource.k8s.io";

/// A kind whose objects live in namespaces.
const fn namespaced_kind(
    group: &'static str,
    kind: &'static str,
    resource: &'static str,
    versions: &'static [&'static str],
) -> ListedKind {
    ListedKind { kind, group, resource, versions, namespaced: true, page: PAGE_SIZE }
}

/// A kind whose objects belong to the whole cluster.
const fn cluster_kind(
    group: &'static str,
    kind: &'static str,
    resource: &'static str,
    versions: &'static [&'static str],
) -> ListedKind {
    ListedKind { kind, group, resource, versions, namespaced: false, page: PAGE_SIZE }
}

/// ResourceSlices, in the versions that Tollgate reads.
pub const RESOURCE_SLICES: ListedKind = ListedKind {
    page: SLICE_PAGE,
    ..cluster_kind(DRA, "ResourceSlice", "resourceslices", &["v1", "v1beta2", "v1beta1"])
};
/// ResourceClaims, in the versions that Tollgate reads.
pub const RESOURCE_CLAIMS: ListedKind =
    namespaced_kind(DRA, "ResourceClaim", "resourceclaims", &["v1", "v1beta2", "v1beta1"]);
/// ResourceClaimTemplates.
pub const CLAIM_TEMPLATES: ListedKind =
    namespaced_kind(DRA, "ResourceClaimTemplate", "resourceclaimtemplates", &["v1", "v1beta2", "v1beta1"]);
/// DeviceClasses.
pub const DEVICE_CLASSES: ListedKind =
    cluster_kind(DRA, "DeviceClass", "deviceclasses", &["v1", "v1beta2", "v1beta1"]);
/// DeviceTaintRules.
pub const DEVICE_TAINT_RULES: ListedKind =
    cluster_kind(DRA, "DeviceTaintRule", "devicetaintrules", &["v1", "v1beta2", "v1alpha3"]);
/// Pods.
pub const PODS: ListedKind = namespaced_kind("", "Pod", "pods", &["v1"]);
/// PodDisruptionBudgets.
pub const POD_DISRUPTION_BUDGETS: ListedKind =
    namespaced_kind("policy", "PodDisruptionBudget", "poddisruptionbudgets", &["v1"]);
/// Namespaces.
pub const NAMESPACES: ListedKind = cluster_kind("", "Namespace", "namespaces", &["v1"]);
/// ValidatingAdmissionPolicies, among them exported policies.
pub const ADMISSION_POLICIES: ListedKind = cluster_kind(
    "admissionregistration.k8s.io",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
    &["v1"],
);
/// FoundationDBClusters, where their operator is installed.
pub const FOUNDATIONDB: ListedKind =
    namespaced_kind("apps.foundationdb.org", "FoundationDBCluster", "foundationdbclusters", &["v1beta2"]);
/// ResourceClasses of classic DRA (KEP-3063), where they are installed.
pub const CLASSIC_DRA_CLASSES: ListedKind =
    cluster_kind("cdi.k8s.io", "ResourceClass", "resourceclasses", &["v1alpha1"]);
/// ResourceClaims of classic DRA (KEP-3063), where they are installed.
pub const CLASSIC_DRA_CLAIMS: ListedKind =
    namespaced_kind("cdi.k8s.io", "ResourceClaim", "resourceclaims", &["v1alpha1"]);
/// Nodes.
pub const NODES: ListedKind = cluster_kind("", "Node", "nodes", &["v1"]);
/// ReplicaSets.
pub const REPLICA_SETS: ListedKind = namespaced_kind("apps", "ReplicaSet", "replicasets", &["v1"]);
/// Deployments.
pub const DEPLOYMENTS: ListedKind = namespaced_kind("apps", "Deployment", "deployments", &["v1"]);
/// StatefulSets.
pub const STATEFUL_SETS: ListedKind = namespaced_kind("apps", "StatefulSet", "statefulsets", &["v1"]);
/// DaemonSets.
pub const DAEMON_SETS: ListedKind = namespaced_kind("apps", "DaemonSet", "daemonsets", &["v1"]);
/// Jobs.
pub const JOBS: ListedKind = namespaced_kind("batch", "Job", "jobs", &["v1"]);
/// CronJobs.
pub const CRON_JOBS: ListedKind = namespaced_kind("batch", "CronJob", "cronjobs", &["v1"]);
/// JobSets, where their controller is installed.
pub const JOB_SETS: ListedKind = namespaced_kind("jobset.x-k8s.io", "JobSet", "jobsets", &["v1alpha2"]);
/// LeaderWorkerSets, where their controller is installed.
pub const LEADER_WORKER_SETS: ListedKind =
    namespaced_kind("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "leaderworkersets", &["v1"]);
/// PodGroups of the scheduler, where the API server serves them (Kubernetes 1.36 and later, behind a feature gate).
pub const POD_GROUPS: ListedKind =
    namespaced_kind("scheduling.k8s.io", "PodGroup", "podgroups", &["v1beta1", "v1alpha3", "v1alpha2"]);
/// PodGroups of the coscheduling plugin, where it is installed.
pub const COSCHEDULING_POD_GROUPS: ListedKind =
    namespaced_kind("scheduling.x-k8s.io", "PodGroup", "podgroups", &["v1alpha1"]);

/// The group of Tollgate's own resources.
pub(super) const POLICY_GROUP: &str = "tollgate.dev";
/// The only API version of Tollgate's own resources.
pub(super) const POLICY_VERSION: &str = "v1alpha1";

/// A kind of policy, as a custom resource.
const fn policy_kind(kind: &'static str, resource: &'static str) -> ListedKind {
    ListedKind { page: POLICY_PAGE, ..cluster_kind(POLICY_GROUP, kind, resource, &[POLICY_VERSION]) }
}

/// The kinds of policies, where their CustomResourceDefinitions are installed.
pub const POLICY_KINDS: [ListedKind; 4] = [
    policy_kind("TolerationPolicy", "tolerationpolicies"),
    policy_kind("TaintPolicy", "taintpolicies"),
    policy_kind("TaintRulePolicy", "taintrulepolicies"),
    policy_kind("ParameterPolicy", "parameterpolicies"),
];

/// The kinds of objects in a snapshot that impact, audit and policies read, in the order in which audit checks them.
/// Nodes and workloads follow them.
pub const SNAPSHOT_KINDS: [ListedKind; 11] = [
    NAMESPACES,
    DEVICE_CLASSES,
    CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    PODS,
    POD_DISRUPTION_BUDGETS,
    FOUNDATIONDB,
    CLASSIC_DRA_CLASSES,
    CLASSIC_DRA_CLAIMS,
    DEVICE_TAINT_RULES,
];

/// The workloads that pods belong to, for reports that name them and for forecasts.
pub const WORKLOAD_KINDS: [ListedKind; 10] = [
    REPLICA_SETS,
    DEPLOYMENTS,
    STATEFUL_SETS,
    DAEMON_SETS,
    JOBS,
    CRON_JOBS,
    JOB_SETS,
    LEADER_WORKER_SETS,
    POD_GROUPS,
    COSCHEDULING_POD_GROUPS,
];

impl ListedKind {
    /// Returns the `apiVersion` of a version of the kind: `resource.k8s.io/v1`.
    pub fn api_version(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }

    /// True for a kind of an API that not every cluster has, such as one that is installed separately: in a cluster
    /// without it, the group, or its version, does not exist.
    pub fn is_optional_api(&self) -> bool {
        !matches!(self.group, "" | "policy" | "apps" | "batch" | "admissionregistration.k8s.io" | DRA)
    }

    /// True for a kind that every API server serves (groups core and policy), so that a 404 comes from something else.
    pub(super) fn is_always_served(&self) -> bool {
        [PODS.group, POD_DISRUPTION_BUDGETS.group].contains(&self.group)
    }

    /// Returns the name of the resource as kubectl accepts it: `resourceclaims.cdi.k8s.io`, or `pods` in the core
    /// group.
    pub fn kubectl_resource_name(&self) -> String {
        if self.group.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }

    /// The path of the list of all objects in a version, in one namespace or in all.
    pub(super) fn list_path(&self, version: &str, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", self.group) };
        let resource = self.resource;
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => {
                format!("{root}/{version}/namespaces/{}/{resource}", percent_encode(namespace))
            }
            None => format!("{root}/{version}/{resource}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        CLASSIC_DRA_CLAIMS, FOUNDATIONDB, NAMESPACES, POD_DISRUPTION_BUDGETS, POD_GROUPS, PODS,
        RESOURCE_CLAIMS,
    };

    #[test]
    fn paths_are_those_of_the_api() {
        assert_eq!(RESOURCE_CLAIMS.list_path("v1", None), "/apis/resource.k8s.io/v1/resourceclaims");
        assert_eq!(PODS.list_path("v1", Some("ml")), "/api/v1/namespaces/ml/pods");
        assert_eq!(NAMESPACES.list_path("v1", Some("ml")), "/api/v1/namespaces", "has no namespace");
        assert_eq!(
            RESOURCE_CLAIMS.list_path("v1", Some("a/b")),
            "/apis/resource.k8s.io/v1/namespaces/a%2Fb/resourceclaims"
        );
        assert_eq!(
            (PODS.api_version("v1"), RESOURCE_CLAIMS.api_version("v1")),
            ("v1".into(), "resource.k8s.io/v1".into())
        );
        assert!(
            FOUNDATIONDB.is_optional_api()
                && POD_GROUPS.is_optional_api()
                && !RESOURCE_CLAIMS.is_optional_api()
        );
        assert!(
            PODS.is_always_served()
                && NAMESPACES.is_always_served()
                && POD_DISRUPTION_BUDGETS.is_always_served()
                && !RESOURCE_CLAIMS.is_always_served()
        );
        assert_eq!(
            [PODS.kubectl_resource_name(), CLASSIC_DRA_CLAIMS.kubectl_resource_name()],
            ["pods", "resourceclaims.cdi.k8s.io"]
        );
    }
}
