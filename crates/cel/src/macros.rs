//! Expands macros: `has`, the quantifiers and transformations in one and two variables, `cel.bind`,
//! `optMap`, `optFlatMap`, `sortBy`.
//!
//! A macro is a name, a number of arguments and whether it is called on something; a call that
//! differs in any of these is an ordinary call and fails later for want of a declaration. The
//! expansions have the server's shape, because cost is counted on them.

use super::draft::ParseState;
use super::tree::{Element, ExprKind, Literal, Loop, NodeId};

/// The name of the accumulator of a loop. It cannot be written in an expression, so it collides with no variable.
const ACCUMULATOR: &str = "@result";
/// The former name of the accumulator of a loop, which no loop variable may have.
const OLD_ACCUMULATOR: &str = "__result__";
const UNUSED_VARIABLE: &str = "#unused";
const SORT_INPUT: &str = "@__sortBy_input__";
/// Number of nodes from which on a tree shares subtrees instead of copying them, so that nested macros cannot grow
/// it exponentially.
const SHARE_SUBTREES_FROM_NODES: usize = 10_000;

/// The size of an expression for estimating the time to check it: its length in bytes, doubled for each
/// `optMap` or `optFlatMap`, because these macros copy their target.
pub fn estimated_size_after_macro_copies(expression: &str) -> usize {
    let size = expression.len();
    // Nearly no expression has one: it is searched once.
    if memchr::memmem::find(expression.as_bytes(), b"opt").is_none() {
        return size;
    }
    let copies = expression.matches("optMap").count() + expression.matches("optFlatMap").count();
    size.saturating_mul(1 << copies.min(14)).min(SHARE_SUBTREES_FROM_NODES).max(size)
}

/// Expands a call that is a macro; returns the node that replaces it, or `None` if it is not a macro.
pub(super) fn expand(
    cx: &mut ParseState<'_>,
    at: usize,
    function: &str,
    target: Option<NodeId>,
    args: &[NodeId],
) -> Option<NodeId> {
    let builder = &mut MacroExpander { cx, at };
    match (function, target, args) {
        ("has", None, [argument]) => Some(builder.expand_has(*argument)),
        ("bind", Some(target), [name, init, result]) if matches!(builder.cx.tree.kind(target), ExprKind::Ident(name) if name == "cel") => {
            Some(builder.expand_bind(*name, *init, *result))
        }
        ("all" | "exists" | "exists_one", Some(range), [variable, predicate]) => {
            let names = builder.single_variable_name(*variable, "argument must be a simple name");
            Some(builder.expand_quantifier(function, range, names, *predicate))
        }
        ("all" | "exists" | "exists_one" | "existsOne", Some(range), [first, second, predicate]) => {
            let names = builder.two_variable_names(*first, *second);
            Some(builder.expand_quantifier(function, range, names, *predicate))
        }
        ("map", Some(range), [variable, rest @ ..]) => {
            let (filter, transform) = split_filter_and_transform(rest)?;
            let names = builder.single_variable_name(*variable, "argument is not an identifier");
            Some(builder.expand_to_list(range, names, filter, transform))
        }
        ("filter", Some(range), [variable, filter]) => {
            let names = builder.single_variable_name(*variable, "argument is not an identifier");
            Some(builder.expand_to_list(range, names, Some(*filter), *variable))
        }
        ("transformList" | "transformMap" | "transformMapEntry", Some(range), [first, second, rest @ ..]) => {
            let (filter, transform) = split_filter_and_transform(rest)?;
            let names = builder.two_variable_names(*first, *second);
            Some(match function {
                "transformList" => builder.expand_to_list(range, names, filter, transform),
                "transformMap" => builder.expand_to_map(range, names, filter, &[*first, transform]),
                _ => builder.expand_to_map(range, names, filter, &[transform]),
            })
        }
        ("optMap" | "optFlatMap", Some(target), [name, transform]) => {
            Some(builder.expand_opt_map(function, target, *name, *transform))
        }
        ("sortBy", Some(target), [variable, key]) if builder.cx.env.ext_lists => {
            Some(builder.expand_sort_by(target, *variable, *key))
        }
        _ => None,
    }
}

/// The optional filter and the transformation among the last one or two arguments of a macro; `None` for another
/// number.
fn split_filter_and_transform(args: &[NodeId]) -> Option<(Option<NodeId>, NodeId)> {
    match args {
        [transform] => Some((None, *transform)),
        [filter, transform] => Some((Some(*filter), *transform)),
        _ => None,
    }
}

/// A macro that is used incorrectly. The error was reported at this node, which represents the call.
struct MisusedMacro(NodeId);

/// The names of the variables of a loop: one, or two for `all(i, v, …)` and the like. An error if the arguments of the
/// macro are not valid names.
type LoopVariableNames = Result<(String, Option<String>), MisusedMacro>;

/// Adds the nodes that replace one macro call, all at the position of the macro.
struct MacroExpander<'c, 't> {
    cx: &'c mut ParseState<'t>,
    at: usize,
}

impl MacroExpander<'_, '_> {
    /// Adds a node at the position of the macro.
    fn add(&mut self, kind: ExprKind) -> NodeId {
        self.cx.tree.add(self.at, kind)
    }

    /// Adds a literal at the position of the macro.
    fn add_literal(&mut self, literal: Literal) -> NodeId {
        self.add(ExprKind::Literal(literal))
    }

    fn add_ident(&mut self, name: &str) -> NodeId {
        self.add(ExprKind::Ident(name.to_owned()))
    }

    /// Adds a call `function(args)` at the position of the macro.
    fn add_call(&mut self, function: &str, args: &[NodeId]) -> NodeId {
        self.add(ExprKind::Call { function: function.to_owned(), target: None, args: args.to_vec() })
    }

    /// Adds a call `target.function(args)`.
    fn add_member_call(&mut self, function: &str, target: NodeId, args: &[NodeId]) -> NodeId {
        self.add(ExprKind::Call { function: function.to_owned(), target: Some(target), args: args.to_vec() })
    }

    fn add_list(&mut self, elements: &[NodeId]) -> NodeId {
        let elements = elements.iter().map(|value| Element { value: *value, optional: false }).collect();
        self.add(ExprKind::List { elements })
    }

    /// A copy of a node and everything below it; the node itself once the tree is large, because each nested copy would
    /// double it.
    fn copy_subtree_unless_tree_large(&mut self, id: NodeId) -> NodeId {
        if self.cx.tree.len() < SHARE_SUBTREES_FROM_NODES {
            self.cx.tree.copy_subtree(id, self.at)
        } else {
            id
        }
    }

    /// Reports a macro that is used incorrectly, and returns the node that represents it.
    fn report_misuse(&mut self, id: NodeId, complaint: impl Into<String>) -> MisusedMacro {
        let at = self.cx.tree.error_offset(id);
        self.cx.issues.report(at, complaint);
        MisusedMacro(self.cx.tree.add(at, ExprKind::Missing))
    }

    /// The name if the node is an identifier; otherwise reports `complaint`.
    fn identifier_name_or_report(&mut self, id: NodeId, complaint: &str) -> Result<String, MisusedMacro> {
        if let ExprKind::Ident(name) = self.cx.tree.kind(id) {
            return Ok(name.clone());
        }
        Err(self.report_misuse(id, complaint))
    }

    /// Reports a variable that has the former name of the accumulator.
    fn check_not_accumulator(&mut self, id: NodeId, name: &str) -> Result<(), MisusedMacro> {
        if name == OLD_ACCUMULATOR {
            return Err(self.report_misuse(id, "iteration variable overwrites accumulator variable"));
        }
        Ok(())
    }

    /// The loop variable of a macro with one variable. Reports `complaint` if it is not an identifier.
    fn single_variable_name(&mut self, variable: NodeId, complaint: &str) -> LoopVariableNames {
        let name = self.identifier_name_or_report(variable, complaint)?;
        self.check_not_accumulator(variable, &name)?;
        Ok((name, None))
    }

    /// The loop variables of a macro with two variables, which must differ.
    fn two_variable_names(&mut self, first: NodeId, second: NodeId) -> LoopVariableNames {
        let first_name = self.identifier_name_or_report(first, "argument must be a simple name")?;
        let second_name = self.identifier_name_or_report(second, "argument must be a simple name")?;
        if first_name == second_name {
            return Err(self.report_misuse(second, format!("duplicate variable name: {first_name}")));
        }
        self.check_not_accumulator(first, &first_name)?;
        self.check_not_accumulator(second, &second_name)?;
        Ok((first_name, Some(second_name)))
    }

    /// Expands `has(a.b)` to a presence test.
    fn expand_has(&mut self, argument: NodeId) -> NodeId {
        if let ExprKind::Select { operand, field, .. } = self.cx.tree.kind(argument) {
            let (operand, field) = (*operand, field.clone());
            return self.add(ExprKind::Select { operand, field, presence_test: true });
        }
        self.report_misuse(argument, "invalid argument to has() macro").0
    }

    /// Adds a loop over `range`; `parts` are its initial value, condition, step and result. The node of the error if
    /// the names are wrong.
    fn add_loop(&mut self, range: NodeId, names: LoopVariableNames, parts: [NodeId; 4]) -> NodeId {
        let (variable, second_variable) = match names {
            Ok(names) => names,
            Err(MisusedMacro(missing)) => return missing,
        };
        let [init, condition, step, result] = parts;
        let accumulator = ACCUMULATOR.to_owned();
        self.add(ExprKind::Loop(Box::new(Loop {
            range,
            variable,
            second_variable,
            accumulator,
            init,
            condition,
            step,
            result,
            is_bind: false,
        })))
    }

    /// Expands `all`, `exists` or `exists_one`.
    fn expand_quantifier(
        &mut self,
        function: &str,
        range: NodeId,
        names: LoopVariableNames,
        predicate: NodeId,
    ) -> NodeId {
        let parts = match function {
            "all" | "exists" => {
                let is_all = function == "all";
                let init = self.add_literal(Literal::Bool(is_all));
                let accumulator = self.add_ident(ACCUMULATOR);
                let goes_on = if is_all { accumulator } else { self.add_call("!_", &[accumulator]) };
                let condition = self.add_call("@not_strictly_false", &[goes_on]);
                let accumulator = self.add_ident(ACCUMULATOR);
                let step = self.add_call(if is_all { "_&&_" } else { "_||_" }, &[accumulator, predicate]);
                [init, condition, step, self.add_ident(ACCUMULATOR)]
            }
            _ => {
                let init = self.add_literal(Literal::Int(0));
                let condition = self.add_literal(Literal::Bool(true));
                let accumulator = self.add_ident(ACCUMULATOR);
                let one = self.add_literal(Literal::Int(1));
                let more = self.add_call("_+_", &[accumulator, one]);
                let same = self.add_ident(ACCUMULATOR);
                let step = self.add_call("_?_:_", &[predicate, more, same]);
                let accumulator = self.add_ident(ACCUMULATOR);
                let one = self.add_literal(Literal::Int(1));
                [init, condition, step, self.add_call("_==_", &[accumulator, one])]
            }
        };
        self.add_loop(range, names, parts)
    }

    /// Expands a macro that makes a list of `transform` for each element that passes the filter.
    fn expand_to_list(
        &mut self,
        range: NodeId,
        names: LoopVariableNames,
        filter: Option<NodeId>,
        transform: NodeId,
    ) -> NodeId {
        let init = self.add_list(&[]);
        let accumulator = self.add_ident(ACCUMULATOR);
        let added = self.add_list(&[transform]);
        let step = self.add_call("_+_", &[accumulator, added]);
        self.add_collecting_loop(range, names, filter, init, step)
    }

    /// Expands a macro that makes a map, by inserting `inserted` for each element that passes the filter.
    fn expand_to_map(
        &mut self,
        range: NodeId,
        names: LoopVariableNames,
        filter: Option<NodeId>,
        inserted: &[NodeId],
    ) -> NodeId {
        let init = self.add(ExprKind::Map { entries: Vec::new() });
        let mut args = vec![self.add_ident(ACCUMULATOR)];
        args.extend_from_slice(inserted);
        let step = self.add_call("cel.@mapInsert", &args);
        self.add_collecting_loop(range, names, filter, init, step)
    }

    /// Adds a loop that takes `step` for each element that passes the filter, from `init` on.
    fn add_collecting_loop(
        &mut self,
        range: NodeId,
        names: LoopVariableNames,
        filter: Option<NodeId>,
        init: NodeId,
        mut step: NodeId,
    ) -> NodeId {
        let condition = self.add_literal(Literal::Bool(true));
        if let Some(filter) = filter {
            let same = self.add_ident(ACCUMULATOR);
            step = self.add_call("_?_:_", &[filter, step, same]);
        }
        let result = self.add_ident(ACCUMULATOR);
        self.add_loop(range, names, [init, condition, step, result])
    }

    /// Adds a loop that never iterates and binds `init` to a name in `result`, as `cel.bind` expands to.
    fn add_bind(&mut self, name: String, init: NodeId, result: NodeId) -> NodeId {
        let range = self.add_list(&[]);
        let condition = self.add_literal(Literal::Bool(false));
        let step = self.add_ident(&name);
        let variable = UNUSED_VARIABLE.to_owned();
        self.add(ExprKind::Loop(Box::new(Loop {
            range,
            variable,
            second_variable: None,
            accumulator: name,
            init,
            condition,
            step,
            result,
            is_bind: true,
        })))
    }

    /// Expands `cel.bind(name, init, result)`.
    fn expand_bind(&mut self, name: NodeId, init: NodeId, result: NodeId) -> NodeId {
        match self.identifier_name_or_report(name, "cel.bind() variable names must be simple identifiers") {
            Ok(name) => self.add_bind(name, init, result),
            Err(MisusedMacro(missing)) => missing,
        }
    }

    /// Expands `optMap` or `optFlatMap`.
    fn expand_opt_map(&mut self, function: &str, target: NodeId, name: NodeId, transform: NodeId) -> NodeId {
        let complaint = format!("{function}() variable name must be a simple identifier");
        let name = match self.identifier_name_or_report(name, &complaint) {
            Ok(name) => name,
            Err(MisusedMacro(missing)) => return missing,
        };
        let has_value = self.add_member_call("hasValue", target, &[]);
        let copy = self.copy_subtree_unless_tree_large(target);
        let value = self.add_member_call("value", copy, &[]);
        let mut present = self.add_bind(name, value, transform);
        if function == "optMap" {
            present = self.add_call("optional.of", &[present]);
        }
        let absent = self.add_call("optional.none", &[]);
        self.add_call("_?_:_", &[has_value, present, absent])
    }

    /// Expands `sortBy`: sorts by a list of keys that is made first.
    fn expand_sort_by(&mut self, target: NodeId, variable: NodeId, key: NodeId) -> NodeId {
        if !is_sortable(self.cx.tree.kind(target)) {
            return self.report_misuse(target, NOT_SORTABLE).0;
        }
        let names = match self.single_variable_name(variable, "argument is not an identifier") {
            Err(MisusedMacro(missing)) => return missing,
            names => names,
        };
        let input = self.add_ident(SORT_INPUT);
        let keys = self.expand_to_list(input, names, None, key);
        let input = self.add_ident(SORT_INPUT);
        let sorted = self.add_member_call("@sortByAssociatedKeys", input, &[keys]);
        self.add_bind(SORT_INPUT.to_owned(), target, sorted)
    }
}

const NOT_SORTABLE: &str =
    "sortBy can only be applied to a list, identifier, comprehension, call or select expression";

/// True if `sortBy` may be called on such an expression.
fn is_sortable(target: &ExprKind) -> bool {
    matches!(
        target,
        ExprKind::List { .. }
            | ExprKind::Ident(_)
            | ExprKind::Loop(_)
            | ExprKind::Call { .. }
            | ExprKind::Select { .. }
    )
}
