//! The text of CEL expressions: literals, globs, and boolean tests that are joined without needless parts.
//!
//! Nothing here knows policies or objects.
//!
//! Invariant: whatever text a policy contains becomes a literal and never code.

use std::fmt::Write as _;

/// Returns a CEL string literal.
pub(super) fn literal(text: &str) -> String {
    let mut out = String::from("'");
    for letter in text.chars() {
        match letter {
            '\'' | '\\' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Writing to a `String` cannot fail.
            letter if letter.is_control() => _ = write!(out, "\\u{:04x}", u32::from(letter)),
            letter => out.push(letter),
        }
    }
    out.push('\'');
    out
}

/// Returns a CEL list of string literals.
pub(super) fn list<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let texts: Vec<String> = texts.into_iter().map(literal).collect();
    format!("[{}]", texts.join(", "))
}

/// Precedence of the outermost operator of a test.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Precedence {
    Or,
    And,
    Relation,
    Call,
}

/// A boolean expression. Constants disappear when tests are joined, so that a policy without conditions costs nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Test {
    Always,
    Never,
    When(Text),
}

/// The text of a test, and its outermost operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Text {
    text: String,
    binding: Precedence,
}

impl Text {
    /// The text, in parentheses if it binds less tightly than `binding`.
    fn within(&self, binding: Precedence) -> String {
        if self.binding < binding { format!("({})", self.text) } else { self.text.clone() }
    }
}

impl Test {
    fn when(text: String, binding: Precedence) -> Test {
        Test::When(Text { text, binding })
    }

    /// A variable, a call, or another expression that needs no parentheses.
    pub(super) fn call(text: impl Into<String>) -> Test {
        Test::when(text.into(), Precedence::Call)
    }

    /// A comparison, such as `a == b`.
    pub(super) fn relation(text: impl Into<String>) -> Test {
        Test::when(text.into(), Precedence::Relation)
    }

    /// True if the subject is the text.
    pub(super) fn equals(subject: &str, text: &str) -> Test {
        Test::relation(format!("{subject} == {}", literal(text)))
    }

    /// True if the subject is one of the texts.
    pub(super) fn is_in(subject: &str, texts: &[&str]) -> Test {
        match texts {
            [] => Test::Never,
            [only] => Test::equals(subject, only),
            several => Test::relation(format!("{subject} in {}", list(several.iter().copied()))),
        }
    }

    pub(super) fn and(self, other: Test) -> Test {
        Test::all([self, other])
    }

    pub(super) fn or(self, other: Test) -> Test {
        Test::any([self, other])
    }

    pub(super) fn not(self) -> Test {
        match self {
            Test::Always => Test::Never,
            Test::Never => Test::Always,
            Test::When(text) => Test::call(format!("!{}", text.within(Precedence::Call))),
        }
    }

    /// True if one of the tests is.
    pub(super) fn any(tests: impl IntoIterator<Item = Test>) -> Test {
        join(tests, Test::Never, &Test::Always, " || ", Precedence::Or)
    }

    /// True if all of the tests are.
    pub(super) fn all(tests: impl IntoIterator<Item = Test>) -> Test {
        join(tests, Test::Always, &Test::Never, " && ", Precedence::And)
    }

    /// The CEL expression of the test.
    pub(super) fn text(&self) -> &str {
        match self {
            Test::Always => "true",
            Test::Never => "false",
            Test::When(text) => &text.text,
        }
    }
}

/// Joins tests with an operator: `neutral` tests are dropped, and an `absorbing` test decides the result.
fn join(
    tests: impl IntoIterator<Item = Test>,
    neutral: Test,
    absorbing: &Test,
    operator: &str,
    binding: Precedence,
) -> Test {
    let mut parts: Vec<Text> = Vec::new();
    for test in tests {
        match test {
            test if test == *absorbing => return test,
            Test::When(text) if !parts.contains(&text) => parts.push(text),
            _ => {}
        }
    }
    match parts.len() {
        0 => neutral,
        1 => parts.pop().map_or(neutral, Test::When),
        _ => {
            let texts: Vec<String> = parts.iter().map(|part| part.within(binding)).collect();
            Test::when(texts.join(operator), binding)
        }
    }
}

/// True if the subject matches the glob.
pub(super) fn matches_glob(pattern: &str, subject: &str) -> Test {
    if pattern.contains('?') {
        return regex(&[&glob_regex(pattern)], subject);
    }
    match pattern.split('*').collect::<Vec<_>>().as_slice() {
        [whole] => Test::equals(subject, whole),
        parts if parts.iter().all(|part| part.is_empty()) => Test::Always,
        [start, rest @ ..] if rest.iter().all(|part| part.is_empty()) => {
            Test::call(format!("{subject}.startsWith({})", literal(start)))
        }
        [rest @ .., end] if rest.iter().all(|part| part.is_empty()) => {
            Test::call(format!("{subject}.endsWith({})", literal(end)))
        }
        _ => regex(&[&glob_regex(pattern)], subject),
    }
}

/// True if the subject matches one of the globs.
pub(super) fn matches_any_glob<'t>(patterns: impl IntoIterator<Item = &'t str>, subject: &str) -> Test {
    let (exact, open): (Vec<&str>, Vec<&str>) =
        patterns.into_iter().partition(|pattern| !pattern.contains(['*', '?']));
    Test::is_in(subject, &exact).or(Test::any(open.into_iter().map(|pattern| matches_glob(pattern, subject))))
}

/// Placeholder for the driver in a key glob.
const DRIVER: &str = super::super::entries::DRIVER_PLACEHOLDER;

/// Tests whether the subject matches a glob with `${driver}`. `driver` is an expression for the driver name;
/// `driver_regex` is an expression for a regular expression that matches it.
pub(super) fn driver_glob(pattern: &str, subject: &str, driver: Option<&str>, driver_regex: &str) -> Test {
    if !pattern.contains(DRIVER) {
        return matches_glob(pattern, subject);
    }
    if let (Some(driver), Some(rest)) = (driver, pattern.strip_prefix(DRIVER)) {
        let is_plain = |text: &str| !text.contains(['*', '?']) && !text.contains(DRIVER);
        match rest.strip_suffix('*') {
            Some(start) if is_plain(start) => {
                return Test::call(format!("{subject}.startsWith({driver} + {})", literal(start)));
            }
            None if is_plain(rest) => {
                return Test::relation(format!("{subject} == {driver} + {}", literal(rest)));
            }
            _ => {}
        }
    }
    let parts: Vec<String> = pattern.split(DRIVER).map(glob_regex).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let joined = parts.join("\u{0}");
    let texts: Vec<String> = format!("(?s)^{joined}$").split('\u{0}').map(literal).collect();
    Test::call(format!("{subject}.matches({})", texts.join(&format!(" + {driver_regex} + "))))
}

/// True if the whole subject matches the regular expressions, one after the other.
fn regex(parts: &[&str], subject: &str) -> Test {
    Test::call(format!("{subject}.matches({})", literal(&format!("(?s)^{}$", parts.concat()))))
}

/// Returns a glob as a regular expression that matches a part of a text.
fn glob_regex(pattern: &str) -> String {
    let mut out = String::new();
    for letter in pattern.chars() {
        match letter {
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            '.' => out.push_str("[.]"),
            letter if letter.is_ascii_punctuation() && !"-/_:@".contains(letter) => {
                out.extend(['\\', letter])
            }
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Test, driver_glob, literal, matches_any_glob, matches_glob};

    #[test]
    fn literals_are_never_code() {
        assert_eq!(literal("a'b\\c\n\u{1}"), "'a\\'b\\\\c\\n\\u0001'");
    }

    #[test]
    fn tests_are_joined_without_constants_and_with_parentheses() {
        let named = |name: &str| Test::call(name);
        let either = named("a").or(named("b"));
        assert_eq!(either.clone().and(named("c")).text(), "(a || b) && c");
        assert_eq!(either.clone().and(Test::Always).text(), "a || b");
        assert_eq!(either.clone().and(Test::Never).text(), "false");
        assert_eq!(either.clone().or(named("a")).text(), "a || b || a", "only whole parts are compared");
        assert_eq!(either.not().text(), "!(a || b)");
        assert_eq!(Test::equals("x", "y").not().text(), "!(x == 'y')");
        assert_eq!(Test::Always.not().text(), "false");
    }

    #[test]
    fn globs_become_the_cheapest_test() {
        for (pattern, expected) in [
            ("a", "x == 'a'"),
            ("*", "true"),
            ("**", "true"),
            ("a*", "x.startsWith('a')"),
            ("*a", "x.endsWith('a')"),
            ("a*b", "x.matches('(?s)^a.*b$')"),
            ("*.k8s.io/*", "x.matches('(?s)^.*[.]k8s[.]io/.*$')"),
            ("a?+", "x.matches('(?s)^a.\\\\+$')"),
        ] {
            assert_eq!(matches_glob(pattern, "x").text(), expected, "{pattern}");
        }
        assert_eq!(matches_any_glob(["a", "b", "c-*"], "x").text(), "x in ['a', 'b'] || x.startsWith('c-')");
        assert_eq!(matches_any_glob([], "x"), Test::Never);
    }

    #[test]
    fn the_driver_stands_for_its_placeholder() {
        let allow = |pattern: &str| driver_glob(pattern, "k", Some("d"), "r").text().to_owned();
        assert_eq!(allow("${driver}/*"), "k.startsWith(d + '/')");
        assert_eq!(allow("${driver}/a"), "k == d + '/a'");
        assert_eq!(allow("*.${driver}/?"), "k.matches('(?s)^.*[.]' + r + '/.$')");
        assert_eq!(driver_glob("${driver}/*", "k", None, "r").text(), "k.matches('(?s)^' + r + '/.*$')");
    }
}
