//! Where reports go: stdout, and the files of `--output-file`.
//!
//! Invariant: a reader that goes away, of stdout or of a pipe among the files, costs its own report and nothing else:
//! not the other reports, not the verdict.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::super::console::{Console, Patient};
use super::super::outcome::Failure;
use super::judge::Output;
use crate::files;
use crate::report::{Format, Report, Summary};

/// The value of `--output-file`.
#[derive(Clone, Debug)]
pub(super) struct FileTarget {
    pub(super) format: Format,
    pub(super) path: PathBuf,
}

impl FileTarget {
    /// True if the report would go into that file. A device such as /dev/stderr takes any number of reports.
    pub(super) fn is(&self, path: &Path) -> bool {
        let is_device = std::fs::metadata(&self.path).is_ok_and(|meta| !meta.is_file());
        let real = |path: &Path| std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).ok();
        !is_device && real(&self.path) == real(path)
    }
}

/// Reads `FORMAT=PATH`.
pub(super) fn parse(text: &str) -> Result<FileTarget, String> {
    let names = Format::ALL.map(Format::name).join(", ");
    let (name, path) =
        text.split_once('=').ok_or_else(|| format!("expected FORMAT=PATH, with one of {names}"))?;
    let format =
        Format::parse(name).ok_or_else(|| format!("there is no format `{name}`; there are {names}"))?;
    if path.is_empty() {
        return Err("expected a path after `=`".to_owned());
    }
    Ok(FileTarget { format, path: PathBuf::from(path) })
}

/// The open reports; the first one is stdout's.
#[derive(Debug)]
pub(super) struct Targets<'r> {
    reports: &'r [Report],
    console: &'r mut Console,
    files: Vec<BufWriter<Patient<File>>>,
    /// Per report: something was written between its beginning and its end.
    started: Vec<bool>,
}

impl<'r> Targets<'r> {
    /// Creates the files; one that cannot be created is wrong usage, and nothing is judged.
    ///
    /// Creating a file empties it, so what is to be read must have been held against [`FileTarget::is`] before.
    pub(super) fn open(
        reports: &'r [Report],
        targets: &[FileTarget],
        console: &'r mut Console,
    ) -> Result<Targets<'r>, Failure> {
        for (position, target) in targets.iter().enumerate() {
            if targets.iter().skip(position + 1).any(|other| other.is(&target.path)) {
                let path = target.path.display();
                return Err(Failure::Usage(format!("--output-file {path}: two reports cannot share a file")));
            }
        }
        let create = |target: &FileTarget| {
            let file = File::create(&target.path);
            file.map(|file| BufWriter::new(Patient::new(file))).map_err(|error| {
                let (path, reason) = (target.path.display(), files::reason(&error));
                Failure::Usage(format!("--output-file {path}: {reason}"))
            })
        };
        let files = targets.iter().map(create).collect::<Result<Vec<_>, Failure>>()?;
        Ok(Targets { reports, console, files, started: vec![false; reports.len()] })
    }

    /// Writes what stands before the first file.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        self.each(|report, _| report.begin())
    }

    /// Writes the pieces of a file.
    pub(super) fn write(&mut self, output: &Output) -> Result<(), Failure> {
        for (index, piece) in output.pieces.iter().enumerate().filter(|(_, piece)| !piece.is_empty()) {
            let started = self.started.get_mut(index).map(|started| std::mem::replace(started, true));
            self.put(index, piece.text(started == Some(false)))?;
        }
        Ok(())
    }

    /// Writes what stands after the last file.
    pub(super) fn end(&mut self, summary: &Summary) -> Result<(), Failure> {
        self.each(|report, _| report.end(summary))?;
        for file in &mut self.files {
            file.flush()?;
        }
        Ok(self.console.finish()?)
    }

    /// Says something that is not part of a report.
    pub(super) fn complain(&mut self, message: &str) {
        self.console.complain(message);
    }

    fn each(&mut self, text: impl Fn(&Report, usize) -> String) -> Result<(), Failure> {
        for (index, report) in self.reports.iter().enumerate() {
            self.put(index, &text(report, index))?;
        }
        Ok(())
    }

    fn put(&mut self, index: usize, text: &str) -> Result<(), Failure> {
        match index.checked_sub(1).and_then(|index| self.files.get_mut(index)) {
            Some(file) => Ok(file.write_all(text.as_bytes())?),
            None => Ok(self.console.write_all(text.as_bytes())?),
        }
    }
}
