//! DeviceTaintRules that were probably forgotten: expired ones, and those without an owner.
//!
//! A rule with effect None does not block devices, so it is not reported. Devices that a claim holds are in use; the
//! other devices of a rule are idle because of it, unless another rule or their driver taints them as well.

use super::details::is_blocking_effect;
use super::record::Rule;
use super::snapshot::Snapshot;
use tollgate_formats::gotime::Timestamp;

/// A DeviceTaintRule that was probably forgotten: it has expired or has no owner, and still keeps devices from being
/// used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForgottenRule<'s> {
    /// Name of the rule.
    pub name: &'s str,
    /// The time at which the rule expired; `None` if it has not.
    pub expired_at: Option<Timestamp>,
    /// True if it has no owner.
    pub is_ownerless: bool,
    /// Number of published devices that the rule selects.
    pub devices: usize,
    /// Number of these devices that no claim holds.
    pub idle: usize,
    /// True if it also selects by class or expression, so that the numbers are upper bounds.
    pub is_upper_bound: bool,
}

impl Snapshot {
    /// Returns the rules that have expired or have no owner, by name.
    pub fn forgotten_rules(&self, now: Timestamp) -> impl Iterator<Item = ForgottenRule<'_>> {
        self.rules().filter(|rule| is_blocking_effect(&rule.taint.effect)).filter_map(move |rule| {
            let expired_at = rule.expires.filter(|expires| *expires <= now);
            (expired_at.is_some() || !rule.has_owner).then(|| {
                let (devices, idle) = self.count_selected_and_free(rule);
                ForgottenRule {
                    name: &rule.name,
                    expired_at,
                    is_ownerless: !rule.has_owner,
                    devices,
                    idle,
                    is_upper_bound: rule.class_criteria().is_some(),
                }
            })
        })
    }

    /// Returns how many rules with effect NoSchedule or NoExecute have expired, and how many have no owner.
    pub fn count_expired_and_unowned_blocking_rules(&self, now: Timestamp) -> (usize, usize) {
        let rules = || self.rules().filter(|rule| is_blocking_effect(&rule.taint.effect));
        let expired = rules().filter(|rule| rule.expires.is_some_and(|expires| expires <= now)).count();
        (expired, rules().filter(|rule| !rule.has_owner).count())
    }

    /// Returns the number of published devices that a rule selects, and how many of them no claim holds. A
    /// rule without a selector selects every device, as in the scheduler.
    fn count_selected_and_free(&self, rule: &Rule) -> (usize, usize) {
        let selector = rule.selector.clone().unwrap_or_default();
        let (mut devices, mut idle) = (0, 0);
        for (driver, pools) in &self.drivers {
            for (pool_name, slot) in pools {
                let Some(pool) = self.pools.get_even_if_free(*slot) else { continue };
                let listed = pool.current_slices().flat_map(|slice| slice.devices.iter());
                for device in listed
                    .filter(|device| selector.matches_driver_pool_device(driver, pool_name, &device.name))
                {
                    devices += 1;
                    idle += usize::from(!pool.allocated.contains_key(&device.name));
                }
            }
        }
        (devices, idle)
    }
}
