//! Counts in sentences: `1 pod`, `2 pods`. Only for nouns whose plural ends in `s`.

/// The number with its noun: `1 pod`, `2 pods`.
pub fn count_with_noun(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", plural_suffix(count))
}

/// The number with a comma between groups of three digits: `12,345`.
pub fn group_thousands(count: usize) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The ending of a noun after a count: none after 1, or `s`.
pub fn plural_suffix(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    #[test]
    fn thousands_are_separated() {
        let numbers = [0, 7, 999, 1_000, 12_345, 1_234_567].map(super::group_thousands);
        assert_eq!(numbers, ["0", "7", "999", "1,000", "12,345", "1,234,567"]);
    }
}
