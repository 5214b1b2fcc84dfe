//! Runs a plan for one device.
//!
//! Every step that cel-go observes is reported to the meter, in the same order and with the same ids, because what a
//! call costs depends on what the meter still remembers of its arguments.
//!
//! Invariant: recursion is as deep as the plan, which the scan of the text bounds.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ReleaseBehaviour;
use super::collections::{Key, Map, MapLookup};
use super::compare;
use super::library::{self, CallContext};
use super::loops::LoopScope;
use super::meter::CostMeter;
use super::plan::{AttributeBase, AttributeId, Call, Plan, Step};
use super::value::{EvalFailure, Evaluated, Value, eval_error, no_such_overload};
use crate::size;
use crate::tree::{Element, ExprKind, MapEntry, NodeId, StructField, Tree};

pub(super) struct Evaluation<'p> {
    tree: &'p Tree,
    pub(super) plan: &'p Plan,
    pub(super) context: CallContext<'p>,
    pub(super) meter: CostMeter,
    pub(super) device: Value,
    /// The loops around the current step, innermost last.
    pub(super) scopes: Vec<LoopScope<'p>>,
}

impl<'p> Evaluation<'p> {
    pub(super) fn new(
        tree: &'p Tree,
        plan: &'p Plan,
        behaviour: &'p ReleaseBehaviour,
        device: Value,
    ) -> Evaluation<'p> {
        let (context, meter) = (CallContext::of(behaviour), CostMeter::default());
        Evaluation { tree, plan, context, meter, device, scopes: Vec::new() }
    }

    /// Evaluates a node, and reports its value to the meter.
    pub(super) fn eval(&mut self, id: NodeId) -> Evaluated {
        let plan = self.plan;
        let Some(step) = plan.step(id) else { return no_such_overload() };
        match step {
            Step::Constant(value) => self.meter_value(id, Ok(value.clone())),
            Step::Attribute(attribute) => {
                let value = self.resolve(*attribute);
                self.meter_attribute(*attribute, false);
                self.meter_value(plan.attribute_cost_id(*attribute).unwrap_or(id), value)
            }
            Step::Presence(attribute) => {
                let value = match self.resolve(*attribute) {
                    Ok(Value::Optional(inner)) => Ok(Value::Bool(inner.is_some())),
                    other => other,
                };
                self.meter_attribute(*attribute, true);
                self.meter_value(id, value)
            }
            Step::And(terms) => self.eval_logic(id, terms, false),
            Step::Or(terms) => self.eval_logic(id, terms, true),
            Step::Equal { args, is_negated } => self.eval_equal(id, *args, *is_negated),
            Step::Call(call) => self.eval_call(id, call),
            Step::Member { arg, set } => {
                let value = match self.eval(*arg) {
                    Ok(value) => Key::from_value(&value).map(|key| Value::Bool(set.contains(&key))),
                    failed => failed,
                };
                self.meter_value(id, value)
            }
            Step::OptionalOr { left, right, is_value } => {
                self.eval_optional_or(id, [*left, *right], *is_value)
            }
            Step::AsWritten => self.eval_as_written(id),
        }
    }

    /// Evaluates a list, map, message or loop.
    fn eval_as_written(&mut self, id: NodeId) -> Evaluated {
        let (value, parts, cost) = match self.tree.kind(id) {
            ExprKind::List { elements } => {
                let parts: Vec<NodeId> = elements.iter().map(|element| element.value).collect();
                (self.build_list(elements), parts, size::CREATE_LIST_COST)
            }
            ExprKind::Map { entries } => {
                let parts = entries.iter().flat_map(|entry| [entry.key, entry.value]).collect();
                (self.build_map(entries), parts, size::CREATE_MAP_COST)
            }
            ExprKind::Struct { name, fields } => {
                let parts = fields.iter().map(|field| field.value).collect();
                (self.build_message(name, fields), parts, size::CREATE_STRUCT_COST)
            }
            ExprKind::Loop(body) => {
                let value = self.eval_loop(body);
                check_not_cancelled(&value)?;
                self.meter.pop_values_and_all_above(self.plan.step_cost_id(body.range));
                return self.meter_value(id, value);
            }
            _ => return no_such_overload(),
        };
        check_not_cancelled(&value)?;
        self.meter.take_args(self.plan, &parts);
        self.meter.add(cost);
        self.meter_value(id, value)
    }

    /// Reports a value to the meter, unless the evaluation was cancelled.
    fn meter_value(&mut self, id: NodeId, value: Evaluated) -> Evaluated {
        check_not_cancelled(&value)?;
        self.meter.record_value_and_check_limit(id, value.as_ref().ok())?;
        value
    }

    fn meter_attribute(&mut self, id: AttributeId, only_tests: bool) {
        let plan = self.plan;
        if let Some(AttributeBase::Conditional { condition, truthy, falsy }) =
            plan.attribute(id).map(|attribute| &attribute.base)
        {
            let ids = [
                plan.attribute_cost_id(*falsy),
                plan.attribute_cost_id(*truthy),
                plan.step_cost_id(*condition),
            ];
            self.meter.pop_values_and_all_above(ids.into_iter().flatten());
        } else {
            self.meter.pop_values_and_all_above(plan.attribute_cost_id(id));
            self.meter.add(1);
        }
        if only_tests {
            self.meter.refund_one();
        }
    }

    fn eval_logic(&mut self, id: NodeId, terms: &[NodeId], decisive: bool) -> Evaluated {
        let mut problem = None;
        let mut value = Ok(Value::Bool(!decisive));
        for term in terms {
            match self.eval(*term) {
                Ok(Value::Bool(found)) if found == decisive => {
                    (problem, value) = (None, Ok(Value::Bool(decisive)));
                    break;
                }
                Ok(Value::Bool(_)) => {}
                Ok(_) => problem = problem.or_else(|| no_such_overload::<Value>().err()),
                Err(EvalFailure::Error(text)) => problem = problem.or(Some(EvalFailure::Error(text))),
                cancelled => return cancelled,
            }
        }
        self.meter.pop_values_and_all_above(terms.iter().filter_map(|term| self.plan.step_cost_id(*term)));
        self.meter_value(id, problem.map_or(value, Err))
    }

    fn eval_equal(&mut self, id: NodeId, args: [NodeId; 2], is_negated: bool) -> Evaluated {
        let [left, right] = args;
        let left = self.eval(left);
        check_not_cancelled(&left)?;
        let right = self.eval(right);
        check_not_cancelled(&right)?;
        let value = match (left, right) {
            (Ok(left), Ok(right)) => match compare::evaluate_equality(&left, &right, &self.context.work) {
                Ok(is_equal) => Ok(Value::Bool(is_equal != is_negated)),
                // What cannot be compared is not equal.
                Err(EvalFailure::Error(_)) if is_negated => Ok(Value::Bool(true)),
                Err(failure) => Err(failure),
            },
            (Err(failure), _) | (_, Err(failure)) => Err(failure),
        };
        check_not_cancelled(&value)?;
        if let Some(args) = self.meter.take_args(self.plan, &args) {
            let cost = library::cost::equality_cost(is_negated, &args);
            self.meter.add(cost);
        }
        self.meter_value(id, value)
    }

    fn eval_call(&mut self, id: NodeId, call: &Call) -> Evaluated {
        let behaviour = self.context.behaviour;
        let Call { function, overload, .. } = *call;
        let cost = |args: &[Option<Value>], result: Option<&Value>| {
            library::cost::MeteredCall { function, overload, args, result, behaviour }.cost()
        };
        let mut args = Vec::with_capacity(call.args.len());
        let mut problem = None;
        for arg in &call.args {
            match self.eval(*arg) {
                Ok(value) => args.push(value),
                Err(EvalFailure::Error(text)) => {
                    problem = problem.or(Some(EvalFailure::Error(text)));
                    if call.stops_early {
                        break;
                    }
                }
                cancelled => return cancelled,
            }
        }
        if problem.is_none() && library::cost::checks_cost_before_call(call.function) {
            let remembered: Vec<Option<Value>> = args.iter().cloned().map(Some).collect();
            self.meter.check_affordable(cost(&remembered, None)?)?;
        }
        let value = match (problem, call.function) {
            // The one function that takes an error for an answer.
            (Some(_), "@not_strictly_false") => Ok(Value::Bool(true)),
            (Some(problem), _) => Err(problem),
            (None, _) => match &call.pattern {
                Some(pattern) => library::patterns::call_with_pattern(call.function, pattern, &args),
                None => library::call_with_guard(&call.guard, call.function, &args, &self.context),
            },
        };
        check_not_cancelled(&value)?;
        if let Some(args) = self.meter.take_args(self.plan, &call.args) {
            self.meter.add(cost(&args, value.as_ref().ok())?);
        }
        self.meter_value(id, value)
    }

    fn eval_optional_or(&mut self, id: NodeId, [left, right]: [NodeId; 2], is_value: bool) -> Evaluated {
        let value = match self.eval(left) {
            Ok(Value::Optional(Some(inner))) if is_value => Ok((*inner).clone()),
            Ok(some @ Value::Optional(Some(_))) => Ok(some),
            Ok(Value::Optional(None)) => self.eval(right),
            Ok(_) if self.context.behaviour.optional_or_needs_optional => no_such_overload(),
            other => other,
        };
        self.meter_value(id, value)
    }

    fn build_list(&mut self, elements: &[Element]) -> Evaluated {
        let mut items = Vec::with_capacity(elements.len());
        for element in elements {
            let value = self.eval(element.value)?;
            items.extend(present_value(value, element.optional, || "list element".to_owned())?);
        }
        Ok(Value::list(items))
    }

    fn build_map(&mut self, entries: &[MapEntry]) -> Evaluated {
        let mut pairs = BTreeMap::new();
        for entry in entries {
            let key = self.eval(entry.key)?;
            let value = self.eval(entry.value)?;
            let name = || format!("entry '{}'", library::go_value_text(&key));
            match present_value(value, entry.optional, name)? {
                Some(value) => _ = pairs.insert(Key::from_value(&key)?, (key, value)),
                None => _ = pairs.remove(&Key::from_value(&key)?),
            }
        }
        Ok(Value::Map(Arc::new(Map::from_pairs(pairs, MapLookup::Values))))
    }

    fn build_message(&mut self, name: &str, fields: &[StructField]) -> Evaluated {
        let mut values = BTreeMap::new();
        for field in fields {
            let value = self.eval(field.value)?;
            match present_value(value, field.optional, || format!("entry '{}'", field.name))? {
                Some(value) => _ = values.insert(field.name.as_str(), value),
                None => _ = values.remove(field.name.as_str()),
            }
        }
        library::messages::build_well_known_type_value(name.strip_prefix('.').unwrap_or(name), &values)
    }
}

/// The value of a part of a list, map or message; `None` if the part is written with `?` and is absent.
fn present_value(
    value: Value,
    is_optional: bool,
    part: impl FnOnce() -> String,
) -> Result<Option<Value>, EvalFailure> {
    match (value, is_optional) {
        (value, false) => Ok(Some(value)),
        (Value::Optional(inner), true) => Ok(inner.map(|inner| (*inner).clone())),
        (value, true) => {
            let (part, text) = (part(), library::go_value_text(&value));
            eval_error(format!("cannot initialize optional {part} from non-optional value {text}"))
        }
    }
}

/// Returns an error if the evaluation was cancelled.
pub(super) fn check_not_cancelled(value: &Evaluated) -> Result<(), EvalFailure> {
    match value {
        Err(failure @ (EvalFailure::Cancelled(_) | EvalFailure::Unsupported(_))) => Err(failure.clone()),
        Ok(_) | Err(EvalFailure::Error(_)) => Ok(()),
    }
}
