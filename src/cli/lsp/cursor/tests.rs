//! Texts with the cursor in them, as they are while the user types.

use proptest::prelude::{Strategy, any, proptest};

use super::{Cursor, CursorPlace, Step, find_cursor};

const MARK: char = '‸';

fn remove_cursor_mark(marked: &str) -> (String, usize) {
    let at = marked.find(MARK).expect("a cursor");
    (marked.replace(MARK, ""), at)
}

/// `a.b[].c key` or `… value of k`, and the word.
fn describe_cursor(text: &str, cursor: &Cursor<'_>) -> String {
    let mut out = String::new();
    for container in &cursor.containers {
        match container.step {
            None => {}
            Some(Step::Item) => out.push_str("[]"),
            Some(Step::Key(key)) => out = format!("{out}.{key}"),
        }
    }
    let place = match cursor.place {
        CursorPlace::Key => "key".to_owned(),
        CursorPlace::Value(key) => format!("value of {key}"),
        CursorPlace::Comment => "comment".to_owned(),
        CursorPlace::Nowhere => "nowhere".to_owned(),
    };
    format!("{out} {place} <{}>", &text[cursor.word.clone()])
}

#[test]
fn the_cursor_is_found_in_broken_texts() {
    let table = [
        ("‸", " key <>"),
        ("ki‸", " key <ki>"),
        ("kind: Dev‸ice\n", " value of kind <Device>"),
        ("kind: ‸\nspec:\n", " value of kind <>"),
        ("kind:‸", " value of kind <>"),
        ("ki‸nd:", " key <kind>"),
        ("spec:\n  taint:\n    key: a\n    eff‸\n", ".spec.taint key <eff>"),
        ("spec:\n  taint:\n    key: a\n    ‸", ".spec.taint key <>"),
        ("spec:\n  taint:\n    key: a\n    ‸\nstatus: {}\n", ".spec.taint key <>"),
        ("spec:\n  taint:\n    key: a\n  ‸\n", ".spec key <>"),
        ("spec:\n  taint:\n    key: a\n‸\n", " key <>"),
        ("spec:\n  taint:\n    effect: No‸Ex # why\n", ".spec.taint value of effect <NoEx>"),
        ("spec:\n  taint:\n    effect: NoEx # w‸hy\n", ".spec.taint comment <# why>"),
        ("# tollgate: allow(‸\nkind: x\n", " comment <# tollgate: allow(>"),
        ("requests:\n- name: a\n  exactly:\n    tol‸\n", ".requests[].exactly key <tol>"),
        ("requests:\n  - name: a\n  - ‸\n", ".requests[] key <>"),
        ("requests:\n  -‸\n", ".requests[] key <>"),
        ("requests:\n- name: a\n‸", " key <>"),
        ("a:\n- - b: ‸", ".a[][] value of b <>"),
        ("a:\n  effects: [NoSchedule, No‸\nb: 1\n", ".a.effects[] key <No>"),
        ("a: {b: {c: 1, d‸}}\n", ".a.b key <d>"),
        ("a: {b: {c: ‸}}\n", ".a.b value of c <>"),
        ("a: {b: [{c: x‸yz}]}\n", ".a.b[] value of c <xyz>"),
        ("a: {b: 1, ‸\nnext:\n  c: 1\n", ".a key <>"),
        ("a: {\n  b: 1,\n  ‸\n}\n", ".a key <>"),
        ("a: {b: 1} ‸\n", ".a nowhere <>"),
        ("a: |\n  text ‸ text\nb: 1\n", ".a nowhere <>"),
        ("a: |\n  text\nb: ‸\n", " value of b <>"),
        ("kind: a\n---\nspec:\n  ‸\n---\nother:\n", ".spec key <>"),
        ("{\"spec\": {\"taint\": {\"eff‸\"}}}", ".spec.taint key <\"eff\">"),
        ("{\"spec\": {\"taint\": {\"effect\": \"No‸\"}}}", ".spec.taint value of effect <\"No\">"),
        ("{\n \"spec\": {\n  ‸", ".spec key <>"),
        ("\"a\":\n  'b c': ‸\n", ".a value of b c <>"),
        ("a: \"x # y‸\"\n", " value of a <\"x # y\">"),
        ("a:\r\n  b: 1\r\n  ‸\r\n", ".a key <>"),
    ];
    for (marked, expected) in table {
        let (text, at) = remove_cursor_mark(marked);
        assert_eq!(describe_cursor(&text, &find_cursor(&text, at)), expected, "{marked:?}");
    }
}

#[test]
fn what_an_object_is_and_has_is_known_from_both_sides_of_the_cursor() {
    let (text, at) = remove_cursor_mark("apiVersion: \"v1\"\nspec:\n  a: 1\n  ‸\n  b: 2\nkind: X # x\n");
    let cursor = find_cursor(&text, at);
    let root = &cursor.containers[0];
    assert_eq!((root.api_version, root.kind), ("v1", "X"));
    assert_eq!(cursor.containers[1].keys, ["a", "b"]);
    let (text, at) = remove_cursor_mark("items:\n- {apiVersion: v2, spec: {‸}, kind: Y}\n");
    let item = &find_cursor(&text, at).containers[2];
    assert_eq!((item.api_version, item.kind), ("v2", "Y"));
    assert_eq!(item.keys, ["apiVersion", "spec", "kind"]);
}

fn texts() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        proptest::sample::select(vec![
            "a", ":", " ", "\n", "- ", "{", "}", "[", "]", ",", "\"", "'", "#", "|", "---\n", "é", "\r\n",
            "kind: ", "\t",
        ]),
        0..40,
    )
    .prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_text_has_a_cursor(text in texts(), at in any::<usize>()) {
        let at = text.floor_char_boundary(at % (text.len() + 1));
        let cursor = find_cursor(&text, at);
        assert!(text.get(cursor.word.clone()).is_some(), "{text:?} {at} {:?}", cursor.word);
        assert!(cursor.word.start <= at && at <= cursor.word.end, "{text:?} {at} {:?}", cursor.word);
    }
}
