//! The Kubernetes CEL libraries: lists, sets, texts, regular expressions, quantities, times, IP addresses, semantic
//! versions. One file per library.
//!
//! Reading the arguments once is already charged (`rewrite`), so a function only charges for additional work. Nothing here
//! reads a clock, resolves a name or loads a time zone.
//!
//! Invariant: the work of every function is bounded by the steps it charges.

pub(super) mod lists;
pub(super) mod network;
pub(super) mod patterns;
pub(super) mod quantity;
pub(super) mod semver;
pub(super) mod strings;
pub(super) mod time;

#[cfg(test)]
mod tests;

use ::cel::common::types::{CelBool, CelInt, CelString};
use ::cel::common::value::{CowVal, FromVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};

use super::functions::budget_exhausted;
use super::meter::charge;

/// The result of a CEL function.
pub(super) type CelResult<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// The cost of creating or comparing one value.
const VALUE_COST: u64 = 4;

/// Functions whose name begins with that of their library.
pub(super) const QUALIFIED_FUNCTIONS: &[&str] =
    &["sets.contains", "sets.equivalent", "sets.intersects", "ip.isCanonical", "strings.quote"];

/// Checks a string literal. The error explains why it is invalid.
type Check = fn(&str) -> Result<(), String>;

/// Functions whose string literals are checked when the policy is loaded.
pub(super) const CHECKED_LITERALS: &[(&str, Check)] = &[
    ("matches", patterns::check),
    ("find", patterns::check),
    ("findAll", patterns::check),
    ("quantity", |text| quantity::CelQuantity::read(text).map(drop)),
    ("semver", |text| semver::CelSemver::read(text).map(drop)),
    ("ip", |text| network::CelIp::read(text).map(drop)),
    ("cidr", |text| network::CelCidr::read(text).map(drop)),
];

/// Declares all functions.
pub(super) fn add(env: &mut Env) -> Result<(), DeclarationError> {
    lists::add(env)?;
    network::add(env)?;
    patterns::add(env)?;
    quantity::add(env)?;
    semver::add(env)?;
    strings::add(env)?;
    time::add(env)
}

/// Implements `Val` for a type; the rest are capabilities, as methods of `Val`.
macro_rules! cel_type {
    ($rust:ident, $constant:ident, $name:literal; $($capabilities:tt)*) => {
        pub(super) const $constant: ::cel::common::types::Type =
            ::cel::common::types::Type::new_unspecified_type($name);

        impl ::cel::common::value::Val for $rust {
            fn get_type(&self) -> &::cel::common::types::Type {
                <Self as ::cel::common::value::Val>::cel_type()
            }

            fn cel_type() -> &'static ::cel::common::types::Type {
                static TYPE: ::cel::common::types::Type = $constant;
                &TYPE
            }

            fn equals(&self, other: &dyn ::cel::common::value::Val) -> bool {
                other.downcast_ref::<$rust>().is_some_and(|other| self == other)
            }

            fn clone_as_boxed<'v>(&self) -> Box<dyn ::cel::common::value::Val + 'v>
            where
                Self: 'v,
            {
                Box::new(self.clone())
            }

            fn as_any(&self) -> Option<&dyn std::any::Any> {
                Some(self)
            }

            $($capabilities)*
        }

        impl ::cel::common::value::StaticVal for $rust {}
    };
}
use cel_type;

/// Charges for creating or comparing one value.
fn charge_value() -> Result<(), ExecutionError> {
    charge_steps(VALUE_COST)
}

fn charge_steps(count: u64) -> Result<(), ExecutionError> {
    if charge(count) { Ok(()) } else { Err(budget_exhausted()) }
}

/// An argument of a type that its overload was declared with.
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

fn text<'a>(arguments: &'a [CowVal<'_, '_>], index: usize) -> Result<&'a str, ExecutionError> {
    argument::<CelString<'_>>(arguments, index).map(CelString::inner)
}

fn function_error(function: &str, reason: impl Into<String>) -> ExecutionError {
    ExecutionError::function_error(function, reason.into())
}

fn boolean<'b, 'v>(value: bool) -> CowVal<'b, 'v> {
    CowVal::owned(CelBool::from(value))
}

fn integer<'b, 'v>(value: i64) -> CowVal<'b, 'v> {
    CowVal::owned(CelInt::from(value))
}

fn string<'b, 'v>(value: impl Into<String>) -> CowVal<'b, 'v> {
    CowVal::owned(CelString::from(value.into()))
}
