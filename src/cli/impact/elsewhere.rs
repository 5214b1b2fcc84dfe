//! Whether evicted pods fit elsewhere, as the impact report states in one line; `tollgate forecast` shows the details.
//!
//! Requires the nodes of the cluster. Without them, the report omits this line.

use super::ImpactReporter;
use crate::cli::capacity;
use crate::cli::forecast::{
    check_pending_pod_limit_in_worst_run, forecast_changes, stored, summary_of_evicted,
};
use crate::cli::shared::ReportOutput;
use tollgate_api::profile::Profile;
use tollgate_document::doc::{self, Doc, Value};
use tollgate_forecast::{Forecast, ObjectKind, Settings};
use tollgate_formats::gotime::Timestamp;

/// A forecast of where the evicted pods go.
#[derive(Debug)]
pub(super) struct EvictedPodsForecast {
    pub(super) forecast: Forecast,
    /// What is missing from the state, so that outcomes are unknown; empty if it is complete.
    missing: Vec<String>,
}

/// Returns a changed object as the JSON that a forecast applies, with the effect of `--effect` if it is a rule.
pub(super) fn changed_object_json(object: Value<'_>, effect: Option<&str>) -> String {
    match effect {
        Some(effect) if object.get("kind").str() == ObjectKind::DeviceTaintRule.name() => {
            stored::rule_json_with_effect(object, effect)
        }
        _ => object.to_json(),
    }
}

impl EvictedPodsForecast {
    /// Returns the outcomes of the evicted pods in one sentence: `of 8 evicted pods 6 fit elsewhere, 2 stay
    /// Pending`; `None` if no pod is evicted.
    pub(super) fn outcome_sentence(&self) -> Option<String> {
        let sentence = summary_of_evicted(&self.forecast)?;
        let why =
            if self.missing.is_empty() { String::new() } else { format!(": {}", self.missing.join("; ")) };
        Some(sentence + &why)
    }
}

impl ImpactReporter<'_> {
    /// Forecasts where the pods go that these changes evict together; `None` if the state has no nodes.
    pub(super) fn forecast_evicted_pods(
        &self,
        changes: &[&str],
        profile: &'static Profile,
        at: Timestamp,
    ) -> Option<EvictedPodsForecast> {
        let state = self.state.filter(|state| !state.objects_of_kind(ObjectKind::Node).is_empty())?;
        // What a running cluster lists is complete.
        let assume_complete = self.arguments.state.assume_complete || self.arguments.state.paths.is_empty();
        let counts_devices = self.arguments.output == ReportOutput::Html;
        let settings = Settings { assume_complete, counts_devices, ..Settings::defaults_at(at) };
        let mut missing = self.omissions.clone();
        missing.extend(self.unlisted.iter().filter(|why| !self.omissions.contains(why)).cloned());
        if state.objects_of_kind(ObjectKind::DeviceClass).is_empty() && !assume_complete {
            missing.push("the dump contains no DeviceClasses".to_owned());
        }
        let forecast = forecast_changes(changes, state, profile, settings, &missing);
        Some(EvictedPodsForecast { forecast, missing })
    }

    /// Returns the devices of each class before and after the changes, for an HTML page; `None` if it is not known
    /// where pods go.
    pub(super) fn device_count_changes_json(
        &self,
        changes: &[&str],
        elsewhere: Option<&EvictedPodsForecast>,
        profile: &Profile,
    ) -> Option<String> {
        let elsewhere = elsewhere.filter(|elsewhere| elsewhere.missing.is_empty())?;
        let docs: Vec<Doc<'_>> = changes.iter().filter_map(|json| doc::parse(json).ok()).collect();
        capacity::device_count_changes_json(self.state?, &docs, &elsewhere.forecast.devices, profile)
    }

    /// Reports an error if more of the evicted pods stay Pending than `--max pending` allows, or if that cannot
    /// be checked. `who` names the change.
    pub(super) fn report_pending_over_limit(&mut self, who: &str, elsewhere: Option<&EvictedPodsForecast>) {
        let Some(limits) = self.arguments.max.as_ref().filter(|limits| limits.get("pending").is_some())
        else {
            return;
        };
        let Some(elsewhere) = elsewhere else {
            self.tally.unreadable += 1;
            let why = self.unlisted.first().map_or("the state contains no Nodes", String::as_str);
            self.console.error(&format!("{who}: cannot check --max pending: {why}"));
            return;
        };
        let checked = check_pending_pod_limit_in_worst_run(limits, &elsewhere.forecast);
        self.tally.denied += checked.excesses.len();
        self.tally.unreadable += checked.undecided.len();
        for message in checked.excesses.iter().chain(&checked.undecided) {
            self.console.error(&format!("{who}: {message}"));
        }
    }
}
