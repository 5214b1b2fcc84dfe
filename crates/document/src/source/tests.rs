//! Streams, aliases, merge keys, limits and lists, each as a table.

use std::fmt::Write as _;

use super::{LineIndex, MAX_DOCUMENT_BYTES, documents, list};

/// Returns every document as JSON, and every error as `line:column: message`.
fn read_documents(text: &str) -> Vec<String> {
    let lines = LineIndex::from_text(text);
    documents(text)
        .map(|document| match document {
            Ok(document) => document.doc.root().to_json(),
            Err(fault) => fault.input_error("f", &lines).to_string(),
        })
        .collect()
}

fn check_table(table: &[(&str, &[&str])]) {
    for (text, expected) in table {
        assert_eq!(read_documents(text), *expected, "{text}");
    }
}

/// Text that kubectl ignores.
const IGNORED: &str =
    "f:2:1: yaml: kubectl does not read what follows `...`; begin the next document with `---`";

#[test]
fn streams_are_cut_as_kubectl_cuts_them() {
    check_table(&[
        ("", &[]),
        ("# only a comment\n", &[]),
        ("---\n", &[]),
        ("---\n---\n# nothing\n---\nnull\n", &[]),
        ("a: 1\n", &[r#"{"a":1}"#]),
        ("---\na: 1\n---\nb: 2\n---\n", &[r#"{"a":1}"#, r#"{"b":2}"#]),
        ("--- # first\na: 1\n---   \nb: 2", &[r#"{"a":1}"#, r#"{"b":2}"#]),
        ("a: 1\r\n---\r\nb: 2\r\n", &[r#"{"a":1}"#, r#"{"b":2}"#]),
        ("a: 1\rb: 2\r", &[r#"{"a":1,"b":2}"#]),
        ("a: 1\n...\n---\nb: 2\n", &[r#"{"a":1}"#, r#"{"b":2}"#]),
        ("a: 1\n...\n# a comment\n", &[r#"{"a":1}"#]),
        ("a: 1\n...\nb: 2\n", &[r#"{"a":1}"#, IGNORED]),
        ("a: 1\n...\n]\n", &[r#"{"a":1}"#, IGNORED]),
        ("a: 1\n--- !x\nb: 2\n", &[r#"{"a":1}"#, "f:2:1: invalid Yaml document separator: !x", r#"{"b":2}"#]),
        ("----\na: 1\n", &["f:1:1: invalid Yaml document separator: -", r#"{"a":1}"#]),
        ("hello", &[r#""hello""#]),
        ("[1, 2]", &["[1,2]"]),
        (
            "%YAML 1.1\n---\na: 1\n",
            &[
                "f:1:1: yaml: did not find expected <document start>; kubectl does not support % directives",
                r#"{"a":1}"#,
            ],
        ),
    ]);
}

#[test]
fn json_is_read_as_json_until_it_is_not() {
    check_table(&[
        (r#"{"a": 1}"#, &[r#"{"a":1}"#]),
        ("\n\t {\"a\": 1e2}\n", &[r#"{"a":1e2}"#]),
        (r#"{"a":1}{"b":2} [3] "#, &[r#"{"a":1}"#, r#"{"b":2}"#, "[3]"]),
        ("{\"a\":1}\n---\nb: 2\n", &[r#"{"a":1}"#, r#"{"b":2}"#]),
        ("{\"a\":1}\n---\n{\"b\": 2}\n---\nc: on\n", &[r#"{"a":1}"#, r#"{"b":2}"#, r#"{"c":true}"#]),
        ("{\"a\":1,}", &[r#"{"a":1}"#]),
        ("{\"a\":1, # comment\n\"b\": yes}", &[r#"{"a":1,"b":true}"#]),
        ("{\"a\": 1", &["f:1:8: unexpected end of JSON input"]),
        ("{\"a\": 1}}\n", &[r#"{"a":1}"#, "f:1:9: invalid character '}' looking for beginning of value"]),
        (
            "{\"a\":1}\n{\"b\":2}\n{,}\n---\nc: 3\n",
            &[
                r#"{"a":1}"#,
                r#"{"b":2}"#,
                "f:3:2: invalid character ',' looking for beginning of object key string",
                r#"{"c":3}"#,
            ],
        ),
        ("{a: 1}", &[r#"{"a":1}"#]),
    ]);
}

#[test]
fn keys_are_resolved_and_become_text() {
    check_table(&[
        (
            "on: 1\n1: 2\n0x10: 3\n1.50: 4\n1e6: 5\n\"no\": 6\n",
            &[r#"{"1":2,"1.5":4,"16":3,"1e+06":5,"no":6,"true":1}"#],
        ),
        ("2024-01-01: 1\n!!binary aGk=: 2\n!!str 07: 3\n", &[r#"{"07":3,"2024-01-01":1,"hi":2}"#]),
        ("a: &x k\n*x : 1\n", &[r#"{"a":"k","k":1}"#]),
        ("~: 1", &["f:1:1: unsupported map key of type: null; quote it if you mean a string"]),
        ("a:\n  : 1", &["f:2:3: unsupported map key of type: null; quote it if you mean a string"]),
        (
            "18446744073709551615: 1",
            &["f:1:1: unsupported map key of type: uint64, key: 18446744073709551615"],
        ),
        ("? [a]\n: 1", &["f:1:3: yaml: invalid map key: a list cannot be a key"]),
        (
            "a: {{ .Values.x }}",
            &[
                "f:1:5: yaml: invalid map key: a map cannot be a key; this looks like a template: render it first",
            ],
        ),
    ]);
}

#[test]
fn tags_decide_as_in_go() {
    check_table(&[
        (
            "[!!str 1, !!str ~, !!int \"0x1f\", !!float 3, !!bool \"on\", !!null ~, !!binary aGk=]",
            &[r#"["1","~",31,3,true,null,"hi"]"#],
        ),
        (
            "[! 1, !x 1, !!set 1, !!timestamp 2024-01-01, !!str , \"on\", 'on', !!str {a: 1}]",
            &[r#"["1","1","1","2024-01-01","","on","on",{"a":1}]"#],
        ),
        (
            "[!<tag:yaml.org,2002:str> 1, !<tag:yaml.org,2002:int> \"1\", !<x> 1, !<tag:yaml.org,2002:str> {a: 1}]",
            &[r#"["1",1,"1",{"a":1}]"#],
        ),
        ("a: !!int 1.5", &["f:1:10: yaml: cannot decode !!float `1.5` as a !!int"]),
        ("a: !!bool x", &["f:1:11: yaml: cannot decode !!str `x` as a !!bool"]),
        ("a: !!binary \"?\"", &["f:1:13: yaml: !!binary value contains invalid base64 data"]),
        ("a: .NaN", &["f:1:4: json: unsupported value: NaN"]),
        (
            "a: [9223372036854775808, 3e2, 08, -0, +5, 1e21, 0.0000001]",
            &[r#"{"a":[9223372036854775808,300,8,0,5,1e+21,1e-7]}"#],
        ),
    ]);
}

#[test]
fn merge_keys_follow_the_order_they_stand_in() {
    check_table(&[
        ("b: &b {x: 1, xy: 2}\nc:\n  <<: *b\n  xy: 3\n", &[r#"{"b":{"x":1,"xy":2},"c":{"x":1,"xy":3}}"#]),
        // go-yaml v2 writes in order: a merge after a key overwrites it.
        ("b: &b {x: 1}\nc:\n  x: 3\n  <<: *b\n", &[r#"{"b":{"x":1},"c":{"x":1}}"#]),
        (
            "a: &a {x: 1}\nb: &b {x: 2, xy: 2}\nc:\n  <<: [*a, *b]\n  z: 3\n",
            &[r#"{"a":{"x":1},"b":{"x":2,"xy":2},"c":{"x":1,"xy":2,"z":3}}"#],
        ),
        ("c: {<<: {x: 1}, <<: {x: 2}}", &[r#"{"c":{"x":2}}"#]),
        (
            "a: &a {<<: {x: 1}, xy: &xy 2}\nb: {<<: *a, z: *xy}",
            &[r#"{"a":{"x":1,"xy":2},"b":{"x":1,"xy":2,"z":2}}"#],
        ),
        ("c: {\"<<\": 1}", &[r#"{"c":{"\u003c\u003c":1}}"#]),
        ("c: {<<: 1}", &["f:1:9: yaml: map merge requires map or sequence of maps as the value"]),
        ("c: {<<: [1]}", &["f:1:10: yaml: map merge requires map or sequence of maps as the value"]),
        ("c:\n  <<:\n", &["f:2:3: yaml: map merge requires map or sequence of maps as the value"]),
    ]);
}

#[test]
fn what_is_written_twice_stays_twice() {
    let text = "a: &a {x: 0}\nc:\n  <<: *a\n  x: 1\n  x: 2\n";
    let document = documents(text).next().unwrap().unwrap();
    let members: Vec<&str> = document.doc.root().get("c").members().map(|(_, value)| value.text()).collect();
    assert_eq!(members, ["1", "2"]);
}

#[test]
fn broken_documents_have_a_place_and_lose_no_others() {
    check_table(&[
        ("a: 1\n---\nb: [1\n---\nc: 3\n", &[r#"{"a":1}"#, "f:3:4: yaml: unclosed bracket '['", r#"{"c":3}"#]),
        (
            r#"a: "\\ud83d \u00e9 \ud83d\ude00""#,
            &["f:1:20: yaml: found invalid Unicode character escape code"],
        ),
        (
            "a:\tb\nc:\n- x\n-\ty\n---\nd: 1",
            &["f:4:2: yaml: tabs cannot be used for indentation; use spaces", r#"{"d":1}"#],
        ),
        ("\t- a", &["f:1:1: yaml: tabs cannot be used for indentation; use spaces"]),
        ("a: *nope\n---\nc: 3\n", &["f:1:4: yaml: unknown anchor 'nope' referenced", r#"{"c":3}"#]),
        ("a: &a [*a]\n", &["f:1:8: yaml: the anchor's value contains itself"]),
        (
            "a: \"b\u{1}\"\n---\nc: 3\n",
            &["f:1:6: yaml: control characters are not allowed (U+0001)", r#"{"c":3}"#],
        ),
        ("a: \"\u{fffe}\u{85}\"", &["f:1:5: yaml: control characters are not allowed (U+FFFE)"]),
    ]);
    for text in
        ["a: \"b\n", "a: 'b", "a: {b: c", "a: b: c", "\ta: b", "a:\n\t- b", "a: @b", "- a\nb: c", "&a", "*a"]
    {
        let read = read_documents(text);
        assert!(read.len() <= 1, "{text}: {read:?}");
    }
}

#[test]
fn a_line_ends_where_kubectl_ends_it() {
    let ends = |code: &str, at: &str| {
        format!(
            "f:{at}: yaml: the character U+{code} ends a line for kubectl; delete it, or write \\u{} in a \
             double-quoted string",
            code.to_lowercase()
        )
    };
    for (letter, code) in [('\u{85}', "0085"), ('\u{2028}', "2028"), ('\u{2029}', "2029")] {
        for (text, at) in [
            (format!("a: g # c{letter}  b: 1\n"), "1:9"),
            (format!("# c{letter}b: 1\na: 1\n"), "1:4"),
            (format!("a: 1\n# c{letter}b: 1\n"), "2:4"),
            (format!("a: x{letter}b: 1\n"), "1:5"),
            (format!("a: |\n  x{letter}b: 1\n"), "2:4"),
            (format!("a: >-\n  x{letter}b: 1\nc: 1\n"), "2:4"),
            (format!("a: {{b: 1,{letter} c: 2}}\n"), "1:10"),
            (format!("'a{letter}b': 1\n"), "1:3"),
            (format!("a: \"é{letter}\" # {letter}\n"), "1:11"),
            (format!("a: [b\n{letter}c: ]\n"), "2:1"),
        ] {
            assert_eq!(read_documents(&text), [ends(code, at)], "{text:?}");
        }
    }
    check_table(&[
        ("a: \"b \u{2028} c\"\n", &["{\"a\":\"b\\u2028c\"}"]),
        ("a: 'b\u{85}c'\n", &[r#"{"a":"b c"}"#]),
        ("{\"a\": \"b \u{2028} c\"}", &["{\"a\":\"b \\u2028 c\"}"]),
        ("a: b\n\u{feff}c: d\n", &["f:2:1: yaml: a byte order mark (U+FEFF) is inside the text; delete it"]),
        ("a: 'b\r\r\n  c'\r\r\nd: e\r\r\n", &[r#"{"a":"b c","d":"e"}"#]),
        (
            "a: b\r\r\n  c\n",
            &["f:1:5: yaml: the line ends with two carriage returns; end it with one line break"],
        ),
    ]);
}

#[test]
fn escapes_are_those_of_kubectl() {
    check_table(&[
        ("a: \"it\\'s\" # one\nb: \"\\'\\x41\\'\"\nc: '\\'\n", &[r#"{"a":"it's","b":"'A'","c":"\\"}"#]),
        ("a: 1\n...\nb: \"\\'\"\n", &[r#"{"a":1}"#, IGNORED]),
        ("a: \"b\\/\"\n", &["f:1:6: yaml: kubectl does not support the escape \\/; write / instead"]),
        ("a: \"b\\q\\'\"\n", &["f:1:6: yaml: found unknown escape character"]),
        ("{\"a\": \"\\/\"}", &[r#"{"a":"/"}"#]),
        // The value continues although its lines are not indented.
        ("a: \"b\nc\"\nd:\n  - 'e\n\n  f'\n", &[r#"{"a":"b c","d":["e\nf"]}"#]),
    ]);
    let many = "- \"\\'\"\n".repeat(500);
    assert_eq!(read_documents(&many), [format!("[{}]", vec!["\"'\""; 500].join(","))]);
}

#[test]
fn what_two_readers_take_for_something_else_is_refused() {
    let anchor = "yaml: the name of an anchor can have letters, digits, - and _ only";
    let tag =
        "yaml: a tag must end with a blank or a line break, and can have letters, digits and -_.:/ only";
    let flow =
        "yaml: put a blank after the `:` of a key in brackets, and quote a string with `?` or a `:` in front";
    for (text, at, message) in [
        ("a: &x:y 1\n", "1:6", anchor),
        ("a: &x 1\nb: *x\nc: &é 2\n", "3:5", anchor),
        ("a: [!x,y z]\n", "1:5", tag),
        ("a: {b: !}\n", "1:8", tag),
        ("a: {b: !<x>}\n", "1:8", tag),
        ("a: !<!!int> \"1\"\n", "1:4", tag),
        ("a: [b:]\n", "1:6", flow),
        ("a: {b:}\n", "1:6", flow),
        ("a: [b?c]\n", "1:6", flow),
        ("a: {b\n c: 1}\n", "1:6", "yaml: a key must be on one line"),
        ("a: |\n  \tb\n", "2:3", "yaml: tabs cannot be used for indentation; use spaces"),
        ("a: 1\n\t# c\n", "2:1", "yaml: tabs cannot be used for indentation; use spaces"),
    ] {
        assert_eq!(read_documents(text), [format!("f:{at}: {message}")], "{text}");
    }
    check_table(&[
        ("a: |\n  b\n  \tc\n  \t\nd: [1,\t2]\t# c\n", &[r#"{"a":"b\n\tc\n\t\n","d":[1,2]}"#]),
        ("a: |+\n  b\n  ", &[r#"{"a":"b\n\n"}"#]),
        ("a: !!str 1\nb: &x-1_y\n  c: 1\nd: {<<: *x-1_y}\n", &[r#"{"a":"1","b":{"c":1},"d":{"c":1}}"#]),
    ]);
}

#[test]
fn bombs_and_giants_are_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = level - 1;
        let ten = vec![format!("*a{before}"); 10].join(", ");
        _ = writeln!(bomb, "a{level}: &a{level} [{ten}]");
    }
    let read_bomb = read_documents(&bomb);
    assert!(read_bomb[0].contains("excessive aliasing"), "{read_bomb:?}");
    let deep = format!("a: {}\n---\nb: 1\n", "[".repeat(5_000));
    assert_eq!(read_documents(&deep).len(), 2);
    let quadratic = format!("{}{}\n---\nb: 1\n", "{a: &x ".repeat(900), "}".repeat(900));
    assert_eq!(read_documents(&quadratic).len(), 2);
    let large = format!("a: 1\n---\nb: {}\n---\nc: 1\n", "x".repeat(MAX_DOCUMENT_BYTES));
    assert_eq!(
        read_documents(&large),
        [
            r#"{"a":1}"#,
            "f:3:1: the document is larger than 8 MiB, the most that is read as one object",
            r#"{"c":1}"#
        ]
    );
    let large = format!("{{\"a\": \"{}\"}}", "x".repeat(MAX_DOCUMENT_BYTES));
    assert_eq!(
        read_documents(&large),
        ["f:1:1: the document is larger than 8 MiB, the most that is read as one object"]
    );
}

/// Returns the objects to check: their path, such as `items[0]`, and their JSON.
fn checked_objects(text: &str) -> Vec<(String, String)> {
    let document = documents(text).next().unwrap().unwrap();
    list::objects(document.doc.root())
        .map(|item| {
            let path = item
                .path_in_document(crate::field::FieldPath::default())
                .print(crate::field::PathAudience::User);
            (path, item.typed_value().to_json())
        })
        .collect()
}

#[test]
fn lists_stand_for_their_items() {
    let table: [(&str, &[(&str, &str)]); 12] = [
        ("kind: X\nitems: [1]", &[("", r#"{"items":[1],"kind":"X"}"#)]),
        // Of a key that is given twice, kubectl takes the last one.
        (
            "{\"kind\":\"List\",\"items\":[],\"it\\u0065ms\":[{\"kind\":\"A\"}]}",
            &[("items[0]", r#"{"kind":"A"}"#)],
        ),
        ("kind: List\nitems: null\nitems: [{kind: A}]", &[("items[0]", r#"{"kind":"A"}"#)]),
        ("kind: X\nkind: List\nitems: [{kind: A}]", &[("items[0]", r#"{"kind":"A"}"#)]),
        ("kind: List\nitems: [{kind: A}]\nitems: []", &[]),
        ("kind: List\nItems: [{kind: A}]\nitems: []", &[]),
        // Anything with items is a list for kubectl.
        (
            "apiVersion: v1\nkind: X\nitems: [{apiVersion: g/v1, kind: A}, {kind: B}, 5]",
            &[
                (
                    "",
                    r#"{"apiVersion":"v1","items":[{"apiVersion":"g/v1","kind":"A"},{"kind":"B"},5],"kind":"X"}"#,
                ),
                ("items[0]", r#"{"apiVersion":"g/v1","kind":"A"}"#),
            ],
        ),
        ("kind: List\nitems: [{kind: A}, 5]", &[("items[0]", r#"{"kind":"A"}"#), ("items[1]", "5")]),
        (
            "apiVersion: g/v1\nkind: XList\nitems:\n- {a: 1}\n- {kind: Z}\n",
            &[("items[0]", r#"{"a":1,"apiVersion":"g/v1","kind":"X"}"#), ("items[1]", r#"{"kind":"Z"}"#)],
        ),
        (
            "kind: List\nitems:\n- kind: List\n  items: [{kind: A}]\n- {kind: B}",
            &[("items[0].items[0]", r#"{"kind":"A"}"#), ("items[1]", r#"{"kind":"B"}"#)],
        ),
        ("kind: List\nitems: []", &[]),
        ("kind: List\nitems: {}", &[("", r#"{"items":{},"kind":"List"}"#)]),
    ];
    for (text, expected) in table {
        let diagnostic = checked_objects(text);
        let diagnostic: Vec<(&str, &str)> =
            diagnostic.iter().map(|(path, json)| (path.as_str(), json.as_str())).collect();
        assert_eq!(diagnostic, expected, "{text}");
    }
}
