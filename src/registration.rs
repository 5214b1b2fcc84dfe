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

use crate::engine::Engine;
use crate::profile::{self, ApiKind, Profile};
use crate::rules::{self, Origin};

/// Tolerations of claims and templates; fails closed.
const CLAIMS: &str = "claims.validate.tollgate.dev";
/// Claims without tolerations.
const OTHER_CLAIMS: &str = "other-claims.validate.tollgate.dev";
/// Claims without tolerations that have parameters, constraints or admin access.
const CLAIM_DETAILS: &str = "claim-details.validate.tollgate.dev";
/// Slices with taints.
const SLICES: &str = "slices.validate.tollgate.dev";
/// Slices without taints.
const OTHER_SLICES: &str = "other-slices.validate.tollgate.dev";
/// DeviceTaintRules; fails closed.
const RULES: &str = "rules.validate.tollgate.dev";
/// DeviceClasses.
const CLASSES: &str = "classes.validate.tollgate.dev";
/// Default tolerations.
const CLAIM_DEFAULTS: &str = "claims.mutate.tollgate.dev";
/// `timeAdded` in `spec.taints` of draft r2.
const SLICE_TIMES: &str = "slices.mutate.tollgate.dev";

/// Every entry, in the order in which they are registered.
const ALL: [&str; 9] =
    [CLAIMS, OTHER_CLAIMS, CLAIM_DETAILS, SLICES, OTHER_SLICES, RULES, CLASSES, CLAIM_DEFAULTS, SLICE_TIMES];

/// Suffix of the names of all Tollgate entries.
pub(crate) const SUFFIX: &str = ".tollgate.dev";

const CLAIM_KINDS: [ApiKind; 2] = [ApiKind::ResourceClaim, ApiKind::ResourceClaimTemplate];

/// The registered entries of the two base configurations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WebhookEntries(Vec<&'static str>);

impl WebhookEntries {
    /// Those of the static manifests, which cover every set of policies.
    pub(crate) fn of_static_manifests() -> WebhookEntries {
        WebhookEntries::filter(|name| ![CLAIM_DETAILS, SLICE_TIMES].contains(&name))
    }

    /// Those that an engine needs.
    pub(crate) fn needed_by(engine: &Engine) -> WebhookEntries {
        let enabled = |origin| rules::all().any(|rule| rule.origin == origin && engine.rules.has(rule.id));
        let (lints, ours) = (enabled(Origin::Lint), enabled(Origin::Lint) || enabled(Origin::Documented));
        let enforced = enabled(Origin::Policy);
        let policies = &engine.policies;
        let is_about = |kind| ours || enforced && policies.is_about(kind);
        let judges_every = |kind| enforced && policies.judges_every(kind);
        let has_parameters = |kind| enforced && policies.checks_parameters(kind);
        let all_claims = CLAIM_KINDS.into_iter().any(judges_every);
        WebhookEntries::filter(|name| match name {
            CLAIMS => CLAIM_KINDS.into_iter().any(is_about),
            OTHER_CLAIMS => all_claims,
            CLAIM_DETAILS => !all_claims && (lints || CLAIM_KINDS.into_iter().any(has_parameters)),
            SLICES => is_about(ApiKind::ResourceSlice),
            OTHER_SLICES => lints || judges_every(ApiKind::ResourceSlice),
            RULES => is_about(ApiKind::DeviceTaintRule),
            CLASSES => judges_every(ApiKind::DeviceClass) || has_parameters(ApiKind::DeviceClass),
            CLAIM_DEFAULTS => policies.has_defaults(),
            SLICE_TIMES => engine.profiles.iter().any(|profile| is_draft(profile)),
            _ => false,
        })
    }

    /// Entries that cover both.
    #[must_use]
    pub(crate) fn union(&self, other: &WebhookEntries) -> WebhookEntries {
        let has = |name| self.contains(name) || other.contains(name);
        WebhookEntries::filter(|name| has(name) && !(name == CLAIM_DETAILS && has(OTHER_CLAIMS)))
    }

    /// The entry is registered.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.contains(&name)
    }

    fn filter(wanted: impl Fn(&'static str) -> bool) -> WebhookEntries {
        WebhookEntries(ALL.into_iter().filter(|name| wanted(name)).collect())
    }
}

/// No release serves `spec.taints`: only servers of such a draft do.
fn is_draft(profile: &Profile) -> bool {
    profile.slice_taints && profile.name != profile::DEFAULT.name
}

#[cfg(test)]
mod tests;
