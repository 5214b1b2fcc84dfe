//! Regular expressions: `matches`, `find`, `findAll`. Patterns are Go's, and are translated for the engine that runs
//! them ([`crate::regex`]).

use std::fmt;

use regex::{Regex, RegexBuilder};

use crate::evaluate::value::{Evaluated, Value, eval_error, no_such_overload};
use crate::regex::{self as syntax, PatternError};

/// The largest program of a pattern of a device selector, in bytes.
const MAX_PROGRAM_BYTES: usize = 64 << 20;

/// A regular expression in Go's syntax, compiled for the engine that runs it.
#[derive(Clone, Debug)]
pub struct GoPattern {
    regex: Regex,
    instructions: u64,
}

/// The reason why a pattern cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GoPatternError {
    /// Go does not accept the pattern.
    Invalid(PatternError),
    /// The program of the pattern is larger than the caller allows.
    TooLarge,
}

impl fmt::Display for GoPatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GoPatternError::Invalid(problem) => problem.fmt(f),
            GoPatternError::TooLarge => f.write_str("error parsing regexp: expression too large"),
        }
    }
}

impl GoPattern {
    /// The number of large classes in a pattern that ignore case, such as `(?i)[α-ω]`: compiling one can take some
    /// milliseconds. 0 if the pattern is invalid.
    pub fn large_folded_classes(pattern: &str) -> u64 {
        syntax::parse_pattern(pattern).map_or(0, |parsed| parsed.large_folded_classes)
    }

    /// Compiles a pattern. Its program can take `max_bytes` of memory, and what a search remembers for the next search
    /// `max_cache_bytes`.
    pub fn compile(
        pattern: &str,
        max_bytes: usize,
        max_cache_bytes: usize,
    ) -> Result<GoPattern, GoPatternError> {
        let parsed = syntax::parse_pattern(pattern).map_err(GoPatternError::Invalid)?;
        let mut builder = RegexBuilder::new(&parsed.translated);
        let built = builder.size_limit(max_bytes).dfa_size_limit(max_cache_bytes).build();
        let regex = built.ok().ok_or(GoPatternError::TooLarge)?;
        Ok(GoPattern { regex, instructions: parsed.size })
    }

    /// The number of instructions of Go's program. The time of a search grows with it times the length of the text.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// True if the pattern matches a part of the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Returns the matches one after the other, which are found as they are asked for, each with the text after it.
    pub fn matches_with_rest<'t>(&self, text: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
        let rest = move |end| text.get(end..).unwrap_or_default();
        self.regex.find_iter(text).map(move |found| (found.as_str(), rest(found.end())))
    }
}

pub(super) fn try_call(name: &str, args: &[Value]) -> Option<Evaluated> {
    let prefix = match (name, args) {
        ("matches", [Value::String(_), Value::String(_)]) => "",
        ("find", [Value::String(_), Value::String(_)])
        | ("findAll", [Value::String(_), Value::String(_), ..]) => "Illegal regex: ",
        _ => return None,
    };
    let pattern = args.get(1).and_then(Value::as_str).unwrap_or_default();
    Some(match compile_go_pattern(pattern) {
        Ok(pattern) => call_with_pattern(name, &pattern, args),
        Err(problem) => eval_error(format!("{prefix}{problem}")),
    })
}

/// Compiles a pattern in Go's syntax, with Go's error text.
pub(in crate::evaluate) fn compile_go_pattern(pattern: &str) -> Result<GoPattern, String> {
    GoPattern::compile(pattern, MAX_PROGRAM_BYTES, MAX_PROGRAM_BYTES).map_err(|problem| match problem {
        GoPatternError::Invalid(problem) => problem.to_string(),
        GoPatternError::TooLarge => format!("{problem}: `{pattern}`"),
    })
}

/// Calls one of the functions with a pattern that is compiled.
pub(in crate::evaluate) fn call_with_pattern(
    function: &str,
    pattern: &GoPattern,
    args: &[Value],
) -> Evaluated {
    let Some(Value::String(text)) = args.first() else { return no_such_overload() };
    let mut found = pattern.matches_with_rest(text).map(|(found, _)| found);
    match (function, args) {
        ("matches", _) => Ok(Value::Bool(pattern.is_match(text))),
        ("find", _) => Ok(Value::string(found.next().unwrap_or_default())),
        (_, [_, _]) => Ok(Value::strings(found)),
        (_, [_, _, Value::Int(limit)]) => {
            Ok(Value::strings(found.take(usize::try_from(*limit).unwrap_or(usize::MAX))))
        }
        _ => no_such_overload(),
    }
}

#[cfg(test)]
mod tests {
    use super::compile_go_pattern;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        for (pattern, text, is_match) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^\w$", "é", false),
            (r"^\W$", "é", true),
            (r"^[\W]$", "é", true),
            (r"^[^\w]$", "é", true),
            (r"\bé", "aé", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^a{2}$", "aa", true),
            (r"^a{02}$", "a{02}", true),
            (r"^a\Q\E*$", "aa", true),
            (r"^[a&&b]+$", "&", true),
            (r"^[[a]$", "[", true),
            (r"^[]a]+$", "]a", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^\101$", "A", true),
            (r"^\x41\x{1F600}$", "A😀", true),
            (r"^\<$", "<", true),
            (r"^[\x41-\x43]+$", "ABC", true),
            (r"(?i)^straße$", "STRAßE", true),
            (r"^\pN$", "٣", true),
            (r"^[[:alpha:]]$", "é", false),
            (r"^[a\-z]+$", "a-z", true),
            (r"^(?P<x>a)|b$", "b", true),
            (r"a.c", "a\nc", false),
            (r"(?s)a.c", "a\nc", true),
            (r"(?)^a(?)*$", "aa", true),
            (r"(?ii-s)^A$", "a", true),
            (r"(?i-i)^A$", "a", false),
            (r"(?i)^(?-i:a)B$", "ab", true),
            (r"^(?P<n>a)(?P<n>b)$", "ab", true),
            (r"^[a-z&&[^b]]+$", "b]", true),
            (r"^\B", "é", true),
            (r"a\Bé", "aé", false),
            (r"é\Bé", "éé", true),
            (r"a\Bb", "ab", true),
            (r"(?i)^\w$", "ſ", true),
            (r"(?i)^\W$", "ſ", false),
            (r"(?i)^[^\w]$", "ſ", false),
        ] {
            let compiled =
                compile_go_pattern(pattern).unwrap_or_else(|problem| panic!("{pattern}: {problem}"));
            assert_eq!(compiled.is_match(text), is_match, "{pattern} {text}");
        }
    }
}
