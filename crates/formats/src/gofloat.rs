//! Floating-point numbers as Go's `strconv.ParseFloat` reads them. CEL converts strings with it, and go-yaml some scalars.

/// The number that Go's `strconv.ParseFloat` reads: decimal or hexadecimal, underscores between digits, `inf` and
/// `nan`. `None` if it is out of range.
pub fn parse_float(text: &str) -> Option<f64> {
    let (sign, unsigned) = match text.strip_prefix(['+', '-']) {
        Some(unsigned) => (if text.starts_with('-') { -1.0 } else { 1.0 }, unsigned),
        None => (1.0, text),
    };
    if unsigned.eq_ignore_ascii_case("inf") || unsigned.eq_ignore_ascii_case("infinity") {
        return Some(sign * f64::INFINITY);
    }
    if text.eq_ignore_ascii_case("nan") {
        return Some(f64::NAN);
    }
    if !has_good_underscores(unsigned) {
        return None;
    }
    let digits = unsigned.replace('_', "");
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hexadecimal) => parse_hexadecimal(hexadecimal)?,
        None if digits.starts_with(|c: char| c == '.' || c.is_ascii_digit()) => digits.parse::<f64>().ok()?,
        None => return None,
    };
    value.is_finite().then_some(sign * value)
}

/// True if each underscore stands between digits, or between the base and a digit.
fn has_good_underscores(text: &str) -> bool {
    let is_hexadecimal = text.get(..2).is_some_and(|base| base.eq_ignore_ascii_case("0x"));
    let is_digit = |byte: u8| if is_hexadecimal { byte.is_ascii_hexdigit() } else { byte.is_ascii_digit() };
    let bytes = text.as_bytes();
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_').all(|(at, _)| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let follows_base = is_hexadecimal && at == 2;
        (follows_base || before.is_some_and(|byte| is_digit(*byte)))
            && bytes.get(at + 1).is_some_and(|byte| is_digit(*byte))
    })
}

/// The number of a hexadecimal float without its `0x`, such as `1.8p3`.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Beyond this nothing changes any more, however long the mantissa.
    let size = digits.parse::<i64>().unwrap_or(HEX_FLOAT_EXPONENT_CLAMP).min(HEX_FLOAT_EXPONENT_CLAMP);
    let mut exponent = if exponent.starts_with('-') { -size } else { size };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // The first 30 digits, and whether anything follows them: enough to round once.
    let (mut bits, mut rest) = (0_u128, false);
    for (index, digit) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = digit.to_digit(16)?;
        exponent -= if index < whole.len() { 0 } else { 4 };
        if bits >> 120 == 0 {
            bits = bits << 4 | u128::from(digit);
        } else {
            rest |= digit != 0;
            exponent += 4;
        }
    }
    let mut value = double_of_u128(bits | u128::from(rest));
    while exponent != 0 && value != 0.0 && value.is_finite() {
        let step = exponent.clamp(-1_000, 1_000);
        value *= f64::powi(2.0, i32::try_from(step).ok()?);
        exponent -= step;
    }
    Some(value)
}

/// Maximum exponent of two, beyond which no mantissa gives a finite number.
const HEX_FLOAT_EXPONENT_CLAMP: i64 = 1 << 20;

#[allow(clippy::cast_precision_loss, reason = "rounded to the nearest, as the server does")]
fn double_of_u128(bits: u128) -> f64 {
    bits as f64
}

#[cfg(test)]
mod tests {
    use super::parse_float;

    #[test]
    fn hexadecimal_numbers_of_any_size_are_read() {
        let long = format!("0x{}p-1200", "f".repeat(300));
        let cases = [
            ("0x1p-99999999999", Some(0.0)),
            ("0x0p99999999999", Some(0.0)),
            (long.as_str(), Some(1.0)),
            ("0x1p99999999999", None),
            ("0x1.8p1", Some(3.0)),
            ("-0x.8p0", Some(-0.5)),
            ("0x1p", None),
            ("0xp1", None),
            ("0x1p+", None),
            ("0x1p-1074", Some(5e-324)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_float(text), expected, "{text}");
        }
    }
}
