//! The engine, policies, namespaces and levels with which a document is checked.
//!
//! Loaded from the configuration file of the document and the flags of the command, again when files change. It checks
//! through `TextChecker`, as `validate` does.
//!
//! Invariant: a checker never mixes an old and a new configuration.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::super::check::{FileRole, TextSource};
use super::super::clock;
use super::super::config::{CONFIG_NAME, ConfiguredEngine, MergedSettings, config_file_errors};
use super::super::fix::Fixer;
use super::super::outcome::Failure;
use super::Arguments;
use super::problems::{self, Problem, Severity};
use crate::files::Input;
use tollgate_document::finding::Applicability;
use tollgate_document::source::nul_byte_error;

/// Maximum size in bytes of a text that is checked while it is edited.
const MAX_TEXT_BYTES: usize = 8 << 20;

/// The source of texts of an editor. They are treated like files found in a folder, because an editor opens any file:
/// those that are not manifests are skipped.
const TEXT_SOURCE: TextSource = TextSource::Found(FileRole::Plain);

/// Maximum size in bytes of a text in which all problems are fixed at once, because the editor waits for the
/// result.
const MAX_FIXED_TEXT_BYTES: usize = 1 << 20;

/// An engine with the settings of one configuration file, which checks documents.
#[derive(Debug)]
pub(super) struct DocumentChecker {
    pub(super) configured: ConfiguredEngine,
}

/// The checkers of a session, one for each configuration file.
#[derive(Debug)]
pub(super) struct DocumentCheckers<'a> {
    arguments: &'a Arguments,
    /// The loaded checkers, by name of the configuration file.
    pub(super) loaded: BTreeMap<Option<String>, Arc<DocumentChecker>>,
    /// The checker without configuration file, policies and namespaces, for documents whose own cannot be loaded.
    bare: Arc<DocumentChecker>,
}

impl<'a> DocumentCheckers<'a> {
    pub(super) fn new(arguments: &'a Arguments) -> Result<DocumentCheckers<'a>, Failure> {
        let mut flags = arguments.engine.clone();
        flags.policies.paths.clear();
        let settings = MergedSettings::new(&flags, None, &arguments.config.levels, None, None)?;
        let bare = Arc::new(DocumentChecker { configured: ConfiguredEngine::load(settings, None)? });
        Ok(DocumentCheckers { arguments, loaded: BTreeMap::new(), bare })
    }

    /// Returns the checker for a file, or for the working directory (`None`). If its configuration cannot be
    /// loaded, returns the checker `before` or the one without configuration, and the error.
    pub(super) fn checker_for(
        &mut self,
        file: Option<&Path>,
        before: Option<&Arc<DocumentChecker>>,
    ) -> (Arc<DocumentChecker>, Option<String>) {
        match self.cached_or_loaded_checker_for(file) {
            Ok(judge) => (judge, None),
            Err(failure) => (Arc::clone(before.unwrap_or(&self.bare)), Some(failure.message())),
        }
    }

    fn cached_or_loaded_checker_for(&mut self, file: Option<&Path>) -> Result<Arc<DocumentChecker>, Failure> {
        let Arguments { namespaces, config: flags, engine, .. } = self.arguments;
        let input = file.map_or(Input::Stdin, |file| Input::File(file.to_owned()));
        let config = flags.lookup()?.find_for_input(&input)?;
        let name = config.as_ref().map(|found| found.file.name.clone());
        if let Some(known) = self.loaded.get(&name) {
            return Ok(Arc::clone(known));
        }
        let settings =
            MergedSettings::new(engine, None, &flags.levels, namespaces.as_ref(), config.as_deref())?;
        let judge = Arc::new(DocumentChecker { configured: ConfiguredEngine::load(settings, config)? });
        self.loaded.insert(name, Arc::clone(&judge));
        Ok(judge)
    }
}

impl DocumentChecker {
    /// Checks a text and returns its problems in order.
    pub(super) fn check(&self, file: &str, text: &str) -> Vec<Problem> {
        let mut found = Vec::new();
        if is_config(file) {
            return config_file_errors(file, text)
                .iter()
                .map(|error| Problem::config_error(text, error))
                .collect();
        }
        let input = Input::File(file.into());
        if self.configured.config.as_ref().is_some_and(|config| config.excludes(&input)) {
            return found;
        }
        if text.len() > MAX_TEXT_BYTES {
            return vec![Problem::without_rule(
                0..0,
                Severity::Information,
                format!(
                    "files larger than {} MiB are not checked in the editor; run `tollgate validate`",
                    MAX_TEXT_BYTES >> 20
                ),
            )];
        }
        if let Some(error) = nul_byte_error(file, text) {
            return vec![problems::problem_of_parse_error(&error, text)];
        }
        let (now, overrides) = (clock::now_rfc3339(), self.configured.overrides_for_input(&input));
        let checker = self.configured.checker(None, &now, &overrides);
        checker.check_text(file, text, TEXT_SOURCE, &mut |result| {
            problems::add_problems_up_to_limit(result, &mut found)
        });
        found.sort_by_key(|problem| problem.bytes.start);
        found
    }

    /// Returns the text with all safe fixes, as `validate --fix` writes it; `None` if there is nothing to fix.
    pub(super) fn text_with_all_safe_fixes(&self, file: &str, text: &str) -> Option<String> {
        if text.len() > MAX_FIXED_TEXT_BYTES {
            return None;
        }
        let overrides = self.configured.overrides_for_input(&Input::File(file.into()));
        let now = clock::now_rfc3339();
        let fixer = Fixer {
            texts: self.configured.checker(None, &now, &overrides),
            source: TEXT_SOURCE,
            applies: Applicability::Safe,
        };
        fixer.fix(file, text).map(|fixed| fixed.text)
    }
}

/// True if the file is a configuration file, by its name.
pub(super) fn is_config(file: &str) -> bool {
    Path::new(file).file_name().is_some_and(|name| name == CONFIG_NAME)
}
