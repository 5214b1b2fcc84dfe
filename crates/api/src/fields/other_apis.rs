//! APIs beside `resource.k8s.io` of the releases: classic DRA (KEP-3063), ResourceSlicePatch of draft r1, and
//! FoundationDBCluster. No other table knows more of them than the type of a root or of a pod's claim template.

pub(super) mod classic;
pub(super) mod foundationdb;
pub(super) mod patch;
