//! A tainted device that shares counters with other devices of its slice, none of which is tainted: a taint on a GPU
//! does not apply to its partitions.
//!
//! Cost: linear in the number of counters that devices consume, and nothing is allocated unless a tainted device
//! consumes counters.
// kubernetes-sigs/dra-driver-nvidia-gpu#1316

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::UNTAINTED_PARTITIONS;
use crate::site;
use tollgate_api::profile::Version;
use tollgate_api::view::{self, Device, ObjectBody, SliceSpec, View as _};
use tollgate_document::field::Path;

const SHORT: &str = "no device that shares counters with this one is tainted";
const HELP: &str = "taint every device that uses the same hardware, such as the device and all its partitions; if only this \
                    device is affected, ignore this warning";

/// Maximum number of device names that the message lists.
const MAX_NAMED_DEVICES: usize = 3;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    let ObjectBody::Slice(slice) = admission.object.body else { return };
    if admission.is_status() {
        return;
    }
    let (spec, version) = (slice.spec(), cx.version);
    let is_concerned = |device: Device<'_>| {
        !device.body(version).consumes_counters().is_empty() && has_taint_blocking_scheduling(device, version)
    };
    if !spec.devices().iter().any(is_concerned) {
        return;
    }
    let consumers = consumers_by_counter(spec, version);
    let spec_at = Path::ROOT.field("spec");
    let devices_at = spec_at.field("devices");
    for (index, device) in spec.devices().iter().enumerate().filter(|(_, device)| is_concerned(*device)) {
        let sharers = sharers_if_none_is_tainted(&consumers, index, device, version);
        let named: Vec<&str> = sharers.iter().take(MAX_NAMED_DEVICES).copied().collect();
        let named = named.join(", ");
        let device_at = devices_at.index(index);
        let body_at = Device::body_path(&device_at, version);
        let more = match sharers.len().saturating_sub(MAX_NAMED_DEVICES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let detail = match sharers.len() {
            0 => continue,
            1 => format!(
                "{named} consumes the same shared counters and is not tainted, so the scheduler can still allocate it"
            ),
            count => format!(
                "none of the {count} devices that consume the same shared counters is tainted, so the scheduler can \
                 still allocate them: {named}{more}"
            ),
        };
        cx.report(UNTAINTED_PARTITIONS, &body_at.field("taints"))
            .invalid(device.name(), detail)
            .short_detail(SHORT)
            .help(HELP);
    }
}

/// True if the scheduler gives the device only to claims that tolerate a taint.
fn has_taint_blocking_scheduling(device: Device<'_>, version: Version) -> bool {
    let mut taints = site::taints_of(device.body(version)).iter();
    taints.any(|taint| matches!(taint.effect(), "NoSchedule" | "NoExecute"))
}

/// The devices that consume one shared counter, and how many of them are tainted.
#[derive(Default)]
struct CounterConsumers<'d> {
    /// Index and name of each device.
    devices: Vec<(usize, &'d str)>,
    tainted: usize,
}

/// The devices of a slice that consume shared counters, by counter set and counter.
type ConsumersByCounter<'d> = HashMap<(&'d str, &'d str), CounterConsumers<'d>, RandomState>;

fn consumers_by_counter(spec: SliceSpec<'_>, version: Version) -> ConsumersByCounter<'_> {
    let mut by_counter = ConsumersByCounter::default();
    for (index, device) in spec.devices().iter().enumerate() {
        let is_tainted = has_taint_blocking_scheduling(device, version);
        for counter in nonzero_consumed_counters(device, version) {
            let consumers = by_counter.entry(counter).or_default();
            consumers.devices.push((index, device.name()));
            consumers.tainted += usize::from(is_tainted);
        }
    }
    by_counter
}

/// Returns the names of the other devices that consume a counter of a tainted device, in order; none if one of them is
/// tainted.
fn sharers_if_none_is_tainted<'d>(
    by_counter: &ConsumersByCounter<'d>,
    index: usize,
    device: Device<'d>,
    version: Version,
) -> Vec<&'d str> {
    let consumers =
        || nonzero_consumed_counters(device, version).filter_map(|counter| by_counter.get(&counter));
    // Only this device itself is tainted, so each counter is looked at for one device: the total cost is linear.
    if consumers().any(|consumers| consumers.tainted > 1) {
        return Vec::new();
    }
    let all = consumers().flat_map(|consumers| consumers.devices.iter());
    let mut others: Vec<(usize, &str)> = all.filter(|(other, _)| *other != index).copied().collect();
    others.sort_unstable();
    others.dedup();
    others.into_iter().map(|(_, name)| name).collect()
}

/// Returns the counters that a device consumes more than zero of, each as counter set and counter.
fn nonzero_consumed_counters(device: Device<'_>, version: Version) -> impl Iterator<Item = (&str, &str)> {
    device.body(version).consumes_counters().iter().flat_map(|consumed| {
        let is_consumed = |counter: view::Counter<'_>| {
            view::quantity(counter.json().get("value")).is_some_and(|amount| !amount.is_zero())
        };
        let counters = consumed.counters().iter().filter(move |(_, counter)| is_consumed(*counter));
        counters.map(move |(name, _)| (consumed.counter_set(), name))
    })
}
