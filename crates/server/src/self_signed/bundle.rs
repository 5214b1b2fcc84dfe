//! The CA bundle when several replicas have self-signed CAs.
//!
//! Replicas, and a process and its successor, each have a CA. Clients that trust the merged bundle can reach all of
//! them. A bundle that has the CAs of a replica is right for it whatever else it has, so that replicas do not keep
//! overwriting each other.
//!
//! A full bundle is a queue: a CA that is added, by a new process or by one whose CA was dropped, drops the first one.
//! So the CAs of ended processes leave it for good, and those of live replicas come back at its end. Each restart drops
//! one CA, and at most as many more as there are live replicas.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::pem_sections;

/// Common name of every self-signed CA.
pub(super) const CA_NAME: &str = "tollgate CA";
/// Maximum number of CAs in the bundle. Restarts without a directory must not grow it forever: each entry of a webhook
/// configuration has a copy of about 800 bytes for each CA.
pub(super) const MAX_CAS: usize = 32;

/// The PEM text of those CAs in `held`, the registered bundle, that other replicas created and that are valid at `now`,
/// and of the CAs in `own`. What is held keeps its order; the CAs of `own` that are not held come last.
pub(super) fn merge_own_and_replica_ca_bundles(own: &str, held: &str, now: i64) -> String {
    let read = |text: &str| -> Vec<Certificate> {
        pem_sections(text).into_iter().filter_map(Certificate::parse).collect()
    };
    let own = read(own);
    let is_own = |one: &Certificate| own.iter().any(|own| own.der == one.der);
    let mut all: Vec<Certificate> = Vec::new();
    for held in read(held) {
        let is_kept = is_own(&held) || held.is_ours && held.not_after > now;
        if is_kept && !all.iter().any(|known| known.der == held.der) {
            all.push(held);
        }
    }
    let missing: Vec<&Certificate> =
        own.iter().filter(|own| !all.iter().any(|known| known.der == own.der)).collect();
    let mut surplus = (all.len() + missing.len()).saturating_sub(MAX_CAS);
    all.retain(|one| {
        let is_dropped = surplus > 0 && !is_own(one);
        surplus -= usize::from(is_dropped);
        !is_dropped
    });
    all.iter().chain(missing).map(|certificate| certificate.pem.as_str()).collect()
}

/// A certificate of a bundle, with the fields by which bundles are merged.
struct Certificate {
    pem: String,
    der: Vec<u8>,
    not_after: i64,
    is_ours: bool,
}

impl Certificate {
    fn parse(pem: String) -> Option<Certificate> {
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
        let (_, parsed) = X509Certificate::from_der(&der).ok()?;
        let mut names = parsed.subject().iter_common_name().filter_map(|name| name.as_str().ok());
        let is_ours = parsed.is_ca() && names.any(|name| name == CA_NAME);
        let not_after = parsed.validity().not_after.timestamp();
        Some(Certificate { pem, der: der.to_vec(), not_after, is_ours })
    }
}
