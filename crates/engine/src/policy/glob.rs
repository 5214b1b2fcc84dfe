//! Globs: `*` is any run of characters, `?` any single one, everything else is itself.
//!
//! Invariant: matching takes at most pattern + text steps, and pattern × text if the pattern has a `?`
//! ([`match_steps_per_byte`]). It allocates nothing.

use memchr::memmem;
use tollgate_document::doc::Value;

/// A list of patterns.
#[derive(Clone, Debug, Default)]
pub(super) struct Globs(Vec<Box<str>>);

impl Globs {
    /// Reads a list of patterns; every string is one. `None` if there is no list.
    pub(super) fn from_list_if_present(list: Value<'_>) -> Option<Globs> {
        list.exists().then(|| Globs(list.items().map(|item| item.str().into()).collect()))
    }

    /// True if one of the patterns matches all of `text`.
    pub(super) fn match_any(&self, text: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern, text))
    }

    /// Returns the patterns as written.
    pub(super) fn patterns(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|pattern| &**pattern)
    }
}

/// True if `pattern` matches all of `text`.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(last) = parts.next_back() else { return strip_pattern_prefix(first, text) == Some("") };
    // What a star stands for is free, so the first place where the next part fits leaves the most for the others.
    let before_last = strip_pattern_prefix(first, text)
        .and_then(|rest| parts.try_fold(rest, |rest, part| skip_past(part, rest)));
    before_last.is_some_and(|rest| ends_with_pattern(rest, last))
}

/// Returns the most steps that matching takes for each byte of a text.
pub(super) fn match_steps_per_byte(pattern: &str) -> usize {
    if pattern.contains('?') { pattern.len() } else { 1 }
}

/// Returns what follows `part`, which has no star, at the start of the text; `None` if the text does not start with it.
fn strip_pattern_prefix<'t>(part: &str, text: &'t str) -> Option<&'t str> {
    if !part.contains('?') {
        return text.strip_prefix(part);
    }
    let mut left = text.chars();
    let fits = part.chars().all(|wanted| left.next().is_some_and(|found| wanted == '?' || wanted == found));
    fits.then_some(left.as_str())
}

/// Returns what follows the first occurrence of `part`, which has no star; `None` if there is none.
fn skip_past<'t>(part: &str, text: &'t str) -> Option<&'t str> {
    if !part.contains('?') {
        // Much faster than the standard library's search, and linear for every text as well.
        let at = memmem::find(text.as_bytes(), part.as_bytes())?;
        return text.get(at + part.len()..);
    }
    text.char_indices().find_map(|(at, _)| strip_pattern_prefix(part, text.get(at..)?))
}

/// True if the text ends with `part`, which has no star.
fn ends_with_pattern(text: &str, part: &str) -> bool {
    if !part.contains('?') {
        return text.ends_with(part);
    }
    let mut left = text.chars();
    part.chars().rev().all(|wanted| left.next_back().is_some_and(|found| wanted == '?' || wanted == found))
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

    /// Compares the implementation with the definition, for every short pattern and text of few letters.
    #[test]
    fn globs_match_as_defined() {
        fn defined(pattern: &[u8], text: &[u8]) -> bool {
            match (pattern.split_first(), text.split_first()) {
                (None, None) => true,
                (Some((b'*', rest)), next) => {
                    defined(rest, text) || next.is_some_and(|(_, left)| defined(pattern, left))
                }
                (Some((b'?', rest)), Some((_, left))) => defined(rest, left),
                (Some((wanted, rest)), Some((found, left))) => wanted == found && defined(rest, left),
                _ => false,
            }
        }
        let words = |letters: &[char], longest: u32| -> Vec<String> {
            let mut words = vec![String::new()];
            let mut last = words.clone();
            for _ in 0..longest {
                last = last
                    .iter()
                    .flat_map(|word| letters.iter().map(move |one| format!("{word}{one}")))
                    .collect();
                words.extend(last.iter().cloned());
            }
            words
        };
        for pattern in words(&['a', 'b', '?', '*'], 5) {
            for text in words(&['a', 'b'], 5) {
                assert_eq!(
                    matches(&pattern, &text),
                    defined(pattern.as_bytes(), text.as_bytes()),
                    "{pattern} {text}"
                );
            }
        }
    }
}
