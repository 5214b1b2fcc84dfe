//! `docs/coverage.md`: every row names a rule or a test that exists, or says why there is none.
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_methods, reason = "reads the documents")]

use std::path::Path;

/// What is wrong with a name in backticks, if anything is.
fn fault(name: &str) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    if let Some((file, test)) = name.split_once("::") {
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let known = text.contains(&format!("#[test]\nfn {test}()"));
        return (!known).then(|| format!("there is no test {test} in {file}"));
    }
    if name.starts_with("tests/") {
        return (!root.join(name).exists()).then(|| format!("there is no {name}"));
    }
    // A rule has a page, and a page a rule: `tidy.rs`.
    let page = root.join(format!("docs/rules/{name}.md"));
    (!page.exists()).then(|| format!("there is no rule {name}"))
}

/// The faults of a page, and how many rows it has.
fn check(page: &str) -> (Vec<String>, usize) {
    let (mut faults, mut rows) = (Vec::new(), 0);
    for line in page.lines().filter(|line| line.starts_with("| ") && !line.ends_with("| held by |")) {
        rows += 1;
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        let [sentence, held] = cells.as_slice() else {
            faults.push(format!("not two cells: {line}"));
            continue;
        };
        let names: Vec<&str> = held.split('`').skip(1).step_by(2).collect();
        faults
            .extend(names.iter().filter_map(|name| fault(name)).map(|fault| format!("{sentence}: {fault}")));
        let reason = held.trim().strip_prefix("not an admission matter: ");
        if names.is_empty() && reason.is_none_or(|reason| reason.len() < 10) {
            faults.push(format!("{sentence}: held by nothing, and no reason"));
        }
    }
    (faults, rows)
}

#[test]
fn every_sentence_is_held_by_something_that_exists() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/coverage.md")).expect("the page");
    let (faults, rows) = check(&page);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(rows > 100, "only {rows} rows");
}

#[test]
fn a_name_that_does_not_exist_is_found() {
    for (row, wrong) in [
        ("| a sentence | `taint-key` |", 0),
        ("| a sentence | not an admission matter: the scheduler does it |", 0),
        (
            "| a sentence | `tests/repository/coverage_doc.rs::a_name_that_does_not_exist_is_found`, `tests/rules/taint-key` |",
            0,
        ),
        ("| a sentence | `no-such-rule` |", 1),
        ("| a sentence | `tests/repository/coverage_doc.rs::no_such_test` |", 1),
        ("| a sentence | `tests/nowhere` |", 1),
        ("| a sentence | not an admission matter: |", 1),
        ("| a sentence | somewhere |", 1),
        ("| a sentence |", 1),
    ] {
        assert_eq!(check(row).0.len(), wrong, "{row}");
    }
}
