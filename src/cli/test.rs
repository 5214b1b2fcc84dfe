//! `tollgate test`: runs policy tests.
//!
//! A `*.test.yaml` names policies and lists cases: an object or an AdmissionReview, the user, and the expected
//! decision. Cases go through `engine::Review::decide` like requests, so that results are the same as in a cluster.

mod case;

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::console::Console;
use super::outcome::{ExitCounts, Failure};
use super::policies;
use super::shared::ExitZeroArgs;
use crate::config::scalar_text_as_written;
use crate::files::{self, DEFAULT_MAX_FILE_BYTES, Input};
use crate::report::junit_escape;
use case::{CaseOutcome, TestFile};
use tollgate_api::profile::Profile;
use tollgate_document::doc::Value;
use tollgate_document::source::{Document, InputError, LineIndex, documents};
use tollgate_engine::policy::{self, PolicyFile, PolicySet};
use tollgate_formats::sanitize;

/// Run policy tests (`*.test.yaml`)
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Test files, or folders to search for test files
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,

    #[command(flatten)]
    exit: ExitZeroArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// Human-readable text
    Text,
    /// JUnit XML, for CI
    Junit,
}

/// The file of a policy test case, and the outcome of the case.
type CaseResult = (String, CaseOutcome);

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let found = files::collect(&self.paths);
        if let Some(note) = files::outside_links_note(&found.outside) {
            console.note(&note);
        }
        if let Some(error) = found.errors.first() {
            return Err(Failure::Input(error.to_string()));
        }
        let is_test = |input: &&Input| policy::is_test_file(&input.name());
        let mut results = Vec::new();
        for input in found.inputs.iter().filter(is_test) {
            let file = input.name();
            let text = files::read(input, DEFAULT_MAX_FILE_BYTES)?;
            let is_named = matches!(input, Input::File(path) if self.paths.contains(path));
            if !is_named && is_of_another_tool(&text) {
                console.note(&format!("{file}: skipped, because it has the tests of another tool"));
                continue;
            }
            let tests = TestFile::parse(&file, &text).map_err(Failure::Inputs)?;
            tests.unknown_field_warnings(&file).iter().for_each(|warning| console.warning(warning));
            let set = load_policies(input, &tests)?;
            let outcomes = tests.run(set).map_err(Failure::Input)?;
            results.extend(outcomes.into_iter().map(|outcome| (file.clone(), outcome)));
        }
        if results.is_empty() {
            return Err(Failure::Input("found no *.test.yaml or *.test.yml file with tests".to_owned()));
        }
        let failed = results.iter().filter(|(_, outcome)| outcome.failure.is_some()).count();
        match self.output {
            Format::Text => write_text(console, &results, failed, Console::is_quiet())?,
            Format::Junit => write_junit(console, &results, failed)?,
        }
        Ok(self.exit.apply_exit_zero(ExitCounts { denied: failed, ..ExitCounts::default() }))
    }
}

/// True if a file that was found in a folder has the tests of another tool.
fn is_of_another_tool(text: &str) -> bool {
    let first = documents(text).next().and_then(Result::ok);
    first.is_some_and(|document| policy::is_test_of_another_tool(document.doc.root()))
}

/// Loads the policies for a test file, from the paths of [`policy_paths`].
fn load_policies(input: &Input, tests: &TestFile<'_>) -> Result<PolicySet, Failure> {
    // The path itself and not its name, which is not UTF-8 on every file system.
    let path = match input {
        Input::File(path) => path.as_path(),
        Input::Stdin => Path::new(""),
    };
    let paths = policy_paths(path, tests.policies().as_deref());
    let mut texts: Vec<PolicyFile> = policies::read_files(&paths)?;
    texts.dedup();
    let set = policies::compile_and_print_warnings(&texts, &policies::read_referenced, &[])?;
    match policies::no_policies_error(&paths, &texts, &set) {
        Some(error) => Err(Failure::Input(error)),
        None => Ok(set),
    }
}

/// Returns the paths of the policies for a test file: those that it names, or `a.yaml` for `a.test.yaml`.
fn policy_paths(path: &Path, named: Option<&[String]>) -> Vec<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new(""));
    // Removes `.yaml`, then replaces `.test`.
    let beside = |extension: &OsStr| path.with_extension("").with_extension(extension);
    match named {
        Some(names) => names.iter().map(|name| folder.join(name)).collect(),
        None => path.extension().map(beside).into_iter().collect(),
    }
}

/// Returns the errors that would keep a test file from running: wrong fields, policies that do not exist, an
/// unknown profile. Does not run the tests.
pub(super) fn errors_in_test_file(
    file: &str,
    document: &Document<'_>,
    lines: &LineIndex<'_>,
) -> Vec<InputError> {
    let mut errors = case::errors_of_fields(file, document, lines);
    if !errors.is_empty() {
        return errors;
    }
    let root = document.doc.root();
    let mut add = |at: Value<'_>, message: String| {
        errors.push(InputError::at(file, lines, document.offset + at.span().start as usize, message));
    };
    let profile = root.get("kubernetes");
    let name = scalar_text_as_written(profile);
    if profile.exists() && Profile::from_name_or_version(name).is_none() {
        add(profile, format!("kubernetes: unknown profile `{name}`"));
    }
    let named = root.get("policies");
    for item in named.items() {
        let paths = policy_paths(Path::new(file), Some(&[item.str().to_owned()]));
        if paths.iter().any(|path| !path.exists()) {
            add(item, format!("policies: {}: no such file or folder", item.str()));
        }
    }
    for path in policy_paths(Path::new(file), None).iter().filter(|path| !named.exists() && !path.exists()) {
        add(root, format!("no such file: {}; list the policy files in `policies`", path.display()));
    }
    errors
}

fn write_text(
    console: &mut Console,
    results: &[CaseResult],
    failed: usize,
    quiet: bool,
) -> Result<(), Failure> {
    for (file, outcome) in results {
        let (file, name) = (sanitize::sanitize_as_line(file), sanitize::sanitize_as_line(&outcome.name));
        match &outcome.failure {
            None if quiet => {}
            None => writeln!(console, "ok    {file}: {name}")?,
            Some(failure) => {
                writeln!(console, "FAIL  {file}:{}: {name}", outcome.line)?;
                for line in sanitize::sanitize_multiline_text(failure).lines() {
                    writeln!(console, "      {line}")?;
                }
            }
        }
    }
    if !quiet {
        writeln!(console, "{} passed, {failed} failed", results.len() - failed)?;
    }
    Ok(())
}

fn write_junit(console: &mut Console, results: &[CaseResult], failed: usize) -> Result<(), Failure> {
    writeln!(console, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        console,
        "<testsuites name=\"tollgate test\" tests=\"{}\" failures=\"{failed}\">",
        results.len()
    )?;
    for suite in results.chunk_by(|(one, _), (other, _)| one == other) {
        let failures = suite.iter().filter(|(_, outcome)| outcome.failure.is_some()).count();
        let file = junit_escape(suite.first().map_or("", |(file, _)| file.as_str()));
        writeln!(console, "  <testsuite name=\"{file}\" tests=\"{}\" failures=\"{failures}\">", suite.len())?;
        for (_, outcome) in suite {
            let (name, line) = (junit_escape(&outcome.name), outcome.line);
            write!(
                console,
                "    <testcase name=\"{name}\" classname=\"{file}\" file=\"{file}\" line=\"{line}\""
            )?;
            match &outcome.failure {
                None => writeln!(console, "/>")?,
                Some(failure) => {
                    let text = junit_escape(failure);
                    writeln!(console, "><failure message=\"{text}\"/></testcase>")?;
                }
            }
        }
        writeln!(console, "  </testsuite>")?;
    }
    writeln!(console, "</testsuites>")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::case::TestFile;
    use crate::files::{self, DEFAULT_MAX_FILE_BYTES, Input};
    use tollgate_engine::policy::{self, Acceptance, PolicyResource, PolicySet};

    /// The tests in the repository pass, too, if the policies are custom resources.
    #[test]
    fn tests_pass_with_policies_as_resources() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = files::collect(&[root.join("policies"), root.join("examples")]);
        let mut count = 0;
        for input in found.inputs.iter().filter(|input| policy::is_test_file(&input.name())) {
            let text = files::read(input, DEFAULT_MAX_FILE_BYTES).unwrap();
            let tests = TestFile::parse(&input.name(), &text).unwrap();
            let Ok(set) = super::load_policies(input, &tests) else { panic!("{}", input.name()) };
            for outcome in tests.run(as_resources(&set, input)).unwrap() {
                // A message names a policy in a file by its name and place, and a resource by its kind and name.
                let is_name =
                    |failure: &str| failure.starts_with("expected a message") && failure.contains("policy ");
                let failure = outcome.failure.filter(|failure| !is_name(failure));
                assert_eq!(failure, None, "{}: {}", input.name(), outcome.name);
                count += 1;
            }
        }
        assert!(count >= 50, "{count}");
    }

    fn as_resources(set: &PolicySet, input: &Input) -> PolicySet {
        let imported = set.file_policies_to_resources();
        let resources: Vec<PolicyResource> =
            imported.into_iter().map(|policy| PolicyResource::new(policy.kind, policy.json)).collect();
        let set =
            PolicySet::load_with_resources(&[], &|_| Err("no files".to_owned()), &resources, None).unwrap();
        for state in set.policy_resource_states() {
            assert_eq!(state.acceptance, Acceptance::Accepted, "{}: {}", input.name(), state.name);
        }
        set
    }
}
