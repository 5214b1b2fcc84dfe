//! Named formats of Kubernetes: what a text must look like, and what is wrong with it.

use std::borrow::Cow;

use tollgate_formats::gotime;
use tollgate_formats::names::{self, KeyErrorWord, LengthUnitWord};

use super::urlparse;
use crate::evaluate::value::{Evaluated, Value};

#[derive(Debug)]
pub(in crate::evaluate) struct NamedFormat {
    /// Name of the format in expressions.
    name: &'static str,
    /// Name by which two formats are compared.
    pub(in crate::evaluate) title: &'static str,
    problems: fn(&str, &mut Vec<String>),
    /// Cost of a validation, as the length of an equally expensive pattern.
    pub(in crate::evaluate) pattern_size: u64,
}

const fn new_format(
    name: &'static str,
    title: &'static str,
    pattern_size: u64,
    problems: fn(&str, &mut Vec<String>),
) -> NamedFormat {
    NamedFormat { name, title, problems, pattern_size }
}

/// The named formats of upstream v1.36 `ConstantFormats`.
static FORMATS: [NamedFormat; 13] = [
    new_format("dns1123Label", "DNS1123Label", 30, check_dns_label),
    new_format("dns1123Subdomain", "DNS1123Subdomain", 60, check_dns_subdomain),
    new_format("dns1035Label", "DNS1035Label", 30, check_dns_1035_label),
    new_format("qualifiedName", "QualifiedName", 60, check_qualified_name),
    new_format("dns1123LabelPrefix", "DNS1123LabelPrefix", 30, |text, out| {
        check_dns_label(&name_from_prefix(text), out)
    }),
    new_format("dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", 60, |text, out| {
        check_dns_subdomain(&name_from_prefix(text), out)
    }),
    new_format("dns1035LabelPrefix", "DNS1035LabelPrefix", 30, |text, out| {
        check_dns_1035_label(&name_from_prefix(text), out)
    }),
    new_format("labelValue", "LabelValue", 40, |text, out| {
        names::check_label_value(text, LengthUnitWord::Bytes, &mut |problem| out.push(problem.into_owned()))
    }),
    new_format("uri", "URI", 1103, |text, out| out.extend(urlparse::parse_request_uri(text).err())),
    new_format("uuid", "uuid", 70, |text, out| {
        report_unless(is_uuid(text), "does not match the UUID format", out)
    }),
    new_format("byte", "byte", 84, |text, out| report_unless(is_base64(text), "invalid base64", out)),
    new_format("date", "date", 71, |text, out| report_unless(is_date(text), "invalid date", out)),
    new_format("datetime", "datetime", 71, |text, out| {
        report_unless(is_datetime(text), "invalid datetime", out)
    }),
];

pub(super) fn try_call(name: &str, args: &[Value]) -> Option<Evaluated> {
    Some(match (name, args) {
        ("format.named", [Value::String(name)]) => Ok(find_format(name)
            .map_or(Value::OPTIONAL_NONE, |format| Value::optional_of(Value::Format(format)))),
        ("validate", [Value::Format(format), Value::String(text)]) => Ok(validation_problems(format, text)),
        _ => Ok(Value::Format(find_format(name.strip_prefix("format.")?)?)),
    })
}

fn find_format(name: &str) -> Option<&'static NamedFormat> {
    FORMATS.iter().find(|format| format.name == name)
}

fn validation_problems(format: &NamedFormat, text: &str) -> Value {
    let mut problems = Vec::new();
    (format.problems)(text, &mut problems);
    if problems.is_empty() {
        Value::OPTIONAL_NONE
    } else {
        Value::optional_of(Value::strings(problems.iter().map(String::as_str)))
    }
}

fn report_unless(is_valid: bool, problem: &str, out: &mut Vec<String>) {
    out.extend((!is_valid).then(|| problem.to_owned()));
}

/// The text to check as a name in place of a name prefix. A prefix may end with a dash, because more is appended: a
/// letter replaces the dash.
fn name_from_prefix(text: &str) -> Cow<'_, str> {
    match text.strip_suffix('-') {
        // Upstream drops the character before the dash as well.
        Some(front) if !front.is_empty() => {
            let kept = front.len() - 1;
            let kept = (0..=kept).rev().find(|at| front.is_char_boundary(*at)).unwrap_or(0);
            Cow::Owned(format!("{}a", front.get(..kept).unwrap_or_default()))
        }
        _ => Cow::Borrowed(text),
    }
}

fn check_dns_label(text: &str, out: &mut Vec<String>) {
    names::check_dns_label(text, LengthUnitWord::Characters, &mut |problem| out.push(problem.into_owned()));
}

fn check_dns_subdomain(text: &str, out: &mut Vec<String>) {
    names::check_dns_subdomain(text, LengthUnitWord::Characters, &mut |problem| {
        out.push(problem.into_owned())
    });
}

fn check_dns_1035_label(text: &str, out: &mut Vec<String>) {
    if text.len() > 63 {
        out.push("must be no more than 63 characters".to_owned());
    }
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label = text.starts_with(|c: char| c.is_ascii_lowercase())
        && !text.ends_with('-')
        && text.bytes().all(is_inner);
    let problem = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
         character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
         '[a-z]([-a-z0-9]*[a-z0-9])?')";
    report_unless(is_label, problem, out);
}

fn check_qualified_name(text: &str, out: &mut Vec<String>) {
    names::check_label_key(text, LengthUnitWord::Bytes, KeyErrorWord::LabelKey, &mut |problem| {
        out.push(problem.into_owned())
    });
}

/// True for hexadecimal digits of either case, with or without each of the four dashes of a UUID.
fn is_uuid(text: &str) -> bool {
    let mut rest = text.as_bytes();
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(length) else { return false };
        if !group.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    !digits.is_empty()
        && text.len().is_multiple_of(4)
        && padding <= 2
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/')
}

/// True for a date such as `2006-01-02`.
fn is_date(text: &str) -> bool {
    text.len() == 10 && gotime::parse_rfc3339(&format!("{text}T00:00:00Z")).is_ok()
}

/// True for a date followed by a time whose parts are compared only as text.
fn is_datetime(text: &str) -> bool {
    let text = names::go_to_lower(text);
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    if text.len() < 4 || !is_date(date) {
        return false;
    }
    let Some((clock, rest)) = time.split_at_checked(8) else { return false };
    let [h1, h2, b':', m1, m2, b':', s1, s2] = clock.as_bytes() else { return false };
    if ![h1, h2, m1, m2, s1, s2].into_iter().all(u8::is_ascii_digit) {
        return false;
    }
    is_zone_after_fraction(rest) && [*h1, *h2] <= *b"23" && [*m1, *m2] <= *b"59" && [*s1, *s2] <= *b"59"
}

/// True if the text matches `(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))`; the dot is any character.
fn is_zone_after_fraction(rest: &str) -> bool {
    let is_zone = |zone: &str| match zone.as_bytes() {
        [b'z'] => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => [h1, h2, m1, m2].into_iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let mut behind = rest.chars();
    let has_dot = behind.next().is_some_and(|dot| dot != '\n');
    let fraction = behind.as_str();
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    is_zone(rest) || (has_dot && (1..=digits).any(|length| fraction.get(length..).is_some_and(is_zone)))
}
