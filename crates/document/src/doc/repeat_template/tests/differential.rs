//! The differential target of repeat copying: a text is read with it and without it, and both give the same nodes or
//! the same error. As a fuzzer: `PROPTEST_CASES=1000000 cargo test -p tollgate-document differential`.

use proptest::prelude::*;

use crate::doc::json::Reader;
use crate::doc::{Builder, Syntax};

/// Reads a text with or without repeat copying; returns the nodes, or the error, as text to compare.
fn read_as_text(text: &str, copies_repeats: bool) -> Result<String, String> {
    let mut reader = Reader::from_source(text);
    let mut out = Builder { copies_repeats, ..Builder::new(text, Syntax::Json) };
    reader.read_document(&mut out).map_err(|fault| fault.to_string())?;
    Ok(format!("{:?}", out.finish()))
}

/// Texts whose parts repeat each other, almost repeat each other, or end in the middle of it.
fn repetitive_texts() -> Vec<String> {
    let values = [
        r#"{"a":1,"b":"x","c":[1,2,{"d":null}]}"#,
        r#"{"a":12,"b":"x","c":[1,2,{"d":null}]}"#,
        r#"{"a":1,"c":[1,2,{"d":null}]}"#,
        r#"{"b":"x","c":[1,2,{"d":nul}]}"#,
        r#"{"a":1,"b":"x\n","c":[1,2,{"d":null}],"e":true}"#,
        r#"{ "a" : 1 , "b":"xy","c":[1,2,{"d":nulls}]}"#,
        r#"{"key":"k","value":"v","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:00Z"}"#,
        r#"{"key":"k","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:00Z"}"#,
        r#"{"key":"k","value":"w","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:01Z"}"#,
        "[]",
        "{}",
        "1",
        "\"1\"",
        "true",
        "1.5",
        "15",
        "[[1],[1],[1,2]]",
        "{\"a\":1,\"a\":1}",
        "",
    ];
    let mut texts = Vec::new();
    for one in values {
        for other in values {
            texts.push(format!("[{one},{other},{one},{other}]"));
            texts.push(format!("[[{one},{other}],[{one},{one}],[{other},{one},{one}]]"));
            texts.push(format!("[{{\"list\":[{one}],\"x\":{other}}}, {{\"list\":[{one} ],\"x\":{other}}},{{\"list\":[{one},{other}]"));
        }
    }
    texts
}

/// Asserts that reading each text with and without copying gives the same; returns how many of the texts are JSON.
fn read_both_ways(texts: impl IntoIterator<Item = String>) -> usize {
    let is_fine = |text: &String| {
        let found = read_as_text(text, true);
        assert_eq!(found, read_as_text(text, false), "{text}");
        found.is_ok()
    };
    texts.into_iter().filter(is_fine).count()
}

#[test]
fn copying_changes_nothing_but_the_time() {
    let fine = read_both_ways(repetitive_texts());
    assert!(fine > 300, "only {fine} texts are JSON");
}

/// Generates `rounds` JSON lists whose items are copies of each other, in some of which a random byte was changed,
/// removed or inserted. The same seed gives the same lists.
fn damaged_lists(mut seed: u64, rounds: usize) -> impl Iterator<Item = String> {
    let items = [
        r#"{"name":"a","attributes":{"x":{"string":"v"},"y":{"int":1}},"taints":[{"key":"k","value":"v-1","effect":"E"},{"key":"l","value":"v-2","effect":"E"}],"n":[1,[2,[3,{}]],[]]}"#,
        r#"[{"a":"\n","b":[true,null,12.5e3]},{"a":"\n","b":[true,null,12.5e3]},"\u0041",{"":{}}]"#,
        r#"{"devices" : [ { "name" : "x" } , { "name" : "y" , "more" : [ ] } ] }"#,
    ];
    let mut number = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    };
    (0..rounds).map(move |round| {
        let item = items[round % items.len()];
        let copies: Vec<String> = (0..2 + number(3))
            .map(|_| {
                let mut copy = item.as_bytes().to_vec();
                for _ in 0..number(2) {
                    let (at, byte) = (number(copy.len()), br#"{}[],:"\ 0123456789abcdefgh"#[number(27)]);
                    match number(3) {
                        0 => copy[at] = byte,
                        1 => copy.insert(at, byte),
                        _ => _ = copy.remove(at),
                    }
                }
                String::from_utf8(copy).unwrap()
            })
            .collect();
        let list = format!("[{}]", copies.join(","));
        if number(2) == 0 { format!("[{list},{list},[{}]]", copies[0]) } else { list }
    })
}

#[test]
fn almost_the_same_is_read_as_it_is() {
    let fine = read_both_ways(damaged_lists(1, 30_000));
    assert!((7_000..25_000).contains(&fine), "{fine} texts are JSON");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_damage_is_read_as_it_is(seed in any::<u64>()) {
        read_both_ways(damaged_lists(seed, 30));
    }
}

#[test]
fn a_hostile_text_cannot_make_comparing_expensive() {
    // Every level of every item is like its template up to the last byte; the text repeats itself; every other node
    // has a text of its own.
    let deep = |last: usize| format!("{}{last}{}", "[".repeat(2_000), "]".repeat(2_000));
    let long = |last: usize| format!("{{\"{}\":{last}}}", "k".repeat(2_000));
    let texts = [
        (0..100).map(deep).collect::<Vec<_>>(),
        (0..100).map(long).collect(),
        vec!["{\"a\":1}".to_owned(); 10_000],
        vec!["\"\\n\"".to_owned(); 10_000],
        vec![format!("[{}]", vec!["\"\\n\",1"; 2_000].join(",")); 20],
    ];
    for items in texts {
        let text = format!("[{}]", items.join(","));
        let mut reader = Reader::from_source(&text);
        let mut out = Builder::new(&text, Syntax::Json).with_repeat_copying();
        reader.read_document(&mut out).unwrap();
        assert!(reader.compared > 0 && reader.compared < 4 * text.len(), "{}", reader.compared / text.len());
    }
}
