//! Plans calls of functions: which arguments they take, and what of them is known beforehand.
//!
//! How a call is evaluated depends on how cel-go binds the function: one implementation for all overloads, or one for
//! each, which are tried in order where the checker found several.

use std::collections::BTreeSet;

use super::collections::Key;
use super::compare;
use super::library::{self, CallContext};
use super::plan::{ArgumentGuard, Call, StepId, StepKind};
use super::planner::Planner;
use super::value::Value;
use crate::number;

use super::fold;
use crate::functions;
use crate::overload::Overload;
use crate::tree::NodeId;

impl Planner<'_> {
    /// Adds the step of a function call. The conversion of a constant is computed now, and a constant pattern is
    /// compiled now.
    pub(super) fn plan_function(
        &mut self,
        id: NodeId,
        name: &'static str,
        overloads: &[&'static Overload],
        args: Vec<StepId>,
    ) -> StepId {
        let overload = if let [only] = overloads { Some(*only) } else { None };
        if let (("@in", [arg, list]), Some(_)) = ((name, args.as_slice()), overload)
            && let Some(kind) = self.constant_membership_step(*arg, *list)
        {
            return self.add(id, kind);
        }
        let (guard, stops_early) = self.argument_guard(name, overload);
        if let ([arg], true) = (args.as_slice(), fold::is_conversion(name))
            && let Some(constant) = self.constant_of(*arg).cloned()
        {
            let context = CallContext::of(self.behaviour);
            if let Ok(value) = library::call_with_guard(&guard, name, &[constant], &context) {
                return self.add_constant_step(id, value);
            }
        }
        let pattern = args.get(1).and_then(|pattern| self.constant_of(*pattern)?.as_str());
        let pattern = pattern.filter(|_| matches!(name, "matches" | "find" | "findAll"));
        let pattern = pattern.and_then(|pattern| library::patterns::compile(pattern).ok());
        let stops_early = stops_early || pattern.is_some();
        let call = Call { function: name, overload, args, stops_early, guard, pattern };
        self.add(id, StepKind::Call(Box::new(call)))
    }

    /// The check of a function's arguments, and whether it is called with all of them at once.
    fn argument_guard(
        &self,
        name: &'static str,
        overload: Option<&'static Overload>,
    ) -> (ArgumentGuard, bool) {
        if let Some(guard) = library::operand_guard(name) {
            return (guard, false);
        }
        let is_unguarded = matches!(name, "contains" | "startsWith" | "endsWith" | "flatten");
        let all: Vec<_> = functions::overloads(name, self.behaviour.env).collect();
        match overload {
            Some(_) if is_unguarded => (ArgumentGuard::None, false),
            Some(only) => (ArgumentGuard::Overloads(vec![only]), only.params.len() > 2 || name == "format"),
            None if is_unguarded => (ArgumentGuard::None, true),
            None => (ArgumentGuard::Overloads(all), true),
        }
    }

    /// The step for `x in [1, 2]`, if all elements of the list are plain constants.
    fn constant_membership_step(&self, arg: StepId, list: StepId) -> Option<StepKind> {
        let Value::List(list) = self.constant_of(list)? else { return None };
        let items = list.items().ok()?;
        if items.is_empty() {
            return Some(StepKind::Constant(Value::Bool(false)));
        }
        let mut set = BTreeSet::new();
        for item in items.iter() {
            let also = match item {
                Value::Bool(_) | Value::String(_) => [None, None],
                Value::Int(value) => [
                    Some(Value::Double(number::double_of_int(*value))),
                    u64::try_from(*value).ok().map(Value::Uint),
                ],
                Value::Uint(value) => [
                    Some(Value::Double(number::double_of_uint(*value))),
                    i64::try_from(*value).ok().map(Value::Int),
                ],
                Value::Double(value) => [
                    compare::lossless_int(*value).map(Value::Int),
                    compare::lossless_uint(*value).map(Value::Uint),
                ],
                _ => return None,
            };
            set.extend(
                [Some(item), also[0].as_ref(), also[1].as_ref()]
                    .into_iter()
                    .flatten()
                    .flat_map(Key::from_value),
            );
        }
        Some(StepKind::Member { arg, set })
    }
}
