//! The function `format` when it runs: `"%s has %d".format([name, count])`. `%f` separates thousands with commas.
//! Literal format strings are also checked before, in `crate::literals`. cel-go `ext/formatting.go`

use super::{MAX_CREATED_TEXT_BYTES, conversions};
use crate::evaluate::collections::List;
use crate::evaluate::value::{EvalFailure, Value, cost_limit_exceeded, eval_error};
use tollgate_formats::gofmt;

/// Maximum number of decimal places that are written.
const MAX_PRECISION: usize = 100_000;
/// Default number of decimal places of `%f` and `%e`.
const DEFAULT_PRECISION: usize = 6;

pub(super) fn format_string(format: &str, args: &List) -> Result<String, EvalFailure> {
    let mut text = String::new();
    let mut rest = format;
    let mut used = 0;
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        if let Some(behind) = after.strip_prefix('%') {
            text.push('%');
            rest = behind;
            continue;
        }
        let Some(arg) = args.get(used) else { return eval_error(format!("index {used} out of range")) };
        if after.is_empty() {
            return eval_error("unexpected end of string");
        }
        let (clause, precision) = read_precision(after).or_else(eval_error)?;
        let mut behind = clause.chars();
        behind.next();
        text.push_str(&formatted_argument(clause, precision, &arg)?);
        if text.len() > MAX_CREATED_TEXT_BYTES {
            return Err(cost_limit_exceeded());
        }
        rest = behind.as_str();
        used += 1;
    }
    text.push_str(rest);
    Ok(text)
}

/// Parses a precision. Returns the rest of the clause and the precision, or an error message.
pub(crate) fn read_precision(clause: &str) -> Result<(&str, Option<usize>), String> {
    const PRECISION_ERROR_PREFIX: &str = "could not parse formatting clause: error while parsing precision: ";
    let Some(digits) = clause.strip_prefix('.') else { return Ok((clause, None)) };
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.is_empty() {
        return Err(format!("{PRECISION_ERROR_PREFIX}could not find end of precision specifier"));
    }
    let digits = digits.get(..digits.len() - rest.len()).unwrap_or_default();
    let problem = match digits.parse::<i64>() {
        Ok(precision) => return Ok((rest, usize::try_from(precision).ok())),
        Err(_) if digits.is_empty() => "invalid syntax",
        Err(_) => "value out of range",
    };
    Err(format!(
        "{PRECISION_ERROR_PREFIX}error while converting precision to integer: strconv.Atoi: parsing \"{digits}\": {problem}"
    ))
}

fn formatted_argument(clause: &str, precision: Option<usize>, arg: &Value) -> Result<String, EvalFailure> {
    // The server reads a byte for a character.
    let verb = clause.bytes().next().map_or('\0', char::from);
    let rule = clause_type_requirement(verb).or_else(eval_error)?;
    let sign_and_magnitude = match arg {
        Value::Int(value) => Some((if *value < 0 { "-" } else { "" }, value.unsigned_abs())),
        Value::Uint(value) => Some(("", *value)),
        _ => None,
    };
    match (verb, sign_and_magnitude, arg) {
        ('s', ..) => match string_argument_text(arg) {
            Err(EvalFailure::Error(problem)) => eval_error(format!("error during formatting: {problem}")),
            other => other,
        },
        ('d', Some((sign, value)), _) => Ok(format!("{sign}{value}")),
        ('b', Some((sign, value)), _) => Ok(format!("{sign}{value:b}")),
        ('b', _, Value::Bool(value)) => Ok(u8::from(*value).to_string()),
        ('o', Some((sign, value)), _) => Ok(format!("{sign}{value:o}")),
        ('x', Some((sign, value)), _) => Ok(format!("{sign}{value:x}")),
        ('X', Some((sign, value)), _) => Ok(format!("{sign}{value:X}")),
        ('x' | 'X', _, Value::String(text)) => Ok(hex_text(text.as_bytes(), verb)),
        ('x' | 'X', _, Value::Bytes(bytes)) => Ok(hex_text(bytes, verb)),
        _ => match double_or_non_finite_string_argument(arg).filter(|_| matches!(verb, 'f' | 'e')) {
            Some(value) => format_float(value, precision, verb),
            None => eval_error(format!("error during formatting: {rule}, was given {}", arg.type_name())),
        },
    }
}

/// What a formatting clause can be used on; the error for an unknown clause.
pub(crate) fn clause_type_requirement(verb: char) -> Result<&'static str, String> {
    Ok(match verb {
        's' => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, \
             and timestamps"
        }
        'd' => "decimal clause can only be used on integers",
        'o' => "octal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'x' | 'X' => "only integers, byte buffers, and strings can be formatted as hex",
        other => {
            let problem = "could not parse formatting clause: unrecognized formatting clause";
            return Err(format!("{problem} \"{other}\""));
        }
    })
}

fn hex_text(bytes: &[u8], verb: char) -> String {
    let byte = |byte: &u8| if verb == 'x' { format!("{byte:02x}") } else { format!("{byte:02X}") };
    bytes.iter().map(byte).collect()
}

fn double_or_non_finite_string_argument(arg: &Value) -> Option<f64> {
    match arg {
        Value::Double(value) => Some(*value),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// Formats an argument with `%s`.
fn string_argument_text(arg: &Value) -> Result<String, EvalFailure> {
    match arg {
        Value::String(text) => Ok((**text).to_owned()),
        Value::Bytes(bytes) => {
            let problem = || gofmt::quote("invalid UTF-8 in bytes, cannot convert to string");
            let failed = |_| eval_error(format!("could not convert argument {} to string", problem()));
            std::str::from_utf8(bytes).map_or_else(failed, |text| Ok(text.to_owned()))
        }
        Value::Null => Ok("null".to_owned()),
        Value::List(list) => {
            let items: Result<Vec<String>, EvalFailure> =
                list.items()?.iter().map(nested_value_text).collect();
            Ok(format!("[{}]", items?.join(", ")))
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for (key, value) in map.entries() {
                if !matches!(key, Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_)) {
                    return eval_error(format!(
                        "no formatting function for map key of type {}",
                        key.type_name()
                    ));
                }
                entries.push((nested_value_text(&key)?, nested_value_text(&value)?));
            }
            entries.sort();
            let entries: Vec<String> =
                entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            Ok(format!("{{{}}}", entries.join(", ")))
        }
        Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::Duration(_)
        | Value::Timestamp(_)
        | Value::Type(_) => Ok(conversions::text_of_non_string_value(arg).unwrap_or_default()),
        other => {
            let rule = clause_type_requirement('s').unwrap_or_default();
            eval_error(format!("{rule}, was given {}", other.type_name()))
        }
    }
}

/// A value inside of a list or a map.
fn nested_value_text(value: &Value) -> Result<String, EvalFailure> {
    Ok(match value {
        Value::String(text) => gofmt::quote(text),
        Value::Bytes(_) => format!("b{}", gofmt::quote(&string_argument_text(value)?)),
        Value::Double(number) if number.is_finite() => format!("{number:.DEFAULT_PRECISION$}"),
        Value::Double(number) => gofmt::quote(&gofmt::float_text(*number)),
        Value::Timestamp(_) => format!("timestamp({})", gofmt::quote(&string_argument_text(value)?)),
        Value::Duration(_) => format!("duration({})", gofmt::quote(&string_argument_text(value)?)),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Type(_)
        | Value::List(_)
        | Value::Map(_) => string_argument_text(value)?,
        other => return eval_error(format!("no formatting function for {}", other.type_name())),
    })
}

/// Returns the shortest digits that represent the number exactly, and the power of ten before the first of them.
fn shortest_digits(value: f64) -> (Vec<u8>, i32) {
    let scientific = format!("{:e}", value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
    let exponent = exponent.parse().unwrap_or(0);
    if digits.iter().all(|digit| *digit == 0) { (Vec::new(), 0) } else { (digits, exponent + 1) }
}

/// Rounds to `keep` digits, half to even.
fn rounded_digits(mut digits: Vec<u8>, mut point: i32, keep: i64) -> (Vec<u8>, i32) {
    let Ok(keep) = usize::try_from(keep) else { return (Vec::new(), point) };
    let Some(&next) = digits.get(keep) else { return (digits, point) };
    let is_tie = next == 5 && digits.iter().skip(keep + 1).all(|digit| *digit == 0);
    let is_odd = keep.checked_sub(1).and_then(|last| digits.get(last)).is_some_and(|last| last % 2 == 1);
    digits.truncate(keep);
    if next > 5 || (next == 5 && (!is_tie || is_odd)) {
        while digits.last() == Some(&9) {
            digits.pop();
        }
        if let Some(last) = digits.last_mut() {
            *last += 1;
        } else {
            (digits, point) = (vec![1], point + 1);
        }
    }
    (digits, point)
}

/// Formats a number like `golang.org/x/text` in English.
fn format_float(value: f64, precision: Option<usize>, verb: char) -> Result<String, EvalFailure> {
    let sign = if value < 0.0 { "-" } else { "" };
    if value.is_nan() {
        return Ok("NaN".to_owned());
    }
    if value.is_infinite() {
        return Ok(format!("{sign}∞"));
    }
    let asked = precision.unwrap_or(DEFAULT_PRECISION);
    if asked > MAX_PRECISION {
        return Err(cost_limit_exceeded());
    }
    if verb == 'e' {
        let text = format!("{sign}{}", unsigned_scientific_with_superscripts(value));
        // The precision is taken for a width.
        return Ok(format!("{text:>asked$}"));
    }
    Ok(format!("{sign}{}", unsigned_fixed_with_thousands_commas(value, asked)))
}

/// Formats the absolute value of a finite number with that many decimals, and with commas between thousands.
fn unsigned_fixed_with_thousands_commas(value: f64, places: usize) -> String {
    let (digits, point) = shortest_digits(value);
    let keep = i64::from(point) + i64::try_from(places).unwrap_or(i64::MAX);
    let (digits, point) = rounded_digits(digits, point, keep);
    let digit = |place: i32| {
        let index = usize::try_from(place).ok();
        index.and_then(|index| digits.get(index)).map_or('0', |digit| char::from(b'0' + digit))
    };
    let whole = if digits.is_empty() { 0 } else { point.max(0) };
    let mut text = String::new();
    for place in 0..whole.max(1) {
        text.push(if whole == 0 { '0' } else { digit(place) });
        let left = whole.max(1) - 1 - place;
        if left > 0 && left % 3 == 0 {
            text.push(',');
        }
    }
    // The number of places that are filled up with zeros is a byte.
    let filled = places % 256;
    let written = i32::try_from(digits.len()).unwrap_or(i32::MAX) - point;
    let places = if digits.is_empty() { filled } else { filled.max(usize::try_from(written).unwrap_or(0)) };
    if places > 0 {
        text.push('.');
    }
    let from = if digits.is_empty() { 0 } else { point };
    text.extend((0..i32::try_from(places).unwrap_or(0)).map(|place| digit(from + place)));
    text
}

fn unsigned_scientific_with_superscripts(value: f64) -> String {
    let (digits, point) = shortest_digits(value);
    let (digits, point) = if digits.is_empty() { (vec![0], 1) } else { (digits, point) };
    let (digits, point) = rounded_digits(digits, point, 7);
    let digit = |index: usize| digits.get(index).map_or('0', |digit| char::from(b'0' + digit));
    let mut text = String::from(digit(0));
    text.push('.');
    text.extend((1..7).map(digit));
    text.push_str("×10");
    let exponent = point - 1;
    if exponent < 0 {
        text.push('⁻');
    }
    let raised = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let exponent = format!("{:02}", exponent.unsigned_abs());
    text.extend(exponent.chars().filter_map(|c| raised.get(usize::try_from(c.to_digit(10)?).ok()?)));
    text
}
