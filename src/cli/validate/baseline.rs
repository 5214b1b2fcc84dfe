//! The baselines of a run: the new one to write, and the files that were checked against existing ones.
//!
//! Invariant: a baseline is written only after everything was checked; a run that stops earlier leaves the old one
//! unchanged.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::super::console::Console;
use super::super::outcome::Failure;
use super::settings::{CheckSettings, baseline_folder};
use super::target::FileTarget;
use crate::config::{Baseline, KnownFindings, MAX_BASELINE_BYTES};
use crate::files;
use crate::report::{Format, Summary};
use tollgate_formats::count::count_with_noun;

/// The new baseline that a run writes, if it writes one, and the files that were checked.
#[derive(Debug)]
pub(super) struct NewBaselineAndCheckedFiles<'r> {
    /// Path of a new baseline, and the folder that its paths are relative to.
    target: Option<(&'r Path, PathBuf)>,
    new: Baseline,
    /// The files that were checked, by their names in baselines.
    checked: HashSet<String>,
}

impl<'r> NewBaselineAndCheckedFiles<'r> {
    /// Prepares to write a baseline to `target`, if there is one. Returns an error if the target is an input, or
    /// a file other than a baseline: with `--write-baseline *.yaml`, a shell passes a manifest as the target.
    pub(super) fn new(
        target: Option<&'r Path>,
        inputs: &[PathBuf],
    ) -> Result<NewBaselineAndCheckedFiles<'r>, Failure> {
        if let Some(path) = target {
            let file = FileTarget { format: Format::Json, path: path.to_owned() };
            let reason = if inputs.iter().any(|input| file.writes_to(input)) {
                Some("would overwrite an input file")
            } else if path.is_file()
                && !files::read_lossy(path, MAX_BASELINE_BYTES)
                    .is_some_and(|text| Baseline::can_overwrite_text(&text))
            {
                Some("this file is not a baseline; choose another name, or delete the file first")
            } else {
                None
            };
            if let Some(reason) = reason {
                return Err(Failure::Usage(format!("--write-baseline {}: {reason}", path.display())));
            }
        }
        let target = target.map(|path| Ok::<_, Failure>((path, baseline_folder(path)?))).transpose()?;
        Ok(NewBaselineAndCheckedFiles { target, new: Baseline::default(), checked: HashSet::new() })
    }

    /// Returns the folder that the paths of the new baseline are relative to; `None` if none is written.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        self.target.as_ref().map(|(_, folder)| folder.clone())
    }

    /// Adds a checked file: its findings to the new baseline; or if none is written, its name to the checked
    /// files.
    pub(super) fn add_checked_file(&mut self, checked: Option<(String, KnownFindings)>) {
        let Some((name, known)) = checked else { return };
        if self.target.is_some() {
            self.new.add_file_findings(&name, known);
        } else {
            self.checked.insert(name);
        }
    }

    /// Returns the number of baseline findings in files that no longer exist. Files that exist and were not
    /// checked in this run do not count.
    pub(super) fn count_findings_in_missing_files(&self, settings: &[CheckSettings]) -> usize {
        let baselines = settings.iter().filter_map(|settings| settings.baseline.as_ref());
        let mut seen = HashSet::new();
        let mut missing = 0_usize;
        for baseline in baselines.filter(|baseline| seen.insert(baseline.folder.clone())) {
            for (file, count) in baseline.known.files_with_counts() {
                if file != "-" && !self.checked.contains(file) && !baseline.folder.join(file).exists() {
                    missing = missing.saturating_add(count);
                }
            }
        }
        missing
    }

    /// Writes the new baseline, if there is a target, and notes how many findings it does not include.
    pub(super) fn write_baseline(&self, summary: &Summary, console: &mut Console) -> Result<(), Failure> {
        let Some((path, _)) = &self.target else { return Ok(()) };
        let shown = path.display();
        files::write_atomic_or_in_place(path, self.new.to_yaml().as_bytes()).map_err(|error| {
            Failure::Internal(anyhow::anyhow!("--write-baseline {shown}: {}", files::io_reason(&error)))
        })?;
        let others = summary.denied + summary.warned + summary.audited;
        let rest = match others {
            0 => String::new(),
            1 => "; 1 other finding is not included, because it is not a lint".to_owned(),
            count => format!("; {count} other findings are not included, because they are not lints"),
        };
        console.note(&format!(
            "{shown}: {} written{rest}",
            count_with_noun(self.new.total_finding_count(), "finding")
        ));
        Ok(())
    }
}
