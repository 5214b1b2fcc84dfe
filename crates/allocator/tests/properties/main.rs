//! Laws of the allocator on random small states: what it gives is allowed, and it finds something whenever there is
//! something.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]

mod model;
mod world;

use model::Choice;
use tollgate_allocator::{
    AllocatedDevice, Allocation, AllocationError, Allocator, Candidate, Claims, Classes, DEFAULT_MAX_STEPS,
    DistinctMemory, Inventory, Node, Outcome, SelectorError, Selectors, Semantics, UnallocatedClaim, Usage,
};
use tollgate_api::profile::Version;
use tollgate_api::view::{AllocationResult, Attribute, ClaimSpec, Class, Slice};
use tollgate_document::doc::{Doc, Value, parse};
use world::{POOLS, Random, World};

/// An evaluator that compares the expression, `k0` or `k1`, with the attribute `kind`.
struct KindSelectors;

impl Selectors for KindSelectors {
    fn matches(&self, expression: &str, device: Candidate<'_>) -> Result<bool, SelectorError> {
        let kind = device.body.attributes().get("kind").and_then(Attribute::string);
        Ok(kind == Some(expression))
    }
}

fn docs(texts: &[String]) -> Vec<Doc<'_>> {
    texts.iter().map(|text| parse(text).expect("JSON")).collect()
}

/// Calls `look` with the allocator's result for a random cluster.
fn with_outcome(world: &World, semantics: Semantics, look: impl FnOnce(Outcome<'_>, &World)) {
    let (slices, results) = (world.slices(), world.results());
    let specs: Vec<String> = world.claims.iter().map(world::Claim::spec).collect();
    let (slices, results, specs) = (docs(&slices), docs(&results), docs(&specs));
    let slices = slices.iter().map(|slice| (Version::V1, Slice(slice.root())));
    let inventory = Inventory::new(semantics, slices, []);
    let results = results.iter().map(|result| AllocationResult(result.root()));
    let usage = Usage::of_results(&inventory, results);
    let class = parse("{}").expect("JSON");
    let classes: Classes<'_> = [("c", Class(class.root()))].into_iter().collect();
    let unallocated = specs.iter().map(|spec| UnallocatedClaim {
        namespace: "app",
        name: "c",
        version: Version::V1,
        spec: ClaimSpec(spec.root()),
    });
    let claims = Claims::new(unallocated, [], &classes, &semantics).expect("the class exists");
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

#[test]
fn solutions_are_allowed_and_found() {
    check_states(0..10_000);
}

#[test]
#[ignore = "takes minutes without optimization"]
fn solutions_are_allowed_and_found_in_many_states() {
    check_states(0..200_000);
}

fn check_states(seeds: std::ops::Range<u64>) {
    let states = seeds.end - seeds.start;
    let (mut found, mut none, mut broken) = (0, 0, 0);
    for seed in seeds {
        let world = World::new(&mut Random(seed));
        for semantics in [Semantics::V1_36, Semantics::V1_37] {
            with_outcome(&world, semantics, |outcome, world| match outcome {
                Outcome::Allocated(allocations) => {
                    found += 1;
                    let choices = choices(&allocations);
                    let miscount = world.wrong_device_count(&choices, semantics.all_skips_used_up_shares);
                    assert_eq!(miscount, None, "seed {seed}: {world:#?}");
                    // One release forgets values that must be distinct.
                    let is_exact = semantics.distinct_memory == DistinctMemory::All;
                    let flaw =
                        world.first_violation(&choices).filter(|flaw| is_exact || !flaw.starts_with("claim"));
                    assert_eq!(flaw, None, "seed {seed}: {choices:?} {world:#?}");
                }
                Outcome::Unschedulable(_) if semantics == Semantics::V1_37 => {
                    none += 1;
                    assert_eq!(world.solution(), None, "seed {seed}: {world:#?}");
                }
                Outcome::Unschedulable(_) => {}
                // All devices are asked for, and a constraint keeps one out: the search ends, though an alternative may do.
                Outcome::Failed(AllocationError::ConstraintBroken { .. }) => broken += 1,
                Outcome::Failed(error) => panic!("seed {seed}: {error}"),
                Outcome::Unsupported(what) => panic!("seed {seed}: {what}"),
                Outcome::GaveUp { steps } => panic!("seed {seed}: gave up after {steps} steps"),
            });
        }
    }
    assert!(found > states / 4 && none > states / 10 && broken > states / 1000, "{found} {none} {broken}");
}
