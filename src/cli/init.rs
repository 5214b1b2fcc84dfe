//! `tollgate init`: the files with which a repository starts to use Tollgate.
//!
//! It writes a configuration file, a CI job, a pre-commit hook, and a first policy with its test, after it has shown
//! them. It contacts no cluster and installs nothing.
//!
//! Invariant: no file that exists is changed, and nothing is written outside the folder. What belongs into a file that
//! exists is printed, to be pasted.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::console::{Console, quote_for_shell};
use super::outcome::{ExitCounts, Failure};
use super::shared::{ProfileArg, parse_profile};
use crate::files::{self, DEFAULT_MAX_FILE_BYTES};
use tollgate_api::profile::{ALL, Profile};

/// Add Tollgate to a repository
///
/// Creates .tollgate.yaml, a CI job, a pre-commit hook, and a first policy with its test in tollgate/. Shows the files
/// first, and asks before it creates them. Files that exist are not changed.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Root folder of the repository
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,

    /// Kubernetes releases that the clusters run, such as 1.36 or 1.36,1.37 (default: the newest that Tollgate knows)
    #[arg(long, value_name = "RELEASE", value_delimiter = ',', value_parser = parse_release_except_cluster)]
    kubernetes: Vec<&'static Profile>,

    /// CI system (default: gitlab if the folder contains .gitlab-ci.yml, otherwise github)
    #[arg(long, value_name = "SYSTEM")]
    ci: Option<CiSystem>,

    /// Create the files without asking
    #[arg(long)]
    yes: bool,
}

/// The CI systems for which a job is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum CiSystem {
    Github,
    Gitlab,
    None,
}

/// A file that `tollgate init` creates.
struct NewFile {
    /// Relative to the root folder of the repository.
    path: &'static str,
    text: String,
    /// Advice what to add if the file exists already; `None` if the existing file can stay as it is.
    addition: Option<&'static str>,
}

/// The folder in which `tollgate init` creates the first policy.
const POLICY_FOLDER: &str = "tollgate";
const GITLAB_FILE: &str = ".gitlab-ci.yml";

/// Parses a release for `.tollgate.yaml`, which is committed: it cannot be that of the current cluster.
fn parse_release_except_cluster(text: &str) -> Result<&'static Profile, String> {
    match parse_profile(text)? {
        ProfileArg::Named(profile) => Ok(profile),
        ProfileArg::Cluster => Err("name a release, such as 1.36".to_owned()),
    }
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        if !self.folder.is_dir() {
            let folder = self.folder.display();
            return Err(Failure::Usage(format!("{folder} is not a folder")));
        }
        let (existing, missing): (Vec<NewFile>, Vec<NewFile>) =
            self.starter_files().into_iter().partition(|file| self.file_exists(file));
        if !self.yes {
            for file in &missing {
                console.write_sanitized_text(&format!("{}\n{}\n", file.path, indented(&file.text)))?;
            }
        }
        let is_confirmed = missing.is_empty() || self.confirm_creation(console);
        for file in missing.iter().filter(|_| is_confirmed) {
            self.create_file(file)?;
            console.write_sanitized_text(&format!("created {}\n", file.path))?;
        }
        for file in existing {
            let written = files::read_text(&self.folder.join(file.path), DEFAULT_MAX_FILE_BYTES);
            let lacks_something = written.is_ok_and(|text| text != file.text);
            let addition = file.addition.filter(|_| lacks_something);
            let addition = addition.map(|what| format!("; {what}:\n{}", indented(&file.text)));
            let addition = addition.as_deref().unwrap_or("\n");
            console.write_sanitized_text(&format!("{} exists and is not changed{addition}", file.path))?;
        }
        if is_confirmed {
            self.print_next_steps(console)?;
        }
        Ok(ExitCounts::default())
    }

    /// Returns the starter files for this repository, also those that exist already.
    fn starter_files(&self) -> Vec<NewFile> {
        let own = |path, text: &str, addition| NewFile { path, text: fill_in_template(text), addition };
        let settings = include_str!("init/tollgate.yaml").replace("KUBERNETES", &self.kubernetes_setting());
        let mut files = vec![own(".tollgate.yaml", &settings, Some("add the settings that it lacks"))];
        match self.ci_system() {
            CiSystem::Github => {
                files.push(own(".github/workflows/tollgate.yml", include_str!("init/github.yml"), None));
            }
            CiSystem::Gitlab => {
                let job = include_str!("../../examples/ci/gitlab.yml");
                let job = job.replace("TOLLGATE_TESTS: \"\"", "TOLLGATE_TESTS: tollgate");
                files.push(own(GITLAB_FILE, &job, Some("add the job `tollgate` and its variables")));
            }
            CiSystem::None => {}
        }
        let hook = include_str!("init/pre-commit.yaml");
        files.push(own(".pre-commit-config.yaml", hook, Some("add this hook to `repos`")));
        let policy = include_str!("../../policies/no-blanket-tolerations.yaml");
        files.push(own("tollgate/no-blanket-tolerations.yaml", policy, None));
        let test = include_str!("../../policies/no-blanket-tolerations.test.yaml");
        files.push(own("tollgate/no-blanket-tolerations.test.yaml", test, None));
        files
    }

    /// The value of `kubernetes` in the configuration file.
    fn kubernetes_setting(&self) -> String {
        match self.kubernetes.as_slice() {
            [] => ALL.iter().rfind(|profile| profile.is_release).map_or("", |newest| newest.name).to_owned(),
            [one] => one.name.to_owned(),
            several => {
                let names: Vec<&str> = several.iter().map(|profile| profile.name).collect();
                format!("[{}]", names.join(", "))
            }
        }
    }

    fn ci_system(&self) -> CiSystem {
        let detected =
            if self.folder.join(GITLAB_FILE).exists() { CiSystem::Gitlab } else { CiSystem::Github };
        self.ci.unwrap_or(detected)
    }

    /// True if anything exists at the path of a file, even a link to nothing, through which a file would be
    /// created elsewhere.
    fn file_exists(&self, file: &NewFile) -> bool {
        self.folder.join(file.path).symlink_metadata().is_ok()
    }

    /// True if the files may be created.
    fn confirm_creation(&self, console: &mut Console) -> bool {
        if self.yes {
            return true;
        }
        if !Console::is_stdin_terminal() {
            console.note("nothing was created; to create these files, add --yes");
            return false;
        }
        console.confirm("create these files?")
    }

    /// Creates a file and its folders. Never replaces one that somebody else created in the meantime.
    fn create_file(&self, file: &NewFile) -> Result<(), Failure> {
        let path = self.folder.join(file.path);
        files::create_new_file_in_folder(&self.folder, &path, &file.text).map_err(|error| {
            let reason = match error.kind() {
                ErrorKind::AlreadyExists => "it exists already".to_owned(),
                _ => files::io_reason(&error),
            };
            Failure::Input(format!("cannot create {}: {reason}", path.display()))
        })
    }

    fn print_next_steps(&self, console: &mut Console) -> std::io::Result<()> {
        let enter = match self.folder.as_path() {
            folder if folder == Path::new(".") => String::new(),
            folder => format!("  cd {}\n", quote_for_shell(&folder.display().to_string())),
        };
        console.write_sanitized_text(&format!(
            "\nNext, check the repository and run the test of the policy:\n\
             {enter}  tollgate validate .\n  tollgate test {POLICY_FOLDER}\n"
        ))
    }
}

/// Replaces the placeholders of a template by the version of this program and the address of its repository.
fn fill_in_template(template: &str) -> String {
    let repository = env!("CARGO_PKG_REPOSITORY");
    let mut parts = repository.rsplit('/');
    let (name, owner) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    template
        .replace("REPOSITORY", repository)
        .replace("ACTION", &format!("{owner}/{name}"))
        .replace("vVERSION", concat!("v", env!("CARGO_PKG_VERSION")))
}

/// Returns a text with each line indented by four spaces.
fn indented(text: &str) -> String {
    text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") }).collect()
}
