//! `tollgate ui`: the devices of a cluster and the answers to "what if" as pages in a browser on this machine.
//!
//! Three threads share the work: one follows the state and publishes the report of `tollgate devices` when it changes,
//! one answers questions with `impact`, `forecast` and `drain --dry-run`, and the main thread serves the pages. The
//! pages and their server are in `tollgate-ui`.
//!
//! Invariant: nothing is sent to a cluster but lists and watches, and nothing is written but messages on the terminal.
//! The report is made at most once a second, and the last state is always reported.

mod cluster;
mod dump;
mod page_report;
mod question;
mod site;

use std::io::Write as _;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use super::clock;
use super::console::{Console, quote_for_shell};
use super::outcome::{ExitCounts, Failure};
use super::shared::{ReleaseArgs, StateArgs};
use super::state::OwnedObjects;
use cluster::ClusterSource;
use dump::DumpSource;
use site::UiPages;
use tollgate_api::profile::Profile;
use tollgate_engine::impact::Snapshot;
use tollgate_ui::{Limits, LivePageStore, LoopbackServer, PageFacts, SessionUrlIssuer};

/// Show devices, and what a rule or a drain would do, as pages in a browser
///
/// Serves the pages on this machine only, and prints their address. The pages follow the cluster, or the dump if its
/// file changes. Nothing is changed. To stop, press Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Arguments {
    #[command(flatten)]
    state: StateArgs,

    /// Port on 127.0.0.1 and ::1; 0 selects a free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,

    #[command(flatten)]
    release: ReleaseArgs,
}

const AFTER_HELP: &str = "\
The address contains a token that opens the pages once, in one browser. To get another address, press Enter.

To create a dump, run `tollgate snapshot`.

Exit codes:
  0  stopped with Ctrl-C
  2  usage error
  3  the state could not be read
  4  internal error, or the port is in use";

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let (source, first) = self.open_state_source(console)?;
        let server = LoopbackServer::bind(self.port)?;
        let board = Arc::new(LivePageStore::new(first.page_facts(self.ui_command())));
        let commands = self.command_parts(&self.kubectl_with_cluster_flags()?);
        let site = UiPages::start(board.clone(), first, commands)?;
        start_following(source, board, site.clone())?;
        let links = server.session_url_issuer();
        writeln!(console, "Open {}", links.issue_session_url()?)?;
        console
            .note("the address opens the pages once; to get another one, press Enter; to stop, press Ctrl-C");
        console.flush_stdout()?;
        if Console::is_stdin_terminal() {
            print_link_on_enter(links)?;
        }
        server.serve(site, Limits::default())?;
        Ok(ExitCounts::default())
    }

    /// Returns what follows the state, a dump or a cluster, and the first state.
    fn open_state_source(&self, console: &mut Console) -> Result<(NextState, KnownState), Failure> {
        if self.state.paths.is_empty() {
            let (mut source, first) = ClusterSource::connect(&self.release, console)?;
            return Ok((Box::new(move || source.next()), first));
        }
        let mut source = DumpSource::new(self.state.clone(), self.release.clone());
        let first = source.read(console)?;
        Ok((Box::new(move || source.next()), first))
    }

    /// Returns the command that serves these pages, as a person would type it.
    fn ui_command(&self) -> String {
        format!(
            "tollgate ui{}",
            self.command_parts(&self.release.server.context.kubectl_with_context()).flags
        )
    }

    /// Returns kubectl with the flags that select the cluster of the pages. They name its context even if it was not
    /// typed, because the current context may be another one when a command is pasted.
    fn kubectl_with_cluster_flags(&self) -> Result<String, Failure> {
        let context = &self.release.server.context;
        let kubectl = context.kubectl_with_context();
        if !self.state.paths.is_empty() || context.has_context_flag() {
            return Ok(kubectl);
        }
        Ok(match &self.release.live_server()?.endpoint().context {
            Some(name) => format!("{kubectl} --context {}", quote_for_shell(name)),
            None => kubectl,
        })
    }

    /// Returns the parts of commands that use the same state: kubectl and the flags.
    fn command_parts(&self, kubectl: &str) -> question::CommandParts {
        let mut flags = kubectl.strip_prefix("kubectl").unwrap_or_default().to_owned();
        let mut words = Vec::new();
        for path in &self.state.paths {
            let path = path.display().to_string();
            flags.push_str(" --state ");
            flags.push_str(&quote_for_shell(&path));
            words.extend(["--state".to_owned(), path]);
        }
        if self.state.assume_complete {
            flags.push_str(" --assume-complete");
            words.push("--assume-complete".to_owned());
        }
        question::CommandParts { kubectl: kubectl.to_owned(), flags, words }
    }
}

/// Prints a new address whenever a person presses Enter.
fn print_link_on_enter(links: SessionUrlIssuer) -> Result<(), Failure> {
    let print = move || {
        while Console::wait_for_enter() {
            let mut console = Console::open();
            match links.issue_session_url() {
                Ok(link) => _ = writeln!(console, "Open {link}"),
                Err(error) => console.error(&format!("{error:#}")),
            }
            _ = console.flush_stdout();
        }
    };
    thread::Builder::new().name("links".to_owned()).spawn(print).map_err(anyhow::Error::from)?;
    Ok(())
}

/// Minimum time between two reports.
const MIN_PUBLISH_INTERVAL: Duration = Duration::from_secs(1);

/// Waits for a change of the followed state. An error says why the state may be outdated: it cannot be read, or watches
/// are lost; the pages keep showing the last one.
type NextState = Box<dyn FnMut() -> Result<KnownState, OutdatedReason> + Send>;

/// Why a state may be outdated.
#[derive(Debug)]
struct OutdatedReason {
    why: String,
    /// When the state was last known to be current, in RFC 3339; `None` for a dump.
    current_until: Option<String>,
}

/// Starts the thread that follows the state, for the life of the process.
fn start_following(
    mut next_state: NextState,
    board: Arc<LivePageStore>,
    site: Arc<UiPages>,
) -> Result<(), Failure> {
    let follow = move || {
        loop {
            let next = next_state();
            let start = clock::monotonic();
            match next {
                Ok(state) => site.set_state(state),
                Err(trouble) => board.mark_out_of_date(trouble.why, trouble.current_until),
            }
            thread::sleep(MIN_PUBLISH_INTERVAL.saturating_sub(start.elapsed()));
        }
    };
    thread::Builder::new().name("state".to_owned()).spawn(follow).map_err(anyhow::Error::from)?;
    Ok(())
}

/// The objects that were read from a cluster or dump, with their profile, their origin, and messages about missing
/// parts.
#[derive(Debug)]
struct KnownState {
    objects: OwnedObjects,
    profile: &'static Profile,
    /// Origin of the state for the pages: `context dev (https://…)`, or the files of the dump.
    source: String,
    /// When the state was read from the cluster or, if it may have been outdated even then, until when it was current.
    /// Empty if the dump does not say so.
    taken: String,
    is_dump: bool,
    /// Why the state may be outdated; `None` if it is current.
    trouble: Option<String>,
    /// Messages about what the state lacks for the report about devices.
    incomplete: Vec<String>,
    /// Messages about what the state lacks for impact.
    incomplete_for_impact: Vec<String>,
    /// Messages about what the state lacks for forecasts and plans.
    missing: Vec<String>,
    /// The snapshot for impact, made on first use.
    snapshot: OnceLock<Result<Arc<Snapshot>, String>>,
}

impl KnownState {
    /// Returns the snapshot from which impact is computed; made on first use.
    fn snapshot(&self) -> Result<Arc<Snapshot>, Failure> {
        let make = || self.objects.snapshot().map(Arc::new).map_err(|error| error.to_string());
        self.snapshot.get_or_init(make).clone().map_err(Failure::Input)
    }

    /// Returns what the pages say about the origin of the state.
    fn page_facts(&self, command: String) -> PageFacts {
        PageFacts {
            source: self.source.clone(),
            is_dump: self.is_dump,
            command,
            version: env!("CARGO_PKG_VERSION"),
            docs: super::picture::DOCS_URL,
        }
    }
}
