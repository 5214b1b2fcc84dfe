//! Constants, and conversions between them, with the server's errors.
//!
//! The conversions are those of a running expression; what differs is that a missing overload is named. What is in a
//! list or a map does not matter: nothing converts them.

use crate::evaluate::library::conversions::convert;
use crate::evaluate::planner::literal_value;
use crate::evaluate::value::{EvalFailure, Value, no_such_overload};
use crate::outcome::CelEnv;
use crate::tree::Literal;

/// The value of an expression that the API server computes when it compiles.
#[derive(Clone, Debug)]
pub(super) enum Constant {
    Scalar(Value),
    List { is_empty: bool },
    Map,
}

impl From<&Literal> for Constant {
    fn from(literal: &Literal) -> Constant {
        Constant::Scalar(literal_value(literal))
    }
}

/// True if the function is a conversion, which the server evaluates for constants. cel-go `IsTypeConversionFunction`
pub(crate) fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint"
    )
}

impl Constant {
    /// Go's name of the type if its values cannot be used as an index; `None` if they can.
    pub(super) fn non_index_type(&self) -> Option<&'static str> {
        match self {
            Constant::Scalar(
                Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_),
            ) => None,
            Constant::Scalar(value) => Some(value.go_type()),
            Constant::List { .. } => Some("*types.baseList"),
            Constant::Map => Some("*types.baseMap"),
        }
    }

    /// The result of a conversion function for this constant; the error is the server's text.
    pub(super) fn convert_by(self, function: &str, env: CelEnv) -> Result<Constant, String> {
        let from = match &self {
            Constant::Scalar(value) if has_conversion(function, value, env) => {
                return match convert(function, value).unwrap_or_else(no_such_overload) {
                    Ok(converted) => Ok(Constant::Scalar(converted)),
                    Err(EvalFailure::Error(text) | EvalFailure::Cancelled(text)) => Err(text.to_string()),
                    Err(EvalFailure::Unsupported(what)) => Err(what.to_owned()),
                };
            }
            _ if function == "dyn" => return Ok(self),
            _ if function == "type" => return Ok(Constant::Scalar(Value::Type("type"))),
            Constant::Scalar(value) => value.type_name(),
            Constant::List { .. } => "list",
            Constant::Map => "map",
        };
        Err(format!("no such overload: {function}({from})"))
    }
}

/// True if the conversion is declared for values of that type.
fn has_conversion(function: &str, value: &Value, env: CelEnv) -> bool {
    use Value::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    match function {
        "bool" => matches!(value, Bool(_) | String(_)),
        "bytes" => matches!(value, Bytes(_) | String(_)),
        "double" => matches!(value, Double(_) | Int(_) | Uint(_) | String(_)),
        "duration" => {
            matches!(value, Duration(_) | String(_)) || matches!(value, Int(_)) && env.duration_of_int
        }
        "int" => matches!(value, Int(_) | Uint(_) | Double(_) | Duration(_) | Timestamp(_) | String(_)),
        "uint" => matches!(value, Uint(_) | Int(_) | Double(_) | String(_)),
        "timestamp" => matches!(value, Timestamp(_) | Int(_) | String(_)),
        "string" => {
            matches!(value, Bool(_) | Int(_) | Uint(_) | Double(_) | Duration(_) | Timestamp(_))
                || matches!(value, Bytes(_) | String(_))
        }
        _ => false,
    }
}
