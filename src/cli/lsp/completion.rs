//! Completion of keys, field values, `apiVersion` and `kind`, and of lint names in suppression comments.
//!
//! Does not parse the document, because the text is usually invalid where the user types.

use std::ops::Range;

use super::cursor::{self, Cursor, CursorPlace, Step};
use super::document::OpenDocument;
use super::hover::markdown;
use super::text::Encoding;
use super::vocabulary::{AllowedField, ValueType, Vocabulary};
use crate::pages::rule_page;
use crate::report;
use crate::report::record::{Json, record};
use tollgate_engine::rules::{self, RuleOrigin};

/// Kinds of completion items, with the numbers of the protocol.
#[derive(Clone, Copy)]
enum ItemKind {
    Property = 10,
    Value = 12,
    EnumMember = 20,
}

/// A possible completion, before it gets its position in the list.
struct Completion {
    label: String,
    kind: ItemKind,
    detail: String,
    meaning: String,
    new_text: String,
}

/// Returns the completion items at a byte of a text, as JSON of the protocol.
pub(super) fn completion_items_at(document: &OpenDocument, at: usize, encoding: Encoding) -> Vec<Json> {
    let text = &document.text;
    let cursor = cursor::find_cursor(text.as_str(), at);
    let (bytes, candidates) = match cursor.place {
        CursorPlace::Nowhere => return Vec::new(),
        CursorPlace::Comment => {
            let Some(bytes) = rule_name_in_comment(text.as_str(), &cursor, at) else { return Vec::new() };
            (bytes, complete_lint())
        }
        // What follows the cursor in its word is replaced, too.
        CursorPlace::Key | CursorPlace::Value(_) => (cursor.word.clone(), completions_at(document, &cursor)),
    };
    let range = text.range(&bytes, encoding);
    // `key:` wants a space before its value.
    let before = text.as_str().get(..bytes.start).unwrap_or_default();
    let space = if before.ends_with(':') && !cursor.is_json { " " } else { "" };
    let item = |(number, candidate): (usize, Completion)| {
        let meaning = Some(candidate.meaning).filter(|meaning| !meaning.is_empty());
        record! {
            "label": candidate.label,
            "kind": candidate.kind as u8,
            "detail" if given: candidate.detail,
            "documentation" if given: meaning.as_deref().map(markdown),
            // Keeps our order: required fields first, then that of the API.
            "sortText": format!("{number:04}"),
            "textEdit": record! {
                "range": range,
                "newText": format!("{space}{}", candidate.new_text),
            },
        }
    };
    candidates.into_iter().enumerate().map(item).collect()
}

fn completions_at(document: &OpenDocument, cursor: &Cursor<'_>) -> Vec<Completion> {
    let (text, vocabulary) = (document.text.as_str(), &document.vocabulary());
    let shape = vocabulary.container_type_at(cursor, &document.file);
    match (cursor.place, shape) {
        (CursorPlace::Value(key @ ("apiVersion" | "kind")), _) => {
            complete_api_version_or_kind(cursor, key, vocabulary)
        }
        (CursorPlace::Value(key), Some(shape)) => match vocabulary.type_of_child(shape, Step::Key(key)) {
            Some(shape) => complete_value(cursor, shape, vocabulary),
            None => Vec::new(),
        },
        (CursorPlace::Key, Some(shape)) => {
            // Where a list is expected, each field starts an item.
            let item = vocabulary.type_of_child(shape, Step::Item).filter(|_| !cursor.is_json);
            let (owner, dash) = item.map_or((shape, ""), |item| (item, "- "));
            let mut found = complete_keys(text, cursor, vocabulary.fields(owner), dash);
            found.extend(complete_value(cursor, shape, vocabulary));
            found
        }
        // An object that does not say yet what it is.
        (CursorPlace::Key, None) if cursor.containers.len() == 1 => {
            let names = ["apiVersion", "kind", "metadata", "spec"];
            let rows = names.map(|name| AllowedField {
                name,
                meaning: super::meanings::field_meaning("*", name),
                is_required: true,
                is_container: matches!(name, "metadata" | "spec"),
                ty: String::new(),
            });
            complete_keys(text, cursor, rows.into(), "")
        }
        _ => Vec::new(),
    }
}

/// Returns the fields in `rows` that the object at the cursor does not have yet, required ones first, each after `dash`.
fn complete_keys(
    text: &str,
    cursor: &Cursor<'_>,
    mut rows: Vec<AllowedField>,
    dash: &str,
) -> Vec<Completion> {
    let written = text.get(cursor.word.clone()).unwrap_or_default().trim_matches(['"', '\'']);
    let after = text.get(cursor.word.end..).unwrap_or_default();
    let has_colon = after.trim_start_matches([' ', '\t']).starts_with(':');
    let present = cursor.containers.last().map(|container| container.keys.as_slice()).unwrap_or_default();
    // The word under the cursor is one of them once it has a colon.
    rows.retain(|row| !present.contains(&row.name) || row.name == written);
    rows.sort_by_key(|row| !row.is_required);
    let candidate = |row: AllowedField| {
        let quote = if cursor.is_json { "\"" } else { "" };
        let colon = match (has_colon, row.is_container && !cursor.is_json) {
            (true, _) => "",
            (false, true) => ":",
            (false, false) => ": ",
        };
        Completion {
            label: row.name.to_owned(),
            kind: ItemKind::Property,
            detail: row.ty,
            meaning: row.meaning.to_owned(),
            new_text: format!("{dash}{quote}{}{quote}{colon}", row.name),
        }
    };
    rows.into_iter().map(candidate).collect()
}

/// Returns the values that the field at the cursor accepts, in quotes where they need them.
fn complete_value(cursor: &Cursor<'_>, shape: ValueType, vocabulary: &Vocabulary<'_>) -> Vec<Completion> {
    let candidate = |(word, meaning): (&'static str, &'static str)| {
        let is_plain = !cursor.is_json || matches!(word, "true" | "false");
        // `*` alone would be an alias of YAML, and `True` a bool.
        let needs_quotes = !is_plain || matches!(word, "*" | "True" | "False");
        Completion {
            label: word.to_owned(),
            kind: ItemKind::EnumMember,
            detail: String::new(),
            meaning: meaning.to_owned(),
            new_text: if needs_quotes { format!("\"{word}\"") } else { word.to_owned() },
        }
    };
    vocabulary.accepted_values(shape).into_iter().map(candidate).collect()
}

/// Returns the values of `apiVersion` or `kind` (`key`) that fit the other one; all values if none does.
fn complete_api_version_or_kind(
    cursor: &Cursor<'_>,
    key: &str,
    vocabulary: &Vocabulary<'_>,
) -> Vec<Completion> {
    let objects = vocabulary.served_and_policy_type_metas();
    let Some(container) = cursor.containers.last() else { return Vec::new() };
    let is_version = key == "apiVersion";
    let other = if is_version { container.kind } else { container.api_version };
    let fits =
        |object: &&(String, &'static str)| other == if is_version { object.1 } else { object.0.as_str() };
    let fitting: Vec<&(String, &'static str)> = match objects.iter().filter(fits).collect::<Vec<_>>() {
        none if none.is_empty() => objects.iter().collect(),
        some => some,
    };
    let mut found: Vec<Completion> = Vec::new();
    for (version, kind) in fitting {
        let (word, detail) = if is_version { (version.as_str(), *kind) } else { (*kind, version.as_str()) };
        if found.iter().any(|known| known.label == word) {
            continue;
        }
        let quote = if cursor.is_json { "\"" } else { "" };
        found.push(Completion {
            label: word.to_owned(),
            kind: ItemKind::Value,
            detail: detail.to_owned(),
            meaning: String::new(),
            new_text: format!("{quote}{word}{quote}"),
        });
    }
    found
}

/// Returns the byte range of the rule name at the cursor in `# tollgate: allow(rule, ru‸`; `None` outside of such
/// a comment.
fn rule_name_in_comment(text: &str, cursor: &Cursor<'_>, at: usize) -> Option<Range<usize>> {
    let before = text.get(cursor.word.start..at)?;
    let list = before.find("tollgate:")?;
    let open = list + before.get(list..)?.find("allow(")? + "allow(".len();
    let names = before.get(open..)?;
    if names.contains(')') {
        return None;
    }
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let start = at - names.len() + names.rfind(|letter| !is_name(letter)).map_or(0, |end| end + 1);
    let rest = text.get(at..)?;
    Some(start..at + rest.find(|letter| !is_name(letter)).unwrap_or(rest.len()))
}

/// Returns all lints, the only rules that a comment can suppress.
fn complete_lint() -> Vec<Completion> {
    let lints = rules::all().filter(|rule| rule.origin == RuleOrigin::Lint);
    lints
        .map(|rule| Completion {
            label: rule.id.to_owned(),
            kind: ItemKind::Value,
            detail: String::new(),
            meaning: report::first_sentence(rule_page(rule)),
            new_text: rule.id.to_owned(),
        })
        .collect()
}
