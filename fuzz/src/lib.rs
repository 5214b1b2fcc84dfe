//! Fuzz targets: functions that take any bytes, feed them to one part of Tollgate, and panic if a law is broken.
//!
//! A target is a line of [`TARGETS`]. `make fuzz` runs each with libFuzzer, which looks for inputs that reach new code.
//! `fuzz/corpus/` has the inputs that are worth keeping, and `cargo test` replays them. The targets `fix`, `lsp`,
//! `mcp`, `kubeconfig` and `watch` look into private modules: they are in the crates of these modules, and are here
//! only if the crates are built for fuzzing (`--cfg fuzzing`).
//!
//! A target reads no clock, opens no file of the user and starts no thread, unless the code under test does.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::case_sensitive_file_extension_comparisons,
    reason = "a target fails by a panic"
)]

mod allocator;
mod cel;
pub mod command;
pub mod corpus;
mod coverage;
mod formats;
mod object;
mod policy;
mod review;
mod schema;
mod seeds;
mod snapshot;
mod stored;

/// Something that is fuzzed.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name in `make fuzz TARGET=…`, and the name of its corpus.
    pub name: &'static str,
    /// Panics if a law is broken.
    pub run: fn(&[u8]),
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Longest input that is tried.
    pub max_len: usize,
}

/// All targets that this build has.
pub const TARGETS: &[Target] = &[
    Target { name: "review", run: review::run, seeds: seeds::reviews, max_len: 16 << 10 },
    Target { name: "object", run: object::run, seeds: seeds::objects, max_len: 8 << 10 },
    Target { name: "policy", run: policy::run, seeds: seeds::policies, max_len: 8 << 10 },
    Target { name: "schema", run: schema::run, seeds: seeds::schemas, max_len: 8 << 10 },
    Target { name: "cel", run: cel::run, seeds: seeds::expressions, max_len: 1 << 10 },
    Target { name: "formats", run: formats::run, seeds: seeds::formats, max_len: 256 },
    Target { name: "snapshot", run: snapshot::run, seeds: seeds::snapshots, max_len: 32 << 10 },
    Target { name: "coverage", run: coverage::run, seeds: seeds::none, max_len: 256 },
    Target { name: "allocator", run: allocator::run, seeds: seeds::none, max_len: 64 },
    #[cfg(fuzzing)]
    Target { name: "fix", run: tollgate::fuzzing::fix, seeds: seeds::manifests, max_len: 4 << 10 },
    #[cfg(fuzzing)]
    Target { name: "lsp", run: tollgate::fuzzing::lsp, seeds: seeds::editor_sessions, max_len: 16 << 10 },
    #[cfg(fuzzing)]
    Target { name: "mcp", run: tollgate::fuzzing::mcp, seeds: seeds::program_sessions, max_len: 8 << 10 },
    #[cfg(fuzzing)]
    Target {
        name: "kubeconfig",
        run: tollgate_cluster::fuzzing::kubeconfig,
        seeds: seeds::kubeconfigs,
        max_len: 4 << 10,
    },
    #[cfg(fuzzing)]
    Target { name: "watch", run: tollgate_cluster::fuzzing::watch, seeds: seeds::watches, max_len: 16 << 10 },
];

/// Returns the target of that name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().copied().find(|target| target.name == name)
}
