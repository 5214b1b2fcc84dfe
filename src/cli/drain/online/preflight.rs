//! What is checked before a drain changes anything: the release, the permissions, the rules, the lock.
//!
//! Every problem is reported, not only the first. Problems end the drain, unless `--ignore-preflight-errors` is set.

use std::collections::BTreeSet;

use super::event::Event;
use super::rule_object::foreign_rule_message;
use super::run::{Run, StopReason, into_refusal};
use crate::cluster::{
    API_CALLS, AccessAttributes, ApiCall, CallTarget, DrainApiRequest, NeededBy, ObjectNames,
};
use tollgate_api::conform::suggest::join_with_and;
use tollgate_document::doc;
use tollgate_drain::DrainPlan;
use tollgate_forecast::ObjectKind;

impl Run<'_> {
    /// Checks everything that can be checked before the drain changes anything, and reports the results.
    pub(super) fn run_preflight_checks(&mut self, plan: &DrainPlan) -> Result<(), StopReason> {
        let mut problems = self.settings.kubernetes_release_problems.clone();
        self.report_preflight("release and feature gates", &problems);
        let access = self.missing_permissions().map_err(into_refusal)?;
        self.report_preflight("permissions", &access);
        let rules = self.rule_refusals_by_dry_run(plan).map_err(into_refusal)?;
        self.report_preflight("rules", &rules);
        let lock: Vec<String> = self.lock_read_problem().map_err(into_refusal)?.into_iter().collect();
        self.report_preflight("lock", &lock);
        problems.extend(access.into_iter().chain(rules).chain(lock));
        if problems.is_empty() || self.settings.ignore_preflight_errors {
            return Ok(());
        }
        Err(StopReason::Refused(problems.join("; ")))
    }

    fn report_preflight(&mut self, check: &str, problems: &[String]) {
        let problem = (!problems.is_empty()).then(|| problems.join("; "));
        self.notify_observer(&Event::Preflight { check: check.to_owned(), problem });
    }

    /// Returns the permissions that the drain needs and the user lacks, as messages.
    fn missing_permissions(&mut self) -> Result<Vec<String>, StopReason> {
        let forces = self.settings.force_after.is_some();
        let is_needed = |call: &&ApiCall| {
            call.needed_by == NeededBy::Drain || call.needed_by == NeededBy::DrainForce && forces
        };
        let (mut missing, mut roles) = (Vec::new(), BTreeSet::new());
        for call in API_CALLS.iter().filter(is_needed) {
            let CallTarget::Resource { group, resource, names } = call.target else { continue };
            // What is only read is read before, and optional kinds can be missing.
            for verb in call.verbs.iter().filter(|verb| !matches!(**verb, "list" | "watch")) {
                let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                let mut asked = AccessAttributes {
                    verb: (*verb).to_owned(),
                    group: group.to_owned(),
                    resource: resource.to_owned(),
                    subresource: subresource.to_owned(),
                    ..AccessAttributes::default()
                };
                if names == ObjectNames::DrainLease {
                    let Some(lock) = &self.settings.lock else { continue };
                    asked.namespace.clone_from(&lock.namespace);
                    super::lock::LEASE_NAME.clone_into(&mut asked.name);
                }
                let what = permission_text(&asked);
                let answer = self.send_with_retries(&DrainApiRequest::ReviewAccess(asked))?;
                let review = doc::parse(&answer.body).ok();
                let is_allowed =
                    review.as_ref().and_then(|review| review.root().get("status").get("allowed").bool());
                match is_allowed {
                    Some(true) => {}
                    Some(false) => {
                        missing.push(what);
                        roles.insert(match (names, call.needed_by) {
                            (ObjectNames::DrainLease, _) => "the Role tollgate-drain",
                            (_, NeededBy::DrainForce) => "the ClusterRole tollgate-drain-force",
                            _ => "the ClusterRole tollgate-drain",
                        });
                    }
                    None => return Err(StopReason::answered("cannot check permissions", &answer)),
                }
            }
        }
        if missing.is_empty() {
            return Ok(missing);
        }
        let (missing, roles) = (missing.join(", "), roles.into_iter().collect::<Vec<&str>>());
        let roles = join_with_and(&roles);
        Ok(vec![format!("permissions are missing: {missing}; bind {roles} of manifests/components/drain")])
    }

    /// Returns why the API server, its policies or its webhooks refuse the rules of the drain, by dry-run requests.
    fn rule_refusals_by_dry_run(&mut self, plan: &DrainPlan) -> Result<Vec<String>, StopReason> {
        let mut problems = Vec::new();
        for planned in &plan.rules {
            if self.rules.iter().any(|rule| rule.name == planned.name) {
                continue;
            }
            let (request, _) = self.rule_creation_request(planned, true);
            let answer = self.send_with_retries(&request)?;
            if answer.code == 409 {
                let rule = self.server.objects().get(ObjectKind::DeviceTaintRule, "", &planned.name);
                problems.push(match rule {
                    Some(rule) => foreign_rule_message(rule, self.settings),
                    None => format!("rule {} exists already; run the command again", planned.name),
                });
            } else if !answer.is_success() {
                problems.push(format!(
                    "the API server rejects rule {}: {}",
                    planned.name,
                    answer.status_code_and_message()
                ));
                // The others are rejected for the same reason.
                break;
            }
        }
        Ok(problems)
    }
}

/// Returns a permission in the form of `kubectl auth can-i`: `create pods/eviction`.
fn permission_text(asked: &AccessAttributes) -> String {
    let slash = if asked.subresource.is_empty() { "" } else { "/" };
    let group = if asked.group.is_empty() { String::new() } else { format!(".{}", asked.group) };
    let named = if asked.name.is_empty() { String::new() } else { format!(" {}", asked.name) };
    let within =
        if asked.namespace.is_empty() { String::new() } else { format!(" in namespace {}", asked.namespace) };
    format!("{} {}{group}{slash}{}{named}{within}", asked.verb, asked.resource, asked.subresource)
}
