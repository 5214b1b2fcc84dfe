//! `tollgate explain RULE`: prints the page of a rule. Without a rule, it prints the table of all rules; with an
//! origin, the table of its rules.
//!
//! On a terminal, the page is wrapped and styled; in a pipe or file, it is the original Markdown.

mod render;

use std::io::Write as _;

use clap::builder::StringValueParser;

use super::completed::with_completions;
use super::console::Console;
use super::outcome::{ExitCounts, Failure};
use super::{shared, table};
use crate::config::rule_and_origin_names;
use crate::pages::rule_page;
use crate::report::first_sentence;
use render::RenderStyle;
use tollgate_engine::rules::{self, Rule, RuleOrigin};

/// Explain a rule, or list rules
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Rule ID, as shown in brackets in reports, or an origin, such as lint or upstream, to list its rules (default:
    /// list all rules)
    #[arg(value_parser = with_completions(StringValueParser::new(), rule_and_origin_names), hide_possible_values = true)]
    rule: Option<String>,
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let page = match &self.rule {
            None => list_rules(|_| true, console.styled),
            Some(word) => match (rules::find(word), RuleOrigin::ALL.into_iter().find(|o| o.name() == word)) {
                (Some(rule), _) if console.styled || Console::is_stdout_terminal() => render::render_page(
                    rule_page(rule),
                    RenderStyle { width: terminal_width(), styled: console.styled },
                ),
                (Some(rule), _) => rule_page(rule).to_owned(),
                (None, Some(origin)) => list_rules(|rule| rule.origin == origin, console.styled),
                (None, None) => return Err(Failure::Usage(shared::unknown_rule_message(word))),
            },
        };
        console.write_all(page.as_bytes())?;
        if !page.ends_with('\n') {
            writeln!(console)?;
        }
        Ok(ExitCounts::default())
    }
}

fn list_rules(is_wanted: impl Fn(&Rule) -> bool, styled: bool) -> String {
    let rows: Vec<Vec<String>> = rules::all()
        .filter(|rule| is_wanted(rule))
        .map(|rule| {
            vec![
                rule.id.to_owned(),
                rule.origin.name().to_owned(),
                rule.level.name().to_owned(),
                render::render_inline(&first_sentence(rule_page(rule)), RenderStyle { width: 0, styled }),
            ]
        })
        .collect();
    table::format_table(&["RULE", "ORIGIN", "LEVEL", "ABOUT"], &rows)
}

/// Columns of the terminal; 80 if there is none.
fn terminal_width() -> usize {
    terminal_size::terminal_size().map_or(80, |(terminal_size::Width(columns), _)| usize::from(columns))
}
