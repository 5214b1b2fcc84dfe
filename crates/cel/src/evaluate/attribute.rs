//! Resolves attributes. An attribute is a variable or a value, with the selections and indexes that follow it.
//!
//! cel-go `interpreter/attributes.go`

use super::plan::{AttributeBase, AttributeId, Qualifier, QualifierKey};
use super::run::Evaluation;
use super::value::{EvalFailure, Evaluated, Value, eval_error, no_such_overload};
use super::{compare, library};

/// The value that a qualifier selects, or `None` if it does not exist.
type QualifiedValue = Result<Option<Value>, EvalFailure>;

impl Evaluation<'_> {
    /// The value of an attribute: of its variable or value, with all its qualifiers applied.
    pub(super) fn resolve(&mut self, id: AttributeId) -> Evaluated {
        let plan = self.plan;
        let Some(attribute) = plan.attribute(id) else { return no_such_overload() };
        let value = match &attribute.base {
            AttributeBase::Variable { name, is_global } => self.variable(name, *is_global)?,
            AttributeBase::Step(step) => self.eval(*step)?,
            AttributeBase::Conditional { condition, truthy, falsy } => {
                return match self.eval(*condition)? {
                    Value::Bool(true) => self.resolve(*truthy),
                    Value::Bool(false) => self.resolve(*falsy),
                    _ => no_such_overload(),
                };
            }
        };
        self.apply_qualifiers(value, &attribute.qualifiers)
    }

    /// Applies qualifiers to a value, one after the other; ends with an empty optional where an optional one finds
    /// nothing.
    fn apply_qualifiers(&mut self, value: Value, qualifiers: &[Qualifier]) -> Evaluated {
        let (mut value, mut is_optional) = match value {
            Value::Optional(None) => return Ok(Value::OPTIONAL_NONE),
            Value::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, false),
        };
        for qualifier in qualifiers {
            is_optional |= qualifier.is_optional;
            value = if is_optional {
                match self.qualify_if_present(&value, qualifier)? {
                    Some(found) => found,
                    None => return Ok(Value::OPTIONAL_NONE),
                }
            } else {
                self.qualify_or_fail(&value, qualifier)?
            };
        }
        Ok(if is_optional { Value::optional_of(value) } else { value })
    }

    /// Applies one qualifier to a value; an error if it selects nothing. For a presence test, as in `has()`, returns
    /// whether it selects something instead.
    fn qualify_or_fail(&mut self, value: &Value, qualifier: &Qualifier) -> Evaluated {
        let found = match self.qualifier_key(qualifier) {
            Ok(key) if qualifier.only_tests => {
                element_at_key(value, &key).map(|found| Value::Bool(found.is_some()))
            }
            Ok(key) => element_at_key(value, &key).and_then(|found| match found {
                Some(found) => Ok(found),
                None => missing_key_error(value, &key),
            }),
            Err(failure) => Err(failure),
        };
        if let Err(EvalFailure::Cancelled(_) | EvalFailure::Unsupported(_)) = found {
            return found;
        }
        self.meter_qualifier(qualifier, found.as_ref().ok())?;
        found
    }

    /// Applies a qualifier, and returns `None` instead of an error if the value does not exist.
    fn qualify_if_present(&mut self, value: &Value, qualifier: &Qualifier) -> QualifiedValue {
        let key = self.qualifier_key(qualifier)?;
        let found = element_at_key(value, &key)?;
        if found.is_some() {
            self.meter_qualifier(qualifier, found.as_ref())?;
        }
        Ok(found)
    }

    fn meter_qualifier(&mut self, qualifier: &Qualifier, value: Option<&Value>) -> Result<(), EvalFailure> {
        if let QualifierKey::Computed(attribute) = qualifier.key {
            self.meter.pop_values_and_all_above(self.plan.attribute_cost_id(attribute));
        }
        self.meter.add(1);
        self.meter.record_value_and_check_limit(qualifier.id, value)
    }

    fn qualifier_key(&mut self, qualifier: &Qualifier) -> Evaluated {
        let key = match &qualifier.key {
            QualifierKey::Constant(key) => return Ok(key.clone()),
            QualifierKey::Attribute(attribute) | QualifierKey::Computed(attribute) => {
                self.resolve(*attribute)?
            }
        };
        if key.can_be_index_or_key() {
            Ok(key)
        } else {
            eval_error(format!("invalid qualifier type: {}", key.go_type()))
        }
    }
}

/// The element or entry of a value with this key; `None` if it does not exist.
fn element_at_key(value: &Value, key: &Value) -> QualifiedValue {
    match value {
        Value::Map(map) => map.indexed_value_or_default(key),
        Value::List(list) => Ok(usize::try_from(list_index(key)?).ok().and_then(|index| list.get(index))),
        _ => Ok(None),
    }
}

/// The server's error for a key that a list or map does not have.
fn missing_key_error(value: &Value, key: &Value) -> Evaluated {
    let text = library::go_value_text(key);
    match value {
        Value::List(_) => eval_error(format!("index out of bounds: {text}")),
        _ => eval_error(format!("no such key: {text}")),
    }
}

/// The index that a key of a list represents; an error if it is not a whole number.
fn list_index(key: &Value) -> Result<i64, EvalFailure> {
    let index = match key {
        Value::Int(index) => Some(*index),
        Value::Uint(index) => i64::try_from(*index).ok(),
        Value::Double(index) => compare::lossless_int(*index),
        other => return eval_error(format!("unsupported index type '{}' in list", other.type_name())),
    };
    let failed = || eval_error(format!("unsupported index value {} in list", library::go_value_text(key)));
    index.map_or_else(failed, Ok)
}
