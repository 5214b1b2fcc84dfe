//! Builds a kustomization as kustomize does, as far as `manifests/` uses it; anything else is an error.
//!
//! Known are: resources, components, strategic-merge and JSON patches from files, and names and tags of images. It is
//! stricter where kustomize is silent: a patch whose target selects nothing is an error here. The real tool gives the
//! same objects; this one runs wherever `cargo test` does.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "reads files, builds JSON")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]

mod faults;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::yaml::documents;

/// Files by path below `manifests`, separated by `/`. In memory, so that tests can introduce errors.
#[derive(Clone)]
pub(crate) struct Files(pub(crate) BTreeMap<String, String>);

impl Files {
    /// The files of the repository.
    pub(crate) fn of_repository() -> Files {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests");
        let mut found = BTreeMap::new();
        let mut open = vec![root.clone()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    open.push(path);
                } else {
                    let name = path.strip_prefix(&root).expect("below").to_str().expect("UTF-8").to_owned();
                    found.insert(name, std::fs::read_to_string(&path).expect("UTF-8"));
                }
            }
        }
        Files(found)
    }

    /// The names of the folders directly below a folder.
    pub(crate) fn folders(&self, below: &str) -> Vec<String> {
        let mut names: Vec<String> = self
            .0
            .keys()
            .filter_map(|path| path.strip_prefix(below)?.strip_prefix('/')?.split_once('/'))
            .map(|(name, _)| name.to_owned())
            .collect();
        names.dedup();
        names
    }

    /// Replaces a text in a file, which must contain it.
    pub(crate) fn edit(&mut self, path: &str, from: &str, to: &str) {
        let text = self.0.get_mut(path).unwrap_or_else(|| panic!("{path} is not there"));
        assert!(text.contains(from), "{path} has no {from:?}");
        *text = text.replace(from, to);
    }

    fn is_folder(&self, path: &str) -> bool {
        self.0.keys().any(|file| file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
    }
}

/// The objects of a folder's kustomization, in the order in which `kubectl kustomize` prints them.
pub(crate) fn build(files: &Files, folder: &str) -> Result<Vec<Value>, String> {
    let mut objects = Vec::new();
    Builder { files, chain: Vec::new() }.add(folder, "Kustomization", &mut objects)?;
    objects.sort_by_key(order);
    Ok(objects)
}

struct Builder<'f> {
    files: &'f Files,
    /// The folders being built, from the first one down.
    chain: Vec<String>,
}

impl Builder<'_> {
    fn add(&mut self, folder: &str, kind: &str, objects: &mut Vec<Value>) -> Result<(), String> {
        // A folder in the chain, or one that contains it, would be built within itself.
        let contains = |within: &String| {
            within == folder || within.strip_prefix(folder).is_some_and(|r| r.starts_with('/'))
        };
        if let Some(within) = self.chain.iter().find(|within| contains(within)) {
            return Err(format!("cycle detected: {folder} contains {within}"));
        }
        let file = format!("{folder}/kustomization.yaml");
        let text = self.files.0.get(&file).ok_or_else(|| format!("{file} does not exist"))?;
        let own = match documents(text).as_slice() {
            [own] => own.clone(),
            _ => return Err(format!("{file} is not one document")),
        };
        let version = if kind == "Component" { "v1alpha1" } else { "v1beta1" };
        let expected = [format!("kustomize.config.k8s.io/{version}"), kind.to_owned()];
        if [&own["apiVersion"], &own["kind"]] != [&json!(expected[0]), &json!(expected[1])] {
            return Err(format!("{file} is not {} {kind}", expected[0]));
        }
        for field in own.as_object().into_iter().flat_map(serde_json::Map::keys) {
            if !["apiVersion", "kind", "resources", "components", "patches", "images"]
                .contains(&field.as_str())
            {
                return Err(format!("{file}: the field {field} is not known here"));
            }
        }
        self.chain.push(folder.to_owned());
        let mut own_objects = Vec::new();
        // A component changes what is there; a base starts with nothing.
        let objects_here = if kind == "Component" { &mut *objects } else { &mut own_objects };
        for entry in texts(&own["resources"]) {
            let path = join(folder, entry).ok_or_else(|| format!("{file}: {entry} is outside"))?;
            let mut added = Vec::new();
            if self.files.is_folder(&path) {
                self.add(&path, "Kustomization", &mut added)?;
            } else {
                added = documents(self.file_below(folder, &path)?);
            }
            for object in added {
                if objects_here.iter().any(|known| id(known) == id(&object)) {
                    return Err(format!("{file}: {} is there twice", id(&object)));
                }
                objects_here.push(object);
            }
        }
        for entry in texts(&own["components"]) {
            let path = join(folder, entry).ok_or_else(|| format!("{file}: {entry} is outside"))?;
            self.add(&path, "Component", objects_here)?;
        }
        for patch in own["patches"].as_array().into_iter().flatten() {
            self.patch(folder, patch, objects_here).map_err(|fault| format!("{file}: {fault}"))?;
        }
        for image in own["images"].as_array().into_iter().flatten() {
            set_image(image, objects_here).map_err(|fault| format!("{file}: {fault}"))?;
        }
        self.chain.pop();
        if kind != "Component" {
            objects.append(&mut own_objects);
        }
        Ok(())
    }

    /// A file must be in the folder of its kustomization or below it.
    fn file_below(&self, folder: &str, path: &str) -> Result<&str, String> {
        let text = self.files.0.get(path).ok_or_else(|| format!("{path} does not exist"))?;
        let is_below = path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        if is_below { Ok(text) } else { Err(format!("{path} is not in or below {folder}")) }
    }

    fn patch(&self, folder: &str, patch: &Value, objects: &mut [Value]) -> Result<(), String> {
        let known = |field: &&String| !["path", "target"].contains(&field.as_str());
        if let Some(field) = patch.as_object().into_iter().flat_map(serde_json::Map::keys).find(known) {
            return Err(format!("the field {field} of a patch is not known here"));
        }
        let name = patch["path"].as_str().ok_or("a patch without a path")?;
        let path = join(folder, name).ok_or_else(|| format!("{name} is outside"))?;
        for document in documents(self.file_below(folder, &path)?) {
            if let Some(operations) = document.as_array() {
                let target = &patch["target"];
                let fields = target.as_object().ok_or("a JSON patch needs a target")?;
                if let Some(field) = fields.keys().find(|field| !["kind", "name"].contains(&field.as_str())) {
                    return Err(format!("the field {field} of a target is not known here"));
                }
                let is_selected = |object: &&mut Value| {
                    object["kind"] == target["kind"] && object["metadata"]["name"] == target["name"]
                };
                let mut selected = objects.iter_mut().filter(is_selected).peekable();
                if selected.peek().is_none() {
                    return Err(format!("{name} selects nothing"));
                }
                for object in selected {
                    for operation in operations {
                        replace(object, operation).map_err(|fault| format!("{name}: {fault}"))?;
                    }
                }
            } else {
                let target = objects.iter_mut().find(|object| id(object) == id(&document));
                let target = target.ok_or_else(|| format!("{name}: no object {}", id(&document)))?;
                merge(target, &document, "").map_err(|fault| format!("{name}: {fault}"))?;
            }
        }
        Ok(())
    }
}

/// The strings of a list that may be absent.
fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// `overlays/a` and `../../base` → `base`; `None` above the root.
fn join(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in path.split('/').filter(|part| *part != ".") {
        if part == ".." {
            parts.pop()?;
        } else {
            parts.push(part);
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// The identity of an object: kind, namespace and name.
pub(crate) fn id(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let parts = [&object["apiVersion"], &object["kind"], &metadata["namespace"], &metadata["name"]].map(text);
    parts.join(" ")
}

/// The key by which items of a list are merged. Lists that are not named here are replaced.
fn merge_key(field: &str) -> Result<Option<&'static str>, String> {
    Ok(match field {
        "containers" | "env" | "volumes" => Some("name"),
        "volumeMounts" => Some("mountPath"),
        "args" | "egress" | "ingress" => None,
        _ => return Err(format!("how lists of {field} are merged is not known here; use a JSON patch")),
    })
}

/// Applies a strategic merge patch.
fn merge(target: &mut Value, patch: &Value, field: &str) -> Result<(), String> {
    match (&mut *target, patch) {
        (Value::Object(fields), Value::Object(changes)) => {
            for (name, change) in changes {
                if change.is_null() {
                    fields.remove(name);
                } else {
                    merge(fields.entry(name.clone()).or_insert(Value::Null), change, name)?;
                }
            }
        }
        (Value::Array(items), Value::Array(changes)) => {
            let Some(key) = merge_key(field)? else {
                *target = patch.clone();
                return Ok(());
            };
            for change in changes {
                let at = items.iter().position(|item| item[key] == change[key]);
                match (change.get("$patch").and_then(Value::as_str), at) {
                    (Some("delete"), Some(at)) => drop(items.remove(at)),
                    (Some(directive), _) => {
                        return Err(format!("$patch: {directive} of {} hits nothing", change[key]));
                    }
                    (None, Some(at)) => merge(&mut items[at], change, "")?,
                    // New ones come first.
                    (None, None) => items.insert(0, change.clone()),
                }
            }
        }
        _ => *target = patch.clone(),
    }
    Ok(())
}

/// The only JSON patch operation in use. The path must exist.
fn replace(object: &mut Value, operation: &Value) -> Result<(), String> {
    let (Some("replace"), Some(path)) = (operation["op"].as_str(), operation["path"].as_str()) else {
        return Err(format!("the operation {operation} is not known here"));
    };
    let place = object.pointer_mut(path).ok_or_else(|| format!("{path} does not exist"))?;
    *place = operation["value"].clone();
    Ok(())
}

/// Sets the name and the tag of an image.
fn set_image(image: &Value, objects: &mut [Value]) -> Result<(), String> {
    let known = |field: &&String| !["name", "newName", "newTag"].contains(&field.as_str());
    if let Some(field) = image.as_object().into_iter().flat_map(serde_json::Map::keys).find(known) {
        return Err(format!("the field {field} of an image is not known here"));
    }
    let name = image["name"].as_str().ok_or("an image without a name")?;
    let mut hit = false;
    for object in objects {
        let containers = object.pointer_mut("/spec/template/spec/containers").and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let found = container["image"].as_str().unwrap_or_default().to_owned();
            let (found, tag) = found.rsplit_once(':').unwrap_or((&found, ""));
            if found == name {
                let (name, tag) =
                    (image["newName"].as_str().unwrap_or(found), image["newTag"].as_str().unwrap_or(tag));
                container["image"] = json!(format!("{name}:{tag}"));
                hit = true;
            }
        }
    }
    if hit { Ok(()) } else { Err(format!("no container has the image {name}")) }
}

/// Namespaces first, webhook configurations last: kustomize's order of kinds.
fn order(object: &Value) -> (usize, String) {
    const FIRST: [&str; 14] = [
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "Role",
        "ClusterRole",
        "RoleBinding",
        "ClusterRoleBinding",
        "ConfigMap",
        "Secret",
        "Service",
        "Deployment",
        "CronJob",
        "PodDisruptionBudget",
        "",
    ];
    const LAST: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
    let kind = object["kind"].as_str().unwrap_or_default();
    let place = FIRST.iter().chain(&LAST).position(|known| *known == kind).unwrap_or(FIRST.len() - 1);
    (place, id(object))
}

/// Normalizes an object, so that equal objects compare as equal despite the order of keyed lists and empty
/// fields.
pub(crate) fn normalized(object: &Value) -> Value {
    match object {
        Value::Object(fields) => {
            let kept = |(name, value): (&String, &Value)| {
                let value = normalized(value);
                // An empty selector selects everything; an empty issuer is a kind of issuer.
                let says_something = ["namespaceSelector", "selfSigned"].contains(&name.as_str());
                let is_empty = value.as_array().is_some_and(Vec::is_empty)
                    || value.as_object().is_some_and(serde_json::Map::is_empty);
                (says_something || !is_empty).then(|| (name.clone(), value))
            };
            Value::Object(fields.iter().filter_map(kept).collect())
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(normalized).collect();
            if items.iter().all(|item| item.get("name").is_some()) {
                items.sort_by_key(|item| item["name"].to_string());
            }
            Value::Array(items)
        }
        other => other.clone(),
    }
}
