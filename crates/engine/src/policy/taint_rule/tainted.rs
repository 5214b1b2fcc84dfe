//! `maxTainted`: how many devices all DeviceTaintRules together may taint.
//!
//! A number limits the devices of all drivers in the policy together, a percentage those of each driver. The
//! request counts as if it were stored. The state of the cluster lags behind by what is on its way, so requests at the
//! same time can exceed the limit together: this guards against mistakes and loops. While a watch is interrupted, more
//! than that can be missing, and a limit that is not exceeded counts as unknown.
//!
//! Invariant: a request that taints no device that was not tainted before is allowed, however many are.

use super::RuleCheckContext;
use super::limits::{ImpactLimits, LimitViolation, rule_impact};
use crate::impact::{ClusterState, ProposedChange, RuleTaintedDevices, RuleTaintedDevicesQuery};
use crate::policy::schema::parse_percentage;
use tollgate_api::conform::suggest::join_with_and;
use tollgate_api::view;
use tollgate_document::doc::Value;
use tollgate_formats::count::count_with_noun;

/// The compiled `maxTainted.devices`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum TaintedLimit {
    /// Maximum number of devices, over all drivers.
    Number(usize),
    /// Maximum percentage of the devices of each driver.
    Percent(u8),
}

impl TaintedLimit {
    /// Compiles `maxTainted`, whose types are already checked; `None` if it is absent.
    pub(super) fn read(limit: Value<'_>) -> Option<TaintedLimit> {
        let devices = limit.get("devices");
        let percent = parse_percentage(devices.str()).map(TaintedLimit::Percent);
        let number =
            || devices.int().map(|number| TaintedLimit::Number(usize::try_from(number).unwrap_or_default()));
        percent.or_else(number)
    }
}

/// A request for a DeviceTaintRule, as a change to the set of rules in the cluster.
struct TaintRuleChange<'c> {
    check: &'c RuleCheckContext<'c>,
    state: &'c ClusterState,
    /// The name of the stored rule that the request replaces; empty if it replaces none.
    name: &'c str,
    new: ProposedChange,
    old: Option<ProposedChange>,
}

impl TaintRuleChange<'_> {
    /// Returns the devices that all rules together taint after the request or, if `is_stored`, before it. Without
    /// `by_class`, those of rules that also select by class or expression are left out, as a lower bound.
    fn tainted_devices(&self, is_stored: bool, by_class: bool) -> RuleTaintedDevices<'_> {
        let (snapshot, profile) = (&*self.state.snapshot, self.check.context.profile);
        let with = if is_stored { self.old.as_ref() } else { Some(&self.new) };
        let query = RuleTaintedDevicesQuery { snapshot, profile, without: self.name, with, by_class };
        query.devices_tainted_by_rules()
    }

    /// Returns the drivers that the policy is about.
    fn drivers_in_policy_scope(&self) -> impl Iterator<Item = &str> {
        let drivers = self.state.snapshot.publishing_or_allocated_driver_names();
        drivers.filter(|driver| self.check.policy.scope.matches_named_or_unknown_driver(driver))
    }

    /// Returns how many devices of the drivers that the policy is about are tainted.
    fn count_tainted_in_policy_scope(&self, tainted: &RuleTaintedDevices<'_>) -> usize {
        self.drivers_in_policy_scope().map(|driver| tainted.count_for_driver(driver)).sum()
    }

    /// Returns by how much `maxTainted` is exceeded, if more devices are tainted than before the request; otherwise
    /// `None`. `driver` is that of the rule's selector.
    fn newly_exceeded_limit(
        &self,
        limit: TaintedLimit,
        driver: Option<&str>,
        by_class: bool,
    ) -> Option<ExceededLimitTexts> {
        let after = self.tainted_devices(false, by_class);
        let stored = || self.tainted_devices(true, true);
        match limit {
            TaintedLimit::Number(limit) => {
                let total = self.count_tainted_in_policy_scope(&after);
                if total <= limit || total <= self.count_tainted_in_policy_scope(&stored()) {
                    return None;
                }
                Some(ExceededLimitTexts {
                    found: format!("{total} devices"),
                    allowed: count_with_noun(limit, "device"),
                    short: format!("all rules together would taint {total} devices; the limit is {limit}"),
                })
            }
            TaintedLimit::Percent(percent) => {
                let mut before = None;
                let mut found = Vec::new();
                let mut allowed = Vec::new();
                for driver in
                    self.drivers_in_policy_scope().filter(|name| driver.is_none_or(|driver| driver == *name))
                {
                    let count = after.count_for_driver(driver);
                    // Of one device, one may always be tainted.
                    if count <= 1 {
                        continue;
                    }
                    let published = self.state.snapshot.published_device_count(driver);
                    let limit = (published * usize::from(percent) / 100).max(1);
                    let grows = |before: &RuleTaintedDevices<'_>| count > before.count_for_driver(driver);
                    if count > limit && grows(before.get_or_insert_with(stored)) {
                        found.push(format!("{count} of the {published} devices of driver {driver}"));
                        allowed.push(limit.to_string());
                    }
                }
                (!found.is_empty()).then(|| ExceededLimitTexts {
                    found: join_with_and(&found),
                    allowed: format!("{percent}%, which is {}", join_with_and(&allowed)),
                    short: format!("all rules together would taint more than {percent}% of the devices"),
                })
            }
        }
    }
}

/// How many devices are tainted and how many `maxTainted` allows, as texts for the message.
struct ExceededLimitTexts {
    /// The exceeded amount, such as `51 of the 1000 devices of driver gpu.example.com`.
    found: String,
    /// The limit, such as `5%, which is 50`.
    allowed: String,
    short: String,
}

impl ImpactLimits {
    /// Returns the violation of a rule with which all rules together taint more devices than `maxTainted` allows.
    pub(super) fn tainted_violation(&self, check: &RuleCheckContext<'_>) -> Option<LimitViolation> {
        let RuleCheckContext { admission, context, selection, cache, .. } = check;
        let (Some(limit), view::ObjectBody::Rule(rule)) = (self.max_tainted, admission.object.body) else {
            return None;
        };
        if !selection.affects_pods() {
            return None;
        }
        let policy = check.policy.describe();
        let Some(state) = context.cluster else { return self.unavailable_cluster_state(check) };
        let old = check.stored_rule().map(ProposedChange::from_decoded_rule);
        let new = ProposedChange::from_decoded_rule(rule);
        // Not `generateName`: a rule whose name is generated replaces none.
        let name = rule.metadata().name();
        let change = TaintRuleChange { check, state, name, new, old };
        let driver = selection.selector.and_then(view::TaintSelector::driver);
        let Some(excess) = change.newly_exceeded_limit(limit, driver, true) else {
            // Rules that were created since then do not count, and they can be as many as anybody likes.
            let why = match state.age_seconds_if_stale {
                Some(_) => "the cluster state is not current",
                None if state.unreadable_objects > 0 => "objects of the cluster are unreadable",
                None => return None,
            };
            return self.numbers_too_low(check, state, why);
        };
        let ExceededLimitTexts { found, allowed, short } = excess;
        let is_certain = !change.tainted_devices(false, true).has_class_or_expression_rules()
            || change.newly_exceeded_limit(limit, driver, false).is_some();
        if !is_certain {
            let found = format!(
                "with this rule, all rules together taint at most {found}, but {policy} allows {allowed}"
            );
            return self.upper_bound(&found);
        }
        let impact = cache.new.get_or_init(|| rule_impact(rule, state, admission, context));
        let pods = impact.as_ref().map(|impact| impact.numbers.pods);
        let hint = self.check_annotation_acknowledges_pods(check, pods).err()?;
        let caveat = state.caveat();
        let detail = format!(
            "with this rule, all rules together taint {found}, but {policy} allows {allowed}{hint}{caveat}"
        );
        Some(LimitViolation::exceeded(detail, short))
    }
}
