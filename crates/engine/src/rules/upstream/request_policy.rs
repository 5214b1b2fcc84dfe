//! Limits on the amount of a shared capacity that one request can consume: a list of values or a range, and a
//! default.
//!
//! Quantities are compared exactly in every release. Before `fractional_capacity`, steps and duplicates are computed in
//! whole units; since then, steps in thousandths, and duplicates from the amounts with their decimal places.

use super::lists::{self, at_most_message};
use crate::rules::RuleContext;
use crate::rules::report::LazyText;
use crate::rules::table::CAPACITY_REQUEST_POLICY;
use tollgate_api::view::{PolicyRange, RequestPolicy, quantity};
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;
use tollgate_formats::quantity::Quantity;

/// Maximum number of valid values of a policy.
const MAX_VALID_VALUES: usize = 10;

/// Checks the policy at `at` of a capacity with that amount.
// upstream v1.36 validateRequestPolicy, validateValidRequestValues
pub fn check_request_policy(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    policy: RequestPolicy<'_>,
    capacity: &Quantity<'_>,
) {
    let values = !policy.valid_values().is_empty();
    let name = match (values, policy.valid_range()) {
        (false, None) => return,
        (true, Some(_)) => {
            let detail = "exactly one policy can be specified, cannot specify \"validValues\" and \
                          \"validRange\" at the same time";
            cx.report(CAPACITY_REQUEST_POLICY, at).forbidden(detail);
            return;
        }
        (true, None) => "validValues",
        (false, Some(_)) => "validRange",
    };
    let Some(default) = policy.default() else {
        cx.report(CAPACITY_REQUEST_POLICY, &at.field("default"))
            .required(format_args!("required when {name} is defined"));
        return;
    };
    let at = at.field(name);
    match policy.valid_range() {
        Some(range) => check_valid_range(cx, &at, range, &default, capacity),
        None => check_valid_values(cx, &at, policy, &default, capacity),
    }
}

// upstream v1.36 validateRequestPolicyValidValues
fn check_valid_values(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    policy: RequestPolicy<'_>,
    default: &Quantity<'_>,
    capacity: &Quantity<'_>,
) {
    let values = policy.valid_values().items().map(|item| quantity(item).unwrap_or(Quantity::ZERO));
    for (index, (value, next)) in values.clone().zip(values.clone().skip(1)).enumerate() {
        if value > next {
            let detail = "values must be sorted in ascending order";
            report_invalid(cx, &at.index(index + 1), &next, detail);
        }
    }
    let count = policy.valid_values().len();
    let over = count > MAX_VALID_VALUES;
    if over {
        cx.report(CAPACITY_REQUEST_POLICY, at)
            .too_many(BadValue::count(count), at_most_message(MAX_VALID_VALUES));
    }
    let looked_at = !(over && cx.profile.stops_at_list_limit);
    if looked_at {
        for (index, value) in values.clone().enumerate().filter(|(_, value)| value > capacity) {
            let detail = format!("option is larger than capacity value: {}", capacity.text());
            report_invalid(cx, &at.index(index), &value, detail);
        }
        check_duplicates(cx, at, values.clone());
    }
    // A list that was not looked into does not have the default.
    if !(looked_at && values.clone().any(|value| value == *default)) {
        report_invalid(cx, at, default, "default value is not valid according to the requestPolicy");
    }
}

// upstream v1.36 quantityKey
fn check_duplicates<'q>(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    values: impl Iterator<Item = Quantity<'q>> + Clone,
) {
    let exact = cx.profile.fractional_capacity;
    // Only equal amounts can have equal keys, and few lists have any: keys are written out only for those.
    let few = values.clone().nth(MAX_VALID_VALUES).is_none();
    let same = |one: &Quantity<'_>, other: &Quantity<'_>| {
        if exact { one == other } else { one.value() == other.value() }
    };
    let earlier = |index| values.clone().take(index);
    let mut all = values.clone().enumerate();
    if few && !all.any(|(index, value)| earlier(index).any(|earlier| same(&earlier, &value))) {
        return;
    }
    let key =
        |value: Quantity<'_>| if exact { value.plain_decimal_text() } else { value.value().to_string() };
    let keys: Vec<String> = values.map(key).collect();
    lists::for_each_duplicate(keys.iter().map(String::as_str), |index, key| {
        cx.report(CAPACITY_REQUEST_POLICY, &at.index(index)).duplicate(key, "");
    });
}

/// A valid range of a capacity, and the values that it is checked against.
struct ValidRange<'q> {
    default: &'q Quantity<'q>,
    min: Quantity<'q>,
    max: Option<Quantity<'q>>,
    step: Option<Quantity<'q>>,
    capacity: &'q Quantity<'q>,
}

impl ValidRange<'_> {
    /// Returns the quantities of the range that are set, with the names of their fields, in the order in which the
    /// server reports them.
    fn named_quantities(&self) -> impl Iterator<Item = (&'static str, &Quantity<'_>)> {
        let parts = [
            ("default", Some(self.default)),
            ("min", Some(&self.min)),
            ("max", self.max.as_ref()),
            ("step", self.step.as_ref()),
        ];
        parts.into_iter().filter_map(|(name, part)| Some((name, part?)))
    }
}

// upstream v1.36 validateRequestPolicyRange
fn check_valid_range(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    range: PolicyRange<'_>,
    default: &Quantity<'_>,
    capacity: &Quantity<'_>,
) {
    let Some(min) = range.min() else {
        cx.report(CAPACITY_REQUEST_POLICY, &at.field("min")).required("required when validRange is defined");
        return;
    };
    let range = ValidRange { default, min, max: range.max(), step: range.step(), capacity };
    check_bounds(cx, at, &range);
    let fractional = cx.profile.fractional_capacity;
    let in_milli = fractional && range.named_quantities().any(|(_, part)| part.is_fractional());
    if in_milli && range.named_quantities().any(|(_, part)| !part.fits_milli()) {
        for (name, part) in range.named_quantities().filter(|(_, part)| !part.fits_milli()) {
            report_invalid(cx, &at.field(name), part, "value cannot be represented as a milli value");
        }
        return;
    }
    if let Some(step) = &range.step {
        check_step(cx, at, &range, step, in_milli);
    }
}

fn check_bounds(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, range: &ValidRange<'_>) {
    let (min_at, max_at, default_at) = (at.field("min"), at.field("max"), at.field("default"));
    let (too_small_at, too_large_at) =
        if cx.profile.guards_capacity_range { (&default_at, &default_at) } else { (&min_at, &max_at) };
    let ValidRange { default, min, capacity, .. } = range;
    if min > capacity {
        report_invalid(cx, &min_at, min, format!("min is larger than capacity value: {}", capacity.text()));
    }
    if *default < min {
        report_invalid(cx, too_small_at, default, format!("default is less than min: {}", min.text()));
    }
    let Some(max) = &range.max else { return };
    if min > max {
        report_invalid(cx, &max_at, min, format!("min is larger than max: {}", max.text()));
    }
    if max > capacity {
        report_invalid(cx, &max_at, max, format!("max is larger than capacity value: {}", capacity.text()));
    }
    if *default > max {
        report_invalid(cx, too_large_at, default, format!("default is more than max: {}", max.text()));
    }
}

fn check_step(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    range: &ValidRange<'_>,
    step: &Quantity<'_>,
    in_milli: bool,
) {
    let step_at = at.field("step");
    let is_guarded = cx.profile.guards_capacity_range;
    let ValidRange { min, capacity, .. } = range;
    // Releases before 1.37 divide by a step that reads zero and crash: refused all the same, in 1.37's words.
    if if is_guarded { step.sign() <= 0 } else { step.value() == 0 } {
        report_invalid(cx, &step_at, step, "must be greater than zero");
        return;
    }
    if let Some(sum) = min.add_as_decimal(step).filter(|sum| sum > *capacity) {
        let (sum, capacity) = (sum.text(), capacity.text());
        report_invalid(
            cx,
            &step_at,
            step,
            format!("one step {sum} is larger than capacity value: {capacity}"),
        );
    }
    let is_whole = |part: &Quantity<'_>| part.sign() >= 0 && !part.exceeds_i64_max();
    if is_guarded && !in_milli && range.named_quantities().any(|(_, part)| !is_whole(part)) {
        for (name, part) in range.named_quantities().filter(|(_, part)| !is_whole(part)) {
            let detail = if part.sign() < 0 {
                "must be greater than or equal to 0"
            } else {
                "must not be larger than 9223372036854775807"
            };
            report_invalid(cx, &at.field(name), part, detail);
        }
        return;
    }
    let units = |part: &Quantity<'_>| if in_milli { part.milli_value() } else { part.value() };
    for part in [Some(range.default), range.max.as_ref()].into_iter().flatten() {
        // Nothing is left over of the one quotient that has no value, as in Go.
        let left = units(part).wrapping_sub(units(min)).checked_rem(units(step)).unwrap_or_default();
        if left != 0 {
            let (step, min) = (step.text(), min.text());
            let detail = format!("value is not a multiple of a given step ({step}) from ({min})");
            report_invalid(cx, &step_at, part, detail);
        }
    }
}

/// Reports a quantity that is invalid.
fn report_invalid(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, value: &Quantity<'_>, detail: impl LazyText) {
    cx.report(CAPACITY_REQUEST_POLICY, at).invalid(BadValue::str(&value.text()), detail);
}
