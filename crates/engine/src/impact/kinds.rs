//! The kinds of objects that a snapshot stores, and how they are recognized.

use tollgate_api::profile::Version;

/// The kinds of objects that a snapshot stores.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SnapshotKind {
    /// ResourceSlices.
    Slice,
    /// ResourceClaims.
    Claim,
    /// Pods.
    Pod,
    /// DeviceTaintRules.
    Rule,
    /// PodDisruptionBudgets.
    Budget,
    /// Namespaces.
    Namespace,
    /// DeviceClass, which a snapshot stores together with the attributes of devices
    Class,
}

impl SnapshotKind {
    /// All kinds of objects in a snapshot.
    pub const ALL: [SnapshotKind; 7] = [
        SnapshotKind::Slice,
        SnapshotKind::Claim,
        SnapshotKind::Pod,
        SnapshotKind::Rule,
        SnapshotKind::Budget,
        SnapshotKind::Namespace,
        SnapshotKind::Class,
    ];

    /// Returns the kind as the API calls it, such as `ResourceSlice`.
    pub fn name(self) -> &'static str {
        match self {
            SnapshotKind::Slice => "ResourceSlice",
            SnapshotKind::Claim => "ResourceClaim",
            SnapshotKind::Pod => "Pod",
            SnapshotKind::Rule => "DeviceTaintRule",
            SnapshotKind::Budget => "PodDisruptionBudget",
            SnapshotKind::Namespace => "Namespace",
            SnapshotKind::Class => "DeviceClass",
        }
    }

    /// Returns the kind of an object with that `apiVersion` and `kind`; `None` if a snapshot does not store it.
    pub fn from_type_meta(api_version: &str, kind: &str) -> Option<SnapshotKind> {
        match (api_version, kind) {
            ("v1", "Pod") => Some(SnapshotKind::Pod),
            ("v1", "Namespace") => Some(SnapshotKind::Namespace),
            ("policy/v1", "PodDisruptionBudget") => Some(SnapshotKind::Budget),
            _ => match (kind, resource_group_version(api_version)?) {
                ("ResourceSlice", _) => Some(SnapshotKind::Slice),
                ("ResourceClaim", _) => Some(SnapshotKind::Claim),
                ("DeviceTaintRule", _) => Some(SnapshotKind::Rule),
                ("DeviceClass", _) => Some(SnapshotKind::Class),
                _ => None,
            },
        }
    }
}

/// True for a kind that impact needs in an API version that no profile has: skipping such an object would make the
/// numbers too low. False for the versions of classic DRA, which have no devices that could be tainted.
pub(super) fn is_unknown_api_version(api_version: &str, kind: &str) -> bool {
    api_version
        .strip_prefix("resource.k8s.io/")
        .is_some_and(|version| !matches!(version, "v1alpha1" | "v1alpha2"))
        && matches!(kind, "ResourceSlice" | "ResourceClaim" | "DeviceTaintRule")
}

/// Returns the version of an `apiVersion` of the group `resource.k8s.io`; `None` for other groups and unknown versions.
pub(super) fn resource_group_version(api_version: &str) -> Option<Version> {
    Version::parse(api_version.strip_prefix("resource.k8s.io/")?)
}
