//! Rules about objects that cannot be decoded, or only by dropping something: origins `decoding` and `strict`.
//!
//! Nothing is checked here; `api::conform` and the engine find these, this file gives them names.

use super::{Check, Group, Level, Origin, Rule};
use tollgate_api::conform::{DecodeError, DecodeErrorKind};
use tollgate_document::field::{FieldPath, PathStyle};
use tollgate_document::finding::{BadValue, ErrorType, Finding, RuleId};

macro_rules! rule {
    ($origin:ident, $id:literal) => {
        Rule { id: RuleId($id), origin: Origin::$origin, level: Level::Deny }
    };
}

/// The groups of this file.
pub static GROUPS: &[Group] = &[Group {
    rules: &[
        rule!(Decoding, "missing-type"),
        rule!(Decoding, "unserved-version"),
        rule!(Decoding, "wrong-type"),
        rule!(Decoding, "bad-time"),
        rule!(Decoding, "bad-quantity"),
        rule!(Decoding, "findings-left-out"),
        rule!(Strict, "unknown-field"),
        rule!(Strict, "duplicate-key"),
    ],
    check: Check::Engine,
}];

/// No apiVersion or no kind.
pub const MISSING_TYPE: RuleId = RuleId("missing-type");
/// A value of another JSON type.
pub const WRONG_TYPE: RuleId = RuleId("wrong-type");
/// A field that the schema does not have.
pub const UNKNOWN_FIELD: RuleId = RuleId("unknown-field");
/// A key that is given twice.
pub const DUPLICATE_KEY: RuleId = RuleId("duplicate-key");
/// A version or kind that the profile does not serve.
pub const UNSERVED_VERSION: RuleId = RuleId("unserved-version");

/// The finding for a key of a list that is given twice: no server ever sees the list.
pub fn duplicate_key_of_list(at: FieldPath) -> Finding {
    let field = at.print(PathStyle::User);
    let detail = format!("duplicate field {}", tollgate_formats::gofmt::quote(&field));
    let mut finding = Finding::new(DUPLICATE_KEY, at, ErrorType::Duplicate, BadValue::Omitted, detail);
    finding.on_key = true;
    finding.help = Some("kubectl uses the last one; remove the others".into());
    finding
}

/// The finding for an error of decoding.
pub fn finding(error: DecodeError) -> Finding {
    let (rule, kind) = match error.kind {
        DecodeErrorKind::WrongType => ("wrong-type", ErrorType::TypeInvalid),
        DecodeErrorKind::BadTime => ("bad-time", ErrorType::TypeInvalid),
        DecodeErrorKind::BadQuantity => ("bad-quantity", ErrorType::TypeInvalid),
        DecodeErrorKind::UnknownField => ("unknown-field", ErrorType::Forbidden),
        DecodeErrorKind::DuplicateKey => ("duplicate-key", ErrorType::Duplicate),
    };
    let on_key = matches!(error.kind, DecodeErrorKind::UnknownField | DecodeErrorKind::DuplicateKey);
    Finding {
        at: error.at,
        rule: RuleId(rule),
        kind,
        server_at: None,
        value: BadValue::Omitted,
        detail: error.detail.into(),
        also: Vec::new(),
        on_key,
        help: error.help.map(Into::into),
        short: None,
        advice: None,
        fix: error.fix,
    }
}
