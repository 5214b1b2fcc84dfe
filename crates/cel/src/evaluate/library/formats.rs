//! Named formats of Kubernetes: what a text must look like, and what is wrong with it.

use std::borrow::Cow;
use std::sync::LazyLock;

use tollgate_formats::names::{self, KeyErrorWord, LengthUnitWord, Problem};
use tollgate_formats::{gofmt, gotime};

use super::patterns::{self, GoPattern};
use super::urlparse;
use crate::evaluate::value::{Evaluated, Value};

/// Checks a text, and passes each problem to the callback.
type FormatCheck = fn(&str, &mut dyn FnMut(Problem));

#[derive(Debug)]
pub(in crate::evaluate) struct NamedFormat {
    /// Name of the format in expressions. A format whose name ends with `Prefix` checks the beginning of a name.
    name: &'static str,
    /// Name by which two formats are compared.
    pub(in crate::evaluate) title: &'static str,
    check: FormatCheck,
    /// Cost of a validation, as the length of an equally expensive pattern.
    pub(in crate::evaluate) pattern_size: u64,
}

const fn new_format(
    name: &'static str,
    title: &'static str,
    pattern_size: u64,
    check: FormatCheck,
) -> NamedFormat {
    NamedFormat { name, title, check, pattern_size }
}

/// The named formats of upstream v1.36 `ConstantFormats`.
static FORMATS: [NamedFormat; 13] = [
    new_format("dns1123Label", "DNS1123Label", 30, check_dns_label),
    new_format("dns1123Subdomain", "DNS1123Subdomain", 60, check_dns_subdomain),
    new_format("dns1035Label", "DNS1035Label", 30, check_dns_1035_label),
    new_format("qualifiedName", "QualifiedName", 60, check_qualified_name),
    new_format("dns1123LabelPrefix", "DNS1123LabelPrefix", 30, check_dns_label),
    new_format("dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", 60, check_dns_subdomain),
    new_format("dns1035LabelPrefix", "DNS1035LabelPrefix", 30, check_dns_1035_label),
    new_format("labelValue", "LabelValue", 40, |text, report| {
        names::check_label_value(text, LengthUnitWord::Bytes, report)
    }),
    new_format("uri", "URI", 1103, |text, report| {
        if let Err(problem) = urlparse::parse_request_uri(text) {
            report(problem.into());
        }
    }),
    new_format("uuid", "uuid", 70, |text, report| {
        report_unless(matches(&UUID, text), "does not match the UUID format", report)
    }),
    new_format("byte", "byte", 84, |text, report| {
        report_unless(matches(&BASE64, text), "invalid base64", report)
    }),
    new_format("date", "date", 71, |text, report| report_unless(is_date(text), "invalid date", report)),
    new_format("datetime", "datetime", 71, |text, report| {
        report_unless(is_datetime(text), "invalid datetime", report)
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
    let is_prefix = format.name.ends_with("Prefix");
    let text = if is_prefix { mask_trailing_dash_of_name_prefix(text) } else { Cow::Borrowed(text) };
    (format.check)(&text, &mut |problem| problems.push(Value::string(problem)));
    if problems.is_empty() { Value::OPTIONAL_NONE } else { Value::optional_of(Value::list(problems)) }
}

fn report_unless(is_valid: bool, problem: &'static str, report: &mut dyn FnMut(Problem)) {
    if !is_valid {
        report(Cow::Borrowed(problem));
    }
}

/// The text to check as a name in place of a name prefix. A prefix may end with a dash, because more is appended: a
/// letter replaces the dash.
fn mask_trailing_dash_of_name_prefix(text: &str) -> Cow<'_, str> {
    match text.strip_suffix('-') {
        // Upstream drops the character before the dash as well.
        Some(front) if !front.is_empty() => {
            Cow::Owned(format!("{}a", gofmt::byte_prefix(front, front.len() - 1)))
        }
        _ => Cow::Borrowed(text),
    }
}

fn check_dns_label(text: &str, report: &mut dyn FnMut(Problem)) {
    names::check_dns_label(text, LengthUnitWord::Characters, report);
}

fn check_dns_subdomain(text: &str, report: &mut dyn FnMut(Problem)) {
    names::check_dns_subdomain(text, LengthUnitWord::Characters, report);
}

fn check_dns_1035_label(text: &str, report: &mut dyn FnMut(Problem)) {
    report_unless(text.len() <= 63, "must be no more than 63 characters", report);
    let problem = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
         character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
         '[a-z]([-a-z0-9]*[a-z0-9])?')";
    report_unless(matches(&DNS_1035_LABEL, text), problem, report);
}

fn check_qualified_name(text: &str, report: &mut dyn FnMut(Problem)) {
    names::check_label_key(text, LengthUnitWord::Bytes, KeyErrorWord::LabelKey, report);
}

/// A pattern that is compiled when it is first used.
type Pattern = LazyLock<Result<GoPattern, String>>;

static DNS_1035_LABEL: Pattern =
    LazyLock::new(|| patterns::compile_go_pattern("^[a-z]([-a-z0-9]*[a-z0-9])?$"));

/// Hexadecimal digits of either case, with or without each of the four dashes of a UUID.
static UUID: Pattern = LazyLock::new(|| {
    patterns::compile_go_pattern(
        "^[0-9A-Fa-f]{8}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{12}$",
    )
});

static BASE64: Pattern = LazyLock::new(|| {
    patterns::compile_go_pattern(
        "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$",
    )
});

/// The lowercase time of a date and time. The dot before the fraction is any character.
static TIME: Pattern = LazyLock::new(|| {
    patterns::compile_go_pattern(
        "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$",
    )
});

fn matches(pattern: &Pattern, text: &str) -> bool {
    pattern.as_ref().is_ok_and(|pattern| pattern.is_match(text))
}

/// True for a date such as `2006-01-02`.
fn is_date(text: &str) -> bool {
    text.len() == 10 && gotime::parse_rfc3339(&format!("{text}T00:00:00Z")).is_ok()
}

/// True for a date followed by a time.
fn is_datetime(text: &str) -> bool {
    let text = names::go_to_lower(text);
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && matches(&TIME, time)
}
