//! Divides the memory that clients may cost us: connections, bodies, and what judging them takes.
//!
//! Pure, but for [`allowed`], which asks the system. The parts add up to no more than the whole: what each part may
//! cost is counted while serving (`gate`, `connection`).
#![expect(clippy::disallowed_methods, reason = "the shell asks the system for its limit here")]

use super::gate::{SMALL, WORKING};
use super::settings::Limits;

/// The process itself: program, policies, tables, log lines that wait, room kept for the next request, and what an
/// allocator loses between pieces.
const ITSELF: usize = 40 << 20;
/// One connection: its TLS session, its buffers, its task. Measured: 18 KiB, silent or with half a head.
const CONNECTION: usize = 20 << 10;

/// So many connections there must be room for.
const FEW: usize = 64;

/// The parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shares {
    /// How many connections there may be.
    pub(super) connections: usize,
    /// Bytes: heads, large bodies, slow bodies, answers that wait for their reader.
    pub(super) common: usize,
    /// Bytes: small bodies that come at once.
    pub(super) small: usize,
    /// Bytes: what judging large bodies takes.
    pub(super) working: usize,
}

/// Divides what the limits allow. Receiving and judging one body of the largest size comes first; of the rest, at most two
/// fifths of the whole are for connections.
pub(super) fn divide(limits: Limits) -> anyhow::Result<Shares> {
    let working = limits.max_body.saturating_mul(WORKING);
    let small = limits.max_in_flight.saturating_mul(SMALL).min(limits.max_memory / 16);
    let other = [ITSELF, working, small].iter().fold(0_usize, |sum, part| sum.saturating_add(*part));
    let room = limits.max_memory.saturating_sub(other.saturating_add(limits.max_body)) / CONNECTION;
    let connections = limits.max_connections.min(limits.max_memory / 5 * 2 / CONNECTION).min(room);
    anyhow::ensure!(
        connections >= FEW.min(limits.max_connections),
        "{} MiB of memory are not enough for bodies of {} KiB: {} MiB are needed, or a smaller --max-body",
        limits.max_memory >> 20,
        limits.max_body >> 10,
        needed(limits).div_ceil(1 << 20)
    );
    let common = limits.max_memory.saturating_sub(other.saturating_add(connections * CONNECTION));
    Ok(Shares { connections, common, small, working })
}

/// The least that is enough, if a sixteenth of it is for small bodies.
fn needed(limits: Limits) -> usize {
    let least = limits.max_body.saturating_mul(WORKING + 1).saturating_add(ITSELF + FEW * CONNECTION);
    least.saturating_add(least / 15 + 1)
}

/// As much as was asked for, or as the system lets this process have.
pub(super) fn allowed(asked: usize) -> usize {
    let limit = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok()?.trim().parse().ok());
    limit.map_or(asked, |limit: usize| asked.min(limit))
}

#[cfg(test)]
mod tests {
    use super::{CONNECTION, ITSELF, Limits, divide};

    #[test]
    fn the_defaults_fit_into_the_limit_of_the_manifest() {
        let limits = Limits::default();
        let shares = divide(limits).expect("they fit");
        let sum = ITSELF + shares.connections * CONNECTION + shares.common + shares.small + shares.working;
        assert!(limits.max_memory == 256 << 20 && sum <= limits.max_memory, "{shares:?}");
        assert!(shares.connections >= 5_200, "{shares:?}");
        assert!(shares.common >= 2 * limits.max_body, "{shares:?}");
    }

    #[test]
    fn less_memory_is_fewer_connections_and_too_little_is_told() {
        let with = |max_memory: usize| divide(Limits { max_memory: max_memory << 20, ..Limits::default() });
        let (small, large) = (with(200).expect("enough"), with(1024).expect("enough"));
        assert!(small.connections < large.connections && small.common < large.common);
        assert_eq!(large.connections, Limits::default().max_connections);
        assert!(with(128).is_ok(), "as small as a pod of this kind may be");
        let told = with(64).expect_err("too little").to_string();
        let needed = told.split(' ').rev().nth(7).and_then(|word| word.parse().ok()).expect("a number");
        assert!(told.starts_with("64 MiB of memory are not enough") && with(needed).is_ok(), "{told}");
    }
}
