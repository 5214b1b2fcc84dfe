//! Makes the plan of a checked expression: resolves calls, computes constants, joins selections.
//!
//! The server converts constants and compiles constant patterns right away, so their errors are errors of the object.
//! The order of the walk is the server's, because the first error is the one reported. upstream v1.36
//! `CompileCELExpression`, "program instantiation failed"; cel-go `interpreter/planner.go`, `interpreter/decorators.go`

use std::sync::Arc;

use super::collections::{Key, Map, MapLookup};
use super::plan::{AttributeBase, AttributeId, AttributeWithQualifiers, Plan, Qualifier, QualifierKey, Step};
use super::value::Value;
use super::{BEHAVIOUR_V1_37, ReleaseBehaviour};
use crate::check::TypeCheckResult;
use crate::names;
use crate::outcome::CelEnv;
use crate::tree::{Element, ExprKind, Literal, MapEntry, NodeId, Tree};
use crate::types::Type;

/// The types that an expression can name as a value, such as `int`. Some names that the checker knows are not
/// registered when the program is made: the device types, and messages that become plain values.
const TYPE_NAMES: [&str; 17] = [
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "null_type",
    "type",
    "list",
    "map",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "google.protobuf.Empty",
    "google.protobuf.Struct.FieldsEntry",
    crate::types::OPTIONAL,
    crate::types::IP,
    crate::types::CIDR,
];

/// Makes the plan of a checked expression, only to find errors if `is_run` is false. Returns the API server's message
/// if it cannot turn the expression into a program, because a constant cannot be computed.
pub(super) fn plan_expression(
    tree: &Tree,
    checked: &TypeCheckResult,
    behaviour: &ReleaseBehaviour,
    is_run: bool,
) -> Result<Plan, String> {
    let plan = Plan { steps: tree.ids().map(|_| None).collect(), attributes: Vec::new() };
    let mut planner = Planner { tree, checked, behaviour, is_run, plan };
    let planned = planner.plan_node(tree.root());
    planned.map_err(|problem| format!("program instantiation failed: {problem}"))?;
    Ok(planner.plan)
}

/// The error of [`plan_expression`]; `None` if the API server can turn the expression into a program.
pub(crate) fn program_error_message(tree: &Tree, checked: &TypeCheckResult, env: CelEnv) -> Option<String> {
    plan_expression(tree, checked, &ReleaseBehaviour { env, ..BEHAVIOUR_V1_37 }, false).err()
}

/// The step of a node. The error is the server's message.
pub(super) type Planned = Result<Step, String>;

pub(super) struct Planner<'t> {
    tree: &'t Tree,
    checked: &'t TypeCheckResult,
    pub(super) behaviour: &'t ReleaseBehaviour,
    /// True if the plan will be run. Otherwise only its errors matter, so it has no patterns and no qualifiers.
    pub(super) is_run: bool,
    plan: Plan,
}

impl Planner<'_> {
    /// Plans a node and everything below it, and returns the node. One that two others use is planned only once, because
    /// the work for nested nodes would double at each level.
    fn plan_node(&mut self, id: NodeId) -> Result<NodeId, String> {
        if self.plan.step(id).is_none() {
            let step = self.plan_node_uncached(id)?;
            if let Some(slot) = self.plan.steps.get_mut(id.index()) {
                *slot = Some(step);
            }
        }
        Ok(id)
    }

    fn plan_nodes(&mut self, ids: impl IntoIterator<Item = NodeId>) -> Result<Vec<NodeId>, String> {
        ids.into_iter().map(|id| self.plan_node(id)).collect()
    }

    fn plan_node_uncached(&mut self, id: NodeId) -> Planned {
        let tree = self.tree;
        Ok(match tree.kind(id) {
            ExprKind::Missing => Step::Constant(Value::Null),
            ExprKind::Literal(literal) => Step::Constant(literal_value(literal)),
            ExprKind::Ident(name) => return self.plan_name(id, name),
            ExprKind::Select { .. } if self.checked.is_declared_name(id) => {
                return self.plan_name(id, &tree.qualified_name(id).unwrap_or_default());
            }
            ExprKind::Select { operand, field, presence_test } => {
                let operand = self.plan_node(*operand)?;
                let key = QualifierKey::Constant(Value::string(field.as_str()));
                self.plan_qualifier(operand, id, key, false, *presence_test)
            }
            ExprKind::Call { target, args, .. } => return self.plan_call(id, *target, args),
            ExprKind::Loop(body) => {
                self.plan_nodes([body.init, body.range, body.condition, body.step, body.result])?;
                Step::AsWritten
            }
            kind => {
                self.plan_nodes(tree.children(id))?;
                let constant = match kind {
                    ExprKind::List { elements } => self.constant_list(elements),
                    ExprKind::Map { entries } => self.constant_map(entries),
                    _ => None,
                };
                constant.map_or(Step::AsWritten, Step::Constant)
            }
        })
    }

    pub(super) fn constant_of(&self, id: NodeId) -> Option<&Value> {
        match self.plan.step(id) {
            Some(Step::Constant(value)) => Some(value),
            _ => None,
        }
    }

    fn constant_list(&self, elements: &[Element]) -> Option<Value> {
        let items =
            elements.iter().map(|each| self.constant_of(each.value).filter(|_| !each.optional).cloned());
        Some(Value::list(items.collect::<Option<Vec<_>>>()?))
    }

    fn constant_map(&self, entries: &[MapEntry]) -> Option<Value> {
        let entries = entries.iter().map(|entry| {
            let (key, value) = (self.constant_of(entry.key)?, self.constant_of(entry.value)?);
            if entry.optional {
                None
            } else {
                Some((Key::from_value(key).ok()?, (key.clone(), value.clone())))
            }
        });
        Some(Value::Map(Arc::new(Map::from_pairs(entries.collect::<Option<_>>()?, MapLookup::Values))))
    }

    /// The names of a constant's type in CEL and in Go; `None` if the step is no constant for the server. Lists and
    /// maps of constants are, even those that are built when they are needed.
    pub(super) fn constant_cel_and_go_type_names(&self, id: NodeId) -> Option<[&'static str; 2]> {
        let is_constant = |id: &NodeId| self.constant_cel_and_go_type_names(*id).is_some();
        match (self.plan.step(id)?, self.tree.kind(id)) {
            (Step::Constant(value), _) => Some([value.type_name(), value.go_type()]),
            (Step::AsWritten, ExprKind::List { .. }) => {
                self.tree.children(id).iter().all(is_constant).then_some(["list", "*types.baseList"])
            }
            (Step::AsWritten, ExprKind::Map { .. }) => {
                self.tree.children(id).iter().all(is_constant).then_some(["map", "*types.baseMap"])
            }
            (Step::Call(call), _) => match (call.function, call.args.as_slice()) {
                ("dyn", [arg]) => self.constant_cel_and_go_type_names(*arg),
                ("type", [arg]) => is_constant(arg).then_some(["type", "*types.Type"]),
                _ => None,
            },
            _ => None,
        }
    }

    fn plan_name(&mut self, id: NodeId, name: &str) -> Planned {
        let plain = name.strip_prefix('.').unwrap_or(name);
        Ok(match self.checked.type_of(id) {
            Type::Meta(_) | Type::AnyMeta => match TYPE_NAMES.iter().find(|name| **name == plain) {
                Some(name) => Step::Constant(Value::Type(name)),
                None => return Err(format!("reference to undefined type: {plain}")),
            },
            Type::Int if plain == names::NULL_VALUE => Step::Constant(Value::Int(0)),
            _ => {
                let is_global = plain.len() < name.len() && self.behaviour.env.scoped_names;
                Step::Attribute(
                    self.add_attribute(id, AttributeBase::Variable { name: plain.into(), is_global }),
                )
            }
        })
    }

    fn add_attribute(&mut self, id: NodeId, base: AttributeBase) -> AttributeId {
        self.plan.attributes.push(AttributeWithQualifiers { id, base, qualifiers: Vec::new() });
        AttributeId(self.plan.attributes.len() - 1)
    }

    /// The attribute that a planned node is, if it is one.
    fn attribute_of(&self, id: NodeId) -> Option<AttributeId> {
        match self.plan.step(id) {
            Some(Step::Attribute(attribute) | Step::Presence(attribute)) => Some(*attribute),
            _ => None,
        }
    }

    /// Converts a planned node to an attribute, to which further qualifiers can be added.
    fn convert_to_attribute(&mut self, id: NodeId) -> AttributeId {
        self.attribute_of(id).unwrap_or_else(|| self.add_attribute(id, AttributeBase::Step(id)))
    }

    fn plan_qualifier(
        &mut self,
        operand: NodeId,
        id: NodeId,
        key: QualifierKey,
        is_optional: bool,
        only_tests: bool,
    ) -> Step {
        let is_presence = only_tests || matches!(self.plan.step(operand), Some(Step::Presence(_)));
        let attribute = self.convert_to_attribute(operand);
        if self.is_run {
            self.add_qualifier(attribute, &Qualifier { id, key, is_optional, only_tests });
        }
        if is_presence { Step::Presence(attribute) } else { Step::Attribute(attribute) }
    }

    fn add_qualifier(&mut self, id: AttributeId, qualifier: &Qualifier) {
        let Some(attribute) = self.plan.attributes.get_mut(id.0) else { return };
        if let AttributeBase::Conditional { truthy, falsy, .. } = attribute.base {
            self.add_qualifier(truthy, qualifier);
            self.add_qualifier(falsy, qualifier);
        } else {
            attribute.qualifiers.push(qualifier.clone());
        }
    }

    fn plan_call(&mut self, id: NodeId, target: Option<NodeId>, args: &[NodeId]) -> Planned {
        let checked = self.checked;
        let overloads = checked.overloads(id);
        let Some(first) = overloads.first() else { return Ok(Step::Constant(Value::Null)) };
        let target = target.filter(|_| first.is_member());
        let args = self.plan_nodes(target.into_iter().chain(args.iter().copied()))?;
        Ok(match (first.name, args.as_slice()) {
            ("_&&_", _) => Step::And(args),
            ("_||_", _) => Step::Or(args),
            ("_?_:_", &[condition, truthy, falsy]) => {
                let (truthy, falsy) = (self.convert_to_attribute(truthy), self.convert_to_attribute(falsy));
                Step::Attribute(
                    self.add_attribute(id, AttributeBase::Conditional { condition, truthy, falsy }),
                )
            }
            (name @ ("_==_" | "_!=_"), &[left, right]) => {
                Step::Equal { args: [left, right], is_negated: name == "_!=_" }
            }
            (name @ ("_[_]" | "_[?_]" | "_?._"), &[operand, index]) => {
                let key = self.index_key(id, index)?;
                self.plan_qualifier(operand, id, key, name != "_[_]", false)
            }
            (name @ ("or" | "orValue"), &[left, right]) => {
                Step::OptionalOr { left, right, is_value: name == "orValue" }
            }
            (name, _) => return self.plan_function(name, overloads, args),
        })
    }

    fn index_key(&mut self, id: NodeId, index: NodeId) -> Result<QualifierKey, String> {
        match (self.constant_of(index), self.constant_cel_and_go_type_names(index)) {
            (Some(constant), _) if constant.can_be_index_or_key() => {
                Ok(QualifierKey::Constant(constant.clone()))
            }
            (_, Some([_, go_type])) => Err(format!("invalid qualifier type: {go_type}")),
            (_, None) => Ok(match self.attribute_of(index) {
                Some(attribute) => QualifierKey::Attribute(attribute),
                None => QualifierKey::Computed(self.add_attribute(id, AttributeBase::Step(index))),
            }),
        }
    }
}

pub(super) fn literal_value(literal: &Literal) -> Value {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(value) => Value::string(value.as_str()),
        Literal::Bytes(value) => Value::Bytes(value.as_slice().into()),
    }
}
