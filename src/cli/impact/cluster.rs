//! The state that an impact is computed on: from a dump or from the running cluster, and what is missing from it.
//!
//! Only as much is read as the given rules and flags need: attributes of devices for rules that select by class or
//! expression, and whole objects for groups and for nodes.

use super::{Arguments, GroupBy};
use crate::cli::console::Console;
#[cfg(feature = "cluster")]
use crate::cli::live;
use crate::cli::outcome::{ExitCounts, Failure};
use crate::cli::picture::StateSource;
use crate::cli::state::{self, DumpInventory, DumpOmissions, INCOMPLETE_DUMP_TEXTS, OwnedObjects};
use crate::files::{self, DEFAULT_MAX_FILE_BYTES};
use tollgate_api::profile::Profile;
use tollgate_engine::impact::Snapshot;
use tollgate_forecast::{GROUP_KINDS, ObjectKind};

impl Arguments {
    /// True if the objects of a dump are needed beyond its snapshot: for groups, for what happens to the rest of a
    /// LeaderWorkerSet, JobSet or PodGroup, or to see whether evicted pods fit on other nodes.
    fn needs_dump_objects(&self, inventory: &DumpInventory) -> bool {
        let has_groups = || {
            let mut kinds = GROUP_KINDS.iter().chain([&ObjectKind::Node]);
            kinds.any(|kind| inventory.object_kinds.contains(kind))
        };
        self.by.is_some_and(GroupBy::needs_cluster_objects) || has_groups()
    }

    /// Reads the state from the dump or from the running cluster, and determines the profiles to check against.
    pub(super) fn read_dump_or_cluster(
        &self,
        tally: &mut ExitCounts,
        console: &mut Console,
    ) -> Result<ClusterInput, Failure> {
        let needs_attributes = self.needs_device_attributes()?;
        #[cfg(feature = "cluster")]
        if self.state.paths.is_empty() {
            return read_live(self, needs_attributes, tally, console);
        }
        let (snapshot, inventory, texts) = state::read_impact_state(&self.state.paths, needs_attributes)?;
        let texts = self.needs_dump_objects(&inventory).then_some(texts);
        let profiles = self.release.dump_profiles(&inventory, console)?;
        let source = StateSource::from_dump(&self.state.paths, &inventory);
        let omissions = inventory.impact_omissions(self.state.assume_complete);
        let omissions = self.report_dump_omissions(omissions, tally, console);
        Ok(ClusterInput { snapshot, omissions, profiles, texts, listed: None, unlisted: Vec::new(), source })
    }

    /// True if the attributes of devices must be read, because a given rule may select devices by class or
    /// expression. Assumes so for inputs that can be read only once.
    fn needs_device_attributes(&self) -> Result<bool, Failure> {
        for input in files::collect_all_or_fail(&self.paths)? {
            if !input.can_be_read_twice() {
                return Ok(true);
            }
            let text = files::read(&input, DEFAULT_MAX_FILE_BYTES)?;
            if ["deviceClassName", "selectors"].iter().any(|field| text.contains(field)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reports what a dump lacks, and returns the messages. With `--max` they are errors, because a limit that
    /// was not checked must not pass.
    pub(super) fn report_dump_omissions(
        &self,
        omissions: DumpOmissions,
        tally: &mut ExitCounts,
        console: &mut Console,
    ) -> Vec<String> {
        omissions.print_as_note_or_error_and_collect(
            self.max.is_some(),
            INCOMPLETE_DUMP_TEXTS,
            tally,
            console,
        )
    }
}

/// Everything that was read of a dump or cluster to assess changes.
pub(super) struct ClusterInput {
    pub(super) snapshot: Snapshot,
    /// Messages about what is missing from the snapshot.
    pub(super) omissions: Vec<String>,
    pub(super) profiles: Vec<&'static Profile>,
    /// The texts of a dump, if its objects are needed.
    pub(super) texts: Option<Vec<(String, String)>>,
    /// The objects of a running cluster beyond the snapshot.
    pub(super) listed: Option<OwnedObjects>,
    /// Messages about kinds that could not be listed, and that decide where evicted pods go.
    pub(super) unlisted: Vec<String>,
    /// The dump or cluster that the state comes from, for the HTML page.
    pub(super) source: StateSource,
}

/// Reads the state from the running cluster.
#[cfg(feature = "cluster")]
fn read_live(
    arguments: &Arguments,
    needs_attributes: bool,
    tally: &mut ExitCounts,
    console: &mut Console,
) -> Result<ClusterInput, Failure> {
    let asked = arguments.release.live_server()?;
    let profiles = arguments.release.live_profiles()?;
    let (snapshot, omissions) = live::read_state_for_impact(asked, needs_attributes, console);
    tally.unreadable += omissions.failures.len();
    if !omissions.failures.is_empty() {
        console.note("some objects could not be read; more devices and pods may be affected");
    }
    let needs_objects = arguments.by.is_some_and(GroupBy::needs_cluster_objects);
    // Where pods go is not known anyway if something is missing from the snapshot.
    let is_complete = omissions.failures.is_empty();
    let read = (is_complete || needs_objects)
        .then(|| live::read_nodes_and_scheduling_objects(asked, needs_objects, console));
    let (listed, unlisted) = read.map_or((None, Vec::new()), |(objects, missing, failures)| {
        tally.unreadable += failures;
        (Some(objects), missing)
    });
    let source = StateSource::from_cluster(asked);
    let omissions = omissions.failures;
    Ok(ClusterInput { snapshot, omissions, profiles, texts: None, listed, unlisted, source })
}
