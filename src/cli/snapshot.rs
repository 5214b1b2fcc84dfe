//! `tollgate snapshot`: a dump of the cluster with only what impact, audit and policies read, for bug reports and CI.
//!
//! Objects are written as they are listed, so memory does not grow with the cluster. What could not be listed is an
//! incomplete list with a comment in its place, a message on stderr and the exit code. A file appears when all is written.
//!
//! Invariant: a snapshot that lacks something never passes as complete. Environment, commands, annotations, opaque
//! parameters and messages of a cluster are not in it, unless a flag asks for them; `--state` reads it with the same numbers.

mod fields;
mod target;

use std::fmt::Write as _;
use std::path::PathBuf;

use super::clock;
use super::console::Console;
use super::live::{AskedServer, LiveObjects};
use super::mutate::print;
use super::outcome::{Failure, Tally};
use super::shared::ContextArgs;
use super::state::RecordedServer;
use crate::cluster::{
    BUDGETS, CLAIMS, CLASSES, CLASSIC_CLAIMS, CLASSIC_CLASSES, FOUNDATIONDB, ListedKind, NAMESPACES, PODS,
    RULES, ReadLimits, SLICES, TEMPLATES,
};
use fields::{Projection, project};
use target::SnapshotTarget;
use tollgate_document::doc::Value;
use tollgate_formats::sanitize;

/// Save the cluster state for use with `--state`
///
/// The snapshot does not contain environment variables, commands, most annotations, or opaque parameters.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// Output file; `-` for stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,

    /// Include the opaque parameters of claims, templates and classes, which ParameterPolicies check. The parameters
    /// might contain secrets
    #[arg(long)]
    with_parameters: bool,

    /// Include annotations with this name, in addition to annotations in the domains resource.kubernetes.io and
    /// tollgate.dev; can be repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    keep_annotation: Vec<String>,

    #[command(flatten)]
    clock: clock::ClockArgs,

    #[command(flatten)]
    context: ContextArgs,
}

const AFTER_HELP: &str = "\
Tollgate reads the cluster that --context or the current context specifies, and changes nothing. If the \
environment variable CI is set, --context is required.

Exit codes:
  0  the snapshot is complete
  2  usage error
  3  the cluster could not be reached, or some objects could not be listed
  4  internal error";

/// Everything that impact, audit and policies read, in the order in which audit checks it.
pub(super) const KINDS: [ListedKind; 11] = [
    NAMESPACES,
    CLASSES,
    TEMPLATES,
    CLAIMS,
    SLICES,
    PODS,
    BUDGETS,
    FOUNDATIONDB,
    CLASSIC_CLASSES,
    CLASSIC_CLAIMS,
    RULES,
];

/// Objects per document: a reader has one document in memory at a time.
const PER_DOCUMENT: usize = 100;

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<Tally, Failure> {
        let asked = self.context.server(false, None)?;
        let mut target = SnapshotTarget::open(&self.output)?;
        target.write(console, &self.header(asked))?;
        let mut objects = LiveObjects::new(asked, None);
        let projection =
            Projection { with_parameters: self.with_parameters, annotations: &self.keep_annotation };
        let mut written = 0;
        for kind in &KINDS {
            let mut list = ListWriter::new(kind);
            let (mut text, mut failure) = (String::new(), None);
            let before = objects.omissions.failures.len();
            // A kind fails to be written once; the rest of its objects is read in vain, which is rare.
            let listed =
                objects.read(kind, ReadLimits::WHOLE, console, &mut |api_version, object, console| {
                    list.add(&mut text, api_version, object, projection);
                    if text.len() > 1 << 16 && failure.is_none() {
                        failure = target.write(console, &text).err();
                        text.clear();
                    }
                });
            if let Some(failure) = failure {
                return Err(failure);
            }
            list.finish(&mut text, listed.as_deref());
            if let Some(why) = objects.omissions.failures.get(before) {
                list.mark_incomplete(&mut text, why);
            }
            written += list.count;
            target.write(console, &text)?;
        }
        if let Some(path) = target.finish(console)? {
            console.note(&format!("wrote {written} objects to {}", path.display()));
        }
        Ok(Tally { unreadable: objects.omissions.failures.len(), ..Tally::default() })
    }

    /// The beginning of a snapshot, as comments and a document: where it comes from. The address has no credentials.
    fn header(&self, asked: &AskedServer) -> String {
        let (version, time) = (env!("CARGO_PKG_VERSION"), self.clock.now());
        let mut out = String::new();
        let mut line = |text: String| _ = writeln!(out, "# {}", sanitize::line(&text));
        line(format!(
            "Cluster snapshot, created by tollgate {version} for `tollgate impact --state` and `tollgate audit \
             --state`."
        ));
        line(format!("cluster: {}", asked.endpoint()));
        line(format!("time: {time}"));
        line(format!("kubernetes: {}", asked.info.release.version()));
        line(match &asked.info.live.gates {
            Ok(_) => format!("feature gates: {}", asked.profile.describe_gates()),
            Err(why) => format!("feature gates: not known ({why})"),
        });
        let parameters = if self.with_parameters { "" } else { ", opaque parameters" };
        line(format!(
            "omitted: environment, commands, most annotations, messages, managed fields{parameters}"
        ));
        let (release, live) = (asked.info.release.version(), asked.info.live.clone());
        out + &RecordedServer { release, live }.to_yaml()
    }
}

/// Writes the objects of one kind as lists of some objects each.
struct ListWriter<'k> {
    kind: &'k ListedKind,
    /// Objects so far.
    count: usize,
    api_version: String,
}

impl<'k> ListWriter<'k> {
    fn new(kind: &'k ListedKind) -> ListWriter<'k> {
        ListWriter { kind, count: 0, api_version: String::new() }
    }

    /// Appends an object, and before it the beginning of a new list if the last one is full.
    fn add(&mut self, out: &mut String, api_version: &str, object: Value<'_>, projection: Projection<'_>) {
        if self.count.is_multiple_of(PER_DOCUMENT) {
            api_version.clone_into(&mut self.api_version);
            self.begin(out, "items:\n");
        }
        self.count += 1;
        let kept = project(self.kind, object, projection);
        // An item of a list: two columns to the right, with a dash in front of the first line.
        for (index, line) in print::yaml(kept.root()).lines().enumerate() {
            out.push_str(if index == 0 { "- " } else { "  " });
            out.push_str(line);
            out.push('\n');
        }
    }

    fn begin(&self, out: &mut String, rest: &str) {
        _ = write!(out, "---\napiVersion: {}\nkind: {}List\n{rest}", self.api_version, self.kind.kind);
    }

    /// Ends the lists of a kind. If there were no objects, writes an empty list, which says that there are none.
    fn finish(&mut self, out: &mut String, listed: Option<&str>) {
        match listed {
            Some(api_version) if self.count == 0 => {
                api_version.clone_into(&mut self.api_version);
                self.begin(out, "items: []\n");
            }
            _ => {}
        }
    }

    /// Writes an empty list with a `continue` token, which tells every reader that the list is not complete.
    fn mark_incomplete(&mut self, out: &mut String, why: &str) {
        if self.count == 0 {
            let version = self.kind.versions.first().copied().unwrap_or_default();
            let group = self.kind.group;
            self.api_version =
                if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        }
        self.begin(out, "metadata: {continue: incomplete}\nitems: []\n");
        _ = writeln!(out, "# {}", sanitize::line(why));
    }
}
