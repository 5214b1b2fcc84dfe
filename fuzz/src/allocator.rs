//! The allocator on small random states, compared with brute force. The states are those of
//! `crates/allocator/tests/properties`, made from the input instead of a seed.

#[path = "../../crates/allocator/tests/properties/laws.rs"]
mod laws;
#[path = "../../crates/allocator/tests/properties/model.rs"]
mod model;
#[path = "../../crates/allocator/tests/properties/world.rs"]
mod world;

/// The input is the choices from which a state is made.
pub(crate) fn run(data: &[u8]) {
    laws::check(&world::World::new(&mut world::Random(0, data)), &mut laws::Tally::default());
}
