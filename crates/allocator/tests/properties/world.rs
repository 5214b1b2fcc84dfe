//! Small random states with one pod, as numbers and as the objects that the allocator reads.

use std::fmt::Write as _;

/// A sequence of numbers: first those that are given, then those of a seed (splitmix64).
pub(crate) struct Random<'a>(pub(crate) u64, pub(crate) &'a [u8]);

impl Random<'_> {
    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        if let Some((first, rest)) = self.1.split_first() {
            self.1 = rest;
            return u64::from(*first) % limit;
        }
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// True with a probability of 1 in `times`.
    fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn maybe(&mut self, times: u64, limit: u64) -> Option<u64> {
        self.one_in(times).then(|| self.below(limit))
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Use {
    Free,
    Alone,
    /// Shares are allocated; the number is the capacity that they consume.
    Shared(u64),
}

#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) pool: usize,
    pub(crate) kind: u64,
    pub(crate) group: Option<u64>,
    pub(crate) is_tainted: bool,
    pub(crate) is_shareable: bool,
    pub(crate) memory: Option<u64>,
    pub(crate) slots: Option<u64>,
    pub(crate) used: Use,
}

#[derive(Debug)]
pub(crate) struct RequestAlternative {
    /// Number of devices; `None` for `allocationMode: All`.
    pub(crate) count: Option<usize>,
    pub(crate) kind: Option<u64>,
    pub(crate) tolerates: bool,
    pub(crate) admin: bool,
    pub(crate) memory: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Claim {
    /// The requests, each with its alternatives. A single alternative is an exact request.
    pub(crate) requests: Vec<Vec<RequestAlternative>>,
    /// The constraints: true for `matchAttribute`, and true if it covers only the first request.
    pub(crate) constraints: Vec<(bool, bool)>,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) devices: Vec<Device>,
    /// The shared counter of each pool.
    pub(crate) slots: [u64; 2],
    pub(crate) claims: Vec<Claim>,
}

pub(crate) const POOLS: [&str; 2] = ["a", "b"];

impl World {
    pub(crate) fn new(random: &mut Random<'_>) -> World {
        let count = 1 + random.below(6);
        let devices = (0..count).map(|_| {
            let is_shareable = random.one_in(3);
            let memory = random.maybe(2, 7);
            let used = match (random.below(4), is_shareable) {
                (0, true) => Use::Shared(memory.map_or(0, |memory| random.below(memory + 1))),
                (0, false) => Use::Alone,
                _ => Use::Free,
            };
            Device {
                pool: usize::from(random.one_in(2)),
                kind: random.below(2),
                group: random.maybe(1, 5).filter(|group| *group < 3),
                is_tainted: random.one_in(5),
                is_shareable,
                memory,
                slots: random.maybe(3, 4),
                used,
            }
        });
        let devices = devices.collect();
        let claims = 1 + random.below(2);
        let claims = (0..claims).map(|_| Claim::new(random)).collect();
        World { devices, slots: [random.below(7), random.below(7)], claims }
    }

    /// ResourceSlices as JSON: for each pool, one with devices and one with counters.
    pub(crate) fn slices(&self) -> Vec<String> {
        let mut slices = Vec::new();
        for (pool, name) in POOLS.iter().enumerate() {
            let devices = self.devices.iter().enumerate().filter(|(_, device)| device.pool == pool);
            let devices: Vec<String> = devices.map(|(number, device)| device.json(number)).collect();
            let counters = format!(
                r#""sharedCounters":[{{"name":"set","counters":{{"slots":{{"value":"{}"}}}}}}]"#,
                self.slots[pool]
            );
            for (part, content) in
                [("devices", format!(r#""devices":[{}]"#, devices.join(","))), ("counters", counters)]
            {
                slices.push(format!(
                    r#"{{"metadata":{{"name":"{name}-{part}"}},"spec":{{"driver":"d.example.com","nodeName":"n1",
                    "pool":{{"name":"{name}","generation":1,"resourceSliceCount":2}},{content}}}}}"#
                ));
            }
        }
        slices
    }

    /// Allocation results of existing claims, as JSON.
    pub(crate) fn results(&self) -> Vec<String> {
        let mut results = Vec::new();
        for (number, device) in self.devices.iter().enumerate() {
            let share = match device.used {
                Use::Free => continue,
                Use::Alone => String::new(),
                Use::Shared(consumed) => {
                    let memory =
                        device.memory.map(|_| format!(r#","consumedCapacity":{{"mem":"{consumed}"}}"#));
                    format!(r#","shareID":"s{number}"{}"#, memory.unwrap_or_default())
                }
            };
            let pool = POOLS[device.pool];
            results.push(format!(
                r#"{{"request":"r","driver":"d.example.com","pool":"{pool}","device":"d{number}"{share}}}"#
            ));
        }
        results
    }
}

impl Device {
    fn json(&self, number: usize) -> String {
        let mut json = format!(r#"{{"name":"d{number}","attributes":{{"kind":{{"string":"k{}"}}"#, self.kind);
        if let Some(group) = self.group {
            let _ = write!(json, r#","group":{{"int":{group}}}"#);
        }
        json.push('}');
        if let Some(memory) = self.memory {
            let _ = write!(json, r#","capacity":{{"mem":{{"value":"{memory}"}}}}"#);
        }
        if let Some(slots) = self.slots {
            let _ = write!(
                json,
                r#","consumesCounters":[{{"counterSet":"set","counters":{{"slots":{{"value":"{slots}"}}}}}}]"#
            );
        }
        if self.is_tainted {
            json.push_str(r#","taints":[{"key":"bad","effect":"NoSchedule"}]"#);
        }
        let _ = write!(json, r#","allowMultipleAllocations":{}}}"#, self.is_shareable);
        json
    }
}

impl Claim {
    fn new(random: &mut Random<'_>) -> Claim {
        let requests = (0..=random.below(2)).map(|_| {
            let alternatives = if random.one_in(3) { 2 } else { 1 };
            (0..alternatives).map(|_| RequestAlternative::new(random, alternatives == 1)).collect()
        });
        let requests = requests.collect();
        let constraints = (0..random.below(2)).map(|_| (random.one_in(2), random.one_in(2))).collect();
        Claim { requests, constraints }
    }

    pub(crate) fn spec(&self) -> String {
        let requests = self.requests.iter().enumerate().map(|(number, asks)| match asks.as_slice() {
            [ask] => format!(r#"{{"name":"r{number}","exactly":{{{}}}}}"#, ask.json()),
            asks => {
                let named = asks.iter().enumerate();
                let named = named.map(|(sub, ask)| format!(r#"{{"name":"s{sub}",{}}}"#, ask.json()));
                let named: Vec<String> = named.collect();
                format!(r#"{{"name":"r{number}","firstAvailable":[{}]}}"#, named.join(","))
            }
        });
        let constraints = self.constraints.iter().map(|(is_match, is_first)| {
            let kind = if *is_match { "matchAttribute" } else { "distinctAttribute" };
            let requests = if *is_first { r#""requests":["r0"],"# } else { "" };
            format!(r#"{{{requests}"{kind}":"d.example.com/group"}}"#)
        });
        let (requests, constraints): (Vec<String>, Vec<String>) = (requests.collect(), constraints.collect());
        format!(
            r#"{{"devices":{{"requests":[{}],"constraints":[{}]}}}}"#,
            requests.join(","),
            constraints.join(",")
        )
    }
}

impl RequestAlternative {
    fn new(random: &mut Random<'_>, is_exact: bool) -> RequestAlternative {
        RequestAlternative {
            count: (!random.one_in(6)).then(|| 1 + usize::from(random.one_in(3))),
            kind: random.maybe(2, 2),
            tolerates: random.one_in(3),
            admin: is_exact && random.one_in(8),
            memory: random.maybe(3, 5),
        }
    }

    fn json(&self) -> String {
        let mut json = r#""deviceClassName":"c""#.to_owned();
        match self.count {
            Some(count) => {
                let _ = write!(json, r#","allocationMode":"ExactCount","count":{count}"#);
            }
            None => json.push_str(r#","allocationMode":"All""#),
        }
        if let Some(kind) = self.kind {
            let _ = write!(json, r#","selectors":[{{"cel":{{"expression":"k{kind}"}}}}]"#);
        }
        if self.tolerates {
            json.push_str(r#","tolerations":[{"key":"bad","operator":"Exists"}]"#);
        }
        if self.admin {
            json.push_str(r#","adminAccess":true"#);
        }
        if let Some(memory) = self.memory {
            let _ = write!(json, r#","capacity":{{"requests":{{"mem":"{memory}"}}}}"#);
        }
        json
    }
}
