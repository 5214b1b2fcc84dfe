//! Constraints of a claim: `matchAttribute` and `distinctAttribute`, device by device.
//!
//! A constraint is updated for every device that the search allocates or releases, in the order of a stack. Its state
//! is that of upstream's allocator: some releases remember only the last value of each request.

use crate::claim::RequestAlternative;
use tollgate_api::profile::{AllocatorSemantics, DistinctComparedValues};
use tollgate_api::view::{self, DeviceBody, Strings, View as _};

/// A constraint with the attribute values of the devices allocated so far.
#[derive(Clone, Debug)]
pub(crate) struct ConstraintState<'d> {
    requests: Strings<'d>,
    attribute: &'d str,
    seen: SeenValues<'d>,
}

/// The attribute values of the devices that a constraint has accepted so far.
#[derive(Clone, Debug)]
enum SeenValues<'d> {
    /// `matchAttribute`: every device must have the value of the first device.
    Match { value: Option<AttributeValue<'d>>, devices: usize },
    /// `distinctAttribute`: all values must differ.
    Distinct(Vec<AttributeValue<'d>>),
    /// `distinctAttribute` in releases that remember only the last value of each request.
    DistinctLast(Vec<(&'d str, AttributeValue<'d>)>),
}

/// The value of a device attribute that a constraint compares. Values of different types are never equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AttributeValue<'d> {
    String(&'d str),
    Int(i64),
    Bool(bool),
    Version(&'d str),
    /// A value type that the allocator does not compare.
    Other,
}

impl<'d> ConstraintState<'d> {
    /// Returns `None` if the constraint type is unknown.
    pub(crate) fn new(
        constraint: view::Constraint<'d>,
        semantics: &AllocatorSemantics,
    ) -> Option<ConstraintState<'d>> {
        let (attribute, seen) = match (constraint.match_attribute(), constraint.distinct_attribute()) {
            (Some(attribute), _) => (attribute, SeenValues::Match { value: None, devices: 0 }),
            (None, Some(attribute)) => {
                let seen = match semantics.distinct_memory {
                    DistinctComparedValues::All => SeenValues::Distinct(Vec::new()),
                    DistinctComparedValues::LastOfEachRequest => SeenValues::DistinctLast(Vec::new()),
                };
                (attribute, seen)
            }
            (None, None) => return None,
        };
        Some(ConstraintState { requests: constraint.requests(), attribute, seen })
    }

    /// Adds a device that is allocated to a request. Returns `false` and changes nothing if the device
    /// violates the constraint.
    pub(crate) fn try_add_device(
        &mut self,
        request: &RequestAlternative<'d>,
        driver: &str,
        device: DeviceBody<'d>,
    ) -> bool {
        if !self.applies_to(request) {
            return true;
        }
        let Some(new) = attribute_value(device, driver, self.attribute) else { return false };
        match &mut self.seen {
            SeenValues::Match { value, devices } => {
                if *devices == 0 {
                    *value = Some(new);
                } else if new == AttributeValue::Other || *value != Some(new) {
                    return false;
                }
                *devices += 1;
            }
            SeenValues::Distinct(values) => {
                if values.iter().any(|value| violates_distinct(*value, new)) {
                    return false;
                }
                values.push(new);
            }
            SeenValues::DistinctLast(values) => {
                if values.iter().any(|(_, value)| violates_distinct(*value, new)) {
                    return false;
                }
                values.retain(|(name, _)| *name != request.request);
                values.push((request.request, new));
            }
        }
        true
    }

    /// Undoes [`Self::try_add_device`] of the device that was added last, for the same request.
    pub(crate) fn remove_last_device(&mut self, request: &RequestAlternative<'d>) {
        if !self.applies_to(request) {
            return;
        }
        match &mut self.seen {
            SeenValues::Match { devices, .. } => *devices = devices.saturating_sub(1),
            SeenValues::Distinct(values) => _ = values.pop(),
            SeenValues::DistinctLast(values) => values.retain(|(name, _)| *name != request.request),
        }
    }

    /// True if the constraint applies to the request: it lists no requests, or it lists the request or this
    /// alternative.
    fn applies_to(&self, request: &RequestAlternative<'_>) -> bool {
        let is_alternative = |name: &str| {
            let parts = name.strip_prefix(request.request).and_then(|rest| rest.strip_prefix('/'));
            parts.is_some() && parts == request.alternative
        };
        self.requests.is_empty()
            || self.requests.iter().any(|name| name == request.request || is_alternative(name))
    }
}

/// True if `distinctAttribute` rejects the new value: it equals an earlier one, or its type cannot be compared.
fn violates_distinct(value: AttributeValue<'_>, new: AttributeValue<'_>) -> bool {
    new == AttributeValue::Other || value == new
}

/// Looks up the value of a device attribute by its qualified name. Names without a domain belong to the driver's
/// domain.
// upstream v1.37 lookupAttribute
fn attribute_value<'d>(device: DeviceBody<'d>, driver: &str, name: &str) -> Option<AttributeValue<'d>> {
    let attributes = device.attributes();
    let attribute = attributes.get(name).or_else(|| {
        let (domain, id) = name.split_once('/')?;
        attributes.get(id).filter(|_| domain == driver)
    })?;
    let json = attribute.json();
    let string = attribute.string().map(AttributeValue::String);
    let value = string
        .or_else(|| json.get("int").int().map(AttributeValue::Int))
        .or_else(|| json.get("bool").bool().map(AttributeValue::Bool))
        .or_else(|| attribute.version().map(AttributeValue::Version));
    Some(value.unwrap_or(AttributeValue::Other))
}
