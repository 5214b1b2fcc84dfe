//! Domains of keys that are reserved for Kubernetes.

/// True if the domain of the key is `kubernetes.io` or `k8s.io`, or a subdomain of either; false for a key without a
/// domain.
pub(super) fn has_reserved_domain(key: &str) -> bool {
    let (Some(domain), _) = tollgate_formats::names::split_prefix(key) else { return false };
    let is_below = |reserved: &str| {
        domain.strip_suffix(reserved).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    (is_below("kubernetes.io") || is_below("k8s.io")) && !domain.contains('/')
}

#[cfg(test)]
mod tests {
    use super::has_reserved_domain;

    #[test]
    fn only_the_domain_counts() {
        for key in ["kubernetes.io/a", "node.kubernetes.io/a", "k8s.io/a", "x-k8s.k8s.io/a"] {
            assert!(has_reserved_domain(key), "{key}");
        }
        for key in ["", "kubernetes.io", "a", "example.com/kubernetes.io", "x-k8s.io/a", "mykubernetes.io/a"]
        {
            assert!(!has_reserved_domain(key), "{key}");
        }
    }
}
