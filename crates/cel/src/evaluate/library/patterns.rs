//! Regular expressions: `matches`, `find`, `findAll`. Patterns are Go's, and are translated for the engine that runs
//! them ([`crate::regex`]).

use regex::{Match, Regex, RegexBuilder};

use crate::evaluate::value::{Evaluated, Value, eval_error, no_such_overload};
use crate::regex as syntax;

/// The largest program of a pattern, in bytes.
const MAX_PROGRAM_BYTES: usize = 64 << 20;

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
pub(in crate::evaluate) fn compile_go_pattern(pattern: &str) -> Result<Regex, String> {
    let translated = syntax::translate_for_regex_crate(pattern).map_err(|problem| problem.to_string())?;
    let built = RegexBuilder::new(&translated)
        .size_limit(MAX_PROGRAM_BYTES)
        .dfa_size_limit(MAX_PROGRAM_BYTES)
        .build();
    built.ok().ok_or_else(|| format!("error parsing regexp: expression too large: `{pattern}`"))
}

/// Calls one of the functions with a pattern that is compiled.
pub(in crate::evaluate) fn call_with_pattern(function: &str, pattern: &Regex, args: &[Value]) -> Evaluated {
    let Some(Value::String(text)) = args.first() else { return no_such_overload() };
    match (function, args) {
        ("matches", _) => Ok(Value::Bool(pattern.is_match(text))),
        ("find", _) => Ok(Value::string(pattern.find(text).as_ref().map_or("", Match::as_str))),
        (_, [_, _]) => Ok(Value::strings(pattern.find_iter(text).map(|found: Match<'_>| found.as_str()))),
        (_, [_, _, Value::Int(limit)]) => {
            let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
            Ok(Value::strings(pattern.find_iter(text).take(limit).map(|found: Match<'_>| found.as_str())))
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
        ] {
            let compiled =
                compile_go_pattern(pattern).unwrap_or_else(|problem| panic!("{pattern}: {problem}"));
            assert_eq!(compiled.is_match(text), is_match, "{pattern} {text}");
        }
    }
}
