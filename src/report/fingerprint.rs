//! A number that stays the same for the same finding over later runs, so that a CI server can tell new ones from old.
//!
//! Made of the file, the rule, the object, the field and the message: not of lines, documents or releases, which change
//! while the finding does not. Two equal findings about equal objects have the same one.

use sha2::{Digest as _, Sha256};

use super::{DocumentResult, LocatedFinding};
use tollgate_document::source::InputError;

/// Number of hexadecimal digits of a fingerprint: 128 bits.
pub(super) const FINGERPRINT_DIGITS: usize = 32;

/// Returns the fingerprint of a finding.
pub(super) fn of_finding(entry: &DocumentResult<'_>, located: &LocatedFinding) -> String {
    let finding = &located.diagnostic.finding;
    let message = located.diagnostic.to_string();
    fingerprint_of_parts(&[
        entry.file,
        finding.rule.id,
        entry.kind,
        entry.namespace,
        entry.name,
        &finding.user_path(),
        &message,
        located.diagnostic.policy.as_deref().unwrap_or_default(),
    ])
}

/// Returns the fingerprint of an input that cannot be read.
pub(super) fn of_error(error: &InputError) -> String {
    fingerprint_of_parts(&[&error.file, "unreadable", &error.message])
}

/// Returns the fingerprint of a finding that has the same fingerprint as `times` others before it in the file.
pub(super) fn of_repetition(fingerprint: &str, times: usize) -> String {
    fingerprint_of_parts(&[fingerprint, &times.to_string()])
}

/// Hashes these strings, each with its length, to a fingerprint.
fn fingerprint_of_parts(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut out = format!("{:x}", hash.finalize());
    out.truncate(FINGERPRINT_DIGITS);
    out
}
