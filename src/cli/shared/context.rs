//! The cluster of `--context` and `--kubeconfig`. It is asked for its release once in a run.

#[cfg(feature = "mcp")]
use std::ffi::OsString;
#[cfg(feature = "cluster")]
use std::fmt::Write as _;
#[cfg(feature = "cluster")]
use std::path::PathBuf;

use clap::Args;

#[cfg(feature = "cluster")]
use super::super::console::{is_ci, quote_for_shell};
#[cfg(feature = "cluster")]
use super::super::live;
use super::super::outcome::Failure;
#[cfg(feature = "cluster")]
use crate::cluster::ClusterTarget;
use tollgate_api::profile::{GateChoice, Profile};

/// The cluster to use.
#[derive(Clone, Debug, Args)]
pub(in super::super) struct ContextArgs {
    /// Kubeconfig context of the cluster to use (default: the current context)
    ///
    /// Without --kubernetes, Tollgate checks against the release of this cluster.
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "NAME", env = "TOLLGATE_CONTEXT", help_heading = "Cluster")]
    context: Option<String>,

    /// Kubeconfig file (default: KUBECONFIG, ~/.kube/config, or the service account of the pod)
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "FILE", env = "TOLLGATE_KUBECONFIG", help_heading = "Cluster")]
    #[arg(hide_short_help = true)]
    kubeconfig: Option<PathBuf>,

    /// The API server, asked once.
    #[cfg(feature = "cluster")]
    #[arg(skip)]
    live: live::LiveServerCell,
}

#[cfg(not(feature = "cluster"))]
#[expect(clippy::unused_self, reason = "the same calls with and without the feature")]
impl ContextArgs {
    /// Returns `kubectl`. A build without the cluster client has no flags to repeat.
    pub(in super::super) fn kubectl_with_context(&self) -> String {
        "kubectl".to_owned()
    }

    pub(in super::super) fn has_context_flag(&self) -> bool {
        false
    }

    /// Returns no flags, because a build without the cluster client has none.
    #[cfg(feature = "mcp")]
    pub(in super::super) fn context_flags(&self) -> Vec<OsString> {
        Vec::new()
    }

    pub(super) fn server_profile(&self, _: Option<&GateChoice>) -> Result<&'static Profile, Failure> {
        Err(Failure::Usage("--kubernetes cluster: this build cannot connect to clusters".to_owned()))
    }
}

#[cfg(feature = "cluster")]
impl ContextArgs {
    /// Returns `kubectl` with the flags that make it use the same cluster, for commands that are printed to be
    /// pasted: the current context may have changed by then.
    pub(in super::super) fn kubectl_with_context(&self) -> String {
        let mut command = "kubectl".to_owned();
        let file = self.kubeconfig.as_ref().map(|file| file.display().to_string());
        for (flag, value) in [("--kubeconfig", &file), ("--context", &self.context)] {
            if let Some(value) = value {
                _ = write!(command, " {flag} {}", quote_for_shell(value));
            }
        }
        command
    }

    /// Returns these flags for a command that must use the same cluster; empty if no context is named.
    #[cfg(feature = "mcp")]
    pub(in super::super) fn context_flags(&self) -> Vec<OsString> {
        let Some(context) = &self.context else { return Vec::new() };
        let mut flags = vec![OsString::from(format!("--context={context}"))];
        if let Some(file) = &self.kubeconfig {
            let mut flag = OsString::from("--kubeconfig=");
            flag.push(file);
            flags.push(flag);
        }
        flags
    }

    /// Returns the kubeconfig and context that the flags select.
    pub(in super::super) fn target(&self) -> ClusterTarget<'_> {
        ClusterTarget { kubeconfig: self.kubeconfig.as_deref(), context: self.context.as_deref() }
    }

    /// True if `--context` is given.
    pub(in super::super) fn has_context_flag(&self) -> bool {
        self.context.is_some()
    }

    /// Returns the profile of the API server; `gates` replace its own feature gates.
    pub(super) fn server_profile(&self, gates: Option<&GateChoice>) -> Result<&'static Profile, Failure> {
        Ok(self.live.get_or_connect(self.target(), gates)?.profile)
    }

    /// Connects to the API server that a command reads, and prints its name first. If `CI` is set, `--context` is
    /// required, because the current context of a runner is arbitrary. `has_state` says whether the command also
    /// accepts a dump.
    pub(in super::super) fn connect(
        &self,
        has_state: bool,
        gates: Option<&GateChoice>,
    ) -> Result<&live::ConnectedServer, Failure> {
        if is_ci() && !self.has_context_flag() {
            let dump = if has_state { ", or pass a dump with --state" } else { "" };
            return Err(Failure::Usage(format!("CI is set; choose the cluster with --context NAME{dump}")));
        }
        self.live.get_or_connect(self.target(), gates)
    }
}
