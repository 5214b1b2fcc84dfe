//! Tollgate: admission control for Kubernetes device taints and tolerations.

pub mod gofmt;
pub mod gotime;
pub mod names;
pub mod netaddr;
pub mod quantity;
