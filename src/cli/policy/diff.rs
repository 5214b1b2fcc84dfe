//! `tollgate policy diff OLD NEW`: whether a change to policies allows more, and to whom.
//!
//! The engine compares what the two sets mean; this prints it, and decides about the exit code. With a dump or a
//! cluster, the stored objects are checked by both sets as well.
//!
//! Invariant: what cannot be compared counts as wider and as stricter.

use std::path::{Path, PathBuf};

use super::report::{self, Output};
use super::stored::{self, StoredObjectVerdictChanges};
use crate::cli::console::Console;
use crate::cli::namespaces;
use crate::cli::outcome::{ExitCounts, Failure};
use crate::cli::shared::ReleaseArgs;
use crate::cli::{clock, policies};
use crate::files;
use tollgate_engine::policy::{ChangeEffect, PolicySet};
use tollgate_formats::gotime;

/// Show whether a change to policies allows more or fewer requests, and which
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Diff {
    /// Policies before the change: a file or folder
    old: PathBuf,
    /// Policies after the change: a file or folder
    new: PathBuf,
    /// YAML or JSON file with the namespaces for which to compare the policies (default: all that can exist)
    #[arg(long, value_name = "FILE", env = "TOLLGATE_NAMESPACES")]
    namespaces: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,
    /// Effect that causes exit code 1; if the effect cannot be decided, it counts as both
    #[arg(long, value_name = "EFFECT", help_heading = "Exit code")]
    fail_on: Option<FailOnEffect>,
    /// File or folder with stored objects that are checked by both sets, or `-` for stdin; can be repeated
    ///
    /// With --context, the objects of that cluster are checked.
    #[arg(long, value_name = "DUMP", env = "TOLLGATE_STATE")]
    state: Vec<PathBuf>,
    #[command(flatten)]
    clock: clock::ClockArgs,
    #[command(flatten)]
    release: ReleaseArgs,
}

const AFTER_HELP: &str = "\
The effect of a change is one of these:
  wider     requests are allowed that were denied, or warned about instead of denied
  stricter  requests are denied that were allowed
  both      some requests are allowed that were denied, and others are denied that were allowed
  none      the same requests are allowed
  unknown   expressions or JSON Schemas were replaced, or there is too much to compare

Exit codes:
  0  the sets were compared, and the effect is not the one that --fail-on specifies
  1  the effect is the one that --fail-on specifies, or unknown
  2  usage error
  3  a policy, dump or cluster could not be read
  4  internal error";

/// The value of `--fail-on`: the effect of a policy change that makes the exit code 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum FailOnEffect {
    /// Some requests are newly allowed
    Wider,
    /// Some requests are newly denied
    Stricter,
    /// Anything but `none`
    Any,
}

impl FailOnEffect {
    fn includes(self, effect: ChangeEffect) -> bool {
        match self {
            FailOnEffect::Wider => effect.may_widen(),
            FailOnEffect::Stricter => effect.may_tighten(),
            FailOnEffect::Any => effect != ChangeEffect::None,
        }
    }
}

impl Diff {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let (old, new) = (load_policies_or_empty_set(&self.old)?, load_policies_or_empty_set(&self.new)?);
        let namespaces = self.namespaces.as_deref().map(namespaces::read_file).transpose()?;
        let now = self.clock.now();
        let Ok(time) = gotime::parse_rfc3339(&now) else {
            return Err(Failure::Usage(format!("{now:?} is not a time")));
        };
        let diff = old.diff(&new, namespaces.as_ref(), time);
        let objects = self.check_stored_objects(old, new, &now, console)?;
        let mut tally = ExitCounts::default();
        tally.denied += usize::from(self.fail_on.is_some_and(|fail_on| fail_on.includes(diff.effect)));
        tally.unreadable += objects.as_ref().map_or(0, |objects| objects.incomplete.len());
        report::write_diff(&diff, objects.as_ref(), self.output, console)?;
        Ok(tally)
    }

    /// Checks the objects of `--state` or `--context` by both sets; `None` if neither is given.
    fn check_stored_objects(
        &self,
        old: PolicySet,
        new: PolicySet,
        now: &str,
        console: &mut Console,
    ) -> Result<Option<StoredObjectVerdictChanges>, Failure> {
        if !self.state.is_empty() {
            return stored::compare_on_dump(&self.state, &self.release, old, new, now, console).map(Some);
        }
        #[cfg(feature = "cluster")]
        if self.release.server.context.has_context_flag() {
            return stored::compare_on_cluster(&self.release, old, new, now, console).map(Some);
        }
        Ok(None)
    }
}

/// Loads the policies of a file or folder. One without policies is an empty set, as before the first policy and after
/// the last one.
fn load_policies_or_empty_set(path: &Path) -> Result<PolicySet, Failure> {
    if files::is_folder_without_manifests(path) {
        return Ok(PolicySet::default());
    }
    policies::compile_and_print_warnings(
        &policies::read_files(&[path.to_owned()])?,
        &policies::read_referenced,
        &[],
    )
}
