//! Divides `--max-memory` between connections, bodies and their evaluation.
//!
//! Pure, except for [`effective_limit`], which reads the limit of the container. The parts add up to no more than the
//! whole; their use is counted by `limiter` and `connection`.
#![expect(clippy::disallowed_methods, reason = "the shell asks the system for its limit here")]

use super::limiter::{SMALL_BODY, WORK_FACTOR};
use super::settings::Limits;

/// The process itself: program, policies, tables, buffered log lines, and fragmentation of the
/// allocator.
const BASE_MEMORY: usize = 40 << 20;
/// One connection: TLS session, buffers, task. Measured: 18 KiB, silent or with half a head.
const CONNECTION_COST: usize = 20 << 10;

/// Fewest connections that memory must suffice for.
const MIN_CONNECTIONS: usize = 64;

/// How memory is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MemoryPlan {
    /// Number of connections.
    pub(super) connections: usize,
    /// Bytes for heads, large bodies, slow bodies and unread responses.
    pub(super) common: usize,
    /// Bytes for small bodies that arrive promptly.
    pub(super) small: usize,
    /// Bytes for the evaluation of large bodies.
    pub(super) working: usize,
    /// Bytes of `common` that the clients of one address may use even if they leave less to others.
    pub(super) one_peer: usize,
}

/// Divides the memory limit. Receiving and evaluating one body of the largest size comes first; connections get the
/// rest, at most two fifths of the whole.
pub(super) fn divide_memory(limits: Limits) -> anyhow::Result<MemoryPlan> {
    let working = limits.max_body.saturating_mul(WORK_FACTOR);
    let small = limits.max_in_flight.saturating_mul(SMALL_BODY).min(limits.max_memory / 16);
    let other = [BASE_MEMORY, working, small].iter().fold(0_usize, |sum, part| sum.saturating_add(*part));
    let available = limits.max_memory.saturating_sub(other.saturating_add(limits.max_body)) / CONNECTION_COST;
    let connections = limits.max_connections.min(limits.max_memory / 5 * 2 / CONNECTION_COST).min(available);
    anyhow::ensure!(
        connections >= MIN_CONNECTIONS.min(limits.max_connections),
        "{} MiB of memory is not enough for requests of up to {} KiB; provide at least {} MiB, or reduce --max-body",
        limits.max_memory >> 20,
        limits.max_body >> 10,
        required_memory(limits).div_ceil(1 << 20)
    );
    let common = limits.max_memory.saturating_sub(other.saturating_add(connections * CONNECTION_COST));
    // If memory is so short that half of it is less than one body, the address that is first gets more than half.
    let one_peer = if common / 2 < limits.max_body { limits.max_body } else { 0 };
    Ok(MemoryPlan { connections, common, small, working, one_peer })
}

/// The smallest sufficient limit, if a sixteenth of it is for small bodies.
fn required_memory(limits: Limits) -> usize {
    let least = limits
        .max_body
        .saturating_mul(WORK_FACTOR + 1)
        .saturating_add(BASE_MEMORY + MIN_CONNECTIONS * CONNECTION_COST);
    least.saturating_add(least / 15 + 1)
}

/// The configured limit, or that of the container if it is lower.
pub(super) fn effective_limit(configured: usize) -> usize {
    let limit = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok()?.trim().parse().ok());
    limit.map_or(configured, |limit: usize| configured.min(limit))
}

#[cfg(test)]
mod tests {
    use super::{BASE_MEMORY, CONNECTION_COST, Limits, divide_memory};

    #[test]
    fn the_defaults_fit_into_the_limit_of_the_manifest() {
        let limits = Limits::default();
        let plan = divide_memory(limits).expect("they fit");
        let sum = BASE_MEMORY + plan.connections * CONNECTION_COST + plan.common + plan.small + plan.working;
        assert!(limits.max_memory == 256 << 20 && sum <= limits.max_memory, "{plan:?}");
        assert!(plan.connections >= 5_200, "{plan:?}");
        assert!(plan.common >= 2 * limits.max_body, "{plan:?}");
    }

    #[test]
    fn less_memory_is_fewer_connections_and_too_little_is_told() {
        let with =
            |max_memory: usize| divide_memory(Limits { max_memory: max_memory << 20, ..Limits::default() });
        let (small, large) = (with(200).expect("enough"), with(1024).expect("enough"));
        assert!(small.connections < large.connections && small.common < large.common);
        assert_eq!(large.connections, Limits::default().max_connections);
        assert!(with(128).is_ok(), "as small as a pod of this kind may be");
        let told = with(64).expect_err("too little").to_string();
        let needed = told.split(' ').rev().nth(4).and_then(|word| word.parse().ok()).expect("a number");
        assert!(told.starts_with("64 MiB of memory is not enough") && with(needed).is_ok(), "{told}");
    }
}
