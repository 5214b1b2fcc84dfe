//! A model of the allocator: checks whether an allocation is valid, and finds one by trying every combination. It is
//! written from the documented behavior, not from the code.

use super::world::{Device, RequestAlternative, Use, World};

/// A device chosen for a request, by the indices of claim, request, alternative and device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Choice {
    pub(crate) claim: usize,
    pub(crate) request: usize,
    pub(crate) alternative: usize,
    pub(crate) device: usize,
}

impl RequestAlternative {
    /// True if the device matches the request, whether or not it is free.
    fn matches_device(&self, device: &Device) -> bool {
        let fits = match (self.memory, device.memory) {
            (None, _) => true,
            (Some(wanted), Some(memory)) => wanted <= memory,
            (Some(_), None) => false,
        };
        fits && self.kind.is_none_or(|kind| kind == device.kind)
    }
}

impl World {
    fn ask(&self, choice: Choice) -> &RequestAlternative {
        &self.claims[choice.claim].requests[choice.request][choice.alternative]
    }

    /// Describes the first rule that a list of choices violates, in the order of the choices.
    pub(crate) fn first_violation(&self, choices: &[Choice]) -> Option<String> {
        let device_of = |choice: &Choice| &self.devices[choice.device];
        for (at, choice) in choices.iter().enumerate() {
            let (ask, device, earlier) = (self.ask(*choice), device_of(choice), &choices[..at]);
            let same: Vec<&Choice> = earlier.iter().filter(|other| other.device == choice.device).collect();
            if !ask.matches_device(device) || device.is_tainted && !ask.tolerates {
                return Some(format!("{choice:?}: not selected, or tainted"));
            }
            let is_taken = match (device.is_shareable, ask.admin) {
                (true, _) => {
                    same.iter().any(|other| (other.claim, other.request) == (choice.claim, choice.request))
                }
                (false, true) => same.iter().any(|other| other.claim == choice.claim),
                (false, false) => device.used == Use::Alone || !same.is_empty(),
            };
            if is_taken {
                return Some(format!("{choice:?}: taken"));
            }
        }
        (0..2)
            .find_map(|pool| self.counter_violation(choices, pool))
            .or_else(|| (0..self.devices.len()).find_map(|device| self.capacity_violation(choices, device)))
            .or_else(|| (0..self.claims.len()).find_map(|claim| self.constraint_violation(choices, claim)))
    }

    /// Checks the counters of a pool. A second share of a device consumes no counters, so it is allowed even
    /// if other claims exceed them.
    fn counter_violation(&self, choices: &[Choice], pool: usize) -> Option<String> {
        let in_pool = self.devices.iter().filter(|device| device.pool == pool);
        let held = in_pool.filter(|device| device.used != Use::Free);
        let held: u64 = held.filter_map(|device| device.slots).sum();
        let charged: Vec<u64> = choices
            .iter()
            .enumerate()
            .filter(|(at, choice)| {
                let device = &self.devices[choice.device];
                let is_shared = choices[..*at].iter().any(|other| other.device == choice.device)
                    || matches!(device.used, Use::Shared(_));
                device.pool == pool && !(device.is_shareable && is_shared)
            })
            .filter_map(|(_, choice)| self.devices[choice.device].slots)
            .collect();
        let sum = held + charged.iter().sum::<u64>();
        (!charged.is_empty() && sum > self.slots[pool]).then(|| format!("pool {pool}: {sum} slots"))
    }

    fn capacity_violation(&self, choices: &[Choice], number: usize) -> Option<String> {
        let device = &self.devices[number];
        let memory = device.memory.filter(|_| device.is_shareable)?;
        let taken = |choice: &Choice| self.ask(*choice).memory.unwrap_or(memory);
        let taking: Vec<u64> = choices.iter().filter(|choice| choice.device == number).map(taken).collect();
        let used = if let Use::Shared(used) = device.used { used } else { 0 };
        let sum = used + taking.iter().sum::<u64>();
        (!taking.is_empty() && sum > memory).then(|| format!("device {number}: {sum} of {memory}"))
    }

    fn constraint_violation(&self, choices: &[Choice], claim: usize) -> Option<String> {
        self.claims[claim].constraints.iter().find_map(|&(is_match, is_first)| {
            let covered = |choice: &&Choice| choice.claim == claim && (!is_first || choice.request == 0);
            let groups: Vec<Option<u64>> =
                choices.iter().filter(covered).map(|choice| self.devices[choice.device].group).collect();
            let all_there = groups.iter().all(Option::is_some);
            let pairs = groups.iter().enumerate();
            let holds = pairs
                .clone()
                .all(|(at, group)| groups[..at].iter().all(|other| (group == other) == is_match));
            (!all_there || !holds).then(|| format!("claim {claim}: {groups:?}"))
        })
    }

    /// Names a request that does not have the requested number of devices from one alternative. With
    /// `skips_used_up`, requests for all devices omit shareable devices with too little capacity left.
    pub(crate) fn wrong_device_count(&self, choices: &[Choice], skips_used_up: bool) -> Option<String> {
        for (claim, requests) in self.claims.iter().enumerate() {
            for (request, asks) in requests.requests.iter().enumerate() {
                let mine: Vec<&Choice> = choices
                    .iter()
                    .filter(|choice| (choice.claim, choice.request) == (claim, request))
                    .collect();
                let alternative = mine.first().map_or(0, |choice| choice.alternative);
                let wanted = asks[alternative]
                    .count
                    .unwrap_or_else(|| self.matching_devices(&asks[alternative]).len());
                let may_be_fewer = skips_used_up && asks[alternative].count.is_none() && mine.len() < wanted;
                if mine.is_empty() || mine.len() != wanted && !may_be_fewer {
                    return Some(format!("claim {claim}, request {request}: {mine:?}"));
                }
            }
        }
        None
    }

    /// The devices that match a request.
    fn matching_devices(&self, ask: &RequestAlternative) -> Vec<usize> {
        (0..self.devices.len()).filter(|device| ask.matches_device(&self.devices[*device])).collect()
    }

    /// A valid solution, found by trying every combination.
    pub(crate) fn solution(&self) -> Option<Vec<Choice>> {
        let mut choices = Vec::new();
        self.extend(&mut choices, 0, 0).then_some(choices)
    }

    fn extend(&self, choices: &mut Vec<Choice>, claim: usize, request: usize) -> bool {
        let Some(requests) = self.claims.get(claim) else { return true };
        let Some(asks) = requests.requests.get(request) else { return self.extend(choices, claim + 1, 0) };
        asks.iter().enumerate().any(|(alternative, ask)| {
            let meant = self.matching_devices(ask);
            let wanted = ask.count.unwrap_or(meant.len());
            wanted > 0
                && (0_u32..1 << meant.len()).filter(|set| set.count_ones() as usize == wanted).any(|set| {
                    let before = choices.len();
                    let chosen = meant.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
                    choices.extend(chosen.map(|(_, &device)| Choice { claim, request, alternative, device }));
                    let found =
                        self.first_violation(choices).is_none() && self.extend(choices, claim, request + 1);
                    if !found {
                        choices.truncate(before);
                    }
                    found
                })
        })
    }
}
