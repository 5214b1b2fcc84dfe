//! Reading a quantity: the scanner, the suffixes, and the choice between the two amounts.
//!
//! Follows upstream's `ParseQuantity` branch by branch, because which branch a text takes decides how it prints
//! later. Linear in the text, whatever exponent it names.

use super::decimal::{self, Decimal};
use super::{Amount, MAX_DECIMAL_PLACES, ParseError, Quantity, SuffixFormat};

/// Number of digits up to which Kubernetes stores an amount as an `int64`.
const MAX_INT_DIGITS: usize = 18;
/// The smallest decimal place of a quantity, as a power of ten.
const NANO_EXPONENT: i64 = -9;

/// The pieces of a quantity's text.
struct QuantityParts<'a> {
    negative: bool,
    /// Whole digits without leading zeros; `0` when there are none.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
    /// True if the text contains a digit; `.e-10` does not.
    has_digits: bool,
}

/// Reads a quantity, which has no blanks around it.
pub(super) fn parse(text: &str) -> Result<Quantity<'_>, ParseError> {
    if text == "0" {
        return Ok(Quantity { text: Some(text), ..Quantity::ZERO });
    }
    let parts = split_parts(text)?;
    let (format, exponent) = read_suffix(parts.suffix).ok_or(ParseError::Suffix)?;
    if let Some(quick) = parse_as_scaled_int64(text, &parts, format, exponent) {
        return Ok(quick);
    }
    if !parts.has_digits {
        return Err(ParseError::Numeric);
    }
    Ok(parse_as_rounded_and_capped_decimal(&parts, format, exponent))
}

/// Splits the text of a quantity into its parts; an error if it does not have the form of one.
fn split_parts(text: &str) -> Result<QuantityParts<'_>, ParseError> {
    if text.is_empty() {
        return Err(ParseError::FormatWrong);
    }
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..).unwrap_or_default()),
        Some(b'+') => (false, text.get(1..).unwrap_or_default()),
        _ => (false, text),
    };
    let significant = unsigned.trim_start_matches('0');
    let (whole, rest) = split_leading(significant, |byte| byte.is_ascii_digit());
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => split_leading(rest, |byte| byte.is_ascii_digit()),
        None => ("", rest),
    };
    let suffix = rest;
    let (_, rest) = split_leading(rest, |byte| b"eEinumkKMGTP".contains(&byte));
    let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
    if !rest.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParseError::FormatWrong);
    }
    // Nothing but a sign and zeros reads as `0` upstream, even when there are no zeros.
    let has_digits = significant.is_empty()
        || significant.len() < unsigned.len()
        || !whole.is_empty()
        || !fraction.is_empty();
    Ok(QuantityParts {
        negative,
        whole: if whole.is_empty() { "0" } else { whole },
        fraction,
        suffix,
        has_digits,
    })
}

/// The bytes at the start of a text that `kind` accepts, and what follows them. It must accept ASCII only, so that the
/// cut is between characters.
fn split_leading(text: &str, kind: impl Fn(u8) -> bool) -> (&str, &str) {
    let length = text.bytes().take_while(|&byte| kind(byte)).count();
    text.split_at_checked(length).unwrap_or((text, ""))
}

/// The format of a suffix and its exponent: to base two for `BinarySI`, to base ten for others. `None` if the
/// suffix is unknown.
fn read_suffix(suffix: &str) -> Option<(SuffixFormat, i32)> {
    Some(match suffix {
        "" => (SuffixFormat::DecimalSI, 0),
        "n" => (SuffixFormat::DecimalSI, -9),
        "u" => (SuffixFormat::DecimalSI, -6),
        "m" => (SuffixFormat::DecimalSI, -3),
        "k" => (SuffixFormat::DecimalSI, 3),
        "M" => (SuffixFormat::DecimalSI, 6),
        "G" => (SuffixFormat::DecimalSI, 9),
        "T" => (SuffixFormat::DecimalSI, 12),
        "P" => (SuffixFormat::DecimalSI, 15),
        "E" => (SuffixFormat::DecimalSI, 18),
        "Ki" => (SuffixFormat::BinarySI, 10),
        "Mi" => (SuffixFormat::BinarySI, 20),
        "Gi" => (SuffixFormat::BinarySI, 30),
        "Ti" => (SuffixFormat::BinarySI, 40),
        "Pi" => (SuffixFormat::BinarySI, 50),
        "Ei" => (SuffixFormat::BinarySI, 60),
        _ => {
            let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            #[expect(clippy::cast_possible_truncation, reason = "upstream keeps the low 32 bits")]
            let exponent = exponent as i32;
            (SuffixFormat::DecimalExponent, exponent)
        }
    })
}

/// The quantity with an `int64`, and with its text if that is canonical; `None` if upstream keeps it as a decimal.
fn parse_as_scaled_int64<'a>(
    text: &'a str,
    parts: &QuantityParts<'_>,
    format: SuffixFormat,
    exponent: i32,
) -> Option<Quantity<'a>> {
    let &QuantityParts { negative, whole, fraction, .. } = parts;
    let (factor, scale) = if format == SuffixFormat::BinarySI {
        // 2^10 is taken for three digits, out of fourteen; so from Pi on nothing is quick.
        let digits = usize::try_from(exponent / 10 * 3).ok()?;
        if !fraction.is_empty() || whole.len() + digits > 14 {
            return None;
        }
        (1_i64.checked_shl(u32::try_from(exponent).ok()?)?, 0)
    } else {
        if whole.len() + fraction.len() > MAX_INT_DIGITS {
            return None;
        }
        (1, exponent.wrapping_sub(i32::try_from(fraction.len()).ok()?))
    };
    if i64::from(scale) < NANO_EXPONENT {
        return None;
    }
    let digits = whole.bytes().chain(fraction.bytes());
    let number = digits.clone().fold(0_i64, |number, digit| number * 10 + i64::from(digit - b'0'));
    let value = number.checked_mul(factor)?;
    let canonical = if format == SuffixFormat::BinarySI {
        number & 7 != 0
    } else {
        scale % 3 == 0 && !digits.clone().rev().take(3).eq(*b"000") && !whole.starts_with('0')
    };
    let value = if negative { -value } else { value };
    Some(Quantity { amount: Amount::Int { value, scale }, format, text: canonical.then_some(text) })
}

/// The quantity with a decimal, rounded up to nano; amounts with a binary suffix are capped at the largest `int64`.
fn parse_as_rounded_and_capped_decimal(
    parts: &QuantityParts<'_>,
    mut format: SuffixFormat,
    exponent: i32,
) -> Quantity<'static> {
    let digits = parts.whole.bytes().chain(parts.fraction.bytes());
    let mut digits: Vec<u8> = digits.map(|byte| byte - b'0').skip_while(|&digit| digit == 0).collect();
    let mut place = -i64::try_from(parts.fraction.len()).unwrap_or(i64::MAX);
    if format == SuffixFormat::BinarySI {
        digits = decimal::times_power_of_two(&digits, exponent.unsigned_abs());
    } else {
        place += i64::from(exponent);
    }
    if digits.is_empty() {
        // `0e-2000000000` is two billion places of nothing.
        let places = u32::try_from(-place).map_or(0, |places| places.min(MAX_DECIMAL_PLACES));
        let zero = Decimal { negative: false, digits, exponent: 0 };
        return Quantity { amount: Amount::Decimal { number: zero, places }, format, text: None };
    }
    let mut number = Decimal { negative: false, digits, exponent: place };
    if place < NANO_EXPONENT {
        let (above, _, inexact) = number.view().split_at_place(NANO_EXPONENT);
        let digits = if inexact { decimal::incremented(above) } else { above.to_vec() };
        number = Decimal { negative: false, digits, exponent: NANO_EXPONENT };
    }
    let mut places = 9;
    if format == SuffixFormat::BinarySI {
        let mut buffer = decimal::Buffer::default();
        let most = decimal::DecimalView::from_i64(i64::MAX, 0, &mut buffer);
        if number.view().compare(most).is_gt() {
            number = Decimal { negative: false, digits: most.digits.to_vec(), exponent: 0 };
            places = 0;
        }
        if number.view().compare(decimal::DecimalView { negative: false, digits: &[1], exponent: 0 }).is_lt()
        {
            format = SuffixFormat::DecimalSI;
        }
    }
    number.negative = parts.negative;
    Quantity { amount: Amount::Decimal { number, places }, format, text: None }
}
