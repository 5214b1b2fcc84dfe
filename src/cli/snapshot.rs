//! `tollgate snapshot`: a dump of the cluster with only what impact, audit, policies and forecasts read, for bug
//! reports and CI.
//!
//! Objects are written as they are listed, so memory does not grow with the cluster. If a kind cannot be listed, the
//! snapshot contains an incomplete list with the reason, and the failure is printed to stderr and causes exit code 3.
//! For nodes and workloads that the user may not list, a note is printed, because only forecasts need them. The output
//! file is created when the snapshot is complete.
//!
//! Invariant: an incomplete snapshot is never taken for a complete one. It never contains environment variables,
//! commands or messages, and contains opaque parameters and most annotations only if a flag asks for them. Reading it
//! with `--state` gives the same numbers as the cluster.

mod fields;
mod list_writer;
mod target;

use std::fmt::Write as _;
use std::path::PathBuf;

use super::clock;
use super::console::Console;
use super::live::{ClusterLister, ConnectedServer};
use super::outcome::{ExitCounts, Failure};
use super::shared::ContextArgs;
use super::state::RecordedServer;
use crate::cluster::{KeptFieldsAndSizeLimit, NODES};
pub(super) use crate::cluster::{SNAPSHOT_KINDS, WORKLOAD_KINDS};
pub(super) use fields::{OptionalFields, keep_needed_fields};
use list_writer::{Format, ListWriter};
use target::SnapshotTarget;
use tollgate_document::doc::Value;
use tollgate_formats::sanitize;

/// Save the cluster state for use with `--state`
///
/// The snapshot does not contain environment variables, commands, images, the contents of volumes, most annotations, or
/// opaque parameters.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// Output file; `-` for stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,

    /// Output format (default: json if the name of the output file ends with .json, otherwise yaml)
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,

    /// Include the opaque parameters of claims, templates and classes, which ParameterPolicies check. The parameters
    /// might contain secrets
    #[arg(long)]
    with_parameters: bool,

    /// Include annotations with this name, in addition to annotations in the domains resource.kubernetes.io and
    /// tollgate.dev, and to those that decide about evictions; can be repeated
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
  0  the snapshot is complete, except for nodes and workloads that you are not allowed to list
  2  usage error
  3  the cluster could not be reached, or some objects could not be listed
  4  internal error";

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let asked = self.context.connect_requiring_context_in_ci(false, None)?;
        let mut target = SnapshotTarget::open(&self.output)?;
        target.write(console, &self.header_text(asked))?;
        let mut objects = ClusterLister::new(asked, None);
        let projection = OptionalFields {
            with_parameters: self.with_parameters,
            annotations: &self.keep_annotation,
            with_messages: false,
        };
        let mut written = 0;
        for kind in SNAPSHOT_KINDS.iter().chain(std::iter::once(&NODES)).chain(&WORKLOAD_KINDS) {
            let mut list = ListWriter::new(kind, self.chosen_format());
            let (mut text, mut failure) = (String::new(), None);
            let before = objects.omissions.failures.len();
            // A kind fails to be written once; the rest of its objects is read in vain, which is rare.
            let mut add = |api_version: &str, object: Value<'_>, console: &mut Console| {
                list.append_object(&mut text, api_version, object, projection);
                if text.len() > 1 << 16 && failure.is_none() {
                    failure = target.write(console, &text).err();
                    text.clear();
                }
            };
            let is_needed = *kind != NODES && !WORKLOAD_KINDS.contains(kind);
            let listed = objects.list_objects(
                kind,
                is_needed,
                KeptFieldsAndSizeLimit::WHOLE_OBJECTS,
                console,
                &mut add,
            );
            if let Some(failure) = failure {
                return Err(failure);
            }
            list.end_lists_or_write_empty_list(&mut text, listed.as_ref().ok().and_then(Option::as_deref));
            if let Some(why) = objects.omissions.failures.get(before).or(listed.as_ref().err()) {
                list.mark_incomplete(&mut text, why);
            }
            written += list.count;
            target.write(console, &text)?;
        }
        if let Some(path) = target.finish(console)? {
            console.note(&format!("wrote {written} objects to {}", path.display()));
        }
        Ok(ExitCounts { unreadable: objects.omissions.failures.len(), ..ExitCounts::default() })
    }

    fn chosen_format(&self) -> Format {
        let is_json = self.output.extension().is_some_and(|extension| extension == "json");
        self.format.unwrap_or(if is_json { Format::Json } else { Format::Yaml })
    }

    /// Returns the beginning of a snapshot: comments and a document that say which cluster it comes from, without
    /// credentials. JSON has only the document.
    fn header_text(&self, asked: &ConnectedServer) -> String {
        let (release, live) = (asked.info.release.version(), asked.info.live.clone());
        let server = RecordedServer { release, live, omits_parameters: !self.with_parameters };
        if self.chosen_format() == Format::Json {
            return server.to_json() + "\n";
        }
        let (version, time) = (env!("CARGO_PKG_VERSION"), self.clock.now());
        let mut out = String::new();
        let mut line = |text: String| _ = writeln!(out, "# {}", sanitize::sanitize_as_line(&text));
        line(format!(
            "Cluster snapshot, created by tollgate {version} for the option --state of Tollgate's commands."
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
            "omitted: environment, commands, images, the contents of volumes, most annotations, messages, managed \
             fields{parameters}"
        ));
        out + &server.to_yaml()
    }
}
