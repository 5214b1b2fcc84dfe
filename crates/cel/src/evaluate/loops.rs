//! Loops, and the variables that are in scope inside of them.
//!
//! The initial value of a loop is evaluated when it is first used, outside of the loop's own scope:
//! `cel.bind(x, 1 / 0, true)` is true.

use std::sync::Arc;

use super::collections::{List, Map};
use super::run::{Evaluation, check_not_cancelled};
use super::value::{Evaluated, Value, eval_error, go_panic_failure, no_such_overload};
use crate::tree::Loop;

/// The values of the variables of a loop during one iteration.
pub(super) struct LoopScope<'p> {
    body: &'p Loop,
    /// The accumulated value, evaluated on first use.
    accumulated: Option<Evaluated>,
    is_growing: bool,
    first: Option<Value>,
    second: Option<Value>,
    /// True after the loop, when only the accumulator is visible.
    is_result: bool,
}

impl<'p> Evaluation<'p> {
    pub(super) fn eval_loop(&mut self, body: &'p Loop) -> Evaluated {
        // The scope is there while the range is evaluated, but nothing in it can name it.
        let range = self.eval(body.range)?;
        let turns: Vec<(Value, Option<Value>)> = match (&range, &body.second_variable) {
            (Value::List(list), None) => list.items()?.iter().map(|item| (item.clone(), None)).collect(),
            (Value::List(list), Some(_)) => {
                let index = |index| Value::Int(i64::try_from(index).unwrap_or(i64::MAX));
                let items = list.items()?;
                items.iter().enumerate().map(|(at, item)| (index(at), Some(item.clone()))).collect()
            }
            (Value::Map(map), second) => {
                let turn = |(key, value)| (key, second.is_some().then_some(value));
                map.entries().into_iter().map(turn).collect()
            }
            (other, None) => {
                return eval_error(format!("got '{}', expected iterable type", other.go_type()));
            }
            (other, Some(_)) => {
                return eval_error(format!("unsupported comprehension range type: {}", other.go_type()));
            }
        };
        let scope = LoopScope {
            body,
            accumulated: None,
            is_growing: false,
            first: None,
            second: None,
            is_result: false,
        };
        self.scopes.push(scope);
        let value = self.run_iterations(body, turns);
        let scope = self.scopes.pop();
        Ok(match (value?, scope.is_some_and(|scope| scope.is_growing)) {
            (Value::List(list), true) => Value::List(list.into_fixed()),
            (Value::Map(map), true) if map.is_growing() => Value::Map(Arc::new(map.to_fixed())),
            (value, _) => value,
        })
    }

    fn run_iterations(&mut self, body: &'p Loop, turns: Vec<(Value, Option<Value>)>) -> Evaluated {
        let depth = self.scopes.len();
        for (first, second) in turns {
            if let Some(scope) = self.scopes.last_mut() {
                (scope.first, scope.second) = (Some(first), second);
            }
            let condition = self.eval(body.condition);
            check_not_cancelled(&condition)?;
            if matches!(condition, Ok(Value::Bool(false))) {
                break;
            }
            let step = self.eval(body.step);
            check_not_cancelled(&step)?;
            if let Some(scope) = self.scopes.last_mut() {
                scope.accumulated = Some(step);
            }
        }
        self.scopes.truncate(depth);
        if let Some(scope) = self.scopes.last_mut() {
            scope.is_result = true;
        }
        self.eval(body.result)
    }

    /// The value of a variable.
    pub(super) fn variable(&mut self, name: &str, is_global: bool) -> Evaluated {
        let depth = if is_global { 0 } else { self.scopes.len() };
        for index in (0..depth).rev() {
            let Some(scope) = self.scopes.get(index) else { continue };
            if *name == *scope.body.accumulator {
                return match &scope.accumulated {
                    Some(value) => value.clone(),
                    None => self.evaluate_initial_accumulator(index),
                };
            }
            if !scope.is_result {
                if *name == *scope.body.variable {
                    return scope.first.clone().ok_or_else(|| go_panic_failure("a loop without an element"));
                }
                if scope.body.second_variable.as_deref() == Some(name) {
                    return scope.second.clone().ok_or_else(|| go_panic_failure("a loop without an element"));
                }
            }
        }
        if name == "device" {
            return Ok(self.device.clone());
        }
        eval_error(format!("no such attribute(s): {name}"))
    }

    /// Evaluates the initial value of a loop. An empty list or map is then filled in place.
    fn evaluate_initial_accumulator(&mut self, index: usize) -> Evaluated {
        let Some(init) = self.scopes.get(index).map(|scope| scope.body.init) else {
            return no_such_overload();
        };
        let inner = self.scopes.split_off(index);
        let value = self.eval(init);
        self.scopes.extend(inner);
        check_not_cancelled(&value)?;
        let (value, is_growing) = match value {
            Ok(Value::List(list)) if list.len() == 0 => (Ok(Value::List(List::new_growing())), true),
            Ok(Value::Map(map)) if map.len() == 0 => (Ok(Value::Map(Arc::new(Map::new_growing()))), true),
            other => (other, false),
        };
        if let Some(scope) = self.scopes.get_mut(index) {
            scope.accumulated = Some(value.clone());
            scope.is_growing = is_growing;
        }
        value
    }
}
