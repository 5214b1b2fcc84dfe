//! Places: each fixture of `tests/positions` says, in a comment on the line itself, where a field is.
//!
//! `#~ spec.taint.effect 13..14` on a line means: that field is on this line, columns 13 to 14 (the end exclusive).
//! `13..7:2` ends on another line, `@9` starts on another line, `key` asks for the key and `/1` for the second
//! document. JSON has no comments, so a file `x.expect` next to `x.json` has `path line:column..line:column`.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_methods, reason = "reads fixtures")]

use std::path::Path as File;

use tollgate::files;
use tollgate_document::field::{FieldPath, Path};
use tollgate_document::source::{self, Document, LineIndex};

#[derive(Debug)]
struct Mark {
    path: String,
    document: usize,
    on_key: bool,
    place: (usize, usize, usize, usize),
}

fn mark(text: &str, on_line: usize) -> Mark {
    let mut mark = Mark { path: String::new(), document: 0, on_key: false, place: (on_line, 0, 0, 0) };
    for word in text.split_whitespace() {
        if let Some((start, end)) = word.split_once("..") {
            let pair = |text: &str, line: usize| match text.split_once(':') {
                Some((line, column)) => (line.parse().expect("a line"), column.parse().expect("a column")),
                None => (line, text.parse().expect("a column")),
            };
            (mark.place.0, mark.place.1) = pair(start, mark.place.0);
            (mark.place.2, mark.place.3) = pair(end, mark.place.0);
        } else if let Some(line) = word.strip_prefix('@') {
            mark.place.0 = line.parse().expect("a line");
        } else if let Some(document) = word.strip_prefix('/') {
            mark.document = document.parse().expect("a number");
        } else if word == "key" && !mark.on_key && text.split_whitespace().count() > 2 {
            mark.on_key = true;
        } else {
            word.clone_into(&mut mark.path);
        }
    }
    mark
}

fn marks(file: &File, text: &str) -> Vec<Mark> {
    if file.extension().is_some_and(|extension| extension == "json") {
        let expect = std::fs::read_to_string(file.with_extension("expect")).expect("a file of places");
        return expect.lines().map(|line| mark(line, 0)).collect();
    }
    let lines = text.lines().enumerate();
    lines.filter_map(|(index, line)| Some(mark(line.split_once("#~ ")?.1, index + 1))).collect()
}

/// `spec.devices[0].attributes[a.b/c].int` as a path.
fn path(text: &str) -> FieldPath {
    fn walk(at: &Path<'_>, rest: &str) -> FieldPath {
        if let Some(inner) = rest.strip_prefix('[') {
            let (name, rest) = inner.split_once(']').expect("a closed bracket");
            // An index and a key of digits look alike; the fixtures use such a key once, in labels.
            return match name.parse() {
                Ok(index)
                    if !at
                        .owned()
                        .print(tollgate_document::field::PathAudience::User)
                        .ends_with("labels") =>
                {
                    walk(&at.index(index), rest)
                }
                _ => walk(&at.key(name), rest),
            };
        }
        let rest = rest.strip_prefix('.').unwrap_or(rest);
        if rest.is_empty() {
            return at.owned();
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        walk(&at.field(&rest[..end]), &rest[end..])
    }
    walk(&Path::ROOT, text)
}

#[test]
fn fields_are_where_the_fixtures_say() {
    let folder = format!("{}/tests/positions", env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    let (mut fixtures, mut places) = (0, 0);
    for input in files::collect(&[folder.into()]).inputs {
        let files::Input::File(file) = &input else { continue };
        let text = files::read(&input, files::DEFAULT_MAX_FILE_BYTES).expect("a fixture");
        let lines = LineIndex::from_text(&text);
        let documents: Vec<Result<Document<'_>, source::DocumentError>> = source::documents(&text).collect();
        let marks = marks(file, &text);
        assert!(!marks.is_empty(), "{} marks nothing", file.display());
        fixtures += 1;
        for mark in marks {
            places += 1;
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let Some(Ok(document)) = documents.get(mark.document) else {
                wrong.push(format!("{name}: {mark:?}: no such document: {:?}", documents.get(mark.document)));
                continue;
            };
            let place = document.locate(&lines, &path(&mark.path), mark.on_key);
            let got = (place.line, place.column, place.end_line, place.end_column);
            if got != mark.place {
                let shown = &text[place.shown];
                wrong.push(format!(
                    "{name}: {} is said to be at {:?}, found {got:?} {shown:?}",
                    mark.path, mark.place
                ));
            }
        }
    }
    assert!(fixtures >= 20 && places >= 80, "{fixtures} fixtures, {places} places");
    assert!(wrong.is_empty(), "{} of {places} places\n{}", wrong.len(), wrong.join("\n"));
}
