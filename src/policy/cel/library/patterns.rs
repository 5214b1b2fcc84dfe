//! Patterns: `matches`, `find`, `findAll`. RE2's syntax, linear time, compiled once per thread.
//!
//! A pattern that is written out is as good as a part of the policy: compiling it is free, so that the first request
//! of a thread is judged as the next. One that is computed may be another one each time, and pays each time, whether
//! or not it is known already: the same request gets the same answer.

use std::cell::RefCell;
use std::collections::HashMap;

use ::cel::common::types::{CelInt, CelList, CelString, INT_TYPE, STRING_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};
use regex::{Regex, RegexBuilder};

use super::{Answer, argument, boolean, failed, steps, string, text};

pub(super) const NAMES: &[&str] = &["find", "findAll"];

/// Patterns of policies kept per thread; those of sets that are gone must not fill the memory.
const KEPT: usize = 1024;
/// Computed patterns kept per thread.
const KEPT_COMPUTED: usize = 64;
/// Bytes of one compiled pattern.
const SIZE: usize = 1 << 18;
/// What a computed one costs: compiling takes a millisecond or two at worst.
const COMPILING: u64 = 20_000;

/// Functions of a pattern that is written out; `rewrite` tells them apart.
pub(in crate::policy::cel) const FIXED: &[(&str, &str)] =
    &[("matches", "__matches_fixed"), ("find", "__find_fixed"), ("findAll", "__find_all_fixed")];

type Kept = RefCell<HashMap<Box<str>, Option<Regex>>>;

thread_local! {
    static FIXED_PATTERNS: Kept = RefCell::default();
    static COMPUTED_PATTERNS: Kept = RefCell::default();
}

/// Where a pattern comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Policy,
    Request,
}

pub(super) fn add(env: &mut Env) -> Result<(), DeclarationError> {
    let word = || vec![STRING_TYPE];
    let limited = || vec![STRING_TYPE, INT_TYPE];
    let string = || STRING_TYPE;
    env.add_member_overload("__matches", "__matches", string(), word(), |it| matches(&it, From::Request))?;
    env.add_member_overload("__matches_fixed", "__matches_fixed", string(), word(), |it| {
        matches(&it, From::Policy)
    })?;
    env.add_member_overload("find", "string.find", string(), word(), |it| find(&it, From::Request))?;
    env.add_member_overload("__find_fixed", "__find_fixed", string(), word(), |it| find(&it, From::Policy))?;
    env.add_member_overload("findAll", "findAll", string(), word(), |it| find_all(&it, From::Request))?;
    env.add_member_overload("findAll", "findAll.n", string(), limited(), |it| find_all(&it, From::Request))?;
    let fixed = "__find_all_fixed";
    env.add_member_overload(fixed, "all", string(), word(), |it| find_all(&it, From::Policy))?;
    env.add_member_overload(fixed, "all.n", string(), limited(), |it| find_all(&it, From::Policy))
}

/// Says why a text is no pattern.
pub(super) fn check(pattern: &str) -> Result<(), String> {
    compiled(pattern).map(drop).map_err(|reason| format!("{pattern:?} is not a pattern: {reason}"))
}

fn compiled(pattern: &str) -> Result<Regex, String> {
    let regex = RegexBuilder::new(pattern).size_limit(SIZE).build();
    regex.map_err(|error| {
        let text = error.to_string();
        text.lines().next_back().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

/// The engine's worst case for one search is text × pattern.
fn search(text: &str, pattern: &str) -> Result<(), ExecutionError> {
    steps((text.len() / 4 + 1) as u64 * (pattern.len() / 32 + 1) as u64)
}

fn with_pattern<T>(
    from: From,
    pattern: &str,
    look: impl FnOnce(&Regex) -> Result<T, ExecutionError>,
) -> Result<T, ExecutionError> {
    let (kept, most) = match from {
        From::Policy => (&FIXED_PATTERNS, KEPT),
        From::Request => (&COMPUTED_PATTERNS, KEPT_COMPUTED),
    };
    if from == From::Request {
        steps(COMPILING)?;
    }
    kept.with_borrow_mut(|patterns| {
        if !patterns.contains_key(pattern) {
            if patterns.len() >= most {
                patterns.clear();
            }
            patterns.insert(pattern.into(), compiled(pattern).ok());
        }
        match patterns.get(pattern) {
            Some(Some(regex)) => look(regex),
            _ => Err(failed("matches", format!("{pattern:?} is not a pattern"))),
        }
    })
}

fn matches<'b, 'v>(arguments: &[CowVal<'b, 'v>], from: From) -> Answer<'b, 'v> {
    let (value, pattern) = (text(arguments, 0)?, text(arguments, 1)?);
    search(value, pattern)?;
    with_pattern(from, pattern, |regex| Ok(boolean(regex.is_match(value))))
}

/// The first match, or the empty text.
fn find<'b, 'v>(arguments: &[CowVal<'b, 'v>], from: From) -> Answer<'b, 'v> {
    let (value, pattern) = (text(arguments, 0)?, text(arguments, 1)?);
    search(value, pattern)?;
    with_pattern(from, pattern, |regex| Ok(string(regex.find(value).map_or("", |found| found.as_str()))))
}

/// All matches, or the first so many. Each is a search of the rest of the text, and pays for it.
fn find_all<'b, 'v>(arguments: &[CowVal<'b, 'v>], from: From) -> Answer<'b, 'v> {
    let (value, pattern) = (text(arguments, 0)?, text(arguments, 1)?);
    let limit = match arguments.len() {
        2 => -1,
        _ => *argument::<CelInt>(arguments, 2)?.inner(),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    with_pattern(from, pattern, |regex| {
        let mut found: Vec<Box<dyn Val + 'v>> = Vec::new();
        let mut all = regex.find_iter(value);
        let mut rest = value;
        while found.len() < limit {
            search(rest, pattern)?;
            let Some(one) = all.next() else { break };
            found.push(Box::new(CelString::from(one.as_str().to_owned())));
            rest = value.get(one.end()..).unwrap_or_default();
        }
        Ok(CowVal::owned(CelList::from(found)))
    })
}
