//! The fields that an expression selects, looked up in schemas.
//!
//! Variables of policies have no types, so the checker lets every field pass. Here the fields are followed from the
//! variables through selections, indexes and loops, as far as a schema describes them. The caller provides the
//! schemas.
//!
//! Invariant: a field is reported only if the schema of the value that it is selected from is known.

use super::Expression;
use super::issue::ExpressionError;
use super::tree::{ExprKind, Literal, NodeId, Tree};

/// The schema of a value, by which the fields that an expression selects are looked up.
pub trait FieldSchema: Clone {
    /// Looks up the schema of a field or map key.
    fn field(&self, name: &str) -> SchemaFieldLookup<Self>;
    /// The schema of the items, if the value is a list.
    fn items(&self) -> Option<Self>;
}

/// Result of looking up a field in a schema.
#[derive(Clone, Debug)]
pub enum SchemaFieldLookup<S> {
    /// The field exists, and its value has this schema.
    Known(S),
    /// The schema does not say whether the field exists.
    Unknown,
    /// The field does not exist.
    Undefined,
}

impl Expression {
    /// An error for every selection of a field that does not exist. `variable` returns the schema of a variable, if
    /// there is one.
    pub fn undefined_fields<S: FieldSchema>(
        &self,
        variable: &dyn Fn(&str) -> Option<S>,
    ) -> Vec<ExpressionError> {
        let tree = &self.tree;
        let mut walker = UndefinedFieldFinder { tree, variable, locals: Vec::new(), faults: Vec::new() };
        walker.visit(tree.root());
        walker.faults.sort_by_key(|fault| fault.at);
        walker.faults.dedup();
        walker.faults
    }
}

struct UndefinedFieldFinder<'t, S> {
    tree: &'t Tree,
    variable: &'t dyn Fn(&str) -> Option<S>,
    /// Loop variables, innermost last.
    locals: Vec<(&'t str, Option<S>)>,
    faults: Vec<ExpressionError>,
}

impl<S: FieldSchema> UndefinedFieldFinder<'_, S> {
    /// Visits a node and all below it, and returns the schema of its value; `None` if it is not known.
    fn visit(&mut self, id: NodeId) -> Option<S> {
        let tree = self.tree;
        match tree.kind(id) {
            ExprKind::Ident(name) => {
                let local = self.locals.iter().rev().find(|(local, _)| local == name);
                local.map_or_else(|| (self.variable)(name), |(_, schema)| schema.clone())
            }
            ExprKind::Select { operand, field, .. } => {
                let operand = self.visit(*operand)?;
                self.select_field_or_report_undefined(id, &operand, field)
            }
            ExprKind::Call { function, target, args } => self.visit_call(id, function, *target, args),
            ExprKind::Loop(body) => {
                let range = self.visit(body.range);
                let first = self.visit(body.init);
                let depth = self.locals.len();
                self.locals.push((&body.accumulator, first.filter(|_| body.is_bind)));
                let items = range.as_ref().and_then(S::items);
                match &body.second_variable {
                    Some(second) => self.locals.extend([(body.variable.as_str(), None), (second, items)]),
                    None => self.locals.push((&body.variable, items)),
                }
                self.visit(body.condition);
                self.visit(body.step);
                self.locals.truncate(depth + 1);
                let result = self.visit(body.result);
                self.locals.truncate(depth);
                result
            }
            _ => {
                tree.children(id).into_iter().for_each(|child| drop(self.visit(child)));
                None
            }
        }
    }

    fn visit_call(
        &mut self,
        id: NodeId,
        function: &str,
        target: Option<NodeId>,
        args: &[NodeId],
    ) -> Option<S> {
        let tree = self.tree;
        let target = target.and_then(|target| self.visit(target));
        let args_found: Vec<Option<S>> = args.iter().map(|arg| self.visit(*arg)).collect();
        match (function, args) {
            ("_?._" | "_[_]" | "_[?_]", [_, index]) => {
                let operand = args_found.into_iter().next()??;
                match tree.kind(*index) {
                    ExprKind::Literal(Literal::String(field)) => {
                        self.select_field_or_report_undefined(id, &operand, field)
                    }
                    _ => operand.items(),
                }
            }
            // Of optional values.
            ("value" | "orValue" | "or", _) => target,
            _ => None,
        }
    }

    fn select_field_or_report_undefined(&mut self, id: NodeId, operand: &S, field: &str) -> Option<S> {
        match operand.field(field) {
            SchemaFieldLookup::Known(schema) => Some(schema),
            SchemaFieldLookup::Unknown => None,
            SchemaFieldLookup::Undefined => {
                let message = format!("undefined field '{field}'");
                self.faults.push(ExpressionError { at: self.tree.error_offset(id), message });
                None
            }
        }
    }
}
