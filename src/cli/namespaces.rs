//! `--namespaces FILE`: the labels of namespaces. A namespace that is not listed has no labels. The file may be a dump
//! of a cluster: other kinds are skipped.

use std::path::Path;

use super::outcome::Failure;
use super::state;
use crate::files::{self, DEFAULT_MAX_FILE_BYTES, Input};
use tollgate_document::doc::{Value, ValueKind};
use tollgate_document::source::{Document, LineIndex, documents, list};
use tollgate_engine::engine::{LabelsIfKnown, LoadedNamespaces, NamespaceLabelLookup as _};

/// Reads the Namespace objects of a file, in YAML or JSON, as documents or lists.
pub(super) fn read_file(path: &Path) -> Result<LoadedNamespaces, Failure> {
    let input = Input::File(path.to_owned());
    let text = files::read(&input, state::MAX_DUMP_BYTES)?;
    parse(&input.name(), &text).map_err(Failure::Input)
}

/// Returns the labels of the namespace that an object is in.
pub(super) fn labels_for_object<'n>(
    object: Value<'_>,
    namespaces: Option<&'n LoadedNamespaces>,
) -> LabelsIfKnown<'n> {
    let namespace = object.get("metadata").get("namespace").str();
    let namespace = if namespace.is_empty() { "default" } else { namespace };
    namespaces.map_or(LabelsIfKnown::Unknown, |all| all.labels(namespace))
}

/// Parses the Namespace objects of a file; errors have their position.
pub(super) fn parse(file: &str, text: &str) -> Result<LoadedNamespaces, String> {
    let lines = LineIndex::from_text(text);
    let mut namespaces = LoadedNamespaces::new(true);
    let (mut skipped, mut has_objects) = (0, false);
    for document in documents(text).with_max_size(usize::MAX) {
        let document = document.map_err(|fault| fault.input_error(file, &lines).to_string())?;
        has_objects |= document.doc.root().kind() == ValueKind::Object;
        // Of a namespace that is missing it is not known that it has no labels.
        let is_needed = |_: &str, kind: &str| matches!(kind, "List" | "NamespaceList");
        if let Some(incomplete) = state::truncated_list_messages(file, document.doc.root(), is_needed).next()
        {
            return Err(incomplete);
        }
        for item in list::objects(document.doc.root()) {
            let value = item.typed_value();
            if has_kind_other_than_namespace(value) {
                skipped += 1;
                continue;
            }
            if !is_named_v1_namespace(value) {
                let (line, column) = lines.line_and_column(document.offset + value.span().start as usize);
                return Err(format!("{file}:{line}:{column}: expected a v1 Namespace with a name"));
            }
            namespaces.add(value);
        }
    }
    // An empty list, which says that there are none, is allowed; a file without any object is a mistake.
    if namespaces.is_empty() && (skipped > 0 || !has_objects) {
        return Err(format!("{file}: contains no Namespaces"));
    }
    Ok(namespaces)
}

/// Collects the Namespace objects among the inputs; `None` if there are none. Ignores inputs that cannot be read,
/// because they are reported elsewhere.
pub(super) fn collect_from_readable_inputs<'i>(
    inputs: impl Iterator<Item = &'i Input>,
) -> Option<LoadedNamespaces> {
    let readable = inputs.filter(|input| input.can_be_read_twice());
    from_texts(readable.filter_map(|input| files::read(input, DEFAULT_MAX_FILE_BYTES).ok()))
}

/// Collects the Namespace objects of texts; `None` if there are none.
pub(super) fn from_texts(texts: impl IntoIterator<Item = impl AsRef<str>>) -> Option<LoadedNamespaces> {
    let mut namespaces = LoadedNamespaces::new(false);
    for text in texts.into_iter().filter(|text| text.as_ref().contains("Namespace")) {
        // A patch of a namespace does not say what its labels are.
        let is_object = |document: &Document<'_>| !document.doc.root().get("$patch").exists();
        for document in documents(text.as_ref()).flatten().filter(is_object) {
            let items = list::objects(document.doc.root());
            items
                .filter(|item| is_named_v1_namespace(item.typed_value()))
                .for_each(|item| namespaces.add(item.typed_value()));
        }
    }
    (!namespaces.is_empty()).then_some(namespaces)
}

/// True if the object has a kind that is not Namespace.
fn has_kind_other_than_namespace(value: Value<'_>) -> bool {
    let (version, kind) = (value.get("apiVersion").str(), value.get("kind").str());
    !version.is_empty() && !kind.is_empty() && kind != "Namespace"
}

fn is_named_v1_namespace(value: Value<'_>) -> bool {
    let name = value.get("metadata").get("name").str();
    value.get("kind").str() == "Namespace" && value.get("apiVersion").str() == "v1" && !name.is_empty()
}
