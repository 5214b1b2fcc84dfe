//! Views of APIs that no Kubernetes release serves in `resource.k8s.io`: classic DRA (KEP-3063), ResourceSlicePatch of
//! draft r1, and FoundationDBCluster.

pub(super) mod classic;
pub(super) mod foundationdb;
pub(super) mod patch;
