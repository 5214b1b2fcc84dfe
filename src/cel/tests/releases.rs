//! Where releases differ, and which result types are right for what.

use super::{ALL, answer};
use crate::cel::{Outcome, Target};

/// An expression and whether 1.33, 1.34, 1.35, 1.36 and 1.37 accept it.
const BY_RELEASE: &[(&str, [bool; 5])] = &[
    ("device.attributes['d'].x.includes('a')", [false, false, false, true, true]),
    ("['a'].includes('a')", [false, false, false, true, true]),
    ("device.attributes['d'].x.exists(y, y == 'a')", [false, false, false, true, true]),
    ("device.attributes['d'].x.exists(y, y.matches('a'))", [false, false, false, true, true]),
    ("device.attributes['d'].x.all(i, y, i < 3 && y == 'a')", [false, false, false, true, true]),
    ("dyn(1)", [false, false, false, true, true]),
    ("device.allowMultipleAllocations", [false, true, true, true, true]),
    ("device.allowMultipleAllocations == true", [false, true, true, true, true]),
    ("semver('v1.0', true).major() == 1", [false, true, true, true, true]),
    ("isSemver('v1.0', true)", [false, true, true, true, true]),
    ("[3, 1].sort() == [1, 3]", [false, false, true, true, true]),
    ("lists.range(3).size() == 3", [false, false, true, true, true]),
    ("[1, 2].slice(0, 1) == [1]", [false, false, true, true, true]),
    ("[[1], [2]].flatten() == [1, 2]", [false, false, true, true, true]),
    ("[1, 1].distinct().reverse() == [1]", [false, false, true, true, true]),
    ("['bb', 'a'].sortBy(s, s.size()) == ['a', 'bb']", [false, false, true, true, true]),
    ("[1].sortBy(1, 1) == [1]", [false; 5]),
    ("[[1]].sort() == [[1]]", [false; 5]),
    ("lists.range('a') == []", [false; 5]),
    ("semver('v1.0', 'x').major() == 1", [false; 5]),
    ("device.attributes['d'].x", [true; 5]),
];

#[test]
fn releases_differ_where_they_should() {
    for (expression, expected) in BY_RELEASE {
        for (env, expected) in ALL.into_iter().zip(expected) {
            let outcome = answer(expression, Target::Selector, env);
            assert_eq!(
                matches!(outcome, Outcome::Accepted { .. }),
                *expected,
                "{expression}\n{env:?}\n{outcome:?}"
            );
        }
    }
}

/// An expression that compiles, and its type as 1.35 and 1.36 print it; `None` if it is right.
const SELECTOR_TYPES: &[(&str, Option<&str>, Option<&str>)] = &[
    ("1", Some("int"), Some("int")),
    ("1u", Some("uint"), Some("uint")),
    ("1.5", Some("double"), Some("double")),
    ("'true'", Some("string"), Some("string")),
    ("b'x'", Some("bytes"), Some("bytes")),
    ("null", Some("null_type"), Some("null_type")),
    ("[]", Some("list(dyn)"), Some("list(dyn)")),
    ("[true]", Some("list(bool)"), Some("list(bool)")),
    ("{'a': 1}", Some("map(string, int)"), Some("map(string, int)")),
    ("{}", Some("map(dyn, dyn)"), Some("map(dyn, dyn)")),
    ("int", Some("type(int)"), Some("type(int)")),
    ("duration('1s')", Some("google.protobuf.Duration"), Some("google.protobuf.Duration")),
    ("timestamp(0)", Some("google.protobuf.Timestamp"), Some("google.protobuf.Timestamp")),
    ("device", Some("kubernetes.DRADevice"), Some("kubernetes.DRADevice")),
    ("device.driver", Some("string"), Some("string")),
    ("device.driver.size()", Some("int"), Some("int")),
    ("quantity('1')", Some("kubernetes.Quantity"), Some("kubernetes.Quantity")),
    ("device.capacity['d'].m", Some("kubernetes.Quantity"), Some("kubernetes.Quantity")),
    ("semver('1.0.0')", Some("kubernetes.Semver"), Some("kubernetes.Semver")),
    ("optional.of(true)", Some("optional_type(bool)"), Some("optional_type(bool)")),
    (
        "device.attributes",
        Some("map(string, map(string, google.protobuf.Any))"),
        Some("map(string, map(string, dyn))"),
    ),
    ("device.attributes['d'].x", None, None),
    ("device.attributes['d'].x.y", Some("dyn"), None),
    ("dyn(true)", Some("dyn"), None),
    ("[][0]", Some("dyn"), None),
    ("true", None, None),
];

#[test]
fn a_selector_is_a_bool_or_unknown() {
    for (expression, before_lists, with_lists) in SELECTOR_TYPES {
        for (env, expected) in [(crate::cel::V1_35, before_lists), (crate::cel::V1_36, with_lists)] {
            let outcome = answer(expression, Target::Selector, env);
            match expected {
                Some(name) => {
                    let detail = format!("must evaluate to bool or the unknown type, not {name}");
                    assert_eq!(outcome, Outcome::WrongType(detail), "{expression}");
                }
                None => assert!(matches!(outcome, Outcome::Accepted { .. }), "{expression} {outcome:?}"),
            }
        }
    }
}

#[test]
fn a_derived_attribute_is_a_scalar_or_a_list_of_them() {
    for expression in [
        "true",
        "1",
        "'a'",
        "semver('1.0.0')",
        "device.attributes['d'].x",
        "['a', 'b']",
        "[1]",
        "[semver('1.0.0')]",
        "[]",
        "device.driver + '-' + string(device.attributes['d'].x)",
        "device.attributes['d'].x.map(y, string(y))",
    ] {
        let outcome = answer(expression, Target::DerivedAttribute, crate::cel::V1_37);
        assert!(
            matches!(outcome, Outcome::Accepted { .. } | Outcome::TooComplex),
            "{expression} {outcome:?}"
        );
    }
    for (expression, name) in [
        ("{'a': 1}", "map(string, int)"),
        ("1.5", "double"),
        ("1u", "uint"),
        ("b'a'", "bytes"),
        ("null", "null_type"),
        ("[[1]]", "list(list(int))"),
        ("[1.5]", "list(double)"),
        ("quantity('1')", "kubernetes.Quantity"),
        ("device", "kubernetes.DRADevice"),
        ("optional.of(1)", "optional_type(int)"),
    ] {
        let detail = format!(
            "must evaluate to a primitive scalar (string, integer, boolean, semver) or a list of these scalars, not {name}"
        );
        let outcome = answer(expression, Target::DerivedAttribute, crate::cel::V1_37);
        assert_eq!(outcome, Outcome::WrongType(detail), "{expression}");
    }
}
