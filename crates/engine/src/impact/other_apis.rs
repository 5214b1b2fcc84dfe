//! Forecasts for APIs beside `resource.k8s.io` of the releases: patches of draft r1, and replacements of FoundationDB's
//! process groups.

pub mod patches;
pub mod replacement;
