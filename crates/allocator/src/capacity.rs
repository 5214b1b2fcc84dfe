//! Consumable capacity: the amount of a device's capacity that a request consumes, and whether that amount is left.
//!
//! Quantities are exact; sums are kept in billionths, the smallest unit of a quantity. A device that does not allow
//! multiple allocations is checked in the same way (a request is then a minimum), but its caller records no usage.

use std::sync::LazyLock;
use tollgate_api::profile::AllocatorSemantics;
use tollgate_api::view::{self, PolicyRange, RequestPolicy};
use tollgate_formats::quantity::Quantity;

/// One consumable capacity of a device, such as its memory.
#[derive(Clone, Debug)]
pub(crate) struct Capacity<'d> {
    pub(crate) name: &'d str,
    value: Quantity<'d>,
    /// The `requestPolicy` of the capacity: its default and the amounts that requests may consume. Boxed because few
    /// capacities have one and it is large.
    policy: Option<Box<CapacityPolicy<'d>>>,
}

/// The request policy of a capacity: the amount that a request without a capacity requirement consumes, and the
/// valid amounts.
#[derive(Clone, Debug)]
struct CapacityPolicy<'d> {
    default: Option<Quantity<'d>>,
    range: Option<ValidRange<'d>>,
    valid_values: Vec<Quantity<'d>>,
}

#[derive(Clone, Debug)]
struct ValidRange<'d> {
    min: Option<Quantity<'d>>,
    max: Option<Quantity<'d>>,
    step: Option<Quantity<'d>>,
}

/// Why the amount that a request consumes cannot be computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CapacityError {
    /// The requested amount, or the amount it is rounded up to, overflows the arithmetic for the device's
    /// range.
    NotRepresentable { capacity: String, detail: String },
    /// The computed amount is below zero.
    Negative { capacity: String },
}

impl std::fmt::Display for CapacityError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let quoted = |name: &str| tollgate_formats::gofmt::quote(name);
        match self {
            CapacityError::NotRepresentable { capacity, detail } => write!(
                f,
                "capacity {}: capacity request cannot be represented in the device's range arithmetic: {detail}",
                quoted(capacity)
            ),
            CapacityError::Negative { capacity } => {
                write!(f, "capacity {}: capacity value is negative", quoted(capacity))
            }
        }
    }
}

/// Error text for an amount of capacity that the scheduler's integer arithmetic cannot represent.
type UnrepresentableAmountMessage = String;

impl<'d> Capacity<'d> {
    pub(crate) fn new(name: &'d str, capacity: view::Capacity<'d>) -> Capacity<'d> {
        let value = capacity.quantity().unwrap_or(Quantity::ZERO);
        Capacity { name, value, policy: capacity.request_policy().map(CapacityPolicy::new).map(Box::new) }
    }

    /// The remaining capacity when `used` billionths are consumed, in the same format as the published value.
    pub(crate) fn remaining_after(&self, used: i128) -> Quantity<'static> {
        const NANO_PER_UNIT: i128 = 1_000_000_000;
        let left = self.value.nano_value().saturating_sub(used);
        match i64::try_from(left / NANO_PER_UNIT) {
            Ok(whole) if left % NANO_PER_UNIT == 0 => self.value.in_same_format(whole, 0),
            _ => self.value.in_same_format(i64::try_from(left).unwrap_or(i64::MAX), -9),
        }
    }

    /// The amount that a request consumes. Without a requested amount, this is the policy's default or the
    /// whole capacity; a requested amount is rounded up according to the policy.
    fn consumed_amount(
        &self,
        requested: Option<&Quantity<'d>>,
        semantics: &AllocatorSemantics,
    ) -> Result<Quantity<'d>, UnrepresentableAmountMessage> {
        let Some(requested) = requested else {
            let default = self.policy.as_ref().and_then(|policy| policy.default.as_ref());
            return Ok(default.unwrap_or(&self.value).clone());
        };
        let Some(policy) = &self.policy else { return Ok(requested.clone()) };
        if let Some(ValidRange { min: Some(min), step, .. }) = &policy.range {
            return match step {
                _ if requested < min => Ok(min.clone()),
                None => Ok(requested.clone()),
                Some(step) => policy.round_up_to_step(requested, min, step, semantics),
            };
        }
        let next_valid = policy.valid_values.iter().find(|&value| requested <= value);
        Ok(next_valid.unwrap_or(requested).clone())
    }
}

impl<'d> CapacityPolicy<'d> {
    fn new(policy: RequestPolicy<'d>) -> CapacityPolicy<'d> {
        let range = policy.valid_range().map(|range: PolicyRange<'d>| ValidRange {
            min: range.min(),
            max: range.max(),
            step: range.step(),
        });
        let valid_values = policy.valid_values().items().filter_map(view::quantity).collect();
        CapacityPolicy { default: policy.default(), range, valid_values }
    }

    // upstream v1.36, v1.37 roundUpRange
    fn round_up_to_step(
        &self,
        requested: &Quantity<'d>,
        min: &Quantity<'d>,
        step: &Quantity<'d>,
        semantics: &AllocatorSemantics,
    ) -> Result<Quantity<'d>, UnrepresentableAmountMessage> {
        // The format of the result, where it is not that of the step.
        static BINARY_FORMAT: LazyLock<Quantity<'static>> =
            LazyLock::new(|| Quantity::parse("1Ki").unwrap_or(Quantity::ZERO));
        let milli = self.uses_thousandths(semantics);
        let strict = semantics.unrepresentable_request_is_error;
        let read = |quantity: &Quantity<'_>| if milli { quantity.milli_value() } else { quantity.value() };
        if milli && !requested.fits_milli() {
            return Err(format!("request {} is not a representable milli value", requested.text()));
        }
        if !milli && strict && requested.exceeds_i64_max() {
            return Err(format!("request {} exceeds MaxInt64", requested.text()));
        }
        let (wanted, min, by) = (read(requested), read(min), read(step));
        let added = wanted.wrapping_sub(min);
        let Some((steps, rest)) = added.checked_div(by).zip(added.checked_rem(by)) else {
            return Ok(requested.clone());
        };
        let steps = steps.wrapping_add(i64::from(rest != 0));
        let rounded = by.checked_mul(steps).and_then(|rounded| rounded.checked_add(min));
        if strict && rounded.is_none() {
            let limit = if milli { "the milli-value range" } else { "MaxInt64" };
            return Err(format!("rounding request {} up to the next step passes {limit}", requested.text()));
        }
        let rounded = by.wrapping_mul(steps).wrapping_add(min);
        Ok(match milli {
            true if rounded % 1000 == 0 => step.in_same_format(rounded / 1000, 0),
            true => step.in_same_format(rounded, -3),
            false if semantics.rounded_in_unit_of_step => step.in_same_format(rounded, 0),
            false => BINARY_FORMAT.in_same_format(rounded, 0),
        })
    }

    /// True if the range is computed in thousandths, which requires that all its values are whole
    /// thousandths.
    fn uses_thousandths(&self, semantics: &AllocatorSemantics) -> bool {
        let Some(ValidRange { min, max, step }) = &self.range else { return false };
        let fits = [min, max, step].into_iter().flatten().all(Quantity::fits_milli);
        semantics.fractional_ranges && fits && step.as_ref().is_none_or(|step| step.milli_value() >= 1)
    }

    /// True if a request may consume this amount: the default, one of the valid values, or a step of the
    /// range.
    fn is_valid_amount(&self, taken: &Quantity<'_>, semantics: &AllocatorSemantics) -> bool {
        if self.default.as_ref() == Some(taken) {
            return true;
        }
        let Some(ValidRange { min, max, step }) = &self.range else {
            return self.valid_values.is_empty() || self.valid_values.iter().any(|value| value == taken);
        };
        if max.as_ref().is_some_and(|max| taken > max) {
            return false;
        }
        let Some(step) = step else { return true };
        let milli = self.uses_thousandths(semantics);
        let read = |quantity: &Quantity<'_>| if milli { quantity.milli_value() } else { quantity.value() };
        let min = min.as_ref().map_or(0, read);
        let on_step = read(taken).wrapping_sub(min).checked_rem(read(step)) == Some(0);
        on_step && (!milli || taken.fits_milli())
    }
}

/// Amounts of a device's capacities in billionths of their unit, each with the name of the capacity.
pub(crate) type CapacityAmounts<'d> = Vec<(&'d str, i128)>;

/// The amount of the capacity with this name, or zero if it is not listed.
pub(crate) fn amount_or_zero(amounts: &[(&str, i128)], name: &str) -> i128 {
    amounts.iter().find(|(known, _)| *known == name).map_or(0, |(_, amount)| *amount)
}

/// Adds to the amount of the capacity with this name, or lists it if it is new.
pub(crate) fn add_amount<'d>(amounts: &mut CapacityAmounts<'d>, name: &'d str, amount: i128) {
    match amounts.iter_mut().find(|(known, _)| *known == name) {
        Some((_, sum)) => *sum = sum.saturating_add(amount),
        None => amounts.push((name, amount)),
    }
}

/// The amounts of capacities that a request asks for.
pub(crate) fn requested_amounts<'d>(
    body: view::RequestBody<'d>,
    semantics: &AllocatorSemantics,
) -> Vec<(&'d str, Quantity<'d>)> {
    let requests = body.capacity().get("requests").members();
    let requests = requests.filter(|_| semantics.features.consumable_capacity);
    let amount = |value| view::quantity(value).unwrap_or(Quantity::ZERO);
    requests.map(|(name, value)| (name.text(), amount(value))).collect()
}

/// The amount that a request consumes of each capacity of a device. `None` if a policy does not allow the
/// amount, too little is left after `used`, or the device lacks a requested capacity.
// upstream v1.36, v1.37 CmpRequestOverCapacity
pub(crate) fn consumed_amounts_if_fitting<'d>(
    requested: &[(&'d str, Quantity<'d>)],
    capacities: &[Capacity<'d>],
    used: impl Fn(&str) -> i128,
    semantics: &AllocatorSemantics,
) -> Result<Option<Vec<(&'d str, Quantity<'d>)>>, CapacityError> {
    if requested.iter().any(|(name, _)| !capacities.iter().any(|capacity| capacity.name == *name)) {
        return Ok(None);
    }
    let mut taken = Vec::with_capacity(capacities.len());
    for capacity in capacities {
        let request = requested.iter().find(|(name, _)| *name == capacity.name).map(|(_, amount)| amount);
        let amount = capacity.consumed_amount(request, semantics).map_err(|detail| {
            CapacityError::NotRepresentable { capacity: capacity.name.to_owned(), detail }
        })?;
        if semantics.unrepresentable_request_is_error && amount.sign() < 0 {
            return Err(CapacityError::Negative { capacity: capacity.name.to_owned() });
        }
        taken.push((capacity.name, amount));
    }
    let fits = capacities.iter().zip(&taken).all(|(capacity, (name, amount))| {
        capacity.policy.as_ref().is_none_or(|policy| policy.is_valid_amount(amount, semantics))
            && used(name).saturating_add(amount.nano_value()) <= capacity.value.nano_value()
    });
    Ok(fits.then_some(taken))
}
