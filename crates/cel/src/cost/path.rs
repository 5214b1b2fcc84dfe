//! Where in a device a value comes from, which tells how large it can be.
//!
//! A path is a variable and what was selected from it: a field, or all items, values, keys or indices. The limits are
//! those of the API type. upstream v1.34 `dynamic-resource-allocation/cel`, `newCompiler`, `sizeEstimator`
//!
//! Invariant: two paths that extend one and the same path share memory as Go's slices do: where there is room, the
//! later one overwrites the last step of the earlier one. The server's estimates depend on it: in
//! `device.attributes["a"].all(k, v, …)` a key counts as long as a value.

use std::cell::RefCell;
use std::rc::Rc;

use crate::size::SizeRange;

pub(super) const ITEMS: &str = "@items";
pub(super) const VALUES: &str = "@values";
pub(super) const KEYS: &str = "@keys";
pub(super) const INDICES: &str = "@indices";

/// Maximum number of attributes and capacities of a device, upstream's
/// `ResourceSliceMaxAttributesAndCapacitiesPerDevice`.
const MAX_ATTRIBUTES_AND_CAPACITIES: u64 = 32;
/// Maximum length of the domain of an attribute and of a driver name, upstream's `DeviceMaxDomainLength` and
/// `DriverNameMaxLength`.
const MAX_DOMAIN_LENGTH: u64 = 63;
/// Maximum length of an attribute name without its domain, upstream's `DeviceMaxIDLength`.
const MAX_ATTRIBUTE_ID_LENGTH: u64 = 32;
/// Maximum length of a string attribute, upstream's `DeviceAttributeMaxValueLength`.
const MAX_STRING_ATTRIBUTE_LENGTH: u64 = 64;

/// A path in the device: the first `len` of `steps`. `capacity` is that of Go's slice, which determines when
/// memory is shared.
#[derive(Clone, Debug, Default)]
pub(super) struct DevicePath<'t> {
    steps: Rc<RefCell<Vec<&'t str>>>,
    len: usize,
    capacity: usize,
}

impl<'t> DevicePath<'t> {
    /// The path of a variable.
    pub(super) fn of_variable(name: &'t str) -> DevicePath<'t> {
        DevicePath { steps: Rc::new(RefCell::new(vec![name])), len: 1, capacity: 1 }
    }

    /// The path with one more step, like Go's `append`: in the same memory while there is capacity.
    pub(super) fn append_with_go_slice_aliasing(&self, step: &'t str) -> DevicePath<'t> {
        if self.len < self.capacity {
            let mut steps = self.steps.borrow_mut();
            match steps.get_mut(self.len) {
                Some(last) => *last = step,
                None => steps.push(step),
            }
            drop(steps);
            return DevicePath { steps: Rc::clone(&self.steps), len: self.len + 1, capacity: self.capacity };
        }
        let mut steps: Vec<&str> = self.steps.borrow().iter().take(self.len).copied().collect();
        steps.push(step);
        let capacity = (2 * self.capacity).max(1);
        DevicePath { steps: Rc::new(RefCell::new(steps)), len: self.len + 1, capacity }
    }

    /// The size of the value at the path; `None` if the path does not lead into a device.
    pub(super) fn size(&self) -> Option<SizeRange> {
        self.device_part(None).map(DevicePart::size)
    }

    /// The size of each item of the list or map at the path; `None` if the path does not lead into a device.
    pub(super) fn item_size(&self) -> Option<SizeRange> {
        self.device_part(Some(ITEMS)).map(DevicePart::size)
    }

    /// The part of a device that the path, with one more step if given, leads to; `None` if it leads to none.
    fn device_part(&self, more: Option<&str>) -> Option<DevicePart> {
        let steps = self.steps.borrow();
        let (variable, rest) = steps.get(..self.len)?.split_first()?;
        let start = (*variable == "device").then_some(DevicePart::Device)?;
        rest.iter().copied().chain(more).try_fold(start, DevicePart::part_after_step)
    }
}

/// The parts of a device whose sizes are declared.
#[derive(Clone, Copy)]
enum DevicePart {
    Device,
    AttributesByDomain,
    Attributes,
    CapacitiesByDomain,
    Capacities,
    /// A part of at most this size that no step leads further into.
    Leaf(u64),
}

impl DevicePart {
    /// The part of the device that one step leads to; `None` if it does not exist.
    fn part_after_step(self, step: &str) -> Option<DevicePart> {
        Some(match (self, step) {
            (DevicePart::AttributesByDomain, ITEMS | VALUES) => DevicePart::Attributes,
            (DevicePart::Attributes | DevicePart::Capacities, KEYS) => {
                DevicePart::Leaf(MAX_ATTRIBUTE_ID_LENGTH)
            }
            // Whatever the name: every attribute is as large as any other.
            (DevicePart::Attributes, _) => DevicePart::Leaf(MAX_STRING_ATTRIBUTE_LENGTH),
            (DevicePart::CapacitiesByDomain, ITEMS | VALUES) => DevicePart::Capacities,
            // Declared without a size, which reads as none.
            (DevicePart::Capacities, ITEMS | VALUES) => DevicePart::Leaf(0),
            (DevicePart::AttributesByDomain | DevicePart::CapacitiesByDomain, KEYS)
            | (DevicePart::Device, "driver") => DevicePart::Leaf(MAX_DOMAIN_LENGTH),
            (DevicePart::Device, "attributes") => DevicePart::AttributesByDomain,
            (DevicePart::Device, "capacity") => DevicePart::CapacitiesByDomain,
            (DevicePart::Device, "allowMultipleAllocations") => DevicePart::Leaf(1),
            _ => return None,
        })
    }

    /// The declared size of the part.
    fn size(self) -> SizeRange {
        SizeRange::up_to(match self {
            // Declared without a size as well.
            DevicePart::Device => 0,
            DevicePart::Leaf(size) => size,
            _ => MAX_ATTRIBUTES_AND_CAPACITIES,
        })
    }
}
