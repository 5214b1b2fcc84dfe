//! The entries of the webhook configurations that an engine needs: which objects the API server must send.
//!
//! The entries are stored in the files of `manifests/webhooks`, each with fixed content under a fixed name; this module
//! only selects among them. It does no I/O: callers write the result to a file or an API server.
//!
//! Invariant: an object about which the engine's policies, documented limits or lints could say something is sent by
//! some entry ([`WebhookEntries::needed_by`] may choose too many, never too few). What the API server checks by itself
//! (origins `upstream`, `decoding`, `strict`) never reaches a webhook and needs no entry.

mod manifest;

pub(crate) use manifest::{OptionalApi, WebhookDestination};

use tollgate_api::profile::{self, ApiKind, Profile};
use tollgate_engine::engine::Engine;
use tollgate_engine::policy::PolicySubset;
use tollgate_engine::rules::{self, RuleOrigin};

/// Webhook for claims and templates with tolerations; fails closed.
const CLAIMS_WITH_TOLERATIONS: &str = "claims.validate.tollgate.dev";
/// Webhook for claims and templates without tolerations.
const CLAIMS_WITHOUT_TOLERATIONS: &str = "other-claims.validate.tollgate.dev";
/// Webhook for claims without tolerations that have parameters, constraints or admin access.
const CLAIMS_WITH_PARAMETERS: &str = "claim-details.validate.tollgate.dev";
/// Webhook for claims with neither tolerations nor parameters, if only the others fail closed.
const CLAIMS_WITHOUT_PARAMETERS: &str = "plain-claims.validate.tollgate.dev";
/// Webhook for slices with taints.
const SLICES_WITH_TAINTS: &str = "slices.validate.tollgate.dev";
/// Webhook for slices without taints.
const SLICES_WITHOUT_TAINTS: &str = "other-slices.validate.tollgate.dev";
/// Webhook for DeviceTaintRules; fails closed.
const RULES: &str = "rules.validate.tollgate.dev";
/// Webhook for DeviceClasses.
const CLASSES: &str = "classes.validate.tollgate.dev";
/// Webhook for policies as custom resources. It always fails open, so that policies can be repaired.
const POLICIES: &str = "policies.validate.tollgate.dev";
/// Webhook that adds default tolerations to claims.
const CLAIM_DEFAULTS: &str = "claims.mutate.tollgate.dev";
/// Webhook that adds `timeAdded` to `spec.taints` of slices, which the second draft of KEP-5055 has.
const SLICE_TAINT_TIMES: &str = "slices.mutate.tollgate.dev";

/// Names of all entries of the base configurations, in the order in which they are registered.
const ALL_ENTRIES: [&str; 11] = [
    CLAIMS_WITH_TOLERATIONS,
    CLAIMS_WITHOUT_TOLERATIONS,
    CLAIMS_WITH_PARAMETERS,
    CLAIMS_WITHOUT_PARAMETERS,
    SLICES_WITH_TAINTS,
    SLICES_WITHOUT_TAINTS,
    RULES,
    CLASSES,
    POLICIES,
    CLAIM_DEFAULTS,
    SLICE_TAINT_TIMES,
];

/// Entries for pods and workloads, with the kinds that they send. They fail open unless a policy with
/// `onUnavailable: Deny` is about one of these kinds.
const POD_ENTRIES: [(&str, &[ApiKind]); 4] = [
    ("pods.validate.tollgate.dev", &[ApiKind::Pod]),
    (
        "workloads.validate.tollgate.dev",
        &[ApiKind::Deployment, ApiKind::StatefulSet, ApiKind::DaemonSet, ApiKind::ReplicaSet],
    ),
    ("jobs.validate.tollgate.dev", &[ApiKind::Job]),
    ("cronjobs.validate.tollgate.dev", &[ApiKind::CronJob]),
];

const CLAIM_KINDS: [ApiKind; 2] = [ApiKind::ResourceClaim, ApiKind::ResourceClaimTemplate];

/// The webhook entries to register in the base configurations, and those of all configurations that must fail
/// closed because of a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WebhookEntries {
    names: Vec<&'static str>,
    /// Names of the entries that serve a policy with `onUnavailable: Deny`.
    closed: Vec<&'static str>,
}

impl WebhookEntries {
    /// Returns the entries of the static manifests, which cover every set of policies.
    pub(crate) fn of_static_manifests() -> WebhookEntries {
        WebhookEntries::select_entries(
            |name| {
                ![CLAIMS_WITH_PARAMETERS, CLAIMS_WITHOUT_PARAMETERS, POLICIES, SLICE_TAINT_TIMES]
                    .contains(&name)
            },
            |_| false,
        )
    }

    /// Returns the entries that the rules and policies of an engine need.
    pub(crate) fn needed_by(engine: &Engine) -> WebhookEntries {
        let enabled = |origin| rules::all().any(|rule| rule.origin == origin && engine.rules.has(rule));
        let (lints, ours) =
            (enabled(RuleOrigin::Lint), enabled(RuleOrigin::Lint) || enabled(RuleOrigin::Documented));
        let enforced = enabled(RuleOrigin::Policy);
        let policies = &engine.policies;
        let (every, closed) = (PolicySubset::Every, PolicySubset::FailingClosed);
        let is_about = |kind, among| enforced && policies.applies_to_kind(kind, among);
        let judges_every = |kind, among| enforced && policies.can_deny_regardless_of_contents(kind, among);
        let has_parameters = |kind, among| enforced && policies.checks_opaque_parameters(kind, among);
        let all_claims = |among| CLAIM_KINDS.into_iter().any(|kind| judges_every(kind, among));
        let details = |among| CLAIM_KINDS.into_iter().any(|kind| has_parameters(kind, among));
        let classes =
            |among| judges_every(ApiKind::DeviceClass, among) || has_parameters(ApiKind::DeviceClass, among);
        // A policy for parameters that fails closed must not take all other claims with it.
        let is_split = all_claims(every) && details(closed) && !all_claims(closed);
        let is_needed = |name| match name {
            CLAIMS_WITH_TOLERATIONS => ours || CLAIM_KINDS.into_iter().any(|kind| is_about(kind, every)),
            CLAIMS_WITHOUT_TOLERATIONS => all_claims(every) && !is_split,
            CLAIMS_WITH_PARAMETERS => is_split || !all_claims(every) && (lints || details(every)),
            CLAIMS_WITHOUT_PARAMETERS => is_split,
            SLICES_WITH_TAINTS => ours || is_about(ApiKind::ResourceSlice, every),
            SLICES_WITHOUT_TAINTS => lints || judges_every(ApiKind::ResourceSlice, every),
            RULES => ours || is_about(ApiKind::DeviceTaintRule, every),
            CLASSES => classes(every),
            CLAIM_DEFAULTS => policies.may_add_tolerations(every),
            SLICE_TAINT_TIMES => engine.profiles.iter().any(|profile| is_draft_with_slice_taints(profile)),
            _ => false,
        };
        let is_closed = |name| match name {
            CLAIMS_WITHOUT_TOLERATIONS => all_claims(closed),
            CLAIMS_WITH_PARAMETERS => details(closed),
            SLICES_WITH_TAINTS => is_about(ApiKind::ResourceSlice, closed),
            SLICES_WITHOUT_TAINTS => judges_every(ApiKind::ResourceSlice, closed),
            CLASSES => classes(closed),
            CLAIM_DEFAULTS => policies.may_add_tolerations(closed),
            name => POD_ENTRIES
                .iter()
                .any(|(pods, kinds)| *pods == name && kinds.iter().any(|kind| is_about(*kind, closed))),
        };
        WebhookEntries::select_entries(is_needed, is_closed)
    }

    /// Returns these entries and the one for policies that are custom resources.
    #[must_use]
    #[cfg(feature = "serve")]
    pub(crate) fn with_policy_entry(&self) -> WebhookEntries {
        WebhookEntries::select_entries(
            |name| name == POLICIES || self.contains(name),
            |name| self.fails_closed(name),
        )
    }

    /// Returns the entries that are in either set, while policies are replaced. Leaves out an entry that a wider
    /// one covers.
    #[must_use]
    #[cfg(feature = "serve")]
    pub(crate) fn union_without_covered_entries(&self, other: &WebhookEntries) -> WebhookEntries {
        let has = |name| self.contains(name) || other.contains(name);
        let is_closed = |name| self.fails_closed(name) || other.fails_closed(name);
        let is_covered = |name| {
            name == CLAIMS_WITH_PARAMETERS
                && has(CLAIMS_WITHOUT_TOLERATIONS)
                && !is_closed(CLAIMS_WITH_PARAMETERS)
        };
        WebhookEntries::select_entries(|name| has(name) && !is_covered(name), is_closed)
    }

    /// True if the entry is registered.
    #[cfg(feature = "serve")]
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// True if the entry fails closed because of a policy, regardless of the manifest.
    fn fails_closed(&self, name: &str) -> bool {
        self.closed.contains(&name)
    }

    /// Selects the entries for which `wanted` is true; those for which `closed` is true fail closed.
    fn select_entries(
        wanted: impl Fn(&'static str) -> bool,
        closed: impl Fn(&'static str) -> bool,
    ) -> WebhookEntries {
        let all = ALL_ENTRIES.into_iter().chain(POD_ENTRIES.map(|(name, _)| name));
        WebhookEntries {
            names: ALL_ENTRIES.into_iter().filter(|name| wanted(name)).collect(),
            closed: all.filter(|name| closed(name)).collect(),
        }
    }
}

/// True for a draft with `spec.taints` of slices, which no release serves; false for the default profile.
fn is_draft_with_slice_taints(profile: &Profile) -> bool {
    profile.slice_taints && profile.name != profile::DEFAULT.name
}

#[cfg(test)]
mod tests;
