//! Edits of fields as edits of texts: layouts that people use, and what is declined.

use crate::field::{FieldPath, Path};
use crate::finding::{Edit, Fix, NewValue};
use crate::source::{LineIndex, apply, documents};

/// Parses a path such as `a.0.b`.
fn path(text: &str) -> FieldPath {
    fn walk(parts: &[&str], at: &Path<'_>) -> FieldPath {
        match parts.split_first() {
            None | Some((&"", _)) => at.owned(),
            Some((part, rest)) => match part.parse() {
                Ok(index) => walk(rest, &at.index(index)),
                Err(_) => walk(rest, &at.field(part)),
            },
        }
    }
    walk(&text.split('.').collect::<Vec<_>>(), &Path::ROOT)
}

fn edited(text: &str, edit: Edit) -> Option<String> {
    let document = documents(text).next().expect("a document").expect("readable");
    let fix = document.text_fix(&LineIndex::from_text(text), &Fix::safe("", edit))?;
    let edited = apply(text, &fix.edits);
    assert!(documents(&edited).all(|document| document.is_ok()), "{edited}");
    Some(edited)
}

fn set(at: &str, value: &str) -> Edit {
    Edit::Set { at: path(at), value: NewValue::Str(value.into()) }
}

fn rename(at: &str, to: &str) -> Edit {
    Edit::Rename { at: path(at), to: to.into() }
}

fn remove(at: &str) -> Edit {
    Edit::Remove { at: path(at) }
}

fn insert_op_exists(into: &str) -> Edit {
    Edit::Insert { into: path(into), key: "op".into(), value: NewValue::Str("Exists".into()) }
}

fn nest_under_x(into: &str, members: &[&str]) -> Edit {
    Edit::Nest {
        into: path(into),
        key: "x".into(),
        members: members.iter().map(|key| (*key).into()).collect(),
    }
}

fn unnest(at: &str) -> Edit {
    Edit::Unnest { at: path(at) }
}

fn move_to(at: &str, into: &str) -> Edit {
    Edit::Move { at: path(at), into: path(into) }
}

fn wrap_in_list(at: &str) -> Edit {
    Edit::WrapInList { at: path(at) }
}

fn unwrap_list(at: &str) -> Edit {
    Edit::UnwrapList { at: path(at) }
}

#[test]
fn layout_comments_and_line_ends_stay() {
    let table = [
        ("a: b # c\n", set("a", "new"), "a: new # c\n"),
        ("a: 'b'\r\nc: d\r\n", set("a", "n'w"), "a: 'n''w'\r\nc: d\r\n"),
        ("a: \"b\"\n", set("a", "n\"w"), "a: \"n\\\"w\"\n"),
        ("a: b\n", set("a", "yes"), "a: \"yes\"\n"),
        ("a: &x b\n", set("a", "new"), "a: &x new\n"),
        ("{\"a\": \"b\"}", set("a", "new"), "{\"a\": \"new\"}"),
        ("a: {b: c}\n", rename("a.b", "d"), "a: {d: c}\n"),
        ("? a\n: b\n", rename("a", "c"), "? c\n: b\n"),
        ("# x\n\"a\" : b # y\n", rename("a", "c"), "# x\n\"c\" : b # y\n"),
        ("a:\n- b: 1\n- b: 2 # c\n  d: 3\n- e\n", remove("a.1"), "a:\n- b: 1\n# c\n- e\n"),
        ("a:\n- b: 1\n# k\n- b: 2\n  # l\n  d: 3\n", remove("a.1"), "a:\n- b: 1\n# k\n  # l\n"),
        ("a: [1, 2, 3]\n", remove("a.1"), "a: [1, 3]\n"),
        ("a: [1, 2]\n", remove("a.1"), "a: [1]\n"),
        ("{\"a\": [\n  {\"b\": 1},\n  {\"b\": 1}\n]}", remove("a.1"), "{\"a\": [\n  {\"b\": 1}\n]}"),
        ("a: 1\nb: 2\na: 1\n", remove("a"), "a: 1\nb: 2\n"),
        ("a:\n- b: 1 # c\n  d: 2\n", insert_op_exists("a.0"), "a:\n- b: 1 # c\n  op: Exists\n  d: 2\n"),
        ("a:\r\n  b: 1\r\n", insert_op_exists("a"), "a:\r\n  b: 1\r\n  op: Exists\r\n"),
        ("a: {b: 1}\n", insert_op_exists("a"), "a: {b: 1, op: Exists}\n"),
        ("a: {}\n", insert_op_exists("a"), "a: {op: Exists}\n"),
        (
            "{\"a\": {\n  \"b\": 1\n}}",
            insert_op_exists("a"),
            "{\"a\": {\n  \"b\": 1,\n  \"op\": \"Exists\"\n}}",
        ),
        (
            "- n: 1\n  b: 2 # c\n  # d\n  e:\n  - f\n",
            nest_under_x("0", &["b", "e"]),
            "- n: 1\n  x:\n    b: 2 # c\n    # d\n    e:\n    - f\n",
        ),
        ("- b: 2\n  n: 1\n", nest_under_x("0", &["b"]), "- x:\n    b: 2\n  n: 1\n"),
        (
            "{\"n\": 1, \"b\": 2, \"e\": []}",
            nest_under_x("", &["b", "e"]),
            "{\"n\": 1, \"x\": {\"b\": 2, \"e\": []}}",
        ),
        (
            "{\n  \"n\": 1,\n  \"b\": {\n    \"c\": 2\n  }\n}\n",
            nest_under_x("", &["b"]),
            "{\n  \"n\": 1,\n  \"x\": {\n    \"b\": {\n      \"c\": 2\n    }\n  }\n}\n",
        ),
        (
            "- n: 1\n  x:\n      b: |\n        t\n      # c\n      d: 2\n",
            unnest("0.x"),
            "- n: 1\n  b: |\n    t\n  # c\n  d: 2\n",
        ),
        ("- x: # c\n    b: 1\n    d: 2\n  n: 1\n", unnest("0.x"), "- # c\n  b: 1\n  d: 2\n  n: 1\n"),
        ("- n: 1\n  x:\n    # c\n    b: 1\n", unnest("0.x"), "- n: 1\n  # c\n  b: 1\n"),
        ("x: \r\n  # c\r\n  b: 1\r\n", unnest("x"), "# c\r\nb: 1\r\n"),
        ("{\"x\": {\"b\": 1, \"c\": 2}, \"n\": 1}", unnest("x"), "{\"b\": 1, \"c\": 2, \"n\": 1}"),
        (
            "a:\n  b:\n  - c: 1\nt: # x\n- d\n# y\n- e\n",
            move_to("t", "a.b.0"),
            "a:\n  b:\n  - c: 1\n    t: # x\n    - d\n    # y\n    - e\n",
        ),
        ("{\"a\": {\"b\": 1}, \"t\": [1]}", move_to("t", "a"), "{\"a\": {\"b\": 1, \"t\": [1]}}"),
        ("a:\n  b: 1\n  c: 2 # d\n", wrap_in_list("a"), "a:\n  - b: 1\n    c: 2 # d\n"),
        ("a: {b: 1}\n", wrap_in_list("a"), "a: [{b: 1}]\n"),
        ("a: b # c\n", wrap_in_list("a"), "a: [b] # c\n"),
        ("a:\n- b: 1\n  c: 2\n", unwrap_list("a"), "a:\n  b: 1\n  c: 2\n"),
        ("a: [ {b: 1} ]\n", unwrap_list("a"), "a: {b: 1}\n"),
        ("a: b\n", Edit::WrapInObject { at: path("a"), key: "s".into() }, "a: {s: b}\n"),
        (
            "- a: b == \"c\" # d\n",
            Edit::WrapInObject { at: path("0.a"), key: "s".into() },
            "- a:\n    s: b == \"c\" # d\n",
        ),
        ("a: !!str b\n", Edit::WrapInObject { at: path("a"), key: "s".into() }, "a:\n  s: !!str b\n"),
        ("a: !!str \"b\" # c\n", wrap_in_list("a"), "a: [!!str \"b\"] # c\n"),
        ("- a: &x !!str b\n", wrap_in_list("0.a"), "- a: [&x !!str b]\n"),
        ("{\"a\": 1}", Edit::WrapInObject { at: path("a"), key: "s".into() }, "{\"a\": {\"s\": 1}}"),
    ];
    for (text, edit, expected) in table {
        assert_eq!(edited(text, edit.clone()).as_deref(), Some(expected), "{text:?} {edit:?}");
    }
}

#[test]
fn what_cannot_be_done_surely_is_declined() {
    let table = [
        // Shared by an alias, at both ends; by a merge key.
        ("a: &x {b: 1}\nc: *x\n", set("a.b", "new")),
        ("a: &x {b: 1}\nc: *x\n", set("c.b", "new")),
        ("a: &x {b: 1}\nc:\n  <<: *x\n  d: 1\n", rename("c.b", "new")),
        // Block scalars, and nothing at all.
        ("a: |\n  b\n", set("a", "new")),
        ("a:\nb: 1\n", set("a", "new")),
        // The only item, a key that is there already, a path that leads nowhere.
        ("a: [1]\n", remove("a.0")),
        ("a: 1\nb: 2\n", rename("a", "b")),
        ("a: 1\n", set("b.c", "new")),
        // Comments that might be part of a value.
        ("a:\n- b\n- c: |\n    # d\n", remove("a.1")),
        // Members that do not follow each other; an object with one of the keys.
        ("b: 1\nn: 2\nc: 3\n", nest_under_x("", &["b", "c"])),
        ("x:\n  n: 1\nn: 2\n", unnest("x")),
        ("a: [b, c]\n", unwrap_list("a")),
        // Nobody ends lines so.
        ("a: b\rc: d\r", set("a", "new")),
    ];
    for (text, edit) in table {
        assert_eq!(edited(text, edit.clone()), None, "{text:?} {edit:?}");
    }
}
