//! What is known of namespaces: their labels, owned, so that it can outlive the text it was read from.
//!
//! It is not a cluster: it is filled once and asked many times. What is not listed either has no labels (the list is
//! complete) or is not known.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Labels;
use tollgate_document::doc::{Builder, Doc, Syntax, Value};

/// Who knows the labels of namespaces. A shell implements it; the engine asks at most once per request.
pub trait NamespaceLookup {
    /// What is known of the labels of a namespace.
    fn labels(&self, namespace: &str) -> Labels<'_>;

    /// How old that is, in seconds, if it may have changed since.
    fn age(&self) -> Option<u64> {
        None
    }
}

/// Labels that are those of every namespace: [`Labels::Unknown`] is a lookup that knows nothing.
impl NamespaceLookup for Labels<'_> {
    fn labels(&self, _: &str) -> Labels<'_> {
        *self
    }
}

/// `None` knows nothing.
impl<T: NamespaceLookup> NamespaceLookup for Option<T> {
    fn labels(&self, namespace: &str) -> Labels<'_> {
        self.as_ref().map_or(Labels::Unknown, |known| known.labels(namespace))
    }

    fn age(&self) -> Option<u64> {
        self.as_ref().and_then(NamespaceLookup::age)
    }
}

impl<T: NamespaceLookup + ?Sized> NamespaceLookup for &T {
    fn labels(&self, namespace: &str) -> Labels<'_> {
        (**self).labels(namespace)
    }

    fn age(&self) -> Option<u64> {
        (**self).age()
    }
}

/// The labels of one namespace, owned.
#[derive(Clone, Debug)]
pub struct OwnedLabels(Arc<Doc<'static>>);

impl OwnedLabels {
    /// A document whose root is the object `metadata.labels`, or nothing.
    pub fn new(labels: Arc<Doc<'static>>) -> OwnedLabels {
        OwnedLabels(labels)
    }

    /// To be judged by.
    pub fn labels(&self) -> Labels<'_> {
        Labels::Known(self.0.root())
    }
}

/// Labels by the name of the namespace.
#[derive(Debug)]
pub struct Namespaces {
    labels: BTreeMap<Box<str>, Doc<'static>>,
    complete: bool,
}

impl Namespaces {
    /// No namespaces yet. `complete`: what is not added has no labels; else nothing is known of it.
    pub fn new(complete: bool) -> Namespaces {
        Namespaces { labels: BTreeMap::new(), complete }
    }

    /// Adds a Namespace object.
    pub fn add(&mut self, namespace: Value<'_>) {
        let metadata = namespace.get("metadata");
        let written = metadata.get("labels");
        let mut labels = Builder::to_keep("", Syntax::Json, written.size());
        labels.copy(written);
        self.labels.insert(metadata.get("name").str().into(), labels.finish());
    }

    /// None was added.
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
