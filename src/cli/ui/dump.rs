//! The state of a dump, which is read again when its files change.

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use super::{KnownState, OutdatedReason};
use crate::cli::console::Console;
use crate::cli::devices::{self, require_one_profile};
use crate::cli::forecast::NEEDED_KINDS;
use crate::cli::outcome::Failure;
use crate::cli::shared::{ReleaseArgs, StateArgs};
use crate::cli::state::{self, StateObjects};
use crate::files::{self, Input};
use tollgate_forecast::ObjectKind;

/// Kinds that an impact is computed from.
const IMPACT_KINDS: [ObjectKind; 5] = [
    ObjectKind::ResourceSlice,
    ObjectKind::ResourceClaim,
    ObjectKind::DeviceTaintRule,
    ObjectKind::Pod,
    ObjectKind::PodDisruptionBudget,
];

/// Interval for checking whether the files have changed.
const FILE_CHECK_PERIOD: Duration = Duration::from_millis(500);

/// Follows the files of `--state`, which are read again when they change.
#[derive(Debug)]
pub(super) struct DumpSource {
    state: StateArgs,
    release: ReleaseArgs,
    /// The versions of the files when they were last read.
    seen: Vec<FileVersion>,
}

/// Name, modification time and size of a file, by which changes are noticed.
type FileVersion = (String, Option<(SystemTime, u64)>);

impl DumpSource {
    pub(super) fn new(state: StateArgs, release: ReleaseArgs) -> DumpSource {
        DumpSource { state, release, seen: Vec::new() }
    }

    /// Reads the files into a state.
    pub(super) fn read(&mut self, console: &mut Console) -> Result<KnownState, Failure> {
        // A file that changes while it is read is read again.
        self.seen = self.file_versions();
        let texts = state::read_texts(&self.state.paths)?;
        let objects = StateObjects::parse(&texts)?;
        let profile = require_one_profile(&self.release.dump_profiles(&objects.inventory, console)?)?;
        let inventory = &objects.inventory;
        let lacks =
            |kinds| inventory.missing_object_kinds_message(kinds).filter(|_| !self.state.assume_complete);
        let mut incomplete = inventory.incomplete_parts_for_kinds(&devices::REPORT_KINDS);
        incomplete.extend(lacks(&devices::REQUIRED_DUMP_KINDS));
        let mut missing = inventory.incomplete_parts();
        missing.extend(lacks(&NEEDED_KINDS));
        let names: Vec<String> = self.state.paths.iter().map(|path| path.display().to_string()).collect();
        Ok(KnownState {
            profile,
            source: names.join(", "),
            taken: inventory.earliest_snapshot_time().unwrap_or_default().to_owned(),
            is_dump: true,
            trouble: None,
            incomplete_for_impact: inventory.incomplete_parts_for_kinds(&IMPACT_KINDS),
            incomplete,
            missing,
            snapshot: OnceLock::new(),
            objects: objects.into_owned(),
        })
    }

    /// Waits until the files have changed, and reads them. An error says why they cannot be read.
    pub(super) fn next(&mut self) -> Result<KnownState, OutdatedReason> {
        let is_stdin = self.state.paths.iter().any(|path| path.as_os_str() == "-");
        loop {
            std::thread::sleep(FILE_CHECK_PERIOD);
            if is_stdin || self.file_versions() == self.seen {
                continue;
            }
            let mut console = Console::captured();
            let outdated = |failure: Failure| OutdatedReason { why: failure.message(), current_until: None };
            return self.read(&mut console).map_err(outdated);
        }
    }

    fn file_versions(&self) -> Vec<FileVersion> {
        let Ok(inputs) = files::collect_all_or_fail(&self.state.paths) else { return Vec::new() };
        let version = |input: &Input| {
            let found = match input {
                Input::File(path) => time_and_size(path),
                // What is read once does not change.
                Input::Stdin => None,
            };
            (input.name(), found)
        };
        inputs.iter().map(version).collect()
    }
}

fn time_and_size(path: &Path) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
