//! The destinations of reports: stdout, and the files of `--output-file`.
//!
//! Invariant: a closed pipe affects only its own report: not the other reports, not the exit code.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use super::super::console::{Console, IgnoreBrokenPipe};
use super::super::outcome::Failure;
use super::check::FileOutput;
use super::fold::FolderFindingLimiter;
use crate::config::{Baseline, MAX_BASELINE_BYTES};
use crate::files;
use crate::report::{Format, ReportRenderer, Statistics, Summary};
use tollgate_document::doc::Value;
use tollgate_document::source::documents;

/// The value of `--output-file`: a report format and the file to write to.
#[derive(Clone, Debug)]
pub(super) struct FileTarget {
    pub(super) format: Format,
    pub(super) path: PathBuf,
}

impl FileTarget {
    /// True if the report would be written to this path. Always false for a device such as /dev/stderr, which accepts
    /// any number of reports.
    pub(super) fn writes_to(&self, path: &Path) -> bool {
        let is_device = std::fs::metadata(&self.path).is_ok_and(|meta| !meta.is_file());
        let real = |path: &Path| std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).ok();
        !is_device && real(&self.path) == real(path)
    }

    /// True if the path has a source file (YAML, a manifest or a baseline), and not the report of an earlier run.
    pub(super) fn would_overwrite_source(&self) -> bool {
        let size =
            std::fs::metadata(&self.path).map_or(0, |meta| if meta.is_file() { meta.len() } else { 0 });
        if size == 0 {
            return false;
        }
        let is_yaml = self.path.extension().is_some_and(|end| end == "yaml" || end == "yml");
        let Some(text) = files::read_lossy(&self.path, MAX_BASELINE_BYTES) else { return is_yaml };
        let has_type = |value: Value<'_>| {
            !value.get("apiVersion").str().is_empty() && !value.get("kind").str().is_empty()
        };
        let is_manifest = || {
            documents(&text).flatten().any(|document| {
                let root = document.doc.root();
                has_type(root) || root.items().any(has_type)
            })
        };
        is_yaml || Baseline::is_baseline(&text) || text.contains("apiVersion") && is_manifest()
    }
}

/// Parses the value of `--output-file`, `FORMAT=PATH`.
pub(super) fn parse_file_target(text: &str) -> Result<FileTarget, String> {
    let names = Format::ALL.map(Format::name).join(", ");
    let (name, path) = text
        .split_once('=')
        .ok_or_else(|| format!("expected FORMAT=PATH, where FORMAT is one of {names}"))?;
    let format = Format::parse(name).ok_or_else(|| format!("unknown format `{name}`; use one of {names}"))?;
    if path.is_empty() {
        return Err("expected a path after `=`".to_owned());
    }
    if path == "-" {
        return Err(format!("expected a path after `=`; for stdout, use `-o {name}`"));
    }
    Ok(FileTarget { format, path: PathBuf::from(path) })
}

/// The open destinations of all reports; the first report goes to stdout.
#[derive(Debug)]
pub(super) struct ReportTargets<'r> {
    reports: &'r [ReportRenderer],
    pub(super) console: &'r mut Console,
    files: Vec<BufWriter<IgnoreBrokenPipe<File>>>,
    /// For each report, whether a part was written.
    started: Vec<bool>,
    /// True if the first report goes to stderr, because stdout contains patches or fixed texts.
    is_on_stderr: bool,
    /// Folds the first report; `None` if it is shown whole.
    folds: Option<FolderFindingLimiter>,
}

impl<'r> ReportTargets<'r> {
    /// Creates the files. Failing to create a file is a usage error, and nothing is checked.
    ///
    /// Creating a file truncates it, so inputs must have been compared with [`FileTarget::writes_to`] before.
    pub(super) fn open(
        reports: &'r [ReportRenderer],
        targets: &[FileTarget],
        folds: Option<FolderFindingLimiter>,
        is_on_stderr: bool,
        console: &'r mut Console,
    ) -> Result<ReportTargets<'r>, Failure> {
        for (position, target) in targets.iter().enumerate() {
            if targets.iter().skip(position + 1).any(|other| other.writes_to(&target.path)) {
                let path = target.path.display();
                return Err(Failure::Usage(format!("--output-file {path}: two reports cannot share a file")));
            }
        }
        let create = |target: &FileTarget| {
            let file = File::create(&target.path);
            file.map(|file| BufWriter::new(IgnoreBrokenPipe::new(file))).map_err(|error| {
                let (path, reason) = (target.path.display(), files::io_reason(&error));
                Failure::Usage(format!("--output-file {path}: {reason}"))
            })
        };
        let files = targets.iter().map(create).collect::<Result<Vec<_>, Failure>>()?;
        let started = vec![false; reports.len()];
        Ok(ReportTargets { reports, console, files, started, is_on_stderr, folds })
    }

    /// Writes the header of each report.
    pub(super) fn write_headers(&mut self) -> Result<(), Failure> {
        self.write_each(ReportRenderer::header)
    }

    /// Writes the part of a file to each report.
    pub(super) fn write_file_part(&mut self, output: &FileOutput) -> Result<(), Failure> {
        for (index, piece) in output.pieces.iter().enumerate().filter(|(_, piece)| !piece.is_empty()) {
            let started = self.started.get_mut(index).map(|started| std::mem::replace(started, true));
            match self.folds.as_mut().filter(|_| index == 0) {
                Some(folds) => {
                    let text = folds.add_file(output.walked_folder(), piece);
                    self.write_to(index, &text)?;
                }
                None => self.write_to(index, piece.text_without_first_separator(started == Some(false)))?,
            }
        }
        Ok(())
    }

    /// Writes the footer of each report.
    pub(super) fn write_footers(
        &mut self,
        summary: &Summary,
        statistics: &Statistics,
    ) -> Result<(), Failure> {
        let (rest, folded) = self.folds.take().map(FolderFindingLimiter::finish_report).unwrap_or_default();
        self.write_to(0, &rest)?;
        self.write_each(|report| report.footer(summary, statistics))?;
        self.write_to(0, &folded)?;
        for file in &mut self.files {
            file.flush()?;
        }
        Ok(self.console.flush_stdout()?)
    }

    fn write_each(&mut self, text: impl Fn(&ReportRenderer) -> String) -> Result<(), Failure> {
        for (index, report) in self.reports.iter().enumerate() {
            self.write_to(index, &text(report))?;
        }
        Ok(())
    }

    fn write_to(&mut self, index: usize, text: &str) -> Result<(), Failure> {
        match index.checked_sub(1).and_then(|index| self.files.get_mut(index)) {
            Some(file) => Ok(file.write_all(text.as_bytes())?),
            None if self.is_on_stderr => {
                self.console.write_stderr(text);
                Ok(())
            }
            None => Ok(self.console.write_all(text.as_bytes())?),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::parse_file_target;

    #[test]
    fn a_target_is_a_format_and_a_path() {
        let target = parse_file_target("sarif=out/a=b.sarif").expect("a target");
        assert_eq!((target.format.name(), target.path.as_path()), ("sarif", Path::new("out/a=b.sarif")));
        for (text, expected) in [
            (
                "sarif",
                "expected FORMAT=PATH, where FORMAT is one of text, concise, json, sarif, junit, github, gitlab",
            ),
            ("xml=a", "unknown format `xml`; use one of text, concise, json, sarif, junit, github, gitlab"),
            ("json=", "expected a path after `=`"),
            ("json=-", "expected a path after `=`; for stdout, use `-o json`"),
        ] {
            assert_eq!(parse_file_target(text).err().as_deref(), Some(expected));
        }
        assert!(parse_file_target("json=./a").expect("a target").writes_to(Path::new("a")));
        assert!(
            !parse_file_target("json=/dev/null").expect("a target").writes_to(Path::new("/dev/null")),
            "a device"
        );
    }
}
