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
use crate::report::{Format, ReportRenderer, Statistics, Summary, UnreadPathCounts};
use baseline::NewBaselineAndCheckedFiles;
pub(super) use check::WorkItem;
use check::{FileChecker, FileOutput};
use claims::RunClaims;
use fix::{FixArguments, FixMode};
use fold::FolderFindingLimiter;
use inputs::{FoundInputs, WalkArgs};
use settings::{CheckSettings, CommandLineSettings, InputConfigurations, InputWithSettings};
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

/// The inputs of a run, each with the index of its settings.
struct RunInputs {
    items: Vec<InputWithSettings>,
    not_read: UnreadPathCounts,
    /// The kustomizations around the inputs.
    kustomizations: Vec<PathBuf>,
}

impl RunInputs {
    /// Returns the manifests to read; Markdown files, which are checked as excerpts, are left out.
    fn manifest_inputs(&self) -> impl Iterator<Item = &Input> {
        self.items.iter().filter_map(|work| work.item.manifest_input())
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
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let format = self.stdout_format_allowed_with_statistics()?;
        let mode = self.fix_mode()?;
        let found = self.find_inputs(console)?;
        let mut configurations = InputConfigurations::new(&self.config)?;
        let work = assign_settings_and_dedup_if_fixing(found, &mut configurations, mode.is_some())?;
        let settings = self.read_settings(&mut configurations, console)?;
        let baselines = NewBaselineAndCheckedFiles::new(self.write_baseline.as_deref(), &self.paths)?;
        let lacks_labels = settings.iter().any(|settings| settings.configured.lacks_namespace_labels());
        let namespaces =
            lacks_labels.then(|| namespaces::collect_from_readable_inputs(work.manifest_inputs())).flatten();
        let reads_stdin = work.manifest_inputs().any(|input| *input == Input::Stdin);
        let is_on_stderr = mode.is_some_and(|mode| mode.diff || reads_stdin);
        let reports = self.reports(format, &settings, is_on_stderr, console);
        let (now, baseline_folder) = (self.clock.now(), baselines.folder());
        let state = RunOutput {
            targets: self.open_targets(&reports, is_on_stderr, console)?,
            baselines,
            progress: ProgressBar::with_total(work.items.len()),
            counted_files: UniqueFiles::default(),
            summary: Summary { not_read: work.not_read, ..Summary::default() },
            statistics: Statistics::default(),
            tally: ExitCounts::default(),
        };
        let checker = FileChecker {
            settings: &settings,
            namespaces: namespaces.as_ref(),
            claims: &RunClaims::new(&work.items, &work.kustomizations),
            now: &now,
            new_baseline: baseline_folder.as_deref(),
            reports: &reports,
            limit: self.max_file,
            fixes: mode,
        };
        let checked = check_all_and_write_reports(&work.items, &checker, state)?;
        self.finish_run(checked, mode, console)
    }

    /// Returns the mode of `--fix` and `--diff`; `None` without them.
    fn fix_mode(&self) -> Result<Option<FixMode>, Failure> {
        if self.fixes.unsafe_fixes && self.fixes.mode().is_none() {
            return Err(Failure::Usage("--unsafe-fixes requires --fix or --diff".to_owned()));
        }
        Ok(self.fixes.mode())
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

    /// Reads the configurations, policies, namespaces and the state of the cluster that the inputs are checked
    /// with.
    fn read_settings<'c>(
        &self,
        configurations: &'c mut InputConfigurations,
        console: &mut Console,
    ) -> Result<Vec<CheckSettings<'c>>, Failure> {
        let state = state::read_snapshot(&self.state, console)?;
        let given = CommandLineSettings {
            engine: &self.engine,
            fail_on: self.exit.fail_on.fail_on,
            levels: &self.config.levels,
            namespaces: self.namespaces.as_ref(),
            baseline: self.baseline.as_deref(),
            is_writing_baseline: self.write_baseline.is_some(),
        };
        configurations.load_settings(given, state.as_ref())
    }

    /// Opens the destinations of the reports.
    fn open_targets<'r>(
        &self,
        reports: &'r [ReportRenderer],
        is_on_stderr: bool,
        console: &'r mut Console,
    ) -> Result<ReportTargets<'r>, Failure> {
        let mut targets = ReportTargets::open(reports, &self.output_file, console)?;
        if is_on_stderr {
            targets.is_on_stderr = true;
        } else if reports.first().is_some_and(|report| report.foldable) {
            targets.folds = Some(FolderFindingLimiter::new(&self.paths));
        }
        Ok(targets)
    }

    /// Writes the new baseline, and returns the counts for the exit code.
    fn finish_run(
        &self,
        (baselines, summary, mut tally): (NewBaselineAndCheckedFiles<'_>, Summary, ExitCounts),
        mode: Option<FixMode>,
        console: &mut Console,
    ) -> Result<ExitCounts, Failure> {
        baselines.write_baseline(&summary, console)?;
        tally.denied = summary.denied;
        tally.warned = summary.warned;
        tally.unreadable = summary.unreadable;
        if self.walk.require_objects && summary.checked == 0 {
            console.error("no objects were checked, but --require-objects is set");
            tally.unreadable += 1;
        }
        tally.unfixed = if mode.is_some_and(|mode| mode.diff) { summary.fixed } else { 0 };
        Ok(self.exit.apply_exit_flags(tally))
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
        match format {
            Format::Text | Format::Json => Ok(format),
            _ if self.statistics => Err(Failure::Usage(format!(
                "--statistics is not available with `-o {}`; use `-o text` or `-o json`",
                format.name()
            ))),
            _ => Ok(format),
        }
    }

    /// Returns the requested reports: first the one that is printed, to stderr if `is_on_stderr` is set; then those of
    /// `--output-file`.
    fn reports(
        &self,
        first: Format,
        settings: &[CheckSettings<'_>],
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

/// Assigns its settings to each input. If fixes are written, further paths to the same file are left out.
fn assign_settings_and_dedup_if_fixing(
    found: FoundInputs,
    configurations: &mut InputConfigurations,
    is_fixing: bool,
) -> Result<RunInputs, Failure> {
    let FoundInputs { work, mut not_read, kustomizations, .. } = found;
    let (mut items, excluded) = configurations.assign_settings_and_count_excluded(work)?;
    if is_fixing {
        let mut once = UniqueFiles::default();
        items.retain(|work| once.insert_path(work.item.path()));
    }
    not_read.excluded += excluded;
    Ok(RunInputs { items, not_read, kustomizations })
}

/// Checks all inputs, and writes the reports. Returns the baseline to write, the summary and the counts for the
/// exit code.
fn check_all_and_write_reports<'b>(
    work: &[InputWithSettings],
    checker: &FileChecker<'_>,
    mut state: RunOutput<'_, 'b>,
) -> Result<(NewBaselineAndCheckedFiles<'b>, Summary, ExitCounts), Failure> {
    state.targets.write_headers()?;
    order::run_in_order(
        work,
        |work| checker.fix_if_requested_and_check_input(work),
        |event| state.handle_event(event),
    )?;
    state.progress.erase_bar();
    let RunOutput { mut targets, baselines, mut summary, statistics, tally, .. } = state;
    summary.stale = summary.stale.saturating_add(baselines.count_findings_in_missing_files(checker.settings));
    targets.write_footers(&summary, &statistics)?;
    Ok((baselines, summary, tally))
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
