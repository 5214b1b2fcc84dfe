//! Forecasts for APIs that no Kubernetes release serves: the ResourceSlicePatch of draft r1, and the replacement of
//! process groups by the FoundationDB operator.

pub mod patches;
pub mod replacement;
