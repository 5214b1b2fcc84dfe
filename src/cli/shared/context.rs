//! The cluster of `--context` and `--kubeconfig`. A command connects to it at most once.

#[cfg(feature = "mcp")]
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
#[cfg(feature = "cluster")]
use std::sync::OnceLock;

use clap::Args;

use super::super::console::quote_for_shell;
#[cfg(feature = "cluster")]
use super::super::console::{Console, is_ci};
#[cfg(feature = "cluster")]
use super::super::live::ConnectedServer;
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
    #[cfg_attr(feature = "cluster", arg(long, value_name = "NAME", env = "TOLLGATE_CONTEXT"))]
    #[cfg_attr(feature = "cluster", arg(help_heading = "Cluster"))]
    #[cfg_attr(not(feature = "cluster"), arg(skip))]
    context: Option<String>,

    /// Kubeconfig file (default: KUBECONFIG, ~/.kube/config, or the service account of the pod)
    #[cfg_attr(feature = "cluster", arg(long, value_name = "FILE", env = "TOLLGATE_KUBECONFIG"))]
    #[cfg_attr(feature = "cluster", arg(help_heading = "Cluster", hide_short_help = true))]
    #[cfg_attr(not(feature = "cluster"), arg(skip))]
    kubeconfig: Option<PathBuf>,

    /// The API server, asked on first use, and only once.
    #[cfg(feature = "cluster")]
    #[arg(skip)]
    live: OnceLock<ConnectedServer>,
}

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

    /// True if `--context` is given.
    pub(in super::super) fn has_context_flag(&self) -> bool {
        self.context.is_some()
    }

    /// True if the policies of a cluster are to be read: with `--context`, and without policy files also with
    /// `--kubeconfig`, which the environment can set for other commands.
    #[cfg(feature = "cluster")]
    pub(in super::super) fn names_cluster_of_policies(&self, has_files: bool) -> bool {
        self.context.is_some() || self.kubeconfig.is_some() && !has_files
    }
}

#[cfg(not(feature = "cluster"))]
impl ContextArgs {
    #[expect(clippy::unused_self, reason = "the same call with and without the feature")]
    pub(super) fn server_profile(&self, _: Option<&GateChoice>) -> Result<&'static Profile, Failure> {
        Err(Failure::Usage("--kubernetes cluster: this build cannot connect to clusters".to_owned()))
    }
}

#[cfg(feature = "cluster")]
impl ContextArgs {
    /// Returns the kubeconfig and context that the flags select.
    pub(in super::super) fn target(&self) -> ClusterTarget<'_> {
        ClusterTarget { kubeconfig: self.kubeconfig.as_deref(), context: self.context.as_deref() }
    }

    /// Returns the profile of the API server; `gates` replace its own feature gates.
    pub(super) fn server_profile(&self, gates: Option<&GateChoice>) -> Result<&'static Profile, Failure> {
        Ok(self.get_or_connect(gates)?.profile)
    }

    /// Connects to the API server the first time, and returns the same connection afterwards.
    fn get_or_connect(&self, gates: Option<&GateChoice>) -> Result<&ConnectedServer, Failure> {
        if let Some(asked) = self.live.get() {
            return Ok(asked);
        }
        let asked = ConnectedServer::connect(self.target(), gates, &mut Console::open())?;
        Ok(self.live.get_or_init(|| asked))
    }

    /// Connects to the API server that a command reads, and prints its name first. If `CI` is set, `--context` is
    /// required, because the current context of a runner is arbitrary. `has_state` says whether the command also
    /// accepts a dump.
    pub(in super::super) fn connect_requiring_context_in_ci(
        &self,
        has_state: bool,
        gates: Option<&GateChoice>,
    ) -> Result<&ConnectedServer, Failure> {
        if is_ci() && !self.has_context_flag() {
            let dump = if has_state { ", or pass a dump with --state" } else { "" };
            return Err(Failure::Usage(format!("CI is set; choose the cluster with --context NAME{dump}")));
        }
        self.get_or_connect(gates)
    }
}
