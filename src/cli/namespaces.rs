//! `--namespaces FILE`: what the cluster would tell about namespaces. A namespace that is not listed has no labels.

use std::collections::HashMap;
use std::path::Path;

use super::outcome::Failure;
use crate::doc::{self, Doc, Value};
use crate::engine::Labels;
use crate::source::files::{self, Input, MAX_FILE};
use crate::source::{Lines, documents, list};

/// The labels of all namespaces as one JSON document: name → labels.
#[derive(Debug)]
pub(super) struct Namespaces {
    labels: String,
    /// What is not listed has no labels; else nothing is known of it.
    complete: bool,
}

impl Namespaces {
    /// Reads Namespace objects: documents, lists, YAML or JSON.
    pub(super) fn read(path: &Path) -> Result<Namespaces, Failure> {
        let input = Input::File(path.to_owned());
        let file = input.name();
        let text = files::read(&input, MAX_FILE).map_err(|trouble| Failure::Input(trouble.to_string()))?;
        let lines = Lines::of(&text);
        let mut namespaces = Namespaces { labels: String::from("{"), complete: true };
        for document in documents(&text) {
            let document =
                document.map_err(|fault| Failure::Input(fault.trouble(&file, &lines).to_string()))?;
            for item in list::items(document.doc.root()) {
                let value = item.value();
                if !is_namespace(value) {
                    let line = lines.position(document.offset + value.span().start as usize).0;
                    let message = format!("{file}:{line}: expected a Namespace of v1 with a name");
                    return Err(Failure::Input(message));
                }
                namespaces.add(value);
            }
        }
        namespaces.labels.push('}');
        Ok(namespaces)
    }

    /// The Namespace objects among manifests, if there are any. What cannot be read is told elsewhere.
    pub(super) fn among<'i>(inputs: impl Iterator<Item = &'i Input>) -> Option<Namespaces> {
        let mut namespaces = Namespaces { labels: String::from("{"), complete: false };
        for input in inputs.filter(|input| input.can_be_read_twice()) {
            let Ok(text) = files::read(input, MAX_FILE) else { continue };
            if !text.contains("Namespace") {
                continue;
            }
            for document in documents(&text).flatten() {
                let items = list::items(document.doc.root());
                items.filter(|item| is_namespace(item.value())).for_each(|item| namespaces.add(item.value()));
            }
        }
        namespaces.labels.push('}');
        (namespaces.labels.len() > 2).then_some(namespaces)
    }

    fn add(&mut self, namespace: Value<'_>) {
        let metadata = namespace.get("metadata");
        if self.labels.len() > 1 {
            self.labels.push(',');
        }
        self.labels.push_str(&metadata.get("name").to_json());
        self.labels.push(':');
        self.labels.push_str(&metadata.get("labels").to_json());
    }

    /// The labels as a document, to be borrowed from.
    pub(super) fn document(&self) -> Result<Doc<'_>, Failure> {
        doc::parse(&self.labels).map_err(|error| Failure::Machine(anyhow::anyhow!(error.detail)))
    }
}

fn is_namespace(value: Value<'_>) -> bool {
    let name = value.get("metadata").get("name").str();
    value.get("kind").str() == "Namespace" && value.get("apiVersion").str() == "v1" && !name.is_empty()
}

/// Labels by the name of the namespace.
#[derive(Debug)]
pub(super) struct Index<'d> {
    labels: HashMap<&'d str, Value<'d>>,
    complete: bool,
}

impl<'d> Index<'d> {
    /// The index of a document made by [`Namespaces::document`].
    pub(super) fn of(namespaces: &Namespaces, document: &'d Doc<'d>) -> Index<'d> {
        let labels = document.root().members().map(|(name, labels)| (name.text(), labels)).collect();
        Index { labels, complete: namespaces.complete }
    }

    /// The names of the namespaces, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &'d str> {
        let mut names: Vec<&'d str> = self.labels.keys().copied().collect();
        names.sort_unstable();
        names.into_iter()
    }

    /// What is known of the labels of a namespace.
    pub(super) fn labels(&self, name: &str) -> Labels<'d> {
        match self.labels.get(name) {
            Some(labels) => Labels::Known(*labels),
            None if self.complete => Labels::Known(Value::absent()),
            None => Labels::Unknown,
        }
    }
}
