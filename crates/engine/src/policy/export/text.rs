//! The text of CEL expressions: literals, globs, and boolean tests that are joined without needless parts.
//!
//! Nothing here knows policies or objects.
//!
//! Invariant: whatever text a policy contains becomes a literal and never code.

use std::fmt::Write as _;

use super::super::entries::DRIVER_PLACEHOLDER;

/// Returns a CEL string literal.
pub(super) fn cel_string_literal(text: &str) -> String {
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
pub(super) fn cel_string_list<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let texts: Vec<String> = texts.into_iter().map(cel_string_literal).collect();
    format!("[{}]", texts.join(", "))
}

/// How tightly the outermost operator of an expression binds; parentheses are needed around a weaker one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Precedence {
    Or,
    And,
    Relation,
    Call,
}

/// A boolean CEL expression. Constants disappear when expressions are joined, so that a policy without conditions costs
/// nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum BoolExpr {
    Always,
    Never,
    When(ExprText),
}

/// The text of a boolean expression, and its outermost operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ExprText {
    text: String,
    binding: Precedence,
}

impl ExprText {
    /// Returns the text, in parentheses if its operator binds less tightly than `binding`.
    fn parenthesized_within(&self, binding: Precedence) -> String {
        if self.binding < binding { format!("({})", self.text) } else { self.text.clone() }
    }
}

impl BoolExpr {
    fn from_text(text: String, binding: Precedence) -> BoolExpr {
        BoolExpr::When(ExprText { text, binding })
    }

    /// Wraps a variable, a call, or another expression that needs no parentheses.
    pub(super) fn from_call(text: impl Into<String>) -> BoolExpr {
        BoolExpr::from_text(text.into(), Precedence::Call)
    }

    /// Wraps a comparison, such as `a == b`.
    pub(super) fn from_comparison(text: impl Into<String>) -> BoolExpr {
        BoolExpr::from_text(text.into(), Precedence::Relation)
    }

    /// Compares an expression with a string literal.
    pub(super) fn equals_literal(subject: &str, text: &str) -> BoolExpr {
        BoolExpr::from_comparison(format!("{subject} == {}", cel_string_literal(text)))
    }

    /// Tests whether an expression equals one of several string literals.
    pub(super) fn is_in(subject: &str, texts: &[impl AsRef<str>]) -> BoolExpr {
        match texts {
            [] => BoolExpr::Never,
            [only] => BoolExpr::equals_literal(subject, only.as_ref()),
            several => {
                let list = cel_string_list(several.iter().map(AsRef::as_ref));
                BoolExpr::from_comparison(format!("{subject} in {list}"))
            }
        }
    }

    pub(super) fn and(self, other: BoolExpr) -> BoolExpr {
        BoolExpr::all([self, other])
    }

    pub(super) fn or(self, other: BoolExpr) -> BoolExpr {
        BoolExpr::any([self, other])
    }

    pub(super) fn not(self) -> BoolExpr {
        match self {
            BoolExpr::Always => BoolExpr::Never,
            BoolExpr::Never => BoolExpr::Always,
            BoolExpr::When(text) => {
                BoolExpr::from_call(format!("!{}", text.parenthesized_within(Precedence::Call)))
            }
        }
    }

    /// Joins expressions with `||`: true if one of them is.
    pub(super) fn any(tests: impl IntoIterator<Item = BoolExpr>) -> BoolExpr {
        join(tests, BoolExpr::Never, &BoolExpr::Always, " || ", Precedence::Or)
    }

    /// Joins expressions with `&&`: true if all of them are.
    pub(super) fn all(tests: impl IntoIterator<Item = BoolExpr>) -> BoolExpr {
        join(tests, BoolExpr::Always, &BoolExpr::Never, " && ", Precedence::And)
    }

    /// Returns the CEL expression as a text.
    pub(super) fn text(&self) -> &str {
        match self {
            BoolExpr::Always => "true",
            BoolExpr::Never => "false",
            BoolExpr::When(text) => &text.text,
        }
    }
}

/// Joins expressions with an operator: `neutral` ones are dropped, and an `absorbing` one decides the result.
fn join(
    tests: impl IntoIterator<Item = BoolExpr>,
    neutral: BoolExpr,
    absorbing: &BoolExpr,
    operator: &str,
    binding: Precedence,
) -> BoolExpr {
    let mut parts: Vec<ExprText> = Vec::new();
    for test in tests {
        match test {
            test if test == *absorbing => return test,
            BoolExpr::When(text) if !parts.contains(&text) => parts.push(text),
            _ => {}
        }
    }
    match parts.len() {
        0 => neutral,
        1 => parts.pop().map_or(neutral, BoolExpr::When),
        _ => {
            let texts: Vec<String> = parts.iter().map(|part| part.parenthesized_within(binding)).collect();
            BoolExpr::from_text(texts.join(operator), binding)
        }
    }
}

/// Returns the test whether the expression `subject` matches the glob.
pub(super) fn matches_glob(pattern: &str, subject: &str) -> BoolExpr {
    if pattern.contains('?') {
        return matches_regex(pattern, subject);
    }
    match pattern.split('*').collect::<Vec<_>>().as_slice() {
        [whole] => BoolExpr::equals_literal(subject, whole),
        parts if parts.iter().all(|part| part.is_empty()) => BoolExpr::Always,
        [start, rest @ ..] if rest.iter().all(|part| part.is_empty()) => {
            BoolExpr::from_call(format!("{subject}.startsWith({})", cel_string_literal(start)))
        }
        [rest @ .., end] if rest.iter().all(|part| part.is_empty()) => {
            BoolExpr::from_call(format!("{subject}.endsWith({})", cel_string_literal(end)))
        }
        _ => matches_regex(pattern, subject),
    }
}

/// Returns the test whether the expression `subject` matches one of the globs.
pub(super) fn matches_any_glob<'t>(patterns: impl IntoIterator<Item = &'t str>, subject: &str) -> BoolExpr {
    let (exact, open): (Vec<&str>, Vec<&str>) =
        patterns.into_iter().partition(|pattern| !pattern.contains(['*', '?']));
    BoolExpr::is_in(subject, &exact)
        .or(BoolExpr::any(open.into_iter().map(|pattern| matches_glob(pattern, subject))))
}

/// Returns the test whether the expression `subject` matches a glob with `${driver}`. `driver` is an expression for the
/// driver name, `driver_regex` one for a regular expression that matches the name.
pub(super) fn matches_driver_glob(
    pattern: &str,
    subject: &str,
    driver: Option<&str>,
    driver_regex: &str,
) -> BoolExpr {
    if !pattern.contains(DRIVER_PLACEHOLDER) {
        return matches_glob(pattern, subject);
    }
    if let (Some(driver), Some(rest)) = (driver, pattern.strip_prefix(DRIVER_PLACEHOLDER)) {
        let is_plain = |text: &str| !text.contains(['*', '?']) && !text.contains(DRIVER_PLACEHOLDER);
        match rest.strip_suffix('*') {
            Some(start) if is_plain(start) => {
                return BoolExpr::from_call(format!(
                    "{subject}.startsWith({driver} + {})",
                    cel_string_literal(start)
                ));
            }
            None if is_plain(rest) => {
                return BoolExpr::from_comparison(format!(
                    "{subject} == {driver} + {}",
                    cel_string_literal(rest)
                ));
            }
            _ => {}
        }
    }
    let parts: Vec<String> = pattern.split(DRIVER_PLACEHOLDER).map(glob_regex).collect();
    let joined = parts.join("\u{0}");
    let texts: Vec<String> = format!("(?s)^{joined}$").split('\u{0}').map(cel_string_literal).collect();
    BoolExpr::from_call(format!("{subject}.matches({})", texts.join(&format!(" + {driver_regex} + "))))
}

/// Returns the test whether the expression `subject` matches the glob, with a regular expression.
fn matches_regex(pattern: &str, subject: &str) -> BoolExpr {
    BoolExpr::from_call(format!(
        "{subject}.matches({})",
        cel_string_literal(&format!("(?s)^{}$", glob_regex(pattern)))
    ))
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
    use super::{BoolExpr, cel_string_literal, matches_any_glob, matches_driver_glob, matches_glob};

    #[test]
    fn literals_are_never_code() {
        assert_eq!(cel_string_literal("a'b\\c\n\u{1}"), "'a\\'b\\\\c\\n\\u0001'");
    }

    #[test]
    fn tests_are_joined_without_constants_and_with_parentheses() {
        let named = |name: &str| BoolExpr::from_call(name);
        let either = named("a").or(named("b"));
        assert_eq!(either.clone().and(named("c")).text(), "(a || b) && c");
        assert_eq!(either.clone().and(BoolExpr::Always).text(), "a || b");
        assert_eq!(either.clone().and(BoolExpr::Never).text(), "false");
        assert_eq!(either.clone().or(named("a")).text(), "a || b || a", "only whole parts are compared");
        assert_eq!(either.not().text(), "!(a || b)");
        assert_eq!(BoolExpr::equals_literal("x", "y").not().text(), "!(x == 'y')");
        assert_eq!(BoolExpr::Always.not().text(), "false");
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
        assert_eq!(matches_any_glob([], "x"), BoolExpr::Never);
    }

    #[test]
    fn the_driver_stands_for_its_placeholder() {
        let allow = |pattern: &str| matches_driver_glob(pattern, "k", Some("d"), "r").text().to_owned();
        assert_eq!(allow("${driver}/*"), "k.startsWith(d + '/')");
        assert_eq!(allow("${driver}/a"), "k == d + '/a'");
        assert_eq!(allow("*.${driver}/?"), "k.matches('(?s)^.*[.]' + r + '/.$')");
        assert_eq!(
            matches_driver_glob("${driver}/*", "k", None, "r").text(),
            "k.matches('(?s)^' + r + '/.*$')"
        );
    }
}
