//! `tollgate undrain` and `tollgate drain --check`: the rules of a drain are found by label and annotation, never by slices,
//! which may have changed since.

use super::event::Event;
use super::halt::Halt;
use super::run::{Ending, Observer, Run, RunSettings, holding_claim, refused};
use super::server::Server;
use tollgate_document::doc::Value;
use tollgate_drain::{DrainPlan, ID_LABEL, TARGET_ANNOTATION};
use tollgate_engine::impact::target::DeviceNames;
use tollgate_forecast::ObjectKind;

/// Deletes the rules of a drain, and nothing else. With `is_dry_run` it only lists them.
pub(super) fn undrain(
    server: &mut dyn Server,
    settings: &RunSettings,
    observer: &mut dyn Observer,
    is_dry_run: bool,
) -> Ending {
    let mut run = Run::new(server, settings, observer);
    let result = run.undrain(is_dry_run);
    run.release_lock();
    match result {
        Ok(()) => Ending::Proven,
        Err(Halt::Refused(why) | Halt::Stopped(why)) => Ending::Refused(why),
    }
}

/// Proves that no claim holds the devices of a target.
pub(super) fn check(server: &mut dyn Server, settings: &RunSettings, observer: &mut dyn Observer) -> Ending {
    let mut run = Run::new(server, settings, observer);
    match run.check() {
        Ok(ending) => ending,
        Err(Halt::Refused(why) | Halt::Stopped(why)) => Ending::Refused(why),
    }
}

impl Run<'_> {
    fn undrain(&mut self, is_dry_run: bool) -> Result<(), Halt> {
        self.refresh().map_err(refused)?;
        let rules = self.own_rules();
        if rules.is_empty() {
            return Err(Halt::Refused(self.no_rules_message()));
        }
        for [rule, _, effect] in rules.clone() {
            self.tell(&Event::RuleFound { rule, effect });
        }
        if is_dry_run {
            return Ok(());
        }
        // Waits for a drain that was killed, and refuses while one runs. Without a Lease, there is nothing to wait for.
        if self.lock_problem()?.is_none() {
            self.take_lock()?;
        }
        for [name, uid, _] in rules {
            self.keep_lock()?;
            self.delete_rule(&name, &uid)?;
        }
        Ok(())
    }

    /// Names, uids and effects of the rules with the label of this drain.
    fn own_rules(&self) -> Vec<[String; 3]> {
        let id = tollgate_drain::drain_id(&self.settings.request);
        let rules = self.server.objects().of_kind(ObjectKind::DeviceTaintRule);
        let own = rules.filter(|rule| label(*rule) == id);
        own.map(|rule| {
            let (metadata, effect) = (rule.get("metadata"), rule.get("spec").get("taint").get("effect"));
            [metadata.get("name"), metadata.get("uid"), effect].map(|text| text.str().to_owned())
        })
        .collect()
    }

    /// Says that there are no rules of this drain, and which drains there are.
    fn no_rules_message(&self) -> String {
        let rules = self.server.objects().of_kind(ObjectKind::DeviceTaintRule);
        let mut targets: Vec<String> = rules
            .filter(|rule| !label(*rule).is_empty())
            .map(|rule| rule.get("metadata").get("annotations").get(TARGET_ANNOTATION).str().to_owned())
            .collect();
        targets.sort();
        targets.dedup();
        let typed = self.settings.request.typed.join(" ");
        let known: Vec<String> =
            targets.iter().map(|target| format!("`tollgate undrain {target}`")).collect();
        if known.is_empty() {
            return format!("no rule of a drain of {typed} exists, and no drain of other devices");
        }
        format!(
            "no rule of a drain of {typed} exists; the drains that exist are ended with {}",
            known.join(" or ")
        )
    }

    fn check(&mut self) -> Result<Ending, Halt> {
        let began = self.server.now();
        self.refresh().map_err(refused)?;
        self.find_rules()?;
        let mut selectors: Vec<DeviceNames> = self.rules.iter().map(|rule| rule.selects.clone()).collect();
        let plan: Result<DrainPlan, String> = self.make_plan();
        match (plan, selectors.is_empty()) {
            (Ok(plan), _) => {
                for rule in &plan.rules {
                    if !selectors.contains(&rule.selects) {
                        selectors.push(rule.selects.clone());
                    }
                }
                self.plan = Some(plan);
            }
            // The driver may be restarting; the rules know what they select.
            (Err(_), false) => {}
            (Err(why), true) => return Err(Halt::Refused(why)),
        }
        let holders = self.look(&selectors)?;
        let devices = self.plan.as_ref().map_or(0, |plan| plan.devices.len());
        let seconds = super::time::seconds_between(began, self.server.now()).unsigned_abs();
        let holding: Vec<_> = holders.iter().map(holding_claim).collect();
        let is_proven = holding.is_empty();
        self.tell(&Event::Finished { devices, evicted: 0, seconds, holding });
        Ok(if is_proven { Ending::Proven } else { Ending::Holding })
    }
}

fn label(rule: Value<'_>) -> &str {
    rule.get("metadata").get("labels").get(ID_LABEL).str()
}
