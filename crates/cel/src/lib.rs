//! Checks whether an API server would accept a CEL expression that selects devices, derives an attribute or belongs to
//! a policy: its syntax, its types, the type of its result, and its worst-case cost.
//!
//! It knows nothing of objects, paths or findings. The variables, and what differs between releases, are data in
//! [`CelEnv`]. [`check`] is for the expressions that API servers store, [`Expression::compile`] for those of policies.
//! [`evaluate`] evaluates selectors for devices.
//!
//! Invariant: error texts and costs are exactly the server's. An expression beyond Tollgate's own limits is reported as
//! unchecked, and nothing overflows the stack: the text is scanned before any recursive function reads it.

mod check;
mod cost;
mod draft;
pub mod evaluate;
mod fields;
mod functions;
mod issue;
mod literals;
mod macros;
mod names;
mod number;
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

pub use fields::{FieldSchema, SchemaFieldLookup};
pub use functions::function_names_per_overload;
pub use issue::ExpressionError;
pub use macros::estimated_size_after_macro_copies;
pub use outcome::{
    ADMISSION_POLICY_ENV, CelEnv, CheckOutcome, ExpressionPurpose, POLICY_ENV, V1_33, V1_34, V1_35, V1_36,
    V1_37, VariableScope,
};

use check::TypeCheckResult;
use evaluate::program_error_message;
use issue::Issues;
use scan::ParseStackNeeds;
use tree::Tree;

/// The worst-case cost above which the server refuses an expression.
/// upstream v1.34 `CELSelectorExpressionMaxCost`
const MAX_COST: u64 = 1_000_000;

const TYPES_TOO_LARGE: &str = "the types are too large to compare";

/// The size of the stack on which deep but legal expressions are checked. Its pages are touched only as deep as the
/// expression goes.
const DEEP_STACK: usize = 64 << 20;

/// Checks expressions for the rules. Implementations can compile each expression or use a cache.
pub trait Checker: std::fmt::Debug + Sync {
    /// Like [`check`], but the text of an error can be cut off after `max_detail` bytes.
    fn check(
        &self,
        expression: &str,
        target: ExpressionPurpose,
        env: &CelEnv,
        max_detail: usize,
    ) -> CheckOutcome;
}

/// The [`Checker`] that compiles every expression.
#[derive(Clone, Copy, Debug)]
pub struct UncachedChecker;

impl Checker for UncachedChecker {
    fn check(
        &self,
        expression: &str,
        target: ExpressionPurpose,
        env: &CelEnv,
        max_detail: usize,
    ) -> CheckOutcome {
        let env = *env;
        let check = || check_and_estimate_cost(expression, target, env, max_detail);
        let cost = needs_deep_stack(expression, env, max_detail).and_then(|is_deep| {
            if !is_deep {
                return check();
            }
            // Whatever code that was not made for this depth does, the caller goes on.
            let checked = std::panic::catch_unwind(|| stacker::grow(DEEP_STACK, check));
            checked.unwrap_or(Err(CheckOutcome::Unchecked("the checker failed")))
        });
        match cost {
            Ok(cost) if cost > MAX_COST => CheckOutcome::TooComplex { cost },
            Ok(cost) => CheckOutcome::Accepted { cost },
            Err(outcome) => outcome,
        }
    }
}

/// Checks one expression the way the API server of `env` does.
///
/// The length limit of 10,240 bytes is the caller's; longer texts come back unchecked.
pub fn check(expression: &str, target: ExpressionPurpose, env: &CelEnv) -> CheckOutcome {
    UncachedChecker.check(expression, target, env, usize::MAX)
}

/// True if an expression is within the server's limits, but requires a stack of [`DEEP_STACK`] bytes. Fails with the
/// outcome of the check if it exceeds the limits.
fn needs_deep_stack(expression: &str, env: CelEnv, max_detail: usize) -> Result<bool, CheckOutcome> {
    match scan::find_parse_stack_needs(expression) {
        ParseStackNeeds::Flat => Ok(false),
        ParseStackNeeds::Deep => Ok(true),
        ParseStackNeeds::TooLong => {
            Err(CheckOutcome::Unchecked("longer than any expression that the API server reads"))
        }
        ParseStackNeeds::Refused(reason) => {
            let mut issues = syntax::parse(expression, env).err().unwrap_or_else(|| Issues::new(expression));
            if issues.is_empty() {
                issues.report_unpositioned(reason);
            }
            Err(CheckOutcome::CompileError(issues.into_message(max_detail)))
        }
    }
}

/// The reason why an expression is too long or nested too deeply to be evaluated on any thread; `None` if it is not.
pub fn too_deep_or_long_reason(expression: &str) -> Option<&'static str> {
    match scan::find_parse_stack_needs(expression) {
        ParseStackNeeds::Flat => None,
        ParseStackNeeds::Deep => {
            Some("is too long or nested too deeply: the limits are 4096 bytes and 48 levels")
        }
        ParseStackNeeds::Refused(reason) => Some(reason),
        ParseStackNeeds::TooLong => Some("is too long: the limit is 4096 bytes"),
    }
}

/// Checks an expression on the current stack: syntax, types, literals, result type and constants, in this order.
/// Returns its estimated worst-case cost.
fn check_and_estimate_cost(
    expression: &str,
    target: ExpressionPurpose,
    env: CelEnv,
    max_detail: usize,
) -> Result<u64, CheckOutcome> {
    let (tree, checked) = check_result_type(expression, target, env, max_detail)?;
    match program_error_message(&tree, &checked, env) {
        Some(detail) => Err(CheckOutcome::ProgramError(detail)),
        None => Ok(cost::estimate(&tree, &checked, env)),
    }
}

/// The tree with its types, after checking literals and the type of the result.
fn check_result_type(
    expression: &str,
    target: ExpressionPurpose,
    env: CelEnv,
    max_detail: usize,
) -> Result<(Tree, TypeCheckResult), CheckOutcome> {
    let typed = check_types_unless_too_large(expression, env)
        .map_err(|issues| CheckOutcome::CompileError(issues.into_message(max_detail)))?;
    let (tree, checked) = typed.ok_or(CheckOutcome::Unchecked(TYPES_TOO_LARGE))?;
    match outcome::wrong_type_message(checked.type_of(tree.root()), target, env) {
        Some(detail) => Err(CheckOutcome::WrongType(detail)),
        None => Ok((tree, checked)),
    }
}

/// The tree with its types, after checking literals; `None` if the types are too large.
fn check_types_unless_too_large(
    expression: &str,
    env: CelEnv,
) -> Result<Option<(Tree, TypeCheckResult)>, Issues<'_>> {
    let tree = syntax::parse(expression, env)?;
    let mut issues = Issues::new(expression);
    let Some(checked) = check::check_types_unless_too_large(&tree, env, &mut issues) else { return Ok(None) };
    if issues.is_empty() {
        literals::check_literals(&tree, &checked, env, &mut issues);
    }
    if issues.is_empty() { Ok(Some((tree, checked))) } else { Err(issues) }
}

/// An expression that passed type checking.
pub struct Expression {
    tree: Tree,
    /// True if the type of its result is not known before it runs.
    pub has_unknown_type: bool,
}

impl Expression {
    /// Compiles an expression. Returns all errors if it is invalid.
    pub fn compile(
        text: &str,
        target: ExpressionPurpose,
        env: &CelEnv,
    ) -> Result<Expression, Vec<ExpressionError>> {
        let whole = |message: String| vec![ExpressionError { at: 0, message }];
        if let Some(reason) = too_deep_or_long_reason(text) {
            return Err(whole(reason.to_owned()));
        }
        let typed = check_types_unless_too_large(text, *env).map_err(Issues::into_errors)?;
        let (tree, checked) = typed.ok_or_else(|| whole(TYPES_TOO_LARGE.to_owned()))?;
        let result = checked.type_of(tree.root());
        let failure = outcome::wrong_type_message(result, target, *env)
            .or_else(|| program_error_message(&tree, &checked, *env));
        let has_unknown_type = result.is_dyn_any_or_error();
        failure.map_or(Ok(Expression { tree, has_unknown_type }), |message| Err(whole(message)))
    }
}
