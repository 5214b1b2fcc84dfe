//! `tollgate policy diff OLD NEW`: which namespaces gain or lose which tolerations, and what changes in every policy.
//!
//! Namespaces are those of `--namespaces`; without it, one for each pattern that a policy names, and one that no
//! policy names.

mod export;

pub(super) use export::DIGEST as EXPORT_DIGEST;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::console::Console;
use super::namespaces;
use super::outcome::{Failure, Tally};
use super::{clock, policies};
use crate::files;
use crate::report::printable;
use tollgate_engine::engine::{NamespaceLookup as _, Namespaces};
use tollgate_engine::policy::{ComparedNamespace, PolicySet};
use tollgate_formats::gotime;

/// Compare and export policies
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Diff(Diff),
    Export(export::Export),
}

/// Show which tolerations each namespace gains or loses, and what changes in each policy
#[derive(Debug, clap::Args)]
struct Diff {
    /// Policies before the change: a file or folder
    old: PathBuf,
    /// Policies after the change: a file or folder
    new: PathBuf,
    /// YAML or JSON file with the namespaces for which to compare the policies
    #[arg(long, value_name = "FILE", env = "TOLLGATE_NAMESPACES")]
    namespaces: Option<PathBuf>,
    #[command(flatten)]
    clock: clock::ClockArgs,
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<Tally, Failure> {
        match &self.command {
            Command::Diff(diff) => diff.run(console),
            Command::Export(export) => export.run(console),
        }
    }
}

impl Diff {
    fn run(&self, console: &mut Console) -> Result<Tally, Failure> {
        let (old, new) = (load(&self.old)?, load(&self.new)?);
        let namespaces = self.namespaces.as_deref().map(namespaces::read).transpose()?;
        let now = gotime::parse(&self.clock.now()).ok();
        let mut differs = false;
        for Subject { title, name, selector } in subjects(&old, &new, namespaces.as_ref()) {
            let labels = namespaces.labels(&name);
            let namespace = |selector| ComparedNamespace { name: &name, labels, selector };
            let mut differences = old.differences(&new, namespace(selector.as_deref()), now);
            // What holds whatever the labels are was listed already.
            if selector.is_some() {
                let listed = old.differences(&new, namespace(None), now);
                differences.retain(|difference| !listed.contains(difference));
            }
            if !differences.is_empty() {
                writeln!(console, "{}:", printable_line(&title))?;
            }
            for difference in differences {
                differs = true;
                let sign = if difference.gained { '+' } else { '-' };
                let action = difference.action.name();
                writeln!(console, "  {sign} [{action}] {}", printable_line(&difference.tolerations))?;
            }
        }
        for change in old.changes(&new) {
            differs = true;
            writeln!(console, "{}:", printable_line(&change.policy))?;
            for what in &change.lines {
                writeln!(console, "  {}", printable_line(what))?;
            }
        }
        if !differs {
            writeln!(console, "no policy changes")?;
        }
        Ok(Tally::default())
    }
}

/// Loads the policies of a file or folder. An empty folder is an empty set, as before the first policy.
fn load(path: &Path) -> Result<PolicySet, Failure> {
    if files::is_empty_folder(path) {
        return Ok(PolicySet::default());
    }
    policies::load(&[path.to_owned()])
}

/// The text as one line without control characters.
fn printable_line(text: &str) -> String {
    printable(text).replace('\n', "\u{fffd}")
}

/// Namespaces for which the policies are compared, represented by one of them.
struct Subject {
    title: String,
    /// The name of one of them.
    name: String,
    /// Their labels, if a policy selects by labels and these are not known.
    selector: Option<String>,
}

/// The given namespaces, or else one for each pattern and selector in the policies, and one for all others.
fn subjects(old: &PolicySet, new: &PolicySet, namespaces: Option<&Namespaces>) -> Vec<Subject> {
    let subject = |title: String, name: &str| Subject { title, name: name.to_owned(), selector: None };
    if let Some(namespaces) = namespaces {
        return namespaces.names().map(|name| subject(format!("namespace {name}"), name)).collect();
    }
    let patterns: BTreeSet<&str> = old.toleration_namespaces().chain(new.toleration_namespaces()).collect();
    let mut subjects: Vec<Subject> = patterns
        .into_iter()
        .map(|pattern| {
            let several = if pattern.contains(['*', '?']) { "s" } else { "" };
            // A star becomes two letters, because `team-?` does not match them.
            let name = pattern.replace('*', "00").replace('?', "0");
            subject(format!("namespace{several} {pattern}"), &name)
        })
        .collect();
    let has_patterns = !subjects.is_empty();
    subjects.push(subject("all other namespaces".to_owned(), "tollgate-diff-any-other"));
    let selectors: BTreeSet<String> = old.toleration_selectors().chain(new.toleration_selectors()).collect();
    let mut selected = Vec::new();
    for selector in selectors {
        for Subject { title, name, .. } in &subjects {
            let title = if has_patterns { title.as_str() } else { "namespaces" };
            let title = format!("{title} with labels {selector}");
            selected.push(Subject { title, name: name.clone(), selector: Some(selector.clone()) });
        }
    }
    subjects.extend(selected);
    subjects
}
