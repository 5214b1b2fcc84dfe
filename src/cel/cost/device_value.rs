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
pub(super) enum DeviceValue {
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

impl DeviceValue {
    pub(super) fn of_variable(name: &str) -> Option<DeviceValue> {
        (name == "device" || name == ".device").then_some(DeviceValue::Device)
    }

    pub(super) fn size(self) -> Size {
        let max = match self {
            DeviceValue::Device => 0,
            DeviceValue::Driver | DeviceValue::Domain => MAX_DOMAIN,
            DeviceValue::AttributesByDomain
            | DeviceValue::Attributes
            | DeviceValue::CapacitiesByDomain
            | DeviceValue::Capacities => MAX_ENTRIES,
            DeviceValue::Attribute => MAX_VALUE,
            DeviceValue::Id => MAX_ID,
            // The server has no size for these and special cases most uses.
            DeviceValue::Capacity | DeviceValue::Flag => 1,
        };
        Size::up_to(max)
    }

    pub(super) fn field(self, name: &str) -> Option<DeviceValue> {
        match (self, name) {
            (DeviceValue::Device, "driver") => Some(DeviceValue::Driver),
            (DeviceValue::Device, "attributes") => Some(DeviceValue::AttributesByDomain),
            (DeviceValue::Device, "capacity") => Some(DeviceValue::CapacitiesByDomain),
            (DeviceValue::Device, "allowMultipleAllocations") => Some(DeviceValue::Flag),
            // Nothing is known of a quantity that is selected by its name.
            (DeviceValue::Device | DeviceValue::Capacities, _) => None,
            (map, _) => map.value(),
        }
    }

    pub(super) fn value(self) -> Option<DeviceValue> {
        match self {
            DeviceValue::AttributesByDomain => Some(DeviceValue::Attributes),
            // An element of a list attribute is no larger than the attribute.
            DeviceValue::Attributes | DeviceValue::Attribute => Some(DeviceValue::Attribute),
            DeviceValue::CapacitiesByDomain => Some(DeviceValue::Capacities),
            DeviceValue::Capacities => Some(DeviceValue::Capacity),
            _ => None,
        }
    }

    pub(super) fn key(self) -> Option<DeviceValue> {
        match self {
            DeviceValue::AttributesByDomain | DeviceValue::CapacitiesByDomain => Some(DeviceValue::Domain),
            DeviceValue::Attributes | DeviceValue::Capacities => Some(DeviceValue::Id),
            // Not known to be a list before it runs: one variable iterates over its elements.
            DeviceValue::Attribute => Some(DeviceValue::Attribute),
            _ => None,
        }
    }
}
