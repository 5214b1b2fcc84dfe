//! `tollgate policy diff OLD NEW`: which namespaces gain or lose which tolerations, and what changes in every policy.
//!
//! Namespaces are those of `--namespaces`; without it, one for each pattern that a policy names, and one that no
//! policy names.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::console::Console;
use super::namespaces;
use super::outcome::{Failure, Tally};
use super::{clock, policies};
use crate::engine::{NamespaceLookup as _, Namespaces};
use crate::files;
use crate::gotime;
use crate::policy::PolicySet;
use crate::report::printable;

/// Compare sets of policies
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Diff(Diff),
}

/// Show which namespaces gain or lose which tolerations, and what changes in every policy
#[derive(Debug, clap::Args)]
struct Diff {
    /// Files or folder of the policies before
    old: PathBuf,
    /// Files or folder of the policies after
    new: PathBuf,
    /// Namespace objects (YAML or JSON) to compare for
    #[arg(long, value_name = "FILE", env = "TOLLGATE_NAMESPACES")]
    namespaces: Option<PathBuf>,
    #[command(flatten)]
    clock: clock::ClockArgs,
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<Tally, Failure> {
        let Command::Diff(diff) = &self.command;
        diff.run(console)
    }
}

impl Diff {
    fn run(&self, console: &mut Console) -> Result<Tally, Failure> {
        let (old, new) = (load(&self.old)?, load(&self.new)?);
        let namespaces = self.namespaces.as_deref().map(namespaces::read).transpose()?;
        let now = gotime::parse(&self.clock.now()).ok();
        let mut differs = false;
        for (title, namespace) in subjects(&old, &new, namespaces.as_ref()) {
            let labels = namespaces.labels(&namespace);
            let differences = old.differences(&new, &namespace, labels, now);
            if !differences.is_empty() {
                writeln!(console, "{}:", line(&title))?;
            }
            for difference in differences {
                differs = true;
                let sign = if difference.gained { '+' } else { '-' };
                let action = difference.action.name();
                writeln!(console, "  {sign} [{action}] {}", line(&difference.tolerations))?;
            }
        }
        for change in old.changes(&new) {
            differs = true;
            writeln!(console, "{}:", line(&change.policy))?;
            for what in &change.lines {
                writeln!(console, "  {}", line(what))?;
            }
        }
        if !differs {
            writeln!(console, "no policy changes")?;
        }
        Ok(Tally::default())
    }
}

/// The policies of a file or folder. An empty folder is an empty set: what there was before the first policy.
fn load(path: &Path) -> Result<PolicySet, Failure> {
    if files::is_empty_folder(path) {
        return Ok(PolicySet::default());
    }
    policies::load(&[path.to_owned()])
}

/// One line that cannot write to the terminal it is shown on.
fn line(text: &str) -> String {
    printable(text).replace('\n', "\u{fffd}")
}

/// What to call each namespace, and its name.
fn subjects(old: &PolicySet, new: &PolicySet, namespaces: Option<&Namespaces>) -> Vec<(String, String)> {
    if let Some(namespaces) = namespaces {
        return namespaces.names().map(|name| (format!("namespace {name}"), name.to_owned())).collect();
    }
    let patterns: BTreeSet<&str> = old.toleration_namespaces().chain(new.toleration_namespaces()).collect();
    let mut subjects: Vec<(String, String)> = patterns
        .into_iter()
        .map(|pattern| {
            let several = if pattern.contains(['*', '?']) { "s" } else { "" };
            (format!("namespace{several} {pattern}"), pattern.replace(['*', '?'], "0"))
        })
        .collect();
    subjects.push(("all other namespaces".to_owned(), "tollgate-diff-any-other".to_owned()));
    subjects
}
