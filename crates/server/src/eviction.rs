//! Chooses the connections to close when a worker has too many: pure, no sockets.
//!
//! If a peer opens many connections, its own are closed and not those of others, whether they are active or not.
//! Activity is not a criterion: a peer can send a tiny request on each of its connections now and then, while the
//! connections of an API server are idle between requests. There is no fixed limit per address, because several API
//! servers may connect through one proxy.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

/// Connections of a group (see [`ConnectionEvictionCandidate::address_and_has_served`]) are closed first if the group
/// has more than one in this many of the allowed connections. If no group is that large, its size does not show who is
/// hostile, and the connections without progress for longest are closed.
const LARGE_GROUP_FRACTION: usize = 16;

/// The properties of an open connection that decide which connections are closed first.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionEvictionCandidate {
    /// Address of the client.
    pub(super) address: IpAddr,
    /// True if the connection has received a request.
    pub(super) has_served: bool,
    /// When the connection last began a phase: larger numbers are later.
    pub(super) progress: u64,
}

impl ConnectionEvictionCandidate {
    /// Connections that are equal in both form a group. Connections of the largest group are closed first, so that
    /// silent connections do not displace those in use, and connections in use do not displace new ones.
    fn address_and_has_served(&self) -> (IpAddr, bool) {
        (self.address, self.has_served)
    }
}

/// The indices of `count` connections to close, if at most `max_open` are allowed. Each time, the largest group loses
/// the connection that has made no progress for longest; requests in flight make progress within milliseconds.
pub(super) fn connections_to_close(
    open: &[ConnectionEvictionCandidate],
    count: usize,
    max_open: usize,
) -> Vec<usize> {
    let mut by_progress: Vec<usize> = (0..open.len()).collect();
    by_progress.sort_unstable_by_key(|index| open.get(*index).map(|connection| connection.progress));
    let mut groups: HashMap<(IpAddr, bool), VecDeque<usize>> = HashMap::new();
    for index in &by_progress {
        if let Some(connection) = open.get(*index) {
            groups.entry(connection.address_and_has_served()).or_default().push_back(*index);
        }
    }
    let mut chosen = Vec::with_capacity(count);
    while chosen.len() < count {
        let largest = groups.values_mut().max_by_key(|indices| indices.len());
        match largest
            .filter(|indices| indices.len() > max_open / LARGE_GROUP_FRACTION)
            .and_then(VecDeque::pop_front)
        {
            Some(index) => chosen.push(index),
            None => break,
        }
    }
    let rest = by_progress.into_iter().filter(|index| !chosen.contains(index));
    let rest: Vec<usize> = rest.take(count - chosen.len()).collect();
    chosen.extend(rest);
    chosen
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::{ConnectionEvictionCandidate, connections_to_close};

    /// Connections of `10.0.x.y`, each later than the one before.
    fn open(groups: &[(u16, bool, usize)]) -> Vec<ConnectionEvictionCandidate> {
        let mut all = Vec::new();
        for (number, has_served, count) in groups {
            let [high, low] = number.to_be_bytes();
            let address = IpAddr::V4(Ipv4Addr::new(10, 0, high, low));
            for _ in 0..*count {
                let progress = u64::try_from(all.len()).unwrap_or_default();
                all.push(ConnectionEvictionCandidate { address, has_served: *has_served, progress });
            }
        }
        all
    }

    #[test]
    fn the_address_with_most_connections_loses_the_one_without_progress_for_longest() {
        // The API server's are the oldest, and one of the attacker's is the newest of all.
        let open = open(&[(1, true, 5), (2, true, 94), (1, false, 1)]);
        assert_eq!(connections_to_close(&open, 3, 100), [5, 6, 7]);
    }

    #[test]
    fn addresses_with_the_most_are_cut_to_the_same_number() {
        let open = open(&[(1, true, 40), (2, true, 30), (3, true, 30)]);
        let mut left = [40, 30, 30];
        for index in connections_to_close(&open, 40, 100) {
            left[usize::from(index >= 40) + usize::from(index >= 70)] -= 1;
        }
        assert_eq!(left, [20, 20, 20]);
    }

    #[test]
    fn at_one_address_the_silent_do_not_displace_the_busy_nor_the_busy_a_new_one() {
        let silent = open(&[(1, true, 3), (1, false, 97)]);
        assert_eq!(connections_to_close(&silent, 2, 100), [3, 4]);
        let busy = open(&[(1, false, 3), (1, true, 97)]);
        assert_eq!(connections_to_close(&busy, 2, 100), [3, 4]);
    }

    #[test]
    fn among_very_many_addresses_the_number_does_not_count() {
        let mut groups: Vec<(u16, bool, usize)> = (100..190).map(|number| (number, true, 1)).collect();
        groups.push((1, true, 6));
        assert_eq!(
            connections_to_close(&open(&groups), 3, 96),
            [0, 1, 2],
            "the six of one address are the latest"
        );
    }

    #[test]
    fn no_more_are_chosen_than_there_are() {
        assert_eq!(connections_to_close(&open(&[(1, true, 2)]), 5, 1).len(), 2);
        assert!(connections_to_close(&[], 1, 1).is_empty());
    }
}
