//! The entries of the webhook configurations that an engine needs: which objects the API server must send.
//!
//! The entries themselves are in the files of `manifests/webhooks`, each with fixed content under a fixed name; here
//! they are only selected. Pure: shells write them to a file or an API server.
//!
//! Invariant: an object about which the engine's policies, documented limits or lints could say something is sent by
//! some entry ([`WebhookEntries::needed_by`] may choose too many, never too few). What the API server checks by itself
//! (origins `upstream`, `decoding`, `strict`) never reaches a webhook and needs no entry.

mod manifest;

pub(crate) use manifest::{Destination, OptionalApi};

use tollgate_api::profile::{self, ApiKind, Profile};
use tollgate_engine::engine::Engine;
use tollgate_engine::policy::PolicySubset;
use tollgate_engine::rules::{self, Origin};

/// Webhook for claims and templates with tolerations; fails closed.
const CLAIMS: &str = "claims.validate.tollgate.dev";
/// Webhook for claims and templates without tolerations.
const OTHER_CLAIMS: &str = "other-claims.validate.tollgate.dev";
/// Webhook for claims without tolerations that have parameters, constraints or admin access.
const CLAIM_DETAILS: &str = "claim-details.validate.tollgate.dev";
/// Webhook for claims with neither tolerations nor parameters, if only the others fail closed.
const PLAIN_CLAIMS: &str = "plain-claims.validate.tollgate.dev";
/// Webhook for slices with taints.
const SLICES: &str = "slices.validate.tollgate.dev";
/// Webhook for slices without taints.
const OTHER_SLICES: &str = "other-slices.validate.tollgate.dev";
/// Webhook for DeviceTaintRules; fails closed.
const RULES: &str = "rules.validate.tollgate.dev";
/// Webhook for DeviceClasses.
const CLASSES: &str = "classes.validate.tollgate.dev";
/// Webhook for policies as custom resources. It always fails open, so that policies can be repaired.
const POLICIES: &str = "policies.validate.tollgate.dev";
/// Webhook that adds default tolerations to claims.
const CLAIM_DEFAULTS: &str = "claims.mutate.tollgate.dev";
/// Webhook that adds `timeAdded` to `spec.taints` of slices, which the second draft of KEP-5055 has.
const SLICE_TIMES: &str = "slices.mutate.tollgate.dev";

/// Names of all entries of the base configurations, in the order in which they are registered.
const ALL_ENTRIES: [&str; 11] = [
    CLAIMS,
    OTHER_CLAIMS,
    CLAIM_DETAILS,
    PLAIN_CLAIMS,
    SLICES,
    OTHER_SLICES,
    RULES,
    CLASSES,
    POLICIES,
    CLAIM_DEFAULTS,
    SLICE_TIMES,
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
        WebhookEntries::select(
            |name| ![CLAIM_DETAILS, PLAIN_CLAIMS, POLICIES, SLICE_TIMES].contains(&name),
            |_| false,
        )
    }

    /// Returns the entries that the rules and policies of an engine need.
    pub(crate) fn needed_by(engine: &Engine) -> WebhookEntries {
        let enabled = |origin| rules::all().any(|rule| rule.origin == origin && engine.rules.has(rule));
        let (lints, ours) = (enabled(Origin::Lint), enabled(Origin::Lint) || enabled(Origin::Documented));
        let enforced = enabled(Origin::Policy);
        let policies = &engine.policies;
        let (every, closed) = (PolicySubset::Every, PolicySubset::FailingClosed);
        let is_about = |kind, among| enforced && policies.applies_to_kind(kind, among);
        let judges_every = |kind, among| enforced && policies.can_deny_any(kind, among);
        let has_parameters = |kind, among| enforced && policies.checks_parameters(kind, among);
        let all_claims = |among| CLAIM_KINDS.into_iter().any(|kind| judges_every(kind, among));
        let details = |among| CLAIM_KINDS.into_iter().any(|kind| has_parameters(kind, among));
        let classes =
            |among| judges_every(ApiKind::DeviceClass, among) || has_parameters(ApiKind::DeviceClass, among);
        // A policy for parameters that fails closed must not take all other claims with it.
        let is_split = all_claims(every) && details(closed) && !all_claims(closed);
        let is_needed = |name| match name {
            CLAIMS => ours || CLAIM_KINDS.into_iter().any(|kind| is_about(kind, every)),
            OTHER_CLAIMS => all_claims(every) && !is_split,
            CLAIM_DETAILS => is_split || !all_claims(every) && (lints || details(every)),
            PLAIN_CLAIMS => is_split,
            SLICES => ours || is_about(ApiKind::ResourceSlice, every),
            OTHER_SLICES => lints || judges_every(ApiKind::ResourceSlice, every),
            RULES => ours || is_about(ApiKind::DeviceTaintRule, every),
            CLASSES => classes(every),
            CLAIM_DEFAULTS => policies.may_add_defaults(every),
            SLICE_TIMES => engine.profiles.iter().any(|profile| is_draft_with_slice_taints(profile)),
            _ => false,
        };
        let is_closed = |name| match name {
            OTHER_CLAIMS => all_claims(closed),
            CLAIM_DETAILS => details(closed),
            SLICES => is_about(ApiKind::ResourceSlice, closed),
            OTHER_SLICES => judges_every(ApiKind::ResourceSlice, closed),
            CLASSES => classes(closed),
            CLAIM_DEFAULTS => policies.may_add_defaults(closed),
            name => POD_ENTRIES
                .iter()
                .any(|(pods, kinds)| *pods == name && kinds.iter().any(|kind| is_about(*kind, closed))),
        };
        WebhookEntries::select(is_needed, is_closed)
    }

    /// Returns these entries and the one for policies that are custom resources.
    #[must_use]
    #[cfg(feature = "serve")]
    pub(crate) fn with_policy_entry(&self) -> WebhookEntries {
        WebhookEntries::select(|name| name == POLICIES || self.contains(name), |name| self.fails_closed(name))
    }

    /// Returns the entries that are in either set, while policies are replaced. Leaves out an entry that a wider
    /// one covers.
    #[must_use]
    #[cfg(feature = "serve")]
    pub(crate) fn union(&self, other: &WebhookEntries) -> WebhookEntries {
        let has = |name| self.contains(name) || other.contains(name);
        let is_closed = |name| self.fails_closed(name) || other.fails_closed(name);
        let is_covered = |name| name == CLAIM_DETAILS && has(OTHER_CLAIMS) && !is_closed(CLAIM_DETAILS);
        WebhookEntries::select(|name| has(name) && !is_covered(name), is_closed)
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
    fn select(
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
