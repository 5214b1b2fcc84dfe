//! Certificates of our own making: a CA and a server pair, kept in a directory or in memory, renewed with overlap.
//!
//! A new CA is in the bundle for [`OVERLAP`] before anything is signed with it, and the old one stays in the bundle
//! until it expires: whoever trusts the bundle of yesterday or of tomorrow can connect today.
//! What is to be done at a given moment is decided by [`plan`], which is pure.

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

use super::files::read_file;

const DAY: i64 = 24 * 60 * 60;
/// Life of a CA.
const AUTHORITY_LIFE: i64 = 2 * 365 * DAY;
/// Life of a server certificate.
const SERVER_LIFE: i64 = 90 * DAY;
/// How long a new CA is in the bundle before it signs.
const OVERLAP: i64 = 7 * DAY;
/// Clocks differ: certificates are valid from a little earlier.
const SKEW: i64 = 60 * 60;

/// The files of the directory.
const BUNDLE: &str = "ca.crt";
const AUTHORITY_KEYS: &str = "ca.key";
/// The server's certificate.
const CERTIFICATE: &str = "tls.crt";
/// The server's key.
const KEY: &str = "tls.key";

/// A CA and a server pair of our own.
#[derive(Debug)]
pub struct SelfMade {
    directory: Option<PathBuf>,
    names: Vec<String>,
    held: Mutex<Held>,
}

/// What is in use, as PEM.
#[derive(Clone, Default, Debug)]
struct Held {
    /// CAs, oldest first.
    authorities: Vec<Pair>,
    server: Option<Pair>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Pair {
    certificate: String,
    key: String,
}

/// From when to when something is valid, seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Life {
    from: i64,
    until: i64,
}

impl Life {
    /// The last third: time to renew.
    fn is_late(self, now: i64) -> bool {
        self.until - now < (self.until - self.from) / 3
    }
}

/// What is to be done now.
#[derive(PartialEq, Eq, Debug)]
struct Plan {
    /// Which CAs stay.
    keep: Vec<bool>,
    /// Whether a new CA is made.
    new_authority: bool,
    /// Which of the CAs that stay (the new one last) signs a new server certificate now.
    sign_with: Option<usize>,
}

/// `server` is the life of the server certificate and the CA it is signed by, if that is known.
fn plan(now: i64, authorities: &[Life], server: Option<(Life, Option<usize>)>) -> Plan {
    let keep: Vec<bool> = authorities.iter().map(|life| life.until > now).collect();
    let kept: Vec<Life> = authorities.iter().copied().filter(|life| life.until > now).collect();
    let new_authority = kept.last().is_none_or(|newest| newest.is_late(now));
    // The newest that everybody has had time to learn of, else the oldest.
    let signer = kept.iter().rposition(|life| life.from + OVERLAP <= now).unwrap_or(0);
    let renew = match server {
        Some((life, Some(issuer))) => {
            let issuer_kept = keep.get(issuer).copied().unwrap_or_default();
            let index = keep.iter().take(issuer).filter(|kept| **kept).count();
            life.is_late(now) || !issuer_kept || index != signer
        }
        Some((_, None)) | None => true,
    };
    Plan { keep, new_authority, sign_with: renew.then_some(signer) }
}

impl SelfMade {
    /// Takes what the directory holds, makes what is missing. Without a directory everything is in memory.
    pub fn open(directory: Option<PathBuf>, names: Vec<String>, now: i64) -> anyhow::Result<SelfMade> {
        let held = match &directory {
            Some(directory) => read(directory)?,
            None => Held::default(),
        };
        let made = SelfMade { directory, names, held: Mutex::new(held) };
        made.renew(now)?;
        Ok(made)
    }

    /// Renews what is due. True if something changed.
    pub fn renew(&self, now: i64) -> anyhow::Result<bool> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let lives: Vec<Life> =
            held.authorities.iter().map(|pair| life(&pair.certificate)).collect::<anyhow::Result<_>>()?;
        let server = match &held.server {
            Some(pair) if named(&pair.certificate, &self.names) => {
                Some((life(&pair.certificate)?, signed_by(pair, &held.authorities)))
            }
            _ => None,
        };
        let plan = plan(now, &lives, server);
        if !plan.new_authority && plan.sign_with.is_none() && plan.keep.iter().all(|keep| *keep) {
            return Ok(false);
        }
        let mut next = held.clone();
        let mut keep = plan.keep.iter().copied();
        next.authorities.retain(|_| keep.next().unwrap_or(true));
        if plan.new_authority {
            next.authorities.push(make_authority(now)?);
        }
        if let Some(signer) = plan.sign_with {
            let authority = next.authorities.get(signer).context("a CA to sign with")?;
            next.server = Some(make_server(&self.names, authority, now)?);
        }
        if let Some(directory) = &self.directory {
            write(directory, &next).with_context(|| format!("cannot write to {}", directory.display()))?;
        }
        *held = next;
        Ok(true)
    }

    /// Every CA a client should trust, PEM: what goes into `caBundle`, base64-encoded.
    pub fn ca_bundle(&self) -> String {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.authorities.iter().map(|pair| pair.certificate.as_str()).collect()
    }

    /// The same, with those CAs of a bundle in use that others of us made: replicas and predecessors.
    pub fn joined_bundle(&self, in_use: &str, now: i64) -> String {
        bundle::join(&self.ca_bundle(), in_use, now)
    }

    /// Certificate and key of the server, PEM.
    pub fn server_pair(&self) -> (String, String) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.server.as_ref().map(|pair| (pair.certificate.clone(), pair.key.clone())).unwrap_or_default()
    }
}

fn make_authority(now: i64) -> anyhow::Result<Pair> {
    let key = KeyPair::generate()?;
    let mut params = params(now, AUTHORITY_LIFE, bundle::AUTHORITY_NAME)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = params.self_signed(&key)?;
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn make_server(names: &[String], authority: &Pair, now: i64) -> anyhow::Result<Pair> {
    let until = life(&authority.certificate)?.until;
    let issuer = Issuer::from_ca_cert_pem(&authority.certificate, KeyPair::from_pem(&authority.key)?)?;
    let key = KeyPair::generate()?;
    let mut params = params(now, SERVER_LIFE.min(until - now), "tollgate")?;
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
    Ok(Pair { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn params(now: i64, life: i64, name: &str) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::default();
    params.not_before = OffsetDateTime::from_unix_timestamp(now - SKEW)?;
    params.not_after = OffsetDateTime::from_unix_timestamp(now + life)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

fn parsed<T>(pem: &str, look: impl FnOnce(&X509Certificate<'_>) -> T) -> anyhow::Result<T> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).context("not a PEM certificate")?;
    let (_, certificate) = X509Certificate::from_der(&der).context("not a certificate")?;
    Ok(look(&certificate))
}

fn life(pem: &str) -> anyhow::Result<Life> {
    parsed(pem, |certificate| Life {
        from: certificate.validity().not_before.timestamp(),
        until: certificate.validity().not_after.timestamp(),
    })
}

/// True if the certificate is for exactly these names.
fn named(pem: &str, names: &[String]) -> bool {
    let held = parsed(pem, |certificate| {
        let held = certificate.subject_alternative_name().ok().flatten();
        held.map(|held| held.value.general_names.iter().map(name_text).collect::<Vec<_>>())
    });
    held.is_ok_and(|held| held.unwrap_or_default() == names)
}

fn name_text(name: &GeneralName<'_>) -> String {
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

/// The CA that signed the server certificate, by key identifier.
fn signed_by(server: &Pair, authorities: &[Pair]) -> Option<usize> {
    use x509_parser::extensions::ParsedExtension;
    let of_issuer = parsed(&server.certificate, |certificate| {
        certificate.iter_extensions().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.as_ref().map(|id| id.0.to_vec()),
            _ => None,
        })
    });
    let of_issuer = of_issuer.ok().flatten()?;
    authorities.iter().position(|authority| {
        let own = parsed(&authority.certificate, |certificate| {
            certificate.iter_extensions().find_map(|extension| match extension.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
                _ => None,
            })
        });
        own.ok().flatten().is_some_and(|own| own == of_issuer)
    })
}

/// What the directory holds. A CA that is not whole is made anew; a pair that is not ours is left alone.
fn read(directory: &Path) -> anyhow::Result<Held> {
    refuse_shared(directory)?;
    let text = |name: &str| -> anyhow::Result<Option<String>> {
        let path = directory.join(name);
        match read_file(&path).map(String::from_utf8) {
            Ok(text) => Ok(Some(text.unwrap_or_default())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            // Not the same as missing: what is missing is made anew.
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    };
    let server = text(CERTIFICATE)?.zip(text(KEY)?).map(|(certificate, key)| Pair { certificate, key });
    let (bundle, keys) = (text(BUNDLE)?, text(AUTHORITY_KEYS)?);
    anyhow::ensure!(
        keys.is_some() || (server.is_none() && bundle.is_none()),
        "{} holds certificates that tollgate did not make: name them with --tls-cert and --tls-key",
        directory.display()
    );
    let (certificates, keys) = (sections(&bundle.unwrap_or_default()), sections(&keys.unwrap_or_default()));
    if certificates.len() != keys.len() {
        return Ok(Held::default());
    }
    let authorities =
        certificates.into_iter().zip(keys).map(|(certificate, key)| Pair { certificate, key }).collect();
    Ok(Held { authorities, server })
}

/// A directory that everybody can write to is refused: whoever puts a CA there is trusted by the whole cluster. The
/// sticky bit does not help, for it does not keep others from being first.
fn refuse_shared(directory: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(directory).map(|meta| meta.permissions().mode()).unwrap_or_default();
    let name = directory.display();
    anyhow::ensure!(
        mode & 0o002 == 0,
        "everybody can write to {name}, and could put a CA of their own there: chmod 700 {name}, or name a folder in it"
    );
    Ok(())
}

/// The PEM sections of a text, each on its own.
fn sections(text: &str) -> Vec<String> {
    let mut sections = Vec::new();
    let mut section = String::new();
    for line in text.lines() {
        section.push_str(line);
        section.push('\n');
        if line.starts_with("-----END ") {
            sections.push(std::mem::take(&mut section));
        }
    }
    sections
}

fn write(directory: &Path, held: &Held) -> anyhow::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    refuse_shared(directory)?;
    let join = |part: fn(&Pair) -> &str| held.authorities.iter().map(part).collect::<String>();
    // Keys before certificates and CAs before what they signed: a crash in between leaves something usable.
    place(directory, AUTHORITY_KEYS, &join(|pair| &pair.key), 0o600)?;
    place(directory, BUNDLE, &join(|pair| &pair.certificate), 0o644)?;
    if let Some(server) = &held.server {
        place(directory, KEY, &server.key, 0o600)?;
        place(directory, CERTIFICATE, &server.certificate, 0o644)?;
    }
    Ok(())
}

/// Writes a file whole or not at all.
fn place(directory: &Path, name: &str, text: &str, mode: u32) -> anyhow::Result<()> {
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
#[path = "selfmade/tests.rs"]
mod tests;
