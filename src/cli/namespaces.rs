//! `--namespaces FILE`: what the cluster would tell about namespaces. A namespace that is not listed has no labels.

use std::collections::HashMap;
use std::path::Path;

use super::outcome::Failure;
use crate::doc::{self, Doc, Value};
use crate::source::files::{self, Input, MAX_FILE};
use crate::source::{Lines, documents, list};

/// The labels of all namespaces as one JSON document: name → labels.
#[derive(Debug)]
pub(super) struct Namespaces {
    labels: String,
}

impl Namespaces {
    /// Reads Namespace objects: documents, lists, YAML or JSON.
    pub(super) fn read(path: &Path) -> Result<Namespaces, Failure> {
        let input = Input::File(path.to_owned());
        let file = input.name();
        let text = files::read(&input, MAX_FILE).map_err(|trouble| Failure::Input(trouble.to_string()))?;
        let lines = Lines::of(&text);
        let mut labels = String::from("{");
        for document in documents(&text) {
            let document =
                document.map_err(|fault| Failure::Input(fault.trouble(&file, &lines).to_string()))?;
            for item in list::items(document.doc.root()) {
                let value = item.value();
                let (kind, name) = (value.get("kind").str(), value.get("metadata").get("name"));
                if kind != "Namespace" || value.get("apiVersion").str() != "v1" || name.str().is_empty() {
                    let line = lines.position(document.offset + value.span().start as usize).0;
                    let message = format!("{file}:{line}: expected a Namespace of v1 with a name");
                    return Err(Failure::Input(message));
                }
                if labels.len() > 1 {
                    labels.push(',');
                }
                labels.push_str(&name.to_json());
                labels.push(':');
                labels.push_str(&value.get("metadata").get("labels").to_json());
            }
        }
        labels.push('}');
        Ok(Namespaces { labels })
    }

    /// The labels as a document, to be borrowed from.
    pub(super) fn document(&self) -> Result<Doc<'_>, Failure> {
        doc::parse(&self.labels).map_err(|error| Failure::Machine(anyhow::anyhow!(error.detail)))
    }
}

/// Labels by the name of the namespace.
#[derive(Debug)]
pub(super) struct Index<'d>(HashMap<&'d str, Value<'d>>);

impl<'d> Index<'d> {
    /// The index of a document made by [`Namespaces::document`].
    pub(super) fn of(document: &'d Doc<'d>) -> Index<'d> {
        Index(document.root().members().map(|(name, labels)| (name.text(), labels)).collect())
    }

    /// The labels of a namespace; absent if it is not listed.
    pub(super) fn labels(&self, name: &str) -> Value<'d> {
        self.0.get(name).copied().unwrap_or(Value::absent())
    }
}
