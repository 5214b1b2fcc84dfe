//! `tollgate validate`: files, folders and stdin, judged as the API server would judge them on creation.
//!
//! Files are judged in parallel and reported in order. A file leaves behind its piece of each report and its counts,
//! so memory does not grow with the number of files.

mod judge;
mod order;
mod progress;
mod target;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;

use super::console::Console;
use super::namespaces;
use super::outcome::{Failure, Tally};
use super::shared::{Shared, Standard};
use super::{clock, state};
use crate::files::{self, Input, MAX_FILE};
use crate::report::{Format, Report, Summary};
use judge::{Judge, Work};
use progress::Progress;
use target::{FileTarget, Targets};

/// Judge manifests: files, folders, stdin
#[derive(Debug, clap::Args)]
#[command(after_help = super::EXIT_CODES)]
pub(super) struct Arguments {
    /// Files, folders (searched for .yaml, .yml and .json), or `-` for stdin
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// How to report on stdout
    #[arg(short, long, value_name = "FORMAT", env = "TOLLGATE_OUTPUT", default_value = "text")]
    #[arg(value_parser = PossibleValuesParser::new(Format::ALL.map(Format::name)))]
    output: String,

    /// Report into a file as well; may be given more than once
    #[arg(long, value_name = "FORMAT=PATH", value_parser = target::parse)]
    output_file: Vec<FileTarget>,

    /// Files larger than this many bytes are refused unread
    #[arg(long, value_name = "BYTES", env = "TOLLGATE_MAX_FILE", default_value_t = MAX_FILE)]
    max_file: u64,

    /// Namespace objects (YAML or JSON); a namespace that is not listed has no labels
    #[arg(long, value_name = "FILE", env = "TOLLGATE_NAMESPACES")]
    namespaces: Option<PathBuf>,

    /// The state of a cluster, to say what DeviceTaintRules will do and to judge maxImpact: files, folders
    #[arg(long, value_name = "DUMP", env = "TOLLGATE_STATE")]
    state: Vec<PathBuf>,

    /// The moment to use as the present one, RFC 3339
    #[arg(long, value_name = "TIME", value_parser = clock::parse)]
    now: Option<String>,
}

impl Arguments {
    pub(super) fn run(&self, shared: &Shared, console: &mut Console) -> Result<Tally, Failure> {
        let mut work = collect(&inputs(&self.paths)?, console);
        self.spare_reports(&mut work)?;
        let engine = state::known(shared.engine(Standard::Offline)?, &self.state, console)?;
        let given = self.namespaces.as_deref().map(namespaces::read).transpose()?;
        let read =
            || work.iter().filter_map(|work| if let Work::Read(input) = work { Some(input) } else { None });
        let namespaces =
            given.or_else(|| engine.policies.needs_labels().then(|| namespaces::among(read())).flatten());
        let now = clock::moment(self.now.as_ref());
        let reports = self.reports(shared, console);
        let mut targets = Targets::open(&reports, &self.output_file, console)?;
        let judge = Judge {
            engine: &engine,
            reports: &reports,
            namespaces: namespaces.as_ref(),
            now: &now,
            limit: self.max_file,
        };
        let mut progress = Progress::of(work.len());
        let mut summary = Summary::default();
        let mut tally = Tally::default();
        targets.begin()?;
        order::in_order(
            &work,
            |work| judge.judge(work),
            |event| match event {
                order::Event::Waiting => {
                    progress.show(&summary);
                    Ok(())
                }
                order::Event::Done(piece) => {
                    summary.merge(&piece.summary);
                    progress.step();
                    if piece.has_text() {
                        progress.hide();
                    }
                    targets.write(&piece)
                }
                order::Event::Crashed(work) => {
                    tally.crashed += 1;
                    progress.hide();
                    targets
                        .complain(&format!("internal error while judging {}: please report it", work.name()));
                    Ok(())
                }
            },
        )?;
        progress.hide();
        targets.end(&summary)?;
        tally.denied = summary.denied;
        tally.warned = summary.warned;
        tally.unreadable = summary.unreadable;
        Ok(tally)
    }

    /// A report must not overwrite what is to be judged. One that a former run left in a folder is no manifest.
    fn spare_reports(&self, work: &mut Vec<Work>) -> Result<(), Failure> {
        for target in &self.output_file {
            if let Some(path) = self.paths.iter().find(|path| target.is(path)) {
                let path = path.display();
                return Err(Failure::Usage(format!("--output-file {path}: would overwrite an input")));
            }
            // Names first: asking the file system about fifty thousand files takes its time.
            let is_report = |path: &Path| path.file_name() == target.path.file_name() && target.is(path);
            work.retain(|work| !matches!(work, Work::Read(Input::File(path)) if is_report(path)));
        }
        Ok(())
    }

    /// The reports asked for; the first one goes to stdout.
    fn reports(&self, shared: &Shared, console: &Console) -> Vec<Report> {
        let profiles: Vec<&'static str> = shared.profiles().iter().map(|profile| profile.name).collect();
        let folder = std::env::current_dir().unwrap_or_default().display().to_string();
        let report =
            |format, styled| Report { format, profiles: profiles.clone(), styled, folder: folder.clone() };
        let first = report(Format::parse(&self.output).unwrap_or(Format::Text), console.styled);
        let others = self.output_file.iter().map(|target| report(target.format, false));
        std::iter::once(first).chain(others).collect()
    }
}

/// What the arguments name, in their order.
fn collect(paths: &[PathBuf], console: &mut Console) -> Vec<Work> {
    let mut work: Vec<Work> = Vec::new();
    for path in paths {
        let found = files::collect(std::slice::from_ref(path));
        if let Some(note) = found.note() {
            console.note(&note);
        }
        // Standard input can be read only once.
        let again = |input: &Input| {
            *input == Input::Stdin && work.iter().any(|work| matches!(work, Work::Read(Input::Stdin)))
        };
        let inputs: Vec<Input> = found.inputs.into_iter().filter(|input| !again(input)).collect();
        work.extend(inputs.into_iter().map(Work::Read));
        work.extend(found.errors.into_iter().map(Work::InputError));
    }
    work
}

/// What to read if nothing is named: stdin, unless a person sits there.
pub(super) fn inputs(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    if !paths.is_empty() {
        return Ok(paths.to_vec());
    }
    if std::io::stdin().is_terminal() {
        return Err(Failure::Usage(
            "nothing to read: name files or folders, or pipe manifests in".to_owned(),
        ));
    }
    Ok(vec![PathBuf::from("-")])
}
