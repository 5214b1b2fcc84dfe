//! `-o html`: the data that a page shows besides the report: where the state comes from, and the command that made the
//! page.
//!
//! The crate `tollgate_picture` draws the JSON of a report.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;

#[cfg(feature = "cluster")]
use super::clock;
use super::console::{Console, quote_for_shell};
#[cfg(feature = "cluster")]
use super::live::ConnectedServer;
use super::outcome::Failure;
use super::plugin;
use super::state::DumpInventory;
use crate::report::record::Json;
use tollgate_picture::pages::ReportJson;
use tollgate_picture::{ReportProvenance, SafeText};

/// URL of the documentation, to which reports link.
pub(super) const DOCS_URL: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs");

/// The arguments of the program as a user would type them, for the page.
static TYPED_COMMAND: OnceLock<String> = OnceLock::new();

/// Stores the arguments of the program, which pages show.
pub(super) fn store_typed_command(arguments: &[OsString]) {
    let words = arguments.iter().skip(1).map(|word| quote_for_shell(&word.to_string_lossy()));
    _ = TYPED_COMMAND.set(words.collect::<Vec<_>>().join(" "));
}

/// The origin of the state that a report is about: a dump or a cluster, and when it was read.
#[derive(Clone, Default, Debug)]
pub(super) struct StateSource {
    name: String,
    /// When it was read; `None` if the dump does not say so.
    taken: Option<String>,
    /// True if the report becomes part of a larger page, which shows the origin itself.
    pub(super) is_part: bool,
}

impl StateSource {
    /// The dump in these files.
    pub(super) fn from_dump(paths: &[PathBuf], inventory: &DumpInventory) -> StateSource {
        let files: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let mut name = format!("dump {}", files.join(", "));
        if let Some(cluster) = inventory.cluster_if_unique() {
            name = format!("{name} of {cluster}");
        }
        StateSource { name, taken: inventory.earliest_snapshot_time().map(str::to_owned), is_part: false }
    }

    /// The cluster that the command is connected to.
    #[cfg(feature = "cluster")]
    pub(super) fn from_cluster(asked: &ConnectedServer) -> StateSource {
        let name = asked.endpoint().to_string();
        StateSource { name, taken: Some(clock::now_rfc3339()), is_part: false }
    }

    /// The origin for a report that becomes part of a larger page.
    #[cfg(feature = "ui")]
    pub(super) fn for_page_part() -> StateSource {
        StateSource { is_part: true, ..StateSource::default() }
    }

    /// Returns the header and footer data of a page: origin, command, version, and in `incomplete` what the state
    /// lacks.
    pub(super) fn page_metadata(&self, incomplete: &[String]) -> ReportProvenance {
        let command = TYPED_COMMAND.get().map_or("", String::as_str);
        ReportProvenance {
            source: SafeText::from(self.name.as_str()),
            taken: self.taken.as_deref().map(SafeText::from),
            incomplete: incomplete.iter().map(|what| SafeText::from(what.as_str())).collect(),
            command: SafeText::from(format!("{} {command}", plugin::program_name())),
            version: SafeText::from(env!("CARGO_PKG_VERSION")),
            docs: SafeText::from(DOCS_URL),
            is_part: self.is_part,
        }
    }
}

/// A JSON record that an HTML page draws, with the device counts of each class before and after as JSON, if they
/// are known.
#[derive(Debug)]
pub(super) struct HtmlPageRecord {
    pub(super) json: Json,
    pub(super) capacity: Option<String>,
}

impl HtmlPageRecord {
    pub(super) fn record(&self) -> ReportJson<'_> {
        ReportJson { json: self.json.get(), capacity: self.capacity.as_deref() }
    }
}

/// Writes an HTML page to stdout.
pub(super) fn write_page(page: serde_json::Result<String>, console: &mut Console) -> Result<(), Failure> {
    let page = page.map_err(|error| Failure::Internal(error.into()))?;
    Ok(writeln!(console, "{page}")?)
}
