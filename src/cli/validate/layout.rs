//! The layout of a repository: which of the files that a walk found are parts of Helm charts or kustomize patches.
//!
//! Only kustomizations are read here, once each. A kustomization that cannot be parsed names no patches; it is reported
//! like any other file.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::super::check::FileRole;
use super::super::config::normalized_absolute_path;
use crate::files::{self, FolderWalkResult, Input};
use tollgate_document::doc::Value;
use tollgate_document::source::documents;

/// Maximum size in bytes of a kustomization that is read.
pub(super) const MAX_KUSTOMIZATION_BYTES: u64 = 1 << 20;

/// Charts and patches of a repository. Paths are absolute and have no `.` or `..`.
#[derive(Debug, Default)]
pub(super) struct ChartsAndPatches {
    charts: HashSet<PathBuf>,
    patches: HashSet<PathBuf>,
}

impl ChartsAndPatches {
    /// Determines charts and patches from the charts and kustomizations that a walk found.
    pub(super) fn from_walk(walk: &FolderWalkResult) -> ChartsAndPatches {
        let (mut patches, mut resources) = (HashSet::new(), HashSet::new());
        for path in &walk.kustomizations {
            let Ok(text) = files::read(&Input::File(path.clone()), MAX_KUSTOMIZATION_BYTES) else { continue };
            let Some(folder) = path.parent() else { continue };
            let file = |value: Value<'_>| normalized_absolute_path(&folder.join(value.str()));
            for document in documents(&text).flatten() {
                let root = document.doc.root();
                for field in ["patches", "patchesJson6902"] {
                    patches.extend(root.get(field).items().map(|patch| file(patch.get("path"))));
                }
                patches.extend(root.get("patchesStrategicMerge").items().map(file));
                resources.extend(root.get("resources").items().map(file));
            }
        }
        // A file that some kustomization uses as a whole object is one.
        patches.retain(|path| !resources.contains(path));
        ChartsAndPatches {
            charts: walk.charts.iter().map(|folder| normalized_absolute_path(folder)).collect(),
            patches,
        }
    }

    /// Returns the role of a file: whether a chart or a kustomization that was found in the repository contains or names
    /// its path.
    pub(super) fn role_of(&self, path: &Path) -> FileRole {
        if self.charts.is_empty() && self.patches.is_empty() {
            return FileRole::Plain;
        }
        let path = normalized_absolute_path(path);
        let is_chart = |folder: Option<&Path>| folder.is_some_and(|folder| self.charts.contains(folder));
        if self.patches.contains(&path) {
            FileRole::KustomizePatch
        } else if is_chart(path.parent()) {
            FileRole::ChartFile
        } else if path
            .ancestors()
            .any(|folder| folder.file_name() == Some(OsStr::new("templates")) && is_chart(folder.parent()))
        {
            FileRole::ChartTemplate
        } else {
            FileRole::Plain
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{ChartsAndPatches, FileRole, normalized_absolute_path};

    #[test]
    fn roles_are_told_by_places() {
        let layout = ChartsAndPatches {
            charts: [normalized_absolute_path(Path::new("charts/gpu"))].into(),
            patches: [normalized_absolute_path(Path::new("prod/../base/patch.yaml"))].into(),
        };
        for (path, role) in [
            ("charts/gpu/values.yaml", FileRole::ChartFile),
            ("./charts/gpu/templates/tests/a.yaml", FileRole::ChartTemplate),
            ("charts/gpu/crds/a.yaml", FileRole::Plain),
            ("charts/templates/a.yaml", FileRole::Plain),
            ("base/patch.yaml", FileRole::KustomizePatch),
            ("base/other.yaml", FileRole::Plain),
        ] {
            assert_eq!(layout.role_of(Path::new(path)), role, "{path}");
        }
    }
}
