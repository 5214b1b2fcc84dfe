//! Exact decimals as digit rows: comparing, adding and printing without limits of size.
//!
//! Decimal digits and not machine words, because everything upstream does with a large quantity (round at a decimal
//! place, strip zeros, print) is linear on digits, and an attacker chooses how long a number is. A power of ten is
//! kept as a number and written out only where the result is the text.

use std::cmp::Ordering;

/// A number: digits times a power of ten. The digits are values 0 to 9, most significant first, without leading
/// zeros; zero has none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decimal<D = Vec<u8>> {
    pub(super) negative: bool,
    pub(super) digits: D,
    pub(super) exponent: i64,
}

/// A borrowed [`Decimal`], which also represents small integers without an allocation.
pub(super) type DecimalView<'a> = Decimal<&'a [u8]>;

/// Buffer for the digits of any `u64`.
pub(super) type Buffer = [u8; 20];

impl Decimal {
    pub(super) fn view(&self) -> DecimalView<'_> {
        DecimalView { negative: self.negative, digits: &self.digits, exponent: self.exponent }
    }
}

impl<'a> DecimalView<'a> {
    /// The number `value` times `10^exponent`; its digits are written to `buffer`.
    pub(super) fn from_i64(value: i64, exponent: i64, buffer: &'a mut Buffer) -> Self {
        let mut rest = value.unsigned_abs();
        let mut length = 0;
        for slot in buffer.iter_mut().rev() {
            if rest == 0 {
                break;
            }
            *slot = digit(rest % 10);
            rest /= 10;
            length += 1;
        }
        let digits = buffer.get(buffer.len() - length..).unwrap_or_default();
        DecimalView { negative: value < 0, digits, exponent }
    }

    pub(super) fn compare(self, other: DecimalView<'_>) -> Ordering {
        match (self.sign(), other.sign()) {
            (1, 1) => self.compare_magnitude(other),
            (-1, -1) => other.compare_magnitude(self),
            (a, b) => a.cmp(&b),
        }
    }

    /// The sign: -1, 0 or 1.
    pub(super) fn sign(self) -> i8 {
        match (self.digits.is_empty(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }

    /// Compares two numbers without their signs.
    pub(super) fn compare_magnitude(self, other: DecimalView<'_>) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => return Ordering::Equal,
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => {}
        }
        // The place of the first digit decides before any digit does.
        self.integer_digit_count()
            .cmp(&other.integer_digit_count())
            .then_with(|| without_trailing_zeros(self.digits).cmp(without_trailing_zeros(other.digits)))
    }

    /// The number of digits before the decimal point; negative or 0 if the number is below 1.
    fn integer_digit_count(self) -> i64 {
        self.exponent.saturating_add_unsigned(self.digits.len() as u64)
    }

    /// Splits the number at `10^place`: returns the digits at and above it, the number of zeros that follow
    /// them, and whether any lower digit is not zero.
    pub(super) fn split_at_place(self, place: i64) -> (&'a [u8], i64, bool) {
        let below = place.saturating_sub(self.exponent);
        if below <= 0 {
            return (self.digits, -below, false);
        }
        let keep = self.digits.len().saturating_sub(usize::try_from(below).unwrap_or(usize::MAX));
        let (above, below) = self.digits.split_at_checked(keep).unwrap_or((self.digits, &[]));
        (above, 0, below.iter().any(|&digit| digit != 0))
    }

    /// The sum of both numbers; `None` if more than `limit` digits would have to be written.
    pub(super) fn add(self, other: DecimalView<'_>, limit: u32) -> Option<Decimal> {
        if other.digits.is_empty() {
            return Some(self.to_decimal());
        }
        if self.digits.is_empty() {
            return Some(other.to_decimal());
        }
        let exponent = self.exponent.min(other.exponent);
        let places = u32::try_from(
            self.integer_digit_count().max(other.integer_digit_count()).saturating_sub(exponent),
        )
        .ok()?;
        if places > limit {
            return None;
        }
        let places = usize::try_from(places).ok()?;
        let (large, small) = match self.compare_magnitude(other) {
            Ordering::Less => (other, self),
            Ordering::Equal | Ordering::Greater => (self, other),
        };
        let subtract = large.negative != small.negative;
        let mut carry = 0;
        let mut reversed = Vec::with_capacity(places + 1);
        for (a, b) in large
            .digits_from_place_upwards(exponent)
            .zip(small.digits_from_place_upwards(exponent))
            .take(places)
        {
            let sum = if subtract {
                i16::from(a) - i16::from(b) + carry
            } else {
                i16::from(a) + i16::from(b) + carry
            };
            carry = sum.div_euclid(10);
            reversed.push(digit(sum.rem_euclid(10).unsigned_abs()));
        }
        reversed.push(digit(carry.unsigned_abs()));
        Some(Decimal { negative: large.negative, digits: reversed_without_leading_zeros(reversed), exponent })
    }

    /// The digits from `10^place` upwards, lowest first. The iterator is endless and returns zeros beyond the
    /// number.
    fn digits_from_place_upwards(self, place: i64) -> impl Iterator<Item = u8> {
        let zeros = usize::try_from(self.exponent.saturating_sub(place)).unwrap_or(0);
        std::iter::repeat_n(0, zeros).chain(self.digits.iter().rev().copied()).chain(std::iter::repeat(0))
    }

    pub(super) fn to_decimal(self) -> Decimal {
        Decimal { negative: self.negative, digits: self.digits.to_vec(), exponent: self.exponent }
    }
}

/// `digits` and `zeros` zeros as a number modulo 2^64. Go keeps these bits of a number that is too large.
pub(super) fn to_u64_wrapping(digits: &[u8], zeros: i64) -> u64 {
    let value = digits.iter().fold(0_u64, |value, &digit| value.wrapping_mul(10).wrapping_add(digit.into()));
    // 10^64 has 64 factors of two.
    (0..zeros.min(64)).fold(value, |value, _| value.wrapping_mul(10))
}

/// The digits of `digits` times `2^bits`; `bits` is at most 60.
pub(super) fn times_power_of_two(digits: &[u8], bits: u32) -> Vec<u8> {
    let mut carry = 0_u128;
    let mut reversed = Vec::with_capacity(digits.len() + 20);
    for &next in digits.iter().rev() {
        let sum = (u128::from(next) << bits) + carry;
        carry = sum / 10;
        reversed.push(digit(sum % 10));
    }
    while carry > 0 {
        reversed.push(digit(carry % 10));
        carry /= 10;
    }
    reversed_without_leading_zeros(reversed)
}

/// The digits of the number divided by 1024; `None` if it cannot be divided without a remainder.
pub(super) fn divided_by_1024(digits: &[u8]) -> Option<Vec<u8>> {
    let mut rest = 0_u32;
    let mut quotient = Vec::with_capacity(digits.len());
    for &next in digits {
        let part = rest * 10 + u32::from(next);
        rest = part % 1024;
        if part >= 1024 || !quotient.is_empty() {
            quotient.push(digit(part / 1024));
        }
    }
    (rest == 0 && !quotient.is_empty()).then_some(quotient)
}

/// The digits of the number plus one.
pub(super) fn incremented(digits: &[u8]) -> Vec<u8> {
    let nines = digits.iter().rev().take_while(|&&digit| digit == 9).count();
    let mut reversed = vec![0; nines];
    let mut above = digits.iter().rev().skip(nines);
    reversed.push(above.next().map_or(1, |&digit| digit + 1));
    reversed.extend(above);
    reversed_without_leading_zeros(reversed)
}

/// The digits without the zeros at their end.
pub(super) fn without_trailing_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().rev().take_while(|&&digit| digit == 0).count();
    digits.get(..digits.len() - zeros).unwrap_or_default()
}

/// Appends the digits as text.
pub(super) fn push_digits(out: &mut String, digits: &[u8]) {
    out.extend(digits.iter().map(|&digit| char::from(b'0' + digit)));
}

/// Digits given lowest first, in the usual order and without leading zeros.
fn reversed_without_leading_zeros(mut reversed: Vec<u8>) -> Vec<u8> {
    while reversed.last() == Some(&0) {
        reversed.pop();
    }
    reversed.reverse();
    reversed
}

/// A number below ten as a digit.
#[expect(clippy::cast_possible_truncation, reason = "callers pass what is left of a division by ten")]
fn digit(number: impl Into<u128>) -> u8 {
    number.into() as u8
}
