//! Laws of the readers: one value is one document, however it is written; nothing panics, whatever is read.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

use std::fmt::Write as _;

use proptest::prelude::*;
use tollgate_document::field::Path;
use tollgate_document::source::{self, LineIndex, list};

/// A JSON value.
#[derive(Clone, Debug)]
enum Json {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
    List(Vec<Json>),
    Map(Vec<(String, Json)>),
}

fn json() -> impl Strategy<Value = Json> {
    let text = prop_oneof![
        "\\PC{0,12}",
        any::<String>(),
        prop::sample::select(vec![
            "on",
            "No",
            "~",
            "",
            "null",
            "0644",
            "1e3",
            "<<",
            "- a",
            "a: b",
            "# c",
            "---",
            "2024-01-01"
        ])
        .prop_map(str::to_owned),
    ];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<i64>().prop_map(Json::Int),
        text.prop_map(Json::Text),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::List),
            prop::collection::btree_map("\\PC{0,8}", inner, 0..6)
                .prop_map(|members| Json::Map(members.into_iter().collect())),
        ]
    })
}

fn quote(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            ' '..='~' | '\u{a1}'..='\u{1fff}' | '\u{10000}'.. => out.push(letter),
            _ => _ = write!(out, "\\u{:04x}", u32::from(letter)),
        }
    }
    out.push('"');
}

/// Compact JSON, which is flow style in YAML too.
fn flow(out: &mut String, value: &Json) {
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Json::Int(number) => out.push_str(&number.to_string()),
        Json::Text(text) => quote(out, text),
        Json::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                flow(out, item);
            }
            out.push(']');
        }
        Json::Map(members) => {
            out.push('{');
            for (index, (key, value)) in members.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                quote(out, key);
                out.push(':');
                flow(out, value);
            }
            out.push('}');
        }
    }
}

/// Writes a value in YAML block style.
fn block(out: &mut String, value: &Json, indent: usize) {
    let margin = format!("\n{}", "  ".repeat(indent));
    match value {
        Json::List(items) if !items.is_empty() => {
            for item in items {
                out.push_str(&margin);
                out.push_str("- ");
                block(out, item, indent + 1);
            }
        }
        Json::Map(members) if !members.is_empty() => {
            for (key, value) in members {
                out.push_str(&margin);
                quote(out, key);
                out.push_str(": ");
                block(out, value, indent + 1);
            }
        }
        _ => flow(out, value),
    }
}

/// Inserts blanks into JSON wherever they are allowed. The strings are those of [`flow`], so they contain no
/// quotes.
fn spread(text: &str, blank: &str) -> String {
    let (mut out, mut in_string, mut is_escaped) = (String::new(), false, false);
    for letter in text.chars() {
        let is_token = !in_string && "[]{}:,".contains(letter);
        out.push_str(if is_token { blank } else { "" });
        out.push(letter);
        out.push_str(if is_token { blank } else { "" });
        in_string ^= letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
    }
    out
}

/// The bytes of a value as Go's `encoding/json` writes it.
fn sent_len(value: &Json) -> usize {
    let separated = |count: usize| 2 + count.saturating_sub(1);
    let string = |text: &str| {
        let letter = |letter: char| match letter {
            '"' | '\\' | '\u{8}' | '\u{c}' | '\n' | '\r' | '\t' => 2,
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => 6,
            other => other.len_utf8(),
        };
        2 + text.chars().map(letter).sum::<usize>()
    };
    match value {
        Json::Null => 4,
        Json::Bool(value) => 5 - usize::from(*value),
        Json::Int(number) => number.to_string().len(),
        Json::Text(text) => string(text),
        Json::List(items) => separated(items.len()) + items.iter().map(sent_len).sum::<usize>(),
        Json::Map(members) => {
            let member = |(key, value): &(String, Json)| string(key) + 1 + sent_len(value);
            separated(members.len()) + members.iter().map(member).sum::<usize>()
        }
    }
}

/// The least limit that the value at `v` does not exceed when kubectl sends it.
fn measured(text: &str) -> usize {
    let document = source::documents(text).next().expect("a document").expect("a readable one");
    let value = document.doc.root().get("v");
    let longest = 12 * text.len();
    let limits: Vec<usize> = (0..=longest).collect();
    limits.partition_point(|limit| value.exceeds_bytes_when_sent_by_kubectl(*limit))
}

fn first(text: &str) -> Option<String> {
    let document = source::documents(text).next()?.expect("a document");
    Some(document.doc.root().to_json())
}

/// Calls all functions that take a text.
fn exercise(text: &str) {
    let lines = LineIndex::from_text(text);
    for document in source::documents(text) {
        match document {
            Ok(document) => {
                for item in list::objects(document.doc.root()) {
                    let at = item.path_in_document(Path::ROOT.field("spec").field("taint").owned());
                    for on_key in [false, true] {
                        let location = document.locate(&lines, &at, on_key);
                        assert!(location.line >= 1 && location.column >= 1, "{location:?}");
                        assert!(text.get(location.shown).is_some(), "{:?}", location.bytes);
                    }
                    assert!(!item.typed_value().to_json().is_empty());
                }
            }
            Err(fault) => assert!(fault.input_error("f", &lines).line >= 1),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn json_and_yaml_of_a_value_give_one_document(value in json()) {
        let value = Json::Map(vec![("v".to_owned(), value)]);
        let (mut flow_text, mut block_text) = (String::new(), String::new());
        flow(&mut flow_text, &value);
        block(&mut block_text, &value, 0);
        let from_json = first(&flow_text);
        prop_assert!(from_json.is_some());
        prop_assert_eq!(first(&format!("--- # YAML\n{flow_text}\n")), from_json.clone(), "{}", flow_text);
        prop_assert_eq!(first(&block_text), from_json, "{}", block_text);
    }

    #[test]
    fn the_size_of_a_value_does_not_depend_on_how_it_is_written(
        value in json(),
        numbers in prop::collection::vec(
            prop::sample::select(vec![
                ("1.0", "1"), ("1e3", "1000"), ("1E+2", "100"), ("-0", "0"), ("1e20", "100000000000000000000"),
                ("0.0000001", "1e-7"), ("18446744073709551615", "18446744073709552000"), ("2.50", "2.5"),
            ]),
            0..4,
        ),
        blank in prop::sample::select(vec!["", " ", "\n", "\n        ", "\t\r\n"]),
    ) {
        let (mut flow_text, mut block_text) = (String::new(), String::new());
        flow(&mut flow_text, &value);
        block(&mut block_text, &value, 2);
        let written = numbers.iter().map(|number| number.0).collect::<Vec<_>>().join(",");
        let sent: usize = numbers.iter().map(|number| number.1.len() + 1).sum();
        let expected = sent_len(&value) + "[[],]".len() + sent.saturating_sub(1);
        let list = format!("[[{written}],{flow_text}]");
        prop_assert_eq!(measured(&spread(&format!("{{\"v\":{list}}}"), blank)), expected, "{}", list);
        prop_assert_eq!(measured(&format!("v: {list}\n")), expected, "{}", list);
        prop_assert_eq!(measured(&format!("v:\n- [{written}]\n- {block_text}\n")), expected, "{}", block_text);
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        exercise(&text);
    }

    #[test]
    fn no_yaml_like_text_makes_it_panic(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "a", ": ", "- ", "\n", "\n  ", "\n    ", "? ", "{", "}", "[", "]", ",", "\"", "'", "&x ", "*x", "<<", "!!int ", "|",
                ">-", "#", "---\n", "...\n", "%YAML 1.1\n", "\t", "\r\n", "0x1", "~", "é", "\u{85}", "\u{feff}", "items", "kind: List",
                "spec", "!!binary ", "1e400", "\\ud800",
            ]),
            0..40,
        )
    ) {
        exercise(&words.concat());
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(text) = source::decode_by_byte_order_mark("f", bytes) {
            exercise(&text);
        }
    }
}
