//! Two parsers, one tree: what `syntax` makes of a text is what the `cel` crate's parser makes of it, and both refuse
//! the same texts.

use std::fmt::Write as _;

use super::lower;
use crate::V1_33;
use crate::V1_37;
use crate::syntax;
use crate::tree::{ExprKind, NodeId, Tree};

/// A tree as text, with positions.
fn print(tree: &Tree, id: NodeId, out: &mut String) {
    let kind = match tree.kind(id) {
        ExprKind::Missing => "missing".to_owned(),
        ExprKind::Literal(literal) => format!("{literal:?}"),
        ExprKind::Ident(name) => format!("ident {name}"),
        ExprKind::Select { field, presence_test, .. } => format!("select {field} {presence_test}"),
        ExprKind::Call { function, target, .. } => format!("call {function} {}", target.is_some()),
        ExprKind::List { elements } => {
            let optional: Vec<bool> = elements.iter().map(|element| element.optional).collect();
            format!("list {optional:?}")
        }
        ExprKind::Map { entries } => {
            let optional: Vec<bool> = entries.iter().map(|entry| entry.optional).collect();
            format!("map {optional:?}")
        }
        ExprKind::Struct { name, fields } => {
            let fields: Vec<_> = fields.iter().map(|field| (field.at, &field.name, field.optional)).collect();
            format!("struct {name} {fields:?}")
        }
        ExprKind::Loop(body) => {
            let names = (&body.variable, &body.second_variable, &body.accumulator, body.is_bind);
            format!("loop {names:?}")
        }
    };
    // The sign of a zero is part of the number in the one and not in the other.
    let at = if kind == "Int(0)" { 0 } else { tree.error_offset(id) };
    _ = write!(out, "{at} {kind} (");
    for child in tree.children(id) {
        print(tree, child, out);
    }
    out.push(')');
}

fn printed(tree: Option<Tree>) -> Option<String> {
    let tree = tree?;
    let mut out = String::new();
    print(&tree, tree.root(), &mut out);
    Some(out)
}

const LETTERS: [&str; 43] = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "?",
    ".",
    ",",
    ":",
    "!",
    "-",
    "&&",
    "||",
    "==",
    "in",
    "a",
    "1",
    "-1",
    "0x",
    "u",
    "'",
    "\"",
    "\\n",
    "r'",
    "b'",
    " ",
    "\n",
    "\r",
    "//",
    "1.5",
    "e3",
    "`",
    "null",
    "\\x41",
    "\\101",
    "\\u00e9",
    "\\ud800",
    "é",
    "'''",
    "9999999999999999999",
    "-9223372036854775808",
    "if",
];

/// The text of a row's expression, without a parser that this module may not know.
fn expression(row: &str) -> String {
    let start = row.find(r#""expression""#).expect("an expression");
    let text = &row[start + r#""expression""#.len()..];
    let mut chars = text[text.find('"').expect("a string") + 1..].chars();
    let mut out = String::new();
    loop {
        match chars.next().expect("the end of the string") {
            '"' => return out,
            '\\' => match chars.next().expect("an escape") {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                'b' => out.push('\u{8}'),
                'f' => out.push('\u{c}'),
                'u' => {
                    let digits: String = chars.by_ref().take(4).collect();
                    let code = u32::from_str_radix(&digits, 16).expect("four digits");
                    // Half of a character beyond the first 65,536 is as good as any other for these tests.
                    out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                }
                other => out.push(other),
            },
            other => out.push(other),
        }
    }
}

/// Every expression of the test data, and variants of it that are truncated, duplicated or have insertions.
fn texts() -> Vec<String> {
    let files = [
        include_str!("../../../../tests/cel/expressions.jsonl"),
        include_str!("../../../../tests/cel/recorded.jsonl"),
        include_str!("../../../../tests/cel/selectors.jsonl"),
        include_str!("../../../../tests/cel/syntax.jsonl"),
    ];
    let mut texts = Vec::new();
    for line in files.iter().flat_map(|file| file.lines()) {
        texts.push(expression(line));
    }
    let mut state = 17_u64;
    let mut below = move |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap_or(0) % limit.max(1)
    };
    for text in texts.clone() {
        let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let places =
            [below(starts.len()), below(starts.len())].map(|index| starts.get(index).copied().unwrap_or(0));
        let (from, to) = (places[0].min(places[1]), places[0].max(places[1]));
        let letter = LETTERS[below(LETTERS.len())];
        let (head, tail) = text.split_at(from);
        texts.push(format!("{head}{}", &text[to..]));
        texts.push(format!("{}{tail}", &text[..to]));
        texts.push(format!("{head}{letter}{tail}"));
    }
    texts
}

#[test]
fn trees_are_those_of_the_crate() {
    let texts = texts();
    let mut differing = Vec::new();
    let mut accepted = 0;
    for text in &texts {
        for env in [V1_33, V1_37] {
            let own = printed(syntax::parse(text, env).ok());
            // The crate's parser recurses through a wrong text deeper than through any that is right.
            let other = stacker::grow(64 << 20, || printed(lower::parse(text, env)));
            accepted += usize::from(own.is_some());
            if own != other {
                differing.push(format!("{text:?}\n  {own:?}\n  {other:?}"));
            }
        }
    }
    let shown: Vec<&str> = differing.iter().take(40).map(String::as_str).collect();
    assert!(differing.is_empty(), "{} of {} differ\n{}", differing.len(), texts.len(), shown.join("\n"));
    assert!(accepted > 2_000, "{accepted} of {}", texts.len());
}
