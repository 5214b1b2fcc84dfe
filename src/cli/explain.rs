//! `tollgate explain RULE`: the rule's page in the terminal; without a rule, the table of all; for an origin, of its rules.

use std::io::Write as _;

use super::console::Console;
use super::outcome::{Failure, Tally};
use super::{shared, table};
use crate::report::about;
use crate::rules::{self, Origin, Rule};

/// Explain a rule, or list rules
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Rule id, as reports print it in brackets, or an origin (lint, upstream, …) to list its rules
    rule: Option<String>,
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<Tally, Failure> {
        let page = match &self.rule {
            None => list(|_| true),
            Some(word) => match (rules::find(word), Origin::ALL.into_iter().find(|o| o.name() == word)) {
                (Some(rule), _) if console.styled => styled(rule.doc),
                (Some(rule), _) => rule.doc.to_owned(),
                (None, Some(origin)) => list(|rule| rule.origin == origin),
                (None, None) => return Err(Failure::Usage(shared::no_such_rule(word))),
            },
        };
        console.write_all(page.as_bytes())?;
        if !page.ends_with('\n') {
            writeln!(console)?;
        }
        Ok(Tally::default())
    }
}

fn list(is_wanted: impl Fn(&Rule) -> bool) -> String {
    let rows: Vec<Vec<String>> = rules::all()
        .filter(|rule| is_wanted(rule))
        .map(|rule| {
            vec![
                rule.id.0.to_owned(),
                rule.origin.name().to_owned(),
                rule.level.name().to_owned(),
                about(rule.doc),
            ]
        })
        .collect();
    table::aligned(&["RULE", "ORIGIN", "LEVEL", "ABOUT"], &rows)
}

/// Headings bold, code dim: enough to find one's way, and nothing is lost when copied.
fn styled(page: &str) -> String {
    let mut out = String::with_capacity(page.len() + 256);
    let mut in_code = false;
    for line in page.lines() {
        let fence = line.starts_with("```");
        let style = match (fence || in_code, line.starts_with('#')) {
            (true, _) => "\x1b[36m",
            (false, true) => "\x1b[1m",
            _ => "",
        };
        in_code ^= fence;
        out.push_str(style);
        out.push_str(line);
        out.push_str(if style.is_empty() { "\n" } else { "\x1b[0m\n" });
    }
    out
}
