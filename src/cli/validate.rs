//! `tollgate validate`: checks files, folders and stdin as the API server would on creation.
//!
//! Files are checked in parallel and reported in order. Only the rendered report and the counts of a file are kept, so
//! memory does not grow with the number of files.

mod baseline;
mod check;
mod claims;
mod fix;
mod fold;
pub(super) mod inputs;
mod layout;
mod order;
mod settings;
mod target;

use std::collections::HashSet;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;

use super::config::ConfigArgs;
use super::console::{Console, is_ci};
use super::namespaces;
use super::outcome::{ExitCounts, Failure};
use super::progress::ProgressBar;
use super::shared::{EngineArgs, ExitArgs};
use super::{clock, state, units};
use crate::files::{DEFAULT_MAX_FILE_BYTES, Input};
use crate::report::{Format, ReportRenderer, Statistics, Summary};
use baseline::NewBaselineAndCheckedFiles;
pub(super) use check::WorkItem;
use check::{FileChecker, FileOutput};
use claims::RunClaims;
use fix::FixArguments;
use fold::FolderFindingLimiter;
use inputs::{FoundInputs, WalkArgs};
use settings::{CheckSettings, InputConfigurations, InputWithSettings};
use target::{FileTarget, ReportTargets};

/// Check manifests in files, folders or stdin
#[derive(Debug, clap::Args)]
#[command(after_help = super::SHORT_EXIT_CODES, after_long_help = super::EXIT_CODES)]
pub(super) struct Arguments {
    /// Files, folders, or `-` for stdin (default: stdin)
    ///
    /// In folders, .yaml, .yml and .json files with Kubernetes objects are checked; hidden files and files excluded by
    /// .gitignore or .ignore are skipped. In .md files, code blocks are checked; in folders, only with --markdown.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    walk: WalkArgs,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", env = "TOLLGATE_OUTPUT", default_value = "text")]
    #[arg(value_parser = PossibleValuesParser::new(Format::ALL.map(Format::name)))]
    output: String,

    /// Print the number of findings per rule instead of the findings; requires `-o text` or `-o json`
    #[arg(long)]
    #[arg(hide_short_help = true)]
    statistics: bool,

    /// Also write a report in this format to this file; can be repeated
    #[arg(long, value_name = "FORMAT=PATH", value_parser = target::parse_file_target)]
    #[arg(hide_short_help = true)]
    output_file: Vec<FileTarget>,

    #[command(flatten)]
    config: ConfigArgs,

    /// Baseline file created by --write-baseline; findings in this file are counted but not reported
    #[arg(long, value_name = "FILE", env = "TOLLGATE_BASELINE", help_heading = "Configuration")]
    #[arg(hide_short_help = true)]
    baseline: Option<PathBuf>,

    /// Write all lint findings to a baseline file
    #[arg(long, value_name = "FILE", help_heading = "Configuration")]
    #[arg(hide_short_help = true)]
    write_baseline: Option<PathBuf>,

    /// Maximum size of an input file, in bytes
    #[arg(long, value_name = "BYTES", env = "TOLLGATE_MAX_FILE", default_value_t = DEFAULT_MAX_FILE_BYTES)]
    #[arg(hide_short_help = true, value_parser = units::parse_file_size)]
    max_file: u64,

    /// YAML or JSON file with Namespace objects
    ///
    /// Namespaces that are not in the file are treated as having no labels other than kubernetes.io/metadata.name.
    #[arg(long, value_name = "FILE", env = "TOLLGATE_NAMESPACES")]
    #[arg(hide_short_help = true)]
    namespaces: Option<PathBuf>,

    /// File or folder with the cluster state; can be repeated
    ///
    /// Used to report the impact of DeviceTaintRules and to enforce maxImpact and maxTainted in policies.
    #[arg(long, value_name = "DUMP", env = "TOLLGATE_STATE")]
    state: Vec<PathBuf>,

    #[command(flatten)]
    clock: clock::ClockArgs,

    #[command(flatten)]
    fixes: FixArguments,

    #[command(flatten)]
    engine: EngineArgs,

    #[command(flatten)]
    exit: ExitArgs,
}

/// The files that were fixed or counted, to do that once for each: overlapping arguments and links lead to several
/// paths to one file.
#[derive(Debug, Default)]
struct UniqueFiles(HashSet<PathBuf>);

impl UniqueFiles {
    /// Adds a path. Returns true unless another path to the same file was added before. Stdin is always the
    /// first.
    fn insert_path(&mut self, path: Option<&Path>) -> bool {
        let real = path.and_then(|path| std::fs::canonicalize(path).ok());
        real.is_none_or(|real| self.0.insert(real))
    }
}

/// The output and totals of a run so far.
struct RunOutput<'r, 'b> {
    targets: ReportTargets<'r>,
    baselines: NewBaselineAndCheckedFiles<'b>,
    progress: ProgressBar,
    /// Files whose fixable findings were counted, to count each file once.
    counted_files: UniqueFiles,
    summary: Summary,
    statistics: Statistics,
    tally: ExitCounts,
}

impl RunOutput<'_, '_> {
    /// Writes and counts the result of the next input, or shows progress while there is none.
    fn handle_event(
        &mut self,
        event: order::DeliveryEvent<'_, InputWithSettings, FileOutput>,
    ) -> Result<(), Failure> {
        match event {
            order::DeliveryEvent::Waiting => {
                self.progress.draw_bar_if_due(format_args!("files, {} invalid", self.summary.invalid));
                Ok(())
            }
            order::DeliveryEvent::Done(output) => self.count_and_write_output(output),
            order::DeliveryEvent::Crashed(work) => {
                self.tally.crashed += 1;
                self.progress.erase_bar();
                let name = work.item.name();
                self.targets
                    .console
                    .error(&format!("internal error while checking {name}; please report it"));
                Ok(())
            }
        }
    }

    fn count_and_write_output(&mut self, mut output: FileOutput) -> Result<(), Failure> {
        let is_fixable = output.summary.fixable + output.summary.fixable_unsafely > 0;
        if is_fixable && !self.counted_files.insert_path(output.path.as_deref()) {
            (output.summary.fixable, output.summary.fixable_unsafely) = (0, 0);
        }
        self.summary.merge(&output.summary);
        self.statistics.merge(&output.statistics);
        self.baselines.add_checked_file(output.baseline.take());
        if output.fails_on_warn {
            self.tally.failing_warnings += output.summary.warned;
        }
        self.progress.count_item();
        if output.prints_anything() {
            self.progress.erase_bar();
        }
        for message in &output.errors {
            self.targets.console.error(message);
        }
        self.targets.console.write_data_sanitized_for_terminal(&output.printed)?;
        self.targets.write_file_part(&output)
    }

    /// Writes the ends of the reports and the new baseline. Returns the counts for the exit code.
    fn finish(
        mut self,
        arguments: &Arguments,
        settings: &[CheckSettings],
        is_diff: bool,
    ) -> Result<ExitCounts, Failure> {
        self.progress.erase_bar();
        let RunOutput { mut targets, baselines, mut summary, statistics, mut tally, .. } = self;
        summary.stale = summary.stale.saturating_add(baselines.count_findings_in_missing_files(settings));
        targets.write_footers(&summary, &statistics)?;
        baselines.write_baseline(&summary, targets.console)?;
        tally.denied = summary.denied;
        tally.warned = summary.warned;
        tally.unreadable = summary.unreadable;
        if arguments.walk.require_objects && summary.checked == 0 {
            targets.console.error("no objects were checked, but --require-objects is set");
            tally.unreadable += 1;
        }
        tally.unfixed = if is_diff { summary.fixed } else { 0 };
        Ok(arguments.exit.apply_exit_flags(tally))
    }
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let format = self.stdout_format_allowed_with_statistics()?;
        let mode = self.fixes.mode()?;
        let FoundInputs { work, mut not_read, kustomizations, .. } = self.find_inputs(console)?;
        let mut configurations = InputConfigurations::new(&self.config)?;
        let (mut work, excluded) = configurations.assign_settings_and_count_excluded(work)?;
        not_read.excluded += excluded;
        // A file is fixed once, whatever the number of paths to it.
        let mut once = UniqueFiles::default();
        work.retain(|work| mode.is_none() || once.insert_path(work.item.path()));
        let state = state::read_snapshot(&self.state, console)?;
        let settings = configurations.load_settings(self, state.as_ref())?;
        let baselines = NewBaselineAndCheckedFiles::new(self.write_baseline.as_deref(), &self.paths)?;
        let lacks_labels = settings.iter().any(|settings| settings.configured.lacks_namespace_labels());
        let manifests = || work.iter().filter_map(|work| work.item.manifest_input());
        let namespaces =
            lacks_labels.then(|| namespaces::collect_from_readable_inputs(manifests())).flatten();
        let reads_stdin = manifests().any(|input| *input == Input::Stdin);
        let is_diff = mode.is_some_and(|mode| mode.diff);
        let is_on_stderr = is_diff || mode.is_some() && reads_stdin;
        let reports = self.reports(format, &settings, is_on_stderr, console);
        let folds = reports.first().filter(|report| report.foldable);
        let folds = folds.map(|_| FolderFindingLimiter::new(&self.paths));
        let (now, baseline_folder) = (self.clock.now(), baselines.folder());
        let mut output = RunOutput {
            targets: ReportTargets::open(&reports, &self.output_file, folds, is_on_stderr, console)?,
            baselines,
            progress: ProgressBar::with_total(work.len()),
            counted_files: UniqueFiles::default(),
            summary: Summary { not_read, ..Summary::default() },
            statistics: Statistics::default(),
            tally: ExitCounts::default(),
        };
        let checker = FileChecker {
            settings: &settings,
            namespaces: namespaces.as_ref(),
            claims: &RunClaims::new(&work, &kustomizations),
            now: &now,
            new_baseline: baseline_folder.as_deref(),
            reports: &reports,
            limit: self.max_file,
            fixes: mode,
        };
        output.targets.write_headers()?;
        order::run_in_order(
            &work,
            |work| checker.fix_if_requested_and_check_input(work),
            |event| output.handle_event(event),
        )?;
        output.finish(self, &settings, is_diff)
    }

    /// Searches for the inputs, except reports that this run overwrites.
    fn find_inputs(&self, console: &mut Console) -> Result<FoundInputs, Failure> {
        let paths = paths_or_stdin(&self.paths)?;
        let mut found = inputs::find_inputs(&paths, &self.walk.walk_options()?, console);
        if paths.len() > 1 {
            found.keep_each_file_once();
        }
        let mut found = found.with_markdown_read_or_searched();
        self.refuse_overwrites_and_exclude_reports(&mut found.work)?;
        Ok(found)
    }

    /// Refuses `--output-file` if it would overwrite a source file, and removes reports of earlier runs from the
    /// inputs.
    fn refuse_overwrites_and_exclude_reports(&self, work: &mut Vec<WorkItem>) -> Result<(), Failure> {
        for target in &self.output_file {
            if let Some(path) = self.paths.iter().find(|path| target.writes_to(path)) {
                let path = path.display();
                return Err(Failure::Usage(format!("--output-file {path}: would overwrite an input file")));
            }
            let path = target.path.display();
            let named = [&self.config.config, &self.baseline, &self.namespaces];
            let given = named.into_iter().flatten().chain(&self.state);
            if target.would_overwrite_source() || given.into_iter().any(|path| target.writes_to(path)) {
                let reason = "this file is not a report; choose another name, or delete the file first";
                return Err(Failure::Usage(format!("--output-file {path}: {reason}")));
            }
            if self.write_baseline.as_deref().is_some_and(|baseline| target.writes_to(baseline)) {
                return Err(Failure::Usage(format!(
                    "--output-file {path}: the baseline needs a file of its own"
                )));
            }
            // Names first: system calls for fifty thousand files take long.
            let is_report =
                |path: &Path| path.file_name() == target.path.file_name() && target.writes_to(path);
            work.retain(|work| !matches!(work, WorkItem::Read(Input::File(path), _) if is_report(path)));
        }
        Ok(())
    }

    /// Returns the output format of stdout; an error if it cannot show statistics.
    fn stdout_format_allowed_with_statistics(&self) -> Result<Format, Failure> {
        let format = Format::parse(&self.output).unwrap_or(Format::Text);
        if self.statistics && !matches!(format, Format::Text | Format::Json) {
            let hint = "use `-o text` or `-o json`";
            let message = format!("--statistics is not available with `-o {}`; {hint}", format.name());
            return Err(Failure::Usage(message));
        }
        Ok(format)
    }

    /// Returns the requested reports: first the one that is printed, to stderr if `is_on_stderr` is set; then those of
    /// `--output-file`.
    fn reports(
        &self,
        first: Format,
        settings: &[CheckSettings],
        is_on_stderr: bool,
        console: &Console,
    ) -> Vec<ReportRenderer> {
        let mut profiles: Vec<&'static str> = Vec::new();
        for profile in settings.iter().flat_map(|settings| &settings.configured.engine.profiles) {
            if !profiles.contains(&profile.name) {
                profiles.push(profile.name);
            }
        }
        let report = |format| ReportRenderer {
            format,
            profiles: profiles.clone(),
            styled: false,
            quiet: Console::is_quiet(),
            statistics: false,
            show_skipped: self.walk.show_skipped,
            of_cluster: false,
            foldable: false,
        };
        let mut first =
            ReportRenderer { styled: console.styled, statistics: self.statistics, ..report(first) };
        first.foldable = !is_on_stderr && is_read_on_terminal(&first);
        std::iter::once(first).chain(self.output_file.iter().map(|target| report(target.format))).collect()
    }
}

/// True if a person reads the report on a terminal, and can run the command again to see folded findings. In CI
/// the log is read later, so nothing is folded.
fn is_read_on_terminal(report: &ReportRenderer) -> bool {
    report.format == Format::Text && !report.statistics && Console::is_stdout_terminal() && !is_ci()
}

/// Returns the given paths; without any, stdin (`-`), or an error if that is a terminal.
pub(super) fn paths_or_stdin(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    if !paths.is_empty() {
        return Ok(paths.to_vec());
    }
    if std::io::stdin().is_terminal() {
        return Err(Failure::Usage(
            "no input; specify files or folders, or pipe manifests to stdin".to_owned(),
        ));
    }
    Ok(vec![PathBuf::from("-")])
}
