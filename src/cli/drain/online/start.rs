//! The start of a run that acts: from the settings of the command line to the exit code.

use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;

use super::differences::differences;
use super::event::Event;
use super::live_server::{LiveServer, NEEDED_KINDS};
use super::lock::LockSettings;
use super::recording::Recorder;
use super::reporter::Reporter;
use super::run::{self, Ending, Observer, RunSettings};
use super::settings::DrainSettings;
use super::undrain;
use crate::cli::console::Console;
use crate::cli::live::AskedServer;
use crate::cli::outcome::{Failure, Tally};
use crate::cli::snapshot::WORKLOAD_KINDS;
use crate::cluster::{ListedKind, RULES};
use crate::files;
use tollgate_drain::DrainPlan;
use tollgate_formats::gotime::Timestamp;

impl Observer for Reporter {
    fn tell(&mut self, at: Timestamp, event: &Event) {
        Reporter::tell(self, at, event);
    }

    fn confirm(&mut self, at: Timestamp, plan: &DrainPlan) -> bool {
        Reporter::confirm(self, at, plan)
    }

    fn differences(&self, old: &DrainPlan, new: &DrainPlan) -> Vec<String> {
        differences(old, new)
    }

    fn tick(&mut self) {
        Reporter::tick(self);
    }
}

/// Drains the devices.
pub(in crate::cli::drain) fn drain(settings: DrainSettings<'_>) -> Result<Tally, Failure> {
    let (mut server, settings, mut reporter) = connect(settings, &NEEDED_KINDS, &WORKLOAD_KINDS)?;
    let ending = run::drain(&mut server, &settings, &mut reporter);
    reporter.hide();
    finish(ending)
}

/// Checks whether claims hold the devices.
pub(in crate::cli::drain) fn check(settings: DrainSettings<'_>) -> Result<Tally, Failure> {
    let (mut server, settings, mut reporter) = connect(settings, &NEEDED_KINDS, &WORKLOAD_KINDS)?;
    let ending = undrain::check(&mut server, &settings, &mut reporter);
    reporter.hide();
    finish(ending)
}

/// Deletes the rules of a drain; with `is_dry_run`, only lists them.
pub(in crate::cli::drain) fn undrain(
    settings: DrainSettings<'_>,
    is_dry_run: bool,
) -> Result<Tally, Failure> {
    let (mut server, settings, mut reporter) = connect(settings, &[RULES], &[])?;
    let ending = undrain::undrain(&mut server, &settings, &mut reporter, is_dry_run);
    reporter.hide();
    finish(ending)
}

/// Starts the watches, and puts together what a run needs.
fn connect(
    settings: DrainSettings<'_>,
    needed: &[ListedKind],
    wanted: &[ListedKind],
) -> Result<(LiveServer, RunSettings, Reporter), Failure> {
    let DrainSettings { asked, request, release, samples, mut reporter, .. } = settings;
    let recorder = settings.record.as_deref().map(open_recording).transpose()?;
    let (server, notes) = LiveServer::connect(&asked.cluster, needed, wanted, recorder)?;
    for note in &notes {
        reporter.note(note);
    }
    let holder = holder(asked, settings.notes.owner.as_deref());
    let settings = RunSettings {
        request,
        release,
        rule_version: settings.rule_version,
        samples,
        seed: settings.seed,
        wait: settings.wait,
        timeout: settings.timeout,
        force_after: settings.force_after,
        lock: settings.lock_namespace.map(|namespace| LockSettings { namespace, holder }),
        notes: settings.notes,
        ignore_preflight_errors: settings.ignore_preflight_errors,
        release_problems: settings.release_problems,
        go_on: settings.next.go_on,
        go_back: settings.next.go_back,
    };
    Ok((server, settings, reporter))
}

fn open_recording(path: &Path) -> Result<Recorder, Failure> {
    let file = File::create(path).map_err(|error| {
        Failure::Input(format!("cannot write {}: {}", path.display(), files::io_reason(&error)))
    })?;
    Ok(Recorder::new(Box::new(file)))
}

/// Who holds the Lease, for people: `ann (context prod, process 4711-1f2e3d4c)`. The last number tells apart two processes of
/// one person on two machines.
fn holder(asked: &AskedServer, owner: Option<&str>) -> String {
    let user = || ["USER", "LOGNAME", "USERNAME"].iter().find_map(std::env::var_os)?.into_string().ok();
    let who = owner.map(ToOwned::to_owned).or_else(user).unwrap_or_else(|| "tollgate".to_owned());
    let place = match &asked.endpoint().context {
        Some(context) => format!("context {context}"),
        None => "in a pod".to_owned(),
    };
    let number = RandomState::new().hash_one(std::process::id()) & 0xffff_ffff;
    format!("{who} ({place}, process {}-{number:08x})", std::process::id())
}

/// The exit code of an ending.
fn finish(ending: Ending) -> Result<Tally, Failure> {
    match ending {
        Ending::Proven => Ok(Tally::default()),
        Ending::Holding | Ending::Stopped => Ok(Tally { denied: 1, ..Tally::default() }),
        Ending::Failed(why) => {
            Console::open().error(&why);
            Ok(Tally { denied: 1, ..Tally::default() })
        }
        Ending::NotConfirmed => Err(Failure::Usage("not confirmed; nothing was changed".to_owned())),
        Ending::Refused(why) => Err(Failure::Input(why)),
    }
}
