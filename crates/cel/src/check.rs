//! The type checker: gives every node a type and every call its overloads, or reports why not.
//!
//! A port of cel-go's rules (`checker/checker.go`). A type that cannot be determined is `dyn`, which is assignable to
//! and from every type.
//!
//! Invariant: a node is checked once, so work is linear in the tree, apart from the types themselves.

mod message;

use super::functions;
use super::issue::Issues;
use super::names;
use super::outcome::{CelEnv, VariableScope};
use super::overload::{CallStyle, Overload};
use super::tree::{Element, ExprKind, Literal, Loop, MapEntry, NodeId, Tree};
use super::types::Type;
use super::unify::{Unifier, most_general};

/// The results of type checking, by node.
pub(super) struct TypeCheckResult {
    nodes: Vec<CheckedNode>,
}

/// What is found out about a node: its type, and the overloads of a call.
#[derive(Clone, Default)]
struct CheckedNode {
    found: Option<Type>,
    overloads: Vec<&'static Overload>,
    /// True if it is a selection that is a declared name as a whole, such as `google.protobuf.Duration`.
    is_declared_name: bool,
}

impl TypeCheckResult {
    /// The type of a node; `dyn` for nodes that a macro consumed, which have no type of their own.
    pub(super) fn type_of(&self, id: NodeId) -> &Type {
        self.nodes.get(id.index()).and_then(|node| node.found.as_ref()).unwrap_or(&Type::Dyn)
    }

    /// True if the node has a type: false for nodes that a macro replaced.
    pub(super) fn is_typed(&self, id: NodeId) -> bool {
        self.nodes.get(id.index()).is_some_and(|node| node.found.is_some())
    }

    /// True if a selection `a.b` is not a field of `a` but a declared name, such as that of a type.
    pub(super) fn is_declared_name(&self, id: NodeId) -> bool {
        self.nodes.get(id.index()).is_some_and(|node| node.is_declared_name)
    }

    /// The overloads that a call may resolve to when it runs; empty for other nodes.
    pub(super) fn overloads(&self, id: NodeId) -> &[&'static Overload] {
        self.nodes.get(id.index()).map_or(&[], |node| node.overloads.as_slice())
    }
}

/// Assigns a type to every node and overloads to every call, and reports errors. Returns `None` if the types
/// become too large to compare.
pub(super) fn check_types_unless_too_large(
    tree: &Tree,
    env: CelEnv,
    issues: &mut Issues<'_>,
) -> Option<TypeCheckResult> {
    let mut checker = Checker {
        tree,
        env,
        issues,
        unifier: Unifier::new(),
        nodes: vec![CheckedNode::default(); tree.len()],
        variables: Vec::new(),
    };
    checker.check_node(tree.root());
    let Checker { mut unifier, mut nodes, .. } = checker;
    for found in nodes.iter_mut().filter_map(|node| node.found.as_mut()) {
        *found = unifier.resolve_free_as_dyn(found);
    }
    (!unifier.is_exhausted()).then_some(TypeCheckResult { nodes })
}

/// The state of a type check: the types found so far, and the loop variables in scope.
struct Checker<'t, 'i> {
    tree: &'t Tree,
    env: CelEnv,
    issues: &'t mut Issues<'i>,
    unifier: Unifier,
    nodes: Vec<CheckedNode>,
    /// Loop variables in scope with their types, innermost last.
    variables: Vec<(&'t str, Type)>,
}

impl<'t> Checker<'t, '_> {
    /// Checks a node and everything below it, unless that was done before, and returns its type.
    fn check_node(&mut self, id: NodeId) -> Type {
        if let Some(CheckedNode { found: Some(known), .. }) = self.nodes.get(id.index()) {
            return known.clone();
        }
        let tree = self.tree;
        let found = match tree.kind(id) {
            ExprKind::Missing => Type::Error,
            ExprKind::Literal(literal) => type_of_literal(literal),
            ExprKind::Ident(name) => self.check_ident(id, name),
            ExprKind::Select { operand, field, presence_test } => {
                self.check_select(id, *operand, field, *presence_test)
            }
            ExprKind::Call { function, target, args } => self.check_call(id, function, *target, args),
            ExprKind::List { elements } => self.check_list(elements),
            ExprKind::Map { entries } => self.check_map(entries),
            ExprKind::Struct { name, fields } => self.check_message(id, name, fields),
            ExprKind::Loop(body) => self.check_loop(body),
        };
        if let Some(node) = self.nodes.get_mut(id.index()) {
            node.found = Some(found.clone());
        }
        found
    }

    fn set_overloads(&mut self, id: NodeId, overloads: Vec<&'static Overload>) {
        if let Some(node) = self.nodes.get_mut(id.index()) {
            node.overloads = overloads;
        }
    }

    fn report(&mut self, id: NodeId, message: impl Into<String>) {
        self.issues.report(self.tree.error_offset(id), message);
    }

    fn check_ident(&mut self, id: NodeId, name: &str) -> Type {
        self.name_type(name).unwrap_or_else(|| {
            self.report(id, undeclared_message(name));
            Type::Error
        })
    }

    /// The type of the innermost loop variable with that name; `None` if there is none.
    fn loop_variable_type(&self, name: &str) -> Option<Type> {
        self.variables.iter().rev().find(|(variable, _)| *variable == name).map(|(_, found)| found.clone())
    }

    /// The type of a loop variable or a declared name; `None` if there is none.
    fn name_type(&self, name: &str) -> Option<Type> {
        let local = match name.strip_prefix('.') {
            // A leading dot means the root of the namespace.
            Some(_) if self.env.scoped_names => None,
            Some(plain) => self.loop_variable_type(plain),
            None => self.loop_variable_type(name),
        };
        local.or_else(|| names::declared_identifier_type(name, self.env))
    }

    /// The type of a dotted name if it is declared as a whole; `None` if it is not, or if it selects from a variable.
    fn lookup_qualified(&self, name: &str) -> Option<Type> {
        let first = name.split('.').next().unwrap_or(name);
        if self.env.scoped_names && self.loop_variable_type(first).is_some() {
            None
        } else {
            self.name_type(name)
        }
    }

    fn check_select(&mut self, id: NodeId, operand: NodeId, field: &str, presence_test: bool) -> Type {
        if !presence_test
            && let Some(name) = self.tree.qualified_name(id)
            && let Some(found) = self.lookup_qualified(&name)
        {
            if let Some(node) = self.nodes.get_mut(id.index()) {
                node.is_declared_name = true;
            }
            return found;
        }
        let found = self.field_type(id, operand, field, false);
        if presence_test { Type::Bool } else { self.unifier.resolve_bound(&found) }
    }

    /// The type of the field `field` of `operand`, wrapped in an optional if `operand` or the selection is optional.
    fn field_type(&mut self, id: NodeId, operand: NodeId, field: &str, optional: bool) -> Type {
        let operand = self.check_node(operand);
        let operand = self.unifier.resolve_bound(&operand);
        let (target, is_optional) = match &operand {
            Type::Optional(inner) => ((**inner).clone(), true),
            _ => (operand, false),
        };
        let found = match &target {
            Type::Map(_, value) => (**value).clone(),
            Type::Param(_) => {
                self.unifier.bind_if_assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Named(name) if target.is_object() => {
                self.message_field_type(self.tree.error_offset(id), name, field)
            }
            other => {
                if !other.is_dyn_any_or_error() {
                    self.report(
                        id,
                        format!("type '{}' does not support field selection", other.compile_error_spelling()),
                    );
                }
                Type::Dyn
            }
        };
        if is_optional || optional { Type::optional(found) } else { found }
    }

    fn check_call(&mut self, id: NodeId, function: &str, target: Option<NodeId>, args: &[NodeId]) -> Type {
        if let ("_?._", [operand, field]) = (function, args) {
            return self.check_optional_select(id, *operand, *field);
        }
        let mut found: Vec<Type> = args.iter().map(|arg| self.check_node(*arg)).collect();
        if matches!(function, "_&&_" | "_||_") {
            return self.check_logic(id, function, args, &found);
        }
        let Some(target) = target else {
            return self.resolve_overload(id, function, CallStyle::Global, &found);
        };
        if let Some(prefix) = self.tree.qualified_name(target) {
            let name = format!("{prefix}.{function}");
            if functions::overloads(&name, self.env).next().is_some() {
                return self.resolve_overload(id, &name, CallStyle::Global, &found);
            }
        }
        found.insert(0, self.check_node(target));
        self.resolve_overload(id, function, CallStyle::Member, &found)
    }

    fn check_optional_select(&mut self, id: NodeId, operand: NodeId, field: NodeId) -> Type {
        let tree = self.tree;
        let ExprKind::Literal(Literal::String(field)) = tree.kind(field) else { return Type::Dyn };
        let found = self.field_type(id, operand, field, true);
        self.set_overloads(id, functions::overloads("_?._", self.env).collect());
        self.unifier.resolve_bound(&found)
    }

    /// Checks `&&` and `||`, and reports which side is wrong instead of listing both.
    fn check_logic(&mut self, id: NodeId, function: &str, args: &[NodeId], found: &[Type]) -> Type {
        let mut result = Type::Bool;
        for (arg, found) in args.iter().zip(found) {
            if !self.unifier.bind_if_assignable(found, &Type::Bool) {
                self.report_type_mismatch(*arg, &Type::Bool, found);
                result = Type::Error;
            }
        }
        self.set_overloads(id, functions::overloads(function, self.env).collect());
        result
    }

    /// Finds the overloads that match the argument types `found`, and returns the result type. Reports an
    /// error if there are none.
    fn resolve_overload(&mut self, id: NodeId, name: &str, style: CallStyle, found: &[Type]) -> Type {
        let mut result: Option<Type> = None;
        let mut matching = Vec::new();
        let mut is_declared = false;
        for overload in functions::overloads(name, self.env) {
            is_declared = true;
            if overload.style != style {
                continue;
            }
            // Before the number of arguments is compared: messages show the numbers of type parameters.
            let (params, returned) = overload.instantiate(&mut self.unifier);
            if !self.unifier.bind_if_all_assignable(found, &params) {
                continue;
            }
            matching.push(overload);
            let returned = self.unifier.resolve_bound(&returned);
            result = Some(match result {
                None => returned,
                Some(earlier)
                    if earlier.is_dyn_or_any() || earlier.is_equal_ignoring_nullability(&returned) =>
                {
                    earlier
                }
                Some(_) => Type::Dyn,
            });
        }
        self.set_overloads(id, matching);
        result.unwrap_or_else(|| {
            // Of what has an error already, policies have no second one: `authorizer.group('').resource('pods')`.
            let is_known = self.env.scope == VariableScope::Request && found.first() == Some(&Type::Error);
            if is_declared {
                let message = self.no_overload_message(name, style, found);
                self.report(id, message);
            } else if !is_known {
                self.report(id, undeclared_message(name));
            }
            Type::Error
        })
    }

    /// The message for a call without a matching overload.
    fn no_overload_message(&mut self, name: &str, style: CallStyle, found: &[Type]) -> String {
        let name = name.strip_prefix('.').unwrap_or(name);
        let shown: Vec<String> = found
            .iter()
            .map(|found| self.unifier.resolve_free_as_dyn(found).compile_error_spelling())
            .collect();
        let applied = match (style, shown.split_first()) {
            (CallStyle::Member, Some((target, args))) => format!("{target}.({})", args.join(", ")),
            _ => format!("({})", shown.join(", ")),
        };
        format!("found no matching overload for '{name}' applied to '{applied}'")
    }

    /// Reports that a node has another type than expected.
    fn report_type_mismatch(&mut self, id: NodeId, expected: &Type, found: &Type) {
        self.report(id, expected.mismatch_message(found));
    }

    fn check_list(&mut self, elements: &[Element]) -> Type {
        let mut joined = None;
        for element in elements {
            let found = self.check_node(element.value);
            let found = if element.optional { self.unwrap_optional(element.value, &found) } else { found };
            joined = Some(self.join_types(joined, found));
        }
        Type::list(joined.unwrap_or_else(|| self.unifier.new_type_parameter()))
    }

    fn check_map(&mut self, entries: &[MapEntry]) -> Type {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            let key = self.check_node(entry.key);
            keys = Some(self.join_types(keys, key));
            let value = self.check_node(entry.value);
            let value = if entry.optional { self.unwrap_optional(entry.value, &value) } else { value };
            values = Some(self.join_types(values, value));
        }
        let key = keys.unwrap_or_else(|| self.unifier.new_type_parameter());
        Type::map(key, values.unwrap_or_else(|| self.unifier.new_type_parameter()))
    }

    /// The type inside of an optional; reports if `found` is not one.
    fn unwrap_optional(&mut self, id: NodeId, found: &Type) -> Type {
        if let Type::Optional(inner) = found {
            return (**inner).clone();
        }
        if !found.is_dyn_or_any() {
            self.report_type_mismatch(id, &Type::optional(found.clone()), found);
        }
        found.clone()
    }

    /// The common type of the elements so far and the next one; `dyn` if they differ. Literals with mixed
    /// types are rejected later, except in `format`.
    fn join_types(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.unifier.bind_if_assignable(&previous, &current) {
            most_general(&previous, &current)
        } else {
            Type::Dyn
        }
    }

    fn check_loop(&mut self, body: &'t Loop) -> Type {
        let range = self.check_node(body.range);
        let accumulated = self.check_node(body.init);
        let (first, second) = self.loop_variable_types(body, &range);
        let depth = self.variables.len();
        self.variables.push((body.accumulator.as_str(), accumulated.clone()));
        self.variables.push((body.variable.as_str(), first));
        if let Some(name) = &body.second_variable {
            self.variables.push((name.as_str(), second));
        }
        let condition = self.check_node(body.condition);
        self.assert_type(body.condition, &Type::Bool, &condition);
        let step = self.check_node(body.step);
        self.assert_type(body.step, &accumulated, &step);
        // The result sees the accumulator, not the loop's variables.
        self.variables.truncate(depth + 1);
        let result = self.check_node(body.result);
        self.variables.truncate(depth);
        self.unifier.resolve_bound(&result)
    }

    /// The types of the first and second variable of a loop over `range`; reports if it is not a list or a map.
    fn loop_variable_types(&mut self, body: &Loop, range: &Type) -> (Type, Type) {
        let range = self.unifier.resolve_bound(range);
        match &range {
            Type::List(element) if body.second_variable.is_some() => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Dyn),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.unifier.bind_if_assignable(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                    other.compile_error_spelling()
                );
                self.report(body.range, message);
                (Type::Error, Type::Error)
            }
        }
    }

    /// Reports an error if `expected` is not assignable to `found`.
    fn assert_type(&mut self, id: NodeId, expected: &Type, found: &Type) {
        if !self.unifier.bind_if_assignable(expected, found) {
            self.report_type_mismatch(id, expected, found);
        }
    }
}

/// The message about a name that is not declared.
pub(super) fn undeclared_message(name: &str) -> String {
    format!("undeclared reference to '{name}' (in container '')")
}

fn type_of_literal(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
