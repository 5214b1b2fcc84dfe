//! Laws of the readers: one value is one document, however it is written; nothing panics, whatever is read.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

use std::fmt::Write as _;

use proptest::prelude::*;
use tollgate::field::Path;
use tollgate::source::{self, Lines, list};

/// A value of JSON.
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

/// Block style.
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

fn first(text: &str) -> Option<String> {
    let document = source::documents(text).next()?.expect("a document");
    Some(document.doc.root().to_json())
}

/// Everything that can be asked of a text.
fn exercise(text: &str) {
    let lines = Lines::of(text);
    for document in source::documents(text) {
        match document {
            Ok(document) => {
                for item in list::objects(document.doc.root()) {
                    let at = item.within(Path::ROOT.field("spec").field("taint").owned());
                    for on_key in [false, true] {
                        let location = document.locate(&lines, &at, on_key);
                        assert!(location.line >= 1 && location.column >= 1, "{location:?}");
                        assert!(text.get(location.shown).is_some(), "{:?}", location.bytes);
                    }
                    assert!(!item.value().to_json().is_empty());
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
        if let Ok(text) = source::decode("f", bytes) {
            exercise(&text);
        }
    }
}
