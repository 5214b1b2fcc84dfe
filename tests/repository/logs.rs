//! Log lines: each message in the code is on the page about logs.
#![expect(clippy::disallowed_methods, reason = "reads the documents and the code")]
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]

use crate::tidy::{files, root};

const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// The levels and messages of the log lines in a source file.
fn messages(source: &str) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for level in LEVELS {
        let opening = format!("tracing::{level}!(");
        for (at, _) in source.match_indices(&opening) {
            let arguments = source.get(at + opening.len()..).unwrap_or_default();
            found.extend(last_text(arguments).map(|text| (level, text)));
        }
    }
    found
}

/// The last text among the arguments of a macro, which end with its parenthesis.
fn last_text(arguments: &str) -> Option<String> {
    let (mut depth, mut last, mut text) = (1, None, None::<String>);
    let mut letters = arguments.chars();
    while let Some(letter) = letters.next() {
        match (&mut text, letter) {
            (Some(_), '"') => last = text.take(),
            (Some(text), '\\') => match letters.next()? {
                // The text goes on in the next line, without the indentation.
                '\n' => {
                    let rest = letters.as_str().trim_start();
                    letters = rest.chars();
                }
                escaped => text.push(escaped),
            },
            (Some(text), letter) => text.push(letter),
            (None, '"') => text = Some(String::new()),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return last;
        }
    }
    None
}

#[test]
fn each_log_message_is_documented_with_its_level() {
    let page =
        std::fs::read_to_string(root().join("docs/reference/logs-and-annotations.md")).expect("the page");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    let mut checked = 0;
    for file in ["src", "crates"].iter().flat_map(|folder| files(&root().join(folder), "rs")) {
        let source = std::fs::read_to_string(&file).expect("a source file");
        for (level, message) in messages(&source) {
            // What a message is before its first value; some consist of a value only.
            let start = message.split('{').next().unwrap_or_default().trim_end_matches([':', ' ']);
            // `decision` has a table of its own.
            if start.is_empty() || start == "decision" {
                continue;
            }
            let row = format!("| {} |", level.to_uppercase());
            let start = start.get(..start.find(": ").unwrap_or(start.len())).unwrap_or(start);
            let is_documented =
                rows.iter().any(|line| line.starts_with(&row) && line.contains(&format!("`{start}")));
            assert!(is_documented, "{}: {level} {message:?} is not on the page", file.display());
            checked += 1;
        }
    }
    assert!(checked >= 25, "only {checked} messages found");
}

#[test]
fn messages_are_found_in_every_form() {
    let source = r#"
        tracing::warn!(why = f("a", (1)), "cannot read: {why}");
        tracing::info!(x, "a long \
            message");
        tracing::debug!(x);
    "#;
    let expected = [("warn", "cannot read: {why}".to_owned()), ("info", "a long message".to_owned())];
    assert_eq!(messages(source), expected);
}
