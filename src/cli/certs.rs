//! `tollgate certs`: creates a CA and a server certificate, with their keys, for development.

use std::io::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;

use super::clock;
use super::console::{Console, quote_for_shell};
use super::outcome::{ExitCounts, Failure};
use crate::files::{self, MAX_PEM};
use crate::registration::WebhookDestination;
use crate::server::SelfSignedCerts;
use tollgate_api::conform::suggest::join_with_and;
use tollgate_formats::{names, sanitize};

/// Create a CA and a server certificate for development
///
/// Writes ca.crt, ca.key, tls.crt and tls.key. Keeps existing certificates, but replaces certificates that expire soon,
/// that have other names, or that cannot be used. The keys are secret, so keep the directory out of version control.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Directory to write to
    #[arg(value_name = "DIR", default_value = "certs")]
    directory: PathBuf,

    /// DNS names and IP addresses of the server, separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_values_t = default_cert_names())]
    #[arg(value_parser = parse_certificate_name)]
    dns_name: Vec<String>,
}

/// Names of the files that the command writes.
const CERT_FILE_NAMES: [&str; 4] = ["ca.crt", "ca.key", "tls.crt", "tls.key"];

/// Parses a name for a certificate: a DNS name, also with `*.` before it, or an IP address.
pub(super) fn parse_certificate_name(text: &str) -> Result<String, String> {
    // Container networks also have names with underscores, which TLS clients accept.
    let is_label = |label: &str| names::is_dns_label(&label.to_ascii_lowercase().replace('_', "-"));
    let host = text.strip_prefix("*.").unwrap_or(text);
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    let has_name_ending = host.rsplit('.').next().is_some_and(|last| !is_number(last));
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.to_string());
    }
    if host.len() <= 253 && has_name_ending && host.split('.').all(is_label) {
        return Ok(text.to_owned());
    }
    Err("use a DNS name such as tollgate.example.com, or an IP address".to_owned())
}

/// The default names in a certificate: those of the Service, and those of the local machine.
pub(super) fn default_cert_names() -> Vec<String> {
    let service = ["tollgate.tollgate-system.svc", "tollgate.tollgate-system.svc.cluster.local"];
    let local = ["localhost", "127.0.0.1", "::1"];
    service.into_iter().chain(local).map(str::to_owned).collect()
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let read = |name: &str| files::read_bytes(&self.directory.join(name), MAX_PEM).ok();
        let before = CERT_FILE_NAMES.map(read);
        SelfSignedCerts::load_or_create(
            Some(self.directory.clone()),
            self.dns_name.clone(),
            clock::unix_seconds(),
        )
        .map_err(|error| Failure::Input(format!("{error:#}")))?;
        let replaced = CERT_FILE_NAMES
            .into_iter()
            .zip(before)
            .filter(|(name, before)| before.is_some() && read(name) != *before);
        let replaced: Vec<&str> = replaced.map(|(name, _)| name).collect();
        if !replaced.is_empty() {
            console.note(&format!(
                "replaced {}: a certificate expired or expires soon, has other names than --dns-name, or could not be used",
                join_with_and(&replaced)
            ));
        }
        let directory = self.directory.display().to_string();
        let (directory, word) = (sanitize::sanitize_as_line(&directory), quote_for_shell(&directory));
        writeln!(console, "{directory}: ca.crt, ca.key, tls.crt, tls.key")?;
        // Served with other names, the certificate would be made again for those.
        let named = if self.dns_name == default_cert_names() {
            String::new()
        } else {
            let given: Vec<String> = self.dns_name.iter().map(|name| quote_for_shell(name)).collect();
            format!(" --dns-name {}", given.join(","))
        };
        writeln!(console, "serve     tollgate serve --cert-dir {word}{named}")?;
        let install = WebhookDestination::default_service(WebhookDestination::DEFAULT_NAMESPACE);
        if self.dns_name.contains(&install.url_or_service_host_name()) {
            writeln!(console, "install   tollgate manifests --cert-dir {word} | kubectl apply -f -")?;
        }
        Ok(ExitCounts::default())
    }
}
