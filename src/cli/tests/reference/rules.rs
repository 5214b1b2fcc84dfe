//! The table of rules, and their pages in the table of contents.

use crate::pages::rule_page;
use std::fmt::Write as _;

use super::generated::{cell, table};
use crate::report::first_sentence;
use tollgate_engine::rules::{self, RuleOrigin};

/// A table for each origin.
pub(super) fn rules() -> String {
    let mut out = String::new();
    for origin in RuleOrigin::ALL {
        let rows: Vec<Vec<String>> = rules::all()
            .filter(|rule| rule.origin == origin)
            .map(|rule| {
                let id = rule.id;
                vec![
                    format!("[`{id}`](../rules/{id}.md)"),
                    rule.level.name().to_owned(),
                    cell(&first_sentence(rule_page(rule))),
                ]
            })
            .collect();
        if !rows.is_empty() {
            let table = table(&["rule", "level", "what it reports"], &rows);
            _ = write!(out, "## Origin `{}`\n\n{table}\n", origin.name());
        }
    }
    out
}

/// The entries of the rules: their table, and below it their pages by name.
pub(super) fn pages() -> String {
    let mut ids: Vec<&str> = rules::all().map(|rule| rule.id).collect();
    ids.sort_unstable();
    let pages = ids.iter().map(|id| format!("    - [{id}](rules/{id}.md)\n"));
    std::iter::once("- [Rules](reference/rules.md)\n".to_owned()).chain(pages).collect()
}
