//! The plan of an expression: the steps in which it is evaluated, as cel-go's planner makes them.
//!
//! The shape matters beyond the result. Cost is counted per step, constants are computed beforehand and cost nothing,
//! and a chain of selections is one step. cel-go `interpreter/interpretable.go`, `interpreter/attributes.go`
//!
//! Invariant: a step's parts have smaller numbers than the step.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::collections::Key;
use super::library::patterns::GoPattern;
use super::value::Value;
use crate::overload::Overload;
use crate::tree::NodeId;

/// Index of a step in its plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StepId(pub(super) usize);

/// Index of an attribute in its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttributeId(pub(super) usize);

#[derive(Debug)]
pub(super) struct Step {
    /// ID by which costs are tracked. Attributes have their own.
    pub(super) id: NodeId,
    pub(super) kind: StepKind,
}

#[derive(Debug)]
pub(super) enum StepKind {
    Constant(Value),
    Attribute(AttributeId),
    /// The step of `has(…)`. The last qualifier of the attribute only tests whether the value exists.
    Presence(AttributeId),
    And(Vec<StepId>),
    Or(Vec<StepId>),
    Equal {
        args: [StepId; 2],
        is_negated: bool,
    },
    Call(Box<Call>),
    /// The step of `in` with a list of constants.
    Member {
        arg: StepId,
        set: BTreeSet<Key>,
    },
    /// The step of `x.or(y)` or `x.orValue(y)`.
    OptionalOr {
        left: StepId,
        right: StepId,
        is_value: bool,
    },
    List(Vec<(StepId, bool)>),
    Map(Vec<(StepId, StepId, bool)>),
    Message {
        name: String,
        fields: Vec<(String, StepId, bool)>,
    },
    Loop(Box<LoopStep>),
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) function: &'static str,
    /// The overload, if the checker found only one.
    pub(super) overload: Option<&'static Overload>,
    pub(super) args: Vec<StepId>,
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

#[derive(Debug)]
pub(super) struct LoopStep {
    pub(super) range: StepId,
    pub(super) variable: Arc<str>,
    pub(super) second_variable: Option<Arc<str>>,
    pub(super) accumulator: Arc<str>,
    pub(super) init: StepId,
    pub(super) condition: StepId,
    pub(super) step: StepId,
    pub(super) result: StepId,
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
    Step(StepId),
    Conditional {
        condition: StepId,
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

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) attributes: Vec<AttributeWithQualifiers>,
    pub(super) root: StepId,
}

impl Plan {
    pub(super) fn step(&self, id: StepId) -> Option<&Step> {
        self.steps.get(id.0)
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

    /// The id by which the meter tracks a step's value.
    pub(super) fn step_cost_id(&self, id: StepId) -> Option<NodeId> {
        let step = self.step(id)?;
        match step.kind {
            StepKind::Attribute(attribute) => self.attribute_cost_id(attribute),
            _ => Some(step.id),
        }
    }
}
