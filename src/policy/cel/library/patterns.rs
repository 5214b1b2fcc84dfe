//! Patterns: `matches`, `find`, `findAll`. RE2's syntax, linear time, compiled once per thread.
//!
//! A literal pattern is part of the policy and costs nothing to compile, so that all requests of a thread have the same
//! budget. A computed pattern is charged every time, cached or not, so that the same request gets the same result.

use std::cell::RefCell;
use std::collections::HashMap;

use ::cel::common::types::{CelInt, CelList, CelString, INT_TYPE, STRING_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};
use regex::{Regex, RegexBuilder};

use super::{CelResult, argument, boolean, charge_steps, function_error, string, text};

pub(super) const NAMES: &[&str] = &["find", "findAll"];

/// Cached literal patterns per thread; bounded, because reloaded policies leave theirs behind.
const MAX_FIXED_PATTERNS: usize = 1024;
/// Cached computed patterns per thread.
const MAX_COMPUTED_PATTERNS: usize = 64;
/// Bytes of one compiled pattern.
const MAX_COMPILED_BYTES: usize = 1 << 18;
/// The cost of a computed pattern: compiling takes one or two milliseconds at worst.
const COMPILE_COST: u64 = 20_000;

/// Variants for literal patterns; `rewrite` selects them.
pub(in crate::policy::cel) const FIXED_FUNCTIONS: &[(&str, &str)] =
    &[("matches", "__matches_fixed"), ("find", "__find_fixed"), ("findAll", "__find_all_fixed")];

type RegexCache = RefCell<HashMap<Box<str>, Option<Regex>>>;

thread_local! {
    static FIXED_PATTERNS: RegexCache = RefCell::default();
    static COMPUTED_PATTERNS: RegexCache = RefCell::default();
}

/// Where a pattern comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PatternSource {
    Policy,
    Request,
}

pub(super) fn add(env: &mut Env) -> Result<(), DeclarationError> {
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

/// Checks a pattern.
pub(super) fn check(pattern: &str) -> Result<(), String> {
    compile(pattern)
        .map(drop)
        .map_err(|reason| format!("{pattern:?} is not a valid regular expression: {reason}"))
}

fn compile(pattern: &str) -> Result<Regex, String> {
    let regex = RegexBuilder::new(pattern).size_limit(MAX_COMPILED_BYTES).build();
    regex.map_err(|error| {
        let text = error.to_string();
        text.lines().next_back().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

/// Charges for one search: its worst case is text × pattern.
fn charge_search(text: &str, pattern: &str) -> Result<(), ExecutionError> {
    charge_steps((text.len() / 4 + 1) as u64 * (pattern.len() / 32 + 1) as u64)
}

fn with_pattern<T>(
    source: PatternSource,
    pattern: &str,
    look: impl FnOnce(&Regex) -> Result<T, ExecutionError>,
) -> Result<T, ExecutionError> {
    let (cache, max) = match source {
        PatternSource::Policy => (&FIXED_PATTERNS, MAX_FIXED_PATTERNS),
        PatternSource::Request => (&COMPUTED_PATTERNS, MAX_COMPUTED_PATTERNS),
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
            Some(Some(regex)) => look(regex),
            _ => Err(function_error("matches", format!("{pattern:?} is not a valid regular expression"))),
        }
    })
}

fn matches<'b, 'v>(arguments: &[CowVal<'b, 'v>], source: PatternSource) -> CelResult<'b, 'v> {
    let (value, pattern) = (text(arguments, 0)?, text(arguments, 1)?);
    charge_search(value, pattern)?;
    with_pattern(source, pattern, |regex| Ok(boolean(regex.is_match(value))))
}

/// The first match, or the empty text.
fn find<'b, 'v>(arguments: &[CowVal<'b, 'v>], source: PatternSource) -> CelResult<'b, 'v> {
    let (value, pattern) = (text(arguments, 0)?, text(arguments, 1)?);
    charge_search(value, pattern)?;
    with_pattern(source, pattern, |regex| Ok(string(regex.find(value).map_or("", |found| found.as_str()))))
}

/// All matches, or the first so many. Each is a search of the rest of the text, and pays for it.
fn find_all<'b, 'v>(arguments: &[CowVal<'b, 'v>], source: PatternSource) -> CelResult<'b, 'v> {
    let (value, pattern) = (text(arguments, 0)?, text(arguments, 1)?);
    let limit = match arguments.len() {
        2 => -1,
        _ => *argument::<CelInt>(arguments, 2)?.inner(),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    with_pattern(source, pattern, |regex| {
        let mut found: Vec<Box<dyn Val + 'v>> = Vec::new();
        let mut all = regex.find_iter(value);
        let mut rest = value;
        while found.len() < limit {
            charge_search(rest, pattern)?;
            let Some(one) = all.next() else { break };
            found.push(Box::new(CelString::from(one.as_str().to_owned())));
            rest = value.get(one.end()..).unwrap_or_default();
        }
        Ok(CowVal::owned(CelList::from(found)))
    })
}
