//! TLS: the server certificate, replaced while connections are open, and the verification of clients.
//!
//! TLS 1.3, and 1.2 by flag. No session resumption: the API server does not use it, and a resumed session would skip
//! the verification of the client certificate. `h2` is never offered.

use std::sync::Arc;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::cert_files::FileContents;

/// The crypto provider of the process.
pub(super) fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Supported versions of TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TlsVersions {
    /// Only TLS 1.3, which every API server supports.
    Tls13,
    /// TLS 1.3 and 1.2, for old probes and middleboxes.
    Tls12AndTls13,
}

/// The TLS configuration of the server; with `clients`, connections need a client certificate.
pub(super) fn server_config(
    versions: TlsVersions,
    resolver: Arc<CertificateResolver>,
    clients: Option<Arc<ClientVerifier>>,
) -> anyhow::Result<ServerConfig> {
    let versions: &[_] = match versions {
        TlsVersions::Tls13 => &[&rustls::version::TLS13],
        TlsVersions::Tls12AndTls13 => &[&rustls::version::TLS13, &rustls::version::TLS12],
    };
    let builder = ServerConfig::builder_with_provider(crypto_provider()).with_protocol_versions(versions)?;
    let builder = match clients {
        Some(clients) => builder.with_client_cert_verifier(clients),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(resolver);
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// The server certificate in use, which can be replaced while connections are open.
#[derive(Debug)]
pub(super) struct CertificateResolver(ArcSwap<Option<Arc<CertifiedKey>>>);

impl CertificateResolver {
    pub(super) fn empty() -> Arc<CertificateResolver> {
        Arc::new(CertificateResolver(ArcSwap::from_pointee(None)))
    }

    /// True if there is a certificate in use.
    pub(super) fn has_certificate(&self) -> bool {
        self.0.load().is_some()
    }

    /// Uses a certificate from now on.
    pub(super) fn set(&self, pair: CertifiedKey) {
        self.0.store(Arc::new(Some(Arc::new(pair))));
    }

    /// Uses the contents of both files from now on: the chain, then the key. Returns the earliest expiry (seconds since
    /// 1970); an error changes nothing.
    pub(super) fn set_from_files_and_get_expiry(&self, contents: &FileContents) -> anyhow::Result<i64> {
        let [chain, key] = contents.as_slice() else { anyhow::bail!("a certificate and a key are required") };
        let (pair, expires) = certified_key_and_expiry(chain, key)?;
        self.set(pair);
        Ok(expires)
    }
}

/// A certificate chain with its key (PEM), and its earliest expiry in seconds since 1970.
pub(super) fn certified_key_and_expiry(chain: &[u8], key: &[u8]) -> anyhow::Result<(CertifiedKey, i64)> {
    let chain = parse_certificates(chain)?;
    let expires = earliest_expiry(&chain)?;
    Ok((certified_key(chain, key)?, expires))
}

/// A certificate chain with its key (PEM).
pub(super) fn certified_key(chain: Vec<CertificateDer<'static>>, key: &[u8]) -> anyhow::Result<CertifiedKey> {
    CertifiedKey::from_der(chain, parse_key(key)?, &crypto_provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => anyhow::anyhow!("the key does not match the certificate"),
        error => anyhow::Error::new(error).context("the key cannot be used"),
    })
}

/// The private key in a PEM text.
pub(super) fn parse_key(pem: &[u8]) -> anyhow::Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_slice(pem).context("the key is not PEM")
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Option::clone(&self.0.load())
    }
}

/// The certificates of a PEM text; an error if there is none.
pub(super) fn parse_certificates(pem: &[u8]) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let chain = chain.context("the certificate is not PEM")?;
    anyhow::ensure!(!chain.is_empty(), "the file contains no certificate");
    Ok(chain)
}

/// The earliest expiry of the certificates, in seconds since 1970.
fn earliest_expiry(chain: &[CertificateDer<'_>]) -> anyhow::Result<i64> {
    let mut earliest = i64::MAX;
    for certificate in chain {
        let (_, parsed) = X509Certificate::from_der(certificate).context("cannot parse a certificate")?;
        earliest = earliest.min(parsed.validity().not_after.timestamp());
    }
    Ok(earliest)
}

/// Verifies client certificates: signed by the CA, and with one of the listed names, if any are.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    verifier: ArcSwap<Option<Arc<dyn ClientCertVerifier>>>,
    names: Vec<String>,
    provider: Arc<CryptoProvider>,
}

impl ClientVerifier {
    pub(super) fn new(names: Vec<String>) -> Arc<ClientVerifier> {
        Arc::new(ClientVerifier { verifier: ArcSwap::from_pointee(None), names, provider: crypto_provider() })
    }

    /// Uses the CA certificates (PEM) from now on. Returns the earliest expiry (seconds since 1970); an error changes
    /// nothing.
    pub(super) fn set_ca_from_files_and_get_expiry(&self, contents: &FileContents) -> anyhow::Result<i64> {
        let authorities = parse_certificates(contents.first().map_or(&[][..], Vec::as_slice))?;
        let expires = earliest_expiry(&authorities)?;
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority).context("not a CA certificate")?;
        }
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), self.provider.clone()).build()?;
        self.verifier.store(Arc::new(Some(verifier)));
        Ok(expires)
    }

    /// True if a name of the certificate is listed, or no names are.
    fn is_name_allowed(&self, certificate: &CertificateDer<'_>) -> bool {
        if self.names.is_empty() {
            return true;
        }
        let Ok((_, parsed)) = X509Certificate::from_der(certificate) else { return false };
        let listed = |name: &str| self.names.iter().any(|listed| listed == name);
        // With several common names it is not clear which one the CA verified.
        let mut common_names = parsed.subject().iter_common_name();
        let common_name = match (common_names.next(), common_names.next()) {
            (Some(only), None) => only.as_str().is_ok_and(listed),
            _ => false,
        };
        let alternative = parsed.subject_alternative_name().ok().flatten().is_some_and(|names| {
            names
                .value
                .general_names
                .iter()
                .any(|name| matches!(name, GeneralName::DNSName(dns) if listed(dns)))
        });
        common_name || alternative
    }
}

impl ClientCertVerifier for ClientVerifier {
    /// Sends clients no list of accepted CAs: it would have to outlive a reload, and a client without the right
    /// certificate fails either way.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let verifier = Option::clone(&self.verifier.load());
        let verifier = verifier.ok_or_else(|| rustls::Error::General("no client CA yet".to_owned()))?;
        let verified = verifier.verify_client_cert(end_entity, intermediates, now)?;
        if self.is_name_allowed(end_entity) {
            Ok(verified)
        } else {
            Err(rustls::Error::InvalidCertificate(rustls::CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::CertificateResolver;
    use crate::SelfSignedCerts;

    #[test]
    fn a_pair_that_cannot_be_used_says_why() {
        let certs = |name: &str| {
            let certs =
                SelfSignedCerts::load_or_create(None, vec![name.to_owned()], 1_800_000_000).expect("made");
            certs.server_cert_and_key().expect("made")
        };
        let ((certificate, key), (_, other_key)) = (certs("a"), certs("b"));
        let resolver = CertificateResolver::empty();
        for (certificate, key, expected) in [
            ("", key.as_str(), "the file contains no certificate"),
            (certificate.as_str(), "", "the key is not PEM"),
            (certificate.as_str(), other_key.as_str(), "the key does not match the certificate"),
        ] {
            let files = vec![certificate.as_bytes().to_vec(), key.as_bytes().to_vec()];
            let error = resolver.set_from_files_and_get_expiry(&files).expect_err(expected);
            assert_eq!(error.to_string(), expected);
            assert!(!resolver.has_certificate());
        }
        assert!(
            resolver.set_from_files_and_get_expiry(&vec![certificate.clone().into_bytes()]).is_err(),
            "a key is missing"
        );
        let expires = resolver
            .set_from_files_and_get_expiry(&vec![certificate.into_bytes(), key.into_bytes()])
            .expect("a pair");
        assert!(expires > 1_800_000_000);
    }
}
