//! `tollgate forecast [FILE…]`: what happens to pods if these objects are applied now.
//!
//! Reads the objects and the state of a cluster, simulates the scheduler and the controllers with `tollgate_forecast`,
//! and prints where pods go. An object that the API server would reject is left out. If the state is incomplete, every
//! outcome is unknown.

mod given;
mod json;
mod limits;
mod play;
pub(super) mod stored;
mod text;

use std::io::Write as _;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::builder::TypedValueParser;

use super::capacity;
use super::clock;
use super::console::Console;
use super::impact::GroupBy;
use super::limit_list::LimitList;
use super::outcome::{ExitCounts, Failure};
use super::picture::{self, HtmlPageRecord, StateSource};
use super::shared::{ExitZeroArgs, ReleaseArgs, ReportOutput, StateArgs};
use super::state::{
    self, DumpInventory, DumpOmissions, OmissionMessageSuffixes, StateObjects, format_missing_kinds,
};
use crate::files::{self, DEFAULT_MAX_FILE_BYTES};
use given::{AdmissionResult, GivenDocuments};
pub(super) use json::totals_record;
pub(super) use limits::check_pending_pod_limit_in_worst_run;
pub(super) use play::simulate_samples;
#[cfg(feature = "ui")]
pub(super) use play::{StopFn, run_until_stopped};
pub(super) use text::summary_of_evicted;
use tollgate_api::profile::Profile;
use tollgate_document::doc::{self, Doc, Value};
use tollgate_document::source::list::DocumentObject;
use tollgate_forecast::{
    ClusterChange, Forecast, ObjectKind, Plan, PodOutcome, PodOutcomeCounts, Settings, SimulatedRelease,
    State,
};
use tollgate_formats::gotime;
use tollgate_picture::pages::ReportJson;

/// Show where pods go if objects are applied: evicted pods, new pods and pods that wait
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// Files or folders with the objects to apply, in this order; `-` for stdin (default: no objects, so that only the
    /// pods that already wait are forecast)
    #[arg(value_name = "FILE")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    state: StateArgs,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: ReportOutput,

    #[command(flatten)]
    clock: clock::ClockArgs,

    /// Exit 1 if the forecast exceeds any of these limits, such as pending=0,unknown=0
    #[arg(long, value_name = "LIMITS", value_parser = limits::parse)]
    max: Option<LimitList>,

    #[command(flatten)]
    courses: SimulationArgs,

    /// Group the pods in the text output
    #[arg(long, value_name = "WHAT")]
    by: Option<GroupBy>,

    /// Maximum number of pods to list in the text output; 0 lists all
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    limit: usize,

    #[command(flatten)]
    release: ReleaseArgs,

    #[command(flatten)]
    exit: ExitZeroArgs,
}

/// Flags `--samples` and `--seed`: how many courses (simulated runs of the scheduler) are played, and with which
/// random choices.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct SimulationArgs {
    /// Number of courses to play, 1 to 4096; in each, the scheduler breaks ties between nodes in another way
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_SAMPLES, value_parser = samples_parser())]
    pub(super) samples: NonZeroU32,

    /// Seed for the choice among nodes; the same seed and input give the same output
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    #[arg(hide_short_help = true)]
    pub(super) seed: u64,
}

impl SimulationArgs {
    /// Returns the settings of a forecast that starts at `now`. Only pages show the devices after it.
    pub(super) fn settings_for_report(
        &self,
        now: gotime::Timestamp,
        assume_complete: bool,
        output: ReportOutput,
    ) -> Settings {
        let counts_devices = output == ReportOutput::Html;
        Settings { seed: self.seed, assume_complete, counts_devices, ..Settings::defaults_at(now) }
    }
}

/// Number of simulated courses if `--samples` is not given.
const DEFAULT_SAMPLES: NonZeroU32 = NonZeroU32::MIN.saturating_add(63);

/// Maximum value of `--samples`, the number of simulated courses. More courses do not change the shares noticeably.
const MAX_SAMPLES: i64 = 4096;

fn samples_parser() -> impl TypedValueParser<Value = NonZeroU32> {
    clap::value_parser!(u32).range(1..=MAX_SAMPLES).try_map(NonZeroU32::try_from)
}

const AFTER_HELP: &str = "\
To create a dump, run `tollgate snapshot`.

Exit codes:
  0  the forecast was printed
  1  the forecast exceeds --max, or the API server would reject an object
  2  usage error
  3  some input could not be read, some objects could not be listed, or the dump is incomplete
  4  internal error
If several codes apply, 4 takes precedence over 1, and 1 over 3.";

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        Ok(self.exit.apply_exit_zero(self.forecast_inputs(console)?))
    }

    fn forecast_inputs(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        self.state.refuse_shared_stdin(&self.paths, "FILE")?;
        let given = files::read_all_or_fail(&self.paths, DEFAULT_MAX_FILE_BYTES)?;
        let given = GivenDocuments::parse(&given)?;
        let given = given.objects();
        #[cfg(feature = "cluster")]
        if self.state.paths.is_empty() {
            return self.forecast_cluster(&given, console);
        }
        let texts = state::read_texts(&self.state.paths)?;
        let objects = StateObjects::parse(&texts)?;
        let profiles = self.release.dump_profiles(&objects.inventory, console)?;
        let mut tally = ExitCounts::default();
        let (inventory, is_limited) = (&objects.inventory, self.max.is_some());
        let missing =
            report_omissions(inventory, self.state.assume_complete, is_limited, &mut tally, console);
        let source = StateSource::from_dump(&self.state.paths, &objects.inventory);
        let known = (&objects.state(), &source);
        self.print_forecasts_and_check_limits(known, &profiles, &missing, &given, tally, console)
    }

    /// Reads the running cluster and reports the forecast for it.
    #[cfg(feature = "cluster")]
    fn forecast_cluster(
        &self,
        given: &[(&str, DocumentObject<'_>)],
        console: &mut Console,
    ) -> Result<ExitCounts, Failure> {
        let asked = self.release.live_server()?;
        let profiles = self.release.live_profiles()?;
        let (objects, failures) = super::live::read_forecast_objects(asked, false, console);
        let tally = ExitCounts { unreadable: failures.len(), ..ExitCounts::default() };
        let known = (&objects.state(), &StateSource::from_cluster(asked));
        self.print_forecasts_and_check_limits(known, &profiles, &failures, given, tally, console)
    }

    /// Reports the forecast for changes in texts, each with its name, on a state that was already read.
    #[cfg(feature = "ui")]
    pub(super) fn forecast_texts(
        &self,
        texts: &[(String, String)],
        state: &State<'_>,
        profile: &'static Profile,
        missing: &[String],
        console: &mut Console,
    ) -> Result<ExitCounts, Failure> {
        let given = GivenDocuments::parse(texts)?;
        let known = (state, &StateSource::for_page_part());
        self.print_forecasts_and_check_limits(
            known,
            &[profile],
            missing,
            &given.objects(),
            ExitCounts::default(),
            console,
        )
    }

    /// Makes and prints the forecast for a state, once for each profile, and checks `--max`.
    fn print_forecasts_and_check_limits(
        &self,
        (state, source): (&State<'_>, &StateSource),
        profiles: &[&'static Profile],
        missing: &[String],
        given: &[(&str, DocumentObject<'_>)],
        mut tally: ExitCounts,
        console: &mut Console,
    ) -> Result<ExitCounts, Failure> {
        let mut drawn = Vec::new();
        for (index, profile) in profiles.iter().enumerate() {
            let report = self.forecast_for_profile(state, profile, missing, given)?;
            let admission = &report.admission;
            tally.denied += admission.refused.len();
            if index == 0 {
                admission.notes.iter().for_each(|note| console.note(note));
            }
            profile.why_allocation_may_differ().iter().for_each(|note| console.note(note));
            admission.print_refused(profile, console);
            if missing.is_empty()
                && let Some(what) = format_missing_kinds(&report.forecast.missing)
            {
                self.report_missing_kinds(&what, &mut tally, console);
            }
            match self.output {
                ReportOutput::Json => {
                    writeln!(console, "{}", super::to_safe_json(&json::forecast_record(&report))?)?;
                }
                ReportOutput::Html => drawn.push(report.html_page_record(state)),
                ReportOutput::Text => {
                    let apart = if index > 0 { "\n" } else { "" };
                    let text = text::forecast_text(&report, self.limit, self.by);
                    console.write_sanitized_text(&format!("{apart}{text}"))?;
                }
            }
            if let Some(max) = &self.max {
                let checked = limits::check_limits(max, &report.forecast);
                tally.denied += checked.excesses.len();
                tally.unreadable += checked.undecided.len();
                checked.excesses.iter().chain(&checked.undecided).for_each(|message| console.error(message));
            }
        }
        if self.output == ReportOutput::Html {
            let records: Vec<ReportJson<'_>> = drawn.iter().map(HtmlPageRecord::record).collect();
            picture::write_page(
                tollgate_picture::pages::forecast(&records, &source.page_metadata(missing)),
                console,
            )?;
        }
        Ok(tally)
    }

    /// Prints a message about kinds that some pods need and the dump lacks: an error with `--max`, else a note.
    fn report_missing_kinds(&self, what: &str, tally: &mut ExitCounts, console: &mut Console) {
        if self.max.is_some() {
            tally.unreadable += 1;
            console.error(&format!("cannot check --max: {what}{COMPLETE_HINT}"));
        } else {
            console.note(&format!("{what}, so the outcome of pods that need them is unknown{COMPLETE_HINT}"));
        }
    }

    /// Simulates the given changes with the scheduler of one profile.
    fn forecast_for_profile(
        &self,
        state: &State<'_>,
        profile: &'static Profile,
        missing: &[String],
        given: &[(&str, DocumentObject<'_>)],
    ) -> Result<ForecastReport, Failure> {
        let now = self.clock.now();
        let at = gotime::parse_rfc3339(&now).map_err(Failure::Usage)?;
        let given: Vec<_> = given.iter().map(|(file, item)| (*file, item.typed_value())).collect();
        let admission = AdmissionResult::from_objects(&given, state, profile, &now);
        // What a running cluster lists is complete.
        let assume_complete = self.state.assume_complete || self.state.paths.is_empty();
        let settings = self.courses.settings_for_report(at, assume_complete, self.output);
        let forecast = simulate_admitted(&admission, state, profile, settings, self.courses.samples, missing);
        Ok(ForecastReport { profile, at, forecast, admission })
    }
}

/// Returns the forecast for changes (objects as JSON) with the default number of courses. Leaves out objects that
/// the API server refuses.
pub(super) fn forecast_changes(
    changes: &[&str],
    state: &State<'_>,
    profile: &'static Profile,
    settings: Settings,
    missing: &[String],
) -> Forecast {
    let docs: Vec<Doc<'_>> = changes.iter().filter_map(|json| doc::parse(json).ok()).collect();
    let given: Vec<(&str, Value<'_>)> = docs.iter().map(|doc| ("", doc.root())).collect();
    let admission = AdmissionResult::from_objects(&given, state, profile, &gotime::rfc3339(settings.now));
    let settings = Settings { assume_complete: true, ..settings };
    simulate_admitted(&admission, state, profile, settings, DEFAULT_SAMPLES, missing)
}

/// Simulates the cluster with the objects that the API server would admit. `missing` names the kinds of objects
/// that the state lacks.
fn simulate_admitted(
    admission: &AdmissionResult,
    state: &State<'_>,
    profile: &'static Profile,
    settings: Settings,
    samples: NonZeroU32,
    missing: &[String],
) -> Forecast {
    let docs = admission.parse_accepted_objects();
    let steps = docs.iter().map(|doc| ClusterChange::Apply(doc.root())).collect();
    let plan = Plan::new(state.clone(), steps, scheduler_release(profile), settings);
    let mut forecast = simulate_samples(&plan, samples);
    admission.clear_made_up_pod_names(&mut forecast);
    mark_all_unknown_if_state_incomplete(&mut forecast, missing);
    forecast
}

/// Returns how the scheduler of a profile's release allocates devices.
pub(super) fn scheduler_release(profile: &'static Profile) -> SimulatedRelease {
    SimulatedRelease { profile, semantics: profile.allocation, behaviour: profile.selectors }
}

/// Kinds without which a forecast is not possible. A cluster may have no objects of the other kinds.
pub(super) const NEEDED_KINDS: [ObjectKind; 2] = [ObjectKind::Node, ObjectKind::DeviceClass];

/// Middle of a message about a state that lacks something.
pub(super) const UNKNOWN_OUTCOMES: &str = ", so every outcome is unknown";

/// End of a message about a kind of workloads that could not be read.
const UNKNOWN_WORKLOADS: &str = ", so the outcome of pods that may belong to such objects is unknown";

/// End of a message about a dump that lacks a kind: how to make a complete one.
const COMPLETE_HINT: &str = "; create a dump with `tollgate snapshot`, or, if the cluster contains no such objects, add --assume-complete";

/// Reports what a dump lacks, and returns the messages: nodes and classes, without which no outcome is known, and
/// parts that were cut off. With `--max` (`is_limited`) they are errors.
pub(super) fn report_omissions(
    inventory: &DumpInventory,
    assume_complete: bool,
    is_limited: bool,
    tally: &mut ExitCounts,
    console: &mut Console,
) -> Vec<String> {
    let kinds = inventory.missing_object_kinds_message(&NEEDED_KINDS).filter(|_| !assume_complete);
    for (_, message) in &inventory.unread_workload_kinds {
        console.note(&format!("{message}{UNKNOWN_WORKLOADS}"));
    }
    let omissions = DumpOmissions { parts: inventory.incomplete_parts(), kinds };
    let note = format!("{UNKNOWN_OUTCOMES}{COMPLETE_HINT}");
    omissions.print_as_note_or_error_and_collect(
        is_limited,
        OmissionMessageSuffixes { note: &note, hint: COMPLETE_HINT },
        tally,
        console,
    )
}

/// A forecast, with the objects, release and time that it was made for.
struct ForecastReport {
    profile: &'static Profile,
    at: gotime::Timestamp,
    forecast: Forecast,
    admission: AdmissionResult,
}

impl ForecastReport {
    /// Returns the report for the HTML page, with the device counts of each class before and after.
    fn html_page_record(&self, state: &State<'_>) -> HtmlPageRecord {
        let docs = self.admission.parse_accepted_objects();
        let capacity =
            capacity::device_count_changes_json(state, &docs, &self.forecast.devices, self.profile);
        HtmlPageRecord { json: json::forecast_record(self), capacity }
    }
}

/// Makes every outcome, and the devices afterwards, unknown if parts of the state are missing, because they may hold
/// the devices that a pod gets.
fn mark_all_unknown_if_state_incomplete(forecast: &mut Forecast, missing: &[String]) {
    if missing.is_empty() {
        return;
    }
    for pod in &mut forecast.pods {
        // Without an explanation, nobody recreates the pod; with one, the simulation decided it.
        if pod.outcome == PodOutcome::NotRecreated && pod.explanation.is_none() {
            continue;
        }
        pod.outcome = PodOutcome::Unknown;
        pod.not_modelled = missing.to_vec();
        (pod.reason, pod.message, pod.explanation) = (None, None, None);
    }
    forecast.most_pending = 0;
    forecast.devices.clear();
    forecast.totals = PodOutcomeCounts::count_outcomes(&forecast.pods);
}
