//! Counts the devices that all DeviceTaintRules together taint, by driver, for `maxTainted` of policies.
//!
//! Only the effects NoSchedule and NoExecute count. A device counts once, however many rules select it, and whenever
//! their taints were added. Taints that drivers publish do not count. The result is exact unless a rule selects by
//! class or expression, which the caller leaves out for a lower bound and counts like any other rule for an upper
//! bound.
//!
//! Invariant: the cost depends on the rules and, where a rule names no pool, on the pools and at most once on each
//! device, never on the devices times the rules.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use super::ProposedChange;
use super::details::is_blocking_effect;
use super::record::Rule;
use super::snapshot::{DriverPoolSlots, Pool, Snapshot};
use tollgate_api::profile::Profile;

/// Which DeviceTaintRules are counted together: those of a snapshot, with one of them replaced or added.
#[derive(Clone, Copy, Debug)]
pub struct RuleTaintedDevicesQuery<'s> {
    /// The state of the cluster.
    pub snapshot: &'s Snapshot,
    /// The release, which decides whether rules can select by class or expression.
    pub profile: &'s Profile,
    /// Name of the stored rule to exclude; empty for none.
    pub without: &'s str,
    /// A rule to include in addition.
    pub with: Option<&'s ProposedChange>,
    /// False to leave out rules that also select by class or expression, so that the result is a lower bound.
    pub by_class: bool,
}

/// The devices that several DeviceTaintRules taint, as sets of names. The names need not exist.
#[derive(Debug)]
pub struct RuleTaintedDevices<'s> {
    snapshot: &'s Snapshot,
    /// Devices selected by rules that name a driver.
    by_driver: HashMap<&'s str, SelectedDevices<'s>, RandomState>,
    /// Devices selected by rules that do not name a driver.
    everywhere: SelectedDevices<'s>,
    /// True if a rule also selects by class or expression.
    has_class_or_expression_rules: bool,
}

/// The devices of a driver that rules select.
#[derive(Debug, Default)]
struct SelectedDevices<'s> {
    /// True if a rule selects every device.
    all: bool,
    /// Pools of which a rule selects every device.
    pools: HashSet<&'s str, RandomState>,
    /// Devices that a rule selects in every pool.
    devices: HashSet<&'s str, RandomState>,
    /// Devices that a rule selects in one pool, by pool.
    pool_devices: HashMap<&'s str, HashSet<&'s str, RandomState>, RandomState>,
}

impl<'s> SelectedDevices<'s> {
    /// Adds the devices that a rule selects.
    fn add_selection(&mut self, pool: Option<&'s str>, device: Option<&'s str>) {
        match (pool, device) {
            (None, None) => self.all = true,
            (Some(pool), None) => drop(self.pools.insert(pool)),
            (None, Some(device)) => drop(self.devices.insert(device)),
            (Some(pool), Some(device)) => drop(self.pool_devices.entry(pool).or_default().insert(device)),
        }
    }
}

impl<'s> RuleTaintedDevicesQuery<'s> {
    /// Collects the devices that the DeviceTaintRules taint with NoSchedule or NoExecute.
    pub fn devices_tainted_by_rules(self) -> RuleTaintedDevices<'s> {
        let mut tainted = RuleTaintedDevices {
            snapshot: self.snapshot,
            by_driver: HashMap::default(),
            everywhere: SelectedDevices::default(),
            has_class_or_expression_rules: false,
        };
        let with = match self.with {
            Some(ProposedChange::Rule(rule)) => Some(rule),
            Some(ProposedChange::Slice(_)) | None => None,
        };
        let stored = self.snapshot.rules().filter(|rule| *rule.name != *self.without);
        for rule in stored.chain(with).filter(|rule| is_blocking_effect(&rule.taint.effect)) {
            let has_class = self.profile.rule_class_selectors && rule.class_criteria().is_some();
            tainted.has_class_or_expression_rules |= has_class;
            if self.by_class || !has_class {
                tainted.add_rule(rule);
            }
        }
        tainted
    }
}

impl<'s> RuleTaintedDevices<'s> {
    /// Adds the devices of a rule. As in the scheduler, a rule without a selector selects every device.
    fn add_rule(&mut self, rule: &'s Rule) {
        let selector = rule.selector.as_ref();
        let name = |name: fn(&super::record::RuleSelector) -> Option<&std::sync::Arc<str>>| {
            selector.and_then(name).map(|name| &**name)
        };
        let selected = match name(|selector| selector.driver.as_ref()) {
            Some(driver) => self.by_driver.entry(driver).or_default(),
            None => &mut self.everywhere,
        };
        selected.add_selection(
            name(|selector| selector.pool.as_ref()),
            name(|selector| selector.device.as_ref()),
        );
    }

    /// True if a rule also selects devices by class or expression, so that the counts are bounds.
    pub fn has_class_or_expression_rules(&self) -> bool {
        self.has_class_or_expression_rules
    }

    /// Returns how many of the devices that a driver publishes are tainted.
    pub fn count_for_driver(&self, driver: &str) -> usize {
        let Some(pools) = self.snapshot.drivers.get(driver) else { return 0 };
        let none = SelectedDevices::default();
        let own = self.by_driver.get(driver).unwrap_or(&none);
        let both = [own, &self.everywhere];
        if both.iter().any(|selected| selected.all) {
            return count_published_devices(self.snapshot, pools);
        }
        let pool = |name: &str| pools.get(name).and_then(|slot| self.snapshot.pools.get_even_if_free(*slot));
        if both.iter().all(|selected| selected.devices.is_empty()) {
            // Only named pools can have tainted devices.
            let names =
                both.iter().flat_map(|selected| selected.pools.iter().chain(selected.pool_devices.keys()));
            let names: HashSet<&str, RandomState> = names.copied().collect();
            return names
                .iter()
                .filter_map(|name| Some(count_tainted_in_pool(name, pool(name)?, both)))
                .sum();
        }
        let counts = pools.iter().filter_map(|(name, slot)| {
            let pool = self.snapshot.pools.get_even_if_free(*slot)?;
            Some(count_tainted_in_pool(name, pool, both))
        });
        counts.sum()
    }
}

/// Returns the number of published devices of a pool that are tainted.
fn count_tainted_in_pool(name: &str, pool: &Pool, selected: [&SelectedDevices<'_>; 2]) -> usize {
    if selected.iter().any(|selected| selected.pools.contains(name)) {
        return pool.current_slices().map(|slice| slice.devices.len()).sum();
    }
    let sets =
        selected.iter().flat_map(|selected| [Some(&selected.devices), selected.pool_devices.get(name)]);
    let sets: Vec<&HashSet<&str, RandomState>> = sets.flatten().filter(|set| !set.is_empty()).collect();
    if sets.is_empty() {
        return 0;
    }
    let devices = pool.current_slices().flat_map(|slice| slice.devices.iter());
    devices.filter(|device| sets.iter().any(|set| set.contains(&*device.name))).count()
}

/// Returns the number of devices that current slices of these pools list.
fn count_published_devices(snapshot: &Snapshot, pools: &DriverPoolSlots) -> usize {
    let pools = pools.values().filter_map(|slot| snapshot.pools.get_even_if_free(*slot));
    pools.flat_map(Pool::current_slices).map(|slice| slice.devices.len()).sum()
}

impl Snapshot {
    /// Returns the names of the drivers that publish devices or have allocated ones.
    pub fn publishing_or_allocated_driver_names(&self) -> impl Iterator<Item = &str> {
        self.drivers.keys().map(|name| &**name)
    }

    /// Returns the number of devices that a driver publishes in current slices.
    pub fn published_device_count(&self, driver: &str) -> usize {
        self.drivers.get(driver).map_or(0, |pools| count_published_devices(self, pools))
    }
}
