//! What fails when the server turns a checked expression into a program: it evaluates conversions
//! of literals and compiles literal patterns right away, so their errors are errors of the object.
//!
//! upstream v1.34 `CompileCELExpression`, "program instantiation failed"; cel-go `decOptimize`.

use super::regex;
use super::tree::{ExprKind, Literal, Tree};

/// The detail text, if some literal cannot be converted.
pub(super) fn failure(tree: &Tree) -> Option<String> {
    tree.ids().find_map(|id| {
        let ExprKind::Call { function, target, args } = tree.kind(id) else { return None };
        let literal = |position: usize| match tree.kind(*args.get(position)?) {
            ExprKind::Literal(literal) => Some(literal),
            _ => None,
        };
        let problem = match (function.as_str(), target) {
            ("find" | "findAll", Some(_)) => bad_pattern(literal(0)?),
            ("matches", None) => bad_pattern(literal(1)?),
            (conversion, None) if args.len() == 1 => bad_conversion(conversion, literal(0)?),
            _ => None,
        };
        problem.map(|problem| format!("program instantiation failed: {problem}"))
    })
}

fn bad_pattern(literal: &Literal) -> Option<String> {
    match literal {
        Literal::String(pattern) if !regex::is_valid(pattern) => {
            Some(format!("error parsing regexp: `{pattern}`"))
        }
        _ => None,
    }
}

fn bad_conversion(function: &str, literal: &Literal) -> Option<String> {
    let fails = match (function, literal) {
        ("int", Literal::String(text)) => text.parse::<i64>().is_err(),
        ("int", Literal::Uint(value)) => i64::try_from(*value).is_err(),
        ("int", Literal::Double(value)) => value.abs() >= 9.3e18,
        ("uint", Literal::String(text)) => text.starts_with('+') || text.parse::<u64>().is_err(),
        ("uint", Literal::Int(value)) => *value < 0,
        ("uint", Literal::Double(value)) => *value < 0.0 || *value >= 1.85e19,
        ("double", Literal::String(text)) => !is_double(text),
        ("bool", Literal::String(text)) => !is_bool(text),
        ("string", Literal::Bytes(bytes)) => std::str::from_utf8(bytes).is_err(),
        _ => false,
    };
    fails.then(|| format!("type conversion error of a literal to '{function}'"))
}

/// Go `strconv.ParseFloat`. Hexadecimal and digit separators are left to the server.
fn is_double(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned.starts_with("0x") || unsigned.starts_with("0X") || unsigned.contains('_') {
        return true;
    }
    match text.parse::<f64>() {
        Ok(value) => value.is_finite() || unsigned.starts_with(|c: char| c.is_ascii_alphabetic()),
        Err(_) => false,
    }
}

/// Go `strconv.ParseBool`.
fn is_bool(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "TRUE" | "true" | "True" | "0" | "f" | "F" | "FALSE" | "false" | "False")
}
