//! Everything of `tollgate serve` that needs an API server: opened once, asked on a thread of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::register::Registering;
use crate::cli::measures::parse_duration;
use crate::cli::outcome::Failure;
use crate::cluster::{Cluster, Timing};
use crate::server::{Certificates, Server};

/// What needs a cluster.
#[derive(Debug, clap::Args)]
pub(super) struct Asked {
    #[command(flatten)]
    register: Registering,

    /// The kubeconfig; without it KUBECONFIG, ~/.kube/config or the service account of the pod
    #[arg(long, value_name = "FILE", env = "TOLLGATE_KUBECONFIG", help_heading = "Cluster")]
    kubeconfig: Option<PathBuf>,

    /// Longest pause before an API server that failed is asked again
    #[arg(long, value_name = "TIME", env = "TOLLGATE_CLUSTER_RETRY", default_value = "30s")]
    #[arg(value_parser = parse_duration, help_heading = "Cluster")]
    cluster_retry: Duration,
}

impl Asked {
    /// The server registers itself.
    pub(super) fn registers(&self) -> bool {
        self.register.is_asked_for()
    }

    /// What can be said to be wrong before anything is started.
    pub(super) fn check(&self, certificates: &Certificates) -> Result<(), Failure> {
        self.register.check(certificates)
    }

    /// Begins what was asked for.
    pub(super) fn begin(&self, server: &Server, certificates: &Certificates) -> Result<(), Failure> {
        if !self.register.is_asked_for() {
            return Ok(());
        }
        let cluster = Cluster::open(self.kubeconfig.as_deref(), self.timing())?;
        let serving = server.serving();
        let ready: Arc<dyn Fn() -> bool + Send + Sync> = Arc::new(move || serving.is_on());
        server.accompany(self.register.begin(&cluster, server, certificates, &ready)?);
        Ok(())
    }

    fn timing(&self) -> Timing {
        let usual = Timing::default();
        let most = self.cluster_retry.max(Duration::from_millis(1));
        // Who asks for short pauses wants to see quickly whether something lasted, too.
        let stable = usual.stable.min(most * 2);
        Timing { most, least: usual.least.min(most), stable, look: usual.look.min(most), ..usual }
    }
}
