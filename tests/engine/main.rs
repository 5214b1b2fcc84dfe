//! The engine and the crates below it, with the data of `tests/`: corpora, recordings, laws.
//!
//! `allocation-counter`, which three modules use, brings the global allocator; it counts per thread, so tests that
//! count run beside the others.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that cannot read its data has failed"
)]

mod allocations;
mod cel_corpus;
mod cel_evaluation;
mod claims;
mod conformance;
mod coverage;
mod crowded;
mod decoding;
mod enforcement;
mod generated;
mod go_types;
mod go_yaml;
mod guard;
mod impact;
mod memory;
mod patches;
mod policies;
mod policy_json;
mod positions;
mod properties;
mod put_back;
mod ratchet;
mod replacement;
mod selection;
mod shapes;
mod shipped;
mod sizes;
mod source_properties;
mod spreading;
mod stored;
mod support;
mod tainted;
mod tolerates;
mod warnings;
mod webhooks;
mod yaml_corpus;
