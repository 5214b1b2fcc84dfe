//! Finds the known word that a misspelled word was probably meant to be, and joins words for messages.

use std::borrow::Borrow;

/// The known word that was probably intended; `None` if there is not exactly one. It has the same letters in
/// another case or with other hyphens, differs by one or two letters, or begins with the written text.
pub fn nearest_if_unambiguous<'k>(
    written: &str,
    known: impl Iterator<Item = &'k str> + Clone,
) -> Option<&'k str> {
    let written = normalize_word(written);
    if written.is_empty() {
        return None;
    }
    let only =
        |mut found: Box<dyn Iterator<Item = &'k str> + '_>| found.next().filter(|_| found.next().is_none());
    if let Some(same) = only(Box::new(known.clone().filter(|word| normalize_word(word) == written))) {
        return Some(same);
    }
    // A letter more or less in a short word makes another word.
    let allowed = |word: &str| 1 + word.len().min(written.len()) / 5;
    let steps = |word: &str| distance(&normalize_word(word), &written);
    let least = known.clone().map(|word| (steps(word), word)).filter(|(steps, word)| *steps <= allowed(word));
    let least = least.map(|(steps, _)| steps).min();
    if let Some(least) = least {
        return only(Box::new(known.filter(move |word| steps(word) == least)));
    }
    let is_beginning = |word: &&str| written.len() >= 4 && normalize_word(word).starts_with(&written);
    only(Box::new(known.filter(is_beginning)))
}

/// The words as a hint: ``use `A`, `B` or `C` ``; empty if there are none.
pub fn hint_use_one_of(known: &[&str]) -> String {
    let quoted: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => format!("use {last}"),
        Some((last, others)) => format!("use {} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// The words as a list in a sentence, `A, B and C`; empty if there are none.
pub fn join_with_and<S: Borrow<str>>(words: &[S]) -> String {
    let Some((last, others)) = words.split_last() else { return String::new() };
    let last: &str = last.borrow();
    if others.is_empty() { last.to_owned() } else { format!("{} and {last}", others.join(", ")) }
}

/// True for two spellings of one word: in another case, or with other hyphens.
pub(super) fn is_same_word(one: &str, other: &str) -> bool {
    normalize_word(one) == normalize_word(other)
}

/// The word in lower case, without hyphens, underscores and blanks, so that `tolerationSeconds`, `toleration_seconds`
/// and `TolerationSeconds` are equal.
fn normalize_word(word: &str) -> String {
    let head = tollgate_formats::gofmt::byte_prefix(word, 256);
    head.chars().filter(|letter| !matches!(letter, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect()
}

/// The edit distance of the first 64 characters of two words; swapping two neighbours is one step.
pub fn distance(left: &str, right: &str) -> usize {
    let head = |word: &str| word.chars().take(64).collect::<String>();
    strsim::osa_distance(&head(left), &head(right))
}

#[cfg(test)]
mod tests {
    use super::{distance, hint_use_one_of, join_with_and, nearest_if_unambiguous};

    #[test]
    fn distance_counts_edits_and_swaps() {
        for (left, right, expected) in
            [("driver", "driver", 0), ("taitns", "taints", 1), ("efect", "effect", 1), ("a", "xyz", 3)]
        {
            assert_eq!(distance(left, right), expected, "{left} {right}");
        }
    }

    #[test]
    fn one_word_is_meant_or_none() {
        let effects = ["None", "NoSchedule", "NoExecute"];
        let table = [
            ("NoExec", Some("NoExecute")),
            ("noschedule", Some("NoSchedule")),
            ("no-execute", Some("NoExecute")),
            ("NoExceute", Some("NoExecute")),
            ("PreferNoSchedule", None),
            ("No", None),
            ("", None),
            ("Evict", None),
        ];
        for (written, expected) in table {
            assert_eq!(nearest_if_unambiguous(written, effects.into_iter()), expected, "{written}");
        }
        assert_eq!(nearest_if_unambiguous("ab", ["aa", "bb"].into_iter()), None, "two are as near");
    }

    #[test]
    fn words_are_listed_as_people_do() {
        assert_eq!(hint_use_one_of(&["A", "B", "C"]), "use `A`, `B` or `C`");
        assert_eq!(hint_use_one_of(&["A"]), "use `A`");
        assert_eq!(join_with_and(&["A", "B", "C"]), "A, B and C");
        assert_eq!(join_with_and(&["A".to_owned()]), "A");
    }
}
