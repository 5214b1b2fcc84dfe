//! `--register`: which webhook configurations are registered, with which CA bundle, and when.
//!
//! Registers what `tollgate manifests --policy` prints, and follows every reload of the policies: extended before the
//! new policies are used, reduced afterwards.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::configurations::{CaSource, DesiredWebhookEntries, WebhookConfigurationId, reload_hooks};
use crate::cli::manifests::{parse_namespace, parse_optional_api, parse_url, refuse_private_key_in};
use crate::cli::outcome::Failure;
use crate::cli::units::parse_duration;
use crate::cluster::{Cluster, LeaseHandle, SharedRegistrationStatus, WebhookRegistration};
use crate::registration::{OptionalApi, WebhookDestination};
use crate::server::{
    BackgroundTask, CertificateSettings, ComponentStatus, MetricSample, RegisteredAddress, Server,
};

/// The flags of `--register`, with which the server registers its own webhook configurations.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Registration")]
pub(super) struct RegisterArgs {
    /// Create the webhook configurations for the Service or a URL, and keep them up to date
    ///
    /// The configurations are created once the server is ready, and their caBundle is kept up to date. The API server
    /// calls the Service (`service`) or a URL (https://host:port). Requires a kubeconfig or a service account.
    #[arg(long, value_name = "service|URL", env = "TOLLGATE_REGISTER", value_parser = parse_register_target)]
    register: Option<RegisterTarget>,

    /// Namespace of the Service
    #[arg(long, value_name = "NAME", env = "TOLLGATE_REGISTER_NAMESPACE", default_value = WebhookDestination::DEFAULT_NAMESPACE)]
    #[arg(requires = "register", value_parser = parse_namespace)]
    #[arg(hide_short_help = true)]
    register_namespace: String,

    /// Name of the webhook configurations
    #[arg(long, value_name = "NAME", env = "TOLLGATE_REGISTER_NAME", default_value = WebhookDestination::DEFAULT_NAME)]
    #[arg(requires = "register", value_parser = parse_namespace)]
    #[arg(hide_short_help = true)]
    register_name: String,

    /// Also register webhooks for these APIs, separated by commas: pods, classic-dra, foundationdb, kep-5055-r1
    #[arg(long, value_name = "API", env = "TOLLGATE_REGISTER_WITH", value_delimiter = ',')]
    #[arg(requires = "register", value_parser = parse_optional_api)]
    #[arg(hide_short_help = true)]
    register_with: Vec<OptionalApi>,

    /// ClusterRole that owns the webhook configurations; they are deleted together with the ClusterRole
    #[arg(long, value_name = "NAME", env = "TOLLGATE_REGISTER_OWNER", value_parser = parse_namespace)]
    #[arg(requires = "register")]
    #[arg(hide_short_help = true)]
    register_owner: Option<String>,

    /// Check only objects that have this label, for a gradual rollout
    #[arg(long, value_name = "KEY=VALUE", env = "TOLLGATE_REGISTER_ONLY", value_parser = parse_label)]
    #[arg(requires = "register")]
    #[arg(hide_short_help = true)]
    register_only: Option<(String, String)>,

    /// Set `failurePolicy: Fail` on all webhook entries, so that objects that cannot be checked are rejected
    #[arg(long, env = "TOLLGATE_REGISTER_FAIL_CLOSED", requires = "register")]
    #[arg(hide_short_help = true)]
    register_fail_closed: bool,

    /// PEM file with the CA of --tls-cert, for the caBundle; reloaded when it changes (default: `ca.crt` in the
    /// directory of the certificate; if that file does not exist, the caBundle is not managed)
    #[arg(long, value_name = "FILE", env = "TOLLGATE_REGISTER_CA", requires_all = ["register", "tls_cert"])]
    #[arg(hide_short_help = true)]
    register_ca: Option<PathBuf>,

    /// Time to wait before the webhook configurations are first created, so that the Service has endpoints by then
    #[arg(long, value_name = "TIME", env = "TOLLGATE_REGISTER_DELAY", default_value = "5s")]
    #[arg(value_parser = parse_duration, requires = "register")]
    #[arg(hide_short_help = true)]
    register_delay: Duration,
}

/// How the API server reaches the webhook: through a Service or a URL.
#[derive(Clone, PartialEq, Eq, Debug)]
enum RegisterTarget {
    Service,
    Url(String),
}

fn parse_register_target(text: &str) -> Result<RegisterTarget, String> {
    if text == "service" {
        return Ok(RegisterTarget::Service);
    }
    parse_url(text).map(RegisterTarget::Url).map_err(|error| format!("{error}, or `service`"))
}

/// Parses `KEY=VALUE`.
fn parse_label(text: &str) -> Result<(String, String), String> {
    let legal = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && legal(key) && legal(value) => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

impl RegisterArgs {
    /// True if the server registers itself.
    pub(super) fn is_enabled(&self) -> bool {
        self.register.is_some()
    }

    /// Returns how the API server reaches the webhook: the Service or URL to register; `None` without
    /// `--register`.
    fn destination(&self) -> Option<WebhookDestination> {
        let url = match self.register.as_ref()? {
            RegisterTarget::Service => None,
            RegisterTarget::Url(url) => Some(url.clone()),
        };
        Some(WebhookDestination {
            url,
            namespace: self.register_namespace.clone(),
            name: self.register_name.clone(),
            only: self.register_only.clone(),
            fail_closed: self.register_fail_closed,
        })
    }

    /// Returns the host name that the API server connects to, which a self-signed certificate must include;
    /// `None` without `--register`.
    pub(super) fn advertised_host_name(&self) -> Option<String> {
        Some(self.destination()?.url_or_service_host_name())
    }

    /// Starts to register the webhook configurations once the server is ready. The returned tasks report the
    /// status. With a Lease, policies can be custom resources, and only its holder removes unneeded entries.
    pub(super) fn start_registration(
        &self,
        cluster: &Cluster,
        server: &Server,
        certificates: &CertificateSettings,
        ready: &Arc<dyn Fn() -> bool + Send + Sync>,
        lease: Option<LeaseHandle>,
    ) -> Result<Vec<BackgroundTask>, Failure> {
        let Some(here) = self.destination() else { return Ok(Vec::new()) };
        let ca_source = self.ca_source(server, certificates);
        if let CaSource::File(file, ca) = &ca_source
            && let Some(pem) = ca.get()
        {
            refuse_private_key_in(file, &pem)?;
        }
        let engine_handle = server.engine_handle();
        let desired = Arc::new(engine_handle.with_engine(|engine| DesiredWebhookEntries::new(engine, lease)));
        // A CA in memory must be registered before the Service sends requests here. One in a directory may be
        // registered already, and readiness does not matter for a server outside of the cluster.
        let in_memory = matches!(certificates, CertificateSettings::SelfSigned { directory: None, .. });
        let gated = here.url.is_none() && in_memory;
        let delay = if here.url.is_none() { self.register_delay } else { Duration::ZERO };
        let mut tasks = Vec::new();
        let mut statuses = Vec::new();
        for configuration in WebhookConfigurationId::base_and_optional(&self.register_with) {
            let registration = WebhookRegistration {
                desired: configuration.manifest_fn(here.clone(), ca_source.clone(), desired.clone()),
                revision: desired.subscribe(),
                may_narrow: desired.may_remove_entries_fn(),
                ready: ready.clone(),
                delay,
                owner: self.register_owner.clone(),
            };
            let status = cluster.keep_webhook_registered(registration)?;
            statuses.push(status.clone());
            let status = move || {
                let (settled, report) = settled_and_status(&status, configuration.label);
                ComponentStatus { ready: settled || !gated, ..report }
            };
            tasks.push(BackgroundTask { name: configuration.task_name(), status: Arc::new(status) });
        }
        for configuration in WebhookConfigurationId::optional_without(&self.register_with) {
            cluster.keep_webhook_unregistered(WebhookRegistration {
                desired: configuration.manifest_fn(here.clone(), ca_source.clone(), desired.clone()),
                revision: desired.subscribe(),
                // This depends on the flags, and not on policies that this process may not know yet.
                may_narrow: Arc::new(|| true),
                ready: ready.clone(),
                delay: Duration::ZERO,
                owner: None,
            })?;
        }
        engine_handle.set_hooks_once_and_call_after_hook(reload_hooks(desired, statuses));
        Ok(tasks)
    }

    /// Returns how the API server calls the server, and the file with the CA that is registered with certificates from
    /// files: `--register-ca`, or `ca.crt` beside the certificate. `None` without `--register`.
    pub(super) fn registered_address(&self, certificates: &CertificateSettings) -> Option<RegisteredAddress> {
        let ca = match certificates {
            CertificateSettings::Files { certificate, .. } => {
                let beside = Some(certificate.with_file_name("ca.crt")).filter(|file| file.exists());
                self.register_ca.clone().or(beside)
            }
            CertificateSettings::SelfSigned { .. } => None,
        };
        Some(RegisteredAddress { host: self.advertised_host_name()?, ca })
    }

    /// Determines the CA bundle to register: the self-signed CA, or a file; external if there is none of these.
    fn ca_source(&self, server: &Server, certificates: &CertificateSettings) -> CaSource {
        let file = self.registered_address(certificates).and_then(|address| address.ca);
        match (server.self_signed(), file) {
            (Some(made), _) => CaSource::Own(made),
            (None, Some(file)) => CaSource::File(file, server.registered_ca()),
            (None, None) => CaSource::External,
        }
    }
}

/// Returns whether the webhook configuration was ever registered successfully, and the status of its registration.
fn settled_and_status(
    status: &SharedRegistrationStatus,
    configuration: &'static str,
) -> (bool, ComponentStatus) {
    let state = status.get();
    let label = Some(("configuration", configuration));
    let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let sample = |name, help, value| MetricSample { name, help, label, value };
    let samples = vec![
        sample(
            "registration_ok",
            "1 if the webhook configuration in the cluster matches the desired configuration",
            i64::from(state.ok),
        ),
        sample(
            "registration_writes_total",
            "Number of times that the webhook configuration was created or updated",
            count(state.done),
        ),
        sample(
            "registration_reverts_total",
            "Number of times that the webhook configuration was changed by others, or by another server with the same \
             --register-name",
            count(state.reverts),
        ),
        sample(
            "registration_failures_total",
            "Failed requests to read, create or update the webhook configuration",
            count(state.failed),
        ),
    ];
    // A registration that fails later does not make the server unready.
    (state.settled, ComponentStatus { ready: true, degraded: !state.ok, message: state.message, samples })
}

#[cfg(test)]
mod tests {
    use super::{RegisterTarget, parse_register_target};

    #[test]
    fn a_place_is_the_service_or_a_url() {
        assert_eq!(parse_register_target("service"), Ok(RegisterTarget::Service));
        assert_eq!(
            parse_register_target("https://a:8443/"),
            Ok(RegisterTarget::Url("https://a:8443".to_owned()))
        );
        for text in [
            "https://a/hooks",
            "https://a:8443/validate",
            "",
            "http://a",
            "https://",
            "https://u@a",
            "https://a?b",
            "https://a#b",
            "a:8443",
        ] {
            assert!(parse_register_target(text).is_err(), "{text}");
        }
    }
}
