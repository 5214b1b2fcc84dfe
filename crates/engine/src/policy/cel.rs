//! Expressions of policies: compiled when a set is loaded, evaluated within a budget.
//!
//! `tollgate_cel` checks an expression in the environment of policies. The `cel` crate evaluates it; that crate has no
//! limits of its own, so the tree is rewritten before it is evaluated: every loop and every operand is charged
//! ([`rewrite`]), and the steps are counted ([`meter`]). JSON is read as it is used ([`tree`]). Type errors that occur
//! during evaluation deny the request unless the policy has `failurePolicy: Ignore`.
//!
//! Invariant: no expression and no object can stall or end the process.

pub(super) mod canonical;
mod functions;
mod library;
mod meter;
mod rewrite;
mod tree;

use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use ::cel::common::types::{CelBool, CelString};
use ::cel::common::value::Val;
use ::cel::{Context, Env, ExecutionError, IdedExpr, Value as CelValue};

use super::report::ByEffect;
use crate::rules::FindingLevel;
use tollgate_cel::evaluate::GoPattern;
use tollgate_cel::{Expression, ExpressionError, ExpressionPurpose};
use tollgate_document::doc::Value;

/// A compiled CEL expression of a policy.
#[derive(Debug)]
pub(super) struct Program {
    tree: IdedExpr,
    /// True if the expression is nested so deeply that it is evaluated on a separate stack.
    is_deep: bool,
    /// True if the expression uses `namespaceObject`.
    pub(super) needs_namespace: bool,
    /// True if the expression uses `object`.
    pub(super) reads_object: bool,
    /// The names of fields, and the string literals, that the expression contains.
    pub(super) names: BTreeSet<String>,
    /// The patterns that the expression contains.
    patterns: Arc<[GoPattern]>,
}

/// The values of the CEL variables for one request, and the steps that its expressions may still take.
pub(super) struct Variables<'d> {
    /// In the order of the environment's variables; an absent value is null.
    values: [Value<'d>; 4],
    /// The variables in the form of the interpreter, made on first use. Values that one expression has converted are
    /// kept for the next.
    context: OnceCell<Context<'d, 'd>>,
    /// Steps left for this request.
    steps_left: Cell<ByEffect<u64>>,
    /// The level of the policy whose expressions are evaluated.
    level: Cell<FindingLevel>,
}

/// Nesting depth of expressions that can be evaluated on the stack of any thread, also in debug builds.
const MAX_DEPTH_ON_CALLER_STACK: u32 = 16;
/// Size of the stack for deeper expressions, in bytes. Only the used pages are touched.
const DEEP_STACK_BYTES: usize = 32 << 20;

impl Program {
    /// Compiles an expression for repeated evaluation, and returns it with the result of the type check. If it is
    /// invalid, returns all errors.
    pub(super) fn compile(
        text: &str,
        target: ExpressionPurpose,
    ) -> Result<(Program, Expression), Vec<ExpressionError>> {
        let expression = Expression::compile(text, target, &tollgate_cel::POLICY_ENV)?;
        let whole = |message: String| vec![ExpressionError { at: 0, message }];
        let parsed = env().parser().parse(text).map_err(|errors| whole(errors.to_string()))?;
        let mut rewriter = rewrite::Rewriter::new(text);
        let tree = rewriter.rewrite(parsed);
        if let Some(message) = rewriter.refused {
            return Err(whole(message));
        }
        let program = Program {
            tree,
            is_deep: rewriter.deepest > MAX_DEPTH_ON_CALLER_STACK,
            needs_namespace: rewriter.needs_namespace,
            reads_object: rewriter.reads_object,
            names: rewriter.names,
            patterns: rewriter.patterns.compiled.into(),
        };
        Ok((program, expression))
    }

    /// Evaluates the expression and returns its boolean result; an error message if it fails, exceeds the step limit or
    /// returns something else.
    pub(super) fn evaluate_bool(&self, variables: &Variables<'_>) -> Result<bool, String> {
        self.evaluate(variables, |result| {
            let result = result.downcast_ref::<CelBool>().map(|value| *value.inner());
            result.ok_or("true or false")
        })
    }

    /// Evaluates the expression and returns its string result; an error message if it fails, exceeds the step limit or
    /// returns something else.
    pub(super) fn evaluate_string(&self, variables: &Variables<'_>) -> Result<String, String> {
        self.evaluate(variables, |result| {
            let result = result.downcast_ref::<CelString<'_>>().map(|text| text.inner().to_owned());
            result.ok_or("a string")
        })
    }

    /// Evaluates the expression. `read` converts the result, or returns the name of the expected type.
    fn evaluate<T>(
        &self,
        variables: &Variables<'_>,
        read: impl FnOnce(&dyn Val) -> Result<T, &'static str>,
    ) -> Result<T, String> {
        let context = variables.context();
        let mut accounts = variables.steps_left.get();
        let steps_left = accounts.of_mut(variables.level.get());
        let budget = (*steps_left).min(meter::MAX_EVALUATION_STEPS);
        meter::start_evaluation(budget);
        library::patterns::start_evaluation(&self.patterns);
        let resolve = || CelValue::resolve_val(&self.tree, context);
        let result = if self.is_deep { stacker::grow(DEEP_STACK_BYTES, resolve) } else { resolve() };
        *steps_left -= budget - meter::steps_left();
        variables.steps_left.set(accounts);
        // `||` can hide an error, but not that the evaluation was stopped.
        if let Some(reason) = meter::stop_reason() {
            return Err(reason.to_owned());
        }
        let result = result.map_err(|error| evaluation_error_message(&error))?;
        read(result.as_ref()).map_err(|wanted| format!("returns {}, not {wanted}", result.get_type().name()))
    }
}

impl<'d> Variables<'d> {
    /// Collects the values of the CEL variables for one request; an absent value is null.
    pub(super) fn new(
        object: Value<'d>,
        old_object: Value<'d>,
        request: Value<'d>,
        namespace: Value<'d>,
    ) -> Variables<'d> {
        Variables {
            values: [object, old_object, request, namespace],
            context: OnceCell::new(),
            steps_left: Cell::new(ByEffect::both(meter::MAX_REQUEST_STEPS)),
            level: Cell::new(FindingLevel::Deny),
        }
    }

    /// Evaluates from now on expressions of a policy with this level.
    pub(super) fn set_level(&self, level: FindingLevel) {
        self.level.set(level);
    }

    fn context(&self) -> &Context<'d, 'd> {
        self.context.get_or_init(|| {
            let mut context = Context::with_env(Arc::clone(env()));
            for (name, value) in tollgate_cel::POLICY_ENV.scope.variables().iter().zip(self.values) {
                context.add_variable_as_val(*name, tree::JsonVal::from_json(value).as_val().clone_as_boxed());
            }
            context
        })
    }
}

/// An expression that is too long for a policy, for tests of expressions that an API server evaluates.
#[cfg(test)]
pub(super) struct UnlimitedProgram(IdedExpr, Arc<[GoPattern]>);

#[cfg(test)]
impl UnlimitedProgram {
    pub(super) fn compile(text: &str) -> Result<UnlimitedProgram, String> {
        let parsed = env().parser().parse(text).map_err(|errors| errors.to_string())?;
        let mut rewriter = rewrite::Rewriter::new(text);
        Ok(UnlimitedProgram(rewriter.rewrite(parsed), rewriter.patterns.compiled.into()))
    }

    pub(super) fn evaluate_bool(&self, variables: &Variables<'_>) -> Result<bool, String> {
        meter::start_evaluation(u64::MAX);
        library::patterns::start_evaluation(&self.1);
        let result = stacker::grow(DEEP_STACK_BYTES, || {
            let result =
                CelValue::resolve_val(&self.0, variables.context()).map_err(|error| error.to_string())?;
            Ok::<_, String>(result.downcast_ref::<CelBool>().map(|value| *value.inner()))
        })?;
        result.ok_or_else(|| "is not true or false".to_owned())
    }
}

/// Returns what an API server says about a failed evaluation. The evaluator's own texts contain whole values in the
/// notation of Rust.
fn evaluation_error_message(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(_, CelValue::UInt(_), _) => "unsigned integer overflow".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::IndexOutOfBounds(CelValue::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::IndexOutOfBounds(_) => "index out of bounds".to_owned(),
        ExecutionError::DuplicateKey(_) => "failed with repeated key".to_owned(),
        ExecutionError::UnsupportedKeyType(_) => "unsupported key type".to_owned(),
        ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::NotSupportedAsMethod { .. }
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedIndex(..) => "no such overload".to_owned(),
        ExecutionError::FunctionError { function, message } => format!("{function}: {message}"),
        other => other.to_string(),
    }
}

/// Returns the CEL environment of policies, which is made once and shared by all expressions.
fn env() -> &'static Arc<Env> {
    static ENV: OnceLock<Arc<Env>> = OnceLock::new();
    ENV.get_or_init(|| Arc::new(functions::cel_environment()))
}

#[cfg(test)]
mod tests;
