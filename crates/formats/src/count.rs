//! Counts in sentences: `1 pod`, `2 pods`. Only for nouns whose plural ends in `s`.

/// The number with its noun: `1 pod`, `2 pods`.
pub fn count_with_noun(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", plural_suffix(count))
}

/// The ending of a noun after a count: none after 1, or `s`.
pub fn plural_suffix(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
