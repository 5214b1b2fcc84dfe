//! ValidatingAdmissionPolicies in a cluster or dump that `tollgate policy export` made from other policies.

use super::reporter::AuditReporter;
use crate::cli::policy::EXPORT_DIGEST;
use tollgate_document::doc::Value;
use tollgate_engine::policy::PolicySet;

/// Adds the object to the outdated exports of the report if `tollgate policy export` made it from other policies
/// than the loaded ones. Does nothing if no policies are loaded.
pub(super) fn report_if_outdated_export(
    kind: &str,
    object: Value<'_>,
    policies: &PolicySet,
    reporter: &mut AuditReporter,
) {
    let metadata = object.get("metadata");
    let digest = metadata.get("annotations").get(EXPORT_DIGEST).str();
    let is_exported = kind == "ValidatingAdmissionPolicy" && !digest.is_empty();
    if is_exported && !policies.is_empty() && digest != policies.digest() {
        reporter.outdated_exports.push(metadata.get("name").str().to_owned());
    }
}
