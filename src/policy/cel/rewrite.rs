//! An expression's tree made to pay: every turn of a loop, every value that an operator or a function looks at.
//!
//! `all`, `exists` and `exists_one` get a condition that ends the loop when nothing is left; `map` and `filter` pay
//! inside, because the interpreter appends in place only while their condition is a constant. A turn costs as much
//! as its body has nodes, loops inside it apart, which pay for themselves.
//!
//! On the way, names that do not exist and functions that are not there are refused: the interpreter would find out
//! only when it gets there.

use ::cel::IdedExpr;
use ::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, operators};

use super::VARIABLES;
use super::functions::{LETTERS, NAMES, OPERAND, OPERATORS, RENAMED, TICK, TURN, WHOLE};
use super::library::patterns::FIXED;
use super::library::{self, CHECKED, QUALIFIED};

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

/// One rewriting.
#[derive(Debug, Default)]
pub(super) struct Rewriting {
    /// Loop variables in scope.
    scope: Vec<String>,
    /// Nodes seen since the innermost loop began.
    nodes: i64,
    /// Why the expression is refused.
    pub(super) refused: Option<String>,
    /// It looks at `namespaceObject`.
    pub(super) needs_namespace: bool,
}

impl Rewriting {
    /// The whole expression.
    pub(super) fn whole(&mut self, expression: IdedExpr) -> IdedExpr {
        self.any(expression)
    }

    fn refuse(&mut self, message: String) {
        self.refused.get_or_insert(message);
    }

    fn any(&mut self, node: IdedExpr) -> IdedExpr {
        self.nodes += 1;
        let id = node.id;
        let expr = match node.expr {
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => {
                Expr::Comprehension(Box::new(self.comprehension(*comprehension)))
            }
            Expr::Ident(name) => {
                self.name(&name);
                Expr::Ident(name)
            }
            Expr::List(list) => Expr::List(ListExpr {
                elements: list.elements.into_iter().map(|element| self.any(element)).collect(),
                optional_indices: list.optional_indices,
            }),
            Expr::Map(mut map) => {
                for entry in &mut map.entries {
                    if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                        entry.key = self.any(std::mem::take(&mut entry.key));
                        entry.value = self.any(std::mem::take(&mut entry.value));
                    }
                }
                Expr::Map(map)
            }
            Expr::Select(mut select) => {
                *select.operand = self.any(std::mem::take(&mut select.operand));
                Expr::Select(select)
            }
            Expr::Struct(made) => {
                self.refuse(format!("there is no type {}", made.type_name));
                Expr::Struct(made)
            }
            expr @ (Expr::Literal(_) | Expr::Unspecified) => expr,
        };
        IdedExpr { id, expr }
    }

    fn name(&mut self, name: &str) {
        self.needs_namespace |= name == "namespaceObject";
        let known = VARIABLES.contains(&name)
            || TYPES.contains(&name)
            || self.scope.iter().any(|variable| variable == name);
        if !known {
            let variables = VARIABLES.join(", ");
            self.refuse(format!("there is no variable {name}; there are {variables}"));
        }
    }

    fn call(&mut self, mut call: CallExpr) -> Expr {
        let is_named = call.func_name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && call.func_name.bytes().any(|byte| byte.is_ascii_alphanumeric());
        self.qualify(&mut call);
        let name = call.func_name.as_str();
        let is_known = NAMES.contains(&name) || library::NAMES.iter().any(|names| names.contains(&name));
        if is_named && !is_known && !QUALIFIED.contains(&name) {
            self.refuse(format!("there is no function {name}"));
        }
        self.check_literal(&call);
        let writes = call.func_name == "format";
        let arguments = std::mem::take(&mut call.args);
        call.args = arguments
            .into_iter()
            .map(|argument| {
                let argument = self.any(argument);
                match (is_named, writes) {
                    (true, true) => global(WHOLE, vec![argument]),
                    (true, false) => operand(argument),
                    (false, _) => argument,
                }
            })
            .collect();
        // `optional.of(x)`: the target is part of the name.
        let is_qualified = call
            .target
            .as_ref()
            .is_some_and(|target| matches!(&target.expr, Expr::Ident(name) if name == "optional"));
        if let Some(target) = call.target.take() {
            let target = self.any(*target);
            call.target = Some(Box::new(match call.func_name.as_str() {
                _ if is_qualified => target,
                "split" => global(LETTERS, vec![target]),
                _ => operand(target),
            }));
        }
        // `matches(a, b)` is `a.matches(b)`.
        if call.target.is_none() && call.func_name == "matches" && call.args.len() == 2 {
            call.target = Some(Box::new(call.args.remove(0)));
        }
        let is_fixed = call.args.first().is_some_and(|first| matches!(first.expr, Expr::Literal(_)));
        let fixed = if is_fixed { FIXED } else { &[] };
        let mut names = fixed.iter().chain(RENAMED);
        let renamed = names.find(|(name, _)| *name == call.func_name).map(|(_, ours)| *ours);
        let paying = OPERATORS.iter().find(|(operator, _, _)| *operator == call.func_name);
        let ours = paying.map(|(_, ours, _)| *ours).or(renamed);
        if let Some(ours) = ours {
            ours.clone_into(&mut call.func_name);
        }
        Expr::Call(call)
    }

    /// `sets.contains(a, b)`: the target is part of the name.
    fn qualify(&mut self, call: &mut CallExpr) {
        let Some(Expr::Ident(library)) = call.target.as_ref().map(|target| &target.expr) else { return };
        let begins = |name: &&str| name.split_once('.').is_some_and(|(first, _)| first == library);
        if self.scope.contains(library) || !QUALIFIED.iter().any(begins) {
            return;
        }
        call.func_name = format!("{library}.{}", call.func_name);
        call.target = None;
    }

    /// A text that is written out must be what the function takes.
    fn check_literal(&mut self, call: &CallExpr) {
        let Some((_, check)) = CHECKED.iter().find(|(name, _)| *name == call.func_name) else { return };
        // `a.matches(b)`, but `matches(a, b)`.
        let place = usize::from(call.target.is_none() && call.args.len() == 2);
        if let Some(Expr::Literal(LiteralValue::String(text))) = call.args.get(place).map(|text| &text.expr)
            && let Err(reason) = check(text.inner())
        {
            self.refuse(reason);
        }
    }

    fn comprehension(&mut self, mut loop_: ComprehensionExpr) -> ComprehensionExpr {
        loop_.iter_range = self.any(loop_.iter_range);
        loop_.accu_init = self.any(loop_.accu_init);
        let before = std::mem::take(&mut self.nodes);
        self.scope.push(loop_.iter_var.clone());
        self.scope.extend(loop_.iter_var2.clone());
        self.scope.push(loop_.accu_var.clone());
        let depth = 2 + usize::from(loop_.iter_var2.is_some());
        let appends = matches!(loop_.loop_cond.expr, Expr::Literal(_));
        let step = self.step(loop_.loop_step, &loop_.accu_var);
        loop_.result = self.any(loop_.result);
        self.scope.truncate(self.scope.len().saturating_sub(depth));
        let cost = 3 + self.nodes;
        self.nodes = before + 1;
        if appends {
            loop_.loop_step = pay_inside(step, cost);
        } else {
            loop_.loop_step = step;
            loop_.loop_cond = both(tick(cost), loop_.loop_cond);
        }
        loop_
    }

    /// The step of a loop, whose shape the interpreter must still recognise: only what the user wrote is rewritten.
    fn step(&mut self, step: IdedExpr, accumulator: &str) -> IdedExpr {
        let is_accumulator = |node: &IdedExpr| matches!(&node.expr, Expr::Ident(name) if name == accumulator);
        let IdedExpr { id, expr: Expr::Call(mut call) } = step else { return self.any(step) };
        let folds = call.args.first().is_some_and(is_accumulator);
        let keeps = call.args.get(2).is_some_and(is_accumulator);
        if folds {
            let rest = call.args.split_off(1);
            call.args.extend(rest.into_iter().map(|argument| self.any(argument)));
        } else if keeps && call.func_name == operators::CONDITIONAL {
            let mut arguments = std::mem::take(&mut call.args).into_iter();
            call.args.extend(arguments.next().map(|condition| self.any(condition)));
            call.args.extend(arguments.next().map(|inner| self.step(inner, accumulator)));
            call.args.extend(arguments);
        } else {
            return self.any(IdedExpr { id, expr: Expr::Call(call) });
        }
        IdedExpr { id, expr: Expr::Call(call) }
    }
}

/// Makes `cond ? accu + [x] : accu` pay in its condition, `accu + [x]` in its item, anything else around it.
fn pay_inside(step: IdedExpr, cost: i64) -> IdedExpr {
    let IdedExpr { id, expr: Expr::Call(mut call) } = step else { return turn(cost, step) };
    if call.func_name == operators::CONDITIONAL {
        if let Some(condition) = call.args.first_mut() {
            *condition = both(tick(cost), std::mem::take(condition));
        }
    } else if let Some(IdedExpr { expr: Expr::List(list), .. }) = call.args.get_mut(1) {
        for element in &mut list.elements {
            *element = turn(cost, std::mem::take(element));
        }
    } else {
        return turn(cost, IdedExpr { id, expr: Expr::Call(call) });
    }
    IdedExpr { id, expr: Expr::Call(call) }
}

fn global(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }) }
}

fn literal(number: i64) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Literal(LiteralValue::Int(number.into())) }
}

fn tick(cost: i64) -> IdedExpr {
    global(TICK, vec![literal(cost)])
}

fn turn(cost: i64, value: IdedExpr) -> IdedExpr {
    global(TURN, vec![literal(cost), value])
}

fn both(one: IdedExpr, other: IdedExpr) -> IdedExpr {
    global(operators::LOGICAL_AND, vec![one, other])
}

/// What is written out is as long as the text; everything else pays by its size.
fn operand(node: IdedExpr) -> IdedExpr {
    if matches!(node.expr, Expr::Literal(_)) { node } else { global(OPERAND, vec![node]) }
}
