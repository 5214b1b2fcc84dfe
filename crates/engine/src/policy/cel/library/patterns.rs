//! Patterns: `matches`, `find`, `findAll`, with the regular expressions of `tollgate_cel`.
//!
//! The time of a search grows with the length of the text times the size of the pattern's program: `[ab]{200}` is a
//! program of 200 instructions. The DFA cache of the regex engine is off, because a crafted text could fill it for
//! every pattern and thread. A literal pattern is part of its expression, which is compiled with it. A computed pattern
//! is compiled, and charged for that, every time.

use std::cell::RefCell;
use std::sync::Arc;

use ::cel::common::functions::Function;
use ::cel::common::types::{CelInt, CelList, CelString, INT_TYPE, STRING_TYPE, Type};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};
use tollgate_cel::evaluate::{GoPattern, GoPatternError};

use super::super::tree::SharedList;
use super::{CelResult, argument, boolean, charge_steps, function_error, string, string_at};

/// Maximum size of a compiled computed pattern in bytes.
const MAX_COMPUTED_BYTES: usize = 1 << 20;
/// Maximum size of all compiled literal patterns of an expression in bytes.
const MAX_LITERAL_BYTES: usize = 4 << 20;
/// Maximum length of a computed pattern in bytes.
const MAX_COMPUTED_LENGTH: usize = 4096;
/// Maximum number of large classes that ignore case in all literal patterns of an expression.
const MAX_LITERAL_FOLDED_CLASSES: u64 = 16;
/// Instructions of a program that are executed for one character in one step, at worst.
const INSTRUCTIONS_PER_STEP: u64 = 10;
/// Steps that a computed pattern takes from the budget of an evaluation, because compiling it takes four milliseconds
/// at worst.
const COMPILE_COST: u64 = 20_000;
/// Steps for each Unicode class in a computed pattern, for the letters that it gets by ignoring case.
const UNICODE_CLASS_COST: u64 = 1_000;
/// Steps for each large class that ignores case in a computed pattern.
const FOLDED_CLASS_COST: u64 = 25_000;

/// Functions that take a pattern, each with the internal function that `rewrite` calls instead if the pattern is a
/// literal.
pub(in crate::policy::cel) const LITERAL_PATTERN_FUNCTIONS: &[(&str, &str)] =
    &[("matches", "__matches_fixed"), ("find", "__find_fixed"), ("findAll", "__find_all_fixed")];
/// Functions that take a pattern, each with the internal function that `rewrite` calls instead if the pattern is
/// computed.
pub(in crate::policy::cel) const COMPUTED_PATTERN_FUNCTIONS: &[(&str, &str)] = &[("matches", "__matches")];

thread_local! {
    static LITERAL_PATTERNS: RefCell<Arc<[GoPattern]>> = RefCell::new(Arc::new([]));
}

/// The literal patterns of an expression, in the order in which `rewrite` finds them.
#[derive(Debug, Default)]
pub(in crate::policy::cel) struct LiteralPatterns {
    pub(in crate::policy::cel) compiled: Vec<GoPattern>,
    bytes: usize,
    folded_classes: u64,
}

impl LiteralPatterns {
    /// Compiles a pattern and returns its index. The error says why it is not allowed.
    pub(in crate::policy::cel) fn add(&mut self, pattern: &str) -> Result<usize, String> {
        self.folded_classes += GoPattern::large_folded_classes(pattern);
        if self.folded_classes > MAX_LITERAL_FOLDED_CLASSES {
            return Err(format!(
                "regular expressions have more than {MAX_LITERAL_FOLDED_CLASSES} classes beyond ASCII that ignore case, with {pattern:?}"
            ));
        }
        let left = MAX_LITERAL_BYTES.saturating_sub(self.bytes);
        // The engine does not tell the size of a program, so the first of these sizes that suffices counts.
        let mut bytes = 1 << 14;
        let compiled = loop {
            match GoPattern::compile(pattern, bytes.min(left), 0) {
                Err(GoPatternError::TooLarge) if bytes < left => bytes *= 8,
                compiled => break compiled,
            }
        };
        self.compiled.push(compiled.map_err(|error| compile_error(pattern, &error, MAX_LITERAL_BYTES))?);
        self.bytes += bytes;
        Ok(self.compiled.len() - 1)
    }
}

/// Makes `patterns` those that the literals of the current expression stand for.
pub(in crate::policy::cel) fn start_evaluation(patterns: &Arc<[GoPattern]>) {
    LITERAL_PATTERNS.set(Arc::clone(patterns));
}

fn compile_error(pattern: &str, error: &GoPatternError, max: usize) -> String {
    match error {
        GoPatternError::Invalid(problem) => {
            format!("{pattern:?} is not a valid regular expression: {problem}")
        }
        GoPatternError::TooLarge => {
            format!("regular expressions are larger than {max} bytes when compiled, with {pattern:?}")
        }
    }
}

type PatternCall = for<'a, 'b, 'v> fn(&'a str, &GoPattern, &'a [CowVal<'b, 'v>]) -> CelResult<'b, 'v>;

/// Calls a function with a pattern that is an index of [`LITERAL_PATTERNS`].
fn call_with_literal<'b, 'v>(arguments: &[CowVal<'b, 'v>], call: PatternCall) -> CelResult<'b, 'v> {
    let (value, index) = (string_at(arguments, 0)?, *argument::<CelInt>(arguments, 1)?.inner());
    LITERAL_PATTERNS.with_borrow(|patterns| {
        let pattern = usize::try_from(index).ok().and_then(|index| patterns.get(index));
        call(value, pattern.ok_or_else(|| function_error("matches", "has no pattern"))?, arguments)
    })
}

/// Calls a function with a pattern that the expression computed, after charging for compiling it.
fn call_with_computed<'b, 'v>(arguments: &[CowVal<'b, 'v>], call: PatternCall) -> CelResult<'b, 'v> {
    let (value, pattern) = (string_at(arguments, 0)?, string_at(arguments, 1)?);
    if pattern.len() > MAX_COMPUTED_LENGTH {
        let reason = format!("a pattern that is not a literal is longer than {MAX_COMPUTED_LENGTH} bytes");
        return Err(function_error("matches", reason));
    }
    let classes = pattern.to_ascii_lowercase().matches("\\p").count() as u64;
    let folded = GoPattern::large_folded_classes(pattern);
    charge_steps(COMPILE_COST + UNICODE_CLASS_COST * classes + FOLDED_CLASS_COST * folded)?;
    match GoPattern::compile(pattern, MAX_COMPUTED_BYTES, 0) {
        Ok(compiled) => call(value, &compiled, arguments),
        Err(error) => Err(function_error("matches", compile_error(pattern, &error, MAX_COMPUTED_BYTES))),
    }
}

pub(super) fn declare_functions(env: &mut Env) -> Result<(), DeclarationError> {
    let (text, index) = (|| vec![STRING_TYPE], || vec![INT_TYPE]);
    let limited = |pattern| vec![pattern, INT_TYPE];
    let overloads: [(&str, &str, Vec<Type>, Function); 8] = [
        ("__matches", "__matches", text(), |it| call_with_computed(&it, matches)),
        ("__matches_fixed", "__matches_fixed", index(), |it| call_with_literal(&it, matches)),
        ("find", "string.find", text(), |it| call_with_computed(&it, find)),
        ("__find_fixed", "__find_fixed", index(), |it| call_with_literal(&it, find)),
        ("findAll", "findAll", text(), |it| call_with_computed(&it, find_all)),
        ("findAll", "findAll.n", limited(STRING_TYPE), |it| call_with_computed(&it, find_all)),
        ("__find_all_fixed", "all", index(), |it| call_with_literal(&it, find_all)),
        ("__find_all_fixed", "all.n", limited(INT_TYPE), |it| call_with_literal(&it, find_all)),
    ];
    for (name, id, arguments, function) in overloads {
        env.add_member_overload(name, id, STRING_TYPE, arguments, function)?;
    }
    Ok(())
}

/// Charges for one search in a text, by the length of the text and the size of the pattern.
fn charge_search(pattern: &GoPattern, text: &str) -> Result<(), ExecutionError> {
    let work = (text.len() as u64).saturating_mul(pattern.instructions().saturating_add(2));
    charge_steps(1 + work / INSTRUCTIONS_PER_STEP)
}

fn matches<'b, 'v>(value: &str, pattern: &GoPattern, _: &[CowVal<'b, 'v>]) -> CelResult<'b, 'v> {
    charge_search(pattern, value)?;
    Ok(boolean(pattern.is_match(value)))
}

/// Implements `find`: the first match, or an empty string.
fn find<'b, 'v>(value: &str, pattern: &GoPattern, _: &[CowVal<'b, 'v>]) -> CelResult<'b, 'v> {
    charge_search(pattern, value)?;
    Ok(string(pattern.matches_with_rest(value).next().map_or("", |(found, _)| found)))
}

/// Implements `findAll`: all matches, or up to a limit. Each match is charged as a search of the remaining
/// text.
fn find_all<'b, 'v>(value: &str, pattern: &GoPattern, arguments: &[CowVal<'b, 'v>]) -> CelResult<'b, 'v> {
    let limit = if arguments.len() > 2 { *argument::<CelInt>(arguments, 2)?.inner() } else { -1 };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut found: Vec<Box<dyn Val + 'v>> = Vec::new();
    let mut all = pattern.matches_with_rest(value);
    let mut rest = value;
    while found.len() < limit {
        charge_search(pattern, rest)?;
        let Some((one, after)) = all.next() else { break };
        charge_steps((4 + one.len() / 8) as u64)?;
        found.push(Box::new(CelString::from(one.to_owned())));
        rest = after;
    }
    Ok(CowVal::owned(SharedList::from_computed(CelList::from(found))))
}
