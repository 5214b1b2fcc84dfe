//! The Kubernetes CEL libraries: lists, sets, texts, regular expressions, quantities, times, IP addresses, semantic
//! versions. One file per library.
//!
//! Reading the arguments once is already charged (`rewrite`), so a function only charges for additional work. Nothing
//! here reads a clock, resolves a name or loads a time zone.
//!
//! Invariant: the work of every function is bounded by the steps it charges.

mod kubernetes;
pub(super) mod lists;
pub(super) mod patterns;
pub(super) mod strings;

#[cfg(test)]
mod tests;

use ::cel::common::types::{CelInt, CelString};
use ::cel::common::value::{CowVal, FromVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};

use super::functions::{CelResult, boolean, charge_steps};

/// Steps for making or comparing one value of the Kubernetes libraries, such as a quantity.
const VALUE_COST: u64 = 4;

/// Functions whose name begins with that of their library.
pub(super) const QUALIFIED_FUNCTIONS: &[&str] =
    &["sets.contains", "sets.equivalent", "sets.intersects", "ip.isCanonical", "strings.quote"];

/// Checks the string literal that a function is called with. The error explains why it is invalid.
pub(super) fn check_literal(function: &str, text: &str) -> Result<(), String> {
    let is_checked = matches!(function, "quantity" | "semver" | "ip" | "cidr") || function.starts_with("get");
    if is_checked { kubernetes::check_literal(function, text) } else { Ok(()) }
}

/// Declares all library functions that policies can use.
pub(super) fn declare_functions(env: &mut Env) -> Result<(), DeclarationError> {
    kubernetes::declare_functions(env)?;
    lists::declare_functions(env)?;
    patterns::declare_functions(env)?;
    strings::declare_functions(env)
}

/// Returns the argument at an index, converted to the type that the overload was declared with; an error if it has
/// another type.
fn argument<'a, 'b, 'v, T: FromVal<'a, 'v>>(
    arguments: &'a [CowVal<'b, 'v>],
    index: usize,
) -> Result<&'a T, ExecutionError> {
    let value = arguments
        .get(index)
        .ok_or_else(|| ExecutionError::invalid_argument_count(index + 1, arguments.len()))?;
    let value: &'a (dyn Val + 'v) = value.as_ref();
    let got = || ExecutionError::UnexpectedType {
        got: value.get_type().name().to_owned(),
        want: "another type".to_owned(),
    };
    T::from_val(value).ok_or_else(got)
}

fn string_at<'a>(arguments: &'a [CowVal<'_, '_>], index: usize) -> Result<&'a str, ExecutionError> {
    argument::<CelString<'_>>(arguments, index).map(CelString::inner)
}

fn function_error(function: &str, reason: impl Into<String>) -> ExecutionError {
    ExecutionError::function_error(function, reason.into())
}

fn integer<'b, 'v>(value: i64) -> CowVal<'b, 'v> {
    CowVal::owned(CelInt::from(value))
}

fn string<'b, 'v>(value: impl Into<String>) -> CowVal<'b, 'v> {
    CowVal::owned(CelString::from(value.into()))
}
