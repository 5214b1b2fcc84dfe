//! Tables of quantities and what upstream makes of them.

use super::*;

fn quantity(text: &str) -> Quantity<'_> {
    Quantity::parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

#[test]
fn texts() {
    for kept in [
        "0",
        "1",
        "+1",
        "007",
        "-007",
        "1.500",
        "5.",
        "1.G",
        "1e3",
        "1E3",
        "1e+3",
        "1e0",
        "1200",
        "100k",
        "1Ki",
        "1025Ki",
        "02Ki",
        "500m",
        "1n",
        "100E",
        "10E",
        "-1Gi",
        "1e30",
        "99999Gi",
        "123456789012345678",
    ] {
        assert_eq!(quantity(kept).text(), kept);
        assert!(matches!(quantity(kept).text(), Cow::Borrowed(_)));
        assert!(matches!(quantity(kept).amount, Amount::Int { .. }), "{kept}");
    }
    for (text, canonical) in [
        (" 148\u{a0}", "148"),
        ("00", "0"),
        ("0.0", "0"),
        ("-0", "0"),
        ("+0", "0"),
        ("0Gi", "0"),
        ("0e5", "0"),
        (".", "0"),
        ("+", "0"),
        ("-", "0"),
        ("+.", "0"),
        ("0.00000000000000000000", "0"),
        ("0e2000000000", "0"),
        (".5", "500m"),
        ("1.5", "1500m"),
        ("3.14", "3140m"),
        ("148.0", "148"),
        ("1000m", "1"),
        ("12000", "12k"),
        ("+2000", "2k"),
        ("1000.000", "1k"),
        ("1000k", "1M"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("40Gi", "40Gi"),
        ("8Ki", "8Ki"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("1.7Ki", "1740800m"),
        ("0.0001Ki", "102400u"),
        ("1E2", "100"),
        ("123e1", "1230"),
        ("1e19", "10e18"),
        ("1000e3", "1e6"),
        ("9223372036854775808", "9223372036854775808"),
        ("18446744073709551616", "18446744073709551616"),
        ("1234567890123456789000", "1234567890123456789k"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("1.23456789012", "1234567891n"),
        ("-1.23456789012", "-1234567891n"),
        ("0.9999999999", "1"),
        ("1e-30", "1e-9"),
        ("-1e-2000000000", "-1e-9"),
        ("8Ei", "9223372036854775807"),
        ("100Ei", "9223372036854775807"),
        ("-100Ei", "-9223372036854775807"),
        ("7Ei", "7Ei"),
        ("100Ti", "100Ti"),
        ("100000Gi", "100000Gi"),
        ("102400Gi", "100Ti"),
        ("1e99999999999", "10e1215752190"),
        ("1000E", "1"),
    ] {
        assert_eq!(quantity(text).text(), canonical, "{text}");
    }
}

#[test]
fn no_quantities() {
    for (text, error) in [
        ("", ParseError::FormatWrong),
        (" ", ParseError::FormatWrong),
        ("abc", ParseError::FormatWrong),
        ("1_0", ParseError::FormatWrong),
        ("1 Gi", ParseError::FormatWrong),
        ("0x10", ParseError::FormatWrong),
        ("1..2", ParseError::FormatWrong),
        ("1e5k", ParseError::FormatWrong),
        ("1kI", ParseError::FormatWrong),
        ("1e3.5", ParseError::FormatWrong),
        ("148GiB", ParseError::FormatWrong),
        ("148gi", ParseError::FormatWrong),
        ("\\u0031", ParseError::FormatWrong),
        ("1é", ParseError::FormatWrong),
        ("٣", ParseError::FormatWrong),
        ("true", ParseError::FormatWrong),
        ("1K", ParseError::Suffix),
        ("1ki", ParseError::Suffix),
        ("1mm", ParseError::Suffix),
        ("1e", ParseError::Suffix),
        ("1Mi5", ParseError::Suffix),
        ("--1", ParseError::Suffix),
        ("1e+", ParseError::Suffix),
        ("1e9223372036854775808", ParseError::Suffix),
        (".e-10", ParseError::Numeric),
        ("-e-10", ParseError::Numeric),
    ] {
        assert_eq!(Quantity::parse(text).unwrap_err(), error, "{text}");
    }
}

#[test]
fn values() {
    for (text, value, milli) in [
        ("0", 0, 0),
        ("1", 1, 1000),
        ("500m", 1, 500),
        ("-500m", -1, -500),
        ("-1.5", -2, -1500),
        ("900m", 1, 900),
        ("1n", 1, 1),
        ("-1n", -1, -1),
        ("40Gi", 42_949_672_960, 42_949_672_960_000),
        ("1.5Gi", 1_610_612_736, 1_610_612_736_000),
        // Decimals: the remainder adds one, whatever the sign.
        ("0.1Ki", 103, 102_400),
        ("-0.1Ki", -101, -102_400),
        // Too large.
        ("9223372036854775807", i64::MAX, -1000),
        ("9223372036854775808", i64::MIN, 0),
        ("18446744073709551616", 0, 0),
        ("18446744073709551617", 1, 1000),
        ("-9.5Gi", 8_246_196_746, 8_246_196_745_710),
        ("100E", 0, 0),
        ("10E", 0, 0),
        ("1e30", 0, 0),
        ("1e2000000000", 0, 0),
        ("10000000000G", 10_000_000_000_i64.wrapping_mul(1_000_000_000), 0),
        ("8Ei", i64::MAX, -1000),
        ("1e-2000000000", 1, 1),
    ] {
        assert_eq!(quantity(text).value(), value, "{text}");
        assert_eq!(quantity(text).milli_value(), milli, "{text} milli");
    }
}

#[test]
fn billionths() {
    for (text, nano) in [
        ("0", 0),
        ("1n", 1),
        ("-500m", -500_000_000),
        ("1.5", 1_500_000_000),
        ("1.5Gi", 1_610_612_736_000_000_000),
        ("10E", 10_000_000_000_000_000_000_000_000_000),
        ("1e30", i128::MAX),
        ("-1e2000000000", -i128::MAX),
    ] {
        assert_eq!(quantity(text).nano_value(), nano, "{text}");
    }
}

#[test]
fn same_format() {
    for (like, value, scale, text) in [
        ("1Ki", 4_000_000_000, 0, "3906250Ki"),
        ("1Ki", 1500, -3, "1500m"),
        ("1G", 4_000_000_000, 0, "4G"),
        ("500m", 1500, -3, "1500m"),
        ("1", 0, 0, "0"),
    ] {
        assert_eq!(quantity(like).in_same_format(value, scale).text(), text);
    }
}

#[test]
fn order() {
    let ascending = [
        "-1e2000000000",
        "-100Ei",
        "-1Ki",
        "-1",
        "-500m",
        "-1n",
        "0",
        "1n",
        "500m",
        "1",
        "1.000000001",
        "1k",
        "1Ki",
        "1.5Gi",
        "9223372036854775806",
        "8Ei",
        "9223372036854775808",
        "10E",
        "100E",
        "1e30",
        "1e2000000000",
    ];
    for (a_idx, a) in ascending.iter().enumerate() {
        for (b_idx, b) in ascending.iter().enumerate() {
            assert_eq!(quantity(a).cmp(&quantity(b)), a_idx.cmp(&b_idx), "{a} {b}");
        }
    }
    for (a, b) in [
        ("1", "1000m"),
        ("1Ki", "1024"),
        ("0.5Ki", "512"),
        ("0", "-0Gi"),
        ("1e30", "1000000000000E"),
        ("8Ei", "100Ei"),
    ] {
        assert_eq!(quantity(a), quantity(b));
    }
}

#[test]
fn sums() {
    for (a, b, sum) in [
        ("1", "10", "11"),
        ("1Gi", "500M", "1573741824"),
        ("1M", "8Gi", "8590934592"),
        ("1e3", "1Ki", "2024"),
        ("0", "3e3", "3e3"),
        ("0Gi", "1500", "1500"),
        ("1Gi", "1Gi", "2Gi"),
        ("1Gi", "0", "1Gi"),
        ("007", "0", "7"),
        ("500m", "500m", "1"),
        ("1", "1n", "1000000001n"),
        ("1Ki", "500m", "1024500m"),
        ("-1", "1", "0"),
        ("-1500m", "1", "-500m"),
        ("1", "-1500m", "-500m"),
        ("999", "1", "1k"),
        ("100E", "100E", "200E"),
        ("8Ei", "1", "8Ei"),
        ("1Ki", "18446744073709550592", "16Ei"),
    ] {
        let sum_of = quantity(a).add_as_decimal(&quantity(b)).unwrap();
        assert_eq!(sum_of.text(), sum, "{a} + {b}");
        // Parsing caps binary quantities, adding does not.
        assert!(sum.ends_with("Ei") || sum_of == quantity(sum), "{a} + {b}");
    }
    assert!(quantity("1e2000000000").add_as_decimal(&quantity("1")).is_none());
    assert_eq!(quantity("1e2000000000").add_as_decimal(&quantity("0")).unwrap().text(), "100e1999999998");
}

#[test]
fn exact_texts() {
    for (text, exact) in [
        ("0", "0"),
        ("0.0", "0.0"),
        ("0.00000000000000000000", "0.00000000000000000000"),
        ("1", "1"),
        ("1.0", "1.0"),
        ("1000m", "1.000"),
        ("500m", "0.500"),
        ("-500m", "-0.500"),
        ("0.5", "0.5"),
        ("1n", "0.000000001"),
        ("1k", "1000"),
        ("1e3", "1000"),
        ("-1Ki", "-1024"),
        ("1.5Gi", "1610612736.000000000"),
        ("9223372036854775808", "9223372036854775808.000000000"),
        ("8Ei", "9223372036854775807"),
        ("1e2000000000", "1e2000000000"),
    ] {
        assert_eq!(quantity(text).plain_decimal_text(), exact, "{text}");
    }
}

#[test]
fn thousandths() {
    for (text, fractional, fits) in [
        ("0", false, true),
        ("1.0", false, true),
        ("1000m", false, true),
        ("1.5", true, true),
        ("500m", true, true),
        ("1n", true, false),
        ("100u", true, false),
        ("2500u", true, false),
        ("0.1Ki", true, true),
        ("10E", false, false),
        ("9223372036854775.807", true, true),
        ("9223372036854775.808", true, false),
        ("-9223372036854775.808", true, true),
        ("1e2000000000", false, false),
    ] {
        assert_eq!(quantity(text).is_fractional(), fractional, "{text}");
        assert_eq!(quantity(text).fits_milli(), fits, "{text}");
    }
    for (text, exceeds) in
        [("9223372036854775807", false), ("9223372036854775808", true), ("10E", true), ("-10E", false)]
    {
        assert_eq!(quantity(text).exceeds_i64_max(), exceeds, "{text}");
    }
}

proptest::proptest! {
    /// Any text is either parsed or rejected in bounded time and memory, and parsed quantities can be used.
    #[test]
    fn nothing_panics(a in "[-+]?[0-9.]{0,30}([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]{1,12})?", b in "[-+.0-9eEKi]{0,12}") {
        let (Ok(a), Ok(b)) = (Quantity::parse(&a), Quantity::parse(&b)) else { return Ok(()) };
        for one in [&a, &b] {
            assert!(one.text().len() < 64 && one.plain_decimal_text().len() < 1200);
            let _ = (one.value(), one.milli_value(), one.is_fractional(), one.fits_milli(), one.exceeds_i64_max());
        }
        assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        if let Some(sum) = a.add_as_decimal(&b) {
            assert_eq!(sum.cmp(&a), b.cmp(&Quantity::ZERO));
            assert!(sum.text().len() < 1200);
        }
    }
}
