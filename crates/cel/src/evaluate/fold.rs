//! What fails when the server turns a checked expression into a program: it converts constants and compiles constant
//! patterns right away, so their errors are errors of the object.
//!
//! Not an evaluator: only conversions, literals and names of types are constants, and nothing else is computed. The
//! walk is the planner's, because the first error is the one reported. upstream v1.36 `CompileCELExpression`, "program
//! instantiation failed"; cel-go `interpreter/planner.go`, `decOptimize`

mod constant;

use super::value::Value;
use crate::check::TypeCheckResult;
use crate::names;
use crate::outcome::{CelEnv, Scope};
use crate::regex;
use crate::tree::{ExprKind, Literal, NodeId, Tree};
use crate::types::Type;
use constant::Constant;

pub(crate) use constant::is_conversion;

/// Returns the API server's message if it cannot turn the expression into a program, because a constant cannot be
/// computed; `None` if it can.
pub(crate) fn program_error_message(tree: &Tree, checked: &TypeCheckResult, env: CelEnv) -> Option<String> {
    let mut planner = ConstantFolder { tree, checked, env, evaluated: vec![false; tree.len()] };
    planner.fold_node(tree.root()).err().map(|problem| format!("program instantiation failed: {problem}"))
}

/// True if converting a literal by `function`, such as `duration`, fails.
pub(crate) fn conversion_fails(function: &str, literal: &Literal, env: CelEnv) -> bool {
    Constant::from(literal).convert_by(function, env).is_err()
}

/// Plans the nodes of one tree as the server does.
struct ConstantFolder<'t> {
    tree: &'t Tree,
    checked: &'t TypeCheckResult,
    env: CelEnv,
    /// For each node, whether it was planned and is not a constant. Cached, because nodes can be used twice
    /// and nested ones would double the work each time.
    evaluated: Vec<bool>,
}

/// A constant, or `None` if the node must be evaluated later. The error is the server's message.
type FoldResult = Result<Option<Constant>, String>;

impl ConstantFolder<'_> {
    /// Plans a node and everything below it, once if it is not a constant.
    fn fold_node(&mut self, id: NodeId) -> FoldResult {
        if self.evaluated.get(id.index()) == Some(&true) {
            return Ok(None);
        }
        let planned = self.fold_by_kind(id)?;
        if let (None, Some(evaluated)) = (&planned, self.evaluated.get_mut(id.index())) {
            *evaluated = true;
        }
        Ok(planned)
    }

    /// Plans a node by its kind.
    fn fold_by_kind(&mut self, id: NodeId) -> FoldResult {
        let tree = self.tree;
        match tree.kind(id) {
            ExprKind::Missing => Ok(None),
            ExprKind::Literal(literal) => Ok(Some(Constant::from(literal))),
            ExprKind::Ident(name) => self.fold_name(id, name),
            ExprKind::Select { .. } if self.checked.is_declared_name(id) => {
                self.fold_name(id, &tree.qualified_name(id).unwrap_or_default())
            }
            ExprKind::Select { operand, .. } => self.fold_node(*operand).map(|_| None),
            ExprKind::Call { target, args, .. } => self.fold_call(id, *target, args),
            ExprKind::List { elements } => {
                let elements = self.fold_all(elements.iter().map(|element| element.value))?;
                Ok(elements
                    .iter()
                    .all(Option::is_some)
                    .then_some(Constant::List { is_empty: elements.is_empty() }))
            }
            ExprKind::Map { entries } => {
                let parts = self.fold_all(entries.iter().flat_map(|entry| [entry.key, entry.value]))?;
                Ok(parts.iter().all(Option::is_some).then_some(Constant::Map))
            }
            ExprKind::Struct { fields, .. } => {
                self.fold_all(fields.iter().map(|field| field.value)).map(|_| None)
            }
            ExprKind::Loop(body) => {
                let parts = [body.init, body.range, body.condition, body.step, body.result];
                self.fold_all(parts.into_iter()).map(|_| None)
            }
        }
    }

    fn fold_all(&mut self, ids: impl Iterator<Item = NodeId>) -> Result<Vec<Option<Constant>>, String> {
        ids.map(|id| self.fold_node(id)).collect()
    }

    /// Plans a name: a type's name is a constant, if programs know that type; a variable is not.
    fn fold_name(&self, id: NodeId, name: &str) -> FoldResult {
        let plain = name.strip_prefix('.').unwrap_or(name);
        match self.checked.type_of(id) {
            Type::Meta(_) | Type::AnyMeta if names::is_registered_type(plain) => {
                Ok(Some(Constant::Scalar(Value::Type("type"))))
            }
            Type::Meta(_) | Type::AnyMeta => Err(format!("reference to undefined type: {plain}")),
            Type::Int if plain == names::NULL_VALUE => Ok(Some(Constant::Scalar(Value::Int(0)))),
            _ => Ok(None),
        }
    }

    /// Plans a call: converts a constant argument, and compiles a constant pattern.
    fn fold_call(&mut self, id: NodeId, target: Option<NodeId>, args: &[NodeId]) -> FoldResult {
        let checked = self.checked;
        let overloads = checked.overloads(id);
        let Some(first) = overloads.first() else { return Ok(None) };
        let target = target.filter(|_| first.is_member());
        let mut operands = self.fold_all(target.into_iter().chain(args.iter().copied()))?;
        match (first.name, operands.as_mut_slice()) {
            ("_[_]" | "_[?_]" | "_?._", [_, Some(index)]) => match index.non_index_type() {
                Some(kind) => Err(format!("invalid qualifier type: {kind}")),
                None => Ok(None),
            },
            // Nothing is in an empty list.
            ("@in", [_, Some(Constant::List { is_empty: true })]) if overloads.len() == 1 => {
                Ok(Some(Constant::Scalar(Value::Bool(false))))
            }
            ("matches" | "find" | "findAll", [_, Some(Constant::Scalar(Value::String(pattern))), ..])
                if self.env.scope == Scope::Device =>
            {
                regex::program_size(pattern).map(|_size| None).map_err(|error| error.to_string())
            }
            (conversion, [argument]) => match argument.take() {
                Some(constant) if is_conversion(conversion) => {
                    constant.convert_by(conversion, self.env).map(Some)
                }
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }
}
