//! The CA bundle when several replicas have self-signed CAs.
//!
//! Replicas, and a process and its successor, each have a CA. Clients that trust the merged bundle can reach all of
//! them. Every replica computes the same text, so that they agree and do not keep overwriting each other.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::pem_sections;

/// Common name of every self-signed CA.
pub(super) const CA_NAME: &str = "tollgate CA";
/// Maximum number of CAs of other replicas in the bundle; the newest are kept. Restarts without a directory must not
/// grow the bundle forever.
const MAX_OTHER_CAS: usize = 8;

/// The PEM text of the CAs in `own` and of those CAs in `held`, the registered bundle, that other replicas created
/// and that are valid at `now`, sorted by the start of their validity.
pub(super) fn merge_own_and_replica_ca_bundles(own: &str, held: &str, now: i64) -> String {
    let read = |text: &str| -> Vec<Certificate> {
        pem_sections(text).into_iter().filter_map(Certificate::parse).collect()
    };
    let mut all = read(own);
    let mut others = read(held);
    others.retain(|other| {
        other.is_ours && other.not_after > now && !all.iter().any(|own| own.der == other.der)
    });
    others.sort_by(|a, b| (a.not_before, &a.der).cmp(&(b.not_before, &b.der)));
    others.dedup_by(|a, b| a.der == b.der);
    let surplus = others.len().saturating_sub(MAX_OTHER_CAS);
    all.extend(others.drain(surplus..));
    all.sort_by(|a, b| (a.not_before, &a.der).cmp(&(b.not_before, &b.der)));
    all.into_iter().map(|certificate| certificate.pem).collect()
}

/// A certificate of a bundle, with the fields by which bundles are merged.
struct Certificate {
    pem: String,
    der: Vec<u8>,
    not_before: i64,
    not_after: i64,
    is_ours: bool,
}

impl Certificate {
    fn parse(pem: String) -> Option<Certificate> {
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
        let (_, parsed) = X509Certificate::from_der(&der).ok()?;
        let mut names = parsed.subject().iter_common_name().filter_map(|name| name.as_str().ok());
        let is_ours = parsed.is_ca() && names.any(|name| name == CA_NAME);
        let validity = parsed.validity();
        let (not_before, not_after) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        Some(Certificate { pem, der: der.to_vec(), not_before, not_after, is_ours })
    }
}
