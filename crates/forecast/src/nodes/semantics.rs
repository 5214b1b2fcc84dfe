//! What differs between releases, as data.

/// The behaviours of one release's filters and scores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FilterSemantics {
    /// A `namespaceSelector` of the pod that is scheduled is also compared with no labels at all. If it matches these,
    /// because it only excludes labels, its term applies to every namespace.
    pub namespace_selector_sees_no_labels: bool,
}

impl FilterSemantics {
    /// Kubernetes 1.36 (seen in 1.36.4).
    pub const V1_36: FilterSemantics = FilterSemantics { namespace_selector_sees_no_labels: true };

    /// Kubernetes 1.37.0 (seen in 1.37.0-rc.1).
    pub const V1_37: FilterSemantics = FilterSemantics { namespace_selector_sees_no_labels: false };
}
