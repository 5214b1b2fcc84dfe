//! Fixes of a text that comes from a fuzzer.
#![allow(clippy::expect_used, clippy::panic, reason = "a fuzz target fails by a panic")]

use std::sync::LazyLock;

use super::Fixer;
use super::verdict::{self, CheckedText};
use crate::cli::check::{TextChecker, TextSource};
use crate::config::{Levels, LevelsAndOverrides};
use tollgate_api::profile::Profile;
use tollgate_document::finding::Applicability;
use tollgate_engine::engine::Engine;
use tollgate_engine::rules::RuleSet;

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    Engine::new(vec![Profile::named("1.37").expect("a profile")], RuleSet::compile(|_| true))
});

/// Fixes a manifest: positions are inside the text, nothing becomes worse, and fixing again changes nothing.
pub(in crate::cli) fn fuzz_fix(text: &str) {
    let levels = Levels::default();
    let texts = TextChecker {
        engine: &ENGINE,
        namespaces: None,
        claims: None,
        profiles: &["1.37"],
        acceptance: LevelsAndOverrides { file_levels: &levels, flag_levels: &levels, overrides: &[] },
        now: "2026-06-01T00:00:00Z",
    };
    let before = CheckedText::from_text(&texts, "a.yaml", text, TextSource::Named);
    for finding in &before.findings {
        for edit in finding.fix.iter().flat_map(|fix| &fix.edits) {
            assert!(text.get(edit.location.bytes.clone()).is_some(), "{edit:?} is outside of the text");
        }
    }
    for applies in [Applicability::Safe, Applicability::Unsafe] {
        let fixer = Fixer { texts, applies, source: TextSource::Named };
        let Some(fixed) = fixer.fix("a.yaml", text) else { continue };
        let after = CheckedText::from_text(&texts, "a.yaml", &fixed.text, TextSource::Named);
        assert!(verdict::stays_valid(&before, &after), "worse than before: {}", fixed.text);
        assert_eq!(fixer.fix("a.yaml", &fixed.text), None, "fixing again changes more: {}", fixed.text);
    }
}
