//! The tolerations that policies add to a new claim or template. Not here: which tolerations are allowed.
//!
//! Invariant: no list of tolerations grows beyond its documented limit, and no toleration is added for taints that are
//! already tolerated.

use super::tolerated_taints;
use super::written::WrittenToleration;
use crate::admission::DecodedAttributes;
use crate::defaults::Edit;
use crate::policy::MatchedPolicy;
use crate::policy::kind::{PolicySpec, policies_of_kind};
use crate::site;
use tollgate_api::profile::Profile;
use tollgate_api::view::View as _;
use tollgate_document::doc::{DocChange, OwnedJsonValue, ValueKind};

/// Maximum number of requests and alternatives of a claim that get defaults; an API server accepts no more.
const MAX_REQUESTS_WITH_DEFAULTS: usize = 32 * 8;

/// Returns the edits that add the default tolerations of the policies that bind the user to a new claim or template.
pub(in crate::policy) fn default_toleration_edits(
    policies: &[MatchedPolicy<'_>],
    admission: &DecodedAttributes<'_>,
    profile: &Profile,
) -> Vec<Edit> {
    let wanted = || {
        policies_of_kind(policies, PolicySpec::toleration)
            .filter(|(matched, _)| matched.binds && matched.policy.adds_tolerations())
            .flat_map(|(_, policy)| &policy.defaults)
    };
    let mut edits = Vec::new();
    if wanted().next().is_none() {
        return edits;
    }
    let limit = profile.documented.tolerations.unwrap_or(usize::MAX);
    let mut lists = 0;
    site::visit_requests_and_subrequests(admission.object, &mut |_, _| lists += 1);
    if lists > MAX_REQUESTS_WITH_DEFAULTS {
        return edits;
    }
    site::visit_requests_and_subrequests(admission.object, &mut |at, request| {
        let list = site::tolerations_of(request);
        let room = limit.saturating_sub(list.len());
        let mut added: Vec<&WrittenToleration> = Vec::new();
        for default in wanted() {
            if added.len() == room {
                break;
            }
            let tolerated = default.tolerated_taints(profile);
            let is_there = list.iter().any(|given| tolerated_taints(given, profile).contains(&tolerated))
                || added.iter().any(|other| other.tolerated_taints(profile).contains(&tolerated));
            if !is_there {
                added.push(default);
            }
        }
        let list_at = at.field("tolerations");
        if added.is_empty() {
        } else if list.value().kind() == ValueKind::Array {
            for (index, default) in added.into_iter().enumerate() {
                let change = DocChange::Append { list: list.value().index(), value: default.to_new_json() };
                edits.push(Edit { at: list_at.index(list.len() + index).owned(), change });
            }
        } else {
            let value = OwnedJsonValue::List(added.into_iter().map(WrittenToleration::to_new_json).collect());
            let change = if list.value().exists() {
                DocChange::Replace { node: list.value().index(), value }
            } else {
                DocChange::Add { object: request.json().index(), key: "tolerations", value }
            };
            edits.push(Edit { at: list_at.owned(), change });
        }
    });
    edits
}
