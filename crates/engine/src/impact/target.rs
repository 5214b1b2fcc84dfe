//! Devices as people name them: `DRIVER[/POOL[/DEVICE]]`, or `node/NAME` for the devices of a node.
//!
//! Parsing needs no cluster state; [`DeviceTarget::resolve`] looks the names up in the state of a cluster. Pure.
//!
//! Invariant: what is resolved selects at least one device, and only devices that were asked for. A device that several
//! nodes share does not belong to one of them.

use std::collections::BTreeSet;

use super::placement::NodeSet;
use super::record::RuleSelector;
use super::snapshot::{Pool, Snapshot};
use super::{partitions, unmatched};
use tollgate_api::conform::suggest::nearest_if_unambiguous;

/// Devices that a user names on the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeviceTarget {
    /// Devices by driver, pool and name.
    Devices(DeviceNameSelector),
    /// The devices of a node.
    Node(String),
}

/// Selects devices by the exact names of driver, pool and device; `None` matches any name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct DeviceNameSelector {
    pub driver: Option<String>,
    pub pool: Option<String>,
    pub device: Option<String>,
}

/// The devices that a target refers to in a given cluster state.
#[derive(Debug, Default)]
pub struct ResolvedTarget {
    /// One selector for each rule that is needed.
    pub devices: Vec<DeviceNameSelector>,
    /// Sentences about devices that may belong to the target but are not selected, such as those that several nodes
    /// share.
    pub notes: Vec<String>,
}

impl DeviceNameSelector {
    /// True if no name is set, so that all devices are selected.
    pub fn selects_everything(&self) -> bool {
        *self == DeviceNameSelector::default()
    }

    /// True if the selector matches the device with these names.
    pub fn matches(&self, driver: &str, pool: &str, device: &str) -> bool {
        let fits = |wanted: &Option<String>, found| wanted.as_ref().is_none_or(|wanted| wanted == found);
        fits(&self.driver, driver) && fits(&self.pool, pool) && fits(&self.device, device)
    }

    /// Returns the names that are set, each with the name of its field.
    pub fn specified_names(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [("driver", &self.driver), ("pool", &self.pool), ("device", &self.device)];
        all.into_iter().filter_map(|(field, value)| value.as_deref().map(|value| (field, value)))
    }
}

/// Writes `DRIVER[/POOL[/DEVICE]]`, as [`DeviceTarget::parse`] reads it, with `*` for any name.
impl std::fmt::Display for DeviceNameSelector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let part = |name: &Option<String>| name.clone().unwrap_or_else(|| "*".to_owned());
        f.write_str(&part(&self.driver))?;
        if self.pool.is_some() || self.device.is_some() {
            write!(f, "/{}", part(&self.pool))?;
        }
        self.device.iter().try_for_each(|device| write!(f, "/{device}"))
    }
}

impl DeviceTarget {
    /// Parses `DRIVER[/POOL[/DEVICE]]` or `node/NAME`, with `*` for any name. Pool names can contain slashes:
    /// with more than three parts, everything between the first and the last part is the pool.
    pub fn parse(text: &str) -> Result<DeviceTarget, String> {
        let parts: Vec<&str> = text.split('/').collect();
        if parts.iter().any(|part| part.is_empty()) {
            let message = "a part is empty; use `*` to match any name, as in gpu.example.com/*/gpu-0";
            return Err(message.to_owned());
        }
        let is_pattern = |part: &&&str| **part != "*" && part.contains(['*', '?', '[', '{']);
        if let Some(part) = parts.iter().find(is_pattern) {
            return Err(format!(
                "`{part}` is a pattern, but a DeviceTaintRule selects devices by exact names; use the whole name, or \
                 `*` alone for any name"
            ));
        }
        let given = |part: String| Some(part).filter(|part| part != "*");
        let (driver, pool, device) = match parts.as_slice() {
            ["node", "*"] => return Err("use the name of a node, as in node/gpu-node-03".to_owned()),
            ["node", name] => return Ok(DeviceTarget::Node((*name).to_owned())),
            [driver] => (*driver, None, None),
            [driver, pool] => (*driver, Some((*pool).to_owned()), None),
            [driver, pool @ .., device] => (*driver, Some(pool.join("/")), Some((*device).to_owned())),
            [] => return Err("expected DRIVER[/POOL[/DEVICE]] or node/NAME".to_owned()),
        };
        Ok(DeviceTarget::Devices(DeviceNameSelector {
            driver: given(driver.to_owned()),
            pool: pool.and_then(given),
            device: device.and_then(given),
        }))
    }

    /// Returns the devices of the target in the state of a cluster. If there are none, the error suggests the nearest
    /// name.
    pub fn resolve(&self, snapshot: &Snapshot) -> Result<ResolvedTarget, String> {
        match self {
            DeviceTarget::Devices(names) => resolve_names(names, snapshot),
            DeviceTarget::Node(node) => resolve_node(node, snapshot),
        }
    }
}

/// Returns these devices and all their partitions, one selector for each rule that is needed.
pub fn with_partitions(mut devices: Vec<DeviceNameSelector>, snapshot: &Snapshot) -> Vec<DeviceNameSelector> {
    let partitions = partitions::partitions_of_selected_devices(snapshot, &devices);
    devices.extend(partitions.into_iter().map(|partition| DeviceNameSelector {
        driver: Some(partition.driver.to_owned()),
        pool: Some(partition.pool.to_owned()),
        device: Some(partition.device.to_owned()),
    }));
    devices
}

/// Returns the names as they are if they select at least one device; otherwise an error.
fn resolve_names(names: &DeviceNameSelector, snapshot: &Snapshot) -> Result<ResolvedTarget, String> {
    let shared = |name: &Option<String>| name.as_deref().map(Into::into);
    let selector = RuleSelector {
        driver: shared(&names.driver),
        pool: shared(&names.pool),
        device: shared(&names.device),
        ..RuleSelector::default()
    };
    let Some(reason) = unmatched::explain_missing_name(&selector, snapshot) else {
        return Ok(ResolvedTarget { devices: vec![names.clone()], notes: Vec::new() });
    };
    let Some(driver) = names.driver.as_deref().filter(|name| !snapshot.drivers.contains_key(*name)) else {
        return Err(reason);
    };
    // The first part is not a driver: perhaps a node, or a pool, which is often called after its node.
    if node_names(snapshot).contains(driver) {
        return Err(format!("{reason}; `{driver}` is a node: use `node/{driver}`"));
    }
    let of_pool = |(name, pools): (&super::interner::InternedStr, &super::snapshot::DriverPoolSlots)| {
        pools.contains_key(driver).then(|| name.to_string())
    };
    match snapshot.drivers.iter().find_map(of_pool) {
        Some(owner) => Err(format!("{reason}; `{driver}` is a pool: use `{owner}/{driver}`")),
        None => Err(reason),
    }
}

/// Returns every node that a current slice names.
fn node_names(snapshot: &Snapshot) -> BTreeSet<&str> {
    let mut nodes = BTreeSet::new();
    for (_, _, pool) in named_pools(snapshot) {
        for slice in pool.current_slices() {
            for device in &slice.devices {
                if let NodeSet::Nodes(names) = slice.placement.nodes_of_device(&device.name) {
                    nodes.extend(names.iter().map(|name| &**name));
                }
            }
        }
    }
    nodes
}

/// Returns the pools as (driver, pool name, pool).
fn named_pools(snapshot: &Snapshot) -> impl Iterator<Item = (&str, &str, &Pool)> {
    snapshot.drivers.iter().flat_map(move |(driver, pools)| {
        let known = pools
            .iter()
            .filter_map(move |(name, slot)| Some((name, snapshot.pools.get_even_if_free(*slot)?)));
        known.map(move |(name, pool)| (&**driver, &**name, pool))
    })
}

/// The devices of a pool that claims hold although no current slice lists them, as while their driver restarts. Only the
/// claims tell where they are.
#[derive(Default)]
struct HeldDevices<'s> {
    /// Those that are held on the node.
    own: Vec<&'s str>,
    /// Number of devices that are held on other nodes, or, if the pool has no slice, on nodes that are not known.
    elsewhere: usize,
    /// True if a claim with devices of no other pool is bound to the node, so that the pool belongs to the node. Of a claim
    /// with devices of several pools, each can be the reason.
    is_local_pool: bool,
}

impl<'s> HeldDevices<'s> {
    fn of_unpublished(
        pool: &'s Pool,
        node: &str,
        published: &BTreeSet<&str>,
        snapshot: &Snapshot,
    ) -> HeldDevices<'s> {
        let mut held = HeldDevices::default();
        for (device, claims) in pool.allocated.iter().filter(|(device, _)| !published.contains(&***device)) {
            let claims = claims.iter().filter_map(|claim| snapshot.claim_record(*claim));
            let nodes: Vec<Option<&str>> = claims.clone().map(|claim| claim.node.as_deref()).collect();
            let is_elsewhere = nodes.iter().flatten().any(|other| *other != node);
            if nodes.contains(&Some(node)) && !is_elsewhere {
                held.own.push(device);
            }
            held.elsewhere += usize::from(is_elsewhere || published.is_empty() && nodes.contains(&None));
            held.is_local_pool |=
                claims.into_iter().any(|claim| claim.node.as_deref() == Some(node) && claim.uses_one_pool());
        }
        held
    }
}

/// Returns one selector for each pool or device that is only on that node, by slices or by the claims that hold it, with
/// notes about shared devices and devices whose node is not known; an error if there are none.
fn resolve_node(node: &str, snapshot: &Snapshot) -> Result<ResolvedTarget, String> {
    let mut resolved = ResolvedTarget::default();
    for (driver, name, pool) in named_pools(snapshot) {
        let (mut own, mut published) = (BTreeSet::<&str>::new(), BTreeSet::<&str>::new());
        let (mut others, mut is_shared, mut is_unknown) = (0, false, false);
        for slice in pool.current_slices() {
            for device in &slice.devices {
                published.insert(&*device.name);
                match slice.placement.nodes_of_device(&device.name) {
                    NodeSet::Nodes(nodes) if nodes.iter().all(|name| **name == *node) => {
                        own.insert(&*device.name);
                        continue;
                    }
                    NodeSet::Nodes(nodes) => is_shared |= nodes.iter().any(|name| **name == *node),
                    NodeSet::Elsewhere => is_unknown = true,
                }
                others += 1;
            }
        }
        let held = HeldDevices::of_unpublished(pool, node, &published, snapshot);
        own.extend(held.own);
        others += held.elsewhere;
        // Drivers usually name the pool of a node after it.
        let is_local = !published.is_empty() || held.is_local_pool || name == node;
        let is_whole_pool = others == 0 && is_local;
        if is_whole_pool && published.is_empty() && !own.is_empty() {
            resolved.notes.push(format!(
                "no ResourceSlice lists devices of pool {name} of driver {driver} now; the pool is included, because \
                 claims hold its devices on this node"
            ));
        }
        let of = |device: Option<&str>| DeviceNameSelector {
            driver: Some(driver.to_owned()),
            pool: Some(name.to_owned()),
            device: device.map(ToOwned::to_owned),
        };
        if is_shared || is_unknown {
            let why =
                if is_shared { "other nodes, too" } else { "nodes that the ResourceSlice does not name" };
            resolved.notes.push(format!(
                "pool {name} of driver {driver} has devices that are available on {why}; they are not included"
            ));
        }
        match is_whole_pool {
            _ if own.is_empty() => {}
            true => resolved.devices.push(of(None)),
            false => resolved.devices.extend(own.into_iter().map(|device| of(Some(device)))),
        }
    }
    if !resolved.devices.is_empty() {
        return Ok(resolved);
    }
    let known = node_names(snapshot);
    if known.contains(node) {
        return Err(format!("no device belongs to node `{node}` alone: {}", resolved.notes.join("; ")));
    }
    let meant = nearest_if_unambiguous(node, known.iter().copied())
        .map(|meant| format!(" (did you mean `node/{meant}`?)"));
    Err(format!("no ResourceSlice names node `{node}`{}", meant.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::{DeviceNameSelector, DeviceTarget};
    use crate::impact::Snapshot;
    use tollgate_document::doc;

    fn names(parts: [&str; 3]) -> DeviceNameSelector {
        let [driver, pool, device] = parts.map(|part| Some(part.to_owned()).filter(|part| !part.is_empty()));
        DeviceNameSelector { driver, pool, device }
    }

    #[test]
    fn devices_and_nodes_are_named() {
        for (text, expected) in [
            ("a", ["a", "", ""]),
            ("a/b", ["a", "b", ""]),
            ("a/b/c", ["a", "b", "c"]),
            ("a/b/c/d", ["a", "b/c", "d"]),
            ("a/*/c", ["a", "", "c"]),
            ("*/b", ["", "b", ""]),
            ("*", ["", "", ""]),
            ("*/*/*", ["", "", ""]),
        ] {
            assert_eq!(DeviceTarget::parse(text), Ok(DeviceTarget::Devices(names(expected))), "{text}");
        }
        assert_eq!(DeviceTarget::parse("node/n-1"), Ok(DeviceTarget::Node("n-1".to_owned())));
        for text in ["a//c", "", "node/*", "gpu-*", "a/node-?", "a/b/gpu-[0-3]", "node/gpu-*", "a/{b,c}"] {
            assert!(DeviceTarget::parse(text).is_err(), "{text}");
        }
        let pattern = DeviceTarget::parse("a/gpu-*").unwrap_err();
        assert!(pattern.starts_with("`gpu-*` is a pattern") && !pattern.contains("regex"), "{pattern}");
    }

    /// Two pools of one node each, one that spans nodes, one by name of a selector, one for all nodes.
    fn snapshot() -> Snapshot {
        let mut snapshot = Snapshot::new();
        let selector = |nodes: &str| {
            format!(
                r#""nodeSelector":{{"nodeSelectorTerms":[{{"matchFields":[{{"key":"metadata.name","operator":"In","values":[{nodes}]}}]}}]}}"#
            )
        };
        let slices = [
            (
                "gpu.example.com",
                "gpu-node-03",
                r#""nodeName":"gpu-node-03""#.to_owned(),
                r#"{"name":"gpu-0"},{"name":"gpu-1"}"#.to_owned(),
            ),
            (
                "gpu.example.com",
                "pool-9",
                r#""nodeName":"gpu-node-09""#.to_owned(),
                r#"{"name":"gpu-0"}"#.to_owned(),
            ),
            (
                "nic.example.com",
                "fabric",
                r#""perDeviceNodeSelection":true"#.to_owned(),
                format!(
                    r#"{{"name":"nic-3","nodeName":"gpu-node-03"}},{{"name":"nic-9","nodeName":"gpu-node-09"}},{{"name":"nic-x",{}}}"#,
                    selector(r#""gpu-node-03","gpu-node-09""#)
                ),
            ),
            ("fpga.example.com", "rack", selector(r#""gpu-node-03""#), r#"{"name":"f-0"}"#.to_owned()),
            ("lic.example.com", "licenses", r#""allNodes":true"#.to_owned(), r#"{"name":"l-0"}"#.to_owned()),
        ];
        for (driver, pool, place, devices) in slices {
            let slice = format!(
                r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"{pool}"}},
                "spec":{{"driver":"{driver}","pool":{{"name":"{pool}","generation":1,"resourceSliceCount":1}},
                {place},"devices":[{devices}]}}}}"#
            );
            let slice = doc::parse(&slice).expect("JSON");
            snapshot.apply(slice.root()).expect("a slice");
        }
        snapshot
    }

    #[test]
    fn a_node_has_the_devices_that_no_other_node_has() {
        let resolved = DeviceTarget::parse("node/gpu-node-03").unwrap().resolve(&snapshot()).unwrap();
        assert_eq!(
            resolved.devices,
            [
                names(["fpga.example.com", "rack", ""]),
                names(["gpu.example.com", "gpu-node-03", ""]),
                names(["nic.example.com", "fabric", "nic-3"]),
            ]
        );
        assert_eq!(resolved.notes.len(), 2, "{:?}", resolved.notes);
    }

    /// While a driver restarts, its slices are gone.
    #[test]
    fn a_node_has_the_devices_that_claims_hold_there() {
        let mut snapshot = snapshot();
        for (claim, driver, pool, device, node) in [
            ("gone", "gpu.example.com", "gpu-node-04", "gpu-0", "gpu-node-03"),
            ("renamed", "fpga.example.com", "rack", "f-old", "gpu-node-03"),
            ("spread-1", "gpu.example.com", "span", "gpu-0", "gpu-node-03"),
            ("spread-2", "gpu.example.com", "span", "gpu-1", "gpu-node-09"),
            ("elsewhere", "gpu.example.com", "gpu-node-05", "gpu-0", "gpu-node-05"),
            // Also claims whose pods can run on all nodes use this pool, and one of several pools.
            ("network-1", "lic.example.com", "network", "port-0", "gpu-node-03"),
            ("network-2", "lic.example.com", "network", "port-1", ""),
            ("with-gpu", "lic.example.com", "tokens", "t-0", "gpu-node-03"),
            ("of-node", "lic.example.com", "gpu-node-03", "t-0", "gpu-node-03"),
        ] {
            let gpu = if ["with-gpu", "of-node"].contains(&claim) {
                r#",{"request":"g","driver":"gpu.example.com","pool":"gpu-node-03","device":"gpu-0"}"#
            } else {
                ""
            };
            let key = if node.is_empty() { "zone" } else { "metadata.name" };
            let claim = format!(
                r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"{claim}","namespace":"a"}},
                "status":{{"allocation":{{"devices":{{"results":[{{"request":"r","driver":"{driver}","pool":"{pool}","device":"{device}"}}{gpu}]}},
                "nodeSelector":{{"nodeSelectorTerms":[{{"matchFields":[{{"key":"{key}","operator":"In","values":["{node}"]}}]}}]}}}}}}}}"#
            );
            let claim = doc::parse(&claim).expect("JSON");
            snapshot.apply(claim.root()).expect("a claim");
        }
        let resolved = DeviceTarget::parse("node/gpu-node-03").unwrap().resolve(&snapshot).unwrap();
        assert_eq!(
            resolved.devices,
            [
                names(["fpga.example.com", "rack", ""]),
                names(["gpu.example.com", "gpu-node-03", ""]),
                names(["gpu.example.com", "gpu-node-04", ""]),
                // Claims hold devices of this pool on two nodes.
                names(["gpu.example.com", "span", "gpu-0"]),
                names(["lic.example.com", "gpu-node-03", ""]),
                names(["lic.example.com", "network", "port-0"]),
                names(["lic.example.com", "tokens", "t-0"]),
                names(["nic.example.com", "fabric", "nic-3"]),
            ]
        );
        let only_held = DeviceTarget::parse("node/gpu-node-05").unwrap().resolve(&snapshot).unwrap();
        assert_eq!(only_held.devices, [names(["gpu.example.com", "gpu-node-05", ""])]);
        let note = only_held.notes.iter().find(|note| note.contains("gpu-node-05")).expect("a note");
        assert!(note.starts_with("no ResourceSlice lists devices of pool gpu-node-05"), "{note}");
    }

    #[test]
    fn a_name_that_nothing_has_is_an_error_with_the_nearest_one() {
        for (text, expected) in [
            ("gpu-node-03", "`gpu-node-03` is a node: use `node/gpu-node-03`"),
            ("pool-9", "`pool-9` is a pool: use `gpu.example.com/pool-9`"),
            ("gpu.exmaple.com", "did you mean `gpu.example.com`?"),
            ("gpu.example.com/gpu-node-3", "did you mean `gpu-node-03`?"),
            ("gpu.example.com/gpu-node-03/gpu0", "did you mean `gpu-0`?"),
            ("node/gpu-node-3", "did you mean `node/gpu-node-03`?"),
            ("node/elsewhere", "no ResourceSlice names node `elsewhere`"),
        ] {
            let error = DeviceTarget::parse(text).unwrap().resolve(&snapshot()).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
        let known = DeviceTarget::parse("gpu.example.com/*/gpu-0").unwrap().resolve(&snapshot()).unwrap();
        assert_eq!(known.devices, [names(["gpu.example.com", "", "gpu-0"])]);
    }
}
