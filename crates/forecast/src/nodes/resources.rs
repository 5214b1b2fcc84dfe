//! Resource amounts: the requests of a pod and the allocatable resources of a node.
//!
//! Upstream adds exact quantities and rounds the sum up, so requests are added in thousandths, the smallest part that
//! the API server keeps. Names of resources other than cpu, memory and ephemeral storage are numbered, because
//! amounts are compared for thousands of nodes.

#![allow(clippy::indexing_slicing, reason = "places come from the list itself")]

use foldhash::fast::RandomState;
use std::collections::HashMap;
use tollgate_api::view::quantity;
use tollgate_document::doc::Value;

const EXTENDED_CLASS_PREFIX: &str = "deviceclass.resource.kubernetes.io/";

/// Milli-cpu that the scheduler assumes for a container without a request when it scores nodes.
const DEFAULT_MILLI_CPU: i128 = 100;
/// Memory, in thousandths of a byte, that the scheduler assumes for a container without a request.
const DEFAULT_MEMORY_MILLIBYTES: i128 = 200 * 1024 * 1024 * 1000;

/// Index of a resource other than cpu, memory and ephemeral storage, such as `example.com/gpu` or
/// `hugepages-2Mi`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ResourceId(pub(super) u32);

/// Names of resources other than cpu, memory and storage, by index.
#[derive(Default, Debug)]
pub(super) struct ResourceNames<'d> {
    names: Vec<&'d str>,
    by_name: HashMap<&'d str, ResourceId, RandomState>,
}

impl<'d> ResourceNames<'d> {
    pub(super) fn intern(&mut self, name: &'d str) -> ResourceId {
        let next = ResourceId(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        let id = *self.by_name.entry(name).or_insert(next);
        if id == next {
            self.names.push(name);
        }
        id
    }

    pub(super) fn name(&self, id: ResourceId) -> &'d str {
        self.names.get(id.0 as usize).copied().unwrap_or_default()
    }
}

/// Resource amounts: cpu in thousandths, everything else in whole units (bytes for memory and storage).
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct ResourceVector {
    pub milli_cpu: i64,
    pub memory: i64,
    pub ephemeral_storage: i64,
    /// Other resources with amounts above zero.
    pub scalars: Vec<(ResourceId, i64)>,
}

impl ResourceVector {
    pub(super) fn from_amounts<'d>(
        amounts: &ResourceAmounts<'d>,
        names: &mut ResourceNames<'d>,
    ) -> ResourceVector {
        let mut requests = ResourceVector::default();
        for &(name, amount) in &amounts.0 {
            match name {
                "cpu" => requests.milli_cpu = clamp_to_i64(amount).max(0),
                "memory" => requests.memory = round_up_to_units(amount).max(0),
                "ephemeral-storage" => requests.ephemeral_storage = round_up_to_units(amount).max(0),
                _ if is_scalar(name) && round_up_to_units(amount) > 0 => {
                    requests.scalars.push((names.intern(name), round_up_to_units(amount)));
                }
                _ => {}
            }
        }
        requests
    }
}

/// True for resources that the scheduler compares by name: extended resources, huge pages, attachable volumes
/// and all names with a prefix. Others, such as `storage`, are ignored.
// upstream v1.37 schedutil.IsScalarResourceName
fn is_scalar(name: &str) -> bool {
    name.contains('/') || name.starts_with("hugepages-") || name.starts_with("attachable-volumes-")
}

/// Converts an amount to 64 bits, limited to the range of `i64`.
fn clamp_to_i64(amount: i128) -> i64 {
    i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX })
}

/// Converts thousandths to whole units, rounded up.
fn round_up_to_units(thousandths: i128) -> i64 {
    clamp_to_i64(thousandths.div_euclid(1000) + i128::from(thousandths.rem_euclid(1000) != 0))
}

/// Resource amounts in thousandths, by resource name.
#[derive(Clone, Default, Debug)]
pub(super) struct ResourceAmounts<'d>(Vec<(&'d str, i128)>);

impl<'d> ResourceAmounts<'d> {
    /// Reads a map of quantities, such as `requests`. Invalid quantities are omitted, because API servers
    /// reject them.
    pub(super) fn read(map: Value<'d>) -> ResourceAmounts<'d> {
        let mut amounts = ResourceAmounts::default();
        for (key, value) in map.members() {
            if let Some(quantity) = quantity(value) {
                let nanos = quantity.nano_value();
                let thousandths = nanos.div_euclid(1_000_000) + i128::from(nanos.rem_euclid(1_000_000) != 0);
                *amounts.amount_mut(key.text()) = thousandths;
            }
        }
        amounts
    }

    fn amount_mut(&mut self, name: &'d str) -> &mut i128 {
        let place = self.0.iter().position(|&(known, _)| known == name).unwrap_or_else(|| {
            self.0.push((name, 0));
            self.0.len() - 1
        });
        &mut self.0[place].1
    }

    pub(super) fn get(&self, name: &str) -> Option<i128> {
        self.0.iter().find(|&&(known, _)| known == name).map(|&(_, amount)| amount)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The amount in whole units, rounded up.
    pub(super) fn whole_units(&self, name: &str) -> i64 {
        round_up_to_units(self.get(name).unwrap_or(0))
    }

    /// The amount in thousandths, limited to 64 bits.
    fn thousandths(&self, name: &str) -> i64 {
        clamp_to_i64(self.get(name).unwrap_or(0))
    }

    fn add(&mut self, other: &ResourceAmounts<'d>) {
        for &(name, amount) in &other.0 {
            let sum = self.amount_mut(name);
            *sum = sum.saturating_add(amount);
        }
    }

    /// Raises each amount to that in `other` if that is larger.
    fn raise_to(&mut self, other: &ResourceAmounts<'d>) {
        for &(name, amount) in &other.0 {
            let old = self.get(name);
            *self.amount_mut(name) = old.map_or(amount, |old| old.max(amount));
        }
    }

    /// Adds the defaults for missing resources.
    fn with_defaults(mut self, defaults: impl IntoIterator<Item = (&'d str, i128)>) -> ResourceAmounts<'d> {
        for (name, amount) in defaults {
            if self.get(name).is_none() {
                *self.amount_mut(name) = amount;
            }
        }
        self
    }
}

/// The requests of a container or pod with the API server's default: a missing request is set to the limit.
fn requests_or_limits(resources: Value<'_>) -> ResourceAmounts<'_> {
    let limits = ResourceAmounts::read(resources.get("limits")).0;
    ResourceAmounts::read(resources.get("requests")).with_defaults(limits)
}

/// The field from which the requests of a container are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestSource {
    /// `resources` of the container in the spec.
    Spec,
    /// `allocatedResources` of the container in the status, as admitted by the kubelet.
    Allocated,
    /// `resources` of the container in the status, with which it runs.
    Actual,
}

/// The requests of a pod for filters, scores and the usage of its node.
#[derive(Clone, Default, Debug)]
pub(crate) struct PodRequests {
    /// The amounts that filters compare with the free resources of a node.
    pub(crate) requested: ResourceVector,
    /// The amounts used on the node. During a resize, the larger of the old and new requests.
    pub(crate) taken: ResourceVector,
    /// Milli-cpu and bytes of memory, including the scheduler's defaults for containers without requests.
    /// Used for scoring nodes and for the usage of the node.
    pub(crate) scored: [i64; 2],
    pub(crate) counted: [i64; 2],
}

const ASSUMED_REQUESTS: [(&str, i128); 2] =
    [("cpu", DEFAULT_MILLI_CPU), ("memory", DEFAULT_MEMORY_MILLIBYTES)];

impl PodRequests {
    // upstream v1.37 resource.PodRequests, PodInfo.CalculateResource
    pub(super) fn read<'d>(spec: Value<'d>, status: Value<'d>, names: &mut ResourceNames<'d>) -> PodRequests {
        let pod_level = pod_level_requests(spec);
        let plain = pod_requests(spec, status, RequestSource::Spec, &[], &pod_level);
        // Upstream does not score nodes by what the pod requests as a whole.
        let scored =
            pod_requests(spec, status, RequestSource::Spec, &ASSUMED_REQUESTS, &ResourceAmounts::default());
        let pair =
            |amounts: &ResourceAmounts<'_>| [amounts.thousandths("cpu"), amounts.whole_units("memory")];
        if pod_level.is_empty() && !status.get("containerStatuses").exists() {
            let requested = ResourceVector::from_amounts(&plain, names);
            let scored = pair(&scored);
            return PodRequests { taken: requested.clone(), requested, scored, counted: scored };
        }
        let assumed: Vec<(&str, i128)> = ASSUMED_REQUESTS
            .into_iter()
            .filter(|(name, _)| pod_level.is_empty() || plain.get(name).is_none())
            .collect();
        let taken = requests_of_bound_pod(spec, status, &[], &pod_level);
        let counted = requests_of_bound_pod(spec, status, &assumed, &pod_level);
        PodRequests {
            requested: ResourceVector::from_amounts(&plain, names),
            taken: ResourceVector::from_amounts(&taken, names),
            scored: pair(&scored),
            counted: pair(&counted),
        }
    }
}

/// The resources used by a bound pod: the largest of the requested, admitted and actual amounts.
fn requests_of_bound_pod<'d>(
    spec: Value<'d>,
    status: Value<'d>,
    assumed: &[(&'d str, i128)],
    pod_level: &ResourceAmounts<'d>,
) -> ResourceAmounts<'d> {
    let mut largest = pod_requests(spec, status, RequestSource::Spec, assumed, pod_level);
    if status.get("containerStatuses").exists() {
        largest.raise_to(&pod_requests(spec, status, RequestSource::Allocated, assumed, pod_level));
        largest.raise_to(&pod_requests(spec, status, RequestSource::Actual, assumed, pod_level));
    }
    largest
}

/// Pod-level requests, which replace those of the containers.
// upstream v1.37 defaultPodRequests
fn pod_level_requests(spec: Value<'_>) -> ResourceAmounts<'_> {
    let resources = spec.get("resources");
    let mut requests = ResourceAmounts::read(resources.get("requests"));
    requests.0.retain(|&(name, _)| is_pod_level_resource(name));
    let limits = ResourceAmounts::read(resources.get("limits"));
    if limits.is_empty() {
        return requests;
    }
    let containers = peak_container_requests(spec, Value::absent(), RequestSource::Spec, &[]);
    let can_be_exceeded = |name: &str| !name.starts_with("hugepages-");
    let defaults = containers.0.into_iter().filter(|(name, _)| can_be_exceeded(name)).chain(limits.0);
    requests.with_defaults(defaults.filter(|(name, _)| is_pod_level_resource(name)))
}

/// True for resources that a pod can request as a whole (`spec.resources`).
fn is_pod_level_resource(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// The requests of a pod, read from `source`: what the containers need together, or the pod-level requests, plus the
/// overhead.
fn pod_requests<'d>(
    spec: Value<'d>,
    status: Value<'d>,
    source: RequestSource,
    assumed: &[(&'d str, i128)],
    pod_level: &ResourceAmounts<'d>,
) -> ResourceAmounts<'d> {
    let mut sum = peak_container_requests(spec, status, source, assumed);
    for &(name, amount) in &pod_level.0 {
        *sum.amount_mut(name) = amount;
    }
    sum.add(&ResourceAmounts::read(spec.get("overhead")));
    sum
}

/// The resources needed by all containers: the maximum of the regular containers and all sidecars together, and of
/// each other init container with the sidecars started before it.
fn peak_container_requests<'d>(
    spec: Value<'d>,
    status: Value<'d>,
    source: RequestSource,
    assumed: &[(&'d str, i128)],
) -> ResourceAmounts<'d> {
    let requests = |container: Value<'d>, statuses| {
        container_requests(container, status.get(statuses), source).with_defaults(assumed.iter().copied())
    };
    let mut running = ResourceAmounts::default();
    for container in spec.get("containers").items() {
        running.add(&requests(container, "containerStatuses"));
    }
    let mut sidecars = ResourceAmounts::default();
    let mut starting = ResourceAmounts::default();
    for container in spec.get("initContainers").items() {
        let mut needed = requests(container, "initContainerStatuses");
        if is_sidecar(container) {
            running.add(&needed);
            sidecars.add(&needed);
            starting.raise_to(&sidecars);
        } else {
            needed.add(&sidecars);
            starting.raise_to(&needed);
        }
    }
    running.raise_to(&starting);
    running
}

/// True for an init container with `restartPolicy: Always`.
pub(super) fn is_sidecar(container: Value<'_>) -> bool {
    container.get("restartPolicy").str() == "Always"
}

fn container_requests<'d>(
    container: Value<'d>,
    statuses: Value<'d>,
    source: RequestSource,
) -> ResourceAmounts<'d> {
    let name = container.get("name").str();
    let status =
        statuses.items().find(|status| source != RequestSource::Spec && status.get("name").str() == name);
    let status = status.unwrap_or(Value::absent());
    let (actual, allocated) = (status.get("resources").get("requests"), status.get("allocatedResources"));
    if source == RequestSource::Actual && actual.exists() {
        ResourceAmounts::read(actual)
    } else if allocated.exists() {
        ResourceAmounts::read(allocated)
    } else {
        requests_or_limits(container.get("resources"))
    }
}

/// Extended resources that DeviceClasses provide. On a node that does not offer such a resource itself,
/// devices satisfy the request.
#[derive(Clone, Default, Debug)]
pub struct ResourcesDelegatedToDevices {
    /// True if a class provides the resource, by resource index.
    provided: Vec<bool>,
}

impl ResourcesDelegatedToDevices {
    /// The resources of these DeviceClasses: of each its `extendedResourceName`, and the resource named after it.
    pub(super) fn of_classes<'v>(
        names: &ResourceNames<'_>,
        classes: impl IntoIterator<Item = Value<'v>>,
    ) -> ResourcesDelegatedToDevices {
        let mut provided = vec![false; names.names.len()];
        for class in classes {
            let implicit = format!("{EXTENDED_CLASS_PREFIX}{}", class.get("metadata").get("name").str());
            let explicit = class.get("spec").get("extendedResourceName").str();
            for id in [&*implicit, explicit].into_iter().filter_map(|resource| names.by_name.get(resource)) {
                provided[id.0 as usize] = true;
            }
        }
        ResourcesDelegatedToDevices { provided }
    }

    /// True if a class provides the resource.
    pub fn contains(&self, resource: ResourceId) -> bool {
        self.provided.get(resource.0 as usize).copied().unwrap_or(false)
    }
}
