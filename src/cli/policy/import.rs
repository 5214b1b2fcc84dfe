//! `tollgate policy import`: policy files, or a ConfigMap with them, as custom resources.
//!
//! Invariant: everything is converted, or nothing is printed. A resource has the same effect as the policy in its file.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;

use super::super::console::Console;
use super::super::mutate::print;
use super::super::outcome::{ExitCounts, Failure};
use super::super::policies;
use tollgate_document::doc::{self, Value};
use tollgate_document::source::documents;
use tollgate_engine::policy::{self, PolicyFile, PolicyKind};

/// Convert policy files to custom resources
///
/// Prints the policies as YAML for `kubectl apply`. The contents of a `schemaFile` become part of the policy, and match
/// conditions without a name get one.
#[derive(Debug, clap::Args)]
pub(super) struct Import {
    /// Policy files, folders with policy files, or ConfigMaps that contain policy files; `-` for stdin
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

impl Import {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let mut files = ImportedFiles::default();
        for file in policies::read_files(&self.paths)? {
            files.add_file_or_config_map_entries(file)?;
        }
        let set = policies::compile_and_print_warnings(
            &files.policies,
            &|path| files.read_from_config_map_or_disk(path),
            &[],
        )?;
        let imported = set.file_policies_to_resources();
        let mut faults = files.unused_file_errors();
        for policy in &imported {
            faults.extend(policy.errors.iter().map(|error| format!("{}: {error}", policy.source)));
        }
        if imported.is_empty() {
            faults.push("the input contains no policies".to_owned());
        }
        if !faults.is_empty() {
            return Err(Failure::Inputs(faults));
        }
        for (index, policy) in imported.iter().enumerate() {
            let document = doc::parse(&policy.json).map_err(|error| Failure::Input(error.detail))?;
            let separator = if index > 0 { "---\n" } else { "" };
            write!(console, "{separator}{}", print::to_block_yaml(document.root()))?;
        }
        Ok(ExitCounts::default())
    }
}

/// The policy files to import, including those in ConfigMaps.
#[derive(Default)]
struct ImportedFiles {
    policies: Vec<PolicyFile>,
    /// Files in ConfigMaps that are no policies, such as JSON Schemas.
    others: Vec<PolicyFile>,
    /// Names of the files in `others` that a policy refers to.
    used: RefCell<BTreeSet<String>>,
}

impl ImportedFiles {
    /// Adds a file; if it contains ConfigMaps, adds the files in them instead.
    fn add_file_or_config_map_entries(&mut self, file: PolicyFile) -> Result<(), Failure> {
        let all: Vec<_> = documents(&file.text).flatten().collect();
        let is_map =
            |root: Value<'_>| root.get("kind").str() == "ConfigMap" && root.get("apiVersion").str() == "v1";
        if !all.iter().any(|document| is_map(document.doc.root())) {
            self.policies.push(file);
            return Ok(());
        }
        for document in &all {
            let root = document.doc.root();
            if is_policy(root) {
                let message = "contains a ConfigMap and policies; put the policies into another file";
                return Err(Failure::Input(format!("{}: {message}", file.name)));
            }
            let data = root.get("data").members().filter(|_| is_map(root));
            for (key, text) in data.filter(|(key, _)| !policy::is_test_file(key.text())) {
                let inner =
                    PolicyFile { name: format!("{}/{}", file.name, key.text()), text: text.str().to_owned() };
                let mut parts = documents(&inner.text);
                // What cannot be parsed is reported with the policies.
                let has_policy = parts.any(|part| part.map_or(true, |part| is_policy(part.doc.root())));
                if has_policy { self.policies.push(inner) } else { self.others.push(inner) }
            }
        }
        Ok(())
    }

    /// Reads a file that a policy refers to: from the same ConfigMap, or from the file system. The keys of a ConfigMap
    /// have dots for the slashes of a path.
    fn read_from_config_map_or_disk(&self, path: &str) -> Result<String, String> {
        let flat = |path: &str| path.replace('/', ".");
        match self.others.iter().find(|file| flat(&file.name) == flat(path)) {
            Some(file) => {
                self.used.borrow_mut().insert(file.name.clone());
                Ok(file.text.clone())
            }
            None => policies::read_referenced(path),
        }
    }

    /// Returns an error for each file that is neither a policy nor used by one, because it may be a policy with a
    /// mistake.
    fn unused_file_errors(&self) -> Vec<String> {
        let used = self.used.borrow();
        let unused = self.others.iter().filter(|file| !used.contains(&file.name));
        unused.map(|file| format!("{}: is not a policy, and no policy refers to it", file.name)).collect()
    }
}

fn is_policy(root: Value<'_>) -> bool {
    root.get("apiVersion").str().split('/').next() == Some(PolicyKind::GROUP)
}
