//! Kinds that Tollgate checks, and API versions: names, groups, scopes. Profiles define which of them are served.
//!
//! Kinds outside of `resource.k8s.io` have one version and are checked the same way in all profiles.

use super::Availability;

tollgate_formats::named_enum! {
    /// API versions of `resource.k8s.io`, oldest first, with their names in `apiVersion`.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Version {
        /// v1alpha1 (cdi.k8s.io)
        V1alpha1 = "v1alpha1",
        /// v1alpha3
        V1alpha3 = "v1alpha3",
        /// v1beta1
        V1beta1 = "v1beta1",
        /// v1beta2
        V1beta2 = "v1beta2",
        /// v1
        V1 = "v1",
    }
}

impl Version {
    /// The version with that name; `None` if it is unknown.
    pub fn parse(name: &str) -> Option<Version> {
        Version::ALL.into_iter().find(|version| version.name() == name)
    }

    /// True for v1alpha3 and v1beta1, in which devices are in `basic` and requests are flat; not for v1alpha1.
    pub fn is_v1alpha3_or_v1beta1(self) -> bool {
        matches!(self, Version::V1alpha3 | Version::V1beta1)
    }
}

/// Declares the kinds from a table of their names, their resources and their groups.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident: $name:literal, $resource:literal, $group:expr;)*) => {
        /// Kinds of objects that Tollgate checks.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum ApiKind { $($(#[$doc])* $kind,)* }

        impl ApiKind {
            /// All kinds of objects that Tollgate checks.
            pub const ALL: [ApiKind; [$($name),*].len()] = [$(ApiKind::$kind),*];

            /// The kind's name, its resource and its group.
            fn names(self) -> (&'static str, &'static str, &'static str) {
                match self { $(ApiKind::$kind => ($name, $resource, $group),)* }
            }
        }
    };
}

kinds! {
    /// ResourceSlice
    ResourceSlice: "ResourceSlice", "resourceslices", DRA_GROUP;
    /// ResourceClaim
    ResourceClaim: "ResourceClaim", "resourceclaims", DRA_GROUP;
    /// ResourceClaimTemplate
    ResourceClaimTemplate: "ResourceClaimTemplate", "resourceclaimtemplates", DRA_GROUP;
    /// DeviceTaintRule
    DeviceTaintRule: "DeviceTaintRule", "devicetaintrules", DRA_GROUP;
    /// DeviceClass
    DeviceClass: "DeviceClass", "deviceclasses", DRA_GROUP;
    /// ResourceSlicePatch (draft r1)
    ResourceSlicePatch: "ResourceSlicePatch", "resourceslicepatches", DRA_GROUP;
    /// ResourceClass of cdi.k8s.io (KEP-3063)
    ClassicClass: "ResourceClass", "resourceclasses", CLASSIC_GROUP;
    /// ResourceClaim of cdi.k8s.io (KEP-3063)
    ClassicClaim: "ResourceClaim", "resourceclaims", CLASSIC_GROUP;
    /// Pod
    Pod: "Pod", "pods", "";
    /// Deployment
    Deployment: "Deployment", "deployments", "apps";
    /// StatefulSet
    StatefulSet: "StatefulSet", "statefulsets", "apps";
    /// DaemonSet
    DaemonSet: "DaemonSet", "daemonsets", "apps";
    /// ReplicaSet
    ReplicaSet: "ReplicaSet", "replicasets", "apps";
    /// Job
    Job: "Job", "jobs", "batch";
    /// CronJob
    CronJob: "CronJob", "cronjobs", "batch";
    /// FoundationDBCluster
    FoundationDbCluster: "FoundationDBCluster", "foundationdbclusters", "apps.foundationdb.org";
}

/// Kinds of classic DRA, which `resource.k8s.io` had before Kubernetes 1.32, and what to do about each.
pub const FORMER_KINDS: &[(&str, &str)] = &[
    ("ResourceClass", "use a DeviceClass instead"),
    ("ResourceClassParameters", "use `spec.config` of a DeviceClass instead"),
    ("ResourceClaimParameters", "use `spec.devices.config` of the claim instead"),
    ("PodSchedulingContext", "remove it, because the scheduler allocates devices itself"),
    ("PodScheduling", "remove it, because the scheduler allocates devices itself"),
];

/// Versions of `resource.k8s.io` that had only classic DRA, with the last release that served each.
pub const CLASSIC_VERSIONS: &[(&str, &str)] = &[("v1alpha1", "1.26"), ("v1alpha2", "1.30")];

const DRA_GROUP: &str = "resource.k8s.io";
const CLASSIC_GROUP: &str = "cdi.k8s.io";

impl ApiKind {
    /// The kind's name in objects, such as `ResourceSlice`.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// The name of its resource in URLs, such as `resourceslices`.
    pub fn resource(self) -> &'static str {
        self.names().1
    }

    /// API group, such as `resource.k8s.io`; empty for the core group.
    pub fn group(self) -> &'static str {
        self.names().2
    }

    /// The kind of `resource.k8s.io` with that name; case counts, as it does for the server.
    pub fn parse_dra_kind(name: &str) -> Option<ApiKind> {
        ApiKind::from_group_and_name(DRA_GROUP, name)
    }

    /// The kind with that name in a group; the core group has no name.
    pub fn from_group_and_name(group: &str, name: &str) -> Option<ApiKind> {
        ApiKind::ALL.into_iter().find(|kind| kind.name() == name && kind.group() == group)
    }

    /// True if Tollgate checks every kind of the group: an unknown kind is a mistake, or newer than this version.
    pub fn is_fully_checked_group(group: &str) -> bool {
        [DRA_GROUP, CLASSIC_GROUP].contains(&group)
    }

    /// The only version in which every profile serves the kind, as a list of one; `None` where profiles differ.
    pub fn only_version_if_profile_independent(self) -> Option<&'static [Version]> {
        match self.group() {
            DRA_GROUP => None,
            CLASSIC_GROUP => Some(&[Version::V1alpha1]),
            "apps.foundationdb.org" => Some(&[Version::V1beta2]),
            _ => Some(&[Version::V1]),
        }
    }

    /// True if a CustomResourceDefinition defines the kind, so that API servers store its objects as they are sent.
    pub fn is_custom_resource(self) -> bool {
        matches!(self.group(), CLASSIC_GROUP | "apps.foundationdb.org")
    }

    /// True if the kind exists only in a design document, so that no API server has ever checked such an object.
    pub fn is_of_drafts(self) -> bool {
        self.group() == CLASSIC_GROUP || self == ApiKind::ResourceSlicePatch
    }

    /// The releases that no longer have a version of the kind: what the API announces (`APILifecycleRemoved`), for
    /// releases to come as well.
    pub fn releases_without(self, version: Version) -> Availability {
        match (self, version) {
            (ApiKind::DeviceTaintRule, Version::V1alpha3) => Availability::since(39),
            (ApiKind::DeviceTaintRule, Version::V1beta2) => Availability::since(42),
            (_, Version::V1alpha3) if self.group() == DRA_GROUP => Availability::since(34),
            (_, Version::V1beta1) if self.group() == DRA_GROUP => Availability::since(38),
            (_, Version::V1beta2) if self.group() == DRA_GROUP => Availability::since(39),
            _ => Availability::NEVER,
        }
    }

    /// True if the schema covers the whole object, including its metadata.
    pub fn has_full_schema(self) -> bool {
        ApiKind::is_fully_checked_group(self.group())
    }

    /// True for pods and workloads with pod templates.
    pub fn has_pods(self) -> bool {
        !self.has_full_schema() && self != ApiKind::FoundationDbCluster
    }

    /// True if the kind is namespaced.
    pub fn is_namespaced(self) -> bool {
        let namespaced = [ApiKind::ResourceClaim, ApiKind::ResourceClaimTemplate, ApiKind::ClassicClaim];
        namespaced.contains(&self) || !self.has_full_schema()
    }
}
