//! `tollgate impact RULE…`: predicts what a DeviceTaintRule will do, in the current cluster or in that of a dump.
//!
//! Reads rules (and changed ResourceSlices) and the state of a cluster, calls `impact`, prints the result. An object
//! that the API server would reject, or would store without some of its fields, is denied and not assessed. What cannot
//! be listed in a cluster counts as unreadable input. So does a dump that may be incomplete if a limit is set, because
//! a limit that could not be checked must not pass.

mod by;
mod cluster;
mod denials;
mod elsewhere;
mod json;
mod limits;
mod other_apis;
mod patch;
mod replacement;
mod sum;
mod text;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;

use super::clock;
use super::console::Console;
use super::limit_list::LimitList;
use super::outcome::{ExitCounts, Failure};
use super::picture::{self, HtmlPageRecord, StateSource};
use super::shared::{ExitZeroArgs, ReleaseArgs, ReportOutput, StateArgs};
use super::state::{OwnedObjects, StateObjects};
use super::taint;
use crate::files::{self, DEFAULT_MAX_FILE_BYTES};
pub(super) use by::GroupBy;
use by::ImpactGroups;
use cluster::ClusterInput;
use denials::denials;
pub(super) use denials::first_denial;
pub(super) use denials::print_denials;
use elsewhere::EvictedPodsForecast;
use limits::{ImpactCounts, exceeded_limit_messages};
use sum::TotalImpact;
use tollgate_api::profile::Profile;
use tollgate_document::doc::Value;
use tollgate_document::field::Path;
use tollgate_document::source::{LineIndex, documents, list};
use tollgate_drain::DEFAULT_KEY;
use tollgate_engine::impact::target::DeviceTarget;
use tollgate_engine::impact::{
    self, Impact, ImpactQuery, ProposedChange, Snapshot, SnapshotKind, UnreadableObject, ViolatedBudget,
};
use tollgate_forecast::{AffectedGroup, State, effects_of_lost_pods};
use tollgate_formats::gotime::{self, rfc3339 as format_time};
use tollgate_formats::sanitize;
use tollgate_picture::pages::ReportJson;

/// Show the impact of a DeviceTaintRule: selected devices, evicted pods, eviction times and reasons
#[derive(Debug, clap::Args)]
#[command(
    override_usage = USAGE,
    after_help = AFTER_HELP,
    group = clap::ArgGroup::new("subject").args(["paths", "target"]).required(true).multiple(true)
)]
pub(super) struct Arguments {
    /// Files or folders with DeviceTaintRules, or with ResourceSlices that a driver would publish; `-` for stdin
    #[arg(value_name = "RULE")]
    paths: Vec<PathBuf>,

    /// Devices instead of rules: DRIVER[/POOL[/DEVICE]] or node/NAME
    ///
    /// Shows the impact of a rule for these devices. Its effect is NoExecute, unless --effect sets another one. Can be
    /// repeated.
    #[arg(long, value_name = "TARGET", value_parser = DeviceTarget::parse)]
    target: Vec<DeviceTarget>,

    /// Key of the taint for --target
    #[arg(long, value_name = "KEY", default_value = DEFAULT_KEY, requires = "target", hide_short_help = true)]
    key: String,

    #[command(flatten)]
    state: StateArgs,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: ReportOutput,

    #[command(flatten)]
    clock: clock::ClockArgs,

    /// Group the evicted pods, and count them, instead of listing each
    #[arg(long, value_name = "GROUP")]
    by: Option<GroupBy>,

    /// Assume that the rules have this effect
    #[arg(long, value_name = "EFFECT", value_parser = ["None", "NoSchedule", "NoExecute"])]
    effect: Option<String>,

    /// Exit 1 if a rule, or all rules together, exceed any of these limits, such as
    /// pods=10,namespaces=2,devices=64,pending=0
    #[arg(long, alias = "fail-over", value_name = "LIMITS", value_parser = limits::parse)]
    max: Option<LimitList>,

    /// Assumed time to replace a FoundationDB process group, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    #[arg(hide_short_help = true)]
    replacement_takes: i64,

    /// Maximum number of pods to list; 0 lists all (default: 100 in text, all in JSON)
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,

    #[command(flatten)]
    release: ReleaseArgs,

    #[command(flatten)]
    exit: ExitZeroArgs,
}

const USAGE: &str = "\
tollgate impact [OPTIONS] <RULE>...
       tollgate impact [OPTIONS] --target <TARGET>...";

const AFTER_HELP: &str = "\
To create a dump, run one of these commands:
  tollgate snapshot
  kubectl get resourceslices,resourceclaims,pods,devicetaintrules,pdb -A -o yaml

For --by workload, add replicasets,jobs,statefulsets to the kinds of kubectl. `tollgate snapshot` includes them.

Exit codes:
  0  the impact was reported
  1  a rule exceeds --max, or the API server would reject a rule
  2  usage error
  3  some input could not be read, some objects could not be listed, or the dump is incomplete
  4  internal error
If several codes apply, 4 takes precedence over 1, and 1 over 3.";

/// The impact of one object, with the notes that the report shows beside it.
struct Assessment<'s> {
    query: ImpactQuery<'s>,
    impact: Impact<'s>,
    budgets: Vec<ViolatedBudget<'s>>,
    differences: Vec<String>,
    /// Why the change has no effect in this release; the report then shows what it would do.
    no_effect: Option<String>,
    /// Which feature gates decide whether the change has an effect; the report shows what happens if it has.
    depends_on: Option<String>,
    /// The pods grouped by `--by`; `None` without the flag.
    groups: Option<ImpactGroups<'s>>,
    /// Other pods of LeaderWorkerSets, JobSets and PodGroups that restart because their group loses pods.
    restarts: Vec<AffectedGroup<'s>>,
    /// Where evicted pods go, if the state has nodes.
    elsewhere: Option<EvictedPodsForecast>,
}

/// Maximum number of pods in the text without `--limit`.
const DEFAULT_MAX_LISTED_PODS: usize = 100;

/// How many of `pods` are listed: at most `limit`, or all of them if `limit` is 0.
fn listed_count(pods: usize, limit: usize) -> usize {
    if limit == 0 { pods } else { pods.min(limit) }
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        Ok(self.exit.apply_exit_zero(self.report_impact_of_inputs(console)?))
    }

    fn report_impact_of_inputs(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        self.state.refuse_shared_stdin(&self.paths, "RULE")?;
        let others = other_apis::report_other_api_impacts(self, console)?;
        if others.reported > 0 && others.remaining == 0 {
            return Ok(others.tally);
        }
        let mut tally = others.tally;
        let input = self.read_dump_or_cluster(&mut tally, console)?;
        let ClusterInput { snapshot, omissions, profiles, texts, listed, unlisted, source } = input;
        let parsed = texts.as_deref().map(StateObjects::parse).transpose()?;
        let of_dump = parsed.as_ref().map(StateObjects::state);
        let state = of_dump.or_else(|| listed.as_ref().map(OwnedObjects::state));
        let mut texts = files::read_all_or_fail(&self.paths, DEFAULT_MAX_FILE_BYTES)?;
        let rules = self.rule_manifests_of_targets(&snapshot, &profiles, console)?;
        texts.extend(rules.into_iter().map(|rule| ("--target".to_owned(), rule)));
        let known = (&snapshot, state.as_ref());
        let reporter = ImpactReporter::new(self, profiles, known, (omissions, unlisted), console);
        ImpactReporter { tally, reported: others.reported, printed: others.reported > 0, ..reporter }
            .report_texts(&texts, &source)
    }

    /// Reports the impact of objects in texts, each with its name, on a state that was already read. `missing`
    /// says what the state lacks, and what it lacks to forecast where evicted pods go.
    #[cfg(feature = "ui")]
    pub(super) fn report_texts(
        &self,
        texts: &[(String, String)],
        (snapshot, state): (&Snapshot, &State<'_>),
        profile: &'static Profile,
        missing: (Vec<String>, Vec<String>),
        console: &mut Console,
    ) -> Result<ExitCounts, Failure> {
        let reporter = ImpactReporter::new(self, vec![profile], (snapshot, Some(state)), missing, console);
        reporter.report_texts(texts, &StateSource::for_page_part())
    }

    /// Reports each limit of `--max` that an impact exceeds; `who` names the change. Returns their number.
    fn report_exceeded_limits(&self, who: &str, extent: ImpactCounts, console: &mut Console) -> usize {
        let excesses = self.max.as_ref().map_or(Vec::new(), |max| exceeded_limit_messages(max, extent));
        for excess in &excesses {
            console.error(&format!("{who}: {excess}"));
        }
        excesses.len()
    }

    /// Returns manifests of DeviceTaintRules for the devices of `--target`.
    fn rule_manifests_of_targets(
        &self,
        snapshot: &Snapshot,
        profiles: &[&'static Profile],
        console: &mut Console,
    ) -> Result<Vec<String>, Failure> {
        let mut rules = Vec::new();
        let effect = self.effect.as_deref().unwrap_or("NoExecute");
        for target in &self.target {
            for names in taint::resolve_in_state(target, snapshot, console)? {
                rules.push(taint::rule_manifest_in_common_version(&names, &self.key, effect, profiles)?);
            }
        }
        Ok(rules)
    }
}

/// Maximum number of objects for which the report states, one by one, where the evicted pods go. Of more objects
/// only the sum is forecast, because a forecast of a large cluster takes seconds.
const MAX_SEPARATE_FORECASTS: usize = 8;

/// Reports the impact of the objects in the inputs.
struct ImpactReporter<'r> {
    arguments: &'r Arguments,
    profiles: Vec<&'static Profile>,
    snapshot: &'r Snapshot,
    /// The objects of the cluster, if groups or forecasts need them.
    state: Option<&'r State<'r>>,
    /// Messages about what is missing from the state.
    omissions: Vec<String>,
    /// Messages about kinds that could not be listed, and that decide where evicted pods go.
    unlisted: Vec<String>,
    /// The sum of the impact of all objects, for each profile.
    sums: Vec<TotalImpact>,
    /// The records for the HTML page.
    drawn: Vec<HtmlPageRecord>,
    now: String,
    console: &'r mut Console,
    tally: ExitCounts,
    /// Number of assessed objects.
    reported: usize,
    /// True if a result was printed, so that the next one follows an empty line.
    printed: bool,
}

impl<'r> ImpactReporter<'r> {
    /// A reporter that has reported nothing yet.
    fn new(
        arguments: &'r Arguments,
        profiles: Vec<&'static Profile>,
        (snapshot, state): (&'r Snapshot, Option<&'r State<'r>>),
        (omissions, unlisted): (Vec<String>, Vec<String>),
        console: &'r mut Console,
    ) -> ImpactReporter<'r> {
        ImpactReporter {
            arguments,
            profiles,
            snapshot,
            state,
            omissions,
            unlisted,
            sums: Vec::new(),
            drawn: Vec::new(),
            now: arguments.clock.now(),
            console,
            tally: ExitCounts::default(),
            reported: 0,
            printed: false,
        }
    }

    /// Reports the impact of each object in these texts, which come with their file names, and then the sum of all
    /// objects.
    fn report_texts(
        mut self,
        texts: &[(String, String)],
        source: &StateSource,
    ) -> Result<ExitCounts, Failure> {
        for (file, text) in texts {
            self.report_text(file, text)?;
        }
        if self.reported == 0 {
            let names: Vec<&str> = texts.iter().map(|(name, _)| name.as_str()).collect();
            let message = format!("{}: contains no DeviceTaintRule or ResourceSlice", names.join(", "));
            return Err(Failure::Input(message));
        }
        self.report_total_impact()?;
        if self.arguments.output == ReportOutput::Html {
            let records: Vec<ReportJson<'_>> = self.drawn.iter().map(HtmlPageRecord::record).collect();
            let page = source.page_metadata(&self.omissions);
            picture::write_page(tollgate_picture::pages::impact(&records, &page), self.console)?;
        }
        Ok(self.tally)
    }

    /// Reports the objects in a text; `file` is its name.
    fn report_text(&mut self, file: &str, text: &str) -> Result<(), Failure> {
        let lines = LineIndex::from_text(text);
        for document in documents(text) {
            let document = document.map_err(|fault| fault.input_error(file, &lines))?;
            if let Some(error) = document.non_object_or_broken_list_error(file, &lines) {
                return Err(error.into());
            }
            for item in list::objects(document.doc.root()) {
                let object = item.typed_value();
                let (version, kind) = (object.get("apiVersion").str(), object.get("kind").str());
                let known = match SnapshotKind::from_type_meta(version, kind) {
                    None if ["DeviceTaintRule", "ResourceSlice"].contains(&kind) => {
                        let at = Path::ROOT.field("apiVersion").owned();
                        let location = document.locate(&lines, &item.path_in_document(at), false);
                        let message = format!("apiVersion {version:?} of {kind} is not supported");
                        return Err(Failure::at_location(file, &location, &message));
                    }
                    known => known,
                };
                let Some(kind @ (SnapshotKind::Rule | SnapshotKind::Slice)) = known else { continue };
                self.reported += 1;
                for profile in self.profiles.clone() {
                    let unreadable = |unreadable: UnreadableObject| {
                        let at = item.path_in_document(unreadable.at.clone());
                        Failure::at_location(file, &document.locate(&lines, &at, false), &unreadable)
                    };
                    self.report_object(object, kind, profile, file, &unreadable)?;
                }
            }
        }
        Ok(())
    }

    fn report_object(
        &mut self,
        object: Value<'_>,
        kind: SnapshotKind,
        profile: &'static Profile,
        file: &str,
        unreadable: &dyn Fn(UnreadableObject) -> Failure,
    ) -> Result<(), Failure> {
        let denials = denials("upstream,decoding,strict", object, profile, &self.now);
        if !denials.is_empty() {
            self.tally.denied += denials.len();
            let by = format!("{}: {}", sanitize::sanitize_as_line(file), profile.name);
            print_denials(self.console, &by, object.get("metadata").get("name").str(), &denials);
            return Ok(());
        }
        let at = gotime::parse_rfc3339(&self.now).map_err(Failure::Usage)?;
        let changed;
        let (change, snapshot) = if kind == SnapshotKind::Slice {
            let mut state = self.snapshot.clone();
            let change = ProposedChange::from_published_slice(object, &mut state, at).map_err(unreadable)?;
            changed = state;
            (change, &changed)
        } else {
            let effect = self.arguments.effect.as_deref();
            let change = ProposedChange::from_rule_manifest(object, effect, self.snapshot, profile, at);
            (change.map_err(unreadable)?, self.snapshot)
        };
        let is_complete = self.omissions.is_empty();
        let mut assessment =
            assess_impact(ImpactQuery { snapshot, change: &change, profile, at }, is_complete);
        assessment.groups =
            self.arguments.by.map(|by| ImpactGroups::from_impact(&assessment.impact, by, self.state));
        assessment.restarts =
            self.state.map(|state| restarting_pod_groups(&assessment.impact, state)).unwrap_or_default();
        let json = elsewhere::changed_object_json(object, self.arguments.effect.as_deref());
        let is_forecast = self.reported <= MAX_SEPARATE_FORECASTS;
        assessment.elsewhere =
            if is_forecast { self.forecast_evicted_pods(&[&json], profile, at) } else { None };
        let record = || json::impact_record(&assessment, &self.omissions, self.arguments.limit);
        match self.arguments.output {
            ReportOutput::Json => writeln!(self.console, "{}", super::to_safe_json(&record())?),
            ReportOutput::Html => {
                let capacity =
                    self.device_count_changes_json(&[&json], assessment.elsewhere.as_ref(), profile);
                self.drawn.push(HtmlPageRecord { json: record(), capacity });
                Ok(())
            }
            ReportOutput::Text => {
                let apart = if std::mem::replace(&mut self.printed, true) { "\n" } else { "" };
                let text = text::impact_text(&assessment, self.arguments.limit, self.omissions.is_empty());
                self.console.write_sanitized_text(&format!("{apart}{text}"))
            }
        }?;
        let name = sanitize::sanitize_as_line(change.name());
        self.tally.denied += self.arguments.report_exceeded_limits(
            &name,
            ImpactCounts::from_assessment(&assessment),
            self.console,
        );
        if !self.sums.iter().any(|sum| sum.profile.name == profile.name) {
            self.sums.push(TotalImpact::new(profile, at));
        }
        for sum in self.sums.iter_mut().filter(|sum| sum.profile.name == profile.name) {
            sum.add(&assessment, &json);
        }
        let elsewhere = assessment.elsewhere;
        if is_forecast {
            self.report_pending_over_limit(&name, elsewhere.as_ref());
        }
        Ok(())
    }

    /// Reports the impact of all objects together, if there are several.
    fn report_total_impact(&mut self) -> Result<(), Failure> {
        for sum in std::mem::take(&mut self.sums).iter().filter(|sum| sum.parts.len() > 1) {
            let elsewhere = self.forecast_evicted_pods(&sum.proposed_objects_json(), sum.profile, sum.at);
            let json = sum.total_impact_record(elsewhere.as_ref());
            match self.arguments.output {
                ReportOutput::Json => writeln!(self.console, "{}", super::to_safe_json(&json)?)?,
                ReportOutput::Html => {
                    let objects = sum.proposed_objects_json();
                    let capacity = self.device_count_changes_json(&objects, elsewhere.as_ref(), sum.profile);
                    self.drawn.push(HtmlPageRecord { json, capacity });
                }
                ReportOutput::Text => {
                    let sentence = elsewhere.as_ref().and_then(EvictedPodsForecast::outcome_sentence);
                    let sentence = sentence.map(|sentence| sentence + "\n").unwrap_or_default();
                    let text = sum.text_report(self.omissions.is_empty());
                    let again = sum.evicted_again_text();
                    self.console.write_sanitized_text(&format!("\n{text}{sentence}{again}"))?;
                }
            }
            let who = format!("the sum of {}", sum.change_count_text());
            self.report_pending_over_limit(&who, elsewhere.as_ref());
            self.tally.denied +=
                self.arguments.report_exceeded_limits(&who, sum.total_counts(), self.console);
        }
        Ok(())
    }
}

/// Returns which other pods of LeaderWorkerSets, JobSets and PodGroups restart because these groups lose pods.
fn restarting_pod_groups<'a>(impact: &Impact<'_>, state: &State<'a>) -> Vec<AffectedGroup<'a>> {
    let evicted = impact.pods.iter().filter(|pod| pod.outcome.is_evicted());
    let evicted: BTreeSet<(&str, &str)> = evicted.map(|pod| (pod.namespace, pod.name)).collect();
    effects_of_lost_pods(state, &|namespace, name| evicted.contains(&(namespace, name)))
}

/// Computes the impact of a change. `is_complete` is false if parts of the state are missing.
fn assess_impact(query: ImpactQuery<'_>, is_complete: bool) -> Assessment<'_> {
    let mut impact = impact::assess(query);
    if !is_complete {
        // A slice that was not read may list them.
        impact.unlisted = 0;
    }
    let budgets = impact::violated_budgets(query.snapshot, &impact);
    let differences = impact::impact_notes(query, &impact);
    let (no_effect, depends_on) = match query.change {
        ProposedChange::Rule(_) => {
            (query.profile.why_device_taint_rules_do_nothing(), query.profile.describe_gates_rules_may_lack())
        }
        ProposedChange::Slice(_) => {
            (query.profile.why_taints_do_nothing(), query.profile.describe_gates_taints_may_lack())
        }
    };
    Assessment {
        query,
        impact,
        budgets,
        differences,
        no_effect,
        depends_on,
        groups: None,
        restarts: Vec::new(),
        elsewhere: None,
    }
}

/// Returns when a pod is evicted, for the table: `now`, a time, or `-` if it is not evicted.
fn eviction_time(outcome: impact::PodOutcome) -> String {
    match outcome {
        impact::PodOutcome::EvictedNow => "now".to_owned(),
        impact::PodOutcome::EvictedAt(time) => format_time(time),
        impact::PodOutcome::Tolerated | impact::PodOutcome::Unaffected => "-".to_owned(),
    }
}
