//! The plan of an expression: how each node of its tree is evaluated, as cel-go's planner makes it.
//!
//! The shape matters beyond the result. Cost is counted per step, constants are computed beforehand and cost nothing,
//! and a chain of selections is one step. cel-go `interpreter/interpretable.go`, `interpreter/attributes.go`
//!
//! Invariant: a step refers only to nodes below its own, and to attributes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::collections::Key;
use super::library::patterns::GoPattern;
use super::value::Value;
use crate::overload::Overload;
use crate::tree::NodeId;

/// Index of an attribute in its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttributeId(pub(super) usize);

/// How a node of the tree is evaluated.
#[derive(Debug)]
pub(super) enum Step {
    Constant(Value),
    Attribute(AttributeId),
    /// The step of `has(…)`. The last qualifier of the attribute only tests whether the value exists.
    Presence(AttributeId),
    And(Vec<NodeId>),
    Or(Vec<NodeId>),
    Equal {
        args: [NodeId; 2],
        is_negated: bool,
    },
    Call(Box<Call>),
    /// The step of `in` with a list of constants.
    Member {
        arg: NodeId,
        set: BTreeSet<Key>,
    },
    /// The step of `x.or(y)` or `x.orValue(y)`.
    OptionalOr {
        left: NodeId,
        right: NodeId,
        is_value: bool,
    },
    /// A list, map, message or loop, which is evaluated as the tree has it.
    AsWritten,
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) function: &'static str,
    /// The overload, if the checker found only one.
    pub(super) overload: Option<&'static Overload>,
    pub(super) args: Vec<NodeId>,
    /// True if the arguments after a failed argument are not evaluated.
    pub(super) stops_early: bool,
    pub(super) guard: ArgumentGuard,
    /// The compiled pattern, if the pattern argument is a constant.
    pub(super) pattern: Option<GoPattern>,
}

/// Which arguments a function accepts when it is called; all others are the error `no such overload`.
#[derive(Debug)]
pub(super) enum ArgumentGuard {
    /// The function checks its arguments itself.
    None,
    /// The first argument must support the operator.
    Operand(fn(&Value) -> bool),
    /// The arguments must match one of these overloads.
    Overloads(Vec<&'static Overload>),
}

/// A variable or value, with the qualifiers selected from it.
#[derive(Debug)]
pub(super) struct AttributeWithQualifiers {
    pub(super) id: NodeId,
    pub(super) base: AttributeBase,
    pub(super) qualifiers: Vec<Qualifier>,
}

#[derive(Debug)]
pub(super) enum AttributeBase {
    Variable {
        name: Arc<str>,
        /// True if the name skips loop variables.
        is_global: bool,
    },
    Step(NodeId),
    Conditional {
        condition: NodeId,
        truthy: AttributeId,
        falsy: AttributeId,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Qualifier {
    pub(super) id: NodeId,
    pub(super) key: QualifierKey,
    pub(super) is_optional: bool,
    /// True if only the existence of the value is tested, as in `has()`.
    pub(super) only_tests: bool,
}

#[derive(Clone, Debug)]
pub(super) enum QualifierKey {
    Constant(Value),
    /// Another attribute, which is not tracked itself.
    Attribute(AttributeId),
    /// Any other expression, converted to an attribute.
    Computed(AttributeId),
}

#[derive(Debug)]
pub(super) struct Plan {
    /// The steps of the nodes that are evaluated, by the number of the node.
    pub(super) steps: Vec<Option<Step>>,
    pub(super) attributes: Vec<AttributeWithQualifiers>,
}

impl Plan {
    pub(super) fn step(&self, id: NodeId) -> Option<&Step> {
        self.steps.get(id.index())?.as_ref()
    }

    pub(super) fn attribute(&self, id: AttributeId) -> Option<&AttributeWithQualifiers> {
        self.attributes.get(id.0)
    }

    /// True if the expression may read a device's capacity, by name or by using the device as a whole.
    pub(super) fn needs_capacity(&self) -> bool {
        self.attributes.iter().any(|attribute| match (&attribute.base, attribute.qualifiers.first()) {
            (
                AttributeBase::Variable { name, .. },
                Some(Qualifier { key: QualifierKey::Constant(key), .. }),
            ) => **name == *"device" && key.as_str().is_none_or(|key| key == "capacity"),
            (AttributeBase::Variable { name, .. }, _) => **name == *"device",
            _ => false,
        })
    }

    /// The id by which the meter tracks an attribute's value: that of its last qualifier, if it has any.
    pub(super) fn attribute_cost_id(&self, id: AttributeId) -> Option<NodeId> {
        let attribute = self.attribute(id)?;
        if let AttributeBase::Conditional { truthy, falsy, .. } = attribute.base {
            let (truthy, falsy) = (self.attribute_cost_id(truthy)?, self.attribute_cost_id(falsy)?);
            return Some(if truthy == falsy { truthy } else { attribute.id });
        }
        Some(attribute.qualifiers.last().map_or(attribute.id, |last| last.id))
    }

    /// The id by which the meter tracks the value of a node.
    pub(super) fn step_cost_id(&self, id: NodeId) -> Option<NodeId> {
        match self.step(id)? {
            Step::Attribute(attribute) => self.attribute_cost_id(*attribute),
            _ => Some(id),
        }
    }
}
