//! Which objects a set of policies could say something about, before any object is seen.
//!
//! For whoever registers the webhook: an object that no policy can speak of need not be sent. It never says "no" where
//! [`PolicySet::judge`] could find something; where it is not sure, it says "yes".

use super::PolicySet;
use crate::profile::ApiKind;

impl PolicySet {
    /// Some policy can refuse any object of that kind, whatever is in it: by `validations`, by `matchConditions` that
    /// cannot be evaluated, or because the labels of its namespace cannot be looked up.
    pub fn judges_every(&self, kind: ApiKind) -> bool {
        let looks_at_all = |policy: &super::Policy| {
            !policy.expressions.is_empty() || (kind.is_namespaced() && policy.scope.needs_labels())
        };
        self.policies.iter().any(|policy| policy.scope.is_about(kind) && looks_at_all(policy))
    }

    /// Some policy checks the parameters in objects of that kind.
    pub fn checks_parameters(&self, kind: ApiKind) -> bool {
        let is_about = |policy: &&super::Policy| policy.scope.is_about(kind);
        self.policies.iter().filter(is_about).any(|policy| policy.spec.checks_parameters())
    }

    /// Some policy is about objects of that kind, whatever it looks at.
    pub fn is_about(&self, kind: ApiKind) -> bool {
        self.policies.iter().any(|policy| policy.scope.is_about(kind))
    }

    /// Some policy adds default tolerations.
    pub fn has_defaults(&self) -> bool {
        self.policies.iter().any(|policy| policy.spec.has_defaults())
    }
}
