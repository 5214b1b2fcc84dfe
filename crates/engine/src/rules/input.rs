//! Rules about objects that cannot be decoded, or only by dropping something: origins `decoding` and `strict`.
//!
//! Nothing is checked here: `api::conform` and the engine find these, and this file turns them into findings.

use super::table::{BAD_QUANTITY, BAD_TIME, DUPLICATE_KEY, UNKNOWN_FIELD, WRONG_CONTENT_TYPE};
use tollgate_api::conform::{DecodeError, DecodeErrorKind};
use tollgate_document::field::{FieldPath, PathAudience};
use tollgate_document::finding::{BadValue, ErrorType, Finding};

/// Returns the finding for a key that occurs twice in an object of kind List, which no server ever sees.
pub fn kind_list_duplicate_key_finding(at: FieldPath) -> Finding {
    let field = at.print(PathAudience::User);
    let detail = format!("duplicate field {}", tollgate_formats::gofmt::quote(&field));
    let finding = Finding::new(DUPLICATE_KEY, at, ErrorType::Duplicate, BadValue::Omitted, detail);
    let help = Some("kubectl uses the last one; remove the others".into());
    Finding { on_key: true, help, ..finding }
}

/// Turns an error of decoding an object into a finding of the matching rule.
pub fn decoding_finding(error: DecodeError) -> Finding {
    let (rule, kind) = match error.kind {
        DecodeErrorKind::WrongType => (WRONG_CONTENT_TYPE, ErrorType::TypeInvalid),
        DecodeErrorKind::BadTime => (BAD_TIME, ErrorType::TypeInvalid),
        DecodeErrorKind::BadQuantity => (BAD_QUANTITY, ErrorType::TypeInvalid),
        DecodeErrorKind::UnknownField => (UNKNOWN_FIELD, ErrorType::Forbidden),
        DecodeErrorKind::DuplicateKey => (DUPLICATE_KEY, ErrorType::Duplicate),
    };
    let on_key = matches!(error.kind, DecodeErrorKind::UnknownField | DecodeErrorKind::DuplicateKey);
    Finding {
        on_key,
        help: error.help.map(Into::into),
        fix: error.fix,
        ..Finding::new(rule, error.at, kind, BadValue::Omitted, error.detail)
    }
}
