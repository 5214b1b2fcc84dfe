//! Common mistakes: each is a finding whose help names the right fix, and most are mended by `--fix`.
//!
//! The data are in `tests/mistakes`; its README says how to read the marks.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_macros,
    reason = "a test that cannot read its data has failed; the counts are for people"
)]
#![expect(clippy::disallowed_methods, reason = "reads its data, copies them to fix them")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::program::{folder, run};
use tollgate::Value;

const JUDGE: [&str; 6] = ["validate", ".", "--kubernetes", "1.37", "--now", "2026-06-01T00:00:00Z"];

/// The expected finding on a line.
#[derive(Debug)]
struct Mark {
    line: usize,
    rule: String,
    help: String,
    /// The expected fix; empty for a finding that follows from another one.
    fix: String,
}

fn marks(text: &str) -> Vec<Mark> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for mark in line.split("#~").skip(1) {
            let mut parts = mark.split(" | ").map(str::trim);
            let mut one = Mark {
                line: index + 1,
                rule: parts.next().unwrap().to_owned(),
                help: String::new(),
                fix: String::new(),
            };
            for part in parts {
                match part.split_once(": ").expect("a key and a value") {
                    ("help", help) => help.clone_into(&mut one.help),
                    ("fix", fix) => fix.clone_into(&mut one.fix),
                    other => panic!("{other:?}"),
                }
            }
            found.push(one);
        }
    }
    found
}

fn data() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    files.into_iter().map(read).collect()
}

/// Copies the test data into a separate folder.
fn copy(name: &str) -> PathBuf {
    let folder = folder(name);
    for (file, text) in data() {
        std::fs::write(folder.join(file), text).unwrap();
    }
    folder
}

/// The findings of each file: rule, line, message with help, and available fix.
fn findings_by_file(folder: &Path) -> BTreeMap<String, Vec<(String, usize, String, String)>> {
    let (_, json, _) = run(folder, &[&JUDGE[..], &["-o", "json"]].concat());
    let (_, sarif, _) = run(folder, &[&JUDGE[..], &["-o", "sarif"]].concat());
    let sarif = tollgate::parse_json(&sarif).expect("SARIF");
    let messages: Vec<Value<'_>> = sarif.root().get("runs").item(0).get("results").items().collect();
    let mut messages = messages.into_iter().map(|result| result.get("message").get("text").str());
    let json = tollgate::parse_json(&json).expect("JSON");
    let mut found: BTreeMap<String, Vec<(String, usize, String, String)>> = BTreeMap::new();
    for result in json.root().get("results").items() {
        let file = found.entry(result.get("file").str().trim_start_matches("./").to_owned()).or_default();
        let error = result.get("error");
        if !error.is_null_or_absent() {
            let line = usize::try_from(error.get("line").int().unwrap()).unwrap();
            file.push((
                "unreadable".to_owned(),
                line,
                messages.next().unwrap().to_owned(),
                "none".to_owned(),
            ));
        }
        for finding in result.get("findings").items() {
            let line = usize::try_from(finding.get("line").int().unwrap()).unwrap();
            let fix = finding.get("fix").get("applicability").str();
            let fix = if fix.is_empty() { "none" } else { fix };
            let rule = finding.get("rule").str().to_owned();
            file.push((rule, line, messages.next().expect("a message").to_owned(), fix.to_owned()));
        }
    }
    found
}

#[test]
fn each_is_found_and_its_help_names_the_fix() {
    let found = findings_by_file(&copy("mistakes-judged"));
    let data = data();
    assert!(data.len() >= 120, "{}", data.len());
    for (file, text) in &data {
        let (marks, findings) = (marks(text), &found[file]);
        assert!(marks.iter().any(|mark| !mark.fix.is_empty() && !mark.help.is_empty()), "{file}: no mark");
        for mark in &marks {
            let here =
                |finding: &&(String, usize, String, String)| finding.0 == mark.rule && finding.1 == mark.line;
            let finding =
                findings.iter().find(here).unwrap_or_else(|| panic!("{file}: {mark:?}: {findings:?}"));
            assert!(finding.2.contains(&mark.help), "{file}: {mark:?}: {}", finding.2);
            assert!(mark.fix.is_empty() || mark.fix == finding.3, "{file}: {mark:?}: {}", finding.3);
        }
        for (rule, line, message, _) in findings {
            let is_marked = marks.iter().any(|mark| mark.rule == *rule && mark.line == *line);
            assert!(is_marked, "{file}:{line}: unexpected {rule}: {message}");
        }
    }
}

/// Applies fixes, and counts the files in which every finding with such a fix is gone and nothing is denied.
fn count_fixed_files(flags: &[&str], name: &str, applied: &[&str]) -> (usize, usize) {
    let folder = copy(name);
    run(&folder, &[&JUDGE[..], flags].concat());
    let (again, _, _) = run(&folder, &[&JUDGE[..], flags, &["--diff"]].concat());
    let after = findings_by_file(&folder);
    let (mut mended, mut total) = (0, 0);
    let mut is_all_mended = true;
    for (file, text) in data() {
        total += 1;
        let marks = marks(&text);
        let fixes: Vec<&str> =
            marks.iter().map(|mark| mark.fix.as_str()).filter(|fix| !fix.is_empty()).collect();
        let fixed = std::fs::read_to_string(folder.join(&file)).unwrap();
        assert_eq!(fixed.matches("#~").count(), text.matches("#~").count(), "{file}: a comment is gone");
        if !fixes.iter().all(|fix| applied.contains(fix)) {
            is_all_mended = false;
            continue;
        }
        let left = &after[&file];
        let is_left = |(rule, ..): &(String, usize, String, String)| {
            marks.iter().any(|mark| !mark.fix.is_empty() && mark.rule == *rule)
        };
        assert!(!left.iter().any(is_left), "{file}: {left:?}\n{fixed}");
        let (code, report, _) = run(&folder, &["validate", &file, "--kubernetes", "1.37", "--now", JUDGE[5]]);
        assert_eq!(code, 0, "{report}");
        mended += 1;
    }
    assert!(is_all_mended || again == 1, "a second run changes nothing, and the rest is still denied");
    (mended, total)
}

#[test]
fn most_are_mended_and_comments_stay() {
    let (safe, total) = count_fixed_files(&["--fix"], "mistakes-safe", &["safe"]);
    let (all, _) = count_fixed_files(&["--fix", "--unsafe-fixes"], "mistakes-unsafe", &["safe", "unsafe"]);
    println!("{total} mistakes: {safe} mended by --fix, {all} with --unsafe-fixes ({}%)", all * 100 / total);
    assert!(all * 100 >= total * 60, "{all} of {total}");
    assert_eq!((safe, all, total), (88, 107, 149), "say so here and in docs/reference/fixes.md");
}

#[test]
fn fixing_twice_changes_nothing_more() {
    for flags in [&["--fix"][..], &["--fix", "--unsafe-fixes"]] {
        let folder = copy("mistakes-twice");
        run(&folder, &[&JUDGE[..], flags].concat());
        let once: Vec<String> =
            data().iter().map(|(file, _)| std::fs::read_to_string(folder.join(file)).unwrap()).collect();
        let (_, report, _) = run(&folder, &[&JUDGE[..], flags].concat());
        assert!(!report.contains("Fixed "), "{report}");
        for ((file, _), text) in data().iter().zip(once) {
            assert_eq!(std::fs::read_to_string(folder.join(file)).unwrap(), text, "{file}");
        }
    }
}

/// The number of fixes in the report equals the number that `--fix` applies, even if a fix is skipped because
/// it would not help.
#[test]
fn the_announced_number_of_fixes_is_the_one_that_is_applied() {
    let number = |report: &str, pattern: &str| -> usize {
        let pattern = regex::Regex::new(pattern).expect("a pattern");
        pattern.captures(report).map_or(0, |found| found[1].parse().unwrap())
    };
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules");
    let fill = |folder: &Path| {
        for (file, text) in data() {
            std::fs::write(folder.join(file), text).unwrap();
        }
        for rule in std::fs::read_dir(&rules).unwrap().map(|entry| entry.unwrap().path()) {
            for file in std::fs::read_dir(&rule).into_iter().flatten().map(|entry| entry.unwrap().path()) {
                let name = [rule.file_name().unwrap(), file.file_name().unwrap()].join("-".as_ref());
                std::fs::copy(&file, folder.join(name)).unwrap();
            }
        }
    };
    let folder = folder("mistakes-announced");
    for release in ["1.33", "1.37"] {
        let judge = ["validate", ".", "--kubernetes", release, "--now", JUDGE[5]];
        fill(&folder);
        let (_, report, _) = run(&folder, &judge);
        let safe = number(&report, r"(\d+) fixable with `--fix`");
        let more = number(&report, r"\((\d+) more with `--unsafe-fixes`\)");
        assert!(safe > 20 && more > 5, "{report}");
        // The same file by another path is fixed once.
        let (_, twice, _) = run(&folder, &[&judge[..], &["../mistakes-announced"]].concat());
        assert_eq!(number(&twice, r"(\d+) fixable with `--fix`"), safe, "{release}");
        let (_, report, _) = run(&folder, &[&judge[..], &["--fix"]].concat());
        assert_eq!(number(&report, r"Fixed (\d+) findings"), safe, "{release}");
        // What is left to the other flag is what it then fixes.
        let left = number(&report, r"(\d+) fixable with `--fix --unsafe-fixes`");
        let (_, report, _) = run(&folder, &[&judge[..], &["--fix", "--unsafe-fixes"]].concat());
        assert_eq!(number(&report, r"Fixed (\d+) findings"), left, "{release}");
        fill(&folder);
        let (_, report, _) = run(&folder, &[&judge[..], &["--fix", "--unsafe-fixes"]].concat());
        assert_eq!(number(&report, r"Fixed (\d+) findings"), safe + more, "{release}");
        assert!(!report.contains("fixable"), "{release}");
    }
}
