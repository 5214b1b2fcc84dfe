//! The holders of a device: the claims that it is allocated to, with their pods and workloads.
//!
//! Pods come from `status.reservedFor`, even if the state does not contain them; workloads are known only for pods in
//! the state. A claim that is allocated but not reserved is a holder without a pod.

use super::{DeviceState, ReportedDevice};
use crate::state::{ObjectKind, State, StoredObject};
use crate::workload::{Workload, workload_of};
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, HashMap};
use tollgate_allocator::{DeviceKey, Inventory};
use tollgate_api::view::{Claim, Consumer, Pod, PodClaimStatus, PodResourceClaim};

/// A claim that holds a device, with one of the pods that use it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder<'d> {
    /// Namespace of the claim and the pod.
    pub namespace: &'d str,
    pub claim: &'d str,
    pub pod: Option<&'d str>,
    pub workload: Option<Workload<'d>>,
    /// True for a result with adminAccess, which does not prevent other allocations of the device.
    pub admin_access: bool,
}

/// Identifies a device by driver, pool and name.
type DeviceName<'d> = (&'d str, &'d str, &'d str);

/// The holders of all devices.
pub(super) struct Holders<'d> {
    pub(super) published: HashMap<DeviceKey, Vec<Holder<'d>>, RandomState>,
    unpublished: BTreeMap<DeviceName<'d>, UnpublishedDevice<'d>>,
}

/// A device that claims hold although no slice publishes it.
#[derive(Default)]
struct UnpublishedDevice<'d> {
    /// The node of a pod that uses the device, or the only node of the allocation.
    node: Option<&'d str>,
    holders: Vec<Holder<'d>>,
}

impl<'d> Holders<'d> {
    pub(super) fn new(state: &State<'d>, inventory: &Inventory<'d>) -> Holders<'d> {
        let mut holders = Holders { published: HashMap::default(), unpublished: BTreeMap::new() };
        for object in state.objects_of_kind(ObjectKind::ResourceClaim).iter() {
            let status = Claim(object.value).status();
            let Some(allocation) = status.allocation() else { continue };
            let users = holders_for_claim(state, object);
            for result in allocation.devices().results().iter() {
                let id = (result.driver(), result.pool(), result.device());
                let known = if let Some(key) = inventory.device_key(id.0, id.1, id.2) {
                    holders.published.entry(key).or_default()
                } else {
                    let device = holders.unpublished.entry(id).or_default();
                    device.node = device.node.or_else(|| node_of_claim(state, object));
                    &mut device.holders
                };
                let admin_access = result.admin_access() == Some(true);
                for holder in users.iter().map(|user| Holder { admin_access, ..*user }) {
                    // Several requests of a claim can have the same device.
                    if !known.contains(&holder) {
                        known.push(holder);
                    }
                }
            }
        }
        holders
    }

    /// The devices that claims hold although no slice publishes them.
    pub(super) fn unpublished(&self) -> impl Iterator<Item = ReportedDevice<'d>> {
        self.unpublished.iter().map(|(&(driver, pool, device), UnpublishedDevice { node, holders })| {
            let is_allocated = holders.iter().any(|holder| !holder.admin_access);
            let allocated = is_allocated.then_some(DeviceState::Allocated);
            ReportedDevice {
                driver,
                pool,
                device,
                slice: None,
                node: *node,
                states: allocated.into_iter().chain([DeviceState::Unpublished]).collect(),
                blocked_by: None,
                capacity_left: Vec::new(),
                classes: Vec::new(),
                class_errors: Vec::new(),
                taints: Vec::new(),
                holders: holders.clone(),
            }
        })
    }
}

/// A consumer of a claim, from `status.reservedFor`: a pod, or a group such as a PodGroup.
#[derive(Clone, Copy, Debug)]
pub struct ClaimUser<'d> {
    /// The resource in `status.reservedFor`, such as `pods` or `podgroups`.
    pub resource: &'d str,
    /// The name in `status.reservedFor`.
    pub name: &'d str,
    /// The consumer if it is a pod, or one of the pods of the group that use the claim; `None` if the state contains no
    /// such pod.
    pub pod: Option<StoredObject<'d>>,
}

/// The consumers in `status.reservedFor` of a claim. A group is listed once for each of its pods that use the
/// claim, and at least once.
pub fn claim_users<'d>(state: &State<'d>, claim: StoredObject<'d>) -> Vec<ClaimUser<'d>> {
    let mut users = Vec::new();
    for consumer in Claim(claim.value).status().reserved_for().iter() {
        let user = ClaimUser { resource: consumer.resource(), name: consumer.name(), pod: None };
        match user.resource {
            "pods" => {
                users.push(ClaimUser { pod: pod_of_consumer(state, claim.namespace(), consumer), ..user })
            }
            "podgroups" => {
                let before = users.len();
                let pods = pods_of_group_using_claim(state, claim, user.name);
                users.extend(pods.map(|pod| ClaimUser { pod: Some(pod), ..user }));
                if users.len() == before {
                    users.push(user);
                }
            }
            _ => users.push(user),
        }
    }
    users
}

/// The node on which the claim is used: that of a pod that has reserved it, or the only node of its allocation.
fn node_of_claim<'d>(state: &State<'d>, claim: StoredObject<'d>) -> Option<&'d str> {
    let status = Claim(claim.value).status();
    let pods = status.reserved_for().iter().filter(|consumer| consumer.resource() == "pods");
    let pods = pods.filter_map(|consumer| pod_of_consumer(state, claim.namespace(), consumer));
    let mut nodes =
        pods.map(|pod| pod.value.get("spec").get("nodeName").str()).filter(|name| !name.is_empty());
    nodes.next().or_else(|| {
        let selector = status.allocation()?.node_selector()?;
        let requirements = selector.terms().iter().flat_map(|term| term.match_fields().iter());
        let names: Vec<&'d str> = requirements.flat_map(|requirement| requirement.values().iter()).collect();
        match names.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    })
}

/// One holder for each consumer of the claim; one without a pod if there are none.
fn holders_for_claim<'d>(state: &State<'d>, claim: StoredObject<'d>) -> Vec<Holder<'d>> {
    let nobody = Holder {
        namespace: claim.namespace(),
        claim: claim.name(),
        pod: None,
        workload: None,
        admin_access: false,
    };
    let holder = |user: ClaimUser<'d>| match (user.resource, user.pod) {
        (_, Some(pod)) => Holder { pod: Some(pod.name()), workload: workload_of(state, pod), ..nobody },
        ("pods", None) => Holder { pod: Some(user.name), ..nobody },
        (resource, None) => {
            let kind = if resource == "podgroups" { "PodGroup" } else { resource };
            let workload = Workload { kind, namespace: nobody.namespace, name: user.name };
            Holder { workload: Some(workload), ..nobody }
        }
    };
    let mut users: Vec<Holder<'d>> = claim_users(state, claim).into_iter().map(holder).collect();
    if users.is_empty() {
        users.push(nobody);
    }
    users
}

/// The pod of a `status.reservedFor` entry. A pod with the same name but another UID does not count.
fn pod_of_consumer<'d>(
    state: &State<'d>,
    namespace: &str,
    consumer: Consumer<'d>,
) -> Option<StoredObject<'d>> {
    let pod = state.objects_of_kind(ObjectKind::Pod).get(namespace, consumer.name())?;
    let (expected, uid) = (consumer.uid(), pod.uid());
    (expected.is_empty() || uid.is_empty() || expected == uid).then_some(pod)
}

/// The pods of a group that use the claim.
fn pods_of_group_using_claim<'s, 'd>(
    state: &'s State<'d>,
    claim: StoredObject<'d>,
    group: &'d str,
) -> impl Iterator<Item = StoredObject<'d>> + use<'s, 'd> {
    state.objects_of_kind(ObjectKind::Pod).iter().filter(move |pod| {
        let view = Pod(pod.value);
        let is_member = pod.namespace() == claim.namespace()
            && view.spec().scheduling_group().pod_group_name() == Some(group);
        is_member && uses_claim(view, claim.name())
    })
}

fn uses_claim(pod: Pod<'_>, claim: &str) -> bool {
    let mut named = pod.spec().resource_claims().iter().filter_map(PodResourceClaim::resource_claim_name);
    let mut made =
        pod.status().resource_claim_statuses().iter().filter_map(PodClaimStatus::resource_claim_name);
    named.any(|name| name == claim) || made.any(|name| name == claim)
}
