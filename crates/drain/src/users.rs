//! The users of drained devices: claims by their allocations, and pods by `status.reservedFor` of these claims or by
//! their own `status.extendedResourceClaimStatus`.
//!
//! Invariant: results with `adminAccess` do not count, because they do not prevent other allocations.

use crate::outcome::{ClaimHoldingSelectedDevices, DeviceId};
use crate::selection::SelectedDevices;
use std::collections::{BTreeMap, BTreeSet};
use tollgate_api::view::{Claim, Pod, View as _};
use tollgate_engine::impact::target::DeviceNameSelector;
use tollgate_forecast::{ClaimUser, ObjectKind, State, StoredObject, claim_users};

/// A claim that holds devices of the drain, with the pods that use it.
pub(crate) struct ClaimWithPods<'d> {
    pub(crate) claim: StoredObject<'d>,
    pub(crate) devices: Vec<DeviceId>,
    pub(crate) users: Vec<ClaimUser<'d>>,
}

/// A pod that uses devices of the drain, with these devices and claims.
pub(crate) struct PodWithClaims<'d> {
    pub(crate) pod: StoredObject<'d>,
    pub(crate) devices: BTreeSet<DeviceId>,
    /// Indices of the claims that the pod uses, among the held claims.
    pub(crate) claims: Vec<usize>,
}

/// The claims that hold devices selected by these rules, by namespace and name. Results with `adminAccess` do
/// not count. An empty list means that the devices are free.
pub fn holding_claims(state: &State<'_>, rules: &[DeviceNameSelector]) -> Vec<ClaimHoldingSelectedDevices> {
    let held = claims_holding_selected_devices(state, &SelectedDevices::from_rules(rules));
    held.iter().map(ClaimWithPods::to_claim_with_devices).collect()
}

/// The claims that hold selected devices, by namespace and name.
pub(crate) fn claims_holding_selected_devices<'d>(
    state: &State<'d>,
    selection: &SelectedDevices<'_>,
) -> Vec<ClaimWithPods<'d>> {
    let mut held = Vec::new();
    for claim in state.objects_of_kind(ObjectKind::ResourceClaim).iter() {
        let Some(allocation) = Claim::of(claim.value).status().allocation() else { continue };
        let results = allocation.devices().results();
        let devices: BTreeSet<DeviceId> = results
            .iter()
            .filter_map(|result| selection.selected_device_without_admin_access(result))
            .collect();
        if !devices.is_empty() {
            let users = claim_users(state, claim);
            held.push(ClaimWithPods { claim, devices: devices.into_iter().collect(), users });
        }
    }
    held.sort_by_key(|held| (held.claim.namespace(), held.claim.name()));
    add_extended_resource_pods(state, &mut held);
    held
}

/// Adds pods that use a claim for extended resources but have not reserved it.
fn add_extended_resource_pods<'d>(state: &State<'d>, held: &mut [ClaimWithPods<'d>]) {
    for pod in state.objects_of_kind(ObjectKind::Pod).iter() {
        let name = Pod::of(pod.value).status().extended_resource_claim_status().resource_claim_name();
        if name.is_empty() {
            continue;
        }
        let key = (pod.namespace(), name);
        let found = held.binary_search_by_key(&key, |held| (held.claim.namespace(), held.claim.name()));
        let Some(held) = found.ok().and_then(|index| held.get_mut(index)) else { continue };
        let is_known = |user: &ClaimUser<'_>| user.pod.is_some_and(|user| user.name() == pod.name());
        if !held.users.iter().any(is_known) {
            held.users.push(ClaimUser { resource: "pods", name: pod.name(), pod: Some(pod) });
        }
    }
}

/// The pods that use the claims, by namespace and name.
pub(crate) fn pods_using_claims<'d>(held: &[ClaimWithPods<'d>]) -> Vec<PodWithClaims<'d>> {
    let mut pods: BTreeMap<(&str, &str), PodWithClaims<'d>> = BTreeMap::new();
    for (index, claim) in held.iter().enumerate() {
        for pod in claim.users.iter().filter_map(|user| user.pod) {
            let new = PodWithClaims { pod, devices: BTreeSet::new(), claims: Vec::new() };
            let pod = pods.entry((pod.namespace(), pod.name())).or_insert(new);
            pod.devices.extend(claim.devices.iter().cloned());
            if !pod.claims.contains(&index) {
                pod.claims.push(index);
            }
        }
    }
    pods.into_values().collect()
}

impl ClaimWithPods<'_> {
    /// The claim as the plan lists it: its name, its users, and the UIDs of its pods.
    pub(crate) fn to_claim_with_devices(&self) -> ClaimHoldingSelectedDevices {
        let user = |user: &ClaimUser<'_>| match user.resource {
            "pods" => format!("pod {}", user.name),
            "podgroups" => format!("podgroup {}", user.name),
            resource => format!("{resource} {}", user.name),
        };
        let mut users: Vec<String> = self.users.iter().map(user).collect();
        users.dedup();
        ClaimHoldingSelectedDevices {
            namespace: self.claim.namespace().to_owned(),
            claim: self.claim.name().to_owned(),
            devices: self.devices.clone(),
            users,
            pods: self.users.iter().filter_map(|user| Some(user.pod?.uid().to_owned())).collect(),
        }
    }
}
