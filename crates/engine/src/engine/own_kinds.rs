//! Policies as objects of a request: the webhook checks the kinds of Tollgate, too.
//!
//! Only what would be reported when a policy is loaded is checked: the errors that keep it from being used, and the
//! warnings. Deletes, writes of the status and updates that leave the spec unchanged are admitted, so that a broken
//! policy can always be mended or removed.

use super::Engine;
use super::identify::{split_api_version, type_meta};
use crate::admission::Attributes;
use crate::policy::{PolicyKind, resource_findings};
use crate::rules::table::INVALID_POLICY;
use tollgate_document::doc::Value;
use tollgate_document::finding::Finding;

/// Returns the kind of policy that an object is; `None` if it is another object, or a version that is not known.
pub(super) fn policy_kind_of(object: Value<'_>) -> Option<PolicyKind> {
    let (api_version, kind) = type_meta(object).ok()?;
    let is_ours = split_api_version(api_version) == (PolicyKind::GROUP, PolicyKind::VERSION);
    PolicyKind::parse(kind).filter(|_| is_ours)
}

impl Engine {
    /// Checks a policy that is created or updated, and returns a finding for each error that would keep it from being
    /// used, whatever rules are selected, and for each warning.
    pub(super) fn policy_object_findings(
        &self,
        kind: PolicyKind,
        admission: &Attributes<'_>,
    ) -> Vec<Finding> {
        let spec = |object: Value<'_>| object.get("spec").to_json();
        let is_unchanged = admission.old_object.is_some_and(|old| spec(old) == spec(admission.object));
        if is_unchanged || !admission.subresource.is_empty() {
            return Vec::new();
        }
        let mut findings = resource_findings(kind, admission.object);
        findings.retain(|finding| finding.rule == INVALID_POLICY || self.reports_rule(finding.rule));
        findings
    }
}
