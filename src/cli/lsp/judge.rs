//! What documents are checked with: an engine, its policies, and the namespaces they ask for.
//!
//! Loaded from the flags of the command, again when files change. It checks through [`TextChecker`], as `validate` does.
//!
//! Invariant: a judge is never half of an old and half of a new configuration.

use std::path::{Path, PathBuf};

use super::super::check::TextChecker;
use super::super::fix::Fixer;
use super::super::levels::LevelArgs;
use super::super::outcome::Failure;
use super::super::shared::{DefaultRules, GlobalArgs};
use super::super::{clock, namespaces};
use super::problems::{self, Problem};
use crate::config::{Acceptance, Levels};
use crate::engine::{Engine, Namespaces};
use crate::finding::Applicability;

/// Bytes of a text at most: larger ones are not checked while they are edited.
const MAX_TEXT: usize = 8 << 20;

/// Bytes of a text at most in which everything is fixed at once: the editor waits for it.
const MAX_FIXED_TEXT: usize = 1 << 20;

/// An engine and what it is asked with.
#[derive(Debug)]
pub(super) struct Judge {
    pub(super) engine: Engine,
    namespaces: Option<Namespaces>,
    profiles: Vec<&'static str>,
    levels: Levels,
    file_levels: Levels,
}

/// Where a judge comes from.
#[derive(Debug)]
pub(super) struct JudgeSource<'a> {
    pub(super) shared: &'a GlobalArgs,
    pub(super) namespaces: Option<&'a Path>,
    pub(super) levels: &'a LevelArgs,
}

impl JudgeSource<'_> {
    /// Loads policies and namespaces.
    pub(super) fn load(&self) -> Result<Judge, Failure> {
        let namespaces = self.namespaces.map(namespaces::read).transpose()?;
        let engine = self.shared.engine(DefaultRules::Offline)?;
        Ok(self.judge(engine, namespaces))
    }

    /// Without policies and namespaces: for a start with files that do not load.
    pub(super) fn load_bare(&self) -> Result<Judge, Failure> {
        let mut bare = self.shared.clone();
        bare.policy = Vec::<PathBuf>::new();
        let engine = bare.engine(DefaultRules::Offline)?;
        Ok(self.judge(engine, None))
    }

    fn judge(&self, engine: Engine, namespaces: Option<Namespaces>) -> Judge {
        let profiles = engine.profiles.iter().map(|profile| profile.name).collect();
        Judge { engine, namespaces, profiles, levels: self.levels.levels(), file_levels: Levels::default() }
    }
}

impl Judge {
    /// The problems of a text, in its order.
    pub(super) fn check(&self, file: &str, text: &str) -> Vec<Problem> {
        let mut found = Vec::new();
        if !looks_like_manifest(text) {
            return found;
        }
        if text.len() > MAX_TEXT {
            return vec![Problem::not_checked(format!(
                "the file is larger than {} MiB and not checked while it is edited; run `tollgate validate`",
                MAX_TEXT >> 20
            ))];
        }
        let now = clock::now();
        self.checker(&now).check(file, text, &mut |result| problems::collect(result, &mut found));
        found.sort_by_key(|problem| problem.bytes.start);
        found
    }

    /// The text with all safe fixes, as `validate --fix` writes it; `None` if there is nothing to fix.
    pub(super) fn fix_all(&self, file: &str, text: &str) -> Option<String> {
        if text.len() > MAX_FIXED_TEXT {
            return None;
        }
        let now = clock::now();
        let fixer = Fixer { texts: self.checker(&now), applies: Applicability::Safe };
        fixer.fix(file, text).map(|fixed| fixed.text)
    }

    fn checker<'a>(&'a self, now: &'a str) -> TextChecker<'a> {
        TextChecker {
            engine: &self.engine,
            namespaces: self.namespaces.as_ref(),
            profiles: &self.profiles,
            acceptance: Acceptance {
                file_levels: &self.file_levels,
                flag_levels: &self.levels,
                overrides: &[],
            },
            now,
        }
    }
}

/// Some line begins with `apiVersion` or `kind`: other files are none of our business.
fn looks_like_manifest(text: &str) -> bool {
    let is_key = |line: &str| {
        let line = line.trim_start_matches([' ', '\t', '{', '-', '"', '\'']);
        line.starts_with("apiVersion") || line.starts_with("kind")
    };
    text.lines().any(is_key)
}
