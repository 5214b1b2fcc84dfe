//! Policies as ValidatingAdmissionPolicies, which the API server evaluates by itself while Tollgate is down.
//!
//! There is one ValidatingAdmissionPolicy for each kind of objects and each action, with all policies inlined: the
//! API server denies what any ValidatingAdmissionPolicy denies, but the allow lists of policies add up. The
//! expressions read objects in the version of the request, whichever that is. An object in a version that they do not
//! know is denied.
//!
//! The expressions rely on the order of the API server: it sets defaults and validates an object before it evaluates
//! policies, so that keys, effects and drivers are valid and the specs of claims and templates do not change.
//!
//! Invariant: the export gives the verdicts of the policies. What it cannot express is listed ([`Omission`]), and
//! leaving it out makes the export weaker, never stricter.

mod claims;
mod draft;
mod expressions;
mod omission;
mod rules;
mod slices;
mod source;
mod taints;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeSet;

pub use omission::{Omission, OmissionReason};

use super::PolicySet;
use crate::rules::FindingLevel;
use draft::PolicyDraft;
use source::PolicyToExport;
use tollgate_api::profile::{ApiKind, Profile};
use tollgate_document::doc;
use tollgate_formats::gotime::Timestamp;

/// The kinds that are exported, in the order in which they are printed.
const KINDS: [ApiKind; 5] = [
    ApiKind::ResourceClaim,
    ApiKind::ResourceClaimTemplate,
    ApiKind::ResourceSlice,
    ApiKind::DeviceTaintRule,
    ApiKind::DeviceClass,
];

/// A set of policies as ValidatingAdmissionPolicies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdmissionPolicyExport {
    pub policies: Vec<AdmissionPolicy>,
    /// The parts that are not exported; empty if everything is.
    pub omissions: Vec<Omission>,
}

/// An exported ValidatingAdmissionPolicy, with the variables and validations for one kind of object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdmissionPolicy {
    pub kind: ApiKind,
    pub action: FindingLevel,
    /// True for `failurePolicy: Ignore`.
    pub ignores_failures: bool,
    pub match_conditions: Vec<NamedExpression>,
    pub variables: Vec<NamedExpression>,
    pub validations: Vec<ExportedValidation>,
}

impl AdmissionPolicy {
    /// Returns the name of the exported object, such as `deny-resourceclaims.tollgate.dev`.
    pub fn name(&self) -> String {
        let ignored = if self.ignores_failures { "-ignore-failures" } else { "" };
        format!("{}-{}{ignored}.tollgate.dev", self.action.name(), self.kind.resource())
    }
}

/// A variable or match condition of an exported ValidatingAdmissionPolicy: a CEL expression with a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedExpression {
    pub name: String,
    pub expression: String,
}

/// A validation of an exported ValidatingAdmissionPolicy: an expression that must be true, and the message if it is
/// not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExportedValidation {
    pub expression: String,
    pub message: String,
    /// Replaces the message if it can be evaluated.
    pub message_expression: Option<String>,
}

impl PolicySet {
    /// Returns the policies as ValidatingAdmissionPolicies for API servers of these releases.
    pub fn export_as_admission_policies(
        &self,
        profiles: &[&Profile],
        now: Timestamp,
    ) -> AdmissionPolicyExport {
        let documents: Vec<_> = self
            .policies
            .iter()
            .filter_map(|policy| Some((policy, doc::parse(&policy.json).ok()?)))
            .collect();
        // The texts were written by `Value::to_json`.
        debug_assert!(documents.len() == self.policies.len());
        let mut omissions = BTreeSet::new();
        let mut sources: Vec<PolicyToExport<'_>> = Vec::new();
        for (policy, document) in &documents {
            sources.push(PolicyToExport::read(policy, document.root(), &sources, now, &mut omissions));
        }
        let mut policies = Vec::new();
        let is_served = |kind: &ApiKind| {
            profiles.iter().any(|profile| profile.serves.iter().any(|(served, _)| served == kind))
        };
        for kind in KINDS.into_iter().filter(is_served) {
            for action in FindingLevel::ALL.into_iter().rev() {
                let applies = |source: &&PolicyToExport<'_>| {
                    source.policy.action == action && source.policy.scope.includes_kind(kind)
                };
                let sources: Vec<&PolicyToExport<'_>> = sources.iter().filter(applies).collect();
                let draft = PolicyDraft::new(kind, &sources, now, profiles, &mut omissions);
                policies.extend(draft.into_admission_policies(action));
            }
        }
        AdmissionPolicyExport { policies, omissions: omissions.into_iter().collect() }
    }
}
