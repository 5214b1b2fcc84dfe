//! Optional data about devices in a snapshot: attributes, for rules that select by class or expression, and consumed
//! shared counters, for partitions.
//!
//! Most of a ResourceSlice is attributes, and few rules need them, so a snapshot stores them only on request. The
//! webhook does not request them.

use super::interner::StringInterner;
use super::record::{CounterConsumption, Counters, Slice};
use tollgate_api::profile::Version;
use tollgate_api::view::{self, DeviceBody, SliceSpec, View as _};
use tollgate_document::doc::NameSet;

/// The optional device data that a snapshot stores.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DetailsToStore {
    /// Attributes and capacities of devices, and DeviceClasses: what `deviceClassName` and `selectors` are evaluated
    /// with.
    pub attributes: bool,
    /// The shared counters that devices consume.
    pub counters: bool,
}

/// Fields of a ResourceSlice that impact does not read even if it reads all details.
pub(super) static UNREAD_DETAILED_FIELDS: NameSet =
    NameSet::from_texts(&["annotations", "managedFields", "nodeSelector"]);

/// Adds the details of its devices to the record of a slice, whose devices are sorted by name already.
pub(super) fn add_details(
    slice: &mut Slice,
    details: DetailsToStore,
    spec: SliceSpec<'_>,
    version: Version,
    names: &mut StringInterner,
) {
    if details == DetailsToStore::default() {
        return;
    }
    let mut devices: Vec<view::Device<'_>> = spec.devices().iter().collect();
    // Stable, like the sort of the records.
    devices.sort_by(|one, other| one.name().cmp(other.name()));
    let bodies = || devices.iter().map(|device| device.body(version));
    if details.attributes {
        slice.bodies = Some(attributes_and_capacity_json(bodies()));
    }
    if details.counters {
        let mut consumption = Vec::new();
        for (device, body) in bodies().enumerate() {
            for consumed in body.consumes_counters().iter() {
                let counters = interned_positive_counters(consumed.counters(), names);
                if !counters.is_empty() {
                    let counter_set = names.intern(consumed.counter_set());
                    let is_tainted = body.taints().iter().any(|taint| is_blocking_effect(taint.effect()));
                    consumption.push(CounterConsumption { device, is_tainted, counter_set, counters });
                }
            }
        }
        slice.consumption = consumption.into();
        let set = |set: view::CounterSet<'_>| {
            (names.intern(set.name()), interned_positive_counters(set.counters(), names))
        };
        slice.counter_sets = spec.shared_counters().iter().map(set).collect();
    }
}

/// True if the scheduler gives a device with a taint of that effect only to claims that tolerate it.
pub(super) fn is_blocking_effect(effect: &str) -> bool {
    matches!(effect, "NoSchedule" | "NoExecute")
}

/// Returns the attributes and capacities of devices as a JSON list, in which they are stored until a rule needs them.
fn attributes_and_capacity_json<'d>(bodies: impl Iterator<Item = DeviceBody<'d>>) -> Box<str> {
    let mut out = String::from("[");
    for (index, body) in bodies.enumerate() {
        out.push_str(if index == 0 { "{" } else { ",{" });
        let mut comma = "";
        for (name, value) in
            [("attributes", body.attributes().value()), ("capacity", body.capacity().value())]
        {
            if !value.is_null_or_absent() {
                out.extend([comma, "\"", name, "\":", &value.to_json()]);
                comma = ",";
            }
        }
        out.push('}');
    }
    out.push(']');
    out.into()
}

/// Returns the counters whose amount is greater than zero. Equal lists share one record, because the partitions of all
/// GPUs of a kind consume the same.
fn interned_positive_counters(
    counters: view::Map<'_, view::Counter<'_>>,
    names: &mut StringInterner,
) -> Counters {
    let written = counters.value().unchanged_source_json_or_empty();
    if let Some(record) = names.counters.get(written) {
        return record;
    }
    let amount =
        |counter: view::Counter<'_>| view::quantity(counter.json().get("value")).map(|q| q.nano_value());
    let record: Counters = counters
        .iter()
        .filter_map(|(name, counter)| {
            Some((names.intern(name), amount(counter).filter(|amount| *amount > 0)?))
        })
        .collect();
    names.counters.insert(written, &record);
    record
}
