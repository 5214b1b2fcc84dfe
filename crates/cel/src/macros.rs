//! Expands macros: `has`, the quantifiers and transformations in one and two variables, `cel.bind`,
//! `optMap`, `optFlatMap`, `sortBy`.
//!
//! A macro is a name, a number of arguments and whether it is called on something; a call that
//! differs in any of these is an ordinary call and fails later for want of a declaration. The
//! expansions have the server's shape, because cost is counted on them.

use super::draft::Draft;
use super::tree::{Element, ExprKind, Literal, Loop, NodeId};

/// Cannot be written in an expression, so it collides with no variable.
const ACCUMULATOR: &str = "@result";
/// What it was once; still no name for a variable of a loop.
const OLD_ACCUMULATOR: &str = "__result__";
const UNUSED: &str = "#unused";
const SORT_INPUT: &str = "@__sortBy_input__";
/// The number of nodes from which on nothing is copied; some selectors of the largest length have as many.
const MAX_COPIED: usize = 10_000;

/// Bytes of text that checking an expression costs as much as: each of these macros copies what it is called on.
pub fn weight(expression: &str) -> usize {
    let size = expression.len();
    // Nearly no expression has one: it is searched once.
    if memchr::memmem::find(expression.as_bytes(), b"opt").is_none() {
        return size;
    }
    let copies = expression.matches("optMap").count() + expression.matches("optFlatMap").count();
    size.saturating_mul(1 << copies.min(14)).min(MAX_COPIED).max(size)
}

/// The node that replaces the call, or `None` if the call is not a macro.
pub(super) fn expand(
    cx: &mut Draft<'_>,
    at: usize,
    function: &str,
    target: Option<NodeId>,
    args: &[NodeId],
) -> Option<NodeId> {
    let builder = &mut Builder { cx, at };
    match (function, target, args) {
        ("has", None, [argument]) => Some(builder.has(*argument)),
        ("bind", Some(target), [name, init, result]) if builder.is_ident(target, "cel") => {
            Some(builder.bind_macro(*name, *init, *result))
        }
        ("all" | "exists" | "exists_one", Some(range), [variable, predicate]) => {
            let names = builder.one_name(*variable, "argument must be a simple name");
            Some(builder.quantifier(function, range, names, *predicate))
        }
        ("all" | "exists" | "exists_one" | "existsOne", Some(range), [first, second, predicate]) => {
            let names = builder.two_names(*first, *second);
            Some(builder.quantifier(function, range, names, *predicate))
        }
        ("map", Some(range), [variable, transform]) => {
            let names = builder.one_name(*variable, "argument is not an identifier");
            Some(builder.list_of(range, names, None, *transform))
        }
        ("map", Some(range), [variable, filter, transform]) => {
            let names = builder.one_name(*variable, "argument is not an identifier");
            Some(builder.list_of(range, names, Some(*filter), *transform))
        }
        ("filter", Some(range), [variable, filter]) => {
            let names = builder.one_name(*variable, "argument is not an identifier");
            Some(builder.list_of(range, names, Some(*filter), *variable))
        }
        ("transformList", Some(range), [first, second, rest @ ..]) => {
            let (filter, transform) = filter_and_transform(rest)?;
            let names = builder.two_names(*first, *second);
            Some(builder.list_of(range, names, filter, transform))
        }
        ("transformMap", Some(range), [first, second, rest @ ..]) => {
            let (filter, transform) = filter_and_transform(rest)?;
            let names = builder.two_names(*first, *second);
            Some(builder.map_of(range, names, filter, &[*first, transform]))
        }
        ("transformMapEntry", Some(range), [first, second, rest @ ..]) => {
            let (filter, transform) = filter_and_transform(rest)?;
            let names = builder.two_names(*first, *second);
            Some(builder.map_of(range, names, filter, &[transform]))
        }
        ("optMap" | "optFlatMap", Some(target), [name, transform]) => {
            Some(builder.opt_map(function, target, *name, *transform))
        }
        ("sortBy", Some(target), [variable, key]) if builder.cx.env.ext_lists => {
            Some(builder.sort_by(target, *variable, *key))
        }
        _ => None,
    }
}

fn filter_and_transform(args: &[NodeId]) -> Option<(Option<NodeId>, NodeId)> {
    match args {
        [transform] => Some((None, *transform)),
        [filter, transform] => Some((Some(*filter), *transform)),
        _ => None,
    }
}

/// A macro that is used wrongly. It has been reported where this node is, which stands for the whole call.
struct Misused(NodeId);

/// The variables of a loop.
type Names = Result<(String, Option<String>), Misused>;

struct Builder<'c, 't> {
    cx: &'c mut Draft<'t>,
    at: usize,
}

impl Builder<'_, '_> {
    fn add(&mut self, kind: ExprKind) -> NodeId {
        self.cx.tree.add(self.at, kind)
    }

    fn literal(&mut self, literal: Literal) -> NodeId {
        self.add(ExprKind::Literal(literal))
    }

    fn ident(&mut self, name: &str) -> NodeId {
        self.add(ExprKind::Ident(name.to_owned()))
    }

    fn call(&mut self, function: &str, args: &[NodeId]) -> NodeId {
        self.add(ExprKind::Call { function: function.to_owned(), target: None, args: args.to_vec() })
    }

    fn member(&mut self, function: &str, target: NodeId, args: &[NodeId]) -> NodeId {
        self.add(ExprKind::Call { function: function.to_owned(), target: Some(target), args: args.to_vec() })
    }

    fn list(&mut self, elements: &[NodeId]) -> NodeId {
        let elements = elements.iter().map(|value| Element { value: *value, optional: false }).collect();
        self.add(ExprKind::List { elements })
    }

    /// Shared instead once the tree is large: each nested copy would double it.
    fn copy(&mut self, id: NodeId) -> NodeId {
        if self.cx.tree.len() < MAX_COPIED { self.cx.tree.copy(id) } else { id }
    }

    fn is_ident(&self, id: NodeId, expected: &str) -> bool {
        matches!(self.cx.tree.kind(id), ExprKind::Ident(name) if name == expected)
    }

    fn misused(&mut self, id: NodeId, complaint: impl Into<String>) -> Misused {
        let at = self.cx.tree.at(id);
        self.cx.issues.report(at, complaint);
        Misused(self.cx.tree.add(at, ExprKind::Missing))
    }

    fn name(&mut self, id: NodeId, complaint: &str) -> Result<String, Misused> {
        if let ExprKind::Ident(name) = self.cx.tree.kind(id) {
            return Ok(name.clone());
        }
        Err(self.misused(id, complaint))
    }

    fn not_accumulator(&mut self, id: NodeId, name: &str) -> Result<(), Misused> {
        if name == OLD_ACCUMULATOR {
            return Err(self.misused(id, "iteration variable overwrites accumulator variable"));
        }
        Ok(())
    }

    fn one_name(&mut self, variable: NodeId, complaint: &str) -> Names {
        let name = self.name(variable, complaint)?;
        self.not_accumulator(variable, &name)?;
        Ok((name, None))
    }

    fn two_names(&mut self, first: NodeId, second: NodeId) -> Names {
        let first_name = self.name(first, "argument must be a simple name")?;
        let second_name = self.name(second, "argument must be a simple name")?;
        if first_name == second_name {
            return Err(self.misused(second, format!("duplicate variable name: {first_name}")));
        }
        self.not_accumulator(first, &first_name)?;
        self.not_accumulator(second, &second_name)?;
        Ok((first_name, Some(second_name)))
    }

    fn has(&mut self, argument: NodeId) -> NodeId {
        if let ExprKind::Select { operand, field, .. } = self.cx.tree.kind(argument) {
            let (operand, field) = (*operand, field.clone());
            return self.add(ExprKind::Select { operand, field, presence_test: true });
        }
        self.misused(argument, "invalid argument to has() macro").0
    }

    fn repeat(&mut self, range: NodeId, names: Names, parts: [NodeId; 4]) -> NodeId {
        let (variable, second_variable) = match names {
            Ok(names) => names,
            Err(Misused(missing)) => return missing,
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

    fn quantifier(&mut self, function: &str, range: NodeId, names: Names, predicate: NodeId) -> NodeId {
        let parts = match function {
            "all" => {
                let init = self.literal(Literal::Bool(true));
                let accumulator = self.ident(ACCUMULATOR);
                let condition = self.call("@not_strictly_false", &[accumulator]);
                let accumulator = self.ident(ACCUMULATOR);
                let step = self.call("_&&_", &[accumulator, predicate]);
                [init, condition, step, self.ident(ACCUMULATOR)]
            }
            "exists" => {
                let init = self.literal(Literal::Bool(false));
                let accumulator = self.ident(ACCUMULATOR);
                let not = self.call("!_", &[accumulator]);
                let condition = self.call("@not_strictly_false", &[not]);
                let accumulator = self.ident(ACCUMULATOR);
                let step = self.call("_||_", &[accumulator, predicate]);
                [init, condition, step, self.ident(ACCUMULATOR)]
            }
            _ => {
                let init = self.literal(Literal::Int(0));
                let condition = self.literal(Literal::Bool(true));
                let accumulator = self.ident(ACCUMULATOR);
                let one = self.literal(Literal::Int(1));
                let more = self.call("_+_", &[accumulator, one]);
                let same = self.ident(ACCUMULATOR);
                let step = self.call("_?_:_", &[predicate, more, same]);
                let accumulator = self.ident(ACCUMULATOR);
                let one = self.literal(Literal::Int(1));
                [init, condition, step, self.call("_==_", &[accumulator, one])]
            }
        };
        self.repeat(range, names, parts)
    }

    fn list_of(&mut self, range: NodeId, names: Names, filter: Option<NodeId>, transform: NodeId) -> NodeId {
        let init = self.list(&[]);
        let accumulator = self.ident(ACCUMULATOR);
        let added = self.list(&[transform]);
        let step = self.call("_+_", &[accumulator, added]);
        self.collect(range, names, filter, init, step)
    }

    fn map_of(&mut self, range: NodeId, names: Names, filter: Option<NodeId>, inserted: &[NodeId]) -> NodeId {
        let init = self.add(ExprKind::Map { entries: Vec::new() });
        let mut args = vec![self.ident(ACCUMULATOR)];
        args.extend_from_slice(inserted);
        let step = self.call("cel.@mapInsert", &args);
        self.collect(range, names, filter, init, step)
    }

    fn collect(
        &mut self,
        range: NodeId,
        names: Names,
        filter: Option<NodeId>,
        init: NodeId,
        mut step: NodeId,
    ) -> NodeId {
        let condition = self.literal(Literal::Bool(true));
        if let Some(filter) = filter {
            let same = self.ident(ACCUMULATOR);
            step = self.call("_?_:_", &[filter, step, same]);
        }
        let result = self.ident(ACCUMULATOR);
        self.repeat(range, names, [init, condition, step, result])
    }

    fn bind(&mut self, name: String, init: NodeId, result: NodeId) -> NodeId {
        let range = self.list(&[]);
        let condition = self.literal(Literal::Bool(false));
        let step = self.ident(&name);
        let variable = UNUSED.to_owned();
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

    fn bind_macro(&mut self, name: NodeId, init: NodeId, result: NodeId) -> NodeId {
        match self.name(name, "cel.bind() variable names must be simple identifiers") {
            Ok(name) => self.bind(name, init, result),
            Err(Misused(missing)) => missing,
        }
    }

    fn opt_map(&mut self, function: &str, target: NodeId, name: NodeId, transform: NodeId) -> NodeId {
        let complaint = format!("{function}() variable name must be a simple identifier");
        let name = match self.name(name, &complaint) {
            Ok(name) => name,
            Err(Misused(missing)) => return missing,
        };
        let has_value = self.member("hasValue", target, &[]);
        let copy = self.copy(target);
        let value = self.member("value", copy, &[]);
        let mut present = self.bind(name, value, transform);
        if function == "optMap" {
            present = self.call("optional.of", &[present]);
        }
        let absent = self.call("optional.none", &[]);
        self.call("_?_:_", &[has_value, present, absent])
    }

    fn sort_by(&mut self, target: NodeId, variable: NodeId, key: NodeId) -> NodeId {
        if !is_sortable(self.cx.tree.kind(target)) {
            return self.misused(target, NOT_SORTABLE).0;
        }
        let names = match self.one_name(variable, "argument is not an identifier") {
            Err(Misused(missing)) => return missing,
            names => names,
        };
        let input = self.ident(SORT_INPUT);
        let keys = self.list_of(input, names, None, key);
        let input = self.ident(SORT_INPUT);
        let sorted = self.member("@sortByAssociatedKeys", input, &[keys]);
        self.bind(SORT_INPUT.to_owned(), target, sorted)
    }
}

const NOT_SORTABLE: &str =
    "sortBy can only be applied to a list, identifier, comprehension, call or select expression";

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
