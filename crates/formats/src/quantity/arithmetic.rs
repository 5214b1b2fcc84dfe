//! Arithmetic as upstream's `Quantity` does it in place: an amount stays an `int64` while that is exact, and is a
//! decimal from then on.
//!
//! The representation matters: only an `int64` converts to an integer. A sum with more than 1,024 digits is not
//! computed.

use super::{Amount, DecimalView, Quantity, SuffixFormat};

impl Quantity<'_> {
    /// Upstream's `AsInt64()`: `None` for fractions, for decimals however small, and for what an `int64` cannot hold.
    pub fn as_i64(&self) -> Option<i64> {
        match &self.amount {
            Amount::Int { value, scale } => times_power_of_ten(*value, i64::from(*scale)),
            Amount::Decimal { .. } => None,
        }
    }

    /// Upstream's `AsApproximateFloat64()`: the digits as a float, times a power of ten.
    pub fn approximate_f64(&self) -> f64 {
        let (base, exponent) = match &self.amount {
            #[expect(clippy::cast_precision_loss, reason = "rounded to the nearest, as upstream does")]
            Amount::Int { value, scale } => (*value as f64, i64::from(*scale)),
            Amount::Decimal { number, places } => {
                let mut text = String::from(if number.negative { "-" } else { "" });
                super::decimal::push_digits(&mut text, &number.digits);
                if number.digits.is_empty() {
                    text.push('0');
                }
                let places = i64::from(*places);
                (format!("{text}e{}", number.exponent + places).parse().unwrap_or(f64::NAN), -places)
            }
        };
        if exponent == 0 { base } else { base * power_of_ten(exponent) }
    }

    /// True if upstream stores the amount as an unbounded decimal.
    pub fn is_arbitrary_precision(&self) -> bool {
        matches!(self.amount, Amount::Decimal { .. })
    }

    /// Converts the amount to the decimal representation.
    #[must_use]
    pub fn to_arbitrary_precision(&self) -> Quantity<'static> {
        let number = self.with_view(|view| DecimalView { ..view }.to_decimal());
        Quantity::without_text(Amount::Decimal { number, places: self.places() }, self.format)
    }

    /// Returns a whole number as a quantity, in the format that Kubernetes uses for integers that are added.
    pub fn from_i64(value: i64) -> Quantity<'static> {
        Quantity::without_text(Amount::Int { value, scale: 0 }, SuffixFormat::DecimalExponent)
    }

    /// Upstream's `Add`. `None` as for [`Quantity::add_as_decimal`].
    pub fn plus(&self, other: &Quantity<'_>) -> Option<Quantity<'static>> {
        if let (Amount::Int { value: a, scale: x }, Amount::Int { value: b, scale: y }) =
            (&self.amount, &other.amount)
            && let Some((value, scale)) = scaled_sum((*a, *x), (*b, *y))
        {
            let format = if *a == 0 { other.format } else { self.format };
            return Some(Quantity::without_text(Amount::Int { value, scale }, format));
        }
        self.add_as_decimal(other)
    }

    /// Upstream's `Sub`. `None` as for [`Quantity::add_as_decimal`].
    pub fn minus(&self, other: &Quantity<'_>) -> Option<Quantity<'static>> {
        let negated = match &other.amount {
            Amount::Int { value, scale } if *value != i64::MIN => other.in_same_format(-value, *scale),
            _ => other.negated(),
        };
        self.plus(&negated)
    }
}

/// Adds two amounts of the form (number, power of ten), at the finer of the two scales; `None` if the sum does not
/// fit. upstream v1.36 `int64Amount.Add`
fn scaled_sum((a, x): (i64, i32), (b, y): (i64, i32)) -> Option<(i64, i32)> {
    if b == 0 {
        return Some((a, x));
    }
    if a == 0 {
        return Some((b, y));
    }
    let scale = x.min(y);
    let a = times_power_of_ten(a, i64::from(x) - i64::from(scale))?;
    let b = times_power_of_ten(b, i64::from(y) - i64::from(scale))?;
    Some((a.checked_add(b)?, scale))
}

fn times_power_of_ten(value: i64, scale: i64) -> Option<i64> {
    if value == 0 && scale >= 0 {
        return Some(0);
    }
    10_i64.checked_pow(u32::try_from(scale).ok()?)?.checked_mul(value)
}

/// Go `math.Pow10`, which multiplies two powers from tables: not always the nearest float.
fn power_of_ten(exponent: i64) -> f64 {
    let power = |exponent: i64| format!("1e{exponent}").parse().unwrap_or(f64::NAN);
    match exponent {
        0..=308 => power(exponent / 32 * 32) * power(exponent % 32),
        -323..0 => power(exponent / 32 * 32) / power(-exponent % 32),
        309.. => f64::INFINITY,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(text: &str) -> Quantity<'_> {
        Quantity::parse(text).unwrap()
    }

    #[test]
    fn integers_and_floats() {
        for (text, integer, float) in [
            ("0", Some(0), 0.0),
            ("80Gi", Some(85_899_345_920), 85_899_345_920.0),
            ("1e18", Some(1_000_000_000_000_000_000), 1e18),
            ("1Ei", None, 1_152_921_504_606_846_976.0),
            ("1500m", None, 1.5),
            ("2000m", None, 2.0),
            ("12e30", None, 1.2e31),
            ("-1.5", None, -1.5),
        ] {
            assert_eq!(quantity(text).as_i64(), integer, "{text}");
            assert!((quantity(text).approximate_f64() - float).abs() <= float.abs() * 1e-15, "{text}");
        }
    }

    #[test]
    fn sums_stay_integers_while_they_can() {
        for (a, b, sum, is_arbitrary_precision) in [
            ("1", "1", "2", false),
            ("1Gi", "512Mi", "1536Mi", false),
            ("1", "500m", "1500m", false),
            ("1Ei", "1", "1152921504606846977", true),
            ("9223372036854775807", "1", "9223372036854775808", true),
        ] {
            let found = quantity(a).plus(&quantity(b)).unwrap();
            assert_eq!(found, quantity(sum), "{a} + {b}");
            assert_eq!(found.is_arbitrary_precision(), is_arbitrary_precision, "{a} + {b}");
            assert_eq!(found.minus(&quantity(b)).unwrap(), quantity(a));
        }
    }
}
