//! Constraints of a claim: `matchAttribute` and `distinctAttribute`, device by device.
//!
//! A constraint is told of every device that is taken and taken back, in the order of a stack. What it remembers in
//! between is upstream's, including what one release forgets.

use crate::search::Asked;
use tollgate_api::profile::{DistinctMemory, Semantics};
use tollgate_api::view::{self, DeviceBody, Strings, View as _};

/// A constraint with the attribute values of the devices allocated so far.
#[derive(Clone, Debug)]
pub(crate) struct Constraint<'d> {
    requests: Strings<'d>,
    attribute: &'d str,
    memory: Memory<'d>,
}

#[derive(Clone, Debug)]
enum Memory<'d> {
    /// `matchAttribute`: every device must have the value of the first device.
    Match { value: Option<Value<'d>>, devices: usize },
    /// `distinctAttribute`: all values must differ.
    Distinct { values: Vec<Value<'d>> },
    /// `distinctAttribute` in releases that remember only the last value of each request.
    DistinctLast { values: Vec<(&'d str, Value<'d>)>, devices: usize },
}

/// The value of an attribute. Values of different types are never equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value<'d> {
    String(&'d str),
    Int(i64),
    Bool(bool),
    Version(&'d str),
    /// A value type that the allocator does not compare.
    Other,
}

impl<'d> Constraint<'d> {
    /// Returns `None` if the constraint type is unknown.
    pub(crate) fn new(constraint: view::Constraint<'d>, semantics: &Semantics) -> Option<Constraint<'d>> {
        let (attribute, memory) = match (constraint.match_attribute(), constraint.distinct_attribute()) {
            (Some(attribute), _) => (attribute, Memory::Match { value: None, devices: 0 }),
            (None, Some(attribute)) => {
                let memory = match semantics.distinct_memory {
                    DistinctMemory::All => Memory::Distinct { values: Vec::new() },
                    DistinctMemory::LastOfEachRequest => {
                        Memory::DistinctLast { values: Vec::new(), devices: 0 }
                    }
                };
                (attribute, memory)
            }
            (None, None) => return None,
        };
        Some(Constraint { requests: constraint.requests(), attribute, memory })
    }

    /// Adds a device that is allocated to a request. Returns `false` and changes nothing if the device
    /// violates the constraint.
    pub(crate) fn add(&mut self, request: Requested<'d>, driver: &str, device: DeviceBody<'d>) -> bool {
        if !self.covers(request) {
            return true;
        }
        let Some(new) = attribute(device, driver, self.attribute) else { return false };
        match &mut self.memory {
            Memory::Match { value, devices } => {
                if *devices == 0 {
                    *value = Some(new);
                } else if new == Value::Other || *value != Some(new) {
                    return false;
                }
                *devices += 1;
            }
            Memory::Distinct { values } => {
                if values.iter().any(|value| is_repeated(*value, new)) {
                    return false;
                }
                values.push(new);
            }
            Memory::DistinctLast { values, devices } => {
                if *devices > 0 && values.iter().any(|(_, value)| is_repeated(*value, new)) {
                    return false;
                }
                values.retain(|(name, _)| *name != request.name);
                values.push((request.name, new));
                *devices += 1;
            }
        }
        true
    }

    /// Removes the device that was added last.
    pub(crate) fn remove(&mut self, request: Requested<'d>) {
        if !self.covers(request) {
            return;
        }
        match &mut self.memory {
            Memory::Match { devices, .. } => *devices = devices.saturating_sub(1),
            Memory::Distinct { values } => {
                values.pop();
            }
            Memory::DistinctLast { values, devices } => {
                values.retain(|(name, _)| *name != request.name);
                *devices = devices.saturating_sub(1);
            }
        }
    }

    /// True if the constraint applies to the request: it lists no requests, or it lists the request or this
    /// alternative.
    fn covers(&self, request: Requested<'_>) -> bool {
        let is_alternative = |name: &str| {
            let parts = name.strip_prefix(request.name).and_then(|rest| rest.strip_prefix('/'));
            parts.is_some() && parts == request.alternative
        };
        self.requests.is_empty()
            || self.requests.iter().any(|name| name == request.name || is_alternative(name))
    }
}

/// Name of a request, and of the alternative that is being tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requested<'d> {
    pub(crate) name: &'d str,
    pub(crate) alternative: Option<&'d str>,
}

impl<'d> Requested<'d> {
    pub(crate) fn of(asked: Asked<'_, 'd>) -> Requested<'d> {
        Requested { name: asked.ask.request, alternative: asked.ask.alternative }
    }
}

fn is_repeated(value: Value<'_>, new: Value<'_>) -> bool {
    new == Value::Other || value == new
}

/// Looks up an attribute by its qualified name. Names without a domain belong to the driver's domain.
// upstream v1.37 lookupAttribute
fn attribute<'d>(device: DeviceBody<'d>, driver: &str, name: &str) -> Option<Value<'d>> {
    let attributes = device.attributes();
    let attribute = attributes.get(name).or_else(|| {
        let (domain, id) = name.split_once('/')?;
        attributes.get(id).filter(|_| domain == driver)
    })?;
    let json = attribute.json();
    let string = attribute.string().map(Value::String);
    let value = string
        .or_else(|| json.get("int").int().map(Value::Int))
        .or_else(|| json.get("bool").bool().map(Value::Bool))
        .or_else(|| attribute.version().map(Value::Version));
    Some(value.unwrap_or(Value::Other))
}
