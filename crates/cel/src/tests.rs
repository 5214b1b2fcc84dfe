//! Texts written to break a parser: each must come back with some answer, on a test thread's two megabytes, in a debug
//! build. What servers say of expressions is in `tests/cel`.

mod lower;
mod trees;

use std::fmt::Write as _;

use crate::CheckOutcome;
use crate::ExpressionPurpose;
use crate::V1_33;
use crate::V1_34;
use crate::V1_35;
use crate::V1_36;
use crate::V1_37;
use crate::check;
use crate::scan::{ParseStackNeeds, find_parse_stack_needs};

/// Repeats a text up to the maximum length that the server reads.
fn repeat_to_limit(unit: &str) -> String {
    unit.repeat(10_240 / unit.len())
}

fn numbered_entries(count: u32) -> String {
    (1..count).fold(String::new(), |text, number| text + &number.to_string() + ":1,")
}

fn check_as_selector(expression: &str) -> CheckOutcome {
    check(expression, ExpressionPurpose::Selector, &V1_36)
}

fn is_refused(expression: &str) -> bool {
    matches!(check_as_selector(expression), CheckOutcome::CompileError(_))
}

#[test]
fn macros_that_copy_weigh_what_they_make() {
    let plain = "device.driver == 'a'";
    assert_eq!(super::estimated_size_after_macro_copies(plain), plain.len());
    let copying = format!("optional.of(1){}.hasValue()", ".optMap(x, x)".repeat(11));
    assert_eq!(super::estimated_size_after_macro_copies(&copying), 10_000);
    let long = format!("{copying} && {}", "true && ".repeat(1_500));
    assert_eq!(super::estimated_size_after_macro_copies(&long), long.len());
}

#[test]
fn long_chains_are_refused_as_too_deep() {
    for chain in [
        format!("{}1 == 2", repeat_to_limit("1+").get(..8000).unwrap()),
        format!("{}\"a\" == \"b\"", repeat_to_limit("\"a\"+").get(..8000).unwrap()),
        format!("{}1 == 1", repeat_to_limit("1*").get(..8000).unwrap()),
        format!("device{}", ".a".repeat(4000)),
        format!("device{}", "[\"a\"]".repeat(1500)),
        format!("device{}", ".f()".repeat(2000)),
        format!("{}true", "true==".repeat(1000)),
        format!("{}true", "true?true:".repeat(900)),
    ] {
        let CheckOutcome::CompileError(detail) = check_as_selector(&chain) else {
            panic!("{}", &chain[..40])
        };
        assert!(detail.contains("ecursion"), "{detail}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    for (open, inner, close) in
        [("(", "true", ")"), ("[", "1", "]"), ("{1:", "1", "}"), ("size([", "1", "])"), ("!(", "true", ")")]
    {
        for depth in [260, 1000, 10_000 / (open.len() + close.len())] {
            let closed = format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
            assert!(is_refused(&closed), "{open} {depth}");
            assert!(is_refused(&open.repeat(depth)), "{open} {depth}");
        }
    }
}

#[test]
fn nesting_below_the_limit_is_read() {
    let nested = format!("{}true{}", "(".repeat(249), ")".repeat(249));
    assert!(matches!(check_as_selector(&nested), CheckOutcome::Accepted { .. }));
    let too_deep = format!("{}true{}", "(".repeat(250), ")".repeat(250));
    assert!(is_refused(&too_deep));
    let exponents = format!("{}1e-5 > 0.0", "1e-5 + ".repeat(200));
    assert!(matches!(check_as_selector(&exponents), CheckOutcome::Accepted { .. }));
    let sum = format!("{}1 == 2", "1+".repeat(249));
    assert!(
        matches!(check_as_selector(&sum), CheckOutcome::Accepted { .. }),
        "{:?}",
        check_as_selector(&sum)
    );
    let too_long = format!("{}1 == 2", "1+".repeat(251));
    assert!(is_refused(&too_long));
    let ternaries = format!("{}true", "true?true:".repeat(249));
    assert!(matches!(check_as_selector(&ternaries), CheckOutcome::Accepted { .. }));
    // An operator enters its rule once more than a bracket does. The numbers are those of a running 1.37.
    for (open, most) in [("(1+", 124), ("(2*", 124), ("(1+2*", 83)] {
        let nested = |depth| format!("{}1{} == 1", open.repeat(depth), ")".repeat(depth));
        assert!(matches!(check_as_selector(&nested(most)), CheckOutcome::Accepted { .. }), "{open}");
        assert!(is_refused(&nested(most + 1)), "{open}");
    }
    let lists = format!("{}{} == []", "[".repeat(240), "]".repeat(240));
    assert!(
        matches!(check_as_selector(&lists), CheckOutcome::Accepted { .. }),
        "{:?}",
        check_as_selector(&lists)
    );
}

#[test]
fn many_flat_terms_are_read() {
    for expression in [
        format!("{}true", "true&&".repeat(1700)),
        format!("{}true", "true||".repeat(1700)),
        format!("device.driver in [{}\"\"]", "\"a\",".repeat(2500)),
        format!("{}true", "!".repeat(10_000)),
        format!("{}1 == 1", "-".repeat(10_000)),
        format!("size([{}0]) == 1", "1,".repeat(5000)),
        format!("size({{{}0:0}}) == 1", numbered_entries(1400)),
    ] {
        assert!(
            matches!(check_as_selector(&expression), CheckOutcome::Accepted { .. }),
            "{} {:?}",
            &expression[..40],
            check_as_selector(&expression)
        );
    }
}

#[test]
fn broken_texts_are_refused() {
    for broken in [
        repeat_to_limit("("),
        repeat_to_limit("["),
        repeat_to_limit("{"),
        repeat_to_limit(")"),
        repeat_to_limit("\""),
        repeat_to_limit("'"),
        repeat_to_limit("\\"),
        repeat_to_limit("?"),
        repeat_to_limit(":"),
        repeat_to_limit("a?"),
        repeat_to_limit("."),
        repeat_to_limit(","),
        repeat_to_limit("-"),
        repeat_to_limit("!"),
        repeat_to_limit("a "),
        repeat_to_limit("1 "),
        repeat_to_limit("\"a\" "),
        repeat_to_limit("//"),
        repeat_to_limit("\n"),
        repeat_to_limit("\0"),
        repeat_to_limit("\u{1f600}"),
        repeat_to_limit("&&"),
        repeat_to_limit("||"),
        repeat_to_limit("=="),
        repeat_to_limit("in "),
        repeat_to_limit("a.?"),
        repeat_to_limit("[?"),
        repeat_to_limit("{?"),
        repeat_to_limit("`a`"),
        repeat_to_limit("cel.bind("),
        repeat_to_limit("has("),
        repeat_to_limit("a.all("),
        repeat_to_limit("1.."),
        repeat_to_limit("0x"),
        repeat_to_limit("'''"),
        repeat_to_limit("r'"),
        repeat_to_limit("b\""),
        "\"abc".to_owned(),
        "'\\".to_owned(),
        "\u{feff}true".to_owned(),
        "true\0".to_owned(),
        "\u{a0}".to_owned(),
    ] {
        assert!(
            is_refused(&broken),
            "{:?} {:?}",
            broken.chars().take(8).collect::<String>(),
            check_as_selector(&broken)
        );
    }
}

#[test]
fn longer_texts_are_not_read() {
    assert!(matches!(check_as_selector(&"(".repeat(1 << 20)), CheckOutcome::Unchecked(_)));
    assert!(matches!(check_as_selector(&repeat_to_limit("1+").repeat(100)), CheckOutcome::Unchecked(_)));
}

#[test]
fn types_that_double_are_bounded() {
    let mut expression = String::from("cel.bind(a0, 1, ");
    for level in 1..200 {
        write!(expression, "cel.bind(a{level}, {{a{0}: a{0}}}, ", level - 1).unwrap();
    }
    write!(expression, "a199 == a199{}", ")".repeat(200)).unwrap();
    assert!(expression.len() < 10_240);
    check_as_selector(&expression);
    let nested = format!("optional.of(1){}.hasValue()", ".optMap(x, [x])".repeat(200));
    check_as_selector(&nested);
}

#[test]
fn every_prefix_of_a_selector_is_answered() {
    let selector = r#"cel.bind(d, device.attributes["a.example.com"], d.exists(k, k.startsWith("x") && d[k] in ["a", 'b']) || has(d.y) ? d[?"z"].orValue(b"\x00\u{e9}".size() > 1u) : {"a": [1.5e3, -2.0]}.a[0] < 3)"#;
    for (end, _) in selector.char_indices() {
        check_as_selector(&selector[..end]);
    }
    for (start, _) in selector.char_indices() {
        check_as_selector(&selector[start..]);
    }
}

#[test]
fn what_is_read_in_place_needs_half_of_a_small_stack() {
    let nest = |open: &str, inner: &str, close: &str, depth: usize| {
        format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
    };
    let edge = [
        nest("(", "true", ")", 46),
        nest("[", "1", "]", 46),
        nest("{1:", "1", "}", 46),
        nest("size([", "1", "])", 23),
        nest("!(1 == 1 && ", "true", ")", 23),
        nest("[1].all(x, ", "true", ")", 22),
        nest("cel.bind(x, 1, ", "true", ")", 22),
        nest("[1].map(x, [2].filter(y, true) == ", "[2]", ")", 15),
        nest("true ? true : (", "true", ")", 15),
        format!("{}1 == 1", "1+".repeat(45)),
        format!("device.attributes['d']{}", ".x".repeat(40)),
        format!("optional.of(1){}.hasValue()", ".optMap(x, x)".repeat(40)),
    ];
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(1 << 20);
        small
            .spawn_scoped(scope, || {
                for expression in &edge {
                    assert_eq!(find_parse_stack_needs(expression), ParseStackNeeds::Flat, "{expression}");
                    check_as_selector(expression);
                }
            })
            .unwrap();
    });
}

/// The nesting of brackets does not limit the recursion of a parser that continues after errors.
#[test]
fn what_is_broken_needs_no_stack_of_the_caller() {
    let broken = [
        "(]".repeat(240),
        "[)".repeat(240),
        "a(]".repeat(240),
        "{1: ]".repeat(240),
        "true ? true + ? true : ".repeat(120),
        format!("'\\q{}'", "(".repeat(245)),
        format!("'\\q{}'", "a[".repeat(245)),
        format!("\"\"\"\\q{}", "[".repeat(245)),
        format!("\"a\rb{}\"", "{1:".repeat(245)),
        format!("`{}`", "(".repeat(245)),
    ];
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(1 << 20);
        small
            .spawn_scoped(scope, || {
                for expression in &broken {
                    assert!(is_refused(expression), "{expression}");
                    // What is read on the caller's stack, and what is just too long for it.
                    for length in 90..100 {
                        let short = expression.get(..length).unwrap_or(expression);
                        assert!(is_refused(short), "{short}");
                    }
                }
            })
            .unwrap();
    });
}

const TOKENS: &[&str] = &[
    "device",
    ".driver",
    ".attributes",
    "['d']",
    "[?'d']",
    ".x",
    ".?x",
    "x",
    "1",
    "1u",
    "1.5",
    "'a'",
    "b'a'",
    "true",
    "null",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "?",
    "+",
    "-",
    "*",
    "/",
    "%",
    "!",
    "==",
    "!=",
    "<",
    ">=",
    "&&",
    "||",
    " in ",
    ".all(x, ",
    ".map(x, ",
    ".filter(x, ",
    ".exists(i, x, ",
    ".optMap(x, ",
    "cel.bind(x, ",
    "has(",
    "size(",
    "dyn(",
    "type(",
    "duration('1s')",
    "quantity('1')",
    "semver('1.0.0')",
    ".compareTo(",
    ".orValue(",
    ".matches('a')",
    ".format([",
    ".sortBy(x, ",
    ".transformMap(i, x, ",
    "\n",
    "//",
    "\"",
    "\u{e9}",
    "\0",
];

proptest::proptest! {
    #[test]
    fn any_sequence_of_tokens_is_answered(picks in proptest::collection::vec(0..TOKENS.len(), 0..40)) {
        let expression: String = picks.into_iter().map(|pick| TOKENS[pick]).collect();
        for env in [V1_33, V1_34, V1_35, V1_36, V1_37] {
            for target in [ExpressionPurpose::Selector, ExpressionPurpose::DerivedAttribute] {
                check(&expression, target, &env);
            }
        }
    }

    #[test]
    fn any_text_is_answered(expression in "\\PC{0,200}") {
        check_as_selector(&expression);
    }
}
