//! Runs a plan for one device.
//!
//! Every step that cel-go observes is reported to the meter, in the same order and with the same ids, because what a
//! call costs depends on what the meter still remembers of its arguments.
//!
//! Invariant: recursion is as deep as the plan, which the scan of the text bounds.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Behaviour;
use super::collections::{Key, Map, MapKind};
use super::compare;
use super::library::{self, CallContext};
use super::loops::LoopScope;
use super::meter::CostMeter;
use super::plan::{AttributeBase, AttributeId, Call, Plan, StepId, StepKind};
use super::value::{EvalFailure, Evaluated, Value, eval_error, no_such_overload};
use crate::size;
use crate::tree::NodeId;

pub(super) struct Evaluation<'p> {
    pub(super) plan: &'p Plan,
    pub(super) context: CallContext<'p>,
    pub(super) meter: CostMeter,
    pub(super) device: Value,
    /// The loops around the current step, innermost last.
    pub(super) scopes: Vec<LoopScope<'p>>,
}

impl<'p> Evaluation<'p> {
    pub(super) fn new(plan: &'p Plan, behaviour: &'p Behaviour, device: Value, limit: u64) -> Evaluation<'p> {
        let meter = CostMeter::new(limit);
        Evaluation { plan, context: CallContext::of(behaviour), meter, device, scopes: Vec::new() }
    }

    pub(super) fn evaluate(&mut self) -> Evaluated {
        self.eval(StepId(self.plan.root))
    }

    /// A step's value, reported to the meter.
    pub(super) fn eval(&mut self, id: StepId) -> Evaluated {
        let plan = self.plan;
        let Some(step) = plan.step(id) else { return no_such_overload() };
        match &step.kind {
            StepKind::Constant(value) => self.meter_value(step.id, Ok(value.clone())),
            StepKind::Attribute(attribute) => {
                let value = self.resolve(*attribute);
                self.meter_attribute(*attribute, false);
                let node = plan.attribute_node(*attribute).unwrap_or(step.id);
                self.meter_value(node, value)
            }
            StepKind::Presence(attribute) => {
                let value = match self.resolve(*attribute) {
                    Ok(Value::Optional(inner)) => Ok(Value::Bool(inner.is_some())),
                    other => other,
                };
                self.meter_attribute(*attribute, true);
                self.meter_value(step.id, value)
            }
            StepKind::And(terms) => self.eval_logic(step.id, terms, false),
            StepKind::Or(terms) => self.eval_logic(step.id, terms, true),
            StepKind::Equal { args, is_negated } => self.eval_equal(step.id, *args, *is_negated),
            StepKind::Call(call) => self.eval_call(step.id, call),
            StepKind::Member { arg, set } => {
                let value = match self.eval(*arg) {
                    Ok(value) => Key::from_value(&value).map(|key| Value::Bool(set.contains(&key))),
                    failed => failed,
                };
                self.meter_value(step.id, value)
            }
            StepKind::OptionalOr { left, right, is_value } => {
                self.eval_optional_or(step.id, [*left, *right], *is_value)
            }
            StepKind::List(elements) => self.eval_list(step.id, elements),
            StepKind::Map(entries) => self.eval_map(step.id, entries),
            StepKind::Message { name, fields } => self.eval_message(step.id, name, fields),
            StepKind::Loop(body) => {
                let value = self.eval_loop(body);
                check_not_cancelled(&value)?;
                self.meter.drop_values(plan.step_node(body.range));
                self.meter_value(step.id, value)
            }
        }
    }

    /// Reports a value to the meter, unless the evaluation was cancelled.
    fn meter_value(&mut self, id: NodeId, value: Evaluated) -> Evaluated {
        check_not_cancelled(&value)?;
        self.meter.record_value(id, value.as_ref().ok())?;
        value
    }

    fn meter_attribute(&mut self, id: AttributeId, only_tests: bool) {
        let plan = self.plan;
        if let Some(AttributeBase::Conditional { condition, truthy, falsy }) =
            plan.attribute(id).map(|attribute| &attribute.base)
        {
            let ids = [plan.attribute_node(*falsy), plan.attribute_node(*truthy), plan.step_node(*condition)];
            self.meter.drop_values(ids.into_iter().flatten());
        } else {
            self.meter.drop_values(plan.attribute_node(id));
            self.meter.add(1);
        }
        if only_tests {
            self.meter.refund_one();
        }
    }

    fn eval_logic(&mut self, id: NodeId, terms: &[StepId], decisive: bool) -> Evaluated {
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
        self.meter.drop_values(terms.iter().filter_map(|term| self.plan.step_node(*term)));
        self.meter_value(id, problem.map_or(value, Err))
    }

    fn eval_equal(&mut self, id: NodeId, args: [StepId; 2], is_negated: bool) -> Evaluated {
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
        if problem.is_none() && library::cost::cost_ignores_result(call.function) {
            let remembered: Vec<Option<Value>> = args.iter().cloned().map(Some).collect();
            let cost = library::cost::call_cost(
                call.function,
                call.overload,
                &remembered,
                None,
                self.context.behaviour,
            )?;
            self.meter.check_affordable(cost)?;
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
            let result = value.as_ref().ok();
            let cost = library::cost::call_cost(
                call.function,
                call.overload,
                &args,
                result,
                self.context.behaviour,
            )?;
            self.meter.add(cost);
        }
        self.meter_value(id, value)
    }

    fn eval_optional_or(&mut self, id: NodeId, [left, right]: [StepId; 2], is_value: bool) -> Evaluated {
        let value = match self.eval(left) {
            Ok(Value::Optional(Some(inner))) if is_value => Ok((*inner).clone()),
            Ok(some @ Value::Optional(Some(_))) => Ok(some),
            Ok(Value::Optional(None)) => self.eval(right),
            Ok(_) if self.context.behaviour.optional_or_needs_optional => no_such_overload(),
            other => other,
        };
        self.meter_value(id, value)
    }

    fn eval_list(&mut self, id: NodeId, elements: &[(StepId, bool)]) -> Evaluated {
        let mut items = Vec::with_capacity(elements.len());
        let mut problem = None;
        for (element, is_optional) in elements {
            let value = self.eval(*element);
            check_not_cancelled(&value)?;
            match (value, is_optional) {
                (Ok(Value::Optional(inner)), true) => items.extend(inner.map(|inner| (*inner).clone())),
                (Ok(value), true) => {
                    let text = library::go_value_text(&value);
                    problem = eval_error::<Value>(format!(
                        "cannot initialize optional list element from non-optional value {text}"
                    ))
                    .err();
                }
                (Ok(value), false) => items.push(value),
                (Err(failure), _) => problem = Some(failure),
            }
            if problem.is_some() {
                break;
            }
        }
        let ids: Vec<StepId> = elements.iter().map(|(element, _)| *element).collect();
        self.meter.take_args(self.plan, &ids);
        self.meter.add(size::CREATE_LIST_COST);
        self.meter_value(id, problem.map_or_else(|| Ok(Value::list(items)), Err))
    }

    fn eval_map(&mut self, id: NodeId, entries: &[(StepId, StepId, bool)]) -> Evaluated {
        let value = self.build_map(entries);
        check_not_cancelled(&value)?;
        let ids: Vec<StepId> = entries.iter().flat_map(|(key, value, _)| [*key, *value]).collect();
        self.meter.take_args(self.plan, &ids);
        self.meter.add(size::CREATE_MAP_COST);
        self.meter_value(id, value)
    }

    fn build_map(&mut self, entries: &[(StepId, StepId, bool)]) -> Evaluated {
        let mut pairs = BTreeMap::new();
        for (key, value, is_optional) in entries {
            let key = self.eval(*key)?;
            let value = self.eval(*value)?;
            let value = match (value, is_optional) {
                (Value::Optional(Some(inner)), true) => (*inner).clone(),
                (Value::Optional(None), true) => {
                    pairs.remove(&Key::from_value(&key)?);
                    continue;
                }
                (value, true) => {
                    let (key, value) = (library::go_value_text(&key), library::go_value_text(&value));
                    return eval_error(format!(
                        "cannot initialize optional entry '{key}' from non-optional value {value}"
                    ));
                }
                (value, false) => value,
            };
            pairs.insert(Key::from_value(&key)?, (key, value));
        }
        Ok(Value::Map(Arc::new(Map::from_pairs(pairs, MapKind::Values))))
    }

    fn eval_message(&mut self, id: NodeId, name: &str, fields: &[(String, StepId, bool)]) -> Evaluated {
        let value = self.build_message(name, fields);
        check_not_cancelled(&value)?;
        let ids: Vec<StepId> = fields.iter().map(|(_, value, _)| *value).collect();
        self.meter.take_args(self.plan, &ids);
        self.meter.add(size::CREATE_STRUCT_COST);
        self.meter_value(id, value)
    }

    fn build_message(&mut self, name: &str, fields: &[(String, StepId, bool)]) -> Evaluated {
        let mut values = BTreeMap::new();
        for (field, value, is_optional) in fields {
            match (self.eval(*value)?, is_optional) {
                (Value::Optional(Some(inner)), true) => _ = values.insert(field.as_str(), (*inner).clone()),
                (Value::Optional(None), true) => _ = values.remove(field.as_str()),
                (value, true) => {
                    let value = library::go_value_text(&value);
                    return eval_error(format!(
                        "cannot initialize optional entry '{field}' from non-optional value {value}"
                    ));
                }
                (value, false) => _ = values.insert(field, value),
            }
        }
        library::messages::build(name, &values)
    }
}

/// Returns an error if the evaluation was cancelled.
pub(super) fn check_not_cancelled(value: &Evaluated) -> Result<(), EvalFailure> {
    match value {
        Err(failure @ (EvalFailure::Cancelled(_) | EvalFailure::Unsupported(_))) => Err(failure.clone()),
        Ok(_) | Err(EvalFailure::Error(_)) => Ok(()),
    }
}
