//! Semantic versions as attribute values take them: the grammar of semver.org 2.0.0, nothing more.
//!
//! This only checks whether a text is a semantic version; it neither parses nor compares versions. Numbers are not
//! converted, so their length does not matter. Digits and letters are ASCII.

/// True if `value` matches upstream's regular expression for semantic versions.
///
/// upstream v1.34 `semVerRE`: the core, an optional `-` part without leading zeros in numbers, an optional
/// `+` part.
pub fn is_semver(value: &str) -> bool {
    // A build part may contain `-`, a pre-release part no `+`: cut the build off first.
    let (front, build) = split_optional(value, '+');
    let (core, pre) = split_optional(front, '-');
    core.split('.').count() == 3
        && core.split('.').all(is_number_without_leading_zero)
        && pre.is_none_or(|part| part.split('.').all(is_pre_release_identifier))
        && build.is_none_or(|part| part.split('.').all(is_identifier))
}

/// The parts before and after the first `at`; the whole value and `None` if there is none.
pub fn split_optional(value: &str, at: char) -> (&str, Option<&str>) {
    match value.split_once(at) {
        Some((front, back)) => (front, Some(back)),
        None => (value, None),
    }
}

/// True for digits without a leading zero.
fn is_number_without_leading_zero(part: &str) -> bool {
    let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    digits && (part.len() == 1 || !part.starts_with('0'))
}

/// True for an identifier that has no leading zero if it is a number.
fn is_pre_release_identifier(part: &str) -> bool {
    is_identifier(part)
        && (is_number_without_leading_zero(part) || !part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// True for letters, digits and hyphens; false if empty.
fn is_identifier(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semantic_versions() {
        for (value, valid) in [
            ("1.2.3", true),
            ("0.0.0", true),
            ("1.2.3-alpha.1", true),
            ("1.2.3-0a.--", true),
            ("1.2.3+001.-", true),
            ("1.2.3-a+b-c", true),
            ("1.2.3--", true),
            ("99999999999999999999999.0.0", true),
            ("", false),
            ("v1.2.3", false),
            ("1.2", false),
            ("1.2.3.4", false),
            ("01.2.3", false),
            ("1.2.3-01", false),
            ("1.2.3-", false),
            ("1.2.3+", false),
            ("1.2.3+a+b", false),
            ("1.2.3-a..b", false),
            ("1.2.3\n", false),
            ("1.2.\u{663}", false),
        ] {
            assert_eq!(is_semver(value), valid, "{value:?}");
        }
    }
}
