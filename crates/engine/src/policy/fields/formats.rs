//! Formats of strings in policies, each with the regular expression that schemas have for it.
//!
//! Invariant: the regular expression matches every text that the format accepts. It may also match texts that the
//! format rejects.

use crate::policy::schema::TextFormat;
use crate::tolerance::coverage::KeyPattern;
use tollgate_formats::names::{self, KeyErrorWord, LengthUnitWord};

/// Format of globs for namespaces. Rejects globs that cannot match any name, because they would silently do nothing.
pub(in crate::policy) static NAMESPACE_GLOB: TextFormat = TextFormat {
    pattern: "^[-a-z0-9*?]+$",
    problems: |text| {
        let in_names = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'*' | b'?');
        let message = if text.is_empty() {
            "must not be empty".to_owned()
        } else if text.bytes().all(in_names) {
            return Vec::new();
        } else {
            format!(
                "{text:?} matches no namespace; names consist of lowercase letters, digits and `-`, and patterns can also \
                 contain `*` and `?`"
            )
        };
        vec![message]
    },
};

/// Format of `key` in an entry about tolerations. Rejects keys that no API server accepts, because the entry would
/// silently do nothing.
pub(in crate::policy) static KEY_PATTERN: TextFormat = TextFormat {
    pattern: r"^(\*|[-a-z0-9.]+/\*|([-a-z0-9.]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)$",
    problems: |text| {
        let can_match = match KeyPattern::parse(text) {
            None => false,
            Some(KeyPattern::Any) => true,
            Some(KeyPattern::Prefix(prefix)) => names::is_label_key(&format!("{prefix}a")),
            Some(KeyPattern::Exact(key)) => names::is_label_key(&key),
        };
        if can_match {
            return Vec::new();
        }
        vec![match text {
            "" => "must not be empty".to_owned(),
            _ => format!("{text:?} is not valid; use a key, `prefix/*` or `*`"),
        }]
    },
};

/// Format of taint keys.
pub(in crate::policy) static TAINT_KEY: TextFormat = TextFormat {
    pattern: "^([-a-z0-9.]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
    problems: |text| {
        if text.is_empty() {
            return vec!["must not be empty".to_owned()];
        }
        let mut problems = Vec::new();
        names::check_label_key(text, LengthUnitWord::Bytes, KeyErrorWord::LabelKey, &mut |detail| {
            problems.push(format!("{text:?} is not a taint key: {detail}"));
        });
        problems
    },
};

/// Format of taint values.
pub(in crate::policy) static TAINT_VALUE: TextFormat = TextFormat {
    pattern: "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$",
    problems: |text| {
        let mut problems = Vec::new();
        names::check_label_value(text, LengthUnitWord::Bytes, &mut |detail| {
            problems.push(format!("{text:?} is not a taint value: {detail}"));
        });
        problems
    },
};
