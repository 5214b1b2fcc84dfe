//! One line of `mutate --patch`: a JSON Patch and the object that it changes.

use serde_json::value::RawValue;

use crate::cli::outcome::Failure;
use crate::cli::to_safe_json;
use crate::report::record::record;
use tollgate_document::field::PathAudience;
use tollgate_document::source::list::DocumentObject;

/// Returns the line of JSON for the patch of an object, with its file, position and name.
pub(super) fn patch_line(
    file: &str,
    document: usize,
    item: &DocumentObject<'_>,
    patch: &str,
) -> Result<String, Failure> {
    let value = item.typed_value();
    let metadata = value.get("metadata");
    let name = [metadata.get("name").str(), metadata.get("generateName").str()];
    let patch = RawValue::from_string(patch.to_owned()).map_err(|error| Failure::Internal(error.into()))?;
    let item = item.path_in_document(tollgate_document::field::Path::ROOT.owned()).print(PathAudience::User);
    to_safe_json(&record! {
        "file": file,
        "document": document,
        // Where the object is in a list, as `items[2]`.
        "item" if given: item,
        "apiVersion": value.get("apiVersion").str(),
        "kind": value.get("kind").str(),
        "namespace": metadata.get("namespace").str(),
        "name": name.into_iter().find(|name| !name.is_empty()).unwrap_or_default(),
        "patch": patch,
    })
}
