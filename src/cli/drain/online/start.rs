//! The start of a run that acts: from the settings of the command line to the exit code.

use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;

use super::live_server::LiveServer;
use super::lock::LockSettings;
use super::recording::Recorder;
use super::reporter::Reporter;
use super::run::{self, Ending};
use super::settings::RunSettings;
use super::undrain;
use crate::cli::console::Console;
use crate::cli::forecast::LISTED_KINDS;
use crate::cli::live::ConnectedServer;
use crate::cli::outcome::{ExitCounts, Failure};
use crate::cli::snapshot::WORKLOAD_KINDS;
use crate::cluster::{DEVICE_TAINT_RULES, ListedKind};
use crate::files;

/// A drain that is about to start: the cluster, the file of `--record`, and where its events are reported.
pub(in crate::cli::drain) struct Session<'a> {
    pub(in crate::cli::drain) asked: &'a ConnectedServer,
    pub(in crate::cli::drain) record: Option<&'a Path>,
    pub(in crate::cli::drain) reporter: Reporter,
}

impl Session<'_> {
    /// Runs the drain, or only its last step, which checks that no claim holds the devices.
    pub(in crate::cli::drain) fn drain(
        self,
        settings: &RunSettings,
        is_check: bool,
    ) -> Result<ExitCounts, Failure> {
        self.connect_and_run(&LISTED_KINDS, &WORKLOAD_KINDS, |server, reporter| {
            if is_check {
                undrain::check_devices_free(server, settings, reporter)
            } else {
                run::drain(server, settings, reporter)
            }
        })
    }

    /// Deletes the rules of a drain, or lists them with `--dry-run`.
    pub(in crate::cli::drain) fn undrain(
        self,
        settings: &RunSettings,
        is_dry_run: bool,
    ) -> Result<ExitCounts, Failure> {
        self.connect_and_run(&[DEVICE_TAINT_RULES], &[], |server, reporter| {
            undrain::undrain(server, settings, reporter, is_dry_run)
        })
    }

    /// Watches objects of the needed and wanted kinds, runs `work` on that cluster, and turns its ending into
    /// counts for the exit code.
    fn connect_and_run(
        self,
        needed: &[ListedKind],
        wanted: &[ListedKind],
        work: impl FnOnce(&mut LiveServer, &mut Reporter) -> Ending,
    ) -> Result<ExitCounts, Failure> {
        let Session { asked, record, mut reporter } = self;
        let recorder = record.map(open_recording).transpose()?;
        let (mut server, notes) = LiveServer::connect(&asked.cluster, needed, wanted, recorder)?;
        for note in &notes {
            reporter.note(note);
        }
        let ending = work(&mut server, &mut reporter);
        reporter.hide_summary();
        exit_counts(ending)
    }
}

fn open_recording(path: &Path) -> Result<Recorder, Failure> {
    let file = File::create(path).map_err(|error| {
        Failure::Input(format!("cannot write {}: {}", path.display(), files::io_reason(&error)))
    })?;
    Ok(Recorder::new(Box::new(file)))
}

/// Returns the namespace of the Lease and the identity of this process for people: `ann (context prod, process
/// 4711-1f2e3d4c)`. The last number distinguishes processes of one person on two machines.
pub(in crate::cli::drain) fn lock_settings_with_holder_identity(
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
