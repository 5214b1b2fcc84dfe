//! Tables of values and the texts they bring, in order.

use super::*;

fn texts_of(check: impl FnOnce(&mut dyn FnMut(Problem))) -> Vec<String> {
    let mut found = Vec::new();
    check(&mut |problem| {
        // No check of this module may pay for its text with an allocation.
        assert!(matches!(problem, Cow::Borrowed(_)), "{problem}");
        found.push(problem.into_owned());
    });
    found
}

#[test]
fn label_keys() {
    let long_name = "a".repeat(64);
    let bad_long = format!("{}-", "a".repeat(63));
    let long_prefix = format!("{}/n", "a".repeat(254));
    let name_shape = texts::INVALID_NAME_PART;
    for (value, expected) in [
        ("a", vec![]),
        ("A_b.c-9", vec![]),
        ("example.com/Name", vec![]),
        ("", vec!["name part must be non-empty", name_shape]),
        ("a/", vec!["name part must be non-empty", name_shape]),
        ("/a", vec!["prefix part must be non-empty"]),
        ("/", vec!["prefix part must be non-empty", "name part must be non-empty", name_shape]),
        ("A_/a", vec![texts::INVALID_PREFIX_PART]),
        ("-", vec![name_shape]),
        ("a\n", vec![name_shape]),
        ("é", vec![name_shape]),
        (long_name.as_str(), vec!["name part must be no more than 63 bytes"]),
        (bad_long.as_str(), vec!["name part must be no more than 63 bytes", name_shape]),
        (long_prefix.as_str(), vec!["prefix part must be no more than 253 bytes"]),
        ("a/b/c", vec![texts::INVALID_LABEL_KEY]),
        ("//", vec![texts::INVALID_LABEL_KEY]),
    ] {
        let found =
            texts_of(|report| check_label_key(value, LengthUnitWord::Bytes, KeyErrorWord::LabelKey, report));
        assert_eq!(found, expected, "{value}");
    }
    let old = |value: &str| {
        texts_of(|report| {
            check_label_key(value, LengthUnitWord::Characters, KeyErrorWord::QualifiedName, report)
        })
        .join("|")
    };
    assert_eq!(old(&long_name), "name part must be no more than 63 characters");
    assert_eq!(old(&long_prefix), "prefix part must be no more than 253 characters");
    assert_eq!(
        old("a/b/c"),
        "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. \
         'example.com/MyName')"
    );
}

#[test]
fn label_values() {
    let long = "a".repeat(64);
    let long_bad = "-".repeat(64);
    for (value, expected) in [
        ("", vec![]),
        ("a", vec![]),
        ("A_b.c-9", vec![]),
        ("a ", vec![INVALID_LABEL_VALUE]),
        ("٣", vec![INVALID_LABEL_VALUE]),
        (long.as_str(), vec!["must be no more than 63 characters"]),
        (long_bad.as_str(), vec!["must be no more than 63 characters", INVALID_LABEL_VALUE]),
    ] {
        assert_eq!(
            texts_of(|report| check_label_value(value, LengthUnitWord::Characters, report)),
            expected,
            "{value}"
        );
    }
    assert_eq!(
        texts_of(|report| check_label_value(&long, LengthUnitWord::Bytes, report)),
        ["must be no more than 63 bytes"]
    );
}

#[test]
fn dns_names() {
    let long = "a".repeat(254);
    let dotted = format!("{}.a", "a".repeat(63));
    for (value, label, subdomain) in [
        ("a", vec![], vec![]),
        ("1-a", vec![], vec![]),
        ("a.b", vec![NO_DOTS], vec![]),
        ("", vec![INVALID_LABEL1123], vec![INVALID_SUBDOMAIN]),
        ("A", vec![INVALID_LABEL1123], vec![INVALID_SUBDOMAIN]),
        ("-a", vec![INVALID_LABEL1123], vec![INVALID_SUBDOMAIN]),
        ("a-", vec![INVALID_LABEL1123], vec![INVALID_SUBDOMAIN]),
        ("a..b", vec![INVALID_LABEL1123], vec![INVALID_SUBDOMAIN]),
        ("a.", vec![INVALID_LABEL1123], vec![INVALID_SUBDOMAIN]),
        ("a.-b", vec![INVALID_LABEL1123], vec![INVALID_SUBDOMAIN]),
        ("a\n", vec![INVALID_LABEL1123], vec![INVALID_SUBDOMAIN]),
        (dotted.as_str(), vec!["must be no more than 63 bytes", NO_DOTS], vec![]),
        (long.as_str(), vec!["must be no more than 63 bytes"], vec!["must be no more than 253 bytes"]),
    ] {
        assert_eq!(
            texts_of(|report| check_dns_label(value, LengthUnitWord::Bytes, report)),
            label,
            "{value}"
        );
        assert_eq!(
            texts_of(|report| check_dns_subdomain(value, LengthUnitWord::Bytes, report)),
            subdomain,
            "{value}"
        );
    }
    assert_eq!(
        texts_of(|report| check_dns_subdomain(&long, LengthUnitWord::Characters, report)),
        ["must be no more than 253 characters"]
    );
}

#[test]
fn drivers_of_any_case() {
    // lowered, then checked; and checked without regard to case (1.37)
    for (value, lowered, caseless) in [
        ("A.Example", true, true),
        ("\u{130}.example", true, false),
        ("\u{212a}.example", true, true),
        ("\u{17f}.example", false, true),
        ("\u{212b}.example", false, false),
        ("A_", false, false),
        ("", false, false),
        ("a-\u{212a}", true, true),
        ("-a", false, false),
    ] {
        let low = texts_of(|report| check_dns_subdomain(&go_to_lower(value), LengthUnitWord::Bytes, report));
        assert_eq!(low.is_empty(), lowered, "{value}");
        let any = texts_of(|report| check_subdomain_caseless(value, LengthUnitWord::Bytes, report));
        assert_eq!(any, if caseless { vec![] } else { vec![INVALID_SUBDOMAIN_CASELESS] }, "{value}");
    }
}

#[test]
fn lower_case() {
    for (value, expected) in
        [("", ""), ("abc", "abc"), ("ABC", "abc"), ("ÀΣ", "àσ"), ("\u{130}", "i"), ("ß", "ß"), ("ǅ", "ǆ")]
    {
        let lowered = go_to_lower(value);
        assert_eq!(lowered, expected);
        assert_eq!(matches!(lowered, Cow::Borrowed(_)), value == expected, "{value}");
    }
}

#[test]
fn identifiers_and_reasons() {
    for (value, identifier, reason) in [
        ("a", true, true),
        ("_", true, false),
        ("a_9", true, true),
        ("a_", true, true),
        ("9x", false, false),
        ("", false, false),
        ("a b", false, false),
        ("A,B:C", false, true),
        ("A,", false, false),
        ("é", false, false),
    ] {
        assert_eq!(is_c_identifier(value), identifier, "{value}");
        assert_eq!(is_condition_reason(value), reason, "{value}");
    }
}

#[test]
fn path_segments() {
    for (value, name, prefix) in [
        ("a", vec![], vec![]),
        (".", vec!["may not be '.'"], vec![]),
        ("..", vec!["may not be '..'"], vec![]),
        (
            "%/",
            vec!["may not contain '/'", "may not contain '%'"],
            vec!["may not contain '/'", "may not contain '%'"],
        ),
    ] {
        assert_eq!(texts_of(|report| check_path_segment(value, report)), name, "{value}");
        assert_eq!(texts_of(|report| check_path_segment_prefix(value, report)), prefix, "{value}");
    }
}

#[test]
fn extended_resources() {
    let longest = format!("{}/x", "a".repeat(244));
    let too_long = format!("{}/x", "a".repeat(245));
    for (value, single, listed) in [
        ("example.com/gpu", true, vec![]),
        ("a/B_c", true, vec![]),
        (longest.as_str(), true, vec![]),
        (too_long.as_str(), false, vec!["prefix part must be no more than 253 bytes"]),
        ("", false, vec![texts::MISSING_DOMAIN_PREFIX, texts::INVALID_NAME_PART]),
        ("gpu", false, vec![texts::MISSING_DOMAIN_PREFIX]),
        ("/c", false, vec![texts::INVALID_PREFIX_PART]),
        ("Example.com/gpu", false, vec![texts::INVALID_PREFIX_PART]),
        ("kubernetes.io/gpu", false, vec![texts::NO_KUBERNETES]),
        ("a.kubernetes.io/gpu", false, vec![texts::NO_KUBERNETES]),
        ("notkubernetes.io/gpu", false, vec![texts::NO_KUBERNETES]),
        ("requests.example.com/x", false, vec![texts::NO_REQUESTS]),
        ("a/b/c", false, vec![texts::INVALID_LABEL_KEY]),
        ("a/", false, vec!["name part must be non-empty", texts::INVALID_NAME_PART]),
    ] {
        assert_eq!(is_extended_resource_name(value), single, "{value}");
        assert_eq!(texts_of(|report| check_extended_resource(value, report)), listed, "{value}");
    }
}

/// Each byte at each place of a text of each length up to several blocks, beside a loop that looks at one byte at a time.
#[test]
fn bytes_are_tested_wherever_they_are() {
    let lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let any_case = |byte: u8| byte.is_ascii_alphanumeric();
    for length in 1..=40 {
        for place in 0..length {
            let is_edge = place == 0 || place == length - 1;
            for byte in 0..0x80_u8 {
                let mut text = vec![b'a'; length];
                text[place] = byte;
                let text = String::from_utf8(text).unwrap();
                let dash = !is_edge && byte == b'-';
                let name = any_case(byte) || dash || !is_edge && matches!(byte, b'.' | b'_');
                assert_eq!(shapes::has_qualified_name_part_shape(&text), name, "{text:?}");
                assert_eq!(shapes::has_dns_label_shape(&text), lower(byte) || dash, "{text:?}");
                assert_eq!(
                    has_subdomain_shape(&text),
                    lower(byte) || dash || !is_edge && byte == b'.',
                    "{text:?}"
                );
                let identifier = any_case(byte) && !(place == 0 && byte.is_ascii_digit()) || byte == b'_';
                assert_eq!(is_c_identifier(&text), identifier, "{text:?}");
            }
            let mut text = "a".repeat(length);
            text.replace_range(place..=place, "é");
            assert!(
                !shapes::has_qualified_name_part_shape(&text) && !shapes::has_dns_label_shape(&text),
                "{text:?}"
            );
            assert!(!has_subdomain_shape(&text) && !is_c_identifier(&text), "{text:?}");
        }
    }
}

/// Whatever domain came before, a key is judged as if it were the first.
#[test]
fn the_domain_before_does_not_matter() {
    let keys = [
        "a.b/c", "a.b/d", "a.b/", "a.b/c/d", "a.b/-", "a.b", "a.bc/d", "a/c", "/c", "", "/", "a.b.c/d",
        "A.b/c", "A.b/d", "é/c", "a..b/c",
    ];
    for first in keys {
        for second in keys {
            let mut domains = LastValidDomainCache::default();
            assert_eq!(domains.is_label_key(first), is_label_key(first), "{first}");
            assert_eq!(domains.is_label_key(second), is_label_key(second), "{second} after {first}");
            let (domain, name) = split_prefix(second);
            let after = domains.strip_cached_domain(second);
            assert!(after.is_none_or(|rest| rest == name || rest.contains('/')), "{second} after {first}");
            let domain = domain.unwrap_or_default();
            assert_eq!(
                domains.has_subdomain_shape(domain),
                has_subdomain_shape(domain),
                "{domain} after {first}"
            );
        }
    }
}
