//! `--policy PATH`: reads and compiles policy files and folders. A set that does not load stops the run.
//!
//! Policies that are custom resources of a cluster are compiled together with the files. As in `serve`, an invalid
//! resource does not affect the others.

use std::path::{Path, PathBuf};

use super::console::Console;
use super::outcome::Failure;
use crate::files::{self, DEFAULT_MAX_FILE_BYTES, Input};
use tollgate_document::source::{self, InputError};
use tollgate_engine::policy::{self, Acceptance, PolicyFile, PolicyResource, PolicySet, ReadSchemaFile};

/// The policy files that were found in some paths, the folders that were searched, and the errors.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct FoundPolicyFiles {
    pub(super) files: Vec<PolicyFile>,
    pub(super) folders: Vec<PathBuf>,
    pub(super) errors: Vec<String>,
}

/// Loads the policies in these paths and these resources. With `root`, files cannot refer to files outside of that
/// folder. Resources that are not in force are reported on stderr.
pub(super) fn load_policy_set(
    paths: &[PathBuf],
    root: Option<&Path>,
    resources: &[PolicyResource],
) -> Result<PolicySet, Failure> {
    let texts = if paths.is_empty() { Vec::new() } else { read_files(paths)? };
    let read = |path: &str| match root {
        None => read_referenced(path),
        Some(root) => read_referenced_within(path, root),
    };
    let set = compile_and_print_warnings(&texts, &read, resources)?;
    if let Some(error) = no_policies_error(paths, &texts, &set) {
        return Err(Failure::Input(error));
    }
    for state in set.policy_resource_states() {
        let policy = format!("{}/{} of the cluster", state.kind.name(), state.name);
        match &state.acceptance {
            Acceptance::Accepted => {}
            Acceptance::ReplacedByFile => {
                Console::open()
                    .note(&format!("{policy} is not used: a file has a policy of that kind and name"));
            }
            Acceptance::Rejected(errors) => {
                let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                Console::open().warning(&format!(
                    "{policy} is invalid, so requests that it matches get its failurePolicy: {}",
                    errors.join("; ")
                ));
            }
        }
    }
    Ok(set)
}

/// Returns an error if one of the files in `paths` is empty but for comments, or if the files and folders together
/// contain no policies. `texts` are the files that were read.
pub(super) fn no_policies_error(paths: &[PathBuf], texts: &[PolicyFile], set: &PolicySet) -> Option<String> {
    let is_named =
        |file: &&PolicyFile| paths.iter().any(|path| Input::File(path.clone()).name() == file.name);
    let has_content = |text: &str| {
        source::documents(text)
            .any(|document| document.map_or(true, |found| !found.doc.root().is_null_or_absent()))
    };
    let empty = texts.iter().filter(is_named).find(|file| !has_content(&file.text));
    let names = match empty {
        Some(file) => file.name.clone(),
        None if !paths.is_empty() && set.has_no_policies_from_files() => {
            paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
        }
        None => return None,
    };
    Some(format!("{names}: contains no policies"))
}

/// Why the policies of a cluster could not be read.
#[cfg(feature = "cluster")]
#[derive(Debug)]
pub(super) enum UnreadResources {
    /// The user may not list them. The message names a ClusterRole that allows it.
    Forbidden(String),
    Failed(String),
}

#[cfg(feature = "cluster")]
impl From<UnreadResources> for Failure {
    fn from(unread: UnreadResources) -> Failure {
        let (UnreadResources::Forbidden(why) | UnreadResources::Failed(why)) = unread;
        Failure::Input(why)
    }
}

/// Reads the policies that are custom resources of a cluster; none if their definitions are not installed.
#[cfg(feature = "cluster")]
pub(super) fn read_resources(
    cluster: &crate::cluster::Cluster,
) -> Result<Vec<PolicyResource>, UnreadResources> {
    use crate::cluster::{KeptFieldsAndSizeLimit, ListEvent};
    use policy::PolicyKind;

    let endpoint = cluster.endpoint();
    // A user without permissions cannot see from a list whether the kind exists.
    let installed = cluster.creatable_policy_kinds().map_err(|error| {
        UnreadResources::Failed(format!("{endpoint}: cannot read whether policies are installed: {error}"))
    })?;
    let (mut resources, mut left_out) = (Vec::new(), None);
    for listed in &installed {
        let Some(kind) = PolicyKind::parse(listed.kind) else { continue };
        let result = cluster.list(
            listed,
            listed.versions,
            None,
            KeptFieldsAndSizeLimit::WHOLE_OBJECTS,
            &mut |event| match event {
                ListEvent::Object { object, .. } => {
                    resources.push(PolicyResource::new(kind, object.to_json()));
                }
                ListEvent::LeftOut { name, why, .. } => {
                    left_out = Some(format!("{} {name} {why}", kind.name()))
                }
                ListEvent::Page { .. } => {}
            },
        );
        if let Err(failed) = result {
            let name = listed.kubectl_resource_name();
            let why = format!("{endpoint}: cannot list {name}: {failed}");
            return Err(match failed.error.http_status_or_zero() {
                403 => UnreadResources::Forbidden(format!(
                    "{why}; allow `list` on {name}, for example with the ClusterRole tollgate-policy-reader of \
                     manifests/components/policy-resources"
                )),
                _ => UnreadResources::Failed(why),
            });
        }
    }
    match left_out {
        Some(left_out) => Err(UnreadResources::Failed(format!("{endpoint}: {left_out}"))),
        None => Ok(resources),
    }
}

/// Reads a file that a policy refers to. Errors are reported at the field that refers to the file.
pub(super) fn read_referenced(path: &str) -> Result<String, String> {
    files::read_regular(Path::new(path), DEFAULT_MAX_FILE_BYTES)
        .and_then(|bytes| source::decode_by_byte_order_mark(path, bytes))
        .map_err(|error| error.message)
}

/// Reads a file that an untrusted policy refers to: only files below `root` can be read.
fn read_referenced_within(path: &str, root: &Path) -> Result<String, String> {
    let real = std::fs::canonicalize(path).map_err(|error| files::io_reason(&error))?;
    if !real.starts_with(root) {
        return Err("is outside the repository".to_owned());
    }
    read_referenced(path)
}

/// Returns the top of the repository of a file, or its folder if it is in none; `None` if the file does not
/// exist.
fn repository_or_folder_of(file: &str) -> Option<PathBuf> {
    let real = std::fs::canonicalize(file).ok()?;
    let folder = real.parent()?;
    let top = folder.ancestors().find(|folder| folder.join(".git").exists());
    Some(top.unwrap_or(folder).to_owned())
}

/// Returns the errors of the policies in a text, each with the index of its document. Policies can refer only to
/// files in the same repository.
pub(super) fn policy_errors_by_document_index(file: &str, text: &str) -> Vec<(usize, InputError)> {
    let root = repository_or_folder_of(file);
    let read = |path: &str| match &root {
        Some(root) => read_referenced_within(path, root),
        None => Err("cannot be read: the policy is not in a file".to_owned()),
    };
    let file = PolicyFile { name: file.to_owned(), text: text.to_owned() };
    policy::policy_errors_with_document_index(&file, &read)
}

/// Compiles policy files and policies that are custom resources. `read_schema` reads the schema files that policies
/// refer to.
pub(super) fn compile_and_print_warnings(
    texts: &[PolicyFile],
    read_schema: ReadSchemaFile<'_>,
    resources: &[PolicyResource],
) -> Result<PolicySet, Failure> {
    let set = PolicySet::load_with_resources(texts, read_schema, resources, None)
        .map_err(|errors| Failure::Inputs(errors.iter().map(ToString::to_string).collect()))?;
    set.load_warnings().iter().for_each(|warning| Console::open().warning(&warning.to_string()));
    Ok(set)
}

/// Reads the policy files in these paths; fails with all errors if there are any.
pub(super) fn read_files(paths: &[PathBuf]) -> Result<Vec<PolicyFile>, Failure> {
    let texts = read_files_with_errors(paths);
    if texts.errors.is_empty() { Ok(texts.files) } else { Err(Failure::Inputs(texts.errors)) }
}

/// Reads the policy files in these paths, and collects errors instead of failing.
pub(super) fn read_files_with_errors(paths: &[PathBuf]) -> FoundPolicyFiles {
    let found = files::collect(paths).turn_outside_links_into_errors();
    let mut texts = FoundPolicyFiles { folders: found.folders, ..FoundPolicyFiles::default() };
    texts.errors.extend(found.errors.iter().map(ToString::to_string));
    for input in &found.inputs {
        match files::read(input, DEFAULT_MAX_FILE_BYTES) {
            Ok(text) => texts.files.push(PolicyFile { name: input.name(), text }),
            Err(error) => texts.errors.push(error.to_string()),
        }
    }
    texts
}
