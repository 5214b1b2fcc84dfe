//! Quantities, times, names and versions: what is read and written again has the same value, versions have an order,
//! and nothing panics.

use std::sync::LazyLock;

use tollgate_cel::evaluate::{AttributeValue, BEHAVIOUR_V1_37, Device, Program};
use tollgate_formats::names::{self, KeyErrorWord, LengthUnitWord};
use tollgate_formats::quantity::Quantity;
use tollgate_formats::{gofmt, gotime, netaddr, sanitize};

/// The input is the text to read.
pub(crate) fn run(data: &[u8]) {
    _ = gofmt::quote_bytes(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(quantity) = Quantity::parse(text) {
        // Go has no suffix for larger ones, and writes them without their exponent.
        let largest = Quantity::parse("1e21").expect("a quantity");
        let is_small = quantity.cmp(&largest).is_lt() && quantity.cmp(&largest.negated()).is_gt();
        if is_small {
            let written = quantity.text().into_owned();
            let again = Quantity::parse(&written)
                .unwrap_or_else(|error| panic!("{text} is written as {written}: {error:?}"));
            assert_eq!(quantity.cmp(&again), std::cmp::Ordering::Equal, "{text} is written as {written}");
            assert_eq!(again.text(), written, "{text} is written as two texts");
        }
        let exact = quantity.plain_decimal_text();
        let exact =
            Quantity::parse(&exact).unwrap_or_else(|error| panic!("{text} is exactly {exact}: {error:?}"));
        assert_eq!(quantity.cmp(&exact), std::cmp::Ordering::Equal, "{text}");
        _ = (quantity.value(), quantity.milli_value(), quantity.nano_value(), quantity.sign());
        if let Some(sum) = quantity.add_as_decimal(&quantity.negated()) {
            assert!(sum.is_zero(), "{text} less itself is {}", sum.text());
        }
    }
    // A year with more or fewer than four digits cannot be read again.
    if let Some(written) =
        gotime::parse_rfc3339(text).map(gotime::rfc3339).ok().filter(|written| written.len() == 20)
    {
        let again = gotime::parse_rfc3339(&written)
            .unwrap_or_else(|error| panic!("{text} is written as {written}: {error}"));
        assert_eq!(gotime::rfc3339(again), written, "{text}");
    }
    let mut problems = 0;
    for unit in [LengthUnitWord::Bytes, LengthUnitWord::Characters] {
        names::check_label_key(text, unit, KeyErrorWord::LabelKey, &mut |_| problems += 1);
        names::check_label_value(text, unit, &mut |_| problems += 1);
        names::check_dns_label(text, unit, &mut |_| problems += 1);
        names::check_dns_subdomain(text, unit, &mut |_| problems += 1);
        names::check_subdomain_caseless(text, unit, &mut |_| problems += 1);
    }
    names::check_path_segment(text, &mut |_| problems += 1);
    names::check_extended_resource(text, &mut |_| problems += 1);
    _ = (
        names::is_label_key(text),
        names::has_subdomain_shape(text),
        names::is_dns_label(text),
        names::go_to_lower(text),
    );
    _ = netaddr::canonical_cidr_if_different(text);
    let shown = sanitize::sanitize_multiline_text(text);
    assert!(!shown.chars().any(sanitize::is_unsafe) || shown.contains(['\n', '\t']), "{shown:?}");
    let mut json = String::new();
    gofmt::push_json_string(&mut json, text);
    let read = tollgate_document::doc::parse(&json).expect("JSON that was written here");
    assert_eq!(read.root().text(), text, "as JSON: {json}");
    _ = gofmt::normalize_json_number(text);
    versions(text);
}

/// Selectors that are true for two versions in any order.
static ORDER: LazyLock<Program> = LazyLock::new(|| {
    let expression = r#"cel.bind(v, device.attributes["d"],
        (v.one.isLessThan(v.other) ? 1 : 0) + (v.one.isGreaterThan(v.other) ? 1 : 0) + (v.one == v.other ? 1 : 0) == 1
        && v.one.isLessThan(v.other) == v.other.isGreaterThan(v.one)
        && (v.one.compareTo(v.other) < 0) == v.one.isLessThan(v.other)
        && v.one.compareTo(v.other) == -v.other.compareTo(v.one))"#;
    Program::compile(expression, &BEHAVIOUR_V1_37).unwrap_or_else(|error| panic!("{error:?}"))
});

/// A version, or two with a space between them. Validation and selectors accept the same versions, but for numbers that
/// selectors cannot hold, and any two versions have an order.
fn versions(text: &str) {
    let (one, other) = text.split_once(' ').unwrap_or((text, text));
    let device = |one, other| {
        let attributes = [("one", AttributeValue::Version(one)), ("other", AttributeValue::Version(other))];
        Device::new("d", false, attributes, [])
    };
    for version in [one, other] {
        let is_held = names::is_semver(version)
            && version.split(['.', '-', '+']).take(3).all(|number| number.parse::<u64>().is_ok());
        let is_read = device(version, version).is_some();
        assert!(names::is_semver(version) || !is_read, "{version} is read, but not valid");
        assert!(is_read || !is_held || version.contains(['-', '+']), "{version} is valid, but not read");
    }
    if let Some(device) = device(one, other) {
        let outcome = format!("{:?}", ORDER.evaluate(&device));
        assert!(outcome == "Ok(true)" || one.contains('+') || other.contains('+'), "{text}: {outcome}");
    }
}
