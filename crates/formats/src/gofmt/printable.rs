//! The characters that Go prints unescaped.
//!
//! The set of Go's `strconv.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space, in
//! Unicode 15.0, the version of the Go releases that built Kubernetes 1.33 to 1.37. The tables of newer versions of
//! Unicode say when a character was assigned. Not for terminal safety: bidirectional marks are escaped, but combining
//! marks are printable.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, HirKind};

/// The first and last characters of printable runs, in ascending order.
static PRINTABLE_RANGES: LazyLock<Vec<(char, char)>> = LazyLock::new(|| {
    let class = regex_syntax::parse(r"[\p{L}\p{M}\p{N}\p{P}\p{S}&&\p{Age=15.0}]");
    match class.map(regex_syntax::hir::Hir::into_kind) {
        Ok(HirKind::Class(Class::Unicode(class))) => {
            class.iter().map(|run| (run.start(), run.end())).collect()
        }
        _ => Vec::new(),
    }
});

/// True if Go's `%q` prints `letter` unescaped.
pub fn is_printable(letter: char) -> bool {
    // Nearly all letters; the table says the same.
    if letter.is_ascii() {
        return matches!(letter, ' '..='~');
    }
    let begun = PRINTABLE_RANGES.partition_point(|(first, _)| *first <= letter);
    begun.checked_sub(1).and_then(|run| PRINTABLE_RANGES.get(run)).is_some_and(|(_, last)| letter <= *last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes() {
        for (letter, printable) in [
            (' ', true),
            ('~', true),
            ('\u{7f}', false),
            ('\u{85}', false),
            ('\u{a0}', false),
            ('\u{a1}', true),
            ('\u{ad}', false),
            ('\u{300}', true),
            ('\u{378}', false),
            ('\u{200b}', false),
            ('\u{2028}', false),
            ('\u{202e}', false),
            ('\u{3000}', false),
            ('\u{e000}', false),
            ('\u{feff}', false),
            ('\u{fffd}', true),
            ('\u{ffff}', false),
            ('\u{1f525}', true),
            // Assigned in Unicode 15.0, 15.1 and 16.0.
            ('\u{1fae8}', true),
            ('\u{2ebf0}', false),
            ('\u{10d40}', false),
            ('\u{e0001}', false),
            ('\u{e0100}', true),
            ('\u{10ffff}', false),
        ] {
            assert_eq!(is_printable(letter), printable, "{letter:?}");
        }
    }
}
