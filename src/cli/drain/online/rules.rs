//! The DeviceTaintRules of a drain: found, created, confirmed by the eviction controller, closed, watched, deleted.
//!
//! A rule is created with the effect None, which does nothing. The condition that the eviction controller then writes
//! is the proof that the cluster acts on rules at all. Only then does the rule get the effect NoSchedule. It never gets
//! NoExecute.
//!
//! Invariant: a rule that is not marked as one of this drain is never changed or deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use super::event::Event;
use super::rule_object::{
    RuleMetadata, deleted_rule_message, foreign_rule_message, parse_rule, rule_json, selector_of_rule,
    string_members,
};
use super::run::{POLL_INTERVAL, Run, StopReason};
use super::server::ServerResponse;
use super::time::seconds_between;
use super::workloads::condition;
use crate::cluster::DrainApiRequest;
use tollgate_document::doc::Value;
use tollgate_drain::{
    DrainPlan, FLAGS_ANNOTATION, ID_LABEL, PlannedRule, STARTED_ANNOTATION, TARGET_ANNOTATION,
    drain_id_from_targets_and_key,
};
use tollgate_engine::impact::EVICTION_IN_PROGRESS;
use tollgate_engine::impact::target::DeviceNameSelector;
use tollgate_engine::rule_annotations;
use tollgate_forecast::ObjectKind;
use tollgate_formats::gotime;

/// Annotation of the first rule by name: the wave that is being moved, so that a later run can continue it.
pub(super) const WAVE_ANNOTATION: &str = "tollgate.dev/wave";

/// Maximum time until the eviction controller writes its condition into the status of a rule.
const MAX_CONDITION_WAIT_SECONDS: i64 = 30;
/// Time in which a watch shows a rule that was just created. If it does not, the API server is asked for the rule.
const MAX_WATCH_DELAY_SECONDS: i64 = 3;
/// How many times, once a second, it is checked whether a deleted rule is gone.
const MAX_DELETION_CHECKS: usize = 10;
/// How many times a write of a rule is repeated because another client, mostly the eviction controller, wrote it
/// meanwhile.
const MAX_CONFLICTS: usize = 5;

/// A DeviceTaintRule of this drain, in the form in which it must stay until the end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct DrainRule {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) selects: DeviceNameSelector,
    pub(super) effect: Effect,
}

impl DrainRule {
    /// True if the stored rule is the one that this drain wrote, unchanged.
    fn is_stored_unchanged(&self, stored: Value<'_>, key: &str) -> bool {
        let taint = stored.get("spec").get("taint");
        stored.get("metadata").get("uid").str() == self.uid
            && selector_of_rule(stored) == self.selects
            && taint.get("key").str() == key
            && taint.get("value").str().is_empty()
            && taint.get("effect").str() == self.effect.name()
    }
}

/// The taint effects that a drain sets on its rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// Has no effect on pods: the eviction controller only counts the devices and pods.
    None,
    /// Keeps new pods off the devices.
    NoSchedule,
}

impl Effect {
    pub(super) fn name(self) -> &'static str {
        match self {
            Effect::None => "None",
            Effect::NoSchedule => "NoSchedule",
        }
    }
}

impl Run<'_> {
    /// Returns the watched rules with the label of this drain.
    pub(super) fn own_stored_rules(&self) -> impl Iterator<Item = Value<'_>> {
        let id = drain_id_from_targets_and_key(&self.settings.request);
        let rules = self.server.objects().objects_of_kind(ObjectKind::DeviceTaintRule);
        rules.filter(move |rule| rule.get("metadata").get("labels").get(ID_LABEL).str() == id)
    }

    /// Reads the rules of this drain from the cluster.
    pub(super) fn load_own_rules(&mut self) -> Result<(), StopReason> {
        let mut found = Vec::new();
        for rule in self.own_stored_rules() {
            let metadata = rule.get("metadata");
            let (name, taint) = (metadata.get("name").str(), rule.get("spec").get("taint"));
            let effect = match taint.get("effect").str() {
                "None" => Effect::None,
                "NoSchedule" => Effect::NoSchedule,
                other => {
                    return Err(StopReason::Refused(format!(
                        "rule {name} of this drain has the effect {other}, which a drain never sets; set it to NoSchedule, \
                         or run `{}`",
                        self.settings.next.go_back
                    )));
                }
            };
            if taint.get("key").str() != self.settings.request.key {
                return Err(StopReason::Refused(format!(
                    "rule {name} of this drain has another key than {}",
                    self.settings.request.key
                )));
            }
            found.push(DrainRule {
                name: name.to_owned(),
                uid: metadata.get("uid").str().to_owned(),
                selects: selector_of_rule(rule),
                effect,
            });
        }
        self.rules = found;
        Ok(())
    }

    /// Creates the rules of the plan and sets all rules of the drain to NoSchedule, so that new pods do not get
    /// the devices. If that fails, deletes the rules that it created.
    pub(super) fn set_no_schedule_or_roll_back(&mut self) -> Result<(), StopReason> {
        let Some(plan) = self.plan.clone() else { return Err(StopReason::internal("no plan")) };
        let is_new = self.rules.iter().all(|rule| rule.effect == Effect::None);
        for rule in self.rules.clone() {
            self.notify_observer(&Event::RuleFound {
                rule: rule.name,
                effect: rule.effect.name().to_owned(),
            });
        }
        let kept = if is_new { Vec::new() } else { self.rules.clone() };
        let Err(halt) = self.create_rules_and_set_no_schedule(&plan) else { return Ok(()) };
        // An API server that fails may not answer a delete either; then the rules are found by their label.
        for rule in self.rules.clone() {
            if kept.iter().all(|known| known.name != rule.name) {
                self.delete_rule(&rule.name, &rule.uid).map_err(|_failed| halt.clone())?;
                self.rules.retain(|known| known.name != rule.name);
            }
        }
        match halt {
            StopReason::Stopped(why) | StopReason::Refused(why) if is_new => Err(StopReason::Refused(
                format!("{why}; no rule of this drain is left, and no pod was evicted"),
            )),
            halt => Err(halt),
        }
    }

    fn create_rules_and_set_no_schedule(&mut self, plan: &DrainPlan) -> Result<(), StopReason> {
        for planned in &plan.rules {
            if !self.rules.iter().any(|rule| rule.name == planned.name) {
                self.create_rule_with_effect_none(planned)?;
            }
        }
        self.wait_for_eviction_controller_conditions(plan)?;
        let open: Vec<DrainRule> =
            self.rules.iter().filter(|rule| rule.effect == Effect::None).cloned().collect();
        for is_dry_run in [true, false] {
            for rule in &open {
                self.check_interrupt_and_renew_lock()?;
                let closed = DrainRule { effect: Effect::NoSchedule, ..rule.clone() };
                self.update_rule(&rule.name, &closed, is_dry_run, |_| {})?;
                if is_dry_run {
                    continue;
                }
                if let Some(rule) = self.rules.iter_mut().find(|rule| rule.name == closed.name) {
                    rule.effect = Effect::NoSchedule;
                }
                self.notify_observer(&Event::RuleClosed { rule: rule.name.clone() });
            }
        }
        // The plan reads the rules from the watch.
        self.wait_until_watch_shows_rules()
    }

    /// Returns the request that creates a planned rule with the effect None, and the rule, still without a uid.
    pub(super) fn rule_creation_request(
        &self,
        planned: &PlannedRule,
        is_dry_run: bool,
    ) -> (DrainApiRequest, DrainRule) {
        let settings = self.settings;
        let (version, key) = (settings.rule_version, &settings.request.key);
        let rule = DrainRule {
            name: planned.name.clone(),
            uid: String::new(),
            selects: planned.selects.clone(),
            effect: Effect::None,
        };
        let metadata = RuleMetadata {
            labels: BTreeMap::from([(ID_LABEL.to_owned(), drain_id_from_targets_and_key(&settings.request))]),
            annotations: self.new_rule_annotations(),
            ..RuleMetadata::default()
        };
        let object = rule_json(version, key, &rule, &metadata, None);
        (DrainApiRequest::CreateRule { version, object, is_dry_run }, rule)
    }

    fn create_rule_with_effect_none(&mut self, planned: &PlannedRule) -> Result<(), StopReason> {
        self.check_interrupt_and_renew_lock()?;
        let (request, mut rule) = self.rule_creation_request(planned, false);
        let answer = self.send_with_retries(&request)?;
        let body = if answer.code == 409 {
            // Ours, if an earlier answer was lost.
            self.get_own_rule(&rule.name)?
        } else if answer.is_success() {
            answer.body
        } else {
            let what = format!("the API server rejects rule {}", rule.name);
            return Err(StopReason::answered(what, &answer));
        };
        let stored = parse_rule(&body)?;
        stored.root().get("metadata").get("uid").str().clone_into(&mut rule.uid);
        let devices = planned.published;
        self.notify_observer(&Event::RuleCreated { rule: rule.name.clone(), devices });
        self.rules.push(rule);
        Ok(())
    }

    /// Returns the annotations of a new rule: reason and owner for people, and the data with which a later run
    /// continues the drain.
    fn new_rule_annotations(&self) -> BTreeMap<String, String> {
        let notes = &self.settings.notes;
        let mut all = BTreeMap::from([
            (TARGET_ANNOTATION.to_owned(), self.settings.request.typed.join(" ")),
            (STARTED_ANNOTATION.to_owned(), gotime::rfc3339(self.now())),
        ]);
        let flags = Some(&notes.flags).filter(|flags| !flags.is_empty());
        let optional = [
            (FLAGS_ANNOTATION, flags),
            (rule_annotations::REASON, notes.reason.as_ref()),
            (rule_annotations::OWNER, notes.owner.as_ref()),
            (rule_annotations::EXPIRES, notes.expires.as_ref()),
        ];
        let optional = optional.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?.clone())));
        all.extend(optional);
        all
    }

    /// Waits until the eviction controller has written a condition for every rule with the effect None, which
    /// proves that the cluster acts on rules.
    fn wait_for_eviction_controller_conditions(&mut self, plan: &DrainPlan) -> Result<(), StopReason> {
        let since = self.now();
        let open = self.rules.iter().filter(|rule| rule.effect == Effect::None);
        let mut left: Vec<String> = open.map(|rule| rule.name.clone()).collect();
        while !left.is_empty() {
            self.refresh_objects_with_retries()?;
            self.check_rules_unchanged()?;
            let waited = seconds_between(since, self.now());
            let mut unseen = Vec::new();
            for name in left {
                let Some(message) = self.eviction_condition_message(&name) else {
                    let is_watched =
                        self.server.objects().get(ObjectKind::DeviceTaintRule, "", &name).is_some();
                    if waited >= MAX_WATCH_DELAY_SECONDS && !is_watched {
                        // An error if the rule was deleted.
                        self.get_own_rule(&name)?;
                    }
                    unseen.push(name);
                    continue;
                };
                if let Some(planned) = plan.rules.iter().find(|rule| rule.name == name) {
                    check_device_count(planned, &message)?;
                }
                self.notify_observer(&Event::RuleConfirmed { rule: name, message });
            }
            left = unseen;
            if left.is_empty() {
                break;
            }
            if waited >= MAX_CONDITION_WAIT_SECONDS {
                return Err(StopReason::Stopped(format!(
                    "the eviction controller has written no condition for rule {} within {MAX_CONDITION_WAIT_SECONDS} s, so it is not \
                     certain that this cluster acts on DeviceTaintRules; check that the feature gate DRADeviceTaintRules is \
                     on in kube-controller-manager and kube-scheduler",
                    left.join(", ")
                )));
            }
            self.check_interrupt_and_renew_lock()?;
            self.wait_and_refresh_objects(POLL_INTERVAL)?;
        }
        Ok(())
    }

    /// Returns the message that the eviction controller wrote about the current generation of a rule; `None` if it
    /// wrote none yet.
    fn eviction_condition_message(&self, name: &str) -> Option<String> {
        let rule = self.server.objects().get(ObjectKind::DeviceTaintRule, "", name)?;
        let generation = rule.get("metadata").get("generation").int();
        let condition = condition(rule, EVICTION_IN_PROGRESS);
        let is_current = condition.get("observedGeneration").int() >= generation;
        (condition.exists() && is_current).then(|| condition.get("message").str().to_owned())
    }

    /// Waits until the watch shows the rules as they were written.
    fn wait_until_watch_shows_rules(&mut self) -> Result<(), StopReason> {
        let since = self.now();
        loop {
            self.refresh_objects_with_retries()?;
            let Err(problem) = self.verify_watched_rules() else { return Ok(()) };
            if seconds_between(since, self.now()) >= MAX_CONDITION_WAIT_SECONDS {
                return Err(StopReason::Stopped(problem));
            }
            self.wait_and_refresh_objects(Duration::from_millis(200))?;
        }
    }

    /// An error if a rule of this drain was changed or deleted by somebody else.
    pub(super) fn check_rules_unchanged(&mut self) -> Result<(), StopReason> {
        self.verify_watched_rules().map_err(StopReason::Stopped)
    }

    /// An error names a rule that the watch no longer shows as this drain wrote it.
    fn verify_watched_rules(&self) -> Result<(), String> {
        let key = &self.settings.request.key;
        for expected in &self.rules {
            let name = &expected.name;
            let Some(rule) = self.server.objects().get(ObjectKind::DeviceTaintRule, "", name) else {
                // It was created a moment ago, and the watch has not shown it yet.
                if expected.effect == Effect::None {
                    continue;
                }
                return Err(deleted_rule_message(name));
            };
            let taint = rule.get("spec").get("taint");
            if !expected.is_stored_unchanged(rule, key) {
                let effect = taint.get("effect").str();
                return Err(format!(
                    "rule {name} was changed by somebody else: it has the taint {}:{effect}, or selects other devices",
                    taint.get("key").str()
                ));
            }
        }
        Ok(())
    }

    /// Returns how many rules of this drain exist, as far as it is known: the watch may not show new ones yet.
    pub(super) fn count_rules_left(&self) -> usize {
        let objects = self.server.objects();
        let is_left = |rule: &&DrainRule| {
            let stored = objects.get(ObjectKind::DeviceTaintRule, "", &rule.name);
            let is_own = |stored: Value<'_>| stored.get("metadata").get("uid").str() == rule.uid;
            stored.map_or(rule.effect == Effect::None, is_own)
        };
        self.rules.iter().filter(is_left).count()
    }

    /// Sends the rule `wanted` in place of the stored rule of this name, with the stored metadata after `change`.
    /// Returns an error if somebody else changed the rule.
    pub(super) fn update_rule(
        &mut self,
        name: &str,
        wanted: &DrainRule,
        is_dry_run: bool,
        change: impl Fn(&mut RuleMetadata),
    ) -> Result<(), StopReason> {
        let (version, key) = (self.settings.rule_version, self.settings.request.key.clone());
        for _ in 0..MAX_CONFLICTS {
            let body = self.get_own_rule(name)?;
            let stored = parse_rule(&body)?;
            let (metadata, before) =
                (stored.root().get("metadata"), self.rules.iter().find(|rule| rule.name == name));
            let taint = stored.root().get("spec").get("taint");
            let effect = taint.get("effect").str();
            if before.is_some_and(|before| !before.is_stored_unchanged(stored.root(), &key)) {
                return Err(StopReason::Stopped(format!("rule {name} was changed by somebody else")));
            }
            let mut kept = RuleMetadata {
                uid: metadata.get("uid").str().to_owned(),
                resource_version: metadata.get("resourceVersion").str().to_owned(),
                labels: string_members(metadata.get("labels")),
                annotations: string_members(metadata.get("annotations")),
                finalizers: metadata.get("finalizers").items().map(|name| name.str().to_owned()).collect(),
            };
            change(&mut kept);
            let is_same = effect == wanted.effect.name();
            let time_added = is_same.then(|| taint.get("timeAdded").str());
            let object = rule_json(version, &key, wanted, &kept, time_added);
            let request = DrainApiRequest::UpdateRule { version, name: name.to_owned(), object, is_dry_run };
            let answer = self.send_with_retries(&request)?;
            match answer.code {
                409 => {}
                _ if answer.is_success() => return Ok(()),
                _ => {
                    let effect = wanted.effect.name();
                    let what = format!("the API server rejects the effect {effect} for rule {name}");
                    return Err(StopReason::answered(what, &answer));
                }
            }
        }
        Err(StopReason::Stopped(format!("rule {name} is changed by others all the time")))
    }

    /// Gets the rule of that name.
    fn get_rule(&mut self, name: &str) -> Result<ServerResponse, StopReason> {
        let version = self.settings.rule_version;
        self.send_with_retries(&DrainApiRequest::GetRule { version, name: name.to_owned() })
    }

    /// Returns the rule of that name as JSON. Returns an error if it is not a rule of this drain, or does not exist.
    fn get_own_rule(&mut self, name: &str) -> Result<String, StopReason> {
        let answer = self.get_rule(name)?;
        if answer.code == 404 {
            self.rules.retain(|rule| rule.name != name);
            return Err(StopReason::Stopped(deleted_rule_message(name)));
        }
        if !answer.is_success() {
            return Err(StopReason::answered(format_args!("cannot read rule {name}"), &answer));
        }
        let stored = parse_rule(&answer.body)?;
        let id = stored.root().get("metadata").get("labels").get(ID_LABEL).str();
        if id != drain_id_from_targets_and_key(&self.settings.request) {
            return Err(StopReason::Stopped(foreign_rule_message(stored.root(), self.settings)));
        }
        Ok(answer.body)
    }

    /// Deletes the rule with this uid, and waits until it is gone. Leaves a newer rule of the same name alone.
    pub(super) fn delete_rule(&mut self, name: &str, uid: &str) -> Result<(), StopReason> {
        let version = self.settings.rule_version;
        for _ in 0..MAX_CONFLICTS {
            let answer = self.get_rule(name)?;
            if answer.code == 404 {
                return Ok(());
            }
            let stored = parse_rule(&answer.body)?;
            let metadata = stored.root().get("metadata");
            if metadata.get("uid").str() != uid {
                return Ok(());
            }
            let resource_version = metadata.get("resourceVersion").str().to_owned();
            let (name, uid) = (name.to_owned(), uid.to_owned());
            let request = DrainApiRequest::DeleteRule { version, name: name.clone(), uid, resource_version };
            let answer = self.send_with_retries(&request)?;
            match answer.code {
                404 => return Ok(()),
                409 => {}
                _ if answer.is_success() => return self.wait_until_deleted(&name),
                _ => return Err(StopReason::answered(format_args!("cannot delete rule {name}"), &answer)),
            }
        }
        Err(StopReason::Stopped(format!("rule {name} is changed by others all the time")))
    }

    /// Waits until a deleted rule is gone, because a finalizer can keep it.
    fn wait_until_deleted(&mut self, name: &str) -> Result<(), StopReason> {
        for _ in 0..MAX_DELETION_CHECKS {
            if self.get_rule(name)?.code == 404 {
                self.notify_observer(&Event::RuleDeleted { rule: name.to_owned() });
                return Ok(());
            }
            self.server.pause(POLL_INTERVAL);
        }
        Err(StopReason::Stopped(format!(
            "rule {name} was deleted, but it is still there and keeps new pods off the devices; check its finalizers"
        )))
    }
}

/// Returns an error if the eviction controller counts another number of published devices than the plan. Pods are
/// not compared, because they come and go.
fn check_device_count(planned: &PlannedRule, message: &str) -> Result<(), StopReason> {
    let counted: Option<usize> = message.split(' ').next().and_then(|number| number.parse().ok());
    match counted {
        Some(counted) if counted != planned.published => Err(StopReason::Stopped(format!(
            "the eviction controller says that rule {} selects {counted} published devices, but the plan has {}: {message}",
            planned.name, planned.published
        ))),
        _ => Ok(()),
    }
}
