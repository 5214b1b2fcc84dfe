//! Semantic versions in expressions, with the errors of the library that upstream reads them with.
//!
//! Laxer than what an attribute may hold (`tollgate_formats::names::is_semver`): only characters and leading zeros are
//! looked at. Build metadata is kept for the text and not compared.

use std::cmp::Ordering;
use std::sync::Arc;

use tollgate_formats::gofmt;
use tollgate_formats::names::split_optional;

use crate::evaluate::value::{Evaluated, Value, eval_error};

#[derive(Debug)]
pub(in crate::evaluate) struct Semver {
    /// The version as it was written, which is also how it is printed.
    pub(in crate::evaluate) text: String,
    numbers: [u64; 3],
    pre_release: Vec<Identifier>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

pub(super) fn try_call(name: &str, args: &[Value]) -> Option<Evaluated> {
    Some(match (name, args) {
        ("semver", _) => {
            parse_argument(args)?.map_or_else(eval_error, |version| Ok(Value::Semver(Arc::new(version))))
        }
        ("isSemver", _) => Ok(Value::Bool(parse_argument(args)?.is_ok())),
        ("major", [Value::Semver(version)]) => Ok(Value::Int(version.numbers[0].cast_signed())),
        ("minor", [Value::Semver(version)]) => Ok(Value::Int(version.numbers[1].cast_signed())),
        ("patch", [Value::Semver(version)]) => Ok(Value::Int(version.numbers[2].cast_signed())),
        _ => return None,
    })
}

fn parse_argument(args: &[Value]) -> Option<Result<Semver, String>> {
    match args {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => Some(Semver::parse(text)),
        [Value::String(text), Value::Bool(true)] => Some(parse_normalized(text)),
        _ => None,
    }
}

/// Parses a version after normalization: a leading `v`, missing parts and leading zeros are accepted.
fn parse_normalized(text: &str) -> Result<Semver, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(str::to_owned).collect();
    for part in &mut parts {
        if part.len() > 1 {
            let trimmed = part.trim_start_matches('0');
            *part = if trimmed.starts_with(|c: char| c.is_ascii_digit()) {
                trimmed.to_owned()
            } else {
                format!("0{trimmed}")
            };
        }
    }
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err("short version cannot contain PreRelease/Build meta data".to_owned());
    }
    parts.resize(3, "0".to_owned());
    Semver::parse(&parts.join("."))
}

impl Semver {
    /// Parses a version like `Parse` of blang/semver, with its error messages.
    pub(in crate::evaluate) fn parse(text: &str) -> Result<Semver, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, patch] = parts.as_slice() else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let major = version_number(major, ["major", "Major number"])?;
        let minor = version_number(minor, ["minor", "Minor number"])?;
        let (front, build) = split_optional(patch, '+');
        let (patch, pre_release) = split_optional(front, '-');
        let patch = version_number(patch, ["patch", "Patch number"])?;
        let pre_release = pre_release.into_iter().flat_map(|part| part.split('.')).map(parse_identifier);
        let pre_release = pre_release.collect::<Result<Vec<_>, _>>()?;
        for part in build.into_iter().flat_map(|part| part.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !part.chars().all(is_semver_identifier_char) {
                return Err(format!("Invalid character(s) found in build meta data {}", gofmt::quote(part)));
            }
        }
        Ok(Semver { text: text.to_owned(), numbers: [major, minor, patch], pre_release })
    }

    pub(in crate::evaluate) fn order(&self, other: &Semver) -> Ordering {
        // A release comes after its pre-releases.
        let is_release = self.pre_release.is_empty().cmp(&other.pre_release.is_empty());
        self.numbers
            .cmp(&other.numbers)
            .then(is_release)
            .then_with(|| self.pre_release.cmp(&other.pre_release))
    }
}

fn version_number(part: &str, [name, what]: [&str; 2]) -> Result<u64, String> {
    if !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {name} number {}", gofmt::quote(part)));
    }
    parse_uint_without_leading_zeros(part, what)
}

/// Parses digits like Go's `strconv.ParseUint`, but without leading zeros. `what` names them in the error.
fn parse_uint_without_leading_zeros(digits: &str, what: &str) -> Result<u64, String> {
    if digits.len() > 1 && digits.starts_with('0') {
        return Err(format!("{what} must not contain leading zeroes {}", gofmt::quote(digits)));
    }
    digits.parse().ok().ok_or_else(|| {
        let problem = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
        format!("strconv.ParseUint: parsing {}: {problem}", gofmt::quote(digits))
    })
}

fn parse_identifier(part: &str) -> Result<Identifier, String> {
    if part.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if part.bytes().all(|byte| byte.is_ascii_digit()) {
        return parse_uint_without_leading_zeros(part, "Numeric PreRelease version").map(Identifier::Number);
    }
    if part.chars().all(is_semver_identifier_char) {
        return Ok(Identifier::Text(part.to_owned()));
    }
    Err(format!("Invalid character(s) found in prerelease {}", gofmt::quote(part)))
}

fn is_semver_identifier_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-'
}
