//! `tollgate audit`: checks everything that is stored, in a cluster or in a dump, by rules, policies and any releases.
//!
//! Objects are checked as if they were created now, as they are listed, and are dropped afterwards: only findings and
//! counts are kept. An object is named by its resource, namespace and name, and shown as YAML, so a cluster and its
//! snapshot give the same report.
//!
//! Invariant: a cluster is only read; what could not be listed is in the report, on stderr and in the exit code.

mod deadlines;
mod dump;
mod judge;
#[cfg(feature = "cluster")]
mod live;
mod openreports;
mod reporter;

pub(super) use dump::{read_dump_header_comments, read_namespaces};

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;

use super::clock;
use super::console::Console;
use super::levels::LevelArgs;
use super::manifests::parse_namespace;
use super::outcome::{ExitCounts, Failure};
use super::picture::StateSource;
#[cfg(feature = "cluster")]
use super::policies::{self, UnreadResources};
use super::shared::{DefaultRules, EngineArgs, ExitArgs, ProfileArg, parse_profile};
use super::state::{self, DumpInventory};
use crate::config::Levels;
use crate::report::Format;
use reporter::AuditReporter;
use tollgate_api::profile::{GateChoice, Profile};
use tollgate_engine::engine::Engine;
use tollgate_engine::policy::PolicyResource;
use tollgate_engine::rules::table::TAINT_RULE_IMPACT;

/// Check all stored objects in a cluster or dump against the release of the cluster or another release
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// File or folder with a dump to read instead of the cluster, or `-` for stdin; can be repeated
    #[arg(long, value_name = "DUMP", env = "TOLLGATE_STATE")]
    state: Vec<PathBuf>,

    /// Release of the cluster that the dump comes from, with its default feature gates; for dumps that do not contain
    /// the release, such as those of kubectl
    #[arg(long, value_name = "RELEASE", requires = "state", value_parser = parse_release)]
    from: Option<&'static Profile>,

    /// Check only the objects in this namespace
    #[arg(short, long, value_name = "NAME", value_parser = parse_namespace)]
    namespace: Option<String>,

    /// Output format; `openreports` prints openreports.io Reports for `kubectl apply -f -`, `html` one file for people
    #[arg(short, long, value_name = "FORMAT", env = "TOLLGATE_OUTPUT", default_value = "text")]
    #[arg(value_parser = PossibleValuesParser::new(output_format_names()))]
    output: String,

    /// Print the number of findings per rule instead of the findings; requires `-o text` or `-o json`
    #[arg(long)]
    statistics: bool,

    #[command(flatten)]
    levels: LevelArgs,

    #[command(flatten)]
    clock: clock::ClockArgs,

    #[command(flatten)]
    engine: EngineArgs,

    #[command(flatten)]
    exit: ExitArgs,
}

const AFTER_HELP: &str = "\
Without --state, Tollgate reads the cluster that --context or the current context specifies, and \
changes nothing. If the environment variable CI is set, --context is required. Without --policy, \
the policies that are custom resources of the cluster apply.

Without --kubernetes, Tollgate uses the release and feature gates of the cluster. To check an upgrade in \
advance, set --kubernetes to the new release. If a dump does not contain the release of its cluster, also set --from.

Exit codes:
  0  nothing was denied
  1  something was denied (or reported as a warning, with --fail-on warn)
  2  usage error
  3  the cluster could not be reached, some objects could not be listed, or a dump could not be read
  4  internal error";

/// A format that only `audit` has: OpenReports objects for `kubectl apply`.
const OPENREPORTS_FORMAT: &str = "openreports";
const HTML_FORMAT: &str = "html";

fn output_format_names() -> Vec<&'static str> {
    Format::ALL.map(Format::name).into_iter().chain([OPENREPORTS_FORMAT, HTML_FORMAT]).collect()
}

fn parse_release(name: &str) -> Result<&'static Profile, String> {
    match parse_profile(name)? {
        ProfileArg::Named(profile) if profile.is_release => Ok(profile),
        _ => Err("use a Kubernetes release, such as 1.36".to_owned()),
    }
}

/// The engine and settings with which an audit checks each object.
#[derive(Debug)]
struct AuditSettings<'a> {
    engine: Engine,
    levels: Levels,
    /// Only this namespace.
    namespace: Option<&'a str>,
    now: String,
    /// The times within a week at which allow entries expire.
    expirations_within_week: Vec<String>,
}

impl AuditSettings<'_> {
    /// True if an enabled rule or policy counts the impact of taint rules, which needs pods, claims and devices.
    fn needs_state_for_taint_rule_impact(&self) -> bool {
        self.engine.policies.any_policy_limits_taint_rule_impact() || self.engine.rules.has(TAINT_RULE_IMPACT)
    }

    /// True if `--namespace` is not set or names this namespace. Objects without a namespace pass the empty name.
    fn includes_namespace(&self, namespace: &str) -> bool {
        self.namespace.is_none_or(|wanted| wanted == namespace)
    }
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        if self.statistics && !["text", "json"].contains(&self.output.as_str()) {
            return Err(Failure::Usage(format!(
                "--statistics is not available with `-o {}`; use `-o text` or `-o json`",
                self.output
            )));
        }
        #[cfg(feature = "cluster")]
        if self.state.is_empty() {
            return self.run_live(console);
        }
        let texts = state::read_texts(&self.state)?;
        let mut header = read_dump_header_comments(&texts);
        let cluster = self.dumped_cluster_profile(&mut header, console)?;
        let profiles = self.engine.release.dump_profiles(&header, console)?;
        let mut run = self.audit_settings(profiles, &[])?;
        run.engine = run.engine.for_stored_objects(cluster);
        let mut reporter = AuditReporter::start_report(&self.output, self.statistics, &run, console)?;
        reporter.kubectl = self.engine.release.server.context.kubectl_with_context();
        reporter.source = StateSource::from_dump(&self.state, &header);
        dump::audit_dump(&texts, run, &mut reporter, console)?;
        Ok(self.exit.apply_exit_flags(reporter.finish_report(console)?))
    }

    #[cfg(feature = "cluster")]
    fn run_live(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let asked = self.engine.release.live_server()?;
        let (policies, unread) = self.read_policies_of_cluster(asked, console);
        let run = self.audit_settings(self.engine.release.live_profiles()?, &policies)?;
        let mut reporter = AuditReporter::start_report(&self.output, self.statistics, &run, console)?;
        reporter.incomplete.extend(unread);
        reporter.kubectl = self.engine.release.server.context.kubectl_with_context();
        reporter.source = StateSource::from_cluster(asked);
        reporter.cluster = Some(format!("{}: Kubernetes {}", asked.endpoint(), asked.info.release));
        live::audit_cluster(asked, run, &mut reporter, console);
        Ok(self.exit.apply_exit_flags(reporter.finish_report(console)?))
    }

    /// Reads the policies that are custom resources of the cluster, unless `--policy` is given. Also returns why they
    /// could not be read. Users who may not list them only get a note, because they can pass the files.
    #[cfg(feature = "cluster")]
    fn read_policies_of_cluster(
        &self,
        asked: &super::live::ConnectedServer,
        console: &mut Console,
    ) -> (Vec<PolicyResource>, Option<String>) {
        if !self.engine.policies.paths.is_empty() {
            return (Vec::new(), None);
        }
        match policies::read_resources(&asked.cluster) {
            Ok(resources) => {
                if !resources.is_empty() {
                    let count = resources.len();
                    console.note(&format!("checking against the policies of the cluster ({count})"));
                }
                (resources, None)
            }
            Err(UnreadResources::Forbidden(why)) => {
                console.note(&format!("the policies of the cluster are not checked: {why}"));
                (Vec::new(), None)
            }
            Err(UnreadResources::Failed(why)) => {
                console.error(&why);
                (Vec::new(), Some(why))
            }
        }
    }

    /// Returns the profile of the cluster that a dump comes from, as recorded in the dump or set with `--from`;
    /// `None` if neither is known.
    fn dumped_cluster_profile(
        &self,
        header: &mut DumpInventory,
        console: &mut Console,
    ) -> Result<Option<&'static Profile>, Failure> {
        let Some(from) = self.from else { return Ok(dump::recorded_profile(header)) };
        let name = from.name;
        header.set_release_if_unknown(from).map_err(|known| {
            Failure::Usage(format!("--from {name}: the dump comes from Kubernetes {known}"))
        })?;
        if header.recorded_server_if_unique().is_some() {
            return Ok(dump::recorded_profile(header));
        }
        console
            .note(&format!("assuming that the dump comes from Kubernetes {name} with default feature gates"));
        from.with_gates(&GateChoice::Default).map(Some).map_err(Failure::Usage)
    }

    /// Builds the engine and the settings of an audit that checks objects against these profiles, and against
    /// policies of the cluster as well as those of `--policy`.
    fn audit_settings(
        &self,
        profiles: Vec<&'static Profile>,
        resources: &[PolicyResource],
    ) -> Result<AuditSettings<'_>, Failure> {
        let engine =
            self.engine.engine_for(DefaultRules::Stored, profiles, resources)?.for_stored_objects(None);
        let now = self.clock.now();
        let expirations_within_week = deadlines::expirations_within_week(&engine.policies, &now);
        let (levels, namespace) = (self.levels.levels(), self.namespace.as_deref());
        Ok(AuditSettings { engine, levels, namespace, now, expirations_within_week })
    }
}
