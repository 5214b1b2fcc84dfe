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
    /// The `requestPolicy` of the capacity: its default and the amounts that requests may consume.
    policy: Option<RequestPolicy<'d>>,
}

impl<'d> Capacity<'d> {
    pub(crate) fn new(name: &'d str, capacity: view::Capacity<'d>) -> Capacity<'d> {
        let value = capacity.quantity().unwrap_or(Quantity::ZERO);
        Capacity { name, value, policy: capacity.request_policy() }
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
    ) -> Result<Quantity<'d>, String> {
        let Some(requested) = requested else {
            let default = self.policy.and_then(RequestPolicy::default);
            return Ok(default.unwrap_or_else(|| self.value.clone()));
        };
        let Some(policy) = self.policy else { return Ok(requested.clone()) };
        if let Some((range, min)) = policy.valid_range().and_then(|range| Some((range, range.min()?))) {
            return match range.step() {
                _ if *requested < min => Ok(min),
                None => Ok(requested.clone()),
                Some(step) => {
                    round_up_to_step(requested, &min, &step, uses_thousandths(range, semantics), semantics)
                }
            };
        }
        let next_valid = valid_values(policy).find(|value| requested <= value);
        Ok(next_valid.unwrap_or_else(|| requested.clone()))
    }
}

/// The `validValues` of a policy.
fn valid_values(policy: RequestPolicy<'_>) -> impl Iterator<Item = Quantity<'_>> {
    policy.valid_values().items().filter_map(view::quantity)
}

/// Rounds a requested amount up to the next step of a range, in thousandths if `milli` is true.
// upstream v1.36, v1.37 roundUpRange
fn round_up_to_step<'d>(
    requested: &Quantity<'d>,
    min: &Quantity<'d>,
    step: &Quantity<'d>,
    milli: bool,
    semantics: &AllocatorSemantics,
) -> Result<Quantity<'d>, String> {
    // The format of the result, where it is not that of the step.
    static BINARY_FORMAT: LazyLock<Quantity<'static>> =
        LazyLock::new(|| Quantity::parse("1Ki").unwrap_or(Quantity::ZERO));
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
fn uses_thousandths(range: PolicyRange<'_>, semantics: &AllocatorSemantics) -> bool {
    let step = range.step();
    let fits = [&range.min(), &range.max(), &step].into_iter().flatten().all(Quantity::fits_milli);
    semantics.fractional_ranges && fits && step.is_none_or(|step| step.milli_value() >= 1)
}

/// True if a request may consume this amount: the default, one of the valid values, or a step of the
/// range.
fn is_valid_amount(policy: RequestPolicy<'_>, taken: &Quantity<'_>, semantics: &AllocatorSemantics) -> bool {
    if policy.default().as_ref() == Some(taken) {
        return true;
    }
    let Some(range) = policy.valid_range() else {
        let mut values = valid_values(policy).peekable();
        return values.peek().is_none() || values.any(|value| value == *taken);
    };
    if range.max().is_some_and(|max| *taken > max) {
        return false;
    }
    let Some(step) = range.step() else { return true };
    let milli = uses_thousandths(range, semantics);
    let read = |quantity: &Quantity<'_>| if milli { quantity.milli_value() } else { quantity.value() };
    let min = range.min().as_ref().map_or(0, read);
    let on_step = read(taken).wrapping_sub(min).checked_rem(read(&step)) == Some(0);
    on_step && (!milli || taken.fits_milli())
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
/// amount, too little is left after `used`, or the device lacks a requested capacity. An error says why the amount
/// cannot be computed: it is below zero, or overflows the arithmetic for the device's range.
// upstream v1.36, v1.37 CmpRequestOverCapacity
pub(crate) fn consumed_amounts_if_fitting<'d>(
    requested: &[(&'d str, Quantity<'d>)],
    capacities: &[Capacity<'d>],
    used: impl Fn(&str) -> i128,
    semantics: &AllocatorSemantics,
) -> Result<Option<Vec<(&'d str, Quantity<'d>)>>, String> {
    if requested.iter().any(|(name, _)| !capacities.iter().any(|capacity| capacity.name == *name)) {
        return Ok(None);
    }
    let mut taken = Vec::with_capacity(capacities.len());
    for capacity in capacities {
        let request = requested.iter().find(|(name, _)| *name == capacity.name).map(|(_, amount)| amount);
        let error =
            |detail: &str| format!("capacity {}: {detail}", tollgate_formats::gofmt::quote(capacity.name));
        let amount = capacity.consumed_amount(request, semantics).map_err(|detail| {
            error(&format!(
                "capacity request cannot be represented in the device's range arithmetic: {detail}"
            ))
        })?;
        if semantics.unrepresentable_request_is_error && amount.sign() < 0 {
            return Err(error("capacity value is negative"));
        }
        taken.push((capacity.name, amount));
    }
    let fits = capacities.iter().zip(&taken).all(|(capacity, (name, amount))| {
        capacity.policy.is_none_or(|policy| is_valid_amount(policy, amount, semantics))
            && used(name).saturating_add(amount.nano_value()) <= capacity.value.nano_value()
    });
    Ok(fits.then_some(taken))
}
