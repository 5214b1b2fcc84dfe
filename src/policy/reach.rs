//! Which objects a set of policies could say something about, before any object is seen.
//!
//! For whoever registers the webhook: an object that no policy can speak of need not be sent. It never says "no" where
//! [`PolicySet::judge`] could find something; where it is not sure, it says "yes".

use super::{Body, PolicySet};
use crate::profile::ApiKind;

impl PolicySet {
    /// Some policy evaluates expressions for every object of that kind: `validations`, or `matchConditions`, which
    /// are a violation if they cannot be evaluated.
    pub fn evaluates(&self, kind: ApiKind) -> bool {
        self.policies.iter().any(|policy| policy.scope.is_about(kind) && !policy.expressions.is_empty())
    }

    /// Some policy checks the parameters in objects of that kind.
    pub fn checks_parameters(&self, kind: ApiKind) -> bool {
        let is_about = |policy: &&super::Policy| policy.scope.is_about(kind);
        self.policies.iter().filter(is_about).any(|policy| matches!(policy.body, Body::Parameters(_)))
    }

    /// Some policy is about objects of that kind, whatever it looks at.
    pub fn is_about(&self, kind: ApiKind) -> bool {
        self.policies.iter().any(|policy| policy.scope.is_about(kind))
    }

    /// Some policy adds default tolerations.
    pub fn has_defaults(&self) -> bool {
        self.policies.iter().any(|policy| match &policy.body {
            Body::Toleration(body) => body.has_defaults(),
            Body::Taint(_) | Body::TaintRule(_) | Body::Parameters(_) => false,
        })
    }
}
