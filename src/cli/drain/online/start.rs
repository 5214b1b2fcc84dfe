//! The start of a run that acts, from the flags to the exit code: `tollgate drain` in a running cluster, and
//! `tollgate undrain`.

use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use super::commands::{
    FLAGS_NOT_REPEATED, cluster_name_for_messages, continue_and_undo_commands, flags_to_paste,
    plan_page_commands, require_context_with_yes, require_yes_or_terminal, same_cluster_flags,
};
use super::live_server::{LiveServer, Recorder};
use super::lock::LockSettings;
use super::reporter::{ContinueAndUndoCommands, Reporter};
use super::run::{Ending, drain};
use super::settings::{
    DEFAULT_LOCK_NAMESPACE, ReplacementWaitCondition, RuleAnnotations, RunSettings,
    problems_of_kubernetes_release,
};
use super::undrain::{check_devices_free, undrain};
use crate::cli::clock;
use crate::cli::console::Console;
use crate::cli::devices::require_one_profile;
use crate::cli::drain::{Drain, TargetArgs};
use crate::cli::forecast::scheduler_release;
use crate::cli::given::GivenFlags;
use crate::cli::live::{ConnectedServer, FORECAST_KINDS, read_forecast_objects};
use crate::cli::outcome::{ExitCounts, Failure};
use crate::cli::picture::StateSource;
use crate::cli::shared::{ReleaseArgs, ReportOutput};
use crate::cli::snapshot::WORKLOAD_KINDS;
use crate::cli::taint::common_rule_version;
use crate::cli::version::Output;
use crate::cluster::{DEVICE_TAINT_RULES, ListedKind};
use crate::files;
use tollgate_api::profile::Profile;
use tollgate_drain::MoveOptions;
use tollgate_picture::SafeText;
use tollgate_picture::pages::DrainCommands;

/// Delete the DeviceTaintRules of a drain, so that new pods can use the devices again
///
/// Finds the rules by their label and annotations, even if the devices no longer exist. Other rules are not deleted.
#[derive(Debug, clap::Args)]
#[command(after_help = UNDRAIN_AFTER_HELP)]
pub(in crate::cli) struct Undrain {
    #[command(flatten)]
    given: GivenFlags,

    #[command(flatten)]
    targets: TargetArgs,

    /// Print the rules that would be deleted, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Do not ask for confirmation; requires --context, except in a pod
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,

    /// Namespace of the Lease that prevents two drains at the same time
    #[arg(long, value_name = "NAMESPACE", default_value = DEFAULT_LOCK_NAMESPACE)]
    lock_namespace: String,

    /// Output format; in JSON, each event is one line
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,

    #[command(flatten)]
    release: ReleaseArgs,
}

const UNDRAIN_AFTER_HELP: &str = "\
Exit codes:
  0  no rule of this drain is left; with --dry-run: the rules were listed
  1  a rule could not be deleted
  2  usage error, or the command was not confirmed
  3  the cluster could not be read, or there is no such drain
  4  internal error";

impl Drain {
    /// Returns the commands that carry out and undo the plan, for its page.
    pub(in crate::cli::drain) fn page_commands(&self, targets: &[String]) -> Result<DrainCommands, Failure> {
        let is_for_dump = !self.state.is_empty();
        let context =
            if is_for_dump { None } else { self.release.live_server()?.endpoint().context.as_deref() };
        let ContinueAndUndoCommands { go_on, go_back } =
            plan_page_commands(targets, &self.given, context, is_for_dump);
        Ok(DrainCommands { run: SafeText::from(go_on), undo: SafeText::from(go_back), is_for_dump })
    }

    /// Prints the plan (`--dry-run`), checks whether the devices are free (`--check`), or drains in the running
    /// cluster.
    pub(in crate::cli::drain) fn run_live(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        if self.output == ReportOutput::Html && !self.dry_run {
            return Err(Failure::Usage("-o html requires --dry-run or --state".to_owned()));
        }
        let acts = !self.dry_run && !self.run.check;
        if acts {
            require_yes_or_terminal(self.run.yes)?;
        }
        if !self.dry_run && self.clock.is_now_given() {
            return Err(Failure::Usage("--now requires --dry-run or --state".to_owned()));
        }
        let asked = self.release.live_server()?;
        if acts {
            require_context_with_yes(self.run.yes, &self.release, asked)?;
        }
        let profile = require_one_profile(&self.release.live_profiles()?)?;
        if !self.dry_run {
            let settings = self.run_settings(asked, profile)?;
            let (next, cluster) = (settings.next.clone(), cluster_name_for_messages(asked));
            let output = if self.output == ReportOutput::Json { Output::Json } else { Output::Text };
            let reporter = Reporter::new(output, next, cluster, self.run.yes);
            let kinds = (&FORECAST_KINDS[..], &WORKLOAD_KINDS[..]);
            let record = self.run.record.as_deref();
            return connect_and_run(asked, kinds, record, reporter, |server, reporter| {
                let run = if self.run.check { check_devices_free } else { drain };
                run(server, &settings, reporter)
            });
        }
        let (objects, incomplete) = read_forecast_objects(asked, true, console);
        for problem in problems_of_kubernetes_release(asked) {
            console.warning(&problem);
        }
        let tally = ExitCounts { unreadable: incomplete.len(), ..ExitCounts::default() };
        let source = StateSource::from_cluster(asked);
        self.print_plan((&objects.state(), &source), profile, &incomplete, tally, console)
    }

    fn run_settings(
        &self,
        asked: &ConnectedServer,
        profile: &'static Profile,
    ) -> Result<RunSettings, Failure> {
        let request = self.request();
        let next =
            continue_and_undo_commands(&request.typed, &self.given, asked.endpoint().context.as_deref());
        let notes = RuleAnnotations {
            flags: flags_to_paste(&self.given, &FLAGS_NOT_REPEATED),
            reason: self.run.reason.clone(),
            owner: self.run.owner.clone(),
            expires: self.run.expires(&clock::now_rfc3339())?,
        };
        let lock_namespace = (!self.run.no_lock).then(|| self.run.lock_namespace.clone());
        Ok(RunSettings {
            request,
            release: scheduler_release(profile),
            rule_version: common_rule_version(&[profile])?,
            samples: self.courses.samples,
            seed: self.courses.seed,
            wait: self.run.wait,
            timeout: self.run.timeout,
            force_after: self.run.force_after,
            lock: lock_namespace.map(|namespace| {
                lock_settings_with_holder_identity(asked, namespace, notes.owner.as_deref())
            }),
            notes,
            ignore_preflight_errors: self.run.ignore_preflight_errors,
            kubernetes_release_problems: problems_of_kubernetes_release(asked),
            next,
            cluster_flags: same_cluster_flags(&self.given, asked.endpoint().context.as_deref()),
        })
    }
}

impl Undrain {
    pub(in crate::cli) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        if !self.dry_run {
            require_yes_or_terminal(self.yes)?;
        }
        let asked = self.release.live_server()?;
        if !self.dry_run {
            require_context_with_yes(self.yes, &self.release, asked)?;
        }
        let profile = require_one_profile(&self.release.live_profiles()?)?;
        let typed: Vec<String> = self.targets.targets.iter().map(|target| target.typed.clone()).collect();
        let next = continue_and_undo_commands(&typed, &self.given, asked.endpoint().context.as_deref());
        let question = format!(
            "Delete the rules of the drain of {} in {}?",
            typed.join(" "),
            cluster_name_for_messages(asked)
        );
        if !self.dry_run && !self.yes && !console.confirm(&question) {
            return Err(Failure::Usage("not confirmed; nothing was changed".to_owned()));
        }
        let settings = RunSettings {
            request: self.targets.request(MoveOptions::default()),
            release: scheduler_release(profile),
            rule_version: common_rule_version(&[profile])?,
            samples: NonZeroU32::MIN,
            seed: 0,
            wait: ReplacementWaitCondition::Ready,
            timeout: Duration::ZERO,
            force_after: None,
            lock: Some(lock_settings_with_holder_identity(asked, self.lock_namespace.clone(), None)),
            notes: RuleAnnotations::default(),
            ignore_preflight_errors: false,
            kubernetes_release_problems: Vec::new(),
            next: next.clone(),
            cluster_flags: same_cluster_flags(&self.given, asked.endpoint().context.as_deref()),
        };
        let reporter = Reporter::new(self.output, next, cluster_name_for_messages(asked), self.yes);
        connect_and_run(asked, (&[DEVICE_TAINT_RULES], &[]), None, reporter, |server, reporter| {
            undrain(server, &settings, reporter, self.dry_run)
        })
    }
}

/// Watches objects of the needed and wanted kinds, runs `work` on that cluster, and turns its ending into counts for
/// the exit code. `record` is the file of `--record`.
fn connect_and_run(
    asked: &ConnectedServer,
    (needed, wanted): (&[ListedKind], &[ListedKind]),
    record: Option<&Path>,
    mut reporter: Reporter,
    work: impl FnOnce(&mut LiveServer, &mut Reporter) -> Ending,
) -> Result<ExitCounts, Failure> {
    let recorder = record.map(open_recording).transpose()?;
    let (mut server, notes) = LiveServer::connect(&asked.cluster, needed, wanted, recorder)?;
    for note in &notes {
        reporter.note(note);
    }
    let ending = work(&mut server, &mut reporter);
    reporter.hide_summary();
    exit_counts(ending)
}

fn open_recording(path: &Path) -> Result<Recorder, Failure> {
    let file = File::create(path).map_err(|error| {
        Failure::Input(format!("cannot write {}: {}", path.display(), files::io_reason(&error)))
    })?;
    Ok(Recorder::new(Box::new(file)))
}

/// Returns the namespace of the Lease and the identity of this process for people: `ann (context prod, process
/// 4711-1f2e3d4c)`. The last number distinguishes processes of one person on two machines.
fn lock_settings_with_holder_identity(
    asked: &ConnectedServer,
    namespace: String,
    owner: Option<&str>,
) -> LockSettings {
    let user = || ["USER", "LOGNAME", "USERNAME"].iter().find_map(std::env::var_os)?.into_string().ok();
    let who = owner.map(ToOwned::to_owned).or_else(user).unwrap_or_else(|| "tollgate".to_owned());
    let place = match &asked.endpoint().context {
        Some(context) => format!("context {context}"),
        None => "in a pod".to_owned(),
    };
    let number = RandomState::new().hash_one(std::process::id()) & 0xffff_ffff;
    let holder = format!("{who} ({place}, process {}-{number:08x})", std::process::id());
    LockSettings { namespace, holder }
}

/// Returns the counts for the exit code of a drain that ended this way.
fn exit_counts(ending: Ending) -> Result<ExitCounts, Failure> {
    match ending {
        Ending::Proven => Ok(ExitCounts::default()),
        Ending::Holding | Ending::Stopped => Ok(ExitCounts { denied: 1, ..ExitCounts::default() }),
        Ending::Failed(why) => {
            Console::open().error(&why);
            Ok(ExitCounts { denied: 1, ..ExitCounts::default() })
        }
        Ending::NotConfirmed => Err(Failure::Usage("not confirmed; nothing was changed".to_owned())),
        Ending::Refused(why) => Err(Failure::Input(why)),
    }
}
