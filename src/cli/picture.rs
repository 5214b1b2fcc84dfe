//! `-o html`: what a page says besides the report, which is where the data come from and the command that made it.
//!
//! `tollgate_picture` draws the JSON of a report. Nothing is decided here.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;

#[cfg(feature = "cluster")]
use super::clock;
use super::console::{Console, shell_word};
use super::outcome::Failure;
use super::plugin;
use super::shared::ReleaseArgs;
use super::state::Inventory;
use crate::report::record::Json;
use tollgate_picture::pages::Record;
use tollgate_picture::{Page, Text};

/// The documentation on the web, as reports link to it.
pub(super) const DOCS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs");

/// The words after the name of the program, as a user would type them.
static COMMAND: OnceLock<String> = OnceLock::new();

/// Notes how the program was called.
pub(super) fn note_command(arguments: &[OsString]) {
    let words = arguments.iter().skip(1).map(|word| shell_word(&word.to_string_lossy()));
    _ = COMMAND.set(words.collect::<Vec<_>>().join(" "));
}

/// Where the state of a report comes from.
#[derive(Clone, Default, Debug)]
pub(super) struct StateSource {
    name: String,
    /// When it was read; `None` if the dump does not say so.
    taken: Option<String>,
    /// The report becomes a part of a page that says all this itself.
    is_part: bool,
}

impl StateSource {
    /// The dump in these files, or without files the cluster that was asked.
    pub(super) fn of(
        paths: &[PathBuf],
        inventory: &Inventory,
        release: &ReleaseArgs,
    ) -> Result<StateSource, Failure> {
        if paths.is_empty() {
            return StateSource::live(release);
        }
        let files: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let mut name = format!("dump {}", files.join(", "));
        if let Some(cluster) = inventory.cluster() {
            name = format!("{name} of {cluster}");
        }
        Ok(StateSource { name, taken: inventory.time().map(str::to_owned), is_part: false })
    }

    #[cfg(feature = "cluster")]
    fn live(release: &ReleaseArgs) -> Result<StateSource, Failure> {
        let name = release.live_server()?.endpoint().to_string();
        Ok(StateSource { name, taken: Some(clock::now()), is_part: false })
    }

    #[cfg(not(feature = "cluster"))]
    fn live(_: &ReleaseArgs) -> Result<StateSource, Failure> {
        Err(super::shared::state_is_required())
    }

    /// For reports that become parts of a page which says where the state comes from.
    #[cfg(feature = "ui")]
    pub(super) fn of_part() -> StateSource {
        StateSource { is_part: true, ..StateSource::default() }
    }

    /// What every page of this run says. `incomplete` is what the state lacks.
    pub(super) fn page(&self, incomplete: &[String]) -> Page {
        let command = COMMAND.get().map_or("", String::as_str);
        Page {
            source: Text::from(self.name.as_str()),
            taken: self.taken.as_deref().map(Text::from),
            incomplete: incomplete.iter().map(|what| Text::from(what.as_str())).collect(),
            command: Text::from(format!("{} {command}", plugin::program_name())),
            version: Text::from(env!("CARGO_PKG_VERSION")),
            docs: Text::from(DOCS),
            is_part: self.is_part,
        }
    }
}

/// A record of a report, and the devices of each class before and after, if they are known.
#[derive(Debug)]
pub(super) struct DrawnRecord {
    pub(super) json: Json,
    pub(super) capacity: Option<String>,
}

impl DrawnRecord {
    pub(super) fn record(&self) -> Record<'_> {
        Record { json: self.json.get(), capacity: self.capacity.as_deref() }
    }
}

/// Writes a page.
pub(super) fn write(page: serde_json::Result<String>, console: &mut Console) -> Result<(), Failure> {
    let page = page.map_err(|error| Failure::Internal(error.into()))?;
    Ok(writeln!(console, "{page}")?)
}
