//! Placeholder until the source shell lands: see `benches/admit.rs`.
fn main() {}
