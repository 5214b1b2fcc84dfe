//! Patterns: `matches`, `find`, `findAll`. RE2's syntax, compiled once per thread.
//!
//! The time of a search grows with the length of the text times the size of the pattern's program: `[ab]{200}` is a
//! program of 200 instructions. The DFA cache of the regex engine is off, because a crafted text could fill it for
//! every pattern and thread. A literal pattern is part of the policy, and compiling it is not charged. A computed
//! pattern is charged every time, cached or not, so that the same request gets the same result.

use std::cell::RefCell;
use std::collections::HashMap;

use ::cel::common::types::{CelInt, CelList, CelString, INT_TYPE, STRING_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};
use regex::{Regex, RegexBuilder};

use super::super::tree::SharedList;
use super::{CelResult, argument, boolean, charge_steps, function_error, string, string_at};

/// Maximum number of literal patterns that a thread caches. It is limited because policies that were reloaded leave
/// their patterns behind.
const MAX_CACHED_LITERAL_PATTERNS: usize = 1024;
/// Maximum number of computed patterns that a thread caches.
const MAX_CACHED_COMPUTED_PATTERNS: usize = 64;
/// Maximum size of one compiled pattern in bytes.
const MAX_COMPILED_BYTES: usize = 1 << 18;
/// Instructions of a program that are executed for one character in one step, at worst.
const INSTRUCTIONS_PER_STEP: u64 = 10;
/// Number of instructions that is assumed for a pattern that RE2 does not accept: more than a compiled pattern can
/// have.
const ASSUMED_INSTRUCTIONS: u64 = 1 << 14;
/// Steps that a computed pattern takes from the budget of an evaluation, because compiling it takes one or two
/// milliseconds at worst.
const COMPILE_COST: u64 = 20_000;

/// Functions that take a pattern, each with the internal function that `rewrite` calls instead if the pattern is a
/// literal.
pub(in crate::policy::cel) const LITERAL_PATTERN_FUNCTIONS: &[(&str, &str)] =
    &[("matches", "__matches_fixed"), ("find", "__find_fixed"), ("findAll", "__find_all_fixed")];
/// Functions that take a pattern, each with the internal function that `rewrite` calls instead if the pattern is
/// computed.
pub(in crate::policy::cel) const COMPUTED_PATTERN_FUNCTIONS: &[(&str, &str)] = &[("matches", "__matches")];

/// A compiled pattern, and the number of instructions of its program.
#[derive(Clone, Debug)]
struct Pattern {
    regex: Regex,
    size: u64,
}

type PatternCache = RefCell<HashMap<Box<str>, Option<Pattern>>>;

thread_local! {
    static LITERAL_PATTERNS: PatternCache = RefCell::default();
    static COMPUTED_PATTERNS: PatternCache = RefCell::default();
}

/// Where a pattern comes from: a literal in the policy, or a value computed from the request. Only the latter is
/// charged for compiling.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PatternSource {
    Policy,
    Request,
}

pub(super) fn declare_functions(env: &mut Env) -> Result<(), DeclarationError> {
    let word = || vec![STRING_TYPE];
    let limited = || vec![STRING_TYPE, INT_TYPE];
    let string = || STRING_TYPE;
    env.add_member_overload("__matches", "__matches", string(), word(), |it| {
        matches(&it, PatternSource::Request)
    })?;
    env.add_member_overload("__matches_fixed", "__matches_fixed", string(), word(), |it| {
        matches(&it, PatternSource::Policy)
    })?;
    env.add_member_overload("find", "string.find", string(), word(), |it| find(&it, PatternSource::Request))?;
    env.add_member_overload("__find_fixed", "__find_fixed", string(), word(), |it| {
        find(&it, PatternSource::Policy)
    })?;
    env.add_member_overload("findAll", "findAll", string(), word(), |it| {
        find_all(&it, PatternSource::Request)
    })?;
    env.add_member_overload("findAll", "findAll.n", string(), limited(), |it| {
        find_all(&it, PatternSource::Request)
    })?;
    let fixed = "__find_all_fixed";
    env.add_member_overload(fixed, "all", string(), word(), |it| find_all(&it, PatternSource::Policy))?;
    env.add_member_overload(fixed, "all.n", string(), limited(), |it| find_all(&it, PatternSource::Policy))
}

/// Returns an error if the pattern is not a valid regular expression.
pub(super) fn check_pattern(pattern: &str) -> Result<(), String> {
    compile(pattern)
        .map(drop)
        .map_err(|reason| format!("{pattern:?} is not a valid regular expression: {reason}"))
}

fn compile(pattern: &str) -> Result<Pattern, String> {
    let regex = RegexBuilder::new(pattern).size_limit(MAX_COMPILED_BYTES).dfa_size_limit(0).build();
    let regex = regex.map_err(|error| {
        let text = error.to_string();
        text.lines().next_back().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })?;
    Ok(Pattern { regex, size: tollgate_cel::regex::go_program_size(pattern).unwrap_or(ASSUMED_INSTRUCTIONS) })
}

impl Pattern {
    /// Charges for one search in a text, by the length of the text and the size of the pattern.
    fn charge_search(&self, text: &str) -> Result<(), ExecutionError> {
        charge_steps(1 + (text.len() as u64).saturating_mul(self.size + 2) / INSTRUCTIONS_PER_STEP)
    }
}

fn with_cached_pattern<T>(
    source: PatternSource,
    pattern: &str,
    look: impl FnOnce(&Pattern) -> Result<T, ExecutionError>,
) -> Result<T, ExecutionError> {
    let (cache, max) = match source {
        PatternSource::Policy => (&LITERAL_PATTERNS, MAX_CACHED_LITERAL_PATTERNS),
        PatternSource::Request => (&COMPUTED_PATTERNS, MAX_CACHED_COMPUTED_PATTERNS),
    };
    if source == PatternSource::Request {
        charge_steps(COMPILE_COST)?;
    }
    cache.with_borrow_mut(|patterns| {
        if !patterns.contains_key(pattern) {
            if patterns.len() >= max {
                patterns.clear();
            }
            patterns.insert(pattern.into(), compile(pattern).ok());
        }
        match patterns.get(pattern) {
            Some(Some(pattern)) => look(pattern),
            _ => Err(function_error("matches", format!("{pattern:?} is not a valid regular expression"))),
        }
    })
}

fn matches<'b, 'v>(arguments: &[CowVal<'b, 'v>], source: PatternSource) -> CelResult<'b, 'v> {
    let (value, pattern) = (string_at(arguments, 0)?, string_at(arguments, 1)?);
    with_cached_pattern(source, pattern, |pattern| {
        pattern.charge_search(value)?;
        Ok(boolean(pattern.regex.is_match(value)))
    })
}

/// Implements `find`: the first match, or an empty string.
fn find<'b, 'v>(arguments: &[CowVal<'b, 'v>], source: PatternSource) -> CelResult<'b, 'v> {
    let (value, pattern) = (string_at(arguments, 0)?, string_at(arguments, 1)?);
    with_cached_pattern(source, pattern, |pattern| {
        pattern.charge_search(value)?;
        Ok(string(pattern.regex.find(value).map_or("", |found| found.as_str())))
    })
}

/// Implements `findAll`: all matches, or up to a limit. Each match is charged as a search of the remaining
/// text.
fn find_all<'b, 'v>(arguments: &[CowVal<'b, 'v>], source: PatternSource) -> CelResult<'b, 'v> {
    let (value, pattern) = (string_at(arguments, 0)?, string_at(arguments, 1)?);
    let limit = match arguments.len() {
        2 => -1,
        _ => *argument::<CelInt>(arguments, 2)?.inner(),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    with_cached_pattern(source, pattern, |pattern| {
        let mut found: Vec<Box<dyn Val + 'v>> = Vec::new();
        let mut all = pattern.regex.find_iter(value);
        let mut rest = value;
        while found.len() < limit {
            pattern.charge_search(rest)?;
            let Some(one) = all.next() else { break };
            charge_steps((4 + one.len() / 8) as u64)?;
            found.push(Box::new(CelString::from(one.as_str().to_owned())));
            rest = value.get(one.end()..).unwrap_or_default();
        }
        Ok(CowVal::owned(SharedList::from_computed(CelList::from(found))))
    })
}
