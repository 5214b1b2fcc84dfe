//! Expressions of policies: compiled when a set is loaded, evaluated within a budget.
//!
//! The `cel` crate parses and evaluates; it has no limits of its own. Here the text is scanned before it is parsed,
//! the tree is rewritten so that every loop and every operand is paid for ([`rewrite`]), and the payments are counted
//! ([`meter`]). JSON enters as a borrowed tree ([`tree`]). There is no type checker: a type error is an error when
//! the expression is evaluated, which denies unless the policy says `failurePolicy: Ignore`.
//!
//! Invariant: no expression and no object can stall or end the process.

mod functions;
mod library;
mod meter;
mod rewrite;
mod tree;

use std::cell::{Cell, OnceCell};
use std::sync::{Arc, OnceLock};

use ::cel::{Context, Env, IdedExpr, Value as Outcome};

use crate::doc::Value;

/// An expression, ready to be evaluated.
#[derive(Debug)]
pub(super) struct Program {
    tree: IdedExpr,
    /// It looks at `namespaceObject`.
    pub(super) needs_namespace: bool,
}

/// Why an expression is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refused {
    /// Byte of the expression.
    pub(super) at: usize,
    pub(super) message: String,
}

/// The values an expression sees. Building the trees costs something, so they are built once and only if asked for.
pub(super) struct Variables<'d> {
    object: Value<'d>,
    old_object: Value<'d>,
    request: Value<'d>,
    namespace: Value<'d>,
    context: OnceCell<Result<Context<'d, 'd>, String>>,
    /// Steps left for this request.
    left: Cell<u64>,
}

/// The names of the variables.
const VARIABLES: [&str; 4] = ["object", "oldObject", "request", "namespaceObject"];

impl Program {
    /// Compiles an expression.
    pub(super) fn compile(text: &str) -> Result<Program, Refused> {
        if let Some(reason) = crate::cel::too_deep(text) {
            return Err(Refused { at: 0, message: reason.to_owned() });
        }
        let parsed = env().parser().parse(text).map_err(|errors| {
            let first = errors.errors.into_iter().next();
            first.map_or(Refused { at: 0, message: "does not parse".to_owned() }, |error| Refused {
                at: offset(text, error.pos),
                message: error.msg,
            })
        })?;
        let mut rewriting = rewrite::Rewriting::default();
        let tree = rewriting.whole(parsed);
        match rewriting.refused {
            Some(message) => Err(Refused { at: 0, message }),
            None => Ok(Program { tree, needs_namespace: rewriting.needs_namespace }),
        }
    }

    /// True, false, or why neither.
    pub(super) fn holds(&self, variables: &Variables<'_>) -> Result<bool, String> {
        match self.evaluate(variables)? {
            Outcome::Bool(value) => Ok(value),
            other => Err(format!("gives {}, not true or false", other.type_of())),
        }
    }

    /// The text it gives, or why none.
    pub(super) fn text(&self, variables: &Variables<'_>) -> Result<String, String> {
        match self.evaluate(variables)? {
            Outcome::String(text) => Ok(text.as_ref().clone()),
            other => Err(format!("gives {}, not a string", other.type_of())),
        }
    }

    fn evaluate(&self, variables: &Variables<'_>) -> Result<Outcome, String> {
        let context = variables.context()?;
        let budget = variables.left.get().min(meter::EVALUATION);
        meter::start(budget);
        let outcome = Outcome::resolve(&self.tree, context);
        variables.left.set(variables.left.get() - (budget - meter::left()));
        // An error can be swallowed by `||`; the meter cannot.
        if meter::is_spent() {
            return Err("takes too many steps".to_owned());
        }
        outcome.map_err(|error| error.to_string())
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
            left: Cell::new(meter::REQUEST),
        }
    }

    fn context(&self) -> Result<&Context<'d, 'd>, String> {
        let made = self.context.get_or_init(|| {
            let mut context = Context::with_env(Arc::clone(env()));
            let values = [self.object, self.old_object, self.request, self.namespace];
            for (name, value) in VARIABLES.into_iter().zip(values) {
                context.add_variable_as_val(name, tree::Tree::of(value)?.boxed());
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
