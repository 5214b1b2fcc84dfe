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
    report_problems: |text, report| {
        let in_names = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'*' | b'?');
        if text.is_empty() {
            report("must not be empty".to_owned());
        } else if !text.bytes().all(in_names) {
            report(format!(
                "{text:?} matches no namespace; names consist of lowercase letters, digits and `-`, and patterns can also \
                 contain `*` and `?`"
            ));
        }
    },
};

/// Format of `key` in an entry about tolerations. Rejects keys that no API server accepts, because the entry would
/// silently do nothing.
pub(in crate::policy) static KEY_PATTERN: TextFormat = TextFormat {
    pattern: r"^(\*|[-a-z0-9.]+/\*|([-a-z0-9.]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)$",
    report_problems: |text, report| {
        let can_match = match KeyPattern::parse(text) {
            None => false,
            Some(KeyPattern::Any) => true,
            Some(KeyPattern::Prefix(prefix)) => names::is_label_key(&format!("{prefix}a")),
            Some(KeyPattern::Exact(key)) => names::is_label_key(&key),
        };
        match text {
            _ if can_match => {}
            "" => report("must not be empty".to_owned()),
            _ => report(format!("{text:?} is not valid; use a key, `prefix/*` or `*`")),
        }
    },
};

/// Format of taint keys.
pub(in crate::policy) static TAINT_KEY: TextFormat = TextFormat {
    pattern: "^([-a-z0-9.]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
    report_problems: |text, report| {
        if text.is_empty() {
            return report("must not be empty".to_owned());
        }
        names::check_label_key(text, LengthUnitWord::Bytes, KeyErrorWord::LabelKey, &mut |detail| {
            report(format!("{text:?} is not a taint key: {detail}"));
        });
    },
};

/// Format of taint values.
pub(in crate::policy) static TAINT_VALUE: TextFormat = TextFormat {
    pattern: "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$",
    report_problems: |text, report| {
        names::check_label_value(text, LengthUnitWord::Bytes, &mut |detail| {
            report(format!("{text:?} is not a taint value: {detail}"));
        });
    },
};
