//! Representative names: one for each combination of globs that some name can match.
//!
//! There are infinitely many names but finitely many patterns, so what patterns say about all names is what they say
//! about these. All patterns are run side by side over an alphabet of the characters that they contain and one that
//! none of them contains; each set of patterns that matches together is reached by a shortest name.
//!
//! Invariant: if [`SampleNames::complete`] is true, every name that the alphabet allows matches exactly the patterns
//! that one of the names matches.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum number of combinations of pattern positions that are searched.
const MAX_SEARCH_STATES: usize = 100_000;
/// Maximum number of sample names for a set of patterns.
const MAX_SAMPLE_NAMES: usize = 10_000;

/// The characters that a kind of name can contain, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Alphabet {
    /// Names of namespaces: lowercase letters, digits and `-`, which is neither first nor last.
    Namespace,
    /// Driver names: like namespaces, but with dots.
    Driver,
    /// `namespace/name` of service accounts.
    ServiceAccount,
    /// Taint keys.
    Key,
    /// Users and groups: any text.
    Any,
}

/// A glob for names, with the text that precedes a name where the glob is applied.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamePattern<'p> {
    pub(super) glob: &'p str,
    /// Text in front of the name, which the glob must match as well.
    pub(super) before: &'static str,
    /// The character that the glob sees instead of `/`.
    pub(super) slash: char,
}

impl<'p> NamePattern<'p> {
    /// Creates a pattern that is applied to names as they are.
    pub(super) fn from_glob(glob: &'p str) -> NamePattern<'p> {
        NamePattern { glob, before: "", slash: '/' }
    }
}

/// Sample names for a set of globs, and whether they cover every combination of globs that some name can match.
#[derive(Clone, Default, Debug)]
pub(super) struct SampleNames {
    pub(super) names: Vec<String>,
    pub(super) complete: bool,
}

impl Alphabet {
    fn has_character(self, letter: char) -> bool {
        let in_label = |letter: char| matches!(letter, 'a'..='z' | '0'..='9' | '-');
        match self {
            Alphabet::Namespace => in_label(letter),
            Alphabet::Driver => in_label(letter) || letter == '.',
            Alphabet::ServiceAccount => in_label(letter) || matches!(letter, '.' | '/'),
            Alphabet::Key => letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | '/'),
            Alphabet::Any => true,
        }
    }

    /// True if a name can continue with `next`; `last` is its last character so far.
    fn may_continue_with(self, last: Option<char>, next: char, slashes: u8) -> bool {
        let is_mark = |letter: char| matches!(letter, '-' | '.' | '/' | '_');
        match self {
            Alphabet::Any => true,
            // A slash is between two parts, and there is one.
            _ if next == '/' => slashes == 0 && last.is_some_and(|last| !is_mark(last)),
            _ if is_mark(next) => last.is_some_and(|last| !matches!(last, '.' | '/')),
            _ => true,
        }
    }

    /// True if a name can end after the character `last`, with that many slashes in it.
    fn can_end(self, last: Option<char>, slashes: u8) -> bool {
        let Some(last) = last else { return false };
        match self {
            Alphabet::Any => true,
            Alphabet::ServiceAccount => slashes == 1 && !matches!(last, '-' | '.' | '/'),
            _ => !matches!(last, '-' | '.' | '/' | '_'),
        }
    }
}

/// Returns a shortest name for each combination of the globs, applied to names as they are, that some name can match.
pub(super) fn sample_names_for_globs<'p>(
    globs: impl IntoIterator<Item = &'p str>,
    alphabet: Alphabet,
) -> SampleNames {
    let globs: BTreeSet<&str> = globs.into_iter().collect();
    sample_names(&globs.into_iter().map(NamePattern::from_glob).collect::<Vec<_>>(), alphabet)
}

/// A state of the search for names: the positions in all patterns that the characters so far can lead to, and what
/// restricts the next character.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct SearchState {
    /// Pairs of pattern index and position in it, sorted.
    at: Vec<(usize, usize)>,
    /// The last character if it restricts the next one; otherwise `a`, which stands for every other character.
    last: Option<char>,
    slashes: u8,
}

/// Returns a shortest name for each combination of the patterns that some name can match.
pub(super) fn sample_names(patterns: &[NamePattern<'_>], alphabet: Alphabet) -> SampleNames {
    let globs: Vec<Vec<char>> = patterns.iter().map(|pattern| pattern.glob.chars().collect()).collect();
    let letters = distinguishing_letters(patterns, alphabet);
    let mut start = SearchState { at: Vec::new(), last: None, slashes: 0 };
    for (index, pattern) in patterns.iter().enumerate() {
        let mut here = BTreeSet::from([0]);
        let glob = globs.get(index).map_or(&[][..], Vec::as_slice);
        add_positions_after_stars(glob, &mut here);
        for letter in pattern.before.chars() {
            here = next_positions(glob, &here, letter);
        }
        start.at.extend(here.into_iter().map(|position| (index, position)));
    }
    let mut seen = BTreeSet::from([start.clone()]);
    let mut queue = VecDeque::from([(start, String::new())]);
    let mut found: BTreeMap<Vec<usize>, String> = BTreeMap::new();
    let mut complete = true;
    while let Some((state, name)) = queue.pop_front() {
        if alphabet.can_end(state.last, state.slashes) {
            let is_end = |(pattern, position): &&(usize, usize)| {
                globs.get(*pattern).is_some_and(|glob| glob.len() == *position)
            };
            let matching = state.at.iter().filter(is_end).map(|(pattern, _)| *pattern).collect();
            found.entry(matching).or_insert_with(|| name.clone());
        }
        if seen.len() > MAX_SEARCH_STATES || found.len() > MAX_SAMPLE_NAMES {
            complete = false;
            break;
        }
        for letter in &letters {
            if !alphabet.may_continue_with(state.last, *letter, state.slashes) {
                continue;
            }
            let mut by_pattern: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
            for (pattern, position) in &state.at {
                by_pattern.entry(*pattern).or_default().insert(*position);
            }
            let mut next = SearchState {
                at: Vec::new(),
                last: Some(if matches!(letter, '-' | '.' | '/' | '_') { *letter } else { 'a' }),
                slashes: (state.slashes + u8::from(*letter == '/')).min(2),
            };
            if alphabet == Alphabet::Any {
                (next.last, next.slashes) = (Some('a'), 0);
            }
            for (index, here) in by_pattern {
                let (Some(glob), Some(pattern)) = (globs.get(index), patterns.get(index)) else { continue };
                let letter = if *letter == '/' { pattern.slash } else { *letter };
                next.at.extend(
                    next_positions(glob, &here, letter).into_iter().map(|position| (index, position)),
                );
            }
            if seen.insert(next.clone()) {
                queue.push_back((next, format!("{name}{letter}")));
            }
        }
    }
    let mut names: Vec<String> = found.into_values().collect();
    names.sort();
    SampleNames { names, complete }
}

/// Returns the characters to build names from: those in the patterns that the alphabet has, and one that no pattern
/// contains.
fn distinguishing_letters(patterns: &[NamePattern<'_>], alphabet: Alphabet) -> Vec<char> {
    let mut letters: BTreeSet<char> = BTreeSet::new();
    for pattern in patterns {
        let seen = |letter: char| if letter == pattern.slash { '/' } else { letter };
        letters.extend(pattern.glob.chars().filter(|letter| !matches!(letter, '*' | '?')).map(seen));
    }
    letters.retain(|letter| alphabet.has_character(*letter));
    if matches!(alphabet, Alphabet::ServiceAccount | Alphabet::Key) {
        letters.insert('/');
    }
    // First, so that names that only stand for others look like it.
    let other = "xyzabcdefghijklmnopqrstuvw0123456789".chars().find(|letter| !letters.contains(letter));
    other.into_iter().chain(letters.iter().copied()).collect()
}

/// Returns the positions in a glob after one more character.
fn next_positions(glob: &[char], from: &BTreeSet<usize>, letter: char) -> BTreeSet<usize> {
    let mut next = BTreeSet::new();
    for position in from {
        match glob.get(*position) {
            Some('*') => _ = next.insert(*position),
            Some('?') => _ = next.insert(position + 1),
            Some(wanted) if *wanted == letter => _ = next.insert(position + 1),
            _ => {}
        }
    }
    add_positions_after_stars(glob, &mut next);
    next
}

/// Adds the positions after stars, because a star can match the empty text.
fn add_positions_after_stars(glob: &[char], positions: &mut BTreeSet<usize>) {
    let mut behind: Vec<usize> = positions.iter().copied().collect();
    while let Some(position) = behind.pop() {
        if glob.get(position) == Some(&'*') && positions.insert(position + 1) {
            behind.push(position + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Alphabet, NamePattern, sample_names};
    use crate::policy::glob;

    fn names(globs: &[&str], alphabet: Alphabet) -> Vec<String> {
        let patterns: Vec<NamePattern<'_>> = globs.iter().copied().map(NamePattern::from_glob).collect();
        let found = sample_names(&patterns, alphabet);
        assert!(found.complete);
        found.names
    }

    #[test]
    fn there_is_a_name_for_each_combination_that_exists() {
        let globs = ["ml-*", "ml-a", "*-infra", "team-?"];
        let found = names(&globs, Alphabet::Namespace);
        let matching = |name: &str| -> Vec<&str> {
            globs.iter().copied().filter(|pattern| glob::matches(pattern, name)).collect()
        };
        let mut combinations: Vec<Vec<&str>> = found.iter().map(|name| matching(name)).collect();
        combinations.sort();
        let expected: [&[&str]; 6] =
            [&[], &["*-infra"], &["ml-*"], &["ml-*", "*-infra"], &["ml-*", "ml-a"], &["team-?"]];
        assert_eq!(combinations, expected, "{found:?}");
    }

    #[test]
    fn what_no_name_can_match_has_no_name() {
        assert_eq!(names(&["*"], Alphabet::Namespace), ["x"]);
        assert_eq!(names(&["ml-", "ml-*"], Alphabet::Namespace), ["ml-x", "x"], "no name ends in a dash");
        assert_eq!(names(&["ml_a", "ml-*"], Alphabet::Namespace), ["ml-x", "x"], "no name has an underscore");
        assert_eq!(names(&["gpu_*", "Gpu"], Alphabet::Driver), ["x"]);
        assert_eq!(names(&["a:b", "é*"], Alphabet::Key), ["x"]);
    }

    #[test]
    fn service_accounts_are_users_too() {
        let user = NamePattern {
            glob: "system:serviceaccount:kube-*",
            before: "system:serviceaccount:",
            slash: ':',
        };
        let found = sample_names(&[user, NamePattern::from_glob("*/deployer")], Alphabet::ServiceAccount);
        let is_kube = |name: &&String| name.starts_with("kube-");
        let is_deployer = |name: &&String| name.ends_with("/deployer");
        for (kube, deployer) in [(false, false), (true, false), (false, true), (true, true)] {
            let count =
                found.names.iter().filter(|name| is_kube(name) == kube && is_deployer(name) == deployer);
            assert_eq!(count.count(), 1, "{kube} {deployer} {:?}", found.names);
        }
    }

    /// Every text of few letters matches as one of the names does.
    #[test]
    fn every_name_is_represented() {
        let globs = ["a*", "?b*", "*ab", "b?", "*"];
        let found = names(&globs, Alphabet::Any);
        let matching = |name: &str| globs.map(|pattern| glob::matches(pattern, name));
        let mut texts = vec![String::new()];
        for _ in 0..5 {
            let longer: Vec<String> =
                texts.iter().flat_map(|text| ["a", "b", "c"].map(|next| format!("{text}{next}"))).collect();
            for text in &longer {
                assert!(found.iter().any(|name| matching(name) == matching(text)), "{text}");
            }
            texts = longer;
        }
    }
}
