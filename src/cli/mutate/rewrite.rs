//! Applies edits to the text of a document, so that comments, order and layout are kept.
//!
//! Positions come from the spans of the document; a block mapping gets a line, a flow mapping gets a member. The result
//! is parsed again: if it differs from the expected document (anchors, merge keys, unusual layout), the object is
//! printed from scratch instead.
//!
//! Invariant: the new text always parses to the document with the edits applied.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::{DocumentWithDefaultEdits, print};
use tollgate_document::doc::{Doc, DocChange, OwnedJsonValue, Syntax, Value, ValueKind, apply_changes};
use tollgate_document::source::{Document, documents};
use tollgate_engine::defaults::Edit;

/// Returns the text of a file with all edits applied; everything else keeps its formatting.
pub(super) fn rewrite_file(text: &str, documents: &[DocumentWithDefaultEdits<'_>]) -> String {
    let changed = documents.iter().filter(|filled| !filled.edits.is_empty());
    let rewrite = |filled| {
        let (range, replacement) = rewrite_document(text, filled);
        // A range that is not in the text would lose a part of the user's file.
        debug_assert!(text.get(range.clone()).is_some(), "{range:?}");
        (range, replacement)
    };
    apply_splices(text, changed.map(rewrite))
}

/// Returns the byte range of a document in its file to replace, and the text with the edits. Prints the whole
/// object again if its text cannot be edited.
fn rewrite_document(text: &str, filled: &DocumentWithDefaultEdits<'_>) -> TextSplice {
    let (doc, offset) = (&filled.document.doc, filled.document.offset);
    let changes: Vec<DocChange> =
        filled.edits.iter().filter_map(|edit| to_change(&filled.document, edit)).collect();
    let expected = apply_changes(doc.root(), &changes);
    let whole = offset..offset + source_length(doc);
    let source = text.get(whole.clone()).unwrap_or_default();
    let written = apply_splices(source, splices_for_changes(doc, &changes));
    if parses_to(&written, &expected) {
        return (whole, written);
    }
    let root = doc.root().span();
    let span = offset + root.start as usize..(offset + root.end as usize).min(whole.end);
    let printed = if doc.syntax() == Syntax::Json {
        print::to_indented_json(expected.root())
    } else {
        print::to_block_yaml(expected.root())
    };
    (span, printed)
}

/// Returns the length of a document in its source; the source of JSON may contain further documents.
fn source_length(doc: &Doc<'_>) -> usize {
    if doc.syntax() == Syntax::Json { doc.root().span().end as usize } else { doc.source().len() }
}

/// True if the text is a single document that equals `expected`.
fn parses_to(text: &str, expected: &Doc<'_>) -> bool {
    let mut found = documents(text);
    let first = found.next().and_then(Result::ok);
    first.is_some_and(|first| first.doc.root().to_json() == expected.root().to_json())
        && found.next().is_none()
}

/// Converts an edit of the object to a change of the document as it was read; `None` if the path of the edit does
/// not exist.
fn to_change(document: &Document<'_>, edit: &Edit) -> Option<DocChange> {
    Some(match &edit.change {
        DocChange::Add { key, value, .. } => {
            DocChange::Add { object: document.value_at_path(&edit.at, 1)?.index(), key, value: value.clone() }
        }
        DocChange::Append { value, .. } => {
            DocChange::Append { list: document.value_at_path(&edit.at, 1)?.index(), value: value.clone() }
        }
        DocChange::Replace { value, .. } => {
            DocChange::Replace { node: document.value_at_path(&edit.at, 0)?.index(), value: value.clone() }
        }
    })
}

/// A text that replaces a range of bytes; the range is empty for an insertion.
type TextSplice = (Range<usize>, String);

/// Returns the text insertions that make these changes in the source of a document.
fn splices_for_changes(doc: &Doc<'_>, changes: &[DocChange]) -> Vec<TextSplice> {
    let mut added: HashMap<u32, Vec<(&str, &OwnedJsonValue)>> = HashMap::new();
    for change in changes {
        if let DocChange::Add { object, key, value } = change {
            added.entry(*object).or_default().push((key, value));
        }
    }
    let line_break = if doc.source().contains("\r\n") { "\r\n" } else { "\n" };
    let mut inserts: Vec<TextSplice> = Vec::new();
    // The same text twice is an alias; what is written there counts for both.
    let mut served: HashSet<(u32, u32)> = HashSet::new();
    for change in changes {
        let (DocChange::Replace { node, .. }
        | DocChange::Add { object: node, .. }
        | DocChange::Append { list: node, .. }) = change;
        let value = doc.value_at_node_index(*node);
        let span = value.span();
        if !served.insert((span.start, span.end)) {
            continue;
        }
        inserts.push(match change {
            DocChange::Replace { value, .. } => {
                let text = value_text(value, doc.syntax());
                // A value that is not written: the blank belongs between it and the colon.
                let text = if span.end > span.start { text } else { format!(" {text}") };
                (span.start as usize..span.end as usize, text)
            }
            DocChange::Append { list, .. } => {
                let items = changes.iter().filter_map(|change| match change {
                    DocChange::Append { list: same, value } if same == list => Some(value),
                    _ => None,
                });
                append_items(value, &items.collect::<Vec<_>>(), line_break)
            }
            DocChange::Add { object, .. } => {
                let members = added.get(object).map(Vec::as_slice).unwrap_or_default();
                if doc.source().as_bytes().get(span.start as usize) == Some(&b'{') {
                    add_flow_members(value, members)
                } else {
                    add_block_members(value, members, line_break)
                }
            }
        });
    }
    inserts.sort_by_key(|(at, _)| at.start);
    inserts
}

/// Applies the insertions, which are sorted by position, to the source.
fn apply_splices(source: &str, inserts: impl IntoIterator<Item = TextSplice>) -> String {
    let mut out = String::with_capacity(source.len() + 256);
    let mut done = 0;
    for (at, text) in inserts {
        out.push_str(source.get(done..at.start).unwrap_or_default());
        out.push_str(&text);
        done = at.end.max(done);
    }
    out.push_str(source.get(done..).unwrap_or_default());
    out
}

/// Appends items to a list: `[a]` becomes `[a, b]`; a block list gets lines that begin as its last item does.
fn append_items(list: Value<'_>, items: &[&OwnedJsonValue], line_break: &str) -> TextSplice {
    let source = list.doc().source();
    let syntax = list.doc().syntax();
    let texts = items.iter().map(|item| value_text(item, syntax));
    let is_flow = source.as_bytes().get(list.span().start as usize) == Some(&b'[');
    let Some(last) = list.items().last() else {
        let at = list.span().start as usize + 1;
        return (at..at, texts.collect::<Vec<_>>().join(", "));
    };
    if is_flow {
        let at = last.span().end as usize;
        return (at..at, texts.map(|text| [", ", &text].concat()).collect());
    }
    let before = source.get(..last.span().start as usize).unwrap_or_default();
    let begin = before.rsplit('\n').next().unwrap_or_default();
    let end = source.get(..last.span().end as usize).unwrap_or_default().trim_end().len();
    let at = line_end(source, end);
    (at..at, texts.map(|text| [line_break, begin, &text].concat()).collect())
}

/// Adds members to a flow mapping: `{a: b}` becomes `{a: b, key: value}`. If its last member begins a line, each
/// new one gets a line, too.
fn add_flow_members(object: Value<'_>, members: &[(&str, &OwnedJsonValue)]) -> TextSplice {
    let source = object.doc().source();
    let json = object.doc().syntax() == Syntax::Json;
    let Some((key, last)) = object.members().last() else {
        let at = object.span().start as usize + 1;
        let text: Vec<String> =
            members.iter().map(|(key, value)| member_text(key, value, json, " ")).collect();
        return (at..at, text.join(", "));
    };
    let at = last.span().end as usize;
    let key_at = key.span().start as usize;
    let before = source.get(..key_at).unwrap_or_default();
    let (rest, line) = before.split_at(before.trim_end_matches([' ', '\t']).len());
    let own_line = rest.ends_with('\n');
    let after_key = source.get(key.span().end as usize..).unwrap_or_default();
    let blank = if after_key.starts_with(": ") { " " } else { "" };
    let blank = if json { blank } else { " " };
    let comma = match (own_line, blank) {
        (true, _) => format!(",\n{line}"),
        (false, "") => ",".to_owned(),
        (false, _) => ", ".to_owned(),
    };
    let member =
        |(key, value): &(&str, &OwnedJsonValue)| comma.clone() + &member_text(key, value, json, blank);
    (at..at, members.iter().map(member).collect())
}

/// Returns the end of the line that contains a byte, before its line break.
fn line_end(source: &str, at: usize) -> usize {
    let rest = source.get(at..).unwrap_or_default();
    at + rest.find(['\n', '\r']).unwrap_or(rest.len())
}

fn member_text(key: &str, value: &OwnedJsonValue, json: bool, blank: &str) -> String {
    if json {
        format!("\"{key}\":{blank}{}", value.to_json())
    } else {
        format!("{key}: {}", value_text(value, Syntax::Yaml))
    }
}

/// Adds members to a block mapping: lines after its last member that is on one line, or before its first.
fn add_block_members(object: Value<'_>, members: &[(&str, &OwnedJsonValue)], line_break: &str) -> TextSplice {
    let source = object.doc().source();
    let single = |key: Value<'_>, value: Value<'_>| {
        let (from, to) = (key.span().start as usize, value.span().end as usize);
        let plain = !matches!(value.kind(), ValueKind::Array | ValueKind::Object);
        plain && to > from && !source.get(from..to).unwrap_or("\n").contains('\n')
    };
    let texts: Vec<String> = members.iter().map(|(key, value)| member_text(key, value, false, " ")).collect();
    let indent = |key: Value<'_>| {
        let before = source.get(..key.span().start as usize).unwrap_or_default();
        " ".repeat(before.rsplit('\n').next().unwrap_or_default().chars().count())
    };
    if let Some((key, value)) = object.members().filter(|(key, value)| single(*key, *value)).last() {
        let (at, indent) = (line_end(source, value.span().end as usize), indent(key));
        return (at..at, texts.iter().map(|text| [line_break, &indent, text].concat()).collect());
    }
    let first = object.members().next().map_or(object, |(key, _)| key);
    let (at, indent) = (first.span().start as usize, indent(first));
    (at..at, texts.iter().map(|text| [text, line_break, &indent].concat()).collect())
}

/// Returns a new value as text for a document of that syntax.
fn value_text(value: &OwnedJsonValue, syntax: Syntax) -> String {
    match value {
        OwnedJsonValue::Str(text) if syntax == Syntax::Yaml => print::yaml_string(text),
        OwnedJsonValue::List(items) if syntax == Syntax::Yaml => {
            let items: Vec<String> = items.iter().map(|item| value_text(item, syntax)).collect();
            format!("[{}]", items.join(", "))
        }
        OwnedJsonValue::Object(members) if syntax == Syntax::Yaml => {
            let members: Vec<String> =
                members.iter().map(|(key, value)| member_text(key, value, false, " ")).collect();
            format!("{{{}}}", members.join(", "))
        }
        _ => value.to_json(),
    }
}
