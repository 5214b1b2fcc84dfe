//! Namespace labels, owned, so that they can outlive the text that they were read from.
//!
//! They are loaded once and looked up many times, without a cluster. A namespace that is not listed has no labels if
//! the list is complete; otherwise its labels are unknown.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Labels;
use tollgate_document::doc::{Builder, Doc, Syntax, Value};

/// A source of namespace labels, implemented by the caller: a list from files, or a cache of the cluster. The engine
/// asks at most once per request.
pub trait NamespaceLookup {
    /// Returns the labels of a namespace, or [`Labels::Unknown`].
    fn labels(&self, namespace: &str) -> Labels<'_>;

    /// Returns how many seconds old the labels are; `None` if they are current.
    fn age_seconds(&self) -> Option<u64> {
        None
    }
}

/// A lookup that returns the same labels for every namespace: [`Labels::Unknown`] is one that knows nothing.
impl NamespaceLookup for Labels<'_> {
    fn labels(&self, _: &str) -> Labels<'_> {
        *self
    }
}

/// `None` is a lookup that returns [`Labels::Unknown`] for every namespace.
impl<T: NamespaceLookup> NamespaceLookup for Option<T> {
    fn labels(&self, namespace: &str) -> Labels<'_> {
        self.as_ref().map_or(Labels::Unknown, |known| known.labels(namespace))
    }

    fn age_seconds(&self) -> Option<u64> {
        self.as_ref().and_then(NamespaceLookup::age_seconds)
    }
}

impl<T: NamespaceLookup + ?Sized> NamespaceLookup for &T {
    fn labels(&self, namespace: &str) -> Labels<'_> {
        (**self).labels(namespace)
    }

    fn age_seconds(&self) -> Option<u64> {
        (**self).age_seconds()
    }
}

/// The labels of one namespace, as a document whose root is the object `metadata.labels`, or absent. They can outlive
/// the text they were read from.
#[derive(Clone, Debug)]
pub struct OwnedLabels(pub Arc<Doc<'static>>);

impl OwnedLabels {
    /// Returns the labels as known labels.
    pub fn labels(&self) -> Labels<'_> {
        Labels::Known(self.0.root())
    }
}

/// Labels of namespaces that were read from files, by the name of the namespace.
#[derive(Debug)]
pub struct Namespaces {
    labels: BTreeMap<Box<str>, Doc<'static>>,
    /// True if all namespaces are listed, so that any other namespace has no labels. Otherwise the labels of
    /// other namespaces are unknown.
    complete: bool,
}

impl Namespaces {
    /// Creates an empty lookup. If `complete` is true, a namespace that is not added has no labels; otherwise its
    /// labels are unknown.
    pub fn new(complete: bool) -> Namespaces {
        Namespaces { labels: BTreeMap::new(), complete }
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

impl NamespaceLookup for Namespaces {
    fn labels(&self, name: &str) -> Labels<'_> {
        match self.labels.get(name) {
            Some(labels) => Labels::Known(labels.root()),
            None if self.complete => Labels::Known(Value::absent()),
            None => Labels::Unknown,
        }
    }
}
