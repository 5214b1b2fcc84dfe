//! Differences between releases, as data.

/// Behaviors of the filters and scores that differ between releases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FilterSemantics {
    /// True if a `namespaceSelector` of the pod being scheduled is also compared with an empty label set. If
    /// it matches, because it only excludes labels, its term applies to every namespace.
    pub namespace_selector_sees_no_labels: bool,
}

impl FilterSemantics {
    /// Behaviors of the scheduler's filters in Kubernetes 1.36, observed with 1.36.4.
    pub const V1_36: FilterSemantics = FilterSemantics { namespace_selector_sees_no_labels: true };

    /// Behaviors of the scheduler's filters in Kubernetes 1.37.0, observed with 1.37.0-rc.1.
    pub const V1_37: FilterSemantics = FilterSemantics { namespace_selector_sees_no_labels: false };
}
