//! The kinds of objects that a snapshot stores, and how they are recognized.

use tollgate_api::profile::Version;

tollgate_formats::named_enum! {
    /// The kinds of objects that a snapshot stores.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum SnapshotKind {
        /// ResourceSlices.
        Slice = "ResourceSlice",
        /// ResourceClaims.
        Claim = "ResourceClaim",
        /// Pods.
        Pod = "Pod",
        /// DeviceTaintRules.
        Rule = "DeviceTaintRule",
        /// PodDisruptionBudgets.
        Budget = "PodDisruptionBudget",
        /// Namespaces.
        Namespace = "Namespace",
        /// DeviceClass, which a snapshot stores together with the attributes of devices
        Class = "DeviceClass",
    }
}

impl SnapshotKind {
    /// Returns the kind of an object with that `apiVersion` and `kind`; `None` if a snapshot does not store it.
    pub fn from_type_meta(api_version: &str, kind: &str) -> Option<SnapshotKind> {
        let kind = SnapshotKind::ALL.into_iter().find(|known| known.name() == kind)?;
        let is_stored = match kind {
            SnapshotKind::Pod | SnapshotKind::Namespace => api_version == "v1",
            SnapshotKind::Budget => api_version == "policy/v1",
            _ => resource_group_version(api_version).is_some(),
        };
        is_stored.then_some(kind)
    }
}

/// True for a kind that impact needs: if no profile has the API version, skipping the object would make the numbers too
/// low. False for the versions of classic DRA, which have no devices that could be tainted.
pub(super) fn is_needed_kind_except_classic_dra(api_version: &str, kind: &str) -> bool {
    api_version
        .strip_prefix("resource.k8s.io/")
        .is_some_and(|version| !matches!(version, "v1alpha1" | "v1alpha2"))
        && matches!(kind, "ResourceSlice" | "ResourceClaim" | "DeviceTaintRule")
}

/// Returns the version of an `apiVersion` of the group `resource.k8s.io`; `None` for other groups and unknown versions.
pub(super) fn resource_group_version(api_version: &str) -> Option<Version> {
    Version::parse(api_version.strip_prefix("resource.k8s.io/")?)
}
