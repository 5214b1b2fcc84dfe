//! In the recorded states, a device has no obstacle exactly if a search for this one device finds it on some node.

use crate::case_lines;
use tollgate_allocator::{
    AllocationOutcome, Allocator, AllocatorSemantics, Candidate, ClaimsToAllocate, Classes,
    DEFAULT_MAX_STEPS, DeviceUsage, Inventory, Node, UnallocatedClaim,
};
use tollgate_api::profile::Version;
use tollgate_api::view::{Claim, ClaimSpec, Class, Slice};
use tollgate_document::doc::{Value, parse};

/// A claim spec for one device that tolerates every taint.
const PROBE: &str = r#"{"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c",
    "selectors": [{"cel": {"expression": "this one"}}], "tolerations": [{"operator": "Exists"}]}}]}}"#;

#[test]
fn devices_without_an_obstacle_can_be_taken() {
    let (probe, class) = (parse(PROBE).expect("JSON"), parse("{}").expect("JSON"));
    let classes: Classes<'_> = [("c", Class(class.root()))].into_iter().collect();
    let (mut available, mut blocked) = (0, 0);
    for line in case_lines().lines() {
        let doc = parse(line).expect("JSON");
        let case = doc.root();
        let items = |kind: &'static str| {
            let before = case.get("before").get("items").items();
            before.chain(case.get("create").items()).filter(move |item| item.get("kind").text() == kind)
        };
        let is_schedulable = |node: &Value<'_>| node.get("spec").get("unschedulable").bool() != Some(true);
        let nodes: Vec<Node<'_>> = items("Node").filter(is_schedulable).map(Node::from_object).collect();
        for semantics in [AllocatorSemantics::V1_36, AllocatorSemantics::V1_37_0] {
            let slices = items("ResourceSlice").map(|slice| (Version::V1, Slice(slice)));
            let inventory = Inventory::new(semantics, slices, []);
            let allocations = items("ResourceClaim").filter_map(|claim| Claim(claim).status().allocation());
            let results =
                allocations.flat_map(|allocation| allocation.devices().results().iter().collect::<Vec<_>>());
            let usage = DeviceUsage::from_results(&inventory, results);
            let (namespace, name, version, spec) = ("app", "c", Version::V1, ClaimSpec(probe.root()));
            let claim = UnallocatedClaim { namespace, name, version, spec };
            let claims = ClaimsToAllocate::new([claim], [], &classes, &semantics).expect("the class exists");
            let obstacles = inventory.obstacles_other_than_holders_and_taints(&usage, Some(&nodes));
            for device in
                inventory.published_devices().filter(|device| !usage.is_held_or_shared(device.key()))
            {
                let wanted = device.candidate.index;
                let selectors = |_: &str, device: Candidate<'_>| Ok(device.index == wanted);
                let allocator = Allocator {
                    inventory: &inventory,
                    usage: &usage,
                    selectors: &selectors,
                    max_steps: DEFAULT_MAX_STEPS,
                };
                let is_taken = nodes.iter().any(|node| {
                    let outcome = allocator.allocate(&inventory.pools_for(*node), &claims);
                    matches!(outcome, AllocationOutcome::Allocated(_))
                });
                let obstacle = obstacles.get(wanted).copied().flatten();
                let id = case.get("id").text();
                assert_eq!(obstacle.is_none(), is_taken, "{id} {}: {obstacle:?}", device.candidate);
                *(if is_taken { &mut available } else { &mut blocked }) += 1;
            }
        }
    }
    assert!(available > 5_000 && blocked > 500, "{available} available, {blocked} blocked");
}
