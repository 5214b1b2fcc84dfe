//! A state of the cluster that was read, with everything that the commands need to work on it.

use std::sync::{Arc, OnceLock};

use crate::cli::console::Console;
use crate::cli::outcome::Failure;
use crate::cli::picture::StateSource;
use crate::cli::state::OwnedObjects;
use crate::cli::{devices, parse_embedded};
use tollgate_api::profile::Profile;
use tollgate_engine::impact::Snapshot;
use tollgate_ui::PageFacts;

/// A state of a cluster or dump, with what commands need to work on it.
#[derive(Debug)]
pub(super) struct KnownState {
    pub(super) objects: OwnedObjects,
    pub(super) profile: &'static Profile,
    /// Origin of the state for the pages: `context dev (https://…)`, or the files of the dump.
    pub(super) source: String,
    /// When the state was read from the cluster; empty if the dump does not say so.
    pub(super) taken: String,
    pub(super) is_dump: bool,
    /// Why the state may be outdated; `None` if it is current.
    pub(super) trouble: Option<String>,
    /// Messages about what the state lacks for the report about devices.
    pub(super) incomplete: Vec<String>,
    /// Messages about what the state lacks for forecasts and plans.
    pub(super) missing: Vec<String>,
    /// The snapshot for impact, made on first use.
    pub(super) snapshot: OnceLock<Result<Arc<Snapshot>, String>>,
}

impl KnownState {
    /// Returns the report of `tollgate devices -o json`.
    pub(super) fn devices_report(&self) -> Result<String, Failure> {
        let command: devices::Arguments = parse_embedded(&["-o", "json"].map(ToOwned::to_owned))?;
        let mut console = Console::captured();
        command.print(
            &self.objects.state(),
            &StateSource::of_part(),
            self.profile,
            &self.incomplete,
            &mut console,
        )?;
        Ok(console.into_captured().0)
    }

    /// Returns the snapshot from which impact is computed; made on first use.
    pub(super) fn snapshot(&self) -> Result<Arc<Snapshot>, Failure> {
        let make = || self.objects.snapshot().map(Arc::new).map_err(|error| error.to_string());
        self.snapshot.get_or_init(make).clone().map_err(Failure::Input)
    }

    /// Returns what the pages say about the origin of the state.
    pub(super) fn page_facts(&self, command: String) -> PageFacts {
        PageFacts {
            source: self.source.clone(),
            is_dump: self.is_dump,
            command,
            version: env!("CARGO_PKG_VERSION"),
            docs: crate::cli::picture::DOCS_URL,
        }
    }
}
