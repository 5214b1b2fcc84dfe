//! Regular expressions: `matches`, `find`, `findAll`. Patterns are Go's, and are translated for the engine that runs
//! them (`translate`).

use regex::{Match, Regex, RegexBuilder};

use super::translate;
use crate::evaluate::value::{Evaluated, Failure, Value, error, no_such_overload};
use crate::regex as syntax;

/// The largest program of a pattern, in bytes.
const MAX_PROGRAM: usize = 64 << 20;

pub(super) fn find(name: &str) -> Option<super::Function> {
    Some(match name {
        "matches" => |args, _| match args {
            [Value::String(_), Value::String(pattern)] => apply("matches", &compiled(pattern, "")?, args),
            _ => no_such_overload(),
        },
        "find" => |args, _| match args {
            [Value::String(_), Value::String(pattern)] => {
                apply("find", &compiled(pattern, "Illegal regex: ")?, args)
            }
            _ => no_such_overload(),
        },
        "findAll" => |args, _| match args {
            [Value::String(_), Value::String(pattern), ..] => {
                apply("findAll", &compiled(pattern, "Illegal regex: ")?, args)
            }
            _ => no_such_overload(),
        },
        _ => return None,
    })
}

fn compiled(pattern: &str, before: &str) -> Result<Regex, Failure> {
    compile(pattern).or_else(|problem| error(format!("{before}{problem}")))
}

/// Compiles a pattern of Go; the error is Go's.
pub(in crate::evaluate) fn compile(pattern: &str) -> Result<Regex, String> {
    syntax::parse(pattern).map_err(|problem| problem.to_string())?;
    let translated = translate::translate(pattern);
    let built = RegexBuilder::new(&translated).size_limit(MAX_PROGRAM).dfa_size_limit(MAX_PROGRAM).build();
    built.ok().ok_or_else(|| format!("error parsing regexp: expression too large: `{pattern}`"))
}

/// Calls one of the functions with a pattern that is compiled.
pub(in crate::evaluate) fn apply(function: &str, pattern: &Regex, args: &[Value]) -> Evaluated {
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
