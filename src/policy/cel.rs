//! Expressions of policies: compiled when a set is loaded, evaluated within a budget.
//!
//! The `cel` crate parses and evaluates; it has no limits of its own. Here the text is scanned before it is parsed,
//! the tree is rewritten so that every loop and every operand is charged ([`rewrite`]), and the steps are counted ([`meter`]).
//! JSON is converted to a borrowed tree ([`tree`]). There is no type checker: type errors occur during evaluation and deny
//! the request unless the policy has `failurePolicy: Ignore`.
//!
//! Invariant: no expression and no object can stall or end the process.

mod functions;
mod library;
mod meter;
mod rewrite;
mod tree;

use std::cell::{Cell, OnceCell};
use std::sync::{Arc, OnceLock};

use ::cel::{Context, Env, IdedExpr, Value as CelValue};

use crate::doc::Value;

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Program {
    tree: IdedExpr,
    /// It uses `namespaceObject`.
    pub(super) needs_namespace: bool,
}

/// Why an expression does not compile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CompileError {
    /// Byte of the expression.
    pub(super) at: usize,
    pub(super) message: String,
}

/// The variables of expressions. Their trees are built once, on first use.
pub(super) struct Variables<'d> {
    object: Value<'d>,
    old_object: Value<'d>,
    request: Value<'d>,
    namespace: Value<'d>,
    context: OnceCell<Result<Context<'d, 'd>, String>>,
    /// Steps left for this request.
    steps_left: Cell<u64>,
}

/// The names of the variables.
const VARIABLES: [&str; 4] = ["object", "oldObject", "request", "namespaceObject"];

impl Program {
    /// Compiles an expression.
    pub(super) fn compile(text: &str) -> Result<Program, CompileError> {
        if let Some(reason) = crate::cel::too_deep(text) {
            return Err(CompileError { at: 0, message: reason.to_owned() });
        }
        let parsed = env().parser().parse(text).map_err(|errors| {
            let first = errors.errors.into_iter().next();
            first.map_or(CompileError { at: 0, message: "cannot be parsed".to_owned() }, |error| {
                CompileError { at: offset(text, error.pos), message: error.msg }
            })
        })?;
        let mut rewriter = rewrite::Rewriter::default();
        let tree = rewriter.rewrite(parsed);
        match rewriter.refused {
            Some(message) => Err(CompileError { at: 0, message }),
            None => Ok(Program { tree, needs_namespace: rewriter.needs_namespace }),
        }
    }

    /// The boolean result, or why there is none.
    pub(super) fn evaluate_bool(&self, variables: &Variables<'_>) -> Result<bool, String> {
        match self.evaluate(variables)? {
            CelValue::Bool(value) => Ok(value),
            other => Err(format!("returns {}, not true or false", other.type_of())),
        }
    }

    /// The string result, or why there is none.
    pub(super) fn evaluate_string(&self, variables: &Variables<'_>) -> Result<String, String> {
        match self.evaluate(variables)? {
            CelValue::String(text) => Ok(text.as_ref().clone()),
            other => Err(format!("returns {}, not a string", other.type_of())),
        }
    }

    fn evaluate(&self, variables: &Variables<'_>) -> Result<CelValue, String> {
        let context = variables.context()?;
        let budget = variables.steps_left.get().min(meter::MAX_EVALUATION_STEPS);
        meter::start(budget);
        let result = CelValue::resolve(&self.tree, context);
        variables.steps_left.set(variables.steps_left.get() - (budget - meter::left()));
        // `||` can hide an error, but not an exhausted budget.
        if meter::is_exhausted() {
            return Err("exceeds the step limit".to_owned());
        }
        result.map_err(|error| error.to_string())
    }
}

impl<'d> Variables<'d> {
    /// The variables of a request.
    pub(super) fn new(
        object: Value<'d>,
        old_object: Value<'d>,
        request: Value<'d>,
        namespace: Value<'d>,
    ) -> Variables<'d> {
        Variables {
            object,
            old_object,
            request,
            namespace,
            context: OnceCell::new(),
            steps_left: Cell::new(meter::MAX_REQUEST_STEPS),
        }
    }

    fn context(&self) -> Result<&Context<'d, 'd>, String> {
        let made = self.context.get_or_init(|| {
            let mut context = Context::with_env(Arc::clone(env()));
            let values = [self.object, self.old_object, self.request, self.namespace];
            for (name, value) in VARIABLES.into_iter().zip(values) {
                context.add_variable_as_val(name, tree::JsonVal::of(value)?.boxed());
            }
            Ok(context)
        });
        made.as_ref().map_err(Clone::clone)
    }
}

fn env() -> &'static Arc<Env> {
    static ENV: OnceLock<Arc<Env>> = OnceLock::new();
    ENV.get_or_init(|| Arc::new(functions::env()))
}

/// The byte of a line and a column, both from 1; columns count characters.
fn offset(text: &str, (line, column): (isize, isize)) -> usize {
    let (line, column) = (usize::try_from(line).unwrap_or(1), usize::try_from(column).unwrap_or(1));
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = text.get(start..).unwrap_or_default();
    start + rest.char_indices().nth(column.saturating_sub(1)).map_or(rest.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests;
