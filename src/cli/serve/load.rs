//! The policies and namespaces of `tollgate serve`, read again while it serves.
//!
//! A look reads every file, schemas included, and compiles only if a text changed. All files are of one generation of
//! their volume: if a kubelet swaps it meanwhile, everything is read again. A folder without policies is a fault and
//! never "no policies": whoever empties it by accident keeps the last good set.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::namespaces;
use super::super::policies::{self, Texts};
use crate::engine::{Engine, Namespaces};
use crate::files::{self, Input, MAX_FILE};
use crate::policy::PolicySet;
use crate::server::{Reload, ReloadOutcome, ServingConfig};

/// A volume that is swapped more often than this while it is read is looked at again by the next event.
const SWAPS: usize = 8;

/// Reads what the server judges by.
#[derive(Debug)]
pub(super) struct Loader {
    /// Profiles and rules, without policies.
    pub(super) engine: Engine,
    /// `--policy`
    pub(super) policies: Vec<PathBuf>,
    /// `--namespaces`
    pub(super) namespaces: Option<PathBuf>,
    last: Option<Read>,
}

/// Everything that was read, or why not.
#[derive(PartialEq, Eq, Debug, Default)]
struct Read {
    policies: Texts,
    namespaces: Option<Result<String, String>>,
    /// Files that policies name, by path.
    schemas: BTreeMap<String, Result<String, String>>,
}

impl Loader {
    pub(super) fn new(engine: Engine, policies: Vec<PathBuf>, namespaces: Option<PathBuf>) -> Loader {
        Loader { engine, policies, namespaces, last: None }
    }

    /// Nothing is to be read, now or ever.
    pub(super) fn is_idle(&self) -> bool {
        self.policies.is_empty() && self.namespaces.is_none()
    }

    /// Looks at the files.
    pub(super) fn reload(&mut self) -> Reload {
        let mut generations = self.generations();
        let mut outcome = ReloadOutcome::Unchanged;
        for _ in 0..SWAPS {
            // What was compiled from half a swap is forgotten, but not that something changed.
            outcome = match (self.reload_once(), outcome) {
                (ReloadOutcome::Unchanged, before) => before,
                (now, _) => now,
            };
            let after = self.generations();
            if after == generations {
                break;
            }
            generations = after;
        }
        Reload { outcome, directories: self.directories() }
    }

    fn reload_once(&mut self) -> ReloadOutcome {
        let named = self.last.iter().flat_map(|last| last.schemas.keys());
        let read = Read {
            policies: policies::texts(&self.policies),
            namespaces: self.namespaces.as_deref().map(read_text),
            schemas: named.map(|path| (path.clone(), read_schema(path))).collect(),
        };
        if self.last.as_ref() == Some(&read) {
            return ReloadOutcome::Unchanged;
        }
        let (compiled, read) = self.compile(read);
        self.last = Some(read);
        match compiled {
            Ok(config) => ReloadOutcome::Loaded(Box::new(config)),
            Err(faults) => ReloadOutcome::Invalid(faults),
        }
    }

    /// Compiles what was read; what policies name is read on the way and remembered.
    fn compile(&self, mut read: Read) -> (Result<ServingConfig, Vec<String>>, Read) {
        let mut faults = read.policies.errors.clone();
        let schemas = RefCell::new(BTreeMap::new());
        let set = PolicySet::load(&read.policies.files, &|path| {
            let text = read.schemas.get(path).cloned().unwrap_or_else(|| read_schema(path));
            schemas.borrow_mut().insert(path.to_owned(), text.clone());
            text
        });
        read.schemas = schemas.into_inner();
        let set = set.unwrap_or_else(|errors| {
            faults.extend(errors.iter().map(ToString::to_string));
            PolicySet::default()
        });
        if faults.is_empty() && set.is_empty() && !self.policies.is_empty() {
            let paths: Vec<String> = self.policies.iter().map(|path| path.display().to_string()).collect();
            faults.push(format!("{}: no policy in here", paths.join(", ")));
        }
        let namespaces = self.read_namespaces(&read).map_err(|fault| faults.push(fault)).ok().flatten();
        if !faults.is_empty() {
            return (Err(faults), read);
        }
        let engine = self.engine.clone().with_policies(Arc::new(set));
        (Ok(ServingConfig { engine, namespaces: namespaces.map(Arc::new) }), read)
    }

    fn read_namespaces(&self, read: &Read) -> Result<Option<Namespaces>, String> {
        let (Some(path), Some(text)) = (&self.namespaces, &read.namespaces) else { return Ok(None) };
        let file = path.display().to_string();
        let namespaces = namespaces::parse(&file, text.as_ref().map_err(Clone::clone)?)?;
        // A list of nothing is what a failed `kubectl get` leaves behind, not a cluster.
        if namespaces.is_empty() {
            Err(format!("{file}: no Namespace in here"))
        } else {
            Ok(Some(namespaces))
        }
    }

    /// Where a change shows: every folder that was searched, the folders of all files, and where links to them lie.
    fn directories(&self) -> Vec<PathBuf> {
        let mut places = BTreeSet::new();
        for folder in self.last.iter().flat_map(|last| &last.policies.folders) {
            places.insert(folder.clone());
        }
        for path in self.paths() {
            let is_folder = path.is_dir();
            if is_folder {
                places.insert(path.clone());
            }
            // A folder that is no link changes in itself; everything else changes where it lies.
            if !is_folder || path.is_symlink() {
                let above = path.ancestors().skip(1).map(or_here).find(|above| above.is_dir());
                places.extend(above.map(Path::to_owned));
            }
        }
        places.into_iter().collect()
    }

    /// Every path that was asked for or named.
    fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let schemas = self.last.iter().flat_map(|last| last.schemas.keys().map(PathBuf::from));
        self.policies.iter().chain(&self.namespaces).cloned().chain(schemas)
    }

    /// Where the kubelet's `..data` leads now, and every path that is a link.
    fn generations(&self) -> Vec<Option<PathBuf>> {
        let places = self.directories().into_iter();
        let links = places.map(|place| place.join("..data").canonicalize().ok());
        links.chain(self.paths().map(|path| path.canonicalize().ok())).collect()
    }
}

/// False for standard input and pipes.
pub(super) fn can_be_read_again(path: &Path) -> bool {
    let is_there = path.as_os_str() == "-" || path.exists();
    !is_there || path.is_dir() || Input::File(path.to_owned()).can_be_read_twice()
}

fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

fn read_text(path: &Path) -> Result<String, String> {
    files::read(&Input::File(path.to_owned()), MAX_FILE).map_err(|error| error.to_string())
}

/// As [`policies::compile`] reads it: the fault is told at the field that names the file.
fn read_schema(path: &str) -> Result<String, String> {
    files::read(&Input::File(PathBuf::from(path)), MAX_FILE).map_err(|error| error.message)
}
