//! Evaluates device selectors: whether an expression selects a device, as the scheduler of a release decides it.
//!
//! A program is compiled from an expression with the same type checker that decides whether it is accepted. A device is
//! given by its driver, attributes and capacity, not as an API object. Differences between releases are data in
//! [`ReleaseBehaviour`].
//!
//! Invariant: results, error texts and costs are those of upstream. Every evaluation ends: work that upstream does not
//! count as cost has a limit here.

mod attribute;
mod calls;
mod collections;
mod compare;
mod device;
mod foreign;
mod library;
mod loops;
mod meter;
mod plan;
mod planner;
mod run;
#[cfg(test)]
mod tests;
mod value;

pub use device::{AttributeValue, Device};
pub use foreign::{CallError, LibraryValue, PlainValue};
pub(crate) use library::formatting::{clause_type_requirement, read_precision};
pub use library::patterns::{GoPattern, GoPatternError};
pub(crate) use planner::program_error_message;

use plan::Plan;
use run::Evaluation;
use value::{EvalFailure, Value};

use super::outcome::{CelEnv, CheckOutcome, ExpressionPurpose};
use super::tree::{Literal, Tree};
use super::{DEEP_STACK, check_result_type, needs_deep_stack};

/// Behaviors of the evaluation that differ between releases.
#[allow(clippy::struct_excessive_bools, reason = "each is one change of a library")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReleaseBehaviour {
    /// The environment for type checking. A scheduler evaluates stored expressions, so all libraries of its
    /// release are available.
    pub env: CelEnv,
    /// True if every selector fails for a device with list attributes.
    pub refuses_list_attributes: bool,
    /// True if list attributes, and the types that allow them, require the feature DRAListTypeAttributes.
    pub lists_need_feature: bool,
    /// True if `lists.range` rejects negative sizes and sizes above a million.
    pub range_is_checked: bool,
    /// Maximum length of a list that `includes` searches; `None` if there is none.
    pub includes_limit: Option<usize>,
    /// True if `indexOf("", n)` and `lastIndexOf("", n)` check that `n` is within the text.
    pub empty_part_checks_range: bool,
    /// True if `x.or(y)` and `x.orValue(y)` reject an `x` that is not an optional value. Otherwise they return it.
    pub optional_or_needs_optional: bool,
    /// True if `q.add(…)` and `q.sub(…)` modify `q` if it is a decimal.
    pub sums_change_quantities: bool,
    /// The cost of `startsWith` and `endsWith` depends on the length of the affix. Otherwise it depends on
    /// the text.
    pub affix_costs_its_own_size: bool,
}

impl ReleaseBehaviour {
    /// The behavior with the feature DRAListTypeAttributes enabled or disabled.
    #[must_use]
    pub const fn with_list_attributes_feature_gate(self, is_on: bool) -> ReleaseBehaviour {
        if !self.lists_need_feature {
            return self;
        }
        let env = CelEnv { list_attributes: is_on, ..self.env };
        ReleaseBehaviour { env, refuses_list_attributes: !is_on, ..self }
    }
}

/// Behaviors of the evaluation in Kubernetes 1.33, which differs from 1.34 only in the libraries.
pub const BEHAVIOUR_V1_33: ReleaseBehaviour = ReleaseBehaviour { env: super::V1_33, ..BEHAVIOUR_V1_34 };
/// Behaviors of the evaluation in Kubernetes 1.34.
pub const BEHAVIOUR_V1_34: ReleaseBehaviour = ReleaseBehaviour {
    env: CelEnv { ext_lists: true, ..super::V1_34 },
    refuses_list_attributes: true,
    lists_need_feature: false,
    range_is_checked: false,
    includes_limit: Some(48),
    empty_part_checks_range: false,
    optional_or_needs_optional: false,
    sums_change_quantities: true,
    affix_costs_its_own_size: false,
};
/// Behaviors of the evaluation in Kubernetes 1.35.
pub const BEHAVIOUR_V1_35: ReleaseBehaviour = ReleaseBehaviour { env: super::V1_35, ..BEHAVIOUR_V1_34 };
/// Behaviors of the evaluation in Kubernetes 1.36 without the feature DRAListTypeAttributes.
pub const BEHAVIOUR_V1_36: ReleaseBehaviour =
    ReleaseBehaviour { env: super::V1_36, lists_need_feature: true, ..BEHAVIOUR_V1_35 }
        .with_list_attributes_feature_gate(false);
/// Behaviors of the evaluation in Kubernetes 1.37.
pub const BEHAVIOUR_V1_37: ReleaseBehaviour = ReleaseBehaviour {
    env: super::V1_37,
    refuses_list_attributes: false,
    lists_need_feature: false,
    range_is_checked: true,
    includes_limit: None,
    empty_part_checks_range: true,
    optional_or_needs_optional: true,
    sums_change_quantities: false,
    affix_costs_its_own_size: true,
};

/// A compiled device selector, which can be evaluated for devices.
#[derive(Debug)]
pub struct Program {
    tree: Tree,
    plan: Plan,
    behaviour: ReleaseBehaviour,
    /// True if the expression may read the device's capacity.
    needs_capacity: bool,
    is_deep: bool,
}

/// The compile error of an expression, as the scheduler prints it after `CEL compile error: `.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError(pub String);

impl From<CheckOutcome> for CompileError {
    fn from(outcome: CheckOutcome) -> CompileError {
        CompileError(match outcome {
            CheckOutcome::CompileError(text)
            | CheckOutcome::WrongType(text)
            | CheckOutcome::ProgramError(text) => text,
            CheckOutcome::Unchecked(reason) => reason.to_owned(),
            CheckOutcome::Accepted { .. } | CheckOutcome::TooComplex { .. } => String::new(),
        })
    }
}

/// The reason why the evaluation of a selector has no result for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvaluationError {
    /// The evaluation fails. The text is the scheduler's, after `CEL runtime error: `.
    Failed(String),
    /// The result depends on the named feature, which is not supported.
    Unsupported(&'static str),
}

impl std::fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EvaluationError::Failed(text) => f.write_str(text),
            EvaluationError::Unsupported(what) => write!(f, "not supported by Tollgate: {what}"),
        }
    }
}

impl Program {
    /// Compiles a device selector.
    pub fn compile(expression: &str, behaviour: &ReleaseBehaviour) -> Result<Program, CompileError> {
        let is_deep = needs_deep_stack(expression, behaviour.env, usize::MAX)?;
        let compile = || compile_on_current_stack(expression, behaviour, is_deep);
        if is_deep { stacker::grow(DEEP_STACK, compile) } else { compile() }
    }

    /// Evaluates the selector for a device.
    pub fn evaluate(&self, device: &Device) -> Result<bool, EvaluationError> {
        if self.is_deep {
            stacker::grow(DEEP_STACK, || self.evaluate_on_current_stack(device))
        } else {
            self.evaluate_on_current_stack(device)
        }
    }

    fn evaluate_on_current_stack(&self, device: &Device) -> Result<bool, EvaluationError> {
        let failed = |text: String| Err(EvaluationError::Failed(text));
        if self.behaviour.refuses_list_attributes
            && let Some(name) = device.first_list_valued_attribute_name()
        {
            return failed(format!("attribute {name}: unsupported attribute value"));
        }
        let variable = device.variable_value(self.needs_capacity);
        match Evaluation::new(&self.tree, &self.plan, &self.behaviour, variable).eval(self.tree.root()) {
            Ok(Value::Bool(answer)) => Ok(answer),
            Ok(other) => failed(not_a_bool_message(&other)),
            Err(EvalFailure::Error(text) | EvalFailure::Cancelled(text)) => failed(text.to_string()),
            Err(EvalFailure::Unsupported(what)) => Err(EvaluationError::Unsupported(what)),
        }
    }
}

fn compile_on_current_stack(
    expression: &str,
    behaviour: &ReleaseBehaviour,
    is_deep: bool,
) -> Result<Program, CompileError> {
    let selector = ExpressionPurpose::Selector;
    let (tree, checked) = check_result_type(expression, selector, behaviour.env, usize::MAX)?;
    let plan = planner::plan_expression(&tree, &checked, behaviour, true).map_err(CompileError)?;
    Ok(Program { needs_capacity: plan.needs_capacity(), tree, plan, behaviour: *behaviour, is_deep })
}

/// True if converting a literal by `function`, such as `duration`, fails.
pub(crate) fn conversion_fails(function: &str, literal: &Literal) -> bool {
    let converted = library::conversions::convert(function, &planner::literal_value(literal));
    converted.is_none_or(|converted| converted.is_err())
}

/// The message for a result that is not a boolean, which depends on its type.
fn not_a_bool_message(value: &Value) -> String {
    let reason = match value {
        Value::String(_) => "unsupported native conversion from string to 'bool'".to_owned(),
        Value::Int(_) => "unsupported type conversion from 'int' to bool".to_owned(),
        Value::Uint(_) => "unsupported type conversion from 'uint' to bool".to_owned(),
        Value::Double(_) => "type conversion error from Double to 'bool'".to_owned(),
        Value::Bytes(_) => "type conversion error from Bytes to 'bool'".to_owned(),
        Value::Duration(_) => "type conversion error from 'Duration' to 'bool'".to_owned(),
        Value::Timestamp(_) => "type conversion error from 'Timestamp' to 'bool'".to_owned(),
        Value::List(_) => "type conversion error from list to 'bool'".to_owned(),
        Value::Map(_) => "type conversion error from map to 'bool'".to_owned(),
        Value::Null => "type conversion error from 'null_type' to 'bool'".to_owned(),
        Value::Type(_) => "type conversion not supported for 'type'".to_owned(),
        Value::Optional(None) => "optional.none() dereference".to_owned(),
        Value::Optional(Some(inner)) => {
            return not_a_bool_message_for_type(value.type_name(), &not_a_bool_message(inner));
        }
        _ => {
            let name = value.go_type().trim_start_matches('*').trim_start_matches("cel.");
            format!("type conversion error from '{name}' to 'bool'")
        }
    };
    not_a_bool_message_for_type(value.type_name(), &reason)
}

fn not_a_bool_message_for_type(type_name: &str, reason: &str) -> String {
    format!("CEL result of type {type_name} could not be converted to bool: {reason}")
}
