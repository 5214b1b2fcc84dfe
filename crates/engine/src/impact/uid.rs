//! UIDs as they are stored: a UUID in its usual form is kept in place, not as 36 bytes elsewhere in memory.
//!
//! A report compares the UID of every pod with those of the owner and the consumers of its claims, so reading UIDs
//! takes much of its time. UIDs are never displayed, only compared; two are equal if their texts are.

/// The UID of an object, in 16 bytes if it is a UUID.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Uid {
    /// 32 lowercase hexadecimal digits with four dashes, which every API server writes. Bytes, because a number would
    /// be aligned to 16.
    Uuid([u8; 16]),
    /// A UID in another format.
    Text(Box<str>),
}

impl From<&str> for Uid {
    fn from(text: &str) -> Uid {
        parse_uuid(text).map_or_else(|| Uid::Text(text.into()), |number| Uid::Uuid(number.to_ne_bytes()))
    }
}

/// Returns the digits of a UUID as a number; `None` unless it has 32 lowercase hexadecimal digits and four dashes.
fn parse_uuid(text: &str) -> Option<u128> {
    let bytes: &[u8; 36] = text.as_bytes().try_into().ok()?;
    let mut number = 0;
    for (position, byte) in bytes.iter().enumerate() {
        let digit = match (position, byte) {
            (8 | 13 | 18 | 23, b'-') => continue,
            (8 | 13 | 18 | 23, _) => return None,
            (_, b'0'..=b'9') => byte - b'0',
            (_, b'a'..=b'f') => byte - b'a' + 10,
            _ => return None,
        };
        number = number << 4 | u128::from(digit);
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::Uid;

    #[test]
    fn uids_are_equal_if_their_texts_are() {
        let texts = [
            "5f8f7e2c-1111-4222-8333-000000000001",
            "5f8f7e2c-1111-4222-8333-000000000010",
            "05f8f7e2-1111-4222-8333-000000000001",
            "5F8F7E2C-1111-4222-8333-000000000001",
            "5f8f7e2c11114222833300000000000000001",
            "5f8f7e2c111142228333000000000001",
            "5f8f7e2c-1111-4222-83330-00000000001",
            "5f8f7e2c-1111-4222-8333-00000000000g",
            "5f8f7e2c-1111-4222-8333-0000000000é",
            "0",
            "",
        ];
        for (position, text) in texts.iter().enumerate() {
            assert_eq!(matches!(Uid::from(*text), Uid::Uuid(_)), position < 3, "{text}");
            for other in texts {
                assert_eq!(Uid::from(*text) == Uid::from(other), *text == other, "{text} {other}");
            }
        }
    }
}
