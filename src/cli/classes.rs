//! `--classes PATH`: the ResourceClasses (KEP-3063) that exist, from files and folders. Other objects are ignored.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::outcome::Failure;
use super::policies;
use tollgate_document::source::{LineIndex, documents, list};
use tollgate_engine::engine::ResourceClasses;

/// Reads the ResourceClasses in these paths; `None` if there are no paths, which means that the classes are not known.
pub(super) fn load_resource_classes(paths: &[PathBuf]) -> Result<Option<Arc<ResourceClasses>>, Failure> {
    if paths.is_empty() {
        return Ok(None);
    }
    let mut classes = BTreeMap::new();
    for file in policies::read_files(paths)? {
        let lines = LineIndex::from_text(&file.text);
        for document in documents(&file.text) {
            let document = document.map_err(|fault| fault.input_error(&file.name, &lines))?;
            for item in list::objects(document.doc.root()) {
                let class = item.typed_value();
                let name = class.get("metadata").get("name").str();
                let is_class = class.get("kind").str() == "ResourceClass"
                    && class.get("apiVersion").str() == "cdi.k8s.io/v1alpha1";
                if is_class && !name.is_empty() {
                    classes.insert(name.into(), class.get("driverName").str().into());
                }
            }
        }
    }
    if classes.is_empty() {
        let places: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let message =
            format!("--classes {}: contains no ResourceClass of cdi.k8s.io/v1alpha1", places.join(","));
        return Err(Failure::Input(message));
    }
    Ok(Some(Arc::new(ResourceClasses(classes))))
}
