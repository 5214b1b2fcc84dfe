//! The claims and claim templates among the inputs, for pods that name one of another namespace.
//!
//! The inputs are searched when the first file with such a pod is checked, because most runs have none and can read
//! every file only once. Files whose objects are applied to another namespace than the one in the manifest are not
//! considered: those that a kustomization with `namespace`, or a Kustomization of Flux with `targetNamespace`, refers
//! to.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::super::check::{FileRole, TextSource};
use super::super::config::normalized_absolute_path;
use super::check::WorkItem;
use super::layout::MAX_KUSTOMIZATION_BYTES;
use super::settings::InputWithSettings;
use crate::files::{self, DEFAULT_MAX_FILE_BYTES, Input, KUSTOMIZATIONS};
use tollgate_document::doc::Value;
use tollgate_document::source::{LineIndex, documents, list};
use tollgate_engine::engine::ClaimLocations;

/// The claims of a run, found on first use.
#[derive(Debug)]
pub(super) struct RunClaims<'r> {
    work: &'r [InputWithSettings],
    kustomizations: &'r [PathBuf],
    found: OnceLock<FoundClaims>,
}

#[derive(Debug, Default)]
struct FoundClaims {
    known: ClaimLocations,
    moved: FilesInOverriddenNamespaces,
}

impl<'r> RunClaims<'r> {
    /// Prepares to find the claims in these inputs; `kustomizations` are those around them.
    pub(super) fn new(work: &'r [InputWithSettings], kustomizations: &'r [PathBuf]) -> RunClaims<'r> {
        RunClaims { work, kustomizations, found: OnceLock::new() }
    }

    /// Returns the claims that the pods of a text may refer to; `None` if it refers to none, or its objects are
    /// applied to other namespaces.
    pub(super) fn claims_for(&self, input: &Input, text: &str) -> Option<Cow<'_, ClaimLocations>> {
        if !["resourceClaimName", "resourceClaimTemplateName"].iter().any(|field| text.contains(field)) {
            return None;
        }
        let found = self.found.get_or_init(|| FoundClaims::from_inputs(self.work, self.kustomizations));
        if let Input::File(path) = input
            && found.moved.contains(path)
        {
            return None;
        }
        let mut known = Cow::Borrowed(&found.known);
        if *input == Input::Stdin {
            add_from_text(known.to_mut(), &input.name(), text, false);
        }
        (!known.is_empty()).then_some(known)
    }
}

impl FoundClaims {
    fn from_inputs(work: &[InputWithSettings], kustomizations: &[PathBuf]) -> FoundClaims {
        let mut found = FoundClaims::default();
        for path in kustomizations {
            found.moved.add_if_kustomization_sets_namespace(path);
        }
        let mut with_claims = Vec::new();
        for work in work {
            let WorkItem::Read(input @ Input::File(path), source) = &work.item else { continue };
            // What is in Markdown is an example.
            if source.is_markdown_text() || !input.can_be_read_twice() {
                continue;
            }
            let Ok(text) = files::read(input, DEFAULT_MAX_FILE_BYTES) else { continue };
            if text.contains("targetNamespace") {
                found.moved.add_flux_paths_with_target_namespace(&text);
            }
            if text.contains("ResourceClaim") {
                let is_object = matches!(source, TextSource::Named | TextSource::Found(FileRole::Plain));
                with_claims.push((input, path, is_object));
            }
        }
        for (input, path, is_object) in with_claims {
            let Ok(text) = files::read(input, DEFAULT_MAX_FILE_BYTES) else { continue };
            let is_moved = !is_object || found.moved.contains(path);
            add_from_text(&mut found.known, &input.name(), &text, is_moved);
        }
        found
    }
}

fn add_from_text(known: &mut ClaimLocations, file: &str, text: &str, is_moved: bool) {
    let lines = LineIndex::from_text(text);
    for document in documents(text).flatten() {
        for item in list::objects(document.doc.root()) {
            let value = item.typed_value();
            let line = lines.line_and_column(document.offset + value.span().start as usize).0;
            known.add_if_claim(value, file, line, is_moved);
        }
    }
}

/// Files and folders whose objects a kustomization of kustomize or Flux puts into another namespace than they
/// name.
#[derive(Debug, Default)]
struct FilesInOverriddenNamespaces {
    /// Paths of files and folders: absolute, without `.` and `..`.
    paths: HashSet<PathBuf>,
    /// Ends of paths, because paths of Flux are relative to the root of the repository.
    ends: Vec<PathBuf>,
}

impl FilesInOverriddenNamespaces {
    /// Adds the resources of a kustomization that sets a namespace; others are ignored.
    fn add_if_kustomization_sets_namespace(&mut self, path: &Path) {
        let (Some(root), Some(folder)) = (read_kustomization(path), path.parent()) else { return };
        if root.namespace {
            self.paths.insert(normalized_absolute_path(folder));
            self.add_resources(&root, folder);
        }
    }

    /// Adds the resources of a kustomization, including nested kustomizations.
    fn add_resources(&mut self, kustomization: &Kustomization, folder: &Path) {
        for resource in &kustomization.resources {
            let path = normalized_absolute_path(&folder.join(resource));
            if !self.paths.insert(path.clone()) || !path.is_dir() {
                continue;
            }
            for name in KUSTOMIZATIONS {
                if let Some(inner) = read_kustomization(&path.join(name)) {
                    self.add_resources(&inner, &path);
                }
            }
        }
    }

    /// Adds the paths of the Kustomizations of Flux that set a namespace.
    fn add_flux_paths_with_target_namespace(&mut self, text: &str) {
        for document in documents(text).flatten() {
            for item in list::objects(document.doc.root()) {
                let (object, spec) = (item.typed_value(), item.typed_value().get("spec"));
                let is_flux = object.get("apiVersion").str().starts_with("kustomize.toolkit.fluxcd.io/");
                if is_flux && !spec.get("targetNamespace").str().is_empty() {
                    let path = Path::new(spec.get("path").str());
                    self.ends.push(path.components().filter(|part| part.as_os_str() != ".").collect());
                }
            }
        }
    }

    /// True if the file, or a folder that contains it, is among these paths.
    fn contains(&self, path: &Path) -> bool {
        if self.paths.is_empty() && self.ends.is_empty() {
            return false;
        }
        let path = normalized_absolute_path(path);
        let is_moved =
            |folder: &Path| self.paths.contains(folder) || self.ends.iter().any(|end| folder.ends_with(end));
        path.ancestors().any(is_moved)
    }
}

/// The resources of a kustomization, and whether it sets a namespace.
struct Kustomization {
    namespace: bool,
    resources: Vec<String>,
}

/// Reads a kustomization; `None` if there is none, or if it cannot be parsed, which is reported elsewhere.
fn read_kustomization(path: &Path) -> Option<Kustomization> {
    if !path.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
        return None;
    }
    let text = files::read(&Input::File(path.to_owned()), MAX_KUSTOMIZATION_BYTES).ok()?;
    let document = documents(&text).next()?.ok()?;
    let root = document.doc.root();
    let entries = ["resources", "bases", "components"].into_iter().flat_map(|field| root.get(field).items());
    let resources = entries.map(Value::str).filter(|entry| !entry.is_empty() && !entry.contains("://"));
    Some(Kustomization {
        namespace: !root.get("namespace").str().is_empty(),
        resources: resources.map(str::to_owned).collect(),
    })
}
