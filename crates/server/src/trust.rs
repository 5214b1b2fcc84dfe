//! Whether an API server would trust a certificate: asked before a certificate is put into a manifest or registered.
//!
//! An API server is a Go client that trusts the caBundle and nothing else. Only what Go refuses is refused here: a CA
//! as the server's certificate, for one, passes in Go and not in webpki.

use std::fmt;

use anyhow::Context as _;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, RootCertStore};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::self_signed::dns_or_ip_name_text;
use super::tls::{certified_key, crypto_provider, parse_certificates};

/// Checks that the text is a CA bundle: PEM certificates, of which at least one has not expired.
pub fn check_ca_bundle_is_unexpired(bundle: &[u8], now: i64) -> anyhow::Result<()> {
    let mut latest = i64::MIN;
    for certificate in parse_certificates(bundle)? {
        let (_, parsed) = X509Certificate::from_der(&certificate).context("cannot parse a certificate")?;
        latest = latest.max(parsed.validity().not_after.timestamp());
    }
    anyhow::ensure!(latest > now, "all of its certificates have expired");
    Ok(())
}

/// Why an API server would not trust a certificate.
#[derive(Debug)]
pub enum Untrusted {
    /// It would not at any time: another name, another CA, no certificate.
    Ever(anyhow::Error),
    /// It would not at this time: the certificate or its CA has expired, or is not valid yet.
    NotNow(anyhow::Error),
}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Untrusted::Ever(why) | Untrusted::NotNow(why)) = self;
        write!(f, "{why:#}")
    }
}

impl std::error::Error for Untrusted {}

impl From<anyhow::Error> for Untrusted {
    fn from(error: anyhow::Error) -> Untrusted {
        Untrusted::Ever(error)
    }
}

/// Checks that a client with this CA bundle trusts a server with this chain and key under this name. All are PEM.
pub fn check_server_cert(
    chain: &[u8],
    key: &[u8],
    bundle: &[u8],
    name: &str,
    now: i64,
) -> Result<(), Untrusted> {
    check_server_name(chain, name)?;
    match verify_chain(chain, key, bundle, name, now)? {
        // Another CA of the same name.
        Some(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            Err(Untrusted::Ever(anyhow::anyhow!("the certificate is not signed by this CA")))
        }
        Some(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            Err(Untrusted::NotNow(anyhow::anyhow!("the certificate or its CA has expired")))
        }
        Some(CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. }) => {
            Err(Untrusted::NotNow(anyhow::anyhow!("the certificate or its CA is not valid yet")))
        }
        Some(CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. }) => Err(
            Untrusted::Ever(anyhow::anyhow!("the certificate is not valid for servers (extended key usage)")),
        ),
        _ => Ok(()),
    }
}

/// Checks that the first certificate of the chain (PEM) is valid for this name.
pub(super) fn check_server_name(chain: &[u8], name: &str) -> Result<(), Untrusted> {
    let chain = parse_certificates(chain)?;
    let leaf = chain.first().context("there is no certificate")?;
    let server_name = server_name(name)?;
    let is_named =
        ParsedCertificate::try_from(leaf).and_then(|parsed| verify_server_name(&parsed, &server_name));
    if is_named.is_err() {
        let names = certificate_names_for_error_message(leaf)?.join(", ");
        let why = anyhow::anyhow!("the certificate is not valid for {name}; it contains {names}");
        return Err(Untrusted::Ever(why));
    }
    Ok(())
}

fn server_name(name: &str) -> anyhow::Result<ServerName<'_>> {
    ServerName::try_from(name).with_context(|| format!("{name} is not a host name"))
}

/// Verifies the chain and its key with this CA bundle; returns what is wrong with it.
fn verify_chain(
    chain: &[u8],
    key: &[u8],
    bundle: &[u8],
    name: &str,
    now: i64,
) -> anyhow::Result<Option<CertificateError>> {
    let chain = parse_certificates(chain)?;
    certified_key(chain.clone(), key)?;
    let (leaf, rest) = chain.split_first().context("there is no certificate")?;
    let authorities = parse_certificates(bundle)?;
    let is_pinned = authorities.contains(leaf);
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(authorities);
    anyhow::ensure!(added > 0, "cannot parse the CA certificate");
    let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), crypto_provider()).build()?;
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now.try_into().unwrap_or_default()));
    match verifier.verify_server_cert(leaf, rest, &server_name(name)?, &[], now) {
        // Go accepts a certificate that is itself in the bundle.
        Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)) if is_pinned => Ok(None),
        Err(Error::InvalidCertificate(error)) => Ok(Some(error)),
        _ => Ok(None),
    }
}

/// The DNS names and IP addresses of a certificate.
fn certificate_names_for_error_message(certificate: &CertificateDer<'_>) -> anyhow::Result<Vec<String>> {
    let (_, parsed) = X509Certificate::from_der(certificate).context("cannot parse a certificate")?;
    let names = parsed.subject_alternative_name().ok().flatten();
    let names: Vec<String> = names
        .iter()
        .flat_map(|names| names.value.general_names.iter().map(dns_or_ip_name_text))
        .filter(|name| !name.is_empty())
        .collect();
    Ok(if names.is_empty() { vec!["no DNS name or address".to_owned()] } else { names })
}

#[cfg(test)]
mod tests {
    use super::{check_ca_bundle_is_unexpired, check_server_cert};
    use crate::self_signed::SelfSignedCerts;

    const NOW: i64 = 1_800_000_000;
    const YEAR: i64 = 365 * 24 * 60 * 60;

    fn made(names: &[&str]) -> SelfSignedCerts {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        SelfSignedCerts::load_or_create(None, names, NOW).expect("made")
    }

    #[test]
    fn only_what_an_api_server_trusts_passes() {
        let (one, other) = (made(&["a.example.com", "192.0.2.1"]), made(&["a.example.com"]));
        let (chain, key) = one.server_cert_and_key().expect("a pair");
        let check = |bundle: &str, name: &str, now| {
            let checked = check_server_cert(chain.as_bytes(), key.as_bytes(), bundle.as_bytes(), name, now);
            checked.map_err(|error| format!("{error:#}")).err().unwrap_or_default()
        };
        let ours = one.ca_bundle();
        assert_eq!(check(&ours, "a.example.com", NOW), "");
        assert_eq!(check(&ours, "192.0.2.1", NOW), "");
        let said = check(&ours, "b.example.com", NOW);
        assert_eq!(
            said,
            "the certificate is not valid for b.example.com; it contains a.example.com, 192.0.2.1"
        );
        assert_eq!(
            check(&other.ca_bundle(), "a.example.com", NOW),
            "the certificate is not signed by this CA"
        );
        assert_eq!(check(&ours, "a.example.com", NOW + YEAR), "the certificate or its CA has expired");
        assert_eq!(check(&ours, "a.example.com", NOW - YEAR), "the certificate or its CA is not valid yet");
        let (_, strange) = other.server_cert_and_key().expect("a pair");
        let mixed =
            check_server_cert(chain.as_bytes(), strange.as_bytes(), ours.as_bytes(), "a.example.com", NOW);
        assert!(mixed.is_err_and(|error| error.to_string() == "the key does not match the certificate"));
    }

    #[test]
    fn a_bundle_has_a_certificate_that_is_valid() {
        let ours = made(&["a"]).ca_bundle();
        assert!(check_ca_bundle_is_unexpired(ours.as_bytes(), NOW).is_ok());
        assert!(check_ca_bundle_is_unexpired(ours.as_bytes(), NOW + 3 * YEAR).is_err());
        for text in ["", "CA", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            assert!(check_ca_bundle_is_unexpired(text.as_bytes(), NOW).is_err(), "{text}");
        }
    }
}
