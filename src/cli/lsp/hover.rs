//! Hover: the page of the rule that a diagnostic is from, else what the field or word under the cursor means.

use std::collections::BTreeSet;

use super::cursor::{self, CursorPlace, Step};
use super::document::OpenDocument;
use super::problems::Problem;
use super::text::Encoding;
use crate::pages::rule_page;
use crate::report;
use crate::report::record::{Json, record};
use tollgate_engine::rules::RuleId;

/// Returns a text as Markdown content of the protocol.
pub(super) fn markdown(value: &str) -> Json {
    record! { "kind": "markdown", "value": value }
}

/// Returns the hover at a byte of a text: the rules of the problems there, or else the field. `None` if nothing
/// is known about it.
pub(super) fn hover_at(document: &OpenDocument, at: usize, encoding: Encoding) -> Option<Json> {
    rule_pages_hover(document, at, encoding).or_else(|| field_or_value_hover(document, at, encoding))
}

/// Returns the pages of the rules that found a problem at this byte, each once; `None` if there are none.
fn rule_pages_hover(document: &OpenDocument, at: usize, encoding: Encoding) -> Option<Json> {
    let problems = document.problems.as_deref().unwrap_or_default();
    let here = |problem: &&Problem| problem.bytes.start <= at && at <= problem.bytes.end;
    let first = problems.iter().find(here)?;
    let rules: BTreeSet<RuleId> = problems.iter().filter(here).filter_map(|problem| problem.rule).collect();
    let pages: Vec<String> = rules
        .into_iter()
        .map(|rule| format!("{}\n\n[{}]({})", rule_page(rule).trim_end(), rule.id, report::docs_url(rule.id)))
        .collect();
    if pages.is_empty() {
        return None;
    }
    Some(record! {
        "contents": markdown(&pages.join("\n\n---\n\n")),
        "range": document.text.range(&first.bytes, encoding),
    })
}

/// Returns type and meaning of the field or value at this byte; `None` if it is not known.
fn field_or_value_hover(document: &OpenDocument, at: usize, encoding: Encoding) -> Option<Json> {
    let (text, vocabulary) = (&document.text, document.vocabulary());
    let cursor = cursor::find_cursor(text.as_str(), at);
    let written = text.as_str().get(cursor.word.clone())?.trim_matches(['"', '\'']);
    let shape = vocabulary.container_type_at(&cursor, &document.file)?;
    let name = match cursor.place {
        CursorPlace::Key => written,
        CursorPlace::Value(key) => key,
        CursorPlace::Comment | CursorPlace::Nowhere => return None,
    };
    let row = vocabulary.fields(shape).into_iter().find(|row| row.name == name);
    let values = match (&row, cursor.place) {
        (Some(row), _) => vocabulary
            .type_of_child(shape, Step::Key(row.name))
            .map(|shape| vocabulary.accepted_values(shape)),
        // An item of a list of words.
        (None, CursorPlace::Key) => Some(vocabulary.accepted_values(shape)),
        (None, _) => None,
    };
    let word = values.into_iter().flatten().find(|(word, meaning)| *word == written && !meaning.is_empty());
    let mut lines = Vec::new();
    if let Some((word, meaning)) = word {
        lines.push(format!("`{word}`: {meaning}"));
    }
    if let Some(row) = &row {
        let required = if row.is_required { ", required" } else { "" };
        lines.push(format!("**{}** ({}{required})", row.name, row.ty));
        if !row.meaning.is_empty() {
            lines.push(row.meaning.to_owned());
        }
    }
    if lines.is_empty() {
        return None;
    }
    Some(record! {
        "contents": markdown(&lines.join("\n\n")),
        "range": text.range(&cursor.word, encoding),
    })
}
