//! Globs: `*` is any run of characters, `?` any single one, everything else is itself.
//!
//! Invariant: matching takes at most pattern × text steps and allocates nothing; most patterns are decided by their
//! first bytes.

/// A pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Glob(Box<str>);

impl Glob {
    /// A pattern; every string is a valid one.
    pub(super) fn new(pattern: &str) -> Glob {
        Glob(pattern.into())
    }

    /// The pattern as written.
    pub(super) fn pattern(&self) -> &str {
        &self.0
    }

    /// True if the whole text is matched.
    pub(super) fn matches(&self, text: &str) -> bool {
        matches(&self.0, text)
    }
}

/// True if `pattern` matches all of `text`.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    // Most patterns are told apart by what they begin or end with.
    let is_wildcard = |letter: char| matches!(letter, '*' | '?');
    let start = pattern.find(is_wildcard).and_then(|at| pattern.get(..at));
    let end = pattern.rfind(is_wildcard).and_then(|at| pattern.get(at + 1..));
    let (Some(start), Some(end)) = (start, end) else { return pattern == text };
    if !text.starts_with(start) || !text.ends_with(end) {
        return false;
    }
    let (mut rest, mut left) = (pattern, text);
    // After the last star: what follows it, and the text from which it may still be tried.
    let mut retry: Option<(&str, &str)> = None;
    loop {
        let mut pattern_chars = rest.chars();
        let mut text_chars = left.chars();
        match (pattern_chars.next(), text_chars.next()) {
            (Some('*'), _) => {
                rest = pattern_chars.as_str();
                if rest.is_empty() {
                    return true;
                }
                retry = Some((rest, left));
                continue;
            }
            (Some('?'), Some(_)) => {
                (rest, left) = (pattern_chars.as_str(), text_chars.as_str());
                continue;
            }
            (Some(wanted), Some(found)) if wanted == found => {
                (rest, left) = (pattern_chars.as_str(), text_chars.as_str());
                continue;
            }
            (None, None) => return true,
            _ => {}
        }
        let Some((after_star, from)) = retry else { return false };
        let mut skipped = from.chars();
        if skipped.next().is_none() {
            return false;
        }
        (rest, left) = (after_star, skipped.as_str());
        retry = Some((rest, left));
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn globs_match_whole_texts() {
        let table = [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("ml-*", "ml-", true),
            ("ml-*", "ml-a", true),
            ("ml-*", "xml-a", false),
            ("*-infra", "ml-infra", true),
            ("*-infra", "ml-infra-2", false),
            ("a*b*c", "a--b--b--c", true),
            ("a*b*c", "a--c--b", false),
            ("a?c", "aéc", true),
            ("a?c", "ac", false),
            ("**a", "bba", true),
            ("kube-system/*", "kube-system/x", true),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_hostile_pattern_takes_no_more_than_its_product() {
        let pattern = "a*".repeat(60);
        assert!(!matches(&format!("{pattern}b"), &"a".repeat(5_000)));
    }
}
