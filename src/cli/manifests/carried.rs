//! Files named by flags, as the server in the cluster gets them: a ConfigMap, a volume, and the flag with the path of
//! the mounted files.
//!
//! Relative paths between the files are kept, so that a `schemaFile` finds its schema. Invariant: the files load in the
//! cluster as they do here; that is checked before anything is printed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::super::config::normalized_absolute_path;
use super::super::outcome::Failure;
use super::super::policies;
use tollgate_engine::policy::{self, PolicyFile};
use tollgate_formats::gofmt::json_string;

/// Maximum size of a ConfigMap in bytes: upstream v1.37 MaxSecretSize.
const MAX_CONFIG_MAP_BYTES: usize = 1 << 20;
/// Maximum size of an object for `kubectl apply`, which copies it to an annotation; annotations have at most 256
/// KiB.
const MAX_KUBECTL_APPLY_BYTES: usize = 250 << 10;
/// Endings of the files that the server reads from a folder.
const SEARCHED_ENDINGS: [&str; 3] = [".yaml", ".yml", ".json"];

/// The files named by one flag, which are mounted into the server from a ConfigMap.
#[derive(Debug)]
pub(super) struct ConfigMapFiles {
    flag: &'static str,
    /// Name of the volume. The folder and the ConfigMap are named after it.
    volume: &'static str,
    /// Contents of the files, by path in the volume.
    files: BTreeMap<String, String>,
}

impl ConfigMapFiles {
    /// Reads the policy files in these paths, with the schemas that they refer to.
    pub(super) fn read_policies_with_schemas(paths: &[PathBuf]) -> Result<ConfigMapFiles, Failure> {
        let mut files = policies::read_files(paths)?;
        let schemas = RefCell::new(BTreeMap::new());
        let keep = |path: &str| {
            let text = policies::read_referenced(path)?;
            schemas.borrow_mut().insert(path.to_owned(), text.clone());
            Ok(text)
        };
        let set = policies::compile_and_print_warnings(&files, &keep, &[])?;
        if let Some(error) = policies::no_policies_error(paths, &files, &set) {
            return Err(Failure::Input(error));
        }
        files.retain(|file| !policy::is_test_file(&file.name));
        let schemas = schemas.into_inner().into_iter();
        let schemas: Vec<_> = schemas.map(|(name, text)| PolicyFile { name, text }).collect();
        let carried = ConfigMapFiles::assign_volume_paths("--policy", "policies", &files, &schemas)?;
        carried.check_that_policies_load()?;
        Ok(carried)
    }

    /// Reads the files with ResourceClasses in these paths.
    pub(super) fn read_resource_classes(paths: &[PathBuf]) -> Result<ConfigMapFiles, Failure> {
        ConfigMapFiles::assign_volume_paths("--classes", "classes", &policies::read_files(paths)?, &[])
    }

    /// Gives each file a path in one folder. The server finds the files in `found` by searching that folder, and
    /// those in `referenced` by their relative paths.
    fn assign_volume_paths(
        flag: &'static str,
        volume: &'static str,
        found: &[PolicyFile],
        referenced: &[PolicyFile],
    ) -> Result<ConfigMapFiles, Failure> {
        let input = |name: &str, why: &str| {
            Failure::Input(format!("{}: {why}", tollgate_formats::sanitize::sanitize_as_line(name)))
        };
        let is_found = |name: &str| SEARCHED_ENDINGS.iter().any(|ending| name.ends_with(ending));
        let mut placed: Vec<(PathBuf, &PolicyFile)> = Vec::new();
        for file in found {
            let path = normalized_absolute_path(Path::new(&file.name));
            let named =
                if is_found(&file.name) { path } else { PathBuf::from(format!("{}.yaml", path.display())) };
            placed.push((named, file));
        }
        placed.extend(referenced.iter().map(|file| (normalized_absolute_path(Path::new(&file.name)), file)));
        let mut root =
            placed.first().and_then(|(path, _)| path.parent()).unwrap_or(Path::new("/")).to_owned();
        while !placed.iter().all(|(path, _)| path.starts_with(&root)) && root.pop() {}
        let mut files = BTreeMap::new();
        for (path, file) in &placed {
            let relative = path.strip_prefix(&root).ok().and_then(Path::to_str);
            let relative = relative.ok_or_else(|| input(&file.name, "the name is not valid UTF-8"))?;
            // The server searches a folder as this program does: hidden files are passed over.
            if relative.split('/').any(|part| part.starts_with('.')) {
                return Err(input(
                    &file.name,
                    "the server would not find a hidden file; rename it, or its folder",
                ));
            }
            files.insert(relative.to_owned(), file.text.clone());
        }
        let bytes: usize = files.values().map(String::len).sum();
        if bytes > MAX_CONFIG_MAP_BYTES {
            return Err(Failure::Input(format!(
                "the {volume} have {bytes} bytes, but a ConfigMap holds at most {MAX_CONFIG_MAP_BYTES}: remove what this \
                 cluster does not need, or install with manifests/overlays/self-managed, which registers the webhook \
                 by itself, and mount the {volume} from a volume of your own with {flag}"
            )));
        }
        Ok(ConfigMapFiles { flag, volume, files })
    }

    /// Compiles the policies as the server will find them, and returns an error if they do not load there.
    fn check_that_policies_load(&self) -> Result<(), Failure> {
        let at = |path: &str| format!("{}/{path}", self.mount_folder());
        let is_found = |name: &str| SEARCHED_ENDINGS.iter().any(|ending| name.ends_with(ending));
        let all = self.files.iter().map(|(path, text)| PolicyFile { name: at(path), text: text.clone() });
        let (found, referenced): (Vec<_>, Vec<_>) = all.partition(|file| is_found(&file.name));
        let read = |path: &str| {
            let wanted = policy::normalized_path(path);
            let file = referenced.iter().find(|file| file.name == wanted);
            file.map(|file| file.text.clone()).ok_or_else(|| {
                "a server in the cluster does not have this file; use a path that is relative to the policy".to_owned()
            })
        };
        policies::compile_and_print_warnings(&found, &read, &[]).map(drop)
    }

    /// Returns the folder in the container where the ConfigMap is mounted.
    fn mount_folder(&self) -> String {
        format!("/{}", self.volume)
    }

    /// Returns the argument of the server that names the folder: `--policy=/policies`.
    pub(super) fn server_argument(&self) -> String {
        format!("{}={}", self.flag, self.mount_folder())
    }

    /// The name of the ConfigMap.
    pub(super) fn config_map_name(&self) -> String {
        format!("tollgate-{}", self.volume)
    }

    /// True if the ConfigMap is too large for the annotation of `kubectl apply`.
    pub(super) fn needs_server_side_apply(&self) -> bool {
        self.files.values().map(String::len).sum::<usize>() > MAX_KUBECTL_APPLY_BYTES
    }

    /// The manifest of the ConfigMap.
    pub(super) fn config_map_manifest(&self, namespace: &str) -> String {
        let mut text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {}\n  namespace: {namespace}\n  labels: {{app.kubernetes.io/name: tollgate}}\ndata:\n",
            self.config_map_name()
        );
        for (key, (_, contents)) in self.config_map_keys().into_iter().zip(&self.files) {
            // Writing to a `String` cannot fail.
            _ = write!(text, "  {key:?}: {}", config_map_value(contents));
        }
        text
    }

    /// Returns the line of the container that mounts the volume, as YAML.
    pub(super) fn mount_yaml(&self) -> String {
        format!("        - {{name: {}, mountPath: {}, readOnly: true}}\n", self.volume, self.mount_folder())
    }

    /// Returns the volume of the pod as YAML. Keys of a ConfigMap cannot contain `/`, so it maps them to the
    /// paths of the files.
    pub(super) fn volume_yaml(&self) -> String {
        let (volume, name) = (self.volume, self.config_map_name());
        let mut text = format!("      - name: {volume}\n        configMap:\n          name: {name}\n");
        let keys = self.config_map_keys();
        if keys.iter().zip(self.files.keys()).any(|(key, path)| key != path) {
            text.push_str("          items:\n");
            for (key, path) in keys.iter().zip(self.files.keys()) {
                let quoted = json_string(path);
                _ = writeln!(text, "          - {{key: {key:?}, path: {quoted}}}");
            }
        }
        text
    }

    /// Returns the ConfigMap keys of the files in order: letters, digits, `-`, `_` and `.`, each different.
    fn config_map_keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = Vec::new();
        for path in self.files.keys() {
            let legal = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '.' };
            let mut key: String = path.chars().map(legal).collect();
            // At most 253 characters, and no two are the same.
            key.drain(..key.len().saturating_sub(240));
            key.drain(..key.len() - key.trim_start_matches('.').len());
            if keys.contains(&key) {
                key = format!("{}.{key}", keys.len());
            }
            keys.push(key);
        }
        keys
    }
}

/// Returns a text as YAML value of a ConfigMap key: a readable block if it has exactly the same content, else in
/// quotes.
fn config_map_value(text: &str) -> String {
    let is_plain = |c: char| !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}');
    let is_block = text.ends_with('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with(char::is_whitespace)
        && text.chars().all(|c| c == '\n' || is_plain(c));
    if !is_block {
        let quoted = json_string(text);
        // These end a line, or are refused, even in quotes.
        return format!("{}\n", quoted.replace('\u{85}', "\\u0085").replace('\u{feff}', "\\ufeff"));
    }
    let mut block = "|\n".to_owned();
    for line in text.lines() {
        if !line.is_empty() {
            block.push_str("    ");
        }
        block.push_str(line);
        block.push('\n');
    }
    block
}
