//! Determines which kinds of objects a set of policies can affect.
//!
//! Used to register the webhook: objects that no policy can affect need not be sent. The functions return true if in
//! doubt, and always if [`PolicySet::find_new_violations`] could report something.

use super::PolicySet;
use tollgate_api::profile::ApiKind;

/// Which policies of a set a question is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicySubset {
    Every,
    /// Policies with `onUnavailable: Deny`.
    FailingClosed,
}

impl PolicySet {
    /// Returns all policies, or only those with `onUnavailable: Deny`.
    fn policies_in(&self, among: PolicySubset) -> impl Iterator<Item = &super::Policy> {
        let every = self.policies.iter().map(std::sync::Arc::as_ref);
        every.filter(move |policy: &&super::Policy| among == PolicySubset::Every || policy.fails_closed)
    }

    /// True if a policy can deny any object of this kind regardless of its contents: by `validations`, by
    /// `matchConditions` that fail, because the policy is broken, or because namespace labels are
    /// unavailable.
    pub fn can_deny_regardless_of_contents(&self, kind: ApiKind, among: PolicySubset) -> bool {
        let looks_at_all = |policy: &super::Policy| {
            let needs_labels = kind.is_namespaced() && policy.scope.needs_namespace_labels();
            policy.broken.is_some()
                || !policy.expressions.is_empty()
                || (needs_labels && !policy.ignores_objects_without_tolerations())
        };
        self.policies_in(among).any(|policy| policy.scope.includes_kind(kind) && looks_at_all(policy))
    }

    /// True if a policy checks the parameters in objects of that kind.
    pub fn checks_opaque_parameters(&self, kind: ApiKind, among: PolicySubset) -> bool {
        let is_about = |policy: &&super::Policy| policy.scope.includes_kind(kind);
        self.policies_in(among).filter(is_about).any(|policy| policy.spec.parameters().is_some())
    }

    /// True if a policy limits the impact of rules, which requires the state of the cluster.
    pub fn any_policy_limits_taint_rule_impact(&self) -> bool {
        self.policies.iter().any(|policy| {
            policy.spec.taint_rule().is_some_and(super::taint_rule::TaintRulePolicy::has_impact_limits)
        })
    }

    /// True if a policy applies to objects of that kind.
    pub fn applies_to_kind(&self, kind: ApiKind, among: PolicySubset) -> bool {
        self.policies_in(among).any(|policy| policy.scope.includes_kind(kind))
    }

    /// True if a policy adds default tolerations, or could do so once it is repaired.
    pub fn may_add_tolerations(&self, among: PolicySubset) -> bool {
        let may_add = |policy: &super::Policy| {
            policy.broken.is_some() && policy.spec.kind() == super::PolicyKind::Toleration
        };
        self.policies_in(among).any(|policy| policy.adds_tolerations() || may_add(policy))
    }
}
