//! Names as Go's JSON decoder compares them: case is folded rune by rune, as in `bytes.EqualFold`.
//!
//! Go replaces each letter by the smallest of the letters that differ from it only in case. Any other choice among
//! these letters distinguishes the same names. This module takes the lowercase letter of the uppercase letter, where
//! each is a single character.

/// Returns a form of the name that is equal for names that Go's JSON decoder does not distinguish.
pub(super) fn case_folded(name: &str) -> String {
    name.chars().map(fold_char).collect()
}

/// True if Go's JSON decoder does not distinguish the two names.
pub(in crate::policy) fn is_same_folded(one: &str, other: &str) -> bool {
    one.chars().map(fold_char).eq(other.chars().map(fold_char))
}

fn fold_char(letter: char) -> char {
    // Simple folding leaves the dotless i alone; only its upper case is that of another letter.
    if letter.is_ascii() || letter == 'ı' {
        return letter.to_ascii_lowercase();
    }
    let upper = single_char(letter.to_uppercase()).unwrap_or(letter);
    single_char(upper.to_lowercase()).unwrap_or(upper)
}

fn single_char(mut letters: impl Iterator<Item = char>) -> Option<char> {
    let first = letters.next()?;
    letters.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::{fold_char, is_same_folded};

    #[test]
    fn names_fold_as_in_go() {
        for (one, other) in [
            ("kind", "KIND"),
            ("kind", "\u{212a}ind"),
            ("sharing", "\u{17f}haring"),
            ("apiVersion", "APIVERſION"),
            ("größe", "GRÖẞE"),
            ("σ", "ς"),
            ("µ", "Μ"),
        ] {
            assert!(is_same_folded(one, other) && is_same_folded(other, one), "{one} {other}");
        }
        for (one, other) in [("kind", "kınd"), ("kind", "kİnd"), ("kind", "kinds"), ("ß", "ss"), ("a", "ａ")]
        {
            assert!(!is_same_folded(one, other), "{one} {other}");
        }
    }

    /// `regex` folds by Unicode's table of simple foldings.
    #[test]
    fn folding_is_that_of_the_unicode_table() {
        let moved = |letter: &char| fold_char(*letter) != *letter || letter.to_uppercase().ne([*letter]);
        // The two tables may be of different years.
        let unassigned = regex::Regex::new(r"^\p{Cn}$").unwrap();
        let assigned = |letter: &char| !letter.is_ascii() && !unassigned.is_match(&letter.to_string());
        for letter in ('\u{0}'..='\u{1ffff}').filter(moved).filter(assigned) {
            let folded = fold_char(letter);
            let pattern = regex::Regex::new(&format!("(?i)^{letter}$")).unwrap();
            assert!(pattern.is_match(&folded.to_string()), "{letter:?} {folded:?}");
            for other in letter.to_uppercase().chain(letter.to_lowercase()).filter(assigned) {
                let is_one = letter.to_uppercase().count() == 1 && letter.to_lowercase().count() == 1;
                assert!(
                    !is_one || pattern.is_match(&other.to_string()) == (fold_char(other) == folded),
                    "{letter:?} {other:?}"
                );
            }
        }
    }
}
