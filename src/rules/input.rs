//! Rules about objects that cannot be decoded, or only by dropping something: origins `decoding` and `strict`.
//!
//! Nothing is checked here; `api::conform` and the engine find these, this file gives them names.

use super::{Check, Group, Level, Origin, Rule};
use crate::api::conform::{Misfit, MisfitKind};
use crate::finding::{BadValue, Finding, Kind, RuleId};

macro_rules! rule {
    ($origin:ident, $id:literal) => {
        Rule {
            id: RuleId($id),
            origin: Origin::$origin,
            level: Level::Deny,
            doc: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/rules/", $id, ".md")),
        }
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
/// A version or kind that the profile does not serve.
pub const UNSERVED_VERSION: RuleId = RuleId("unserved-version");

/// The finding that states a misfit.
pub fn finding(misfit: Misfit) -> Finding {
    let (rule, kind) = match misfit.kind {
        MisfitKind::WrongType => ("wrong-type", Kind::TypeInvalid),
        MisfitKind::BadTime => ("bad-time", Kind::TypeInvalid),
        MisfitKind::BadQuantity => ("bad-quantity", Kind::TypeInvalid),
        MisfitKind::UnknownField => ("unknown-field", Kind::Forbidden),
        MisfitKind::DuplicateKey => ("duplicate-key", Kind::Duplicate),
    };
    let on_key = matches!(misfit.kind, MisfitKind::UnknownField | MisfitKind::DuplicateKey);
    Finding {
        at: misfit.at,
        rule: RuleId(rule),
        kind,
        server_at: None,
        value: BadValue::Omitted,
        detail: misfit.detail.into(),
        also: Vec::new(),
        on_key,
        help: misfit.help.map(Into::into),
    }
}
