//! Tollgate: admission control for Kubernetes device taints and tolerations.
