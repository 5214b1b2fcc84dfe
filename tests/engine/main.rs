//! The library from inside: every test that calls what is behind the front door.
//!
//! It is compiled into the library's own tests (`src/lib.rs`), where `tollgate` names the library itself, private modules
//! included. It runs no other program: nothing here may ask for `CARGO_BIN_EXE_tollgate` or `CARGO_TARGET_TMPDIR`, which
//! exist for integration tests only. Modules are reached by `super::`.
//!
//! `allocation-counter`, which two modules use, brings the global allocator; it counts per thread, so tests that
//! count run beside the others.

mod allocations;
mod cel_corpus;
mod claims;
mod conformance;
mod coverage;
mod crowded;
mod decoding;
mod generated;
mod go_types;
mod go_yaml;
mod guard;
mod impact;
mod patches;
mod policies;
mod policy_json;
#[cfg(feature = "cli")]
mod positions;
mod properties;
mod put_back;
mod ratchet;
mod replacement;
mod shapes;
#[cfg(feature = "cluster")]
mod shipped;
mod sizes;
mod source_properties;
mod spreading;
mod stored;
mod support;
mod tolerates;
mod warnings;
mod webhooks;
mod yaml_corpus;
