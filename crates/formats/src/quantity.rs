//! `resource.Quantity`: amounts such as `40Gi`, `500m` or `1e3`, exact, with upstream's texts.
//!
//! Upstream keeps an amount either as an `int64` with a power of ten or as an unbounded decimal, and the difference
//! shows (which texts are kept as written, how a value is rounded or wraps), so both are here. Not a general number
//! type: no multiplication, no floats. Parsing a usual quantity allocates nothing and borrows its text; no input
//! makes an operation cost more than its length.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write as _;

mod arithmetic;
mod canonical;
mod decimal;
mod parse;

use decimal::{Buffer, Decimal, DecimalView};

/// An exact amount of a resource, such as `1.5Gi`, with the format that it was written in.
#[derive(Clone, Debug)]
pub struct Quantity<'a> {
    amount: Amount,
    format: SuffixFormat,
    /// The text as given, if upstream keeps it.
    text: Option<&'a str>,
}

/// The reason why a text is not a valid quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// The text does not have the shape of a quantity.
    FormatWrong,
    /// The suffix is unknown.
    Suffix,
    /// The text contains no digit.
    Numeric,
}

/// The kind of suffix that a quantity was written with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SuffixFormat {
    DecimalExponent,
    BinarySI,
    DecimalSI,
}

/// The two ways in which upstream keeps an amount.
#[derive(Clone, Debug)]
enum Amount {
    /// `value` times `10^scale`.
    Int { value: i64, scale: i32 },
    /// A decimal number. `places` is the number of decimal places in upstream's representation; the number
    /// has at most as many.
    Decimal { number: Decimal, places: u32 },
}

/// Maximum number of decimal places of a sum or an exact text. Upstream has no limit, but takes minutes.
const MAX_DECIMAL_PLACES: u32 = 1024;

impl ParseError {
    /// Returns the message of Kubernetes for the error.
    pub fn message(self) -> &'static str {
        match self {
            Self::FormatWrong => {
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            }
            Self::Suffix => "unable to parse quantity's suffix",
            Self::Numeric => "unable to parse numeric part of quantity",
        }
    }
}

impl<'a> Quantity<'a> {
    /// Zero, which is also what `null` and an absent quantity are.
    pub const ZERO: Quantity<'static> =
        Quantity { amount: Amount::Int { value: 0, scale: 0 }, format: SuffixFormat::DecimalSI, text: None };

    /// An amount that was not read from a text, or whose text upstream does not keep.
    fn without_text(amount: Amount, format: SuffixFormat) -> Quantity<'static> {
        Quantity { amount, format, text: None }
    }

    /// Reads the text between a JSON string's quotes, without unescaping, or a JSON number. Blanks around it are
    /// dropped.
    pub fn parse(raw: &'a str) -> Result<Quantity<'a>, ParseError> {
        parse::parse(raw.trim())
    }

    /// The amount as messages and JSON print it: the text as given where upstream keeps it, else the canonical form.
    pub fn text(&self) -> Cow<'a, str> {
        match self.text {
            Some(text) => Cow::Borrowed(text),
            None if self.is_zero() => Cow::Borrowed("0"),
            None => Cow::Owned(self.with_view(|view| canonical::canonical_text(view, self.format))),
        }
    }

    /// The amount as a plain decimal with all written places: `1000m` is `1.000`. Kubernetes 1.37 compares
    /// valid values by this text. With more than a thousand zeros, the exponent is kept.
    pub fn plain_decimal_text(&self) -> String {
        let places = self.places();
        self.with_view(|view| {
            let mut out = String::new();
            if view.negative {
                out.push('-');
            }
            let zeros = view.exponent + i64::from(places);
            let (zeros, exponent) =
                if zeros > i64::from(MAX_DECIMAL_PLACES) { (0, zeros) } else { (zeros, 0) };
            let mut digits = view.digits.to_vec();
            if !digits.is_empty() {
                digits.resize(digits.len() + usize::try_from(zeros).unwrap_or(0), 0);
            }
            let places = usize::try_from(places).unwrap_or(0);
            let missing = (places + 1).saturating_sub(digits.len());
            digits.splice(0..0, std::iter::repeat_n(0, missing));
            let (whole, fraction) = digits.split_at_checked(digits.len() - places).unwrap_or((&digits, &[]));
            decimal::push_digits(&mut out, whole);
            if !fraction.is_empty() {
                out.push('.');
                decimal::push_digits(&mut out, fraction);
            }
            if exponent > 0 {
                let _ = write!(out, "e{exponent}");
            }
            out
        })
    }

    /// The amount in whole units, as upstream's `Value()` computes it: rounded up; a too large amount wraps around or
    /// gives 0.
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// The amount in thousandths, as upstream's `MilliValue()` computes it: rounded up; a too large amount wraps around
    /// or gives 0.
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(3)
    }

    /// The amount in billionths, in which every quantity is a whole number. Used to add up many quantities. An amount
    /// that does not fit into an `i128` is capped.
    pub fn nano_value(&self) -> i128 {
        self.with_view(|view| {
            let (digits, zeros, _) = view.split_at_place(-9);
            let ten = |value: i128| value.saturating_mul(10);
            let value = digits.iter().fold(0, |value, &digit| ten(value).saturating_add(digit.into()));
            // Any digit with 39 zeros is beyond the limit.
            let value = (0..zeros.min(39)).fold(value, |value, _| ten(value));
            if view.negative { -value } else { value }
        })
    }

    /// `value` times `10^scale`, in the format of this quantity.
    pub fn in_same_format(&self, value: i64, scale: i32) -> Quantity<'static> {
        Quantity::without_text(Amount::Int { value, scale }, self.format)
    }

    /// -1 for a negative amount, 0 for zero, 1 for a positive one.
    pub fn sign(&self) -> i8 {
        match &self.amount {
            Amount::Int { value, .. } if *value == 0 => 0,
            Amount::Int { value, .. } if *value < 0 => -1,
            Amount::Int { .. } => 1,
            Amount::Decimal { number, .. } => number.view().sign(),
        }
    }

    /// True if the amount is zero, in any notation.
    pub fn is_zero(&self) -> bool {
        self.sign() == 0
    }

    /// True if the amount is not a whole number. `1.0` is one.
    pub fn is_fractional(&self) -> bool {
        self.with_view(|view| view.split_at_place(0).2)
    }

    /// True if the amount is a whole number of thousandths that fits into an `int64`.
    pub fn fits_milli(&self) -> bool {
        self.with_view(|view| {
            let (_, _, inexact) = view.split_at_place(-3);
            let mut buffer = Buffer::default();
            let bound =
                DecimalView::from_i64(if view.negative { i64::MIN } else { i64::MAX }, -3, &mut buffer);
            !inexact && view.compare_magnitude(bound).is_le()
        })
    }

    /// True if the amount is larger than the largest `int64`.
    pub fn exceeds_i64_max(&self) -> bool {
        let mut buffer = Buffer::default();
        let most = DecimalView::from_i64(i64::MAX, 0, &mut buffer);
        self.with_view(|view| view.compare(most).is_gt())
    }

    /// The sum as a decimal, in the format of `self` (of `other` if `self` is zero). `None` if the sum has more than
    /// 1,024 digits, as in `1e2000000000` plus `1`.
    pub fn add_as_decimal(&self, other: &Quantity<'_>) -> Option<Quantity<'static>> {
        let number = self.with_view(|a| other.with_view(|b| a.add(b, MAX_DECIMAL_PLACES)))?;
        let places = self.places().max(other.places());
        let format = if self.is_zero() { other.format } else { self.format };
        Some(Quantity::without_text(Amount::Decimal { number, places }, format))
    }

    /// The amount with the other sign.
    #[must_use]
    pub fn negated(&self) -> Quantity<'static> {
        let number = self.with_view(|view| {
            DecimalView { negative: !view.negative && !view.digits.is_empty(), ..view }.to_decimal()
        });
        Quantity::without_text(Amount::Decimal { number, places: self.places() }, self.format)
    }

    /// The amount without the text it was read from; it prints in the canonical form.
    #[must_use]
    pub fn into_owned_without_text(self) -> Quantity<'static> {
        Quantity::without_text(self.amount, self.format)
    }

    /// Number of decimal places in upstream's representation; 0 for whole units.
    fn places(&self) -> u32 {
        match &self.amount {
            Amount::Int { scale, .. } => u32::try_from(-i64::from(*scale)).unwrap_or(0),
            Amount::Decimal { places, .. } => *places,
        }
    }

    /// Calls `look` with the amount as digits.
    fn with_view<T>(&self, look: impl FnOnce(DecimalView<'_>) -> T) -> T {
        match &self.amount {
            Amount::Int { value, scale } => {
                let mut buffer = Buffer::default();
                look(DecimalView::from_i64(*value, i64::from(*scale), &mut buffer))
            }
            Amount::Decimal { number, .. } => look(number.view()),
        }
    }

    /// The amount in units of `10^-shift`. upstream v1.36 `ScaledValue`
    fn scaled_value(&self, shift: u32) -> i64 {
        match &self.amount {
            Amount::Int { value, scale } => scaled_int(*value, i64::from(*scale) + i64::from(shift)),
            Amount::Decimal { number, places } => scaled_decimal(number.view(), *places, shift),
        }
    }
}

impl Ord for Quantity<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.with_view(|a| other.with_view(|b| a.compare(b)))
    }
}

impl PartialOrd for Quantity<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares amounts: `1` equals `1000m`, as in upstream's semantic comparison.
impl PartialEq for Quantity<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quantity<'_> {}

/// `value` times `10^power`: rounded away from zero if `power` is negative. An overflow wraps around for the powers
/// that upstream multiplies at once, and gives 0 for the others. upstream v1.36 `AsScaledInt64`
fn scaled_int(value: i64, power: i64) -> i64 {
    let Some(up) = u32::try_from(power).ok() else {
        let factor = u32::try_from(-power).ok().and_then(|down| 10_i64.checked_pow(down));
        return factor.map_or(value.signum(), |factor| {
            value / factor + if value % factor == 0 { 0 } else { value.signum() }
        });
    };
    let product = 10_i64.checked_pow(up).and_then(|factor| value.checked_mul(factor));
    match up {
        _ if value == 0 => 0,
        0 | 1 | 2 | 3 | 6 | 9 => value.wrapping_mul(10_i64.wrapping_pow(up)),
        _ => product.unwrap_or(0),
    }
}

/// The number in units of `10^-shift`. As upstream does, adds one for any remainder, also below zero, and computes
/// negative numbers in an `int64`, so that a large one wraps before it is divided. upstream v1.36 `scaledValue`
fn scaled_decimal(view: DecimalView<'_>, places: u32, shift: u32) -> i64 {
    let signed = |bits: u64| if view.negative { bits.wrapping_neg() } else { bits }.cast_signed();
    let unscaled = || signed(decimal::to_u64_wrapping(view.digits, view.exponent + i64::from(places)));
    if view.digits.is_empty() {
        return 0;
    }
    match places.checked_sub(shift) {
        None | Some(0) => unscaled().wrapping_mul(10_i64.wrapping_pow(shift.saturating_sub(places))),
        Some(down) if view.negative => {
            let divisor = 10_i64.wrapping_pow(down);
            unscaled() / divisor + i64::from(unscaled() % divisor != 0)
        }
        Some(_) => {
            let (digits, zeros, inexact) = view.split_at_place(-i64::from(shift));
            signed(decimal::to_u64_wrapping(digits, zeros)).wrapping_add(i64::from(inexact))
        }
    }
}

#[cfg(test)]
mod tests;
