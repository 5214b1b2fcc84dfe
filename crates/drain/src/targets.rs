//! Resolves the targets of a drain to rules: the devices that they refer to in a cluster state, with one selector for
//! each rule.
//!
//! Invariant: every rule names a driver and a pool, no rule selects only what another one selects, and each target
//! selects at least one device that is published or held by a claim.

use crate::name::readable_rule_name_with_hash;
use crate::outcome::{DeviceId, PlannedRule};
use crate::request::DrainRequest;
use crate::selection::SelectedDevices;
use std::collections::{BTreeMap, BTreeSet};
use tollgate_api::view::{Claim, Slice, View as _};
use tollgate_engine::impact::target::{DeviceNameSelector, DeviceTarget, with_partitions};
use tollgate_engine::impact::{DetailsToStore, Snapshot};
use tollgate_forecast::{ObjectKind, State};

/// Maximum number of rules that one drain creates.
pub const MAX_RULES: usize = 200;

/// The rules of a drain, the devices that they select, and notes about omitted targets.
pub(crate) struct ResolvedTargets {
    pub(crate) rules: Vec<PlannedRule>,
    pub(crate) devices: Vec<DeviceId>,
    pub(crate) notes: Vec<String>,
}

/// Names of devices, and how often each is named. A name that slices of a pool repeat counts as often for the eviction
/// controller.
type NamedDevices<'d> = BTreeMap<&'d str, usize>;

/// Names of devices, by driver and pool.
type DevicesByPool<'d> = BTreeMap<(&'d str, &'d str), NamedDevices<'d>>;

/// Resolves the targets of a request to rules. The selectors in `closed` are always included, even if their
/// target selects no device any more.
pub(crate) fn resolve_targets_and_add_closed(
    state: &State<'_>,
    request: &DrainRequest,
    closed: &[DeviceNameSelector],
) -> Result<ResolvedTargets, String> {
    let (published, held, snapshot) = (
        devices_of_newest_pool_generation(state),
        devices_allocated_without_admin_access(state),
        snapshot_of_slices_and_claims(state),
    );
    let mut all: Vec<DeviceNameSelector> = Vec::new();
    let mut notes = Vec::new();
    let mut unresolved: Option<String> = None;
    for (index, target) in request.targets.iter().enumerate() {
        let typed = request.typed.get(index).map_or("", String::as_str);
        // Claims hold devices whose slices are gone while a driver restarts.
        let resolved = match (target.resolve(&snapshot), target) {
            (Ok(resolved), _) => {
                notes.extend(resolved.notes.into_iter().map(|note| format!("{typed}: {note}")));
                resolved.devices
            }
            (Err(_), DeviceTarget::Devices(names)) if selects_any(&held, names) => vec![names.clone()],
            (Err(reason), _) => {
                unresolved.get_or_insert(format!("{typed}: {reason}"));
                continue;
            }
        };
        let by_pool: Vec<DeviceNameSelector> =
            resolved.iter().flat_map(|names| split_by_pool(names, &published, &held)).collect();
        if !by_pool.iter().any(|names| selects_any(&published, names) || selects_any(&held, names)) {
            return Err(format!("{typed}: no device is published or allocated there"));
        }
        all.extend(by_pool);
    }
    // A rule that no other target explains was made for the one that selects nothing any more.
    let explained: BTreeSet<&DeviceNameSelector> = all.iter().collect();
    if let Some(reason) = unresolved.filter(|_| closed.iter().all(|names| explained.contains(names))) {
        return Err(reason);
    }
    all.extend(closed.iter().cloned());
    let before: BTreeSet<DeviceNameSelector> = all.iter().cloned().collect();
    let all = remove_covered_selectors(with_partitions(all, &snapshot));
    if all.len() > MAX_RULES {
        return Err(format!(
            "the targets need {} DeviceTaintRules, and a drain creates at most {MAX_RULES}; name fewer devices, or whole \
             pools or nodes instead of single devices",
            all.len()
        ));
    }
    let partitions = all.iter().filter(|names| !before.contains(names)).count();
    if partitions > 0 {
        let (devices, are) = if partitions == 1 { ("device", "is") } else { ("devices", "are") };
        notes.push(format!(
            "{partitions} more {devices} with counters of the targets, such as partitions of a GPU, {are} drained too"
        ));
    }
    let selection = SelectedDevices::from_rules(&all);
    let mut devices = BTreeSet::new();
    let mut unpublished = 0;
    for (pools, is_published) in [(&published, true), (&held, false)] {
        for (&(driver, pool), names) in pools {
            for device in names.keys().filter(|device| selection.selects_device(driver, pool, device)) {
                unpublished +=
                    usize::from(devices.insert(DeviceId::new(driver, pool, device)) && !is_published);
            }
        }
    }
    if unpublished > 0 {
        let (devices, are) = if unpublished == 1 { ("device", "is") } else { ("devices", "are") };
        notes.push(format!("{unpublished} {devices} {are} held by claims and published by no ResourceSlice"));
    }
    let rules = all.into_iter().map(|selects| planned_rule(selects, request, &published)).collect();
    Ok(ResolvedTargets { rules, devices: devices.into_iter().collect(), notes })
}

/// The rule for a selector, with its name and the number of published devices that it selects.
fn planned_rule(
    names: DeviceNameSelector,
    request: &DrainRequest,
    published: &DevicesByPool<'_>,
) -> PlannedRule {
    let count = matching_pools(published, &names).map(|(driver, pool, devices)| {
        let matching = devices.iter().filter(|(device, _)| names.matches(driver, pool, device));
        matching.map(|(_, count)| count).sum::<usize>()
    });
    PlannedRule {
        name: readable_rule_name_with_hash(&names, &request.key, "None"),
        published: count.sum(),
        selects: names,
    }
}

/// The pools that match the driver and pool of the selector.
fn matching_pools<'p, 'd>(
    pools: &'p DevicesByPool<'d>,
    names: &'p DeviceNameSelector,
) -> impl Iterator<Item = (&'d str, &'d str, &'p NamedDevices<'d>)> {
    let fits = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
    let pools = pools.iter().map(|(&(driver, pool), devices)| (driver, pool, devices));
    pools.filter(move |(driver, pool, _)| fits(&names.driver, driver) && fits(&names.pool, pool))
}

/// True if the selector matches one of these devices.
fn selects_any(pools: &DevicesByPool<'_>, names: &DeviceNameSelector) -> bool {
    matching_pools(pools, names).any(|(_, _, devices)| match &names.device {
        Some(device) => devices.contains_key(device.as_str()),
        None => !devices.is_empty(),
    })
}

/// Splits a selector into one selector for each pool.
fn split_by_pool(
    names: &DeviceNameSelector,
    published: &DevicesByPool<'_>,
    held: &DevicesByPool<'_>,
) -> Vec<DeviceNameSelector> {
    if names.driver.is_some() && names.pool.is_some() {
        return vec![names.clone()];
    }
    let found = [published, held].into_iter().flat_map(|pools| {
        let has = |devices: &NamedDevices<'_>| {
            names.device.as_ref().is_none_or(|device| devices.contains_key(device.as_str()))
        };
        matching_pools(pools, names).filter(move |(_, _, devices)| has(devices))
    });
    let pools: BTreeSet<(&str, &str)> = found.map(|(driver, pool, _)| (driver, pool)).collect();
    let names = pools.into_iter().map(|(driver, pool)| DeviceNameSelector {
        driver: Some(driver.to_owned()),
        pool: Some(pool.to_owned()),
        device: names.device.clone(),
    });
    names.collect()
}

/// Sorts the selectors, and removes those that another selector covers.
fn remove_covered_selectors(mut all: Vec<DeviceNameSelector>) -> Vec<DeviceNameSelector> {
    all.sort();
    all.dedup();
    let whole: BTreeSet<DeviceNameSelector> =
        all.iter().filter(|names| names.device.is_none()).cloned().collect();
    all.retain(|names| {
        let pool = DeviceNameSelector { device: None, ..names.clone() };
        names.device.is_none() || !whole.contains(&pool)
    });
    all
}

/// The devices of the newest generation of each pool.
fn devices_of_newest_pool_generation<'d>(state: &State<'d>) -> DevicesByPool<'d> {
    let mut pools: BTreeMap<(&'d str, &'d str), (i64, NamedDevices<'d>)> = BTreeMap::new();
    for object in state.objects_of_kind(ObjectKind::ResourceSlice).iter() {
        let spec = Slice::of(object.value).spec();
        let generation = spec.pool().generation();
        let pool =
            pools.entry((spec.driver(), spec.pool().name())).or_insert((generation, NamedDevices::new()));
        if generation > pool.0 {
            *pool = (generation, NamedDevices::new());
        }
        if generation == pool.0 {
            for device in spec.devices().iter() {
                *pool.1.entry(tollgate_api::view::Device::name(device)).or_default() += 1;
            }
        }
    }
    pools.into_iter().map(|(pool, (_, devices))| (pool, devices)).collect()
}

/// The devices that claims hold, without results that have adminAccess.
fn devices_allocated_without_admin_access<'d>(state: &State<'d>) -> DevicesByPool<'d> {
    let mut pools = DevicesByPool::new();
    for object in state.objects_of_kind(ObjectKind::ResourceClaim).iter() {
        let Some(allocation) = Claim::of(object.value).status().allocation() else { continue };
        for result in allocation.devices().results().iter() {
            if result.admin_access() != Some(true) {
                *pools
                    .entry((result.driver(), result.pool()))
                    .or_default()
                    .entry(result.device())
                    .or_default() += 1;
            }
        }
    }
    pools
}

/// The ResourceSlices with their counters, and the ResourceClaims. Objects that cannot be read are omitted; the caller
/// has already reported them.
fn snapshot_of_slices_and_claims(state: &State<'_>) -> Snapshot {
    let mut snapshot = Snapshot::with_details(DetailsToStore { counters: true, ..DetailsToStore::default() });
    for kind in [ObjectKind::ResourceSlice, ObjectKind::ResourceClaim] {
        for object in state.objects_of_kind(kind).iter() {
            let version = format!("resource.k8s.io/{}", object.version.name());
            _ = snapshot.apply_as_type(&version, kind.name(), object.value);
        }
    }
    snapshot
}
