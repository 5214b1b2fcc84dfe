//! Rewrites an expression so that it charges the budget for every iteration and for every value that an operator or a
//! function reads.
//!
//! `all`, `exists` and `exists_one` get a loop condition that ends the loop when the budget is exhausted; `map` and
//! `filter` charge inside, because the interpreter appends in place only while their condition is a constant. An
//! iteration costs the number of nodes of its body, without nested loops, which charge for themselves.
//!
//! `tollgate_cel` has already checked names and types. This module refuses only literals that their function cannot
//! parse, such as an invalid pattern or quantity, and macros and messages that the interpreter does not support.

use std::collections::BTreeSet;

use ::cel::IdedExpr;
use ::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, SelectExpr, operators,
};

use super::functions::{
    CHARGE_ITERATION, CHARGE_OPERAND, CHARGE_STEPS_AND_COPY, CHARGE_WHOLE_VALUE, INDEX, OPTIONAL_INDEX,
    REPLACED_OPERATORS, SHARE_LIST_OR_MAP, VALUE_OR_EMPTY_MAP,
};
use super::library::patterns::{COMPUTED_PATTERN_FUNCTIONS, LITERAL_PATTERN_FUNCTIONS, LiteralPatterns};
use super::library::strings::REPLACED_FUNCTIONS;
use super::library::{QUALIFIED_FUNCTIONS, check_literal};

/// Steps for storing an element of a list, in addition to its nodes.
const LIST_ELEMENT_COST: i64 = 3;
/// Steps for storing an entry of a map, in addition to its nodes.
const MAP_ENTRY_COST: i64 = 10;

/// Rewrites one expression, and collects what its evaluation needs to know: its depth, and the names that it reads.
#[derive(Debug, Default)]
pub(super) struct Rewriter {
    /// Loop variables in scope.
    scope: Vec<String>,
    /// Nodes since the start of the innermost loop.
    nodes: i64,
    /// Number of nodes around the current one.
    depth: u32,
    /// Maximum of `depth` so far.
    pub(super) deepest: u32,
    /// The reason why the expression is rejected.
    pub(super) refused: Option<String>,
    /// True if the expression uses `namespaceObject`.
    pub(super) needs_namespace: bool,
    /// True if the expression uses `object`.
    pub(super) reads_object: bool,
    /// The names of fields, and the string literals, that the expression contains.
    pub(super) names: BTreeSet<String>,
    /// True if the expression may contain optional values.
    may_have_optionals: bool,
    /// The literal patterns that the expression contains, which are replaced by their indexes.
    pub(super) patterns: LiteralPatterns,
}

impl Rewriter {
    /// Returns the rewriter for the expression with this text.
    pub(super) fn new(text: &str) -> Rewriter {
        let may_have_optionals = text.contains('?') || text.contains("optional");
        Rewriter { may_have_optionals, ..Rewriter::default() }
    }

    /// Refuses a name such as `net.IP`: the interpreter would look for the variable `net`.
    fn refuse_type_name(&mut self, select: &SelectExpr) {
        let (mut name, mut operand) = (select.field.clone(), &select.operand.expr);
        while let Expr::Select(select) = operand {
            name = format!("{}.{name}", select.field);
            operand = &select.operand.expr;
        }
        if let Expr::Ident(root) = operand
            && !self.scope.contains(root)
            && !tollgate_cel::POLICY_ENV.scope.variables().contains(&root.trim_start_matches('.'))
        {
            self.refuse(format!("the type name `{root}.{name}` is not supported"));
        }
    }

    fn refuse(&mut self, message: String) {
        self.refused.get_or_insert(message);
    }

    /// Rewrites an expression so that its evaluation is charged for. Sets `refused` if it cannot be used.
    pub(super) fn rewrite(&mut self, node: IdedExpr) -> IdedExpr {
        self.nodes += 1;
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        let id = node.id;
        let expr = match node.expr {
            Expr::Call(call) => self.rewrite_call(call),
            Expr::Comprehension(comprehension) => {
                let comprehension = self.rewrite_comprehension(*comprehension);
                wrap_in_share(id, Expr::Comprehension(Box::new(comprehension)))
            }
            Expr::Ident(name) => {
                self.needs_namespace |= name == "namespaceObject";
                self.reads_object |= name == "object";
                Expr::Ident(name)
            }
            Expr::List(list) => {
                let list = self.rewrite_list(list);
                wrap_in_share(id, Expr::List(list))
            }
            Expr::Map(mut map) => {
                for entry in &mut map.entries {
                    if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                        self.nodes += MAP_ENTRY_COST;
                        entry.key =
                            operand_charge_call_unless_literal(self.rewrite(std::mem::take(&mut entry.key)));
                        entry.value =
                            steps_and_copy_charge_call(0, self.rewrite(std::mem::take(&mut entry.value)));
                    }
                }
                wrap_in_share(id, Expr::Map(map))
            }
            Expr::Select(mut select) => {
                self.refuse_type_name(&select);
                self.names.insert(select.field.clone());
                let operand = self.rewrite(std::mem::take(&mut select.operand));
                if self.may_have_optionals && !select.test {
                    let field = Expr::Literal(LiteralValue::String(select.field.into()));
                    function_call(INDEX, vec![operand, IdedExpr { id: 0, expr: field }]).expr
                } else {
                    *select.operand =
                        if select.test { function_call(VALUE_OR_EMPTY_MAP, vec![operand]) } else { operand };
                    Expr::Select(select)
                }
            }
            Expr::Struct(made) => {
                self.refuse(format!("messages such as {} are not supported", made.type_name));
                Expr::Struct(made)
            }
            Expr::Literal(literal) => {
                self.nodes += literal_cost(&literal);
                if let LiteralValue::String(text) = &literal {
                    self.names.insert(text.inner().to_owned());
                }
                Expr::Literal(literal)
            }
            Expr::Unspecified => Expr::Unspecified,
        };
        self.depth -= 1;
        IdedExpr { id, expr }
    }

    /// Rewrites a list literal, and charges for copying its elements.
    fn rewrite_list(&mut self, list: ListExpr) -> ListExpr {
        let mut element = |element| {
            self.nodes += LIST_ELEMENT_COST;
            steps_and_copy_charge_call(0, self.rewrite(element))
        };
        ListExpr {
            elements: list.elements.into_iter().map(&mut element).collect(),
            optional_indices: list.optional_indices,
        }
    }

    /// Rewrites an operand that must stay a list of the interpreter instead of a shared one.
    fn rewrite_without_sharing(&mut self, node: IdedExpr) -> IdedExpr {
        match node.expr {
            Expr::List(list) => IdedExpr { id: node.id, expr: Expr::List(self.rewrite_list(list)) },
            expr => self.rewrite(IdedExpr { id: node.id, expr }),
        }
    }

    fn rewrite_call(&mut self, mut call: CallExpr) -> Expr {
        let is_named = call.func_name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && call.func_name.bytes().any(|byte| byte.is_ascii_alphanumeric());
        self.refuse_unsupported_macro(&call);
        self.qualify_function_name(&mut call);
        let writes = call.func_name == "format";
        let arguments = std::mem::take(&mut call.args);
        call.args = arguments
            .into_iter()
            .map(|argument| {
                let argument = self.rewrite(argument);
                match (is_named, writes) {
                    (true, true) => function_call(CHARGE_WHOLE_VALUE, vec![argument]),
                    (true, false) => operand_charge_call_unless_literal(argument),
                    (false, _) => argument,
                }
            })
            .collect();
        // A long pattern is often written in parts: `'^(a' + '|b)$'`. As one text it is compiled once.
        if let Some(text) = concatenated_string_literals(&call) {
            self.names.insert(text.clone());
            return Expr::Literal(LiteralValue::String(text.into()));
        }
        self.check_literal(&call);
        // `optional.of(x)`: the target is part of the name.
        let is_qualified = call
            .target
            .as_ref()
            .is_some_and(|target| matches!(&target.expr, Expr::Ident(name) if name == "optional"))
            && !self.scope.iter().any(|variable| variable == "optional");
        if let Some(target) = call.target.take() {
            let target = self.rewrite(*target);
            call.target = Some(Box::new(if is_qualified {
                target
            } else {
                operand_charge_call_unless_literal(target)
            }));
        }
        // `matches(a, b)` is `a.matches(b)`.
        if call.target.is_none() && call.func_name == "matches" && call.args.len() == 2 {
            call.target = Some(Box::new(call.args.remove(0)));
        }
        let literal = LITERAL_PATTERN_FUNCTIONS.iter().find(|(name, _)| *name == call.func_name);
        let literal = literal.filter(|_| self.replace_literal_pattern(&mut call.args));
        let mut names = literal.into_iter().chain(COMPUTED_PATTERN_FUNCTIONS).chain(REPLACED_FUNCTIONS);
        let renamed = names.find(|(name, _)| *name == call.func_name).map(|(_, replacement)| *replacement);
        let charging = REPLACED_OPERATORS.iter().find(|(operator, _, _)| *operator == call.func_name);
        let index = match call.func_name.as_str() {
            operators::OPT_INDEX | operators::OPT_SELECT => Some(OPTIONAL_INDEX),
            operators::INDEX if self.may_have_optionals => Some(INDEX),
            _ => None,
        };
        let replacement = charging.map(|(_, replacement, _)| *replacement).or(renamed).or(index);
        if let Some(replacement) = replacement {
            replacement.clone_into(&mut call.func_name);
        }
        Expr::Call(call)
    }

    /// Compiles the pattern that a function is called with and replaces it by its index; false if it is no literal.
    fn replace_literal_pattern(&mut self, arguments: &mut [IdedExpr]) -> bool {
        let Some(IdedExpr { expr: Expr::Literal(literal), .. }) = arguments.first_mut() else { return false };
        let LiteralValue::String(text) = &*literal else { return false };
        match self.patterns.add(text.inner()) {
            Ok(index) => *literal = LiteralValue::Int(i64::try_from(index).unwrap_or(i64::MAX).into()),
            Err(reason) => self.refuse(reason),
        }
        true
    }

    /// Refuses macros that the interpreter does not have: it would look for their variables.
    fn refuse_unsupported_macro(&mut self, call: &CallExpr) {
        let Some(target) = &call.target else { return };
        let (name, count) = (call.func_name.as_str(), call.args.len());
        if matches!((name, count), ("all" | "exists" | "exists_one" | "existsOne", 3))
            || matches!(name, "transformList" | "transformMap" | "transformMapEntry")
        {
            self.refuse(format!("`{name}` with two variables is not supported"));
        } else if name == "bind" && matches!(&target.expr, Expr::Ident(library) if library == "cel") {
            self.refuse("`cel.bind` is not supported".to_owned());
        }
    }

    /// Turns the target of a call such as `sets.contains(a, b)` into a part of the function's name.
    fn qualify_function_name(&mut self, call: &mut CallExpr) {
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
        // `a.matches(b)`, but `matches(a, b)`.
        let place = usize::from(call.target.is_none() && call.args.len() == 2);
        if let Some(Expr::Literal(LiteralValue::String(text))) = call.args.get(place).map(|text| &text.expr)
            && let Err(reason) = check_literal(&call.func_name, text.inner())
        {
            self.refuse(reason);
        }
    }

    fn rewrite_comprehension(&mut self, mut loop_: ComprehensionExpr) -> ComprehensionExpr {
        let appends = matches!(loop_.loop_cond.expr, Expr::Literal(_));
        loop_.iter_range = self.rewrite(loop_.iter_range);
        if appends {
            // Before its first iteration, `map` reserves memory for its last.
            loop_.iter_range = operand_charge_call_unless_literal(loop_.iter_range);
        }
        loop_.accu_init = self.rewrite_without_sharing(loop_.accu_init);
        let before = std::mem::take(&mut self.nodes);
        self.scope.push(loop_.iter_var.clone());
        self.scope.extend(loop_.iter_var2.clone());
        self.scope.push(loop_.accu_var.clone());
        let depth = 2 + usize::from(loop_.iter_var2.is_some());
        let step = self.rewrite_loop_step(loop_.loop_step, &loop_.accu_var);
        let is_result = matches!(&loop_.result.expr, Expr::Ident(name) if *name == loop_.accu_var);
        loop_.result = self.rewrite(loop_.result);
        if !is_result {
            // `optMap` is a loop without iterations; its result is copied.
            loop_.result = steps_and_copy_charge_call(0, loop_.result);
        }
        self.scope.truncate(self.scope.len().saturating_sub(depth));
        let cost = 3 + self.nodes;
        self.nodes = before + 1;
        if appends {
            loop_.loop_step = charge_in_loop_step(step, cost);
        } else {
            loop_.loop_step = step;
            loop_.loop_cond = logical_and(iteration_charge_call(cost), loop_.loop_cond);
        }
        loop_
    }

    /// Rewrites the step of a loop. The interpreter must still recognize its form, so only the user's parts change.
    fn rewrite_loop_step(&mut self, step: IdedExpr, accumulator: &str) -> IdedExpr {
        let is_accumulator = |node: &IdedExpr| matches!(&node.expr, Expr::Ident(name) if name == accumulator);
        let IdedExpr { id, expr: Expr::Call(mut call) } = step else { return self.rewrite(step) };
        let folds = call.args.first().is_some_and(is_accumulator);
        let keeps = call.args.get(2).is_some_and(is_accumulator);
        if folds {
            let rest = call.args.split_off(1);
            call.args.extend(rest.into_iter().map(|argument| self.rewrite_without_sharing(argument)));
        } else if keeps && call.func_name == operators::CONDITIONAL {
            let mut arguments = std::mem::take(&mut call.args).into_iter();
            call.args.extend(arguments.next().map(|condition| self.rewrite(condition)));
            call.args.extend(arguments.next().map(|inner| self.rewrite_loop_step(inner, accumulator)));
            call.args.extend(arguments);
        } else {
            return self.rewrite(IdedExpr { id, expr: Expr::Call(call) });
        }
        IdedExpr { id, expr: Expr::Call(call) }
    }
}

/// Adds the charge for an iteration to the step of a loop without changing the form that the interpreter recognizes: in
/// the condition of `cond ? accu + [x] : accu`, in the item of `accu + [x]`, and around any other step.
fn charge_in_loop_step(step: IdedExpr, cost: i64) -> IdedExpr {
    let IdedExpr { id, expr: Expr::Call(mut call) } = step else {
        return steps_and_copy_charge_call(cost, step);
    };
    if call.func_name == operators::CONDITIONAL {
        if let Some(condition) = call.args.first_mut() {
            *condition = logical_and(iteration_charge_call(cost), std::mem::take(condition));
        }
    } else if let Some(IdedExpr { expr: Expr::List(list), .. }) = call.args.get_mut(1) {
        for element in &mut list.elements {
            set_charged_steps(element, cost);
        }
    } else {
        return steps_and_copy_charge_call(cost, IdedExpr { id, expr: Expr::Call(call) });
    }
    IdedExpr { id, expr: Expr::Call(call) }
}

fn function_call(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }) }
}

fn integer_literal(number: i64) -> IdedExpr {
    IdedExpr { id: 0, expr: Expr::Literal(LiteralValue::Int(number.into())) }
}

/// Returns the text of a `+` of two string literals; `None` for any other call.
fn concatenated_string_literals(call: &CallExpr) -> Option<String> {
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

fn iteration_charge_call(cost: i64) -> IdedExpr {
    function_call(CHARGE_ITERATION, vec![integer_literal(cost)])
}

fn steps_and_copy_charge_call(cost: i64, value: IdedExpr) -> IdedExpr {
    function_call(CHARGE_STEPS_AND_COPY, vec![integer_literal(cost), value])
}

/// Sets the number of steps in a call that [`steps_and_copy_charge_call`] created.
fn set_charged_steps(item: &mut IdedExpr, cost: i64) {
    if let Expr::Call(call) = &mut item.expr
        && let Some(steps) = call.args.first_mut()
    {
        *steps = integer_literal(cost);
    }
}

/// Wraps an expression that creates a list or map, so that copies of the result share it.
fn wrap_in_share(id: u64, made: Expr) -> Expr {
    function_call(SHARE_LIST_OR_MAP, vec![IdedExpr { id, expr: made }]).expr
}

/// Returns the steps for reading a literal, in addition to the step of its node.
fn literal_cost(literal: &LiteralValue) -> i64 {
    let length = match literal {
        LiteralValue::String(text) => text.inner().len(),
        LiteralValue::Bytes(bytes) => bytes.inner().len(),
        _ => 0,
    };
    i64::try_from(length / 8).unwrap_or(i64::MAX)
}

fn logical_and(one: IdedExpr, other: IdedExpr) -> IdedExpr {
    function_call(operators::LOGICAL_AND, vec![one, other])
}

/// Wraps an operand in a call that charges for reading it; a literal, whose cost is known, is returned as it is.
fn operand_charge_call_unless_literal(node: IdedExpr) -> IdedExpr {
    if matches!(node.expr, Expr::Literal(_)) { node } else { function_call(CHARGE_OPERAND, vec![node]) }
}
