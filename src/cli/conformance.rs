//! `tollgate conformance`: how far Tollgate agrees with the API server of a cluster, measured there.
//!
//! The shipped cases are sent as dry-run creates, slowly, after a confirmation. Each answer is compared with Tollgate's
//! own verdict for that server's release and feature gates.
//!
//! Invariant: nothing is sent without a confirmation or `--yes`, nothing is sent that could be stored, and the first
//! sign that something was stored ends the run.

mod report;
mod send;

use std::io::Write as _;
use std::path::PathBuf;

use super::clock;
use super::console::Console;
use super::live::ConnectedServer;
use super::manifests::parse_namespace;
use super::outcome::{ExitCounts, Failure};
use super::shared::{ApiServerArgs, ExitZeroArgs};
use super::version::Output;
use crate::conformance::{CaseChecker, Corpus, CorpusSet};
use report::{DifferenceFile, ReportHeader};
use send::{CaseSender, Ending};
use tollgate_formats::count::group_thousands;

const AFTER_HELP: &str = "\
Requires permission to `create` resources in the API group resource.k8s.io, and to `get` the nonResourceURL /metrics, which \
contains the feature gates.

Exit codes:
  0  all compared responses match
  1  some responses differ
  2  usage error, or the requests were not confirmed
  3  some requests failed or were not allowed, or the run was interrupted
  4  internal error";

/// Compare Tollgate with the API server of a cluster, using dry-run requests
///
/// Sends the bundled objects in create requests with dryRun=All, so that the API server checks the objects but does not
/// store them. Compares the verdict, error type, field and message in each response with Tollgate's result for the
/// release and feature gates of that API server.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// Use the API server of the current context; --context selects another context
    #[arg(long)]
    cluster: bool,

    /// Send the objects without asking for confirmation
    #[arg(short, long)]
    yes: bool,

    /// Also send about 11,000 generated objects
    #[arg(long)]
    generated: bool,

    /// Maximum number of requests per second
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rate: u32,

    /// Existing namespace for claims and templates
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = parse_namespace)]
    namespace: String,

    /// Write the differences to this file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,

    #[command(flatten)]
    server: ApiServerArgs,

    #[command(flatten)]
    exit: ExitZeroArgs,
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        self.check_usage()?;
        let choice = self.server.gate_choice();
        let asked = ConnectedServer::connect(self.server.context.target(), choice, console)?;
        let labels = self.namespace_labels_or_empty_if_forbidden(&asked, console)?;
        let sets: &[CorpusSet] =
            if self.generated { &[CorpusSet::Corpus, CorpusSet::Generated] } else { &[CorpusSet::Corpus] };
        let internal = |error: String| Failure::Internal(anyhow::anyhow!(error));
        let corpus = Corpus::read(sets, &self.namespace).map_err(internal)?;
        let judge = CaseChecker::new(asked.profile, &self.namespace, &labels, &clock::now_rfc3339())
            .map_err(internal)?;
        let differences = self.out.as_deref().map(DifferenceFile::create).transpose()?;
        self.confirm_sending(&corpus, console)?;
        let sender = CaseSender::new(&asked, &judge, &self.namespace, differences);
        let result = sender.send_all(&corpus.cases, self.rate)?;
        let header = ReportHeader { asked: &asked, namespace: &self.namespace, corpus: &corpus };
        match self.output {
            Output::Json => {
                writeln!(console, "{}", super::to_safe_json(&report::report_json(header, &result))?)?
            }
            Output::Text => console.write_sanitized_text(&report::report_text(header, &result))?,
        }
        if result.agreement.total.differing > 0 && self.out.is_none() {
            console.note("add --out FILE to write the differences to a file");
        }
        let total = result.agreement.total;
        let tally = ExitCounts {
            denied: total.differing,
            unreadable: total.failed + total.not_allowed,
            ..ExitCounts::default()
        };
        match result.ending {
            Ending::Complete if total.verdict.of == 0 => {
                console.flush_stdout()?;
                Err(Failure::Input("no response could be compared".to_owned()))
            }
            Ending::Complete => Ok(self.exit.apply_exit_zero(tally)),
            Ending::Interrupted => {
                console.note("interrupted; the table covers only the responses received so far");
                Ok(self.exit.apply_exit_zero(ExitCounts { unreadable: tally.unreadable + 1, ..tally }))
            }
            Ending::GivenUp(why) => {
                console.flush_stdout()?;
                Err(Failure::Input(why))
            }
        }
    }

    fn check_usage(&self) -> Result<(), Failure> {
        let message = if !self.cluster && !self.server.context.has_context_flag() {
            "choose a cluster: use --cluster for the current context, or --context NAME"
        } else if !self.yes && !Console::is_stdin_terminal() {
            "stdin is not a terminal; add --yes to send the dry-run requests without confirmation"
        } else {
            return Ok(());
        };
        Err(Failure::Usage(message.to_owned()))
    }

    /// Reads the labels of `--namespace`, as JSON; `{}`, with a note, if the user may not read the namespace. Whether
    /// an API server accepts `adminAccess` depends on them.
    fn namespace_labels_or_empty_if_forbidden(
        &self,
        asked: &ConnectedServer,
        console: &mut Console,
    ) -> Result<String, Failure> {
        let name = &self.namespace;
        match asked.cluster.namespace_labels_json(name) {
            Ok(Some(labels)) => Ok(labels),
            Ok(None) => Err(Failure::Input(format!(
                "namespace {name} does not exist; choose another namespace with --namespace"
            ))),
            Err(error) if error.http_status_or_zero() == 403 => {
                console.note(&format!(
                    "cannot read the labels of namespace {name} ({error}); assuming that the namespace has no labels"
                ));
                Ok("{}".to_owned())
            }
            Err(error) => Err(Failure::Input(format!("namespace {name}: {error}"))),
        }
    }

    fn confirm_sending(&self, corpus: &Corpus, console: &mut Console) -> Result<(), Failure> {
        console.note(&format!(
            "{} objects will be sent as dry-run create requests to namespace {} and the cluster scope, at most {} per \
             second; nothing is stored",
            group_thousands(corpus.cases.len()),
            self.namespace,
            self.rate
        ));
        if self.yes || console.confirm("Send them?") {
            return Ok(());
        }
        Err(Failure::Usage("not confirmed; nothing was sent".to_owned()))
    }
}
