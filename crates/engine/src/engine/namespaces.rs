//! Namespace labels, owned, so that they can outlive the text that they were read from.
//!
//! They are loaded once and looked up many times, without a cluster. A namespace that is not listed has no labels if
//! the list is complete; otherwise its labels are unknown.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::LabelsIfKnown;
use tollgate_document::doc::{Builder, Doc, Syntax, Value};

/// A source of namespace labels, implemented by the caller: a list from files, or a cache of the cluster. The engine
/// asks at most once per request.
pub trait NamespaceLabelLookup {
    /// Returns the labels of a namespace, or [`LabelsIfKnown::Unknown`].
    fn labels(&self, namespace: &str) -> LabelsIfKnown<'_>;

    /// Returns how many seconds old the labels are; `None` if they are current.
    fn age_seconds_if_stale(&self) -> Option<u64> {
        None
    }
}

/// A lookup that returns the same labels for every namespace: [`LabelsIfKnown::Unknown`] is one that knows nothing.
impl NamespaceLabelLookup for LabelsIfKnown<'_> {
    fn labels(&self, _: &str) -> LabelsIfKnown<'_> {
        *self
    }
}

/// `None` is a lookup that returns [`LabelsIfKnown::Unknown`] for every namespace.
impl<T: NamespaceLabelLookup> NamespaceLabelLookup for Option<T> {
    fn labels(&self, namespace: &str) -> LabelsIfKnown<'_> {
        self.as_ref().map_or(LabelsIfKnown::Unknown, |known| known.labels(namespace))
    }

    fn age_seconds_if_stale(&self) -> Option<u64> {
        self.as_ref().and_then(NamespaceLabelLookup::age_seconds_if_stale)
    }
}

impl<T: NamespaceLabelLookup + ?Sized> NamespaceLabelLookup for &T {
    fn labels(&self, namespace: &str) -> LabelsIfKnown<'_> {
        (**self).labels(namespace)
    }

    fn age_seconds_if_stale(&self) -> Option<u64> {
        (**self).age_seconds_if_stale()
    }
}

/// The labels of one namespace, as a document whose root is the object `metadata.labels`, or absent. They can outlive
/// the text they were read from.
#[derive(Clone, Debug)]
pub struct OwnedLabels(pub Arc<Doc<'static>>);

impl OwnedLabels {
    /// Returns the labels as known labels.
    pub fn labels(&self) -> LabelsIfKnown<'_> {
        LabelsIfKnown::Known(self.0.root())
    }
}

/// Labels of namespaces that were read once, from files or an API server, by the name of the namespace.
#[derive(Debug)]
pub struct LoadedNamespaces {
    labels: BTreeMap<Box<str>, Doc<'static>>,
    /// True if all namespaces are listed, so that any other namespace has no labels. Otherwise the labels of
    /// other namespaces are unknown.
    complete: bool,
}

impl LoadedNamespaces {
    /// Creates an empty lookup. If `complete` is true, a namespace that is not added has no labels; otherwise its
    /// labels are unknown.
    pub fn new(complete: bool) -> LoadedNamespaces {
        LoadedNamespaces { labels: BTreeMap::new(), complete }
    }

    /// Adds the labels of a Namespace object.
    pub fn add(&mut self, namespace: Value<'_>) {
        let metadata = namespace.get("metadata");
        let written = metadata.get("labels");
        let mut labels = Builder::with_exact_capacity("", Syntax::Json, written.node_count());
        labels.copy(written);
        self.labels.insert(metadata.get("name").str().into(), labels.finish());
    }

    /// True if no namespace was added.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The names of the namespaces, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.labels.keys().map(AsRef::as_ref)
    }
}

impl NamespaceLabelLookup for LoadedNamespaces {
    fn labels(&self, name: &str) -> LabelsIfKnown<'_> {
        match self.labels.get(name) {
            Some(labels) => LabelsIfKnown::Known(labels.root()),
            None if self.complete => LabelsIfKnown::Known(Value::absent()),
            None => LabelsIfKnown::Unknown,
        }
    }
}
