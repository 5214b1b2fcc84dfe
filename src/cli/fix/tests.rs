//! `--fix` on all fixtures and on the corpus, as JSON and as YAML: it never makes anything worse, it comes to an end,
//! and comments survive, and no fix matches more than a server did. `make fixes` runs it on all cases; otherwise on a
//! part of the corpus, the same one each time.
#![expect(clippy::disallowed_methods, reason = "reads the fixtures")]
#![expect(
    clippy::expect_used,
    clippy::disallowed_macros,
    clippy::print_stdout,
    reason = "a test that cannot read its data has failed; the counts are for people"
)]

use std::fmt::Write as _;
use std::path::Path;

use super::coverage;
use super::verdict::{self, CheckedText};
use super::{FixedText, Fixer};
use crate::cli::check::{TextChecker, TextSource};
use crate::config::{Levels, LevelsAndOverrides};
use tollgate_api::profile::Profile;
use tollgate_document::doc::{Value, ValueKind};
use tollgate_document::finding::Applicability;
use tollgate_document::source;
use tollgate_engine::engine::Engine;
use tollgate_engine::rules::RuleSet;

/// One in this number of corpus cases is tested.
const SAMPLE: usize = 23;

fn engine() -> Engine {
    Engine::new(vec![Profile::named("1.37").expect("a profile")], RuleSet::compile(|_| true))
}

fn checker<'r>(engine: &'r Engine, levels: &'r Levels) -> TextChecker<'r> {
    TextChecker {
        engine,
        namespaces: None,
        claims: None,
        profiles: &["1.37"],
        acceptance: LevelsAndOverrides { file_levels: levels, flag_levels: levels, overrides: &[] },
        now: "2026-06-01T00:00:00Z",
    }
}

fn fixtures() -> Vec<(String, String)> {
    fn read(folder: &Path, found: &mut Vec<(String, String)>) {
        let mut entries: Vec<_> = std::fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                read(&path, found);
            } else if path.extension().is_some_and(|end| end == "yaml" || end == "json")
                && let Ok(text) = std::fs::read_to_string(&path)
            {
                found.push((path.display().to_string(), text));
            }
        }
    }
    let mut found = Vec::new();
    for folder in ["rules", "mistakes", "positions", "report"] {
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder), &mut found);
    }
    found
}

/// Every `sample`-th case of the corpus as JSON.
fn every_nth_corpus_case(sample: usize) -> Vec<(String, String)> {
    use crate::conformance::{Corpus, CorpusSet};
    let sets = [CorpusSet::Corpus, CorpusSet::Generated];
    let corpus = Corpus::read(&sets, "default").expect("the shipped cases");
    corpus.cases.into_iter().step_by(sample).map(|case| (case.id, case.object)).collect()
}

/// JSON as people write YAML; texts in quotes.
fn to_yaml(value: Value<'_>, indent: usize, out: &mut String) {
    let blanks = " ".repeat(indent);
    match value.kind() {
        ValueKind::Object if !value.is_empty() => {
            for (key, member) in value.members() {
                let mut name = String::new();
                tollgate_formats::gofmt::push_json_string(&mut name, key.text());
                _ = write!(out, "\n{blanks}{name}:");
                to_yaml(member, indent + 2, out);
            }
        }
        ValueKind::Array if !value.is_empty() => {
            for item in value.items() {
                let mut inner = String::new();
                to_yaml(item, indent + 2, &mut inner);
                // The first member stands beside the dash.
                _ = write!(out, "\n{blanks}-{}", inner.replacen(&format!("\n{blanks}  "), " ", 1));
            }
        }
        _ => _ = write!(out, " {}", value.to_json()),
    }
}

/// Number of fixes, and how many of them were reverted.
#[derive(Default, Debug)]
struct Counts {
    texts: usize,
    fixes: usize,
    rejected: usize,
    fixed: usize,
}

fn assert_fixes_are_safe_and_count_them(engine: &Engine, name: &str, text: &str, counts: &mut Counts) {
    let levels = Levels::default();
    let texts = checker(engine, &levels);
    let before = CheckedText::from_text(&texts, name, text, TextSource::Named);
    counts.texts += 1;
    for finding in &before.findings {
        let Some(fix) = &finding.fix else { continue };
        counts.fixes += 1;
        let fixed = source::apply(text, &fix.edits);
        let widens = coverage::widens_selector_or_toleration_match(text, &fixed, &[finding]);
        assert!(!widens, "{name}: {} matches more than before\n{fixed}", finding.rejection_key());
        let after = CheckedText::from_text(&texts, name, &fixed, TextSource::Named);
        if !verdict::improves_text(&before, &after, &[finding]) {
            println!("taken back in {name}: {}", finding.rejection_key());
            counts.rejected += 1;
        }
    }
    for applies in [Applicability::Safe, Applicability::Unsafe] {
        let fixer = Fixer { texts, applies, source: TextSource::Named };
        let Some(FixedText { text: fixed, findings }) = fixer.fix(name, text) else { continue };
        counts.fixed += findings;
        let after = CheckedText::from_text(&texts, name, &fixed, TextSource::Named);
        assert!(verdict::stays_valid(&before, &after), "{name}: {fixed}");
        assert_eq!(fixer.fix(name, &fixed), None, "{name}: fixing twice changes more\n{fixed}");
    }
}

/// Fixes the text with a comment before every line: each of the comments must be there afterwards.
fn assert_fixes_keep_comments(engine: &Engine, name: &str, text: &str) {
    let levels = Levels::default();
    let texts = checker(engine, &levels);
    let mut commented = String::new();
    for (number, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        _ = write!(commented, "{}# kept {number}.\n{line}\n", " ".repeat(indent));
    }
    let fixer = Fixer { texts, applies: Applicability::Unsafe, source: TextSource::Named };
    let Some(fixed) = fixer.fix(name, &commented) else { return };
    for number in 0..text.lines().count() {
        assert!(
            fixed.text.contains(&format!("# kept {number}.")),
            "{name}: comment {number} is gone\n{}",
            fixed.text
        );
    }
}

fn assert_fixes_in_fixtures_and_corpus(sample: usize) -> Counts {
    let engine = engine();
    let mut counts = Counts::default();
    for (name, text) in fixtures() {
        assert_fixes_are_safe_and_count_them(&engine, &name, &text, &mut counts);
        // A comment inside of a value would be a part of it.
        let has_long_values =
            text.contains(['|', '>', '"', '\'']) && text.contains("\n\n") || text.contains(": |");
        if name.ends_with("yaml") && !has_long_values && !text.contains('\r') {
            assert_fixes_keep_comments(&engine, &name, &text);
        }
    }
    for (name, text) in every_nth_corpus_case(sample) {
        assert_fixes_are_safe_and_count_them(&engine, &name, &text, &mut counts);
        let doc = tollgate_document::doc::parse(&text).expect("JSON");
        let mut yaml = String::new();
        to_yaml(doc.root(), 0, &mut yaml);
        let yaml = format!("{}\n", yaml.trim_start());
        assert_fixes_are_safe_and_count_them(&engine, &name, &yaml, &mut counts);
        assert_fixes_keep_comments(&engine, &name, &yaml);
    }
    println!("{counts:?}");
    counts
}

#[test]
fn fixes_never_make_anything_worse() {
    let counts = assert_fixes_in_fixtures_and_corpus(SAMPLE);
    assert!(counts.fixes > 400, "{counts:?}");
}

#[test]
#[ignore = "minutes: make fixes"]
fn fixes_never_make_anything_worse_in_all_cases() {
    assert!(assert_fixes_in_fixtures_and_corpus(1).fixes > 1_000);
}

#[test]
fn a_fix_that_did_not_help_is_tried_again_after_others() {
    // `name: 5` can only be quoted after one of the two `metadata` is gone, which the wrong key prevents at first.
    super::fuzzing::fuzz_fix(
        "apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: 5, finalizers: [gpu.example.com/a]}
spec: {}
metadata: {name: 5, finalizer: [gpu.example.com/a]}
",
    );
}
