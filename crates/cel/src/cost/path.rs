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

use crate::size::Size;

pub(super) const ITEMS: &str = "@items";
pub(super) const VALUES: &str = "@values";
pub(super) const KEYS: &str = "@keys";
pub(super) const INDICES: &str = "@indices";

/// Value of `ResourceSliceMaxAttributesAndCapacitiesPerDevice`.
const MAX_ENTRIES: u64 = 32;
/// `DeviceMaxDomainLength` and `DriverNameMaxLength`
const MAX_DOMAIN: u64 = 63;
/// Value of `DeviceMaxIDLength`.
const MAX_ID: u64 = 32;
/// Value of `DeviceAttributeMaxValueLength`.
const MAX_VALUE: u64 = 64;

/// A path in the device: the first `len` of `steps`. `capacity` is that of Go's slice, which determines when
/// memory is shared.
#[derive(Clone, Debug, Default)]
pub(super) struct Path<'t> {
    steps: Rc<RefCell<Vec<&'t str>>>,
    len: usize,
    capacity: usize,
}

impl<'t> Path<'t> {
    /// The path of a variable.
    pub(super) fn of_variable(name: &'t str) -> Path<'t> {
        Path { steps: Rc::new(RefCell::new(vec![name])), len: 1, capacity: 1 }
    }

    /// The path with one more step, like Go's `append`: in the same memory while there is capacity.
    pub(super) fn extended(&self, step: &'t str) -> Path<'t> {
        if self.len < self.capacity {
            let mut steps = self.steps.borrow_mut();
            match steps.get_mut(self.len) {
                Some(last) => *last = step,
                None => steps.push(step),
            }
            drop(steps);
            return Path { steps: Rc::clone(&self.steps), len: self.len + 1, capacity: self.capacity };
        }
        let mut steps: Vec<&str> = self.steps.borrow().iter().take(self.len).copied().collect();
        steps.push(step);
        let capacity = (2 * self.capacity).max(1);
        Path { steps: Rc::new(RefCell::new(steps)), len: self.len + 1, capacity }
    }

    /// The size of the value at the path; `None` if the path does not lead into a device.
    pub(super) fn size(&self) -> Option<Size> {
        self.place(None).map(Place::size)
    }

    /// The size of each item of the list or map at the path; `None` if the path does not lead into a device.
    pub(super) fn item_size(&self) -> Option<Size> {
        self.place(Some(ITEMS)).map(Place::size)
    }

    /// The part of a device that the path, with one more step if given, leads to; `None` if it leads to none.
    fn place(&self, more: Option<&str>) -> Option<Place> {
        let steps = self.steps.borrow();
        let (variable, rest) = steps.get(..self.len)?.split_first()?;
        let start = (*variable == "device").then_some(Place::Device)?;
        rest.iter().copied().chain(more).try_fold(start, Place::step)
    }
}

/// The parts of a device whose sizes are declared.
#[derive(Clone, Copy)]
enum Place {
    Device,
    Driver,
    Flag,
    AttributesByDomain,
    Attributes,
    Attribute,
    CapacitiesByDomain,
    Capacities,
    Capacity,
    Domain,
    Id,
}

impl Place {
    /// The part of the device that one step leads to; `None` if it does not exist.
    fn step(self, step: &str) -> Option<Place> {
        match (self, step) {
            (Place::AttributesByDomain, ITEMS | VALUES) => Some(Place::Attributes),
            (Place::Attributes | Place::Capacities, KEYS) => Some(Place::Id),
            // Whatever the name: every attribute is as large as any other.
            (Place::Attributes, _) => Some(Place::Attribute),
            (Place::CapacitiesByDomain, ITEMS | VALUES) => Some(Place::Capacities),
            (Place::Capacities, ITEMS | VALUES) => Some(Place::Capacity),
            (Place::AttributesByDomain | Place::CapacitiesByDomain, KEYS) => Some(Place::Domain),
            (Place::Device, "driver") => Some(Place::Driver),
            (Place::Device, "attributes") => Some(Place::AttributesByDomain),
            (Place::Device, "capacity") => Some(Place::CapacitiesByDomain),
            (Place::Device, "allowMultipleAllocations") => Some(Place::Flag),
            _ => None,
        }
    }

    /// The declared size of the part.
    fn size(self) -> Size {
        Size::up_to(match self {
            // Declared without a size, which reads as none.
            Place::Device | Place::Capacity => 0,
            Place::Flag => 1,
            Place::Driver | Place::Domain => MAX_DOMAIN,
            Place::AttributesByDomain | Place::Attributes | Place::CapacitiesByDomain | Place::Capacities => {
                MAX_ENTRIES
            }
            Place::Attribute => MAX_VALUE,
            Place::Id => MAX_ID,
        })
    }
}
