//! `tollgate undrain` and `tollgate drain --check`: the rules of a drain are found by label and annotation, never by
//! slices, which may have changed since.

use std::collections::BTreeSet;

use super::event::Event;
use super::rules::Effect;
use super::run::{DrainUserInterface, Ending, Run, RunSettings, StopReason, holding_claim, into_refusal};
use super::server::Server;
use tollgate_drain::ID_LABEL;
use tollgate_engine::impact::target::DeviceNameSelector;
use tollgate_forecast::ObjectKind;

/// Deletes the rules of a drain, and nothing else. With `is_dry_run` it only lists them.
pub(super) fn undrain(
    server: &mut dyn Server,
    settings: &RunSettings,
    observer: &mut dyn DrainUserInterface,
    is_dry_run: bool,
) -> Ending {
    let mut run = Run::new(server, settings, observer);
    let result = run.undrain(is_dry_run);
    run.release_lock();
    match result {
        Ok(()) => Ending::Proven,
        Err(StopReason::Refused(why)) => Ending::Refused(why),
        Err(StopReason::Stopped(why)) => Ending::Failed(why),
    }
}

/// Checks for `drain --check` whether claims hold the devices of the targets, and whether rules keep new pods off
/// them. Changes nothing.
pub(super) fn check_devices_free(
    server: &mut dyn Server,
    settings: &RunSettings,
    observer: &mut dyn DrainUserInterface,
) -> Ending {
    let mut run = Run::new(server, settings, observer);
    match run.check_claims_and_rules() {
        Ok(ending) => ending,
        Err(StopReason::Refused(why) | StopReason::Stopped(why)) => Ending::Refused(why),
    }
}

impl Run<'_> {
    fn undrain(&mut self, is_dry_run: bool) -> Result<(), StopReason> {
        self.refresh_objects_with_retries().map_err(into_refusal)?;
        let rules = self.own_rule_names_uids_effects();
        if rules.is_empty() {
            return Err(StopReason::Refused(self.no_rules_message_with_other_drains()));
        }
        for [rule, _, effect] in rules.clone() {
            self.notify_observer(&if is_dry_run {
                Event::RuleWouldBeDeleted { rule, effect }
            } else {
                Event::RuleFound { rule, effect }
            });
        }
        if is_dry_run {
            return Ok(());
        }
        self.server.catch_interrupts();
        // Waits for a drain that was killed, and refuses while one runs. Without a Lease, there is nothing to wait for.
        if self.lock_read_problem()?.is_none() {
            self.take_lock_or_wait_for_expiry()?;
        }
        for [name, uid, _] in rules {
            self.renew_lock_if_due()?;
            self.delete_rule(&name, &uid)?;
        }
        Ok(())
    }

    /// Returns name, uid and effect of each rule with the label of this drain.
    fn own_rule_names_uids_effects(&self) -> Vec<[String; 3]> {
        let own = self.own_stored_rules().map(|rule| {
            let (metadata, effect) = (rule.get("metadata"), rule.get("spec").get("taint").get("effect"));
            [metadata.get("name"), metadata.get("uid"), effect].map(|text| text.str().to_owned())
        });
        own.collect()
    }

    /// Returns the message that there are no rules of this drain, with the commands that end the drains that exist.
    fn no_rules_message_with_other_drains(&self) -> String {
        let rules = self.server.objects().objects_of_kind(ObjectKind::DeviceTaintRule);
        let drains: BTreeSet<String> = rules
            .filter(|rule| !rule.get("metadata").get("labels").get(ID_LABEL).str().is_empty())
            .map(|rule| format!("`{}`", self.settings.end_drain_command(rule)))
            .collect();
        let (typed, key) = (self.settings.request.typed.join(" "), &self.settings.request.key);
        let drains: Vec<String> = drains.into_iter().collect();
        let others = match drains.join(" or ") {
            none if none.is_empty() => ", and no drain of other devices".to_owned(),
            commands => format!("; to end the drains that exist, run {commands}"),
        };
        format!("no rule of a drain of {typed} with the key {key} exists{others}")
    }

    fn check_claims_and_rules(&mut self) -> Result<Ending, StopReason> {
        self.refresh_objects_with_retries().map_err(into_refusal)?;
        self.load_own_rules()?;
        let plan = self.make_plan().map_err(StopReason::Refused)?;
        let selectors: Vec<DeviceNameSelector> = plan.rules.iter().map(|rule| rule.selects.clone()).collect();
        let holders = self.find_holding_claims_twice_if_none(&selectors)?;
        let holding: Vec<_> = holders.iter().map(holding_claim).collect();
        let is_proven = holding.is_empty();
        let closed = plan.rules.iter().all(|rule| {
            let known = self.rules.iter().find(|known| known.name == rule.name);
            known.is_some_and(|known| known.effect == Effect::NoSchedule)
        });
        self.notify_observer(&Event::Checked { devices: plan.devices.len(), closed, holding });
        Ok(if is_proven { Ending::Proven } else { Ending::Holding })
    }
}
