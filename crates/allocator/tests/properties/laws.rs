//! What holds for every state: a solution is allowed, and there is one whenever brute force finds one.

use super::model::Choice;
use super::world::{self, POOLS, World};
use tollgate_allocator::{
    AllocatedDevice, Allocation, AllocationError, AllocationOutcome, Allocator, AllocatorSemantics,
    Candidate, ClaimsToAllocate, Classes, DEFAULT_MAX_STEPS, DeviceUsage, DistinctComparedValues, Inventory,
    Node, SelectorError, SelectorEvaluator, UnallocatedClaim,
};
use tollgate_api::profile::Version;
use tollgate_api::view::{AllocationResult, Attribute, ClaimSpec, Class, Slice};
use tollgate_document::doc::{Doc, Value, parse};

/// How many states ended in which way.
#[derive(Default, Clone, Copy, Debug)]
pub(crate) struct Tally {
    pub(crate) found: u64,
    pub(crate) none: u64,
    pub(crate) broken: u64,
}

/// Asks the allocators of both releases about a state, and checks their answers.
pub(crate) fn check(world: &World, tally: &mut Tally) {
    for semantics in [AllocatorSemantics::V1_36, AllocatorSemantics::V1_37] {
        with_outcome(world, semantics, |outcome, world| match outcome {
            AllocationOutcome::Allocated(allocations) => {
                tally.found += 1;
                let choices = choices(&allocations);
                let miscount = world.wrong_device_count(&choices, semantics.all_skips_used_up_shares);
                assert_eq!(miscount, None, "{world:#?}");
                // One release forgets values that must be distinct.
                let is_exact = semantics.distinct_memory == DistinctComparedValues::All;
                let flaw =
                    world.first_violation(&choices).filter(|flaw| is_exact || !flaw.starts_with("claim"));
                assert_eq!(flaw, None, "{choices:?} {world:#?}");
            }
            AllocationOutcome::Unschedulable(_) if semantics == AllocatorSemantics::V1_37 => {
                tally.none += 1;
                assert_eq!(world.solution(), None, "{world:#?}");
            }
            AllocationOutcome::Unschedulable(_) => {}
            // All devices are asked for, and a constraint keeps one out: the search ends, though an alternative may do.
            AllocationOutcome::Failed(AllocationError::ConstraintBroken { .. }) => tally.broken += 1,
            AllocationOutcome::Failed(error) => panic!("{error}: {world:#?}"),
            AllocationOutcome::Unsupported(what) => panic!("{what}: {world:#?}"),
            AllocationOutcome::GaveUp { steps } => panic!("gave up after {steps} steps: {world:#?}"),
        });
    }
}

/// The selector `k0` or `k1` is the value of the attribute `kind`.
struct KindSelectors;

impl SelectorEvaluator for KindSelectors {
    fn matches(&self, expression: &str, device: Candidate<'_>) -> Result<bool, SelectorError> {
        let kind = device.body.attributes().get("kind").and_then(Attribute::string);
        Ok(kind == Some(expression))
    }
}

fn docs(texts: &[String]) -> Vec<Doc<'_>> {
    texts.iter().map(|text| parse(text).expect("JSON")).collect()
}

/// Looks at what the allocator makes of a world.
fn with_outcome(
    world: &World,
    semantics: AllocatorSemantics,
    look: impl FnOnce(AllocationOutcome<'_>, &World),
) {
    let (slices, results) = (world.slices(), world.results());
    let specs: Vec<String> = world.claims.iter().map(world::Claim::spec).collect();
    let (slices, results, specs) = (docs(&slices), docs(&results), docs(&specs));
    let slices = slices.iter().map(|slice| (Version::V1, Slice(slice.root())));
    let inventory = Inventory::new(semantics, slices, []);
    let results = results.iter().map(|result| AllocationResult(result.root()));
    let usage = DeviceUsage::from_results(&inventory, results);
    let class = parse("{}").expect("JSON");
    let classes: Classes<'_> = [("c", Class(class.root()))].into_iter().collect();
    let unallocated = specs.iter().map(|spec| UnallocatedClaim {
        namespace: "app",
        name: "c",
        version: Version::V1,
        spec: ClaimSpec(spec.root()),
    });
    let claims = ClaimsToAllocate::new(unallocated, [], &classes, &semantics).expect("the class exists");
    let allocator = Allocator {
        inventory: &inventory,
        usage: &usage,
        selectors: &KindSelectors,
        max_steps: DEFAULT_MAX_STEPS,
    };
    let node = Node { name: "n1", labels: Value::absent() };
    look(allocator.allocate(&inventory.pools_for(node), &claims), world);
}

fn choices(allocations: &[Allocation<'_>]) -> Vec<Choice> {
    let number = |text: &str| text.get(1..).and_then(|digits| digits.parse().ok()).expect("a number");
    let choice = |claim: usize, device: &AllocatedDevice<'_>| {
        assert!(POOLS.contains(&device.pool));
        Choice {
            claim,
            request: number(device.request),
            alternative: device.alternative.map_or(0, number),
            device: number(device.device),
        }
    };
    let claims = allocations.iter().enumerate();
    claims
        .flat_map(|(claim, allocation)| allocation.devices.iter().map(move |one| choice(claim, one)))
        .collect()
}
