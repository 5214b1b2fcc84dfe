//! Findings: problems in an object.
//!
//! A finding states a fact: the rule, the path, the error type, the value, and what would be accepted. It has no
//! level (which policies set), no position (which is computed from the document and the path when it is printed), no
//! file, and it is not serialized.
//!
//! Invariant: [`Finding::server_message_without_path`] is byte for byte what the API server prints after the path.

mod budget;
mod fix;
mod message;
mod rule;

pub use budget::{FindingBudget, Findings};
pub use fix::is_taint_holding_field;
pub use fix::{Applicability, Edit, Fix, NewValue};
pub use message::MessageStyle;
pub use rule::{EditorTag, FindingLevel, Rule, RuleId, RuleInput, RuleOrigin};

use std::borrow::Cow;
use std::fmt;

use crate::field::FieldPath;

/// Error types of the Kubernetes API (`field.ErrorType`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ErrorType {
    /// A required value is missing.
    Required,
    /// The value is malformed.
    Invalid,
    /// The value is not one of the supported values.
    NotSupported,
    /// The value is a duplicate.
    Duplicate,
    /// The field must not be set.
    Forbidden,
    /// The value refers to something that does not exist.
    NotFound,
    /// The value has too many bytes or characters.
    TooLong,
    /// The string has too few characters.
    TooShort,
    /// The list has too many items.
    TooMany,
    /// The list has too few items.
    TooFew,
    /// The value has the wrong JSON type.
    TypeInvalid,
    /// The server failed internally.
    Internal,
    /// Not an error: states the number of findings that were omitted.
    LeftOut,
}

impl ErrorType {
    /// The reason in `status.details.causes[].reason`.
    pub fn cause_reason(self) -> &'static str {
        self.cause_reason_and_message_prefix().0
    }

    /// The cause, and the beginning of the API server's message.
    fn cause_reason_and_message_prefix(self) -> (&'static str, &'static str) {
        match self {
            ErrorType::Required => ("FieldValueRequired", "Required value"),
            ErrorType::Invalid => ("FieldValueInvalid", "Invalid value"),
            ErrorType::NotSupported => ("FieldValueNotSupported", "Unsupported value"),
            ErrorType::Duplicate => ("FieldValueDuplicate", "Duplicate value"),
            ErrorType::Forbidden => ("FieldValueForbidden", "Forbidden"),
            ErrorType::NotFound => ("FieldValueNotFound", "Not found"),
            ErrorType::TooLong => ("FieldValueTooLong", "Too long"),
            ErrorType::TooShort => ("FieldValueTooShort", "Too short"),
            ErrorType::TooMany | ErrorType::LeftOut => ("FieldValueTooMany", "Too many"),
            ErrorType::TooFew => ("FieldValueTooFew", "Too few"),
            ErrorType::TypeInvalid => ("FieldValueTypeInvalid", "Invalid value"),
            ErrorType::Internal => ("InternalError", "Internal error"),
        }
    }

    /// True if the API server's message for this error type includes the value.
    pub fn shows_value(self) -> bool {
        !matches!(
            self,
            ErrorType::Required
                | ErrorType::Forbidden
                | ErrorType::TooLong
                | ErrorType::TooShort
                | ErrorType::Internal
                | ErrorType::LeftOut
        )
    }
}

/// The invalid value of a finding, as the API server prints it in its messages.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BadValue {
    /// The value is not shown.
    Omitted,
    /// The value `null`.
    Null,
    /// A plain Go string, printed with `%q`.
    Str(Box<str>),
    /// A value that Go prints with `encoding/json`, as JSON text.
    Json(Box<str>),
    /// An integer.
    Int(i64),
    /// A number of items that exceeds a limit. Only the number is printed.
    Excess {
        /// Actual number of items.
        count: usize,
        /// Maximum number of items.
        limit: usize,
    },
    /// A boolean.
    Bool(bool),
}

impl BadValue {
    /// A plain Go string, which messages print with `%q`.
    pub fn str(text: &str) -> BadValue {
        BadValue::Str(text.into())
    }

    /// A named Go string type: printed as a JSON string.
    pub fn json_quoted_string(text: &str) -> BadValue {
        BadValue::Json(tollgate_formats::gofmt::json_string(text).into())
    }

    /// A number of items, at most the largest `i64`.
    pub fn count(n: usize) -> BadValue {
        BadValue::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

/// Converts text to a plain Go string.
impl From<&str> for BadValue {
    fn from(text: &str) -> BadValue {
        BadValue::str(text)
    }
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadValue::Omitted => f.write_str("\"<value omitted>\""),
            BadValue::Null => f.write_str("null"),
            BadValue::Str(text) => f.write_str(&tollgate_formats::gofmt::quote(text)),
            BadValue::Json(json) => f.write_str(json),
            BadValue::Int(number) => write!(f, "{number}"),
            BadValue::Excess { count, .. } => write!(f, "{count}"),
            BadValue::Bool(value) => write!(f, "{value}"),
        }
    }
}

/// A problem in an object. Findings are sorted by path, then by rule.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Finding {
    /// Path in the user's file.
    pub at: FieldPath,
    /// The rule that reports the finding.
    pub rule: RuleId,
    /// The API error type of the finding.
    pub kind: ErrorType,
    /// The invalid value.
    pub value: BadValue,
    /// The accepted values, or another explanation.
    pub detail: Cow<'static, str>,
    /// The path that the API server prints, if it differs.
    pub server_at: Option<String>,
    /// Related paths, such as the first definition of a duplicate.
    pub also: Vec<FieldPath>,
    /// True if the finding is about the key, not the value of the field, as for unknown fields and duplicate
    /// keys.
    pub on_key: bool,
    /// A hint for users in addition to the server's message, such as "did you mean …".
    pub help: Option<Cow<'static, str>>,
    /// A shorter detail for webhook warnings.
    pub short: Option<Cow<'static, str>>,
    /// Reason and contact of the policy, for a second warning of the webhook.
    pub advice: Option<Cow<'static, str>>,
    /// The time, in RFC 3339 format, from which a policy that currently warns will deny. The detail contains
    /// it as well.
    pub denied_from: Option<Box<str>>,
    /// The fix, if exactly one is correct.
    pub fix: Option<Box<Fix>>,
}

impl Finding {
    /// Creates a finding without related paths and help, for which the server prints the user's path.
    pub fn new(
        rule: RuleId,
        at: FieldPath,
        kind: ErrorType,
        value: BadValue,
        detail: impl Into<Cow<'static, str>>,
    ) -> Finding {
        let detail = detail.into();
        Finding {
            at,
            rule,
            kind,
            value,
            detail,
            server_at: None,
            also: Vec::new(),
            on_key: false,
            help: None,
            short: None,
            advice: None,
            denied_from: None,
            fix: None,
        }
    }

    /// True if path, rule, error type, value and detail are equal. Such findings are merged, even if the
    /// server prints different paths.
    pub fn is_equal_except_server_path(&self, other: &Finding) -> bool {
        (&self.at, self.rule, self.kind, &self.value, &self.detail)
            == (&other.at, other.rule, other.kind, &other.value, &other.detail)
    }

    /// Returns the API server's message after the path: `Unsupported value: "X": supported values: …`. For
    /// messages to users, see `Diagnostic` in the engine.
    pub fn server_message_without_path(&self) -> String {
        use fmt::Write as _;
        if self.kind == ErrorType::LeftOut {
            return self.detail.to_string();
        }
        let mut out = self.kind.cause_reason_and_message_prefix().1.to_owned();
        if self.kind.shows_value() {
            _ = write!(out, ": {}", self.value);
        }
        if !self.detail.is_empty() {
            _ = write!(out, ": {}", self.detail);
        }
        out
    }

    /// The path as the user wrote it.
    pub fn user_path(&self) -> String {
        self.at.print(crate::field::PathAudience::User)
    }

    /// The path the API server prints.
    pub fn server_path(&self) -> String {
        self.server_at.clone().unwrap_or_else(|| self.user_path())
    }
}

impl AsRef<Finding> for Finding {
    fn as_ref(&self) -> &Finding {
        self
    }
}
