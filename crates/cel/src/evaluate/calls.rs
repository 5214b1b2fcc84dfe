//! Plans calls of functions: how their arguments are checked, and what is computed in advance from constants.
//!
//! How a call is evaluated depends on how cel-go binds the function: one implementation for all overloads, or one for
//! each, which are tried in order where the checker found several.

use std::collections::BTreeSet;

use super::collections::{Key, equal_keys_of_other_number_types};
use super::library::{self, CallContext};
use super::plan::{ArgumentGuard, Call, Step};
use super::planner::{Planned, Planner};
use super::value::{EvalFailure, Value};
use crate::functions;
use crate::number;
use crate::outcome::VariableScope;
use crate::overload::Overload;
use crate::regex;
use crate::tree::NodeId;

impl Planner<'_> {
    /// The step of a function call. The conversion of a constant is computed now, and a constant pattern is
    /// compiled now; the error is the first that the server finds then.
    pub(super) fn plan_function(
        &mut self,
        name: &'static str,
        overloads: &[&'static Overload],
        args: Vec<NodeId>,
    ) -> Planned {
        let overload = if let [only] = overloads { Some(*only) } else { None };
        if let (("@in", [arg, list]), Some(_)) = ((name, args.as_slice()), overload)
            && let Some(step) = self.constant_membership_step(*arg, *list)
        {
            return Ok(step);
        }
        let (guard, stops_early) = self.argument_guard_and_whether_lazy(name, overload);
        if let ([arg], true) = (args.as_slice(), is_conversion(name)) {
            if let Some(constant) = self.constant_of(*arg).cloned() {
                let context = CallContext::of(self.behaviour);
                return match library::call_with_guard(&guard, name, &[constant], &context) {
                    Ok(value) => Ok(Step::Constant(value)),
                    Err(EvalFailure::Error(text) | EvalFailure::Cancelled(text)) => Err(text.to_string()),
                    Err(EvalFailure::Unsupported(what)) => Err(what.to_owned()),
                };
            }
            if !matches!(name, "dyn" | "type")
                && let Some([from, _]) = self.constant_cel_and_go_type_names(*arg)
            {
                return Err(format!("no such overload: {name}({from})"));
            }
        }
        let pattern = args.get(1).and_then(|pattern| self.constant_of(*pattern)?.as_str());
        let pattern = pattern.filter(|_| matches!(name, "matches" | "find" | "findAll"));
        // Policies have an engine of their own, with other limits. It checks their patterns.
        if let (Some(pattern), VariableScope::Device) = (pattern, self.behaviour.env.scope) {
            regex::go_program_size(pattern).map_err(|error| error.to_string())?;
        }
        let pattern = pattern.filter(|_| self.is_run);
        let pattern = pattern.and_then(|pattern| library::patterns::compile_go_pattern(pattern).ok());
        let stops_early = stops_early || pattern.is_some();
        let call = Call { function: name, overload, args, stops_early, guard, pattern };
        Ok(Step::Call(Box::new(call)))
    }

    /// The check of a function's arguments, and whether those after a failed one are left unevaluated.
    fn argument_guard_and_whether_lazy(
        &self,
        name: &'static str,
        overload: Option<&'static Overload>,
    ) -> (ArgumentGuard, bool) {
        if let Some(guard) = library::first_operand_guard(name) {
            return (guard, false);
        }
        let is_unguarded = matches!(name, "contains" | "startsWith" | "endsWith" | "flatten");
        match overload {
            Some(_) if is_unguarded => (ArgumentGuard::None, false),
            Some(only) => (ArgumentGuard::Overloads(vec![only]), only.params.len() > 2 || name == "format"),
            None if is_unguarded => (ArgumentGuard::None, true),
            None => {
                let all = functions::overloads(name, self.behaviour.env).collect();
                (ArgumentGuard::Overloads(all), true)
            }
        }
    }

    /// The step for `x in [1, 2]`, if all elements of the list are plain constants. It makes no set for a plan that is
    /// not run.
    fn constant_membership_step(&self, arg: NodeId, list: NodeId) -> Option<Step> {
        let Value::List(list) = self.constant_of(list)? else { return None };
        let items = list.items().ok()?;
        if items.is_empty() {
            return Some(Step::Constant(Value::Bool(false)));
        }
        let mut set = BTreeSet::new();
        for item in items.iter().filter(|_| self.is_run) {
            let as_double = match item {
                Value::Bool(_) | Value::String(_) | Value::Double(_) => None,
                Value::Int(value) => Some(Value::Double(number::double_of_int(*value))),
                Value::Uint(value) => Some(Value::Double(number::double_of_uint(*value))),
                _ => return None,
            };
            set.extend([Some(item), as_double.as_ref()].into_iter().flatten().flat_map(Key::from_value));
            set.extend(equal_keys_of_other_number_types(item));
        }
        Some(Step::Member { arg, set })
    }
}

/// True for the functions that the server calls on constants when it makes a program. cel-go
/// `overloads.IsTypeConversionFunction`
fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint"
    )
}
