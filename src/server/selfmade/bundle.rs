//! The CAs that clients should trust when several of us make their own.
//!
//! Replicas, and a process and its successor, each have a CA. A bundle that holds all of them lets every one of them
//! be reached; it is the same text whoever joins it, so that replicas agree and nobody writes forever.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::sections;

/// The name of every CA we make.
pub(super) const AUTHORITY_NAME: &str = "tollgate CA";
/// Others of our kind that are kept, the newest ones; restarts without a directory must not grow the bundle forever.
const MOST_OTHERS: usize = 8;

/// Our own CAs, and of those that are held the ones that others of us made and that are still valid.
pub(super) fn join(own: &str, held: &str, now: i64) -> String {
    let read = |text: &str| -> Vec<Certificate> {
        sections(text).into_iter().filter_map(Certificate::read).collect()
    };
    let mut all = read(own);
    let mut others = read(held);
    others.retain(|other| other.is_ours && other.until > now && !all.iter().any(|own| own.der == other.der));
    others.sort_by(|a, b| (a.from, &a.der).cmp(&(b.from, &b.der)));
    others.dedup_by(|a, b| a.der == b.der);
    let surplus = others.len().saturating_sub(MOST_OTHERS);
    all.extend(others.drain(surplus..));
    all.sort_by(|a, b| (a.from, &a.der).cmp(&(b.from, &b.der)));
    all.into_iter().map(|certificate| certificate.pem).collect()
}

struct Certificate {
    pem: String,
    der: Vec<u8>,
    from: i64,
    until: i64,
    is_ours: bool,
}

impl Certificate {
    fn read(pem: String) -> Option<Certificate> {
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
        let (_, parsed) = X509Certificate::from_der(&der).ok()?;
        let mut names = parsed.subject().iter_common_name().filter_map(|name| name.as_str().ok());
        let is_ours = parsed.is_ca() && names.any(|name| name == AUTHORITY_NAME);
        let validity = parsed.validity();
        let (from, until) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        Some(Certificate { pem, der: der.to_vec(), from, until, is_ours })
    }
}
