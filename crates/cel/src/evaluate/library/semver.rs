//! Semantic versions in expressions, with the errors of the library that upstream reads them with.
//!
//! Laxer than what an attribute may hold (`tollgate_formats::names::is_semver`): only characters and leading zeros are
//! looked at. Build metadata is kept for the text and not compared.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use tollgate_formats::gofmt;
use tollgate_formats::names::split_optional;

use crate::evaluate::value::{Evaluated, Value, eval_error};

#[derive(Debug)]
pub(in crate::evaluate) struct Semver {
    numbers: [u64; 3],
    pre_release: Vec<Identifier>,
    build: Vec<String>,
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
        let (major, minor) = (version_number(major, "major")?, version_number(minor, "minor")?);
        let (front, build) = split_optional(patch, '+');
        let (patch, pre_release) = split_optional(front, '-');
        let patch = version_number(patch, "patch")?;
        let pre_release = pre_release.into_iter().flat_map(|part| part.split('.')).map(parse_identifier);
        let pre_release = pre_release.collect::<Result<Vec<_>, _>>()?;
        let build = build.into_iter().flat_map(|part| part.split('.')).map(|part| {
            if part.is_empty() {
                Err("Build meta data is empty".to_owned())
            } else if part.chars().all(is_semver_identifier_char) {
                Ok(part.to_owned())
            } else {
                Err(format!("Invalid character(s) found in build meta data {}", gofmt::quote(part)))
            }
        });
        Ok(Semver { numbers: [major, minor, patch], pre_release, build: build.collect::<Result<_, _>>()? })
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

impl fmt::Display for Semver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        for (index, part) in self.pre_release.iter().enumerate() {
            f.write_str(if index == 0 { "-" } else { "." })?;
            match part {
                Identifier::Number(number) => write!(f, "{number}")?,
                Identifier::Text(text) => f.write_str(text)?,
            }
        }
        for (index, part) in self.build.iter().enumerate() {
            f.write_str(if index == 0 { "+" } else { "." })?;
            f.write_str(part)?;
        }
        Ok(())
    }
}

fn version_number(part: &str, name: &str) -> Result<u64, String> {
    if !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {name} number {}", gofmt::quote(part)));
    }
    if part.len() > 1 && part.starts_with('0') {
        let name: String =
            name.chars().take(1).map(|c| c.to_ascii_uppercase()).chain(name.chars().skip(1)).collect();
        return Err(format!("{name} number must not contain leading zeroes {}", gofmt::quote(part)));
    }
    parse_uint(part)
}

/// Parses digits like Go's `strconv.ParseUint`.
fn parse_uint(digits: &str) -> Result<u64, String> {
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
        if part.len() > 1 && part.starts_with('0') {
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {}",
                gofmt::quote(part)
            ));
        }
        return parse_uint(part).map(Identifier::Number);
    }
    if part.chars().all(is_semver_identifier_char) {
        return Ok(Identifier::Text(part.to_owned()));
    }
    Err(format!("Invalid character(s) found in prerelease {}", gofmt::quote(part)))
}

fn is_semver_identifier_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-'
}
