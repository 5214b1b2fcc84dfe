//! Laws of the allocator on random small states: what it gives is allowed, and it finds something whenever there is
//! something.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]

mod laws;
mod model;
mod world;

use laws::Tally;
use world::{Random, World};

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
    let mut tally = Tally::default();
    for seed in seeds {
        laws::check(&World::new(&mut Random(seed, &[])), &mut tally);
    }
    let Tally { found, none, broken } = tally;
    assert!(found > states / 4 && none > states / 10 && broken > states / 1000, "{tally:?}");
}
