//! Quantities: `quantity('40Gi')` and what Kubernetes lets expressions do with one.

use std::cmp::Ordering;

use ::cel::common::types::{CelDouble, CelInt, INT_TYPE, STRING_TYPE};
use ::cel::common::value::CowVal;
use ::cel::{DeclarationError, Env, ExecutionError};

use super::{CelResult, argument, boolean, cel_type, charge_value, function_error, integer, text};
use tollgate_formats::quantity::Quantity;

/// Bytes of a quantity, so that comparing two costs next to nothing.
const MAX_LENGTH: usize = 256;

/// A quantity as a CEL value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CelQuantity(Quantity<'static>);

cel_type! { CelQuantity, AMOUNT, "kubernetes.Quantity"; }

impl CelQuantity {
    /// Reads a quantity; blanks are not part of one.
    pub(super) fn read(text: &str) -> Result<CelQuantity, String> {
        if text.len() > MAX_LENGTH {
            return Err(format!(
                "a quantity of {} bytes is too long; the maximum is {MAX_LENGTH}",
                text.len()
            ));
        }
        if text.trim() != text {
            return Err(format!("{text:?} is not a quantity: remove the spaces around it"));
        }
        let quantity = Quantity::parse(text);
        quantity
            .map(|quantity| CelQuantity(quantity.into_owned()))
            .map_err(|error| format!("{text:?} is not a quantity: {}", error.text()))
    }

    fn as_integer(&self) -> Option<i64> {
        let too_large = self.0.exceeds_i64() || self.0.negated().exceeds_i64();
        (!self.0.is_fractional() && !too_large).then(|| self.0.value())
    }
}

pub(super) fn add(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload("quantity", "string_to_quantity", vec![STRING_TYPE], |arguments| {
        charge_value()?;
        let quantity_argument =
            CelQuantity::read(text(&arguments, 0)?).map_err(|reason| function_error("quantity", reason))?;
        Ok(CowVal::owned(quantity_argument))
    })?;
    env.add_overload("isQuantity", "is_quantity", vec![STRING_TYPE], |arguments| {
        charge_value()?;
        Ok(boolean(CelQuantity::read(text(&arguments, 0)?).is_ok()))
    })?;
    env.add_overload("sign", "quantity_sign", vec![AMOUNT], |arguments| {
        Ok(integer(i64::from(quantity_argument(&arguments, 0)?.sign())))
    })?;
    env.add_member_overload("sign", "quantity.sign", AMOUNT, Vec::new(), |arguments| {
        Ok(integer(i64::from(quantity_argument(&arguments, 0)?.sign())))
    })?;
    env.add_member_overload("isInteger", "quantity.isInteger", AMOUNT, Vec::new(), |arguments| {
        Ok(boolean(argument::<CelQuantity>(&arguments, 0)?.as_integer().is_some()))
    })?;
    env.add_member_overload("asInteger", "quantity.asInteger", AMOUNT, Vec::new(), |arguments| {
        let quantity_argument = argument::<CelQuantity>(&arguments, 0)?;
        quantity_argument
            .as_integer()
            .map(integer)
            .ok_or_else(|| function_error("asInteger", "cannot convert value to integer"))
    })?;
    env.add_member_overload("asApproximateFloat", "quantity.float", AMOUNT, Vec::new(), |arguments| {
        let text = quantity_argument(&arguments, 0)?.exact_text();
        super::charge_steps((16 + text.len() / 8) as u64)?;
        Ok(CowVal::owned(CelDouble::from(text.parse::<f64>().unwrap_or(f64::NAN))))
    })?;
    let one = || vec![AMOUNT];
    env.add_member_overload("isGreaterThan", "quantity.isGreaterThan", AMOUNT, one(), |arguments| {
        Ok(boolean(compare(&arguments)?.is_gt()))
    })?;
    env.add_member_overload("isLessThan", "quantity.isLessThan", AMOUNT, one(), |arguments| {
        Ok(boolean(compare(&arguments)?.is_lt()))
    })?;
    env.add_member_overload("compareTo", "quantity.compareTo", AMOUNT, one(), |arguments| {
        Ok(integer(compare(&arguments)? as i64))
    })?;
    env.add_member_overload("add", "quantity.add", AMOUNT, one(), |arguments| {
        sum(&arguments, quantity_argument(&arguments, 1)?)
    })?;
    env.add_member_overload("sub", "quantity.sub", AMOUNT, one(), |arguments| {
        sum(&arguments, &quantity_argument(&arguments, 1)?.negated())
    })?;
    env.add_member_overload("add", "quantity.add.int", AMOUNT, vec![INT_TYPE], |arguments| {
        sum(&arguments, &as_integer(&arguments)?)
    })?;
    env.add_member_overload("sub", "quantity.sub.int", AMOUNT, vec![INT_TYPE], |arguments| {
        sum(&arguments, &as_integer(&arguments)?.negated())
    })
}

fn quantity_argument<'a>(
    arguments: &'a [CowVal<'_, '_>],
    index: usize,
) -> Result<&'a Quantity<'static>, ExecutionError> {
    argument::<CelQuantity>(arguments, index).map(|quantity_argument| &quantity_argument.0)
}

fn compare(arguments: &[CowVal<'_, '_>]) -> Result<Ordering, ExecutionError> {
    charge_value()?;
    Ok(quantity_argument(arguments, 0)?.cmp(quantity_argument(arguments, 1)?))
}

/// The second argument, an int, as a quantity.
fn as_integer(arguments: &[CowVal<'_, '_>]) -> Result<Quantity<'static>, ExecutionError> {
    let number = argument::<CelInt>(arguments, 1)?.inner().to_string();
    Quantity::parse(&number)
        .map(Quantity::into_owned)
        .map_err(|error| function_error("quantity", error.text()))
}

fn sum<'b, 'v>(arguments: &[CowVal<'b, 'v>], more: &Quantity<'_>) -> CelResult<'b, 'v> {
    // A sum has at most a thousand places.
    super::charge_steps(128)?;
    let sum = quantity_argument(arguments, 0)?
        .add(more)
        .ok_or_else(|| function_error("quantity", "the sum has too many digits"))?;
    Ok(CowVal::owned(CelQuantity(sum)))
}
