//! Says whether an API server would accept a CEL expression that selects devices or derives an
//! attribute: does it parse, does it type-check, has it the right type, is its worst case cheap.
//!
//! It knows nothing of objects, paths or findings. What differs between releases is data in
//! [`CelEnv`]. What a selector says about a device is found in [`evaluate`].
//!
//! Invariant: the answer is the server's, to the word and to the unit of cost. What is over our own limits comes back
//! unchecked, and nothing crashes: the text is scanned before anything recursive reads it.

mod check;
mod cost;
mod draft;
pub mod evaluate;
mod fold;
mod functions;
mod issue;
mod literals;
#[cfg(test)]
mod lower;
mod macros;
mod names;
mod outcome;
mod overload;
pub mod regex;
mod scan;
mod size;
mod syntax;
mod tree;
mod types;
mod unify;

#[cfg(test)]
mod tests;

pub use macros::weight;
pub use outcome::{CelEnv, Outcome, Target, V1_33, V1_34, V1_35, V1_36, V1_37};

use issue::Issues;
use scan::Shape;

/// The worst-case cost above which the server refuses an expression.
/// upstream v1.34 `CELSelectorExpressionMaxCost`
const MAX_COST: u64 = 1_000_000;

/// Deep but legal expressions, and those with syntax errors, are read on a stack of their own. Its
/// pages are touched only as deep as the expression goes.
const DEEP_STACK: usize = 64 << 20;

/// Checks expressions for the rules. Whoever runs them decides how: by compiling each, or with a cache.
pub trait Checker: std::fmt::Debug + Sync {
    /// The outcome of [`check`]; its text may end anywhere past `max_detail` bytes.
    fn check(&self, expression: &str, target: Target, env: &CelEnv, max_detail: usize) -> Outcome;
}

/// The [`Checker`] that compiles every expression.
#[derive(Clone, Copy, Debug)]
pub struct Compiler;

impl Checker for Compiler {
    fn check(&self, expression: &str, target: Target, env: &CelEnv, max_detail: usize) -> Outcome {
        check_within(expression, target, *env, max_detail)
    }
}

/// Checks one expression the way the API server of `env` does.
///
/// The length limit of 10,240 bytes is the caller's; longer texts come back unchecked.
pub fn check(expression: &str, target: Target, env: &CelEnv) -> Outcome {
    check_within(expression, target, *env, usize::MAX)
}

/// [`check`] for a caller that reads at most `max_detail` bytes of an error.
fn check_within(expression: &str, target: Target, env: CelEnv, max_detail: usize) -> Outcome {
    let shape = scan::scan(expression);
    match shape {
        Shape::TooLong => Outcome::Unchecked("longer than any expression that the API server reads"),
        Shape::Flat => check_here(expression, target, env, max_detail),
        Shape::Refused(reason) => {
            let mut issues = syntax::parse(expression, env).err().unwrap_or_else(|| Issues::new(expression));
            if issues.is_empty() {
                issues.internal(reason);
            }
            Outcome::CompileError(issues.detail(max_detail))
        }
        Shape::Deep => check_on_deep_stack(expression, target, env, max_detail),
    }
}

/// Why an expression is too long or too deep to be read and evaluated on any thread, if it is.
pub fn too_deep(expression: &str) -> Option<&'static str> {
    match scan::scan(expression) {
        Shape::Flat => None,
        Shape::Deep => Some("is too long or nested too deeply: the limits are 4096 bytes and 48 levels"),
        Shape::Refused(reason) => Some(reason),
        Shape::TooLong => Some("is too long: the limit is 4096 bytes"),
    }
}

fn check_on_deep_stack(expression: &str, target: Target, env: CelEnv, max_detail: usize) -> Outcome {
    let check = || stacker::grow(DEEP_STACK, || check_here(expression, target, env, max_detail));
    // Whatever code that was not made for this depth does, the caller goes on.
    std::panic::catch_unwind(check).unwrap_or(Outcome::Unchecked("the checker failed"))
}

fn check_here(expression: &str, target: Target, env: CelEnv, max_detail: usize) -> Outcome {
    let tree = match syntax::parse(expression, env) {
        Ok(tree) => tree,
        Err(issues) => return Outcome::CompileError(issues.detail(max_detail)),
    };
    let mut issues = Issues::new(expression);
    let Some(checked) = check::check(&tree, env, &mut issues) else {
        return Outcome::Unchecked("the types are too large to compare");
    };
    if issues.is_empty() {
        literals::validate(&tree, &checked, env, &mut issues);
    }
    if !issues.is_empty() {
        return Outcome::CompileError(issues.detail(max_detail));
    }
    if let Some(detail) = outcome::wrong_type(checked.type_of(tree.root()), target, env) {
        return Outcome::WrongType(detail);
    }
    if let Some(detail) = fold::failure(&tree, &checked, env) {
        return Outcome::ProgramError(detail);
    }
    let cost = cost::estimate(&tree, &checked, env);
    if cost > MAX_COST { Outcome::TooComplex { cost } } else { Outcome::Accepted { cost } }
}
