//! Self-signed certificates: a CA and a server certificate, kept in a directory or in memory, renewed with overlap.
//!
//! A new CA is in the bundle for [`CA_OVERLAP_SECONDS`] before anything is signed with it, and the old one stays in the
//! bundle until it expires: a client with yesterday's or tomorrow's bundle can connect today. [`plan_renewal`], which
//! is pure, decides what to renew.

mod bundle;

use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::cert_files::read_regular_file_up_to_limit;

const DAY_SECONDS: i64 = 24 * 60 * 60;
/// Validity of a CA certificate in seconds.
const CA_LIFETIME_SECONDS: i64 = 2 * 365 * DAY_SECONDS;
/// Validity of a server certificate in seconds.
const SERVER_LIFETIME_SECONDS: i64 = 90 * DAY_SECONDS;
/// Seconds for which a new CA is in the bundle before it signs anything, so that all clients trust it by then.
const CA_OVERLAP_SECONDS: i64 = 7 * DAY_SECONDS;
/// Seconds by which the validity of certificates begins earlier, because clocks differ.
const CLOCK_SKEW: i64 = 60 * 60;

/// File name of the bundle of CA certificates.
const CA_BUNDLE_FILE: &str = "ca.crt";
/// File name of the private keys of the CAs, in the order of the certificates in the bundle.
const CA_KEYS_FILE: &str = "ca.key";
/// File name of the server's certificate.
const CERTIFICATE_FILE: &str = "tls.crt";
/// File name of the server's private key.
const KEY_FILE: &str = "tls.key";

/// A self-signed CA and a server certificate signed by it, in memory or in a directory.
/// [`SelfSignedCerts::renew_if_needed`] replaces what is about to expire.
#[derive(Debug)]
pub struct SelfSignedCerts {
    directory: Option<PathBuf>,
    names: Vec<String>,
    held: Mutex<CertificateSet>,
}

/// The CAs and the server certificate in use, as PEM.
#[derive(Clone, Default, Debug)]
struct CertificateSet {
    /// CAs of the bundle, oldest first.
    authorities: Vec<CertAndKey>,
    server: Option<CertAndKey>,
}

/// A certificate and its private key, PEM.
#[derive(Clone, PartialEq, Eq, Debug)]
struct CertAndKey {
    certificate: String,
    key: String,
}

/// Validity of a certificate, seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Validity {
    not_before: i64,
    not_after: i64,
}

impl Validity {
    /// True in the last third of the validity.
    fn needs_renewal(self, now: i64) -> bool {
        self.not_after - now < (self.not_after - self.not_before) / 3
    }
}

/// Which CAs are kept, whether a new one is made, and which of them signs a new server certificate.
#[derive(PartialEq, Eq, Debug)]
struct RenewalPlan {
    /// For each CA, whether it is kept.
    keep: Vec<bool>,
    /// True if a new CA is created.
    new_authority: bool,
    /// Index of the CA, among the kept ones followed by a new one, that signs a new server certificate now.
    sign_with: Option<usize>,
}

/// Decides what to renew. `server` is the validity of the server certificate and the index of its CA, if known; `None`
/// if there is no certificate with the right names.
fn plan_renewal(
    now: i64,
    authorities: &[Validity],
    server: Option<(Validity, Option<usize>)>,
) -> RenewalPlan {
    let keep: Vec<bool> = authorities.iter().map(|validity| validity.not_after > now).collect();
    let kept: Vec<Validity> =
        authorities.iter().copied().filter(|validity| validity.not_after > now).collect();
    let new_authority = kept.last().is_none_or(|newest| newest.needs_renewal(now));
    // The newest one that has been in the bundle long enough, else the oldest.
    let signer =
        kept.iter().rposition(|validity| validity.not_before + CA_OVERLAP_SECONDS <= now).unwrap_or(0);
    let renew = match server {
        Some((validity, Some(issuer))) => {
            let issuer_kept = keep.get(issuer).copied().unwrap_or_default();
            let index = keep.iter().take(issuer).filter(|kept| **kept).count();
            validity.needs_renewal(now) || !issuer_kept || index != signer
        }
        Some((_, None)) | None => true,
    };
    RenewalPlan { keep, new_authority, sign_with: renew.then_some(signer) }
}

impl SelfSignedCerts {
    /// Reads the certificates in a directory and creates or renews what is needed. Without a directory they are kept in
    /// memory.
    pub fn load_or_create(
        directory: Option<PathBuf>,
        names: Vec<String>,
        now: i64,
    ) -> anyhow::Result<SelfSignedCerts> {
        let held = match &directory {
            Some(directory) => read_certificates(directory)?,
            None => CertificateSet::default(),
        };
        let made = SelfSignedCerts { directory, names, held: Mutex::new(held) };
        made.renew_if_needed(now)?;
        Ok(made)
    }

    /// Replaces a server certificate or CA in the last third of its validity, and adds a new CA before it signs. Writes
    /// the directory, if there is one. True if anything changed; `now` is seconds since 1970.
    pub fn renew_if_needed(&self, now: i64) -> anyhow::Result<bool> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let lives: Vec<Validity> = held
            .authorities
            .iter()
            .map(|pair| validity_of(&pair.certificate))
            .collect::<anyhow::Result<_>>()?;
        let server = match &held.server {
            Some(pair) if has_exactly_names(&pair.certificate, &self.names) => {
                Some((validity_of(&pair.certificate)?, signer_index(pair, &held.authorities)))
            }
            _ => None,
        };
        let plan = plan_renewal(now, &lives, server);
        if !plan.new_authority && plan.sign_with.is_none() && plan.keep.iter().all(|keep| *keep) {
            return Ok(false);
        }
        let mut next = held.clone();
        let mut keep = plan.keep.iter().copied();
        next.authorities.retain(|_| keep.next().unwrap_or(true));
        if plan.new_authority {
            next.authorities.push(make_ca(now)?);
        }
        if let Some(signer) = plan.sign_with {
            let authority =
                next.authorities.get(signer).context("there is no CA to sign the certificate with")?;
            next.server = Some(make_server_cert(&self.names, authority, now)?);
        }
        if let Some(directory) = &self.directory {
            write_certificates(directory, &next)
                .with_context(|| format!("cannot write to {}", directory.display()))?;
        }
        *held = next;
        Ok(true)
    }

    /// Returns the certificates of all CAs that clients should trust, as PEM. Base64-encoded, this is the
    /// `caBundle`.
    pub fn ca_bundle(&self) -> String {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.authorities.iter().map(|pair| pair.certificate.as_str()).collect()
    }

    /// [`Self::ca_bundle`] with the CAs of other replicas and earlier processes that the bundle in use contains.
    pub fn merged_bundle(&self, in_use: &str, now: i64) -> String {
        bundle::merge_own_and_replica_ca_bundles(&self.ca_bundle(), in_use, now)
    }

    /// Returns the certificate and the private key of the server, PEM.
    pub fn server_cert_and_key(&self) -> anyhow::Result<(String, String)> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = held.server.as_ref().context("there is no server certificate")?;
        Ok((pair.certificate.clone(), pair.key.clone()))
    }
}

/// Creates a CA with a new key.
fn make_ca(now: i64) -> anyhow::Result<CertAndKey> {
    let key = KeyPair::generate()?;
    let mut params = certificate_params(now, CA_LIFETIME_SECONDS, bundle::CA_NAME)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = params.self_signed(&key)?;
    Ok(CertAndKey { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Creates a server certificate for these names, signed by the CA.
fn make_server_cert(names: &[String], authority: &CertAndKey, now: i64) -> anyhow::Result<CertAndKey> {
    let not_after = validity_of(&authority.certificate)?.not_after;
    let issuer = Issuer::from_ca_cert_pem(&authority.certificate, KeyPair::from_pem(&authority.key)?)?;
    let key = KeyPair::generate()?;
    let mut params = certificate_params(now, SERVER_LIFETIME_SECONDS.min(not_after - now), "tollgate")?;
    for name in names {
        params.subject_alt_names.push(match name.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(name.as_str().try_into()?),
        });
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(CertAndKey { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Returns the parameters of a certificate with this common name that is valid for `validity` seconds.
fn certificate_params(now: i64, validity: i64, name: &str) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::default();
    params.not_before = OffsetDateTime::from_unix_timestamp(now - CLOCK_SKEW)?;
    params.not_after = OffsetDateTime::from_unix_timestamp(now + validity)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

/// Parses a PEM certificate and calls `look` with it.
fn with_parsed_certificate<T>(pem: &str, look: impl FnOnce(&X509Certificate<'_>) -> T) -> anyhow::Result<T> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).context("not a PEM certificate")?;
    let (_, certificate) = X509Certificate::from_der(&der).context("not a certificate")?;
    Ok(look(&certificate))
}

fn validity_of(pem: &str) -> anyhow::Result<Validity> {
    with_parsed_certificate(pem, |certificate| Validity {
        not_before: certificate.validity().not_before.timestamp(),
        not_after: certificate.validity().not_after.timestamp(),
    })
}

/// True if the certificate is for exactly these names, in this order.
fn has_exactly_names(pem: &str, names: &[String]) -> bool {
    let held = with_parsed_certificate(pem, |certificate| {
        let held = certificate.subject_alternative_name().ok().flatten();
        held.map(|held| held.value.general_names.iter().map(dns_or_ip_name_text).collect::<Vec<_>>())
    });
    held.is_ok_and(|held| held.unwrap_or_default() == names)
}

/// A DNS name or an IP address as text; empty for other kinds of names.
pub(super) fn dns_or_ip_name_text(name: &GeneralName<'_>) -> String {
    match name {
        GeneralName::DNSName(dns) => (*dns).to_owned(),
        GeneralName::IPAddress(bytes) => match <[u8; 4]>::try_from(*bytes) {
            Ok(four) => IpAddr::from(four).to_string(),
            Err(_) => {
                <[u8; 16]>::try_from(*bytes).map(|all| IpAddr::from(all).to_string()).unwrap_or_default()
            }
        },
        _ => String::new(),
    }
}

/// Returns the index of the CA that signed the server certificate, by key identifier; `None` if none of them did.
fn signer_index(server: &CertAndKey, authorities: &[CertAndKey]) -> Option<usize> {
    use x509_parser::extensions::ParsedExtension;
    let of_issuer = with_parsed_certificate(&server.certificate, |certificate| {
        certificate.iter_extensions().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.as_ref().map(|id| id.0.to_vec()),
            _ => None,
        })
    });
    let of_issuer = of_issuer.ok().flatten()?;
    authorities.iter().position(|authority| {
        let own = with_parsed_certificate(&authority.certificate, |certificate| {
            certificate.iter_extensions().find_map(|extension| match extension.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
                _ => None,
            })
        });
        own.ok().flatten().is_some_and(|own| own == of_issuer)
    })
}

/// Reads the certificates in a directory. An incomplete CA counts as missing; certificates that Tollgate did not create
/// are an error.
fn read_certificates(directory: &Path) -> anyhow::Result<CertificateSet> {
    refuse_unsafe_directory(directory)?;
    let text = |name: &str| -> anyhow::Result<Option<String>> {
        let path = directory.join(name);
        match read_regular_file_up_to_limit(&path).map(String::from_utf8) {
            Ok(text) => Ok(Some(text.unwrap_or_default())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            // Not the same as missing: missing files are created.
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    };
    let server = text(CERTIFICATE_FILE)?
        .zip(text(KEY_FILE)?)
        .map(|(certificate, key)| CertAndKey { certificate, key });
    let (bundle, keys) = (text(CA_BUNDLE_FILE)?, text(CA_KEYS_FILE)?);
    anyhow::ensure!(
        keys.is_some() || (server.is_none() && bundle.is_none()),
        "{} contains certificates that Tollgate did not create, or their CA's key is missing; use another directory, or \
         start `tollgate serve` with --tls-cert and --tls-key",
        directory.display()
    );
    let (certificates, keys) =
        (pem_sections(&bundle.unwrap_or_default()), pem_sections(&keys.unwrap_or_default()));
    if certificates.len() != keys.len() {
        return Ok(CertificateSet::default());
    }
    let authorities = certificates
        .into_iter()
        .zip(keys)
        .map(|(certificate, key)| CertAndKey { certificate, key })
        .collect();
    Ok(CertificateSet { authorities, server })
}

/// Rejects what is not a directory, and a world-writable directory: the whole cluster would trust a CA that anybody puts there. The sticky bit does
/// not help: others can still be first.
fn refuse_unsafe_directory(directory: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let name = directory.display();
    let mode = match std::fs::metadata(directory) {
        Ok(meta) if !meta.is_dir() => anyhow::bail!("{name} is not a directory"),
        Ok(meta) => meta.permissions().mode(),
        // It is created later, for this user only.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {name}")),
    };
    anyhow::ensure!(
        mode & 0o002 == 0,
        "{name} is world-writable, so anyone could place a CA there; run `chmod 700 {name}`, or use a subdirectory"
    );
    Ok(())
}

/// Splits a text into its PEM sections.
fn pem_sections(text: &str) -> Vec<String> {
    let mut pem_sections = Vec::new();
    let mut section = String::new();
    for line in text.lines() {
        section.push_str(line);
        section.push('\n');
        if line.starts_with("-----END ") {
            pem_sections.push(std::mem::take(&mut section));
        }
    }
    pem_sections
}

/// Writes all certificates and keys to the directory.
fn write_certificates(directory: &Path, held: &CertificateSet) -> anyhow::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    refuse_unsafe_directory(directory)?;
    let join = |part: fn(&CertAndKey) -> &str| held.authorities.iter().map(part).collect::<String>();
    // Keys before certificates, and CAs before what they signed: a crash in between leaves a usable set.
    write_atomically(directory, CA_KEYS_FILE, &join(|pair| &pair.key), 0o600)?;
    write_atomically(directory, CA_BUNDLE_FILE, &join(|pair| &pair.certificate), 0o644)?;
    if let Some(server) = &held.server {
        write_atomically(directory, KEY_FILE, &server.key, 0o600)?;
        write_atomically(directory, CERTIFICATE_FILE, &server.certificate, 0o644)?;
    }
    Ok(())
}

/// Writes a file completely or not at all.
fn write_atomically(directory: &Path, name: &str, text: &str, mode: u32) -> anyhow::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let unfinished = directory.join(format!(".{name}.new"));
    let _ = std::fs::remove_file(&unfinished);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&unfinished, directory.join(name))?;
    Ok(())
}

#[cfg(test)]
#[path = "self_signed/tests.rs"]
mod tests;
