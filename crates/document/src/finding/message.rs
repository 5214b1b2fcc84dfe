//! The message of a finding after its path.
//!
//! Verdicts of the API server keep its message, byte for byte. All other messages are Tollgate's: a lint does not
//! report an invalid or missing value, so its message is its detail alone.

use std::fmt::Write as _;

use super::{BadValue, ErrorType, Finding};

/// Whether a message is worded like those of the API server, or in plain words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageStyle {
    /// The API server's wording: `Unsupported value: "X": supported values: …`.
    ApiServer,
    /// Plain words for the error type and the value, followed by the detail: `"X" is not supported; supported
    /// values: …`.
    Documented,
    /// Only the detail, which is a complete message.
    Plain,
}

impl Finding {
    /// The message without the path, in the given style. [`MessageStyle::Plain`] has nothing to print without a detail, and
    /// then gives the API server's message.
    pub fn message_without_path(&self, style: MessageStyle) -> String {
        match style {
            // Nothing to print but the type of error.
            _ if self.detail.is_empty() && style != MessageStyle::Documented => {
                self.server_message_without_path()
            }
            MessageStyle::ApiServer => self.server_message_without_path(),
            MessageStyle::Plain => self.detail.to_string(),
            MessageStyle::Documented => self.documented_rule_message(),
        }
    }

    /// The message with the path as the user wrote it, `path: body`; only the body if the path is empty.
    pub fn message_with_path(&self, style: MessageStyle) -> String {
        let (field, body) = (self.user_path(), self.message_without_path(style));
        if field.is_empty() { body } else { format!("{field}: {body}") }
    }

    /// Returns the message without the path for a rule that only the API documentation states.
    fn documented_rule_message(&self) -> String {
        let value = &self.value;
        let mut text = match self.kind {
            ErrorType::Required => "this field is required".to_owned(),
            ErrorType::NotSupported => format!("{value} is not supported"),
            ErrorType::Duplicate => format!("{value} is already listed"),
            ErrorType::NotFound => format!("{value} was not found"),
            ErrorType::TooLong => "is too long".to_owned(),
            ErrorType::TooShort => "is too short".to_owned(),
            ErrorType::TooMany | ErrorType::TooFew => format!("has {value} items"),
            ErrorType::Invalid | ErrorType::TypeInvalid
                if self.detail.is_empty() || value.reads_well_in_sentence() =>
            {
                format!("{value} is invalid")
            }
            _ => String::new(),
        };
        if !self.detail.is_empty() {
            let separator = match self.kind {
                _ if text.is_empty() => "",
                // Its detail lists the values that are.
                ErrorType::NotSupported => "; ",
                _ => ": ",
            };
            _ = write!(text, "{separator}{}", self.detail);
        }
        text
    }
}

impl BadValue {
    /// True if the value is a scalar that reads well in a sentence; false for null, empty strings and containers.
    fn reads_well_in_sentence(&self) -> bool {
        match self {
            BadValue::Omitted | BadValue::Null => false,
            BadValue::Str(text) => !text.is_empty(),
            BadValue::Json(json) => json.len() > 2 && !json.starts_with(['{', '[']),
            BadValue::Int(_) | BadValue::Excess { .. } | BadValue::Bool(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MessageStyle::{ApiServer, Documented, Plain};
    use crate::field::Path;
    use crate::finding::{BadValue, ErrorType, Finding, FindingLevel, Rule, RuleOrigin};

    static RULE: Rule = Rule::new("a", RuleOrigin::Lint, FindingLevel::Warn);

    fn finding(kind: ErrorType, value: BadValue, detail: &'static str) -> Finding {
        Finding::new(&RULE, Path::ROOT.field("spec").owned(), kind, value, detail)
    }

    #[test]
    fn only_verdicts_of_the_api_server_begin_with_its_words() {
        let missing = finding(ErrorType::Required, BadValue::Omitted, "set it");
        assert_eq!(missing.message_with_path(ApiServer), "spec: Required value: set it");
        assert_eq!(missing.message_with_path(Documented), "spec: this field is required: set it");
        assert_eq!(missing.message_with_path(Plain), "spec: set it");
        let wrong = finding(ErrorType::Invalid, BadValue::Int(0), "must be greater than 0");
        assert_eq!(wrong.message_with_path(Documented), "spec: 0 is invalid: must be greater than 0");
        let object = finding(ErrorType::Invalid, BadValue::Json("{\"a\":1}".into()), "field is immutable");
        assert_eq!(object.message_with_path(Documented), "spec: field is immutable");
        let many = finding(ErrorType::TooMany, BadValue::Int(17), "at most 16 are allowed");
        assert_eq!(many.message_with_path(Documented), "spec: has 17 items: at most 16 are allowed");
    }

    #[test]
    fn a_finding_without_a_detail_still_says_something() {
        let twice = finding(ErrorType::Duplicate, BadValue::str("b"), "");
        assert_eq!(twice.message_with_path(ApiServer), "spec: Duplicate value: \"b\"");
        assert_eq!(twice.message_with_path(Plain), "spec: Duplicate value: \"b\"");
        assert_eq!(twice.message_with_path(Documented), "spec: \"b\" is already listed");
    }
}
