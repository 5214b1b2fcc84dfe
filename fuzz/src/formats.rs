//! Quantities, times and names: what is read and written again has the same value, and nothing panics.

use tollgate_formats::names::{self, KeyWord, Unit};
use tollgate_formats::quantity::Quantity;
use tollgate_formats::{gofmt, gotime, netaddr, sanitize};

/// The input is the text to read.
pub(crate) fn run(data: &[u8]) {
    _ = gofmt::quote_bytes(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(quantity) = Quantity::parse(text) {
        let written = quantity.text().into_owned();
        let again = Quantity::parse(&written)
            .unwrap_or_else(|error| panic!("{text} is written as {written}: {error:?}"));
        assert_eq!(quantity.cmp(&again), std::cmp::Ordering::Equal, "{text} is written as {written}");
        assert_eq!(again.text(), written, "{text} is written as two texts");
        let exact = quantity.exact_text();
        let exact =
            Quantity::parse(&exact).unwrap_or_else(|error| panic!("{text} is exactly {exact}: {error:?}"));
        assert_eq!(quantity.cmp(&exact), std::cmp::Ordering::Equal, "{text}");
        _ = (quantity.value(), quantity.milli_value(), quantity.nano_value(), quantity.sign());
        if let Some(sum) = quantity.add(&quantity.negated()) {
            assert!(sum.is_zero(), "{text} less itself is {}", sum.text());
        }
    }
    // A year with more or fewer than four digits cannot be read again.
    if let Some(written) = gotime::parse(text).map(gotime::rfc3339).ok().filter(|written| written.len() == 20)
    {
        let again =
            gotime::parse(&written).unwrap_or_else(|error| panic!("{text} is written as {written}: {error}"));
        assert_eq!(gotime::rfc3339(again), written, "{text}");
    }
    let mut problems = 0;
    for unit in [Unit::Bytes, Unit::Characters] {
        names::label_key(text, unit, KeyWord::LabelKey, &mut |_| problems += 1);
        names::label_value(text, unit, &mut |_| problems += 1);
        names::dns_label(text, unit, &mut |_| problems += 1);
        names::dns_subdomain(text, unit, &mut |_| problems += 1);
        names::dns_subdomain_caseless(text, unit, &mut |_| problems += 1);
    }
    names::path_segment(text, &mut |_| problems += 1);
    names::extended_resource_name(text, &mut |_| problems += 1);
    _ = (names::is_label_key(text), names::is_subdomain(text), names::is_dns_label(text), names::lower(text));
    _ = netaddr::canonical_cidr(text);
    let shown = sanitize::text(text);
    assert!(!shown.chars().any(sanitize::is_unsafe) || shown.contains(['\n', '\t']), "{shown:?}");
    let mut json = String::new();
    gofmt::json_string(&mut json, text);
    let read = tollgate_document::doc::parse(&json).expect("JSON that was written here");
    assert_eq!(read.root().text(), text, "as JSON: {json}");
    _ = gofmt::json_number(text);
}
