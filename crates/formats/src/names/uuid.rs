//! The two ways in which Kubernetes releases check that a share ID is a UUID.
//!
//! Up to 1.36, a lenient parser accepts URNs, braces and digits without hyphens, and then a second check requires the
//! normal form; each has its own error text. 1.37 only checks for the normal form.

use std::borrow::Cow;

use super::{Problem, texts};
use crate::gofmt;

/// True if `value` is a UUID in lower case, the only form that 1.37 accepts. The error text is
/// [`NOT_LOWERCASE_UUID`](super::NOT_LOWERCASE_UUID).
pub fn is_lowercase_uuid(value: &str) -> bool {
    has_hyphenated_uuid_shape(value.as_bytes()) && !value.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// The text with which 1.34 to 1.36 refuse a share id; `None` if they accept it.
///
/// upstream v1.36 `validateUID`, on top of the lenient parser of its UUID library.
pub fn uid_problem(value: &str) -> Option<Problem> {
    let bytes = value.as_bytes();
    let parses = match bytes.len() {
        36 => has_hyphenated_uuid_shape(bytes),
        32 => bytes.iter().all(u8::is_ascii_hexdigit),
        45 => {
            let (scheme, rest) = bytes.split_at_checked(9)?;
            if !scheme.eq_ignore_ascii_case(b"urn:uuid:") {
                let scheme = gofmt::quote_bytes(scheme);
                return Some(Cow::Owned(format!("error validating uid: invalid urn prefix: {scheme}")));
            }
            has_hyphenated_uuid_shape(rest)
        }
        38 => match bytes {
            [b'{', inner @ .., b'}'] => has_hyphenated_uuid_shape(inner),
            _ => return Some(Cow::Borrowed(texts::INVALID_UID_BRACKETS)),
        },
        length => return Some(Cow::Owned(format!("error validating uid: invalid UUID length: {length}"))),
    };
    if !parses {
        Some(Cow::Borrowed(texts::INVALID_UID))
    } else if is_lowercase_uuid(value) {
        None
    } else {
        Some(Cow::Borrowed(texts::UID_NOT_NORMALIZED))
    }
}

/// True for hexadecimal digits of either case in the form 8-4-4-4-12.
fn has_hyphenated_uuid_shape(bytes: &[u8]) -> bool {
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(idx, byte)| match idx {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_ids() {
        let normal = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
        for (value, problem) in [
            (normal.to_owned(), None),
            (String::new(), Some("error validating uid: invalid UUID length: 0")),
            ("é".to_owned(), Some("error validating uid: invalid UUID length: 2")),
            (normal.to_uppercase(), Some(texts::UID_NOT_NORMALIZED)),
            (normal.replace('-', ""), Some(texts::UID_NOT_NORMALIZED)),
            (format!("{{{normal}}}"), Some(texts::UID_NOT_NORMALIZED)),
            (format!("URN:uuid:{normal}"), Some(texts::UID_NOT_NORMALIZED)),
            (format!("({normal})"), Some(texts::INVALID_UID_BRACKETS)),
            (
                format!("urn:uid:\"{normal}"),
                Some("error validating uid: invalid urn prefix: \"urn:uid:\\\"\""),
            ),
            (
                format!("12345678é{}", "a".repeat(35)),
                Some("error validating uid: invalid urn prefix: \"12345678\\xc3\""),
            ),
            (normal.replace('6', "g"), Some(texts::INVALID_UID)),
            (normal.replace('-', "_"), Some(texts::INVALID_UID)),
            ("z".repeat(32), Some(texts::INVALID_UID)),
        ] {
            assert_eq!(uid_problem(&value).as_deref(), problem, "{value}");
            assert_eq!(is_lowercase_uuid(&value), problem.is_none(), "{value}");
        }
    }
}
