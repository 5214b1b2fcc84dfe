//! Rewrites an expression so that it charges the budget for every iteration and for every value that an operator or a
//! function reads.
//!
//! `all`, `exists` and `exists_one` get a loop condition that ends the loop when the budget is exhausted; `map` and
//! `filter` charge inside, because the interpreter appends in place only while their condition is a constant. An iteration
//! costs the number of nodes of its body, without nested loops, which charge for themselves.
//!
//! Unknown variables and functions are refused here: the interpreter would only fail when it reaches them.

use ::cel::IdedExpr;
use ::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, operators};

use super::VARIABLES;
use super::functions::{
    CHARGE_CHARS, CHARGE_DEEP, CHARGE_ITEM, CHARGE_ITERATION, CHARGE_OPERAND, NAMES, OPERATORS, REPLACED,
};
use super::library::patterns::FIXED_FUNCTIONS;
use super::library::{self, CHECKED_LITERALS, QUALIFIED_FUNCTIONS};
use crate::api::conform::suggest;

/// Names of types.
const TYPES: &[&str] = &[
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "bool",
    "list",
    "map",
    "null_type",
    "type",
    "dyn",
    "optional",
];

/// The state of a rewrite.
#[derive(Debug, Default)]
pub(super) struct Rewriter {
    /// Loop variables in scope.
    scope: Vec<String>,
    /// Nodes since the start of the innermost loop.
    nodes: i64,
    /// Why the expression is refused.
    pub(super) refused: Option<String>,
    /// It uses `namespaceObject`.
    pub(super) needs_namespace: bool,
}

impl Rewriter {
    /// Rewrites an expression.
    pub(super) fn rewrite(&mut self, expression: IdedExpr) -> IdedExpr {
        self.rewrite_expr(expression)
    }

    fn refuse(&mut self, message: String) {
        self.refused.get_or_insert(message);
    }

    fn rewrite_expr(&mut self, node: IdedExpr) -> IdedExpr {
        self.nodes += 1;
        let id = node.id;
        let expr = match node.expr {
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => {
                Expr::Comprehension(Box::new(self.comprehension(*comprehension)))
            }
            Expr::Ident(name) => {
                self.check_name(&name);
                Expr::Ident(name)
            }
            Expr::List(list) => Expr::List(ListExpr {
                elements: list.elements.into_iter().map(|element| self.rewrite_expr(element)).collect(),
                optional_indices: list.optional_indices,
            }),
            Expr::Map(mut map) => {
                for entry in &mut map.entries {
                    if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                        entry.key = self.rewrite_expr(std::mem::take(&mut entry.key));
                        entry.value = self.rewrite_expr(std::mem::take(&mut entry.value));
                    }
                }
                Expr::Map(map)
            }
            Expr::Select(mut select) => {
                *select.operand = self.rewrite_expr(std::mem::take(&mut select.operand));
                Expr::Select(select)
            }
            Expr::Struct(made) => {
                self.refuse(format!("unknown type {}", made.type_name));
                Expr::Struct(made)
            }
            expr @ (Expr::Literal(_) | Expr::Unspecified) => expr,
        };
        IdedExpr { id, expr }
    }

    fn check_name(&mut self, name: &str) {
        self.needs_namespace |= name == "namespaceObject";
        let known = VARIABLES.contains(&name)
            || TYPES.contains(&name)
            || self.scope.iter().any(|variable| variable == name);
        if !known {
            self.refuse(format!("unknown variable {name}; {}", suggest::one_of(&VARIABLES)));
        }
    }

    fn call(&mut self, mut call: CallExpr) -> Expr {
        let is_named = call.func_name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && call.func_name.bytes().any(|byte| byte.is_ascii_alphanumeric());
        self.qualify(&mut call);
        let name = call.func_name.as_str();
        let is_known = NAMES.contains(&name) || library::NAMES.iter().any(|names| names.contains(&name));
        if is_named && !is_known && !QUALIFIED_FUNCTIONS.contains(&name) {
            self.refuse(format!("unknown function {name}"));
        }
        let writes = call.func_name == "format";
        let arguments = std::mem::take(&mut call.args);
        call.args = arguments
            .into_iter()
            .map(|argument| {
                let argument = self.rewrite_expr(argument);
                match (is_named, writes) {
                    (true, true) => function_call(CHARGE_DEEP, vec![argument]),
                    (true, false) => charge_operand(argument),
                    (false, _) => argument,
                }
            })
            .collect();
        // A long pattern is often written in parts: `'^(a' + '|b)$'`. As one text it is compiled once.
        if let Some(text) = joined_text(&call) {
            return Expr::Literal(LiteralValue::String(text.into()));
        }
        self.check_literal(&call);
        // `optional.of(x)`: the target is part of the name.
        let is_qualified = call
            .target
            .as_ref()
            .is_some_and(|target| matches!(&target.expr, Expr::Ident(name) if name == "optional"));
        if let Some(target) = call.target.take() {
            let target = self.rewrite_expr(*target);
            call.target = Some(Box::new(match call.func_name.as_str() {
                _ if is_qualified => target,
                "split" => function_call(CHARGE_CHARS, vec![target]),
                _ => charge_operand(target),
            }));
        }
        // `matches(a, b)` is `a.matches(b)`.
        if call.target.is_none() && call.func_name == "matches" && call.args.len() == 2 {
            call.target = Some(Box::new(call.args.remove(0)));
        }
        let is_fixed = call.args.first().is_some_and(|first| matches!(first.expr, Expr::Literal(_)));
        let fixed = if is_fixed { FIXED_FUNCTIONS } else { &[] };
        let mut names = fixed.iter().chain(REPLACED);
        let renamed = names.find(|(name, _)| *name == call.func_name).map(|(_, replacement)| *replacement);
        let charging = OPERATORS.iter().find(|(operator, _, _)| *operator == call.func_name);
        let replacement = charging.map(|(_, replacement, _)| *replacement).or(renamed);
        if let Some(replacement) = replacement {
            replacement.clone_into(&mut call.func_name);
        }
        Expr::Call(call)
    }

    /// `sets.contains(a, b)`: the target is part of the name.
    fn qualify(&mut self, call: &mut CallExpr) {
        let Some(Expr::Ident(library)) = call.target.as_ref().map(|target| &target.expr) else { return };
        let begins = |name: &&str| name.split_once('.').is_some_and(|(first, _)| first == library);
        if self.scope.contains(library) || !QUALIFIED_FUNCTIONS.iter().any(begins) {
            return;
        }
        call.func_name = format!("{library}.{}", call.func_name);
        call.target = None;
    }

    /// Checks the literal argument of a function such as `duration`.
    fn check_literal(&mut self, call: &CallExpr) {
        let Some((_, check)) = CHECKED_LITERALS.iter().find(|(name, _)| *name == call.func_name) else {
            return;
        };
        // `a.matches(b)`, but `matches(a, b)`.
        let place = usize::from(call.target.is_none() && call.args.len() == 2);
        if let Some(Expr::Literal(LiteralValue::String(text))) = call.args.get(place).map(|text| &text.expr)
            && let Err(reason) = check(text.inner())
        {
            self.refuse(reason);
        }
    }

    fn comprehension(&mut self, mut loop_: ComprehensionExpr) -> ComprehensionExpr {
        loop_.iter_range = self.rewrite_expr(loop_.iter_range);
        loop_.accu_init = self.rewrite_expr(loop_.accu_init);
        let before = std::mem::take(&mut self.nodes);
        self.scope.push(loop_.iter_var.clone());
        self.scope.extend(loop_.iter_var2.clone());
        self.scope.push(loop_.accu_var.clone());
        let depth = 2 + usize::from(loop_.iter_var2.is_some());
        let appends = matches!(loop_.loop_cond.expr, Expr::Literal(_));
        let step = self.step(loop_.loop_step, &loop_.accu_var);
        loop_.result = self.rewrite_expr(loop_.result);
        self.scope.truncate(self.scope.len().saturating_sub(depth));
        let cost = 3 + self.nodes;
        self.nodes = before + 1;
        if appends {
            loop_.loop_step = charge_inside(step, cost);
        } else {
            loop_.loop_step = step;
            loop_.loop_cond = and(charge_iteration(cost), loop_.loop_cond);
        }
        loop_
    }

    /// Rewrites the step of a loop. The interpreter must still recognize its form, so only the user's parts change.
    fn step(&mut self, step: IdedExpr, accumulator: &str) -> IdedExpr {
        let is_accumulator = |node: &IdedExpr| matches!(&node.expr, Expr::Ident(name) if name == accumulator);
        let IdedExpr { id, expr: Expr::Call(mut call) } = step else { return self.rewrite_expr(step) };
        let folds = call.args.first().is_some_and(is_accumulator);
        let keeps = call.args.get(2).is_some_and(is_accumulator);
        if folds {
            let rest = call.args.split_off(1);
            call.args.extend(rest.into_iter().map(|argument| self.rewrite_expr(argument)));
        } else if keeps && call.func_name == operators::CONDITIONAL {
            let mut arguments = std::mem::take(&mut call.args).into_iter();
            call.args.extend(arguments.next().map(|condition| self.rewrite_expr(condition)));
            call.args.extend(arguments.next().map(|inner| self.step(inner, accumulator)));
            call.args.extend(arguments);
        } else {
            return self.rewrite_expr(IdedExpr { id, expr: Expr::Call(call) });
        }
        IdedExpr { id, expr: Expr::Call(call) }
    }
}

/// Makes `cond ? accu + [x] : accu` charge in its condition, `accu + [x]` in its item, anything else around it.
fn charge_inside(step: IdedExpr, cost: i64) -> IdedExpr {
    let IdedExpr { id, expr: Expr::Call(mut call) } = step else { return charge_item(cost, step) };
    if call.func_name == operators::CONDITIONAL {
        if let Some(condition) = call.args.first_mut() {
            *condition = and(charge_iteration(cost), std::mem::take(condition));
        }
    } else if let Some(IdedExpr { expr: Expr::List(list), .. }) = call.args.get_mut(1) {
        for element in &mut list.elements {
            *element = charge_item(cost, std::mem::take(element));
        }
    } else {
        return charge_item(cost, IdedExpr { id, expr: Expr::Call(call) });
    }
    IdedExpr { id, expr: Expr::Call(call) }
}

fn function_call(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }) }
}

fn literal(number: i64) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Literal(LiteralValue::Int(number.into())) }
}

/// The text that adding two literals makes.
fn joined_text(call: &CallExpr) -> Option<String> {
    let text = |node: &IdedExpr| match &node.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner().to_owned()),
        _ => None,
    };
    match call.args.as_slice() {
        [one, other] if call.func_name == operators::ADD && call.target.is_none() => {
            Some(text(one)? + &text(other)?)
        }
        _ => None,
    }
}

fn charge_iteration(cost: i64) -> IdedExpr {
    function_call(CHARGE_ITERATION, vec![literal(cost)])
}

fn charge_item(cost: i64, value: IdedExpr) -> IdedExpr {
    function_call(CHARGE_ITEM, vec![literal(cost), value])
}

fn and(one: IdedExpr, other: IdedExpr) -> IdedExpr {
    function_call(operators::LOGICAL_AND, vec![one, other])
}

/// Charges for an operand, unless it is a literal.
fn charge_operand(node: IdedExpr) -> IdedExpr {
    if matches!(node.expr, Expr::Literal(_)) { node } else { function_call(CHARGE_OPERAND, vec![node]) }
}
