//! Loads and reloads the policies and namespaces of `tollgate serve`.
//!
//! A reload reads every file, schemas included, and compiles only if a text changed. All files are of one generation of
//! their volume: if a kubelet swaps it meanwhile, everything is read again. A folder without policies is an error, not
//! "no policies": if it is emptied by accident, the last good set stays in use. Policies of the cluster are compiled
//! together with the files; they change the set even while a file is broken.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::namespaces;
use super::super::policies::{self, FoundPolicyFiles};
use super::policy_source::ClusterPolicySource;
use crate::files::{self, DEFAULT_MAX_FILE_BYTES, Input};
use crate::server::{ReloadOutcome, ReloadResult, ServingConfig};
use tollgate_engine::engine::{Engine, LoadedNamespaces};
use tollgate_engine::policy::PolicySet;

/// Number of times that files are read again because their volume was swapped meanwhile; after that, the next file
/// event triggers a reload.
const MAX_REREADS_AFTER_VOLUME_SWAP: usize = 8;

/// Loads the policies and namespace labels of the server, and loads them again when files change.
#[derive(Debug)]
pub(super) struct ServingLoader {
    /// Profiles and rules, without policies.
    pub(super) engine: Engine,
    /// `--policy`
    pub(super) policies: Vec<PathBuf>,
    /// `--namespaces`
    pub(super) namespaces: Option<PathBuf>,
    /// The policies of the cluster, with `--policy-source cluster`.
    resources: Option<Arc<ClusterPolicySource>>,
    last: Option<LoadedTexts>,
    /// The last texts that compiled, to load them with changed policies of the cluster while a file is broken.
    last_valid: Option<LoadedTexts>,
    /// The last compiled set, from which unchanged policies are taken.
    set: Arc<PolicySet>,
}

/// The texts of all files, or why they cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct LoadedTexts {
    policies: FoundPolicyFiles,
    namespaces: Option<Result<String, String>>,
    /// Files that policies refer to, by path.
    schemas: BTreeMap<String, Result<String, String>>,
    /// The revision of the policies of the cluster; `None` while they are not known.
    resources: Option<u64>,
}

impl ServingLoader {
    pub(super) fn new(
        engine: Engine,
        policies: Vec<PathBuf>,
        namespaces: Option<PathBuf>,
        resources: Option<Arc<ClusterPolicySource>>,
    ) -> ServingLoader {
        ServingLoader {
            engine,
            policies,
            namespaces,
            resources,
            last: None,
            last_valid: None,
            set: Arc::default(),
        }
    }

    /// True if there are files or resources that could change.
    pub(super) fn has_reloadable_inputs(&self) -> bool {
        !self.policies.is_empty() || self.namespaces.is_some() || self.resources.is_some()
    }

    /// Reads the files again, and again if a volume was swapped meanwhile, and returns the result with the
    /// directories to watch.
    pub(super) fn reload(&mut self) -> ReloadResult {
        let mut resolved = self.resolved_volume_paths();
        let mut outcome = ReloadOutcome::Unchanged;
        for _ in 0..MAX_REREADS_AFTER_VOLUME_SWAP {
            // A result of an incomplete swap is dropped, but the change is not forgotten.
            outcome = match (self.reload_once(), outcome) {
                (ReloadOutcome::Unchanged, before) => before,
                (now, _) => now,
            };
            let after = self.resolved_volume_paths();
            if after == resolved {
                break;
            }
            resolved = after;
        }
        ReloadResult { outcome, directories: self.directories_to_watch() }
    }

    /// Reads and compiles the files once.
    fn reload_once(&mut self) -> ReloadOutcome {
        let named = self.last.iter().flat_map(|last| last.schemas.keys());
        let read = LoadedTexts {
            policies: policies::read_files_with_errors(&self.policies),
            namespaces: self.namespaces.as_deref().map(read_text),
            schemas: named.map(|path| (path.clone(), policies::read_referenced(path))).collect(),
            resources: self.resources.as_ref().and_then(|source| source.revision()),
        };
        if self.last.as_ref() == Some(&read) {
            return ReloadOutcome::Unchanged;
        }
        let has_new_resources = self.last.as_ref().is_some_and(|last| last.resources != read.resources);
        let (compiled, read) = self.compile(read);
        self.last = Some(read.clone());
        let faults = match compiled {
            Ok(config) => {
                self.last_valid = Some(read);
                return ReloadOutcome::Loaded(Box::new(config));
            }
            Err(faults) => faults,
        };
        // A broken file must not keep changes of the cluster from being used.
        let valid = self.last_valid.clone().filter(|_| has_new_resources);
        match valid.map(|valid| self.compile(valid).0) {
            Some(Ok(config)) => ReloadOutcome::LoadedWithLastFiles(Box::new(config), faults),
            _ => ReloadOutcome::Invalid(faults),
        }
    }

    /// Compiles the texts and the current policies of the cluster. Also returns the texts, with the files that
    /// policies refer to.
    fn compile(&mut self, mut read: LoadedTexts) -> (Result<ServingConfig, Vec<String>>, LoadedTexts) {
        let mut faults = read.policies.errors.clone();
        let known = self.resources.as_ref().and_then(|source| source.policies());
        read.resources = known.as_ref().map(|(revision, _)| *revision);
        let awaits_policies = self.resources.is_some() && known.is_none();
        let resources = known.map(|(_, resources)| resources).unwrap_or_default();
        let schemas = RefCell::new(BTreeMap::new());
        let read_schema = |path: &str| {
            let text = read.schemas.get(path).cloned().unwrap_or_else(|| policies::read_referenced(path));
            schemas.borrow_mut().insert(path.to_owned(), text.clone());
            text
        };
        let set =
            PolicySet::load_with_resources(&read.policies.files, &read_schema, &resources, Some(&self.set));
        read.schemas = schemas.into_inner();
        let set = set.unwrap_or_else(|errors| {
            faults.extend(errors.iter().map(ToString::to_string));
            PolicySet::default()
        });
        // Not again with each change of a resource.
        let is_new = self.last.as_ref().is_none_or(|last| last.policies != read.policies);
        for warning in set.load_warnings().iter().filter(|_| is_new) {
            tracing::warn!(%warning, "a policy contains a probable mistake");
        }
        if faults.is_empty() {
            faults.extend(policies::no_policies_error(&self.policies, &read.policies.files, &set));
        }
        let namespaces =
            self.parse_loaded_namespaces(&read).map_err(|fault| faults.push(fault)).ok().flatten();
        if !faults.is_empty() {
            return (Err(faults), read);
        }
        self.set = Arc::new(set);
        let engine = self.engine.clone().with_policies(self.set.clone());
        (Ok(ServingConfig { engine, namespaces: namespaces.map(Arc::new), awaits_policies }), read)
    }

    fn parse_loaded_namespaces(&self, read: &LoadedTexts) -> Result<Option<LoadedNamespaces>, String> {
        let (Some(path), Some(text)) = (&self.namespaces, &read.namespaces) else { return Ok(None) };
        let file = path.display().to_string();
        let namespaces = namespaces::parse(&file, text.as_ref().map_err(Clone::clone)?)?;
        // An empty list is left behind by a failed `kubectl get`.
        if namespaces.is_empty() {
            Err(format!("{file}: contains no Namespaces"))
        } else {
            Ok(Some(namespaces))
        }
    }

    /// Returns the directories to watch for changes: searched folders, and the parents of all files and links.
    fn directories_to_watch(&self) -> Vec<PathBuf> {
        let mut directories = BTreeSet::new();
        for folder in self.last.iter().flat_map(|last| &last.policies.folders) {
            directories.insert(folder.clone());
        }
        for path in self.paths_of_flags_and_schemas() {
            let is_folder = path.is_dir();
            if is_folder {
                directories.insert(path.clone());
            }
            // For files and links, changes show in the parent directory.
            if !is_folder || path.is_symlink() {
                let above = path.ancestors().skip(1).map(current_dir_if_empty).find(|above| above.is_dir());
                directories.extend(above.map(Path::to_owned));
            }
        }
        directories.into_iter().collect()
    }

    /// Returns all paths that flags and policies name.
    fn paths_of_flags_and_schemas(&self) -> impl Iterator<Item = PathBuf> {
        let schemas = self.last.iter().flat_map(|last| last.schemas.keys().map(PathBuf::from));
        self.policies.iter().chain(&self.namespaces).cloned().chain(schemas)
    }

    /// Returns what the kubelet's `..data` links and all paths resolve to, which changes when a volume is
    /// swapped.
    fn resolved_volume_paths(&self) -> Vec<Option<PathBuf>> {
        let directories = self.directories_to_watch().into_iter();
        let links = directories.map(|directory| directory.join("..data").canonicalize().ok());
        links.chain(self.paths_of_flags_and_schemas().map(|path| path.canonicalize().ok())).collect()
    }
}

/// False for standard input and pipes, which can be read once.
pub(super) fn can_be_read_again(path: &Path) -> bool {
    let is_there = path.as_os_str() == "-" || path.exists();
    !is_there || path.is_dir() || Input::File(path.to_owned()).can_be_read_twice()
}

fn current_dir_if_empty(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

fn read_text(path: &Path) -> Result<String, String> {
    files::read(&Input::File(path.to_owned()), DEFAULT_MAX_FILE_BYTES).map_err(|error| error.to_string())
}
