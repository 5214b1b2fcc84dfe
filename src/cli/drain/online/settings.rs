//! The flags that only matter if a drain acts, and everything that a run needs to know.
//!
//! Nothing is decided here. Problems of the release of the cluster are collected for the preflight checks.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use super::lock::LockSettings;
use super::reporter::ContinueAndUndoCommands;
use crate::cli::console::quote_for_shell;
use crate::cli::expiry::RuleExpiryArg;
use crate::cli::live::ConnectedServer;
use crate::cli::outcome::Failure;
use crate::cli::plugin;
use crate::cli::units::parse_duration;
use tollgate_api::profile::Version;
use tollgate_document::doc::Value;
use tollgate_drain::{DEFAULT_KEY, DrainRequest, TARGET_ANNOTATION};
use tollgate_forecast::SimulatedRelease;

/// The namespace of the Lease unless `--lock-namespace` is given.
pub(in crate::cli::drain) const DEFAULT_LOCK_NAMESPACE: &str = "tollgate-system";

/// Flags of a drain that changes the cluster.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(in crate::cli::drain) struct RunArgs {
    /// Do not ask for confirmation; requires --context, except in a pod
    #[arg(long, conflicts_with_all = ["state", "dry_run"])]
    pub(in crate::cli::drain) yes: bool,

    /// Only check whether claims hold the devices, and change nothing
    #[arg(long, conflicts_with_all = ["state", "dry_run", "yes"])]
    pub(in crate::cli::drain) check: bool,

    /// When a replacement counts, so that the next wave can start
    #[arg(long, value_name = "WHEN", default_value = "ready", help_heading = "Run", hide_short_help = true)]
    pub(in crate::cli::drain) wait: ReplacementWaitCondition,

    /// Maximum time for a wave, in addition to the longest termination grace period of its pods
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration, help_heading = "Run")]
    pub(in crate::cli::drain) timeout: Duration,

    /// Delete the pods that the plan lists for this flag if they still use devices so long after the start of the drain
    ///
    /// Deletions ignore PodDisruptionBudgets. The pods keep their own termination grace period.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help_heading = "Run")]
    pub(in crate::cli::drain) force_after: Option<Duration>,

    /// Why the devices are drained, as an annotation of the rules
    #[arg(long, value_name = "TEXT", help_heading = "Run", hide_short_help = true)]
    pub(in crate::cli::drain) reason: Option<String>,

    /// Who is responsible for the drain, as an annotation of the rules
    #[arg(long, value_name = "NAME", help_heading = "Run", hide_short_help = true)]
    pub(in crate::cli::drain) owner: Option<String>,

    /// When the rules are no longer needed, as an annotation: a duration or an RFC 3339 time. Nothing is deleted then
    #[arg(long, value_name = "TIME", value_parser = RuleExpiryArg::parse, help_heading = "Run", hide_short_help = true)]
    pub(in crate::cli::drain) expires: Option<RuleExpiryArg>,

    /// Drain without the Lease that prevents two drains at the same time
    #[arg(long, help_heading = "Run", hide_short_help = true)]
    pub(in crate::cli::drain) no_lock: bool,

    /// Namespace of the Lease
    #[arg(
        long,
        value_name = "NAMESPACE",
        default_value = DEFAULT_LOCK_NAMESPACE,
        help_heading = "Run",
        hide_short_help = true
    )]
    pub(in crate::cli::drain) lock_namespace: String,

    /// Drain although a check before the start found a problem
    #[arg(long, help_heading = "Run", hide_short_help = true)]
    pub(in crate::cli::drain) ignore_preflight_errors: bool,

    /// File to write everything to that the drain sends and sees, for a later analysis
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    #[arg(hide_short_help = true)]
    pub(in crate::cli::drain) record: Option<PathBuf>,
}

/// When a replacement counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(in crate::cli::drain) enum ReplacementWaitCondition {
    /// It has been Ready for the minReadySeconds of its workload
    Ready,
    /// It is bound to a node
    Bound,
}

/// The settings of a drain, from the flags and from the release of the cluster.
#[derive(Clone, Debug)]
pub(in crate::cli::drain) struct RunSettings {
    pub(in crate::cli::drain) request: DrainRequest,
    pub(in crate::cli::drain) release: SimulatedRelease,
    /// The version in which the API server serves DeviceTaintRules.
    pub(in crate::cli::drain) rule_version: Version,
    /// Number of simulated runs of each forecast.
    pub(in crate::cli::drain) samples: NonZeroU32,
    pub(in crate::cli::drain) seed: u64,
    pub(in crate::cli::drain) wait: ReplacementWaitCondition,
    /// Maximum time for one wave, in addition to the longest grace period of its pods.
    pub(in crate::cli::drain) timeout: Duration,
    pub(in crate::cli::drain) force_after: Option<Duration>,
    /// The Lease to hold; `None` with `--no-lock`.
    pub(in crate::cli::drain) lock: Option<LockSettings>,
    pub(in crate::cli::drain) notes: RuleAnnotations,
    /// Start although a preflight check found a problem.
    pub(in crate::cli::drain) ignore_preflight_errors: bool,
    /// Problems of the release of the cluster, such as feature gates that are off.
    pub(in crate::cli::drain) kubernetes_release_problems: Vec<String>,
    /// The commands that continue and undo the drain, for messages.
    pub(in crate::cli::drain) next: ContinueAndUndoCommands,
    /// The flags with which the commands of other drains use the same cluster; empty in a pod.
    pub(in crate::cli::drain) cluster_flags: String,
}

impl RunSettings {
    /// Returns the command that ends the drain to which a stored rule belongs: `undrain`, or the deletion of the rule
    /// if its annotation does not say what was drained.
    pub(super) fn end_drain_command(&self, rule: Value<'_>) -> String {
        let metadata = rule.get("metadata");
        let target = metadata.get("annotations").get(TARGET_ANNOTATION).str();
        let words: Vec<String> = if target.is_empty() {
            let name = quote_for_shell(metadata.get("name").str());
            vec!["kubectl delete devicetaintrule".to_owned(), name, self.cluster_flags.clone()]
        } else {
            let key = rule.get("spec").get("taint").get("key").str();
            let key = (key != DEFAULT_KEY).then(|| format!("--key {}", quote_for_shell(key)));
            let namespace = self.lock.as_ref().map(|lock| lock.namespace.as_str());
            let namespace = namespace.filter(|namespace| *namespace != DEFAULT_LOCK_NAMESPACE);
            [plugin::program_name().to_owned(), "undrain".to_owned()]
                .into_iter()
                .chain(target.split(' ').map(quote_for_shell))
                .chain([self.cluster_flags.clone()])
                .chain(namespace.map(|namespace| format!("--lock-namespace {}", quote_for_shell(namespace))))
                .chain(key)
                .collect()
        };
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// The annotations of the rules for people: flags, reason, owner and expiry.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(in crate::cli::drain) struct RuleAnnotations {
    /// The flags of the command line, as text.
    pub(in crate::cli::drain) flags: String,
    pub(in crate::cli::drain) reason: Option<String>,
    pub(in crate::cli::drain) owner: Option<String>,
    /// A time, RFC 3339.
    pub(in crate::cli::drain) expires: Option<String>,
}

impl RunArgs {
    /// Returns the time of `--expires` as RFC 3339; an error if it is not after `now`.
    pub(in crate::cli::drain) fn expires(&self, now: &str) -> Result<Option<String>, Failure> {
        self.expires.map(|expiry| expiry.resolve_rfc3339(now)).transpose()
    }
}

/// Returns why a drain may not work in the release of this cluster, as far as it is known: rules have no effect, or
/// schedulers crash because of a rule.
pub(in crate::cli::drain) fn problems_of_kubernetes_release(asked: &ConnectedServer) -> Vec<String> {
    let (profile, release) = (asked.profile, &asked.info.release);
    let inert = profile.why_device_taint_rules_do_nothing().map(|why| {
        format!("{why}, so rules have no effect, and evicted pods can come back to the same devices")
    });
    let mut problems: Vec<String> =
        inert.or_else(|| profile.describe_gates_rules_may_lack()).into_iter().collect();
    if release.minor.trim_end_matches('+') == "36" && ["0", "1", "2"].contains(&release.patch.as_str()) {
        problems.push(format!(
            "the scheduler of Kubernetes {} can crash because of a DeviceTaintRule; upgrade to 1.36.3 or later",
            release.version()
        ));
    }
    problems
}
