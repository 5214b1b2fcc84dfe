//! Quantities in expressions.
//!
//! Upstream's quantities are pointers, and some operations change the quantity they point to: comparing with a decimal
//! converts the left side to a decimal, and until 1.36 adding to a decimal changes it. Values therefore share a cell.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex};

use tollgate_formats::quantity::{ParseError, Quantity};

use super::{CallContext, semver};
use crate::evaluate::collections::lock_ignoring_poison;
use crate::evaluate::value::{Evaluated, Value, cost_limit_exceeded, eval_error};

/// A decimal that several values share, as they share a pointer upstream.
type SharedDecimal = Arc<Mutex<Quantity<'static>>>;

#[derive(Clone, Debug)]
pub(in crate::evaluate) struct SharedQuantity {
    /// The amount. An integer belongs to this value alone; a decimal may be shared with other values.
    cell: Arc<Mutex<Amount>>,
    /// True for the result of `add` or `sub`, which equals only itself when it is on the right side of `==`.
    pub(in crate::evaluate) is_computed: bool,
}

#[derive(Clone, Debug)]
enum Amount {
    Int(Quantity<'static>),
    Decimal(SharedDecimal),
}

impl SharedQuantity {
    pub(in crate::evaluate) fn new(quantity: Quantity<'static>) -> SharedQuantity {
        SharedQuantity { cell: Arc::new(Mutex::new(Amount::from_quantity(quantity))), is_computed: false }
    }

    pub(in crate::evaluate) fn cell_address(&self) -> usize {
        Arc::as_ptr(&self.cell).addr()
    }

    fn get(&self) -> Quantity<'static> {
        match &*lock_ignoring_poison(&self.cell) {
            Amount::Int(quantity) => quantity.clone(),
            Amount::Decimal(shared) => lock_ignoring_poison(shared).clone(),
        }
    }

    pub(in crate::evaluate) fn is_equal(&self, other: &SharedQuantity) -> bool {
        self.get() == other.get()
    }

    pub(in crate::evaluate) fn text(&self) -> String {
        self.get().text().into_owned()
    }

    fn compare_converting_left_to_decimal(&self, other: &SharedQuantity) -> Ordering {
        let (left, right) = (self.get(), other.get());
        if right.is_arbitrary_precision() && !left.is_arbitrary_precision() {
            *lock_ignoring_poison(&self.cell) = Amount::from_quantity(left.to_arbitrary_precision());
        }
        left.cmp(&right)
    }

    /// The sum or difference. If `shares` is true, a decimal on the left side is overwritten with the result.
    fn add_or_subtract_maybe_in_place(
        &self,
        other: &Quantity<'_>,
        subtracts: bool,
        shares: bool,
    ) -> Evaluated {
        let quantity = self.get();
        let sum = if subtracts { quantity.minus(other) } else { quantity.plus(other) };
        // Nobody can mean so many places; upstream takes minutes for them.
        let Some(sum) = sum else { return Err(cost_limit_exceeded()) };
        let amount = match &*lock_ignoring_poison(&self.cell) {
            Amount::Decimal(shared) if shares => {
                *lock_ignoring_poison(shared) = sum;
                Amount::Decimal(Arc::clone(shared))
            }
            _ => Amount::from_quantity(sum),
        };
        Ok(Value::Quantity(SharedQuantity { cell: Arc::new(Mutex::new(amount)), is_computed: true }))
    }
}

impl Amount {
    fn from_quantity(quantity: Quantity<'static>) -> Amount {
        if quantity.is_arbitrary_precision() {
            Amount::Decimal(Arc::new(Mutex::new(quantity)))
        } else {
            Amount::Int(quantity)
        }
    }
}

pub(super) fn try_call(name: &str, args: &[Value], context: &CallContext<'_>) -> Option<Evaluated> {
    let shares = context.behaviour.sums_change_quantities;
    Some(match (name, args) {
        ("quantity", [Value::String(text)]) => match parse_rejecting_blanks(text) {
            Ok(quantity) => Ok(Value::Quantity(SharedQuantity::new(quantity.into_owned_without_text()))),
            Err(problem) => eval_error(problem.message()),
        },
        ("isQuantity", [Value::String(text)]) => Ok(Value::Bool(parse_rejecting_blanks(text).is_ok())),
        ("sign", [Value::Quantity(quantity)]) => Ok(Value::Int(quantity.get().sign().into())),
        ("isInteger", [Value::Quantity(quantity)]) => Ok(Value::Bool(quantity.get().as_i64().is_some())),
        ("asInteger", [Value::Quantity(quantity)]) => match quantity.get().as_i64() {
            Some(value) => Ok(Value::Int(value)),
            None => eval_error("cannot convert value to integer"),
        },
        ("asApproximateFloat", [Value::Quantity(quantity)]) => {
            Ok(Value::Double(quantity.get().approximate_f64()))
        }
        ("add" | "sub", [Value::Quantity(quantity), Value::Quantity(other)]) => {
            quantity.add_or_subtract_maybe_in_place(&other.get(), name == "sub", shares)
        }
        ("add" | "sub", [Value::Quantity(quantity), Value::Int(other)]) => {
            quantity.add_or_subtract_maybe_in_place(&Quantity::from_i64(*other), name == "sub", shares)
        }
        ("compareTo", _) => Ok(Value::Int(compare_quantities_or_versions(args)? as i64)),
        ("isLessThan", _) => Ok(Value::Bool(compare_quantities_or_versions(args)?.is_lt())),
        ("isGreaterThan", _) => Ok(Value::Bool(compare_quantities_or_versions(args)?.is_gt())),
        _ => return None,
    })
}

/// The order of two quantities or two versions, which the same functions compare; `None` for other values.
fn compare_quantities_or_versions(args: &[Value]) -> Option<Ordering> {
    match args {
        [Value::Quantity(left), Value::Quantity(right)] => {
            Some(left.compare_converting_left_to_decimal(right))
        }
        [Value::Semver(left), Value::Semver(right)] => Some(semver::Semver::order(left, right)),
        _ => None,
    }
}

/// Reads a quantity, around which the server allows no blanks.
fn parse_rejecting_blanks(text: &str) -> Result<Quantity<'_>, ParseError> {
    if text.trim().len() == text.len() { Quantity::parse(text) } else { Err(ParseError::FormatWrong) }
}
