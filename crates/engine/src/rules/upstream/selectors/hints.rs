//! Hints for expressions that do not compile, in addition to the server's message.

use std::borrow::Cow;

use tollgate_api::conform::suggest::nearest_if_unambiguous;

/// The fields of the variable `device` in selectors, for hints about misspelled names.
const DEVICE_FIELDS: [&str; 4] = ["driver", "attributes", "capacity", "allowMultipleAllocations"];
/// The variables of selectors, for hints about misspelled names.
const VARIABLES: [&str; 1] = ["device"];
/// Words of other languages, such as `and`, and the CEL operators for them.
const WORDS_OF_OTHER_LANGUAGES: [(&str, &str); 3] = [
    (" and ", "use `&&` for a logical AND"),
    (" or ", "use `||` for a logical OR"),
    (" not ", "use `!` for a logical NOT"),
];

/// Returns a hint for an expression that does not compile, by the error; `None` if nothing probable is found.
pub(super) fn hint_for_error(text: &str, error: &str) -> Option<Cow<'static, str>> {
    if let Some(hint) = hint_for_name(error, "undefined field '", &DEVICE_FIELDS) {
        return Some(hint);
    }
    if let Some(hint) = hint_for_name(error, "undeclared reference to '", &VARIABLES) {
        return Some(hint);
    }
    if !error.contains("Syntax error") {
        return None;
    }
    if text.trim().is_empty() {
        return Some("write an expression, such as `device.driver == \"gpu.example.com\"`".into());
    }
    if has_unpaired_sign(text, b'=', b"=!<>") {
        return Some("use `==` to compare".into());
    }
    if has_unpaired_sign(text, b'&', b"&") {
        return Some("use `&&` for a logical AND".into());
    }
    if has_unpaired_sign(text, b'|', b"|") {
        return Some("use `||` for a logical OR".into());
    }
    WORDS_OF_OTHER_LANGUAGES.iter().find(|(word, _)| text.contains(word)).map(|(_, hint)| (*hint).into())
}

/// Returns ``did you mean `X`?`` for the name that follows `before` in an error; `None` if no known name is near.
fn hint_for_name(error: &str, before: &str, known: &[&'static str]) -> Option<Cow<'static, str>> {
    let (_, rest) = error.split_once(before)?;
    let name = rest.split('\'').next()?;
    nearest_if_unambiguous(name, known.iter().copied()).map(|meant| format!("did you mean `{meant}`?").into())
}

/// True if `sign` occurs outside of strings without one of its `partners` beside it, such as a single `&`.
fn has_unpaired_sign(text: &str, sign: u8, partners: &[u8]) -> bool {
    let bytes = text.as_bytes();
    let mut quote = None;
    bytes.iter().enumerate().any(|(at, &byte)| {
        match quote {
            Some(open) if byte == open => quote = None,
            None if matches!(byte, b'"' | b'\'') => quote = Some(byte),
            _ => {}
        }
        let neighbour =
            |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(|byte| partners.contains(byte));
        let is_paired = neighbour(at.checked_sub(1)) || bytes.get(at + 1) == Some(&sign);
        quote.is_none() && byte == sign && !is_paired
    })
}

#[cfg(test)]
mod tests {
    use super::hint_for_error;

    #[test]
    fn what_people_of_other_languages_write() {
        let syntax = "ERROR: <input>:1:1: Syntax error: x";
        let table = [
            ("a = b", syntax, Some("use `==` to compare")),
            ("a == b & c == d", syntax, Some("use `&&` for a logical AND")),
            ("a | b", syntax, Some("use `||` for a logical OR")),
            ("a == b and c", syntax, Some("use `&&` for a logical AND")),
            ("a == \"=\" c", syntax, None),
            ("a <= b c", syntax, None),
            ("", syntax, Some("write an expression, such as `device.driver == \"gpu.example.com\"`")),
            ("device.attribute", "ERROR: undefined field 'attribute'", Some("did you mean `attributes`?")),
            (
                "devices",
                "undeclared reference to 'devices' (in container '')",
                Some("did you mean `device`?"),
            ),
            ("x", "undeclared reference to 'x'", None),
        ];
        for (text, error, expected) in table {
            assert_eq!(hint_for_error(text, error).as_deref(), expected, "{text}");
        }
    }
}
