//! Divides `--max-memory` between connections, bodies, their evaluation, and the cached state of the cluster.
//!
//! Pure, except for [`effective_memory_limit`], which reads the limit of the container. The parts add up to no more than the
//! whole; their use is counted by `limiter` and `connection`.
#![expect(clippy::disallowed_methods, reason = "the shell asks the system for its limit here")]

use tollgate_engine::engine::memory_bytes_for_body;

use super::UnusableSettings;
use super::limiter::MAX_SMALL_BODY_BYTES;
use super::settings::Limits;

/// Memory of the process itself: program, policies, tables, buffered log lines, what workers keep for their next request,
/// and fragmentation of the allocator.
const BASE_MEMORY: usize = 40 << 20;
/// Memory of one connection: TLS session, buffers, task. Measured: 18 KiB, silent or with half a head.
const CONNECTION_BYTES: usize = 20 << 10;

/// Memory for reading lists and watches of a cluster: texts of pages, and one object of the largest size.
const CLUSTER_READ_BYTES: usize = 16 << 20;

/// Number of connections for which the memory limit must suffice at least.
const CONNECTIONS_THAT_MUST_FIT: usize = 64;

/// How the memory limit of the process is divided among its uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MemoryPlan {
    /// Number of connections that fit into the memory limit.
    pub(super) connections: usize,
    /// Bytes for heads, large bodies, slow bodies and unread responses.
    pub(super) common: usize,
    /// Bytes for small bodies that arrive promptly.
    pub(super) small: usize,
    /// Bytes for the evaluation of bodies.
    pub(super) working: usize,
    /// Bytes that only the evaluation of small bodies may use: a large one never keeps them waiting.
    pub(super) small_working: usize,
    /// Bytes of `common` that the clients of one address may use even if they leave less to others.
    pub(super) one_peer: usize,
}

/// Divides the memory limit. Receiving and evaluating one body of the largest size comes first; connections get the
/// rest, at most two fifths of what the cluster's state leaves.
pub(super) fn divide_memory(limits: Limits) -> Result<MemoryPlan, UnusableSettings> {
    let working = memory_bytes_for_body(limits.max_body);
    let small = limits.max_in_flight.saturating_mul(MAX_SMALL_BODY_BYTES).min(limits.max_memory / 16);
    let small_working = small_body_evaluation_share(limits.max_memory);
    let cluster =
        if limits.caches_state { cluster_state_share(limits.max_memory) + CLUSTER_READ_BYTES } else { 0 };
    let parts = [BASE_MEMORY, working, small, small_working, cluster];
    let other = parts.iter().fold(0_usize, |sum, part| sum.saturating_add(*part));
    let available =
        limits.max_memory.saturating_sub(other.saturating_add(limits.max_body)) / CONNECTION_BYTES;
    let most = limits.max_memory.saturating_sub(2 * cluster) / 5 * 2 / CONNECTION_BYTES;
    let connections = limits.max_connections.min(most.max(CONNECTIONS_THAT_MUST_FIT)).min(available);
    if connections < CONNECTIONS_THAT_MUST_FIT.min(limits.max_connections) {
        return Err(UnusableSettings::Limits(format!(
            "{} MiB of memory is not enough for requests of up to {} KiB{}; provide at least {} MiB, or reduce --max-body",
            limits.max_memory >> 20,
            limits.max_body >> 10,
            if limits.caches_state { " and the state of the cluster" } else { "" },
            required_memory(limits).div_ceil(1 << 20)
        )));
    }
    let common = limits.max_memory.saturating_sub(other.saturating_add(connections * CONNECTION_BYTES));
    // If memory is so short that half of it is less than one body, the address that is first gets more than half.
    let one_peer = if common / 2 < limits.max_body { limits.max_body } else { 0 };
    Ok(MemoryPlan { connections, common, small, working, small_working, one_peer })
}

/// Bytes reserved for the evaluation of small bodies: a share of the limit, enough for at least one.
fn small_body_evaluation_share(max_memory: usize) -> usize {
    (max_memory / 32).max(memory_bytes_for_body(MAX_SMALL_BODY_BYTES))
}

/// Returns the bytes of a memory limit that are for the cached state of the cluster.
pub(super) fn cluster_state_share(max_memory: usize) -> usize {
    max_memory / 5
}

/// The smallest memory limit with which the server can start: a sixteenth of it is for small bodies, a thirty-second
/// for their evaluation, and a fifth for the state of a cluster.
fn required_memory(limits: Limits) -> usize {
    let reading = if limits.caches_state { CLUSTER_READ_BYTES } else { 0 };
    let least = memory_bytes_for_body(limits.max_body)
        .saturating_add(limits.max_body)
        .saturating_add(BASE_MEMORY + CONNECTIONS_THAT_MUST_FIT * CONNECTION_BYTES + reading);
    // 160 = 10 (small bodies) + 5 (their evaluation) + 32 (state) + the rest.
    let rest = if limits.caches_state { 113 } else { 145 };
    (least / rest * 160 + 160)
        .max(least.saturating_add(least / 15 + 1).saturating_add(memory_bytes_for_body(MAX_SMALL_BODY_BYTES)))
}

/// Returns the configured memory limit, or that of the container if it is lower.
pub(super) fn effective_memory_limit(configured: usize) -> usize {
    let limit = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok()?.trim().parse().ok());
    limit.map_or(configured, |limit: usize| configured.min(limit))
}

#[cfg(test)]
mod tests {
    use super::{
        BASE_MEMORY, CLUSTER_READ_BYTES, CONNECTION_BYTES, Limits, MAX_SMALL_BODY_BYTES, MemoryPlan,
        cluster_state_share, divide_memory, memory_bytes_for_body,
    };

    fn sum(plan: MemoryPlan) -> usize {
        let connections = plan.connections * CONNECTION_BYTES;
        BASE_MEMORY + connections + plan.common + plan.small + plan.working + plan.small_working
    }

    #[test]
    fn the_defaults_fit_into_the_limit_of_the_manifest() {
        let limits = Limits::default();
        let plan = divide_memory(limits).expect("they fit");
        assert!(limits.max_memory == 256 << 20 && sum(plan) <= limits.max_memory, "{plan:?}");
        assert!(plan.connections >= 5_200, "{plan:?}");
        assert!(plan.common >= 2 * limits.max_body, "{plan:?}");
    }

    /// Nearly every AdmissionReview is shorter; longer ones may have to wait for each other.
    #[test]
    fn thirty_two_workers_evaluate_bodies_of_8_kib_at_once() {
        let plan = divide_memory(Limits::default()).expect("they fit");
        assert!(32 * memory_bytes_for_body(8 << 10) <= plan.working + plan.small_working, "{plan:?}");
        assert!(
            plan.small_working >= 2 * memory_bytes_for_body(MAX_SMALL_BODY_BYTES),
            "and some beside the largest body: {plan:?}"
        );
    }

    #[test]
    fn the_state_of_the_cluster_has_its_share() {
        let limits = Limits { caches_state: true, ..Limits::default() };
        let plan = divide_memory(limits).expect("they fit");
        let cluster = cluster_state_share(limits.max_memory) + CLUSTER_READ_BYTES;
        assert!(sum(plan) + cluster <= limits.max_memory, "{plan:?}");
        assert!(plan.connections >= 2_400 && plan.common >= limits.max_body, "{plan:?}");
    }

    #[test]
    fn less_memory_is_fewer_connections_and_too_little_is_told() {
        for caches_state in [false, true] {
            let with = |max_memory: usize| {
                divide_memory(Limits { max_memory: max_memory << 20, caches_state, ..Limits::default() })
            };
            let (small, large) = (with(200).expect("enough"), with(1024).expect("enough"));
            assert!(small.connections < large.connections && small.common < large.common);
            assert!(caches_state || large.connections == Limits::default().max_connections);
            assert!(caches_state || with(128).is_ok(), "as small as a pod of this kind may be");
            let told = with(64).expect_err("too little").to_string();
            let needed = told.split(' ').rev().nth(4).and_then(|word| word.parse().ok()).expect("a number");
            assert!(told.starts_with("64 MiB of memory is not enough") && with(needed).is_ok(), "{told}");
        }
    }
}
