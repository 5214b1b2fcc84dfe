//! Views of APIs beside `resource.k8s.io` of the releases: classic DRA (KEP-3063), ResourceSlicePatch of draft r1, and
//! FoundationDBCluster.

pub(super) mod classic;
pub(super) mod foundationdb;
pub(super) mod patch;
