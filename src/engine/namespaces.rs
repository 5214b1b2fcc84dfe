//! What is known of namespaces: their labels, owned, so that it can outlive the text it was read from.
//!
//! It is not a cluster: it is filled once and asked many times. What is not listed either has no labels (the list is
//! complete) or is not known.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Labels;
use crate::doc::{Builder, Doc, Syntax, Value};

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

    /// What is known of the labels of a namespace.
    pub fn labels(&self, name: &str) -> Labels<'_> {
        match self.labels.get(name) {
            Some(labels) => Labels::Known(labels.root()),
            None if self.complete => Labels::Known(Value::absent()),
            None => Labels::Unknown,
        }
    }
}
