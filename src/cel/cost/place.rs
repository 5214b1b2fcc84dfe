//! Where in a device a value comes from, which tells how large it can be.
//!
//! The limits are those of the API type. upstream v1.34 `dynamic-resource-allocation/cel`,
//! `newCompiler`, `sizeEstimator`

use crate::cel::size::Size;

/// `ResourceSliceMaxAttributesAndCapacitiesPerDevice`
const MAX_ENTRIES: u64 = 32;
/// `DeviceMaxDomainLength` and `DriverNameMaxLength`
const MAX_DOMAIN: u64 = 63;
/// `DeviceMaxIDLength`
const MAX_ID: u64 = 32;
/// `DeviceAttributeMaxValueLength`
const MAX_VALUE: u64 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Device,
    Driver,
    AttributesByDomain,
    Attributes,
    Attribute,
    CapacitiesByDomain,
    Capacities,
    Capacity,
    Domain,
    Id,
    Flag,
}

impl Place {
    pub(super) fn of_variable(name: &str) -> Option<Place> {
        (name == "device" || name == ".device").then_some(Place::Device)
    }

    pub(super) fn size(self) -> Size {
        let max = match self {
            Place::Device => 0,
            Place::Driver | Place::Domain => MAX_DOMAIN,
            Place::AttributesByDomain | Place::Attributes | Place::CapacitiesByDomain | Place::Capacities => {
                MAX_ENTRIES
            }
            Place::Attribute => MAX_VALUE,
            Place::Id => MAX_ID,
            // The server has no size for these and special cases most uses.
            Place::Capacity | Place::Flag => 1,
        };
        Size::up_to(max)
    }

    pub(super) fn field(self, name: &str) -> Option<Place> {
        match (self, name) {
            (Place::Device, "driver") => Some(Place::Driver),
            (Place::Device, "attributes") => Some(Place::AttributesByDomain),
            (Place::Device, "capacity") => Some(Place::CapacitiesByDomain),
            (Place::Device, "allowMultipleAllocations") => Some(Place::Flag),
            (Place::Device, _) => None,
            (map, _) => map.value(),
        }
    }

    pub(super) fn value(self) -> Option<Place> {
        match self {
            Place::AttributesByDomain => Some(Place::Attributes),
            // An element of a list attribute is no larger than the attribute.
            Place::Attributes | Place::Attribute => Some(Place::Attribute),
            Place::CapacitiesByDomain => Some(Place::Capacities),
            Place::Capacities => Some(Place::Capacity),
            _ => None,
        }
    }

    pub(super) fn key(self) -> Option<Place> {
        match self {
            Place::AttributesByDomain | Place::CapacitiesByDomain => Some(Place::Domain),
            Place::Attributes | Place::Capacities => Some(Place::Id),
            // Not known to be a list before it runs: one variable iterates over its elements.
            Place::Attribute => Some(Place::Attribute),
            _ => None,
        }
    }
}
