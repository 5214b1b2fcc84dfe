//! The server certificate in files, and the CA with which an API server trusts it.
//!
//! If the server registers itself, certificate, key and CA are read together and used together: the CA in
//! [`RegisteredCa`] is one with which the API server trusts the certificate in use. Files that do not fit together are
//! reported, and the last valid ones stay in use.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use arc_swap::ArcSwapOption;

use super::cert_files::{CertificateSource, FileContents, parent_directory, read_same_generation};
use super::clock;
use super::metrics::Metrics;
use super::settings::RegisteredAddress;
use super::tls::{CertificateResolver, certified_key_and_expiry, parse_certificates, parse_key};
use super::trust::{Untrusted, check_ca_bundle_is_unexpired, check_server_cert, check_server_name};

/// The CA certificates to register, PEM; none if the certificate is self-signed, or if something else registers its CA.
#[derive(Clone, Debug, Default)]
pub struct RegisteredCa(Arc<ArcSwapOption<Vec<u8>>>);

impl RegisteredCa {
    /// The CA certificates with which the API server trusts the certificate in use.
    pub fn get(&self) -> Option<Arc<Vec<u8>>> {
        self.0.load_full()
    }
}

/// The files with the server certificate, and what happens with their contents.
pub(super) struct ServerFiles {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    /// How the API server calls the server, if the server registers itself.
    pub(super) address: Option<RegisteredAddress>,
    pub(super) resolver: Arc<CertificateResolver>,
    pub(super) ca: RegisteredCa,
}

impl ServerFiles {
    /// The source that reads and uses the files now and whenever they change.
    pub(super) fn into_source(self, metrics: Arc<Metrics>) -> anyhow::Result<CertificateSource> {
        let files = [Some(&self.certificate), Some(&self.key), self.ca_file()];
        let files: Vec<PathBuf> = files.into_iter().flatten().cloned().collect();
        let directories = files.iter().map(|file| parent_directory(file).to_owned()).collect();
        CertificateSource::from_files(
            "server",
            directories,
            metrics,
            Box::new(move || read_same_generation(&files)),
            Box::new(move |contents| self.apply(contents)),
        )
    }

    fn ca_file(&self) -> Option<&PathBuf> {
        self.address.as_ref().and_then(|address| address.ca.as_ref())
    }

    /// Uses these contents of the files; returns when the certificate expires.
    fn apply(&self, contents: &FileContents) -> anyhow::Result<i64> {
        let ServerFiles { certificate, key, .. } = self;
        let [chain, key_pem, ca @ ..] = contents.as_slice() else {
            anyhow::bail!("a certificate and a key are required")
        };
        parse_certificates(chain).with_context(|| shown(certificate))?;
        parse_key(key_pem).with_context(|| shown(key))?;
        let (pair, expires) = certified_key_and_expiry(chain, key_pem)
            .with_context(|| format!("{} and {}", shown(certificate), shown(key)))?;
        self.check_trust(chain, key_pem, ca.first())?;
        self.resolver.set(pair);
        if let Some(ca) = ca.first() {
            self.ca.0.store(Some(Arc::new(ca.clone())));
        }
        Ok(expires)
    }

    /// Checks that the API server would trust the certificate.
    fn check_trust(&self, chain: &[u8], key: &[u8], ca: Option<&Vec<u8>>) -> anyhow::Result<()> {
        let Some(RegisteredAddress { host, .. }) = &self.address else { return Ok(()) };
        let (checked, with) = match (ca, self.ca_file()) {
            (Some(ca), Some(file)) => {
                parse_certificates(ca).with_context(|| shown(file))?;
                let now = clock::unix_seconds();
                let checked = check_ca_bundle_is_unexpired(ca, now)
                    .map_err(Untrusted::NotNow)
                    .and_then(|()| check_server_cert(chain, key, ca, host, now));
                (checked, format!(" with the CA in {}", shown(file)))
            }
            _ => (check_server_name(chain, host), String::new()),
        };
        match checked {
            // A server that starts with expired files serves, says so, and takes up new ones.
            Err(Untrusted::NotNow(_)) if !self.resolver.has_certificate() => Ok(()),
            checked => checked.with_context(|| {
                format!("{}: the API server would not trust this certificate{with}", shown(&self.certificate))
            }),
        }
    }
}

fn shown(file: &Path) -> String {
    file.display().to_string()
}
