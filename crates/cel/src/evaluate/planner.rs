//! Makes the plan of a checked expression: resolves calls, computes constants, joins selections.
//!
//! Call it only where `fold` found nothing wrong. What cannot be computed here is left for later, so planning does not
//! fail. cel-go `interpreter/planner.go`, `interpreter/decorators.go`

use std::sync::Arc;

use super::Behaviour;
use super::collections::{Key, Map, MapKind};
use super::plan::{
    Attribute, AttributeBase, AttributeId, LoopStep, Plan, Qualifier, QualifierKey, Step, StepId, StepKind,
};
use super::value::Value;
use crate::check::TypeCheckResult;
use crate::names;
use crate::tree::{ExprKind, Literal, Loop, NodeId, Tree};
use crate::types::Type;

/// The types that an expression can name as a value, such as `int`.
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

/// Makes the plan of a checked expression.
pub(super) fn plan_expression(tree: &Tree, checked: &TypeCheckResult, behaviour: &Behaviour) -> Plan {
    let planned = vec![None; tree.len()];
    let mut planner = Planner { tree, checked, behaviour, plan: Plan::default(), planned };
    let root = planner.plan(tree.root());
    planner.plan.root = root.0;
    planner.plan
}

pub(super) struct Planner<'t> {
    tree: &'t Tree,
    checked: &'t TypeCheckResult,
    pub(super) behaviour: &'t Behaviour,
    plan: Plan,
    /// The step of each planned node. A node that two others use is planned once, because nested ones would
    /// double each time.
    planned: Vec<Option<StepId>>,
}

impl Planner<'_> {
    fn plan(&mut self, id: NodeId) -> StepId {
        if let Some(Some(known)) = self.planned.get(id.index()) {
            return *known;
        }
        let step = self.plan_kind(id);
        if let Some(slot) = self.planned.get_mut(id.index()) {
            *slot = Some(step);
        }
        step
    }

    fn plan_kind(&mut self, id: NodeId) -> StepId {
        let tree = self.tree;
        match tree.kind(id) {
            ExprKind::Missing => self.add_constant_step(id, Value::Null),
            ExprKind::Literal(literal) => self.add_constant_step(id, literal_value(literal)),
            ExprKind::Ident(name) => self.plan_name(id, name),
            ExprKind::Select { .. } if self.checked.is_declared_name(id) => {
                self.plan_name(id, &tree.qualified_name(id).unwrap_or_default())
            }
            ExprKind::Select { operand, field, presence_test } => {
                let operand = self.plan(*operand);
                let key = QualifierKey::Constant(Value::string(field.as_str()));
                self.plan_qualifier(operand, id, key, false, *presence_test)
            }
            ExprKind::Call { target, args, .. } => self.plan_call(id, *target, args),
            ExprKind::List { elements } => {
                let elements = elements.iter().map(|element| (self.plan(element.value), element.optional));
                let elements: Vec<_> = elements.collect();
                match self.constant_list(&elements) {
                    Some(list) => self.add_constant_step(id, list),
                    None => self.add(id, StepKind::List(elements)),
                }
            }
            ExprKind::Map { entries } => {
                let entry = |planner: &mut Self, entry: &crate::tree::MapEntry| {
                    (planner.plan(entry.key), planner.plan(entry.value), entry.optional)
                };
                let entries: Vec<_> = entries.iter().map(|each| entry(self, each)).collect();
                match self.constant_map(&entries) {
                    Some(map) => self.add_constant_step(id, map),
                    None => self.add(id, StepKind::Map(entries)),
                }
            }
            ExprKind::Struct { name, fields } => {
                let fields =
                    fields.iter().map(|each| (each.name.clone(), self.plan(each.value), each.optional));
                let fields = fields.collect();
                let name = name.strip_prefix('.').unwrap_or(name).to_owned();
                self.add(id, StepKind::Message { name, fields })
            }
            ExprKind::Loop(body) => self.plan_loop(id, body),
        }
    }

    pub(super) fn add(&mut self, id: NodeId, kind: StepKind) -> StepId {
        self.plan.steps.push(Step { id, kind });
        StepId(self.plan.steps.len() - 1)
    }

    pub(super) fn add_constant_step(&mut self, id: NodeId, value: Value) -> StepId {
        self.add(id, StepKind::Constant(value))
    }

    pub(super) fn constant_of(&self, id: StepId) -> Option<&Value> {
        match self.plan.step(id).map(|step| &step.kind) {
            Some(StepKind::Constant(value)) => Some(value),
            _ => None,
        }
    }

    fn constant_list(&self, elements: &[(StepId, bool)]) -> Option<Value> {
        let items = elements
            .iter()
            .map(|(element, is_optional)| self.constant_of(*element).filter(|_| !is_optional).cloned());
        Some(Value::list(items.collect::<Option<Vec<_>>>()?))
    }

    fn constant_map(&self, entries: &[(StepId, StepId, bool)]) -> Option<Value> {
        let entries = entries.iter().map(|(key, value, is_optional)| {
            let (key, value) = (self.constant_of(*key)?, self.constant_of(*value)?);
            if *is_optional { None } else { Some((Key::from_value(key).ok()?, (key.clone(), value.clone()))) }
        });
        Some(Value::Map(Arc::new(Map::from_pairs(entries.collect::<Option<_>>()?, MapKind::Values))))
    }

    fn plan_name(&mut self, id: NodeId, name: &str) -> StepId {
        let plain = name.strip_prefix('.').unwrap_or(name);
        match self.checked.type_of(id) {
            Type::Meta(_) | Type::AnyMeta => match TYPE_NAMES.iter().find(|name| **name == plain) {
                Some(name) => self.add_constant_step(id, Value::Type(name)),
                // There is no such type when the program is made, and `fold` said so.
                None => self.add_constant_step(id, Value::Null),
            },
            Type::Int if plain == names::NULL_VALUE => self.add_constant_step(id, Value::Int(0)),
            _ => {
                let is_global = plain.len() < name.len() && self.behaviour.env.scoped_names;
                self.add_attribute_step(id, AttributeBase::Variable { name: plain.into(), is_global })
            }
        }
    }

    fn add_attribute_step(&mut self, id: NodeId, base: AttributeBase) -> StepId {
        let attribute = self.add_attribute(id, base);
        self.add(id, StepKind::Attribute(attribute))
    }

    fn add_attribute(&mut self, id: NodeId, base: AttributeBase) -> AttributeId {
        self.plan.attributes.push(Attribute { id, base, qualifiers: Vec::new() });
        AttributeId(self.plan.attributes.len() - 1)
    }

    /// The attribute that a step is, if it is one.
    fn attribute_of(&self, id: StepId) -> Option<AttributeId> {
        match self.plan.step(id).map(|step| &step.kind) {
            Some(StepKind::Attribute(attribute) | StepKind::Presence(attribute)) => Some(*attribute),
            _ => None,
        }
    }

    /// Converts a step to an attribute, to which further qualifiers can be added.
    fn attribute_for_step(&mut self, id: StepId) -> AttributeId {
        let node = self.plan.step(id).map_or_else(|| self.tree.root(), |step| step.id);
        self.attribute_of(id).unwrap_or_else(|| self.add_attribute(node, AttributeBase::Step(id)))
    }

    fn plan_qualifier(
        &mut self,
        operand: StepId,
        id: NodeId,
        key: QualifierKey,
        is_optional: bool,
        only_tests: bool,
    ) -> StepId {
        let is_step = self.attribute_of(operand).is_some() && !only_tests;
        let attribute = self.attribute_for_step(operand);
        self.add_qualifier(attribute, &Qualifier { id, key, is_optional, only_tests });
        match (is_step, only_tests) {
            (true, _) => operand,
            (false, true) => self.add(id, StepKind::Presence(attribute)),
            (false, false) => self.add(id, StepKind::Attribute(attribute)),
        }
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

    fn plan_loop(&mut self, id: NodeId, body: &Loop) -> StepId {
        let (init, range) = (self.plan(body.init), self.plan(body.range));
        let (condition, step) = (self.plan(body.condition), self.plan(body.step));
        let result = self.plan(body.result);
        let looped = LoopStep {
            range,
            variable: body.variable.as_str().into(),
            second_variable: body.second_variable.as_deref().map(Arc::from),
            accumulator: body.accumulator.as_str().into(),
            init,
            condition,
            step,
            result,
        };
        self.add(id, StepKind::Loop(Box::new(looped)))
    }

    fn plan_call(&mut self, id: NodeId, target: Option<NodeId>, args: &[NodeId]) -> StepId {
        let checked = self.checked;
        let overloads = checked.overloads(id);
        let Some(first) = overloads.first() else { return self.add_constant_step(id, Value::Null) };
        let target = target.filter(|_| first.is_member());
        let args: Vec<StepId> =
            target.into_iter().chain(args.iter().copied()).map(|arg| self.plan(arg)).collect();
        match (first.name, args.as_slice()) {
            ("_&&_", _) => self.add(id, StepKind::And(args)),
            ("_||_", _) => self.add(id, StepKind::Or(args)),
            ("_?_:_", &[condition, truthy, falsy]) => {
                let (truthy, falsy) = (self.attribute_for_step(truthy), self.attribute_for_step(falsy));
                self.add_attribute_step(id, AttributeBase::Conditional { condition, truthy, falsy })
            }
            (name @ ("_==_" | "_!=_"), &[left, right]) => {
                self.add(id, StepKind::Equal { args: [left, right], is_negated: name == "_!=_" })
            }
            (name @ ("_[_]" | "_[?_]" | "_?._"), &[operand, index]) => {
                let key = self.index_key(id, index);
                self.plan_qualifier(operand, id, key, name != "_[_]", false)
            }
            (name @ ("or" | "orValue"), &[left, right]) => {
                self.add(id, StepKind::OptionalOr { left, right, is_value: name == "orValue" })
            }
            (name, _) => self.plan_function(id, name, overloads, args),
        }
    }

    fn index_key(&mut self, id: NodeId, index: StepId) -> QualifierKey {
        if let Some(constant) = self.constant_of(index) {
            return QualifierKey::Constant(constant.clone());
        }
        match self.attribute_of(index) {
            Some(attribute) => QualifierKey::Attribute(attribute),
            None => QualifierKey::Computed(self.add_attribute(id, AttributeBase::Step(index))),
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
