//! `tollgate drain TARGET…` and `tollgate undrain TARGET…`: the flags, the plan of a dry run, and the start of a run.
//!
//! A plan is made from a dump or from the running cluster, and printed. Everything that changes a cluster is in
//! `online`.
//!
//! Invariant: with `--state` or `--dry-run` nothing is sent but reads. Without them nothing starts unless a person said
//! yes on a terminal, or `--yes` came with the name of the cluster.

#[cfg(feature = "cluster")]
mod online;
mod plan_json;
mod plan_text;

use std::io::Write as _;
use std::path::PathBuf;

use super::capacity;
use super::clock;
use super::console::Console;
use super::devices::require_one_profile;
use super::forecast::{SimulationArgs, report_omissions, scheduler_release, simulate_samples};
#[cfg(feature = "cluster")]
use super::given::GivenFlags;
use super::outcome::{ExitCounts, Failure};
use super::picture::{self, HtmlPageRecord, StateSource};
use super::shared::{ReleaseArgs, ReportOutput};
use super::state::{self, StateObjects};
#[cfg(feature = "cluster")]
use online::settings::RunArgs;
#[cfg(feature = "cluster")]
pub(super) use online::start::Undrain;
use plan_json::plan_record;
use tollgate_api::profile::Profile;
use tollgate_drain::{DEFAULT_KEY, DrainPlan, DrainRequest, MoveOptions, PlanInput, PodDecision};
use tollgate_engine::impact::target::DeviceTarget;
use tollgate_forecast::State;
use tollgate_formats::{gotime, names};
#[cfg(not(feature = "cluster"))]
use tollgate_picture::pages::DrainCommands;

/// Move pods off devices: close the devices for new pods, and evict pods in waves as PDBs and free devices allow
///
/// Prints the plan, asks for confirmation, then creates DeviceTaintRules with the effect NoSchedule and evicts pods
/// with the Eviction API. To continue a drain that stopped, run the same command again. To open the devices again, run
/// `tollgate undrain`.
#[derive(Debug, clap::Args)]
#[command(after_help = SHORT_AFTER_HELP, after_long_help = AFTER_HELP)]
pub(super) struct Drain {
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    given: GivenFlags,

    #[command(flatten)]
    targets: TargetArgs,

    /// Print the plan and change nothing
    #[arg(long)]
    dry_run: bool,

    /// File or folder with the cluster state, or `-` for stdin; can be repeated. Prints the plan and changes nothing
    #[arg(long, value_name = "DUMP", env = "TOLLGATE_STATE")]
    state: Vec<PathBuf>,

    #[cfg(feature = "cluster")]
    #[command(flatten)]
    run: RunArgs,

    /// Output format; in JSON, each event is one line; `html` requires --dry-run or --state
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: ReportOutput,

    #[command(flatten)]
    moves: PodMoveArgs,

    #[command(flatten)]
    clock: clock::ClockArgs,

    #[command(flatten)]
    courses: SimulationArgs,

    /// Treat the dump as complete: if it contains no objects of a kind, assume that the cluster has none
    #[arg(long)]
    #[arg(hide_short_help = true)]
    assume_complete: bool,

    #[command(flatten)]
    release: ReleaseArgs,
}

/// Arguments of `drain` and `undrain`: the devices, and the key of the taint.
#[derive(Debug, clap::Args)]
struct TargetArgs {
    /// Devices, as DRIVER[/POOL[/DEVICE]], or node/NAME for the devices that only this node can use
    #[arg(value_name = "TARGET", required = true, value_parser = TargetWithText::parse_unless_all_devices)]
    targets: Vec<TargetWithText>,

    /// Key of the taint
    #[arg(long, value_name = "KEY", default_value = DEFAULT_KEY, value_parser = parse_taint_key)]
    key: String,
}

/// Flags that select which pods a drain moves, and how many at a time.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
struct PodMoveArgs {
    /// Also move pods whose replacements fit only sometimes or have an unknown outcome, one at a time
    #[arg(long, help_heading = "Pods")]
    move_unknown: bool,

    /// Also move pods without a controller, which nothing recreates
    #[arg(long, help_heading = "Pods")]
    force: bool,

    /// Also move pods with emptyDir volumes, whose data is deleted
    #[arg(long, help_heading = "Pods")]
    delete_emptydir_data: bool,

    /// Also move pods of DaemonSets, whose replacements stay Pending if their node has no other free device for them
    #[arg(long, help_heading = "Pods", hide_short_help = true)]
    evict_daemonset_pods: bool,

    /// Also move pods with annotations that ask not to be disrupted
    #[arg(long, help_heading = "Pods", hide_short_help = true)]
    ignore_do_not_disrupt: bool,

    /// Maximum number of pods in a wave; a group that moves as one unit can have more
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = parse_max_wave_size, help_heading = "Pods")]
    max_wave: usize,
}

/// The exit codes in one line, for `-h`; `--help` prints [`AFTER_HELP`].
const SHORT_AFTER_HELP: &str = "\
Exit codes: 0 devices are free, 1 claims hold devices or it stopped, 2 usage error, 3 refused";

const AFTER_HELP: &str = "\
A drain that stops leaves the rules as they are, prints the reason, and prints the commands to continue and to undo it.

Exit codes:
  0  no claim holds the devices; with --dry-run or --state: every pod can move
  1  claims still hold devices, or the drain stopped; with --dry-run or --state: not every pod can move
  2  usage error, or the drain was not confirmed
  3  some input could not be read, or a check before the start found a problem; nothing was evicted
  4  internal error
If several codes apply, 4 takes precedence over 1, and 1 over 3.";

/// A target of a drain, with the text that the user typed for it.
#[derive(Clone, Debug)]
struct TargetWithText {
    typed: String,
    target: DeviceTarget,
}

/// A drain plan, with the request, release and time that it was made for.
#[derive(Debug)]
struct PlanReport {
    profile: &'static Profile,
    at: gotime::Timestamp,
    samples: u32,
    request: DrainRequest,
    plan: DrainPlan,
    /// Messages about objects that the dump lacks or that could not be listed in the cluster.
    incomplete: Vec<String>,
}

impl TargetWithText {
    fn parse_unless_all_devices(text: &str) -> Result<TargetWithText, String> {
        match DeviceTarget::parse(text)? {
            DeviceTarget::Devices(names) if names.selects_everything() => {
                Err("this selects all devices of all drivers; specify a driver".to_owned())
            }
            target => Ok(TargetWithText { typed: text.to_owned(), target }),
        }
    }
}

/// Parses the value of `--key`.
fn parse_taint_key(text: &str) -> Result<String, String> {
    if names::is_label_key(text) {
        return Ok(text.to_owned());
    }
    Err(format!("expected a name with an optional domain, such as {DEFAULT_KEY}"))
}

/// Parses the value of `--max-wave`.
fn parse_max_wave_size(text: &str) -> Result<usize, String> {
    match text.parse() {
        // The wave is written on a rule, and annotations are limited.
        Ok(0 | 101..) => Err("expected a number from 1 to 100".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(format!("{error}; expected a number such as 10")),
    }
}

impl TargetArgs {
    fn request(&self, options: MoveOptions) -> DrainRequest {
        DrainRequest {
            typed: self.targets.iter().map(|target| target.typed.clone()).collect(),
            targets: self.targets.iter().map(|target| target.target.clone()).collect(),
            key: self.key.clone(),
            options,
        }
    }
}

impl PodMoveArgs {
    fn options(&self) -> MoveOptions {
        MoveOptions {
            move_unknown: self.move_unknown,
            without_controller: self.force,
            delete_empty_dir_data: self.delete_emptydir_data,
            daemon_set_pods: self.evict_daemonset_pods,
            ignore_do_not_disrupt: self.ignore_do_not_disrupt,
            max_wave: self.max_wave,
        }
    }
}

impl Drain {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        #[cfg(feature = "cluster")]
        self.run.expires(&self.clock.now())?;
        #[cfg(feature = "cluster")]
        if self.state.is_empty() {
            return self.run_live(console);
        }
        let texts = state::read_texts(&self.state)?;
        let objects = StateObjects::parse(&texts)?;
        let profile = require_one_profile(&self.release.dump_profiles(&objects.inventory, console)?)?;
        let mut tally = ExitCounts::default();
        let incomplete =
            report_omissions(&objects.inventory, self.assume_complete, false, &mut tally, console);
        let source = StateSource::from_dump(&self.state, &objects.inventory);
        self.print_plan((&objects.state(), &source), profile, &incomplete, tally, console)
    }

    fn request(&self) -> DrainRequest {
        self.targets.request(self.moves.options())
    }

    /// Makes the plan and prints it. Adds the pods that stay, and the claims without pods, to the denied objects
    /// of `tally`, which make the exit code 1.
    pub(super) fn print_plan(
        &self,
        (state, source): (&State<'_>, &StateSource),
        profile: &'static Profile,
        incomplete: &[String],
        mut tally: ExitCounts,
        console: &mut Console,
    ) -> Result<ExitCounts, Failure> {
        let at = gotime::parse_rfc3339(&self.clock.now()).map_err(Failure::Usage)?;
        // What a running cluster lists is complete.
        let assume_complete = self.assume_complete || self.state.is_empty();
        let settings = self.courses.settings_for_report(at, assume_complete, self.output);
        let (request, samples) = (self.request(), self.courses.samples);
        let plan = tollgate_drain::plan(&PlanInput {
            state,
            request: &request,
            release: scheduler_release(profile),
            settings,
            play: &|plan| simulate_samples(plan, samples),
            missing: incomplete,
            closed: &[],
            is_first_wave: true,
        });
        // A target that is not found in a part of the state may be in the rest.
        let plan = plan
            .map_err(|why| if incomplete.is_empty() { Failure::Usage(why) } else { Failure::Input(why) })?;
        let (samples, incomplete_parts) = (samples.get(), incomplete.to_vec());
        let report = PlanReport { profile, at, samples, request, plan, incomplete: incomplete_parts };
        match self.output {
            ReportOutput::Json => writeln!(console, "{}", super::to_safe_json(&plan_record(&report))?)?,
            ReportOutput::Text => console.write_sanitized_text(&plan_text::plan_text(&report))?,
            ReportOutput::Html => {
                let PlanReport { request, plan, .. } = &report;
                let capacity = capacity::drain_device_count_changes_json(state, plan, &request.key, profile);
                let drawn = HtmlPageRecord { json: plan_record(&report), capacity };
                #[cfg(feature = "cluster")]
                let commands =
                    if source.is_part { None } else { Some(self.page_commands(&report.request.typed)?) };
                #[cfg(not(feature = "cluster"))]
                let commands: Option<DrainCommands> = None;
                let page = source.page_metadata(incomplete);
                let page = tollgate_picture::pages::drain(&drawn.record(), commands.as_ref(), &page);
                picture::write_page(page, console)?;
            }
        }
        let stays = |pod: &&tollgate_drain::PlannedPod| matches!(pod.fate, PodDecision::Stays { .. });
        tally.denied += report.plan.pods.iter().filter(stays).count();
        tally.denied += report.plan.claims_without_pods.len();
        Ok(tally)
    }
}
