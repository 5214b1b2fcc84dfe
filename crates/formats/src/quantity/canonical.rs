//! The canonical form of an amount, the one upstream prints when it does not keep the text.
//!
//! Takes a non-zero number and the format it was written in; the format is a preference: an amount it cannot
//! represent exactly is printed in decimal. Nothing is rounded here.

use std::fmt::Write as _;

use super::decimal::{self, DecimalView};
use super::{MAX_DECIMAL_PLACES, SuffixFormat};

/// The text of an amount that is not zero: without a fraction, and with the largest suffix that allows it.
///
/// upstream v1.36 `CanonicalizeBytes`
pub(super) fn canonical_text(view: DecimalView<'_>, format: SuffixFormat) -> String {
    let mut out = String::new();
    if view.negative {
        out.push('-');
    }
    let kibi = DecimalView { negative: false, digits: &[1, 0, 2, 4], exponent: 0 };
    let (digits, zeros, inexact) = view.split_at_place(0);
    if format == SuffixFormat::BinarySI && !inexact && view.compare_magnitude(kibi).is_ge() {
        let mut digits = digits.to_vec();
        digits.resize(digits.len() + usize::try_from(zeros.min(MAX_DECIMAL_PLACES.into())).unwrap_or(0), 0);
        let mut power = 0;
        while let Some(quotient) = decimal::divided_by_1024(&digits) {
            digits = quotient;
            power += 1;
        }
        decimal::push_digits(&mut out, &digits);
        out.push_str(["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].get(power).unwrap_or(&""));
        return out;
    }
    let digits = decimal::without_trailing_zeros(view.digits);
    let exponent = view.exponent.saturating_add_unsigned((view.digits.len() - digits.len()) as u64);
    let zeros = exponent.rem_euclid(3);
    let exponent = exponent - zeros;
    decimal::push_digits(&mut out, digits);
    (0..zeros).for_each(|_| out.push('0'));
    match format {
        SuffixFormat::DecimalExponent if exponent == 0 => {}
        SuffixFormat::DecimalExponent => {
            let _ = write!(out, "e{exponent}");
        }
        SuffixFormat::DecimalSI | SuffixFormat::BinarySI => out.push_str(match exponent {
            -9 => "n",
            -6 => "u",
            -3 => "m",
            3 => "k",
            6 => "M",
            9 => "G",
            12 => "T",
            15 => "P",
            18 => "E",
            // Beyond E upstream prints the digits without any suffix.
            _ => "",
        }),
    }
    out
}
