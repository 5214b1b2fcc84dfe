//! The claims that the scheduler creates for the extended resources of pods.
//!
//! The resources that devices must provide depend on the node: a node with a device plugin for a resource provides it
//! itself. So there is one claim for each set of resources.

use crate::eras::DeviceClassesInEra;
use crate::nodes::PodCatalog;
use crate::tables::{NumberedClaimSpec, PodAndClaimTables, PodIndex};
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, HashMap};
use tollgate_api::profile::Version;
use tollgate_api::view::{ClaimSpec, quantity};
use tollgate_document::doc::{Builder, Doc, Syntax, Value, parse};

/// Maximum number of extended resources of a pod that devices can provide. Pods with more are not simulated.
const MAX_EXTENDED_RESOURCES_PER_POD: usize = 4;

/// The claims that the scheduler creates for extended resources.
#[derive(Default, Debug)]
pub(crate) struct ExtendedResourceClaims<'d> {
    specs: Vec<(Doc<'static>, u32)>,
    by_text: HashMap<String, usize, RandomState>,
    /// Index of the claim spec, by pod, class era, and the set of resources that devices must provide.
    of_pod: HashMap<(PodIndex, usize, u32), usize, RandomState>,
    /// The resources of a pod that devices can provide, sorted. A set of resources has one bit for each.
    resources: HashMap<(PodIndex, usize), Vec<&'d str>, RandomState>,
}

impl<'d> ExtendedResourceClaims<'d> {
    /// Adds all claims that a pod may need for its extended resources. Returns false, and adds none, if the pod has too
    /// many of them.
    pub(crate) fn add_claims_unless_too_many_resources(
        &mut self,
        pod: PodIndex,
        (era_number, era): (usize, &DeviceClassesInEra<'d>),
        catalog: &PodCatalog<'d>,
        tables: &mut PodAndClaimTables<'d>,
    ) -> bool {
        let entry = tables.pod(pod);
        let scalars = &catalog.pod_needs(entry.needs).resources.requested.scalars;
        let names = scalars.iter().map(|(resource, _)| catalog.resource_name(*resource));
        let mut names: Vec<&str> = names.filter(|name| era.by_resource.contains_key(*name)).collect();
        names.sort_unstable();
        if names.is_empty() {
            return true;
        }
        if names.len() > MAX_EXTENDED_RESOURCES_PER_POD {
            return false;
        }
        let spec = entry.spec;
        for set in 1..1_u32 << names.len() {
            let of_set = names.iter().enumerate().filter(|(bit, _)| set & (1 << bit) != 0);
            let classes = of_set.filter_map(|(_, name)| Some((*name, *era.by_resource.get(*name)?)));
            let text = extended_claim_spec(spec, &classes.collect::<Vec<_>>());
            let place = if let Some(&place) = self.by_text.get(&text) {
                place
            } else {
                let Ok(parsed) = parse(&text) else { continue };
                let mut builder = Builder::with_exact_capacity("", Syntax::Json, parsed.root().node_count());
                builder.copy(parsed.root());
                self.specs.push((builder.finish(), tables.new_spec_number()));
                self.by_text.insert(text, self.specs.len() - 1);
                self.specs.len() - 1
            };
            self.of_pod.insert((pod, era_number, set), place);
        }
        self.resources.insert((pod, era_number), names);
        true
    }

    /// True if a DeviceClass provides an extended resource that the pod requests, so that it may need a claim for it.
    pub(crate) fn needs_claim(&self, pod: PodIndex, era: usize) -> bool {
        self.resources.contains_key(&(pod, era))
    }

    /// The claim for the resources that devices must provide on a node; `None` if there are none.
    pub(crate) fn claim_for_resources<'n>(
        &self,
        pod: PodIndex,
        era: usize,
        resources: impl Iterator<Item = &'n str>,
    ) -> Option<NumberedClaimSpec<'_>> {
        let names = self.resources.get(&(pod, era))?;
        let bits = resources.filter_map(|resource| names.iter().position(|name| *name == resource));
        let set = bits.fold(0, |set, bit| set | 1_u32 << bit);
        let place = *self.of_pod.get(&(pod, era, set))?;
        let (doc, number) = self.specs.get(place)?;
        Some(NumberedClaimSpec { version: Version::V1, spec: ClaimSpec(doc.root()), number: *number })
    }
}

/// A device request of the claim for extended resources: its name, class and count.
struct DeviceRequest<'d> {
    name: String,
    class: &'d str,
    count: i64,
}

/// The spec, as JSON, of the claim for these extended resources of a pod, each with its class.
// upstream v1.37 createRequestsAndMappings
fn extended_claim_spec<'d>(spec: Value<'d>, resources: &[(&str, &'d str)]) -> String {
    let init: Vec<Value<'d>> = spec.get("initContainers").items().collect();
    let containers: Vec<Value<'d>> = init.iter().copied().chain(spec.get("containers").items()).collect();
    let is_short_lived = |place: usize, container: Value<'_>| {
        place < init.len() && container.get("restartPolicy").str() != "Always"
    };
    let mut requests: Vec<DeviceRequest<'d>> = Vec::new();
    for &(resource, class) in resources {
        let long_lived: Vec<Option<DeviceRequest<'d>>> = containers
            .iter()
            .enumerate()
            .map(|(place, &container)| {
                let wanted = !is_short_lived(place, container);
                wanted
                    .then(|| device_request_for_uncovered_amount(place, container, resource, class, 0))
                    .flatten()
            })
            .collect();
        // What a container asks for that ends before the others start, beyond what those after it have.
        let mut largest: Option<DeviceRequest<'d>> = None;
        for (place, &container) in containers.iter().enumerate() {
            if is_short_lived(place, container) {
                let later = long_lived.iter().skip(place).flatten().map(|request| request.count).sum();
                let own = device_request_for_uncovered_amount(place, container, resource, class, later);
                if let Some(own) = own
                    && largest.as_ref().is_none_or(|largest| largest.count < own.count)
                {
                    largest = Some(own);
                }
            }
        }
        requests.extend(largest);
        requests.extend(long_lived.into_iter().flatten());
    }
    requests.sort_by(|one, other| one.name.cmp(&other.name));
    let requests = requests.iter().map(|DeviceRequest { name, class, count }| {
        format!(
            r#"{{"name":"{name}","exactly":{{"deviceClassName":"{class}","allocationMode":"ExactCount","count":{count}}}}}"#
        )
    });
    format!(r#"{{"devices":{{"requests":[{}]}}}}"#, requests.collect::<Vec<_>>().join(","))
}

/// A device request for the amount of a resource that a container needs beyond `others`, the amount that other
/// requests cover.
// upstream v1.37 createResourceRequestAndMappings
fn device_request_for_uncovered_amount<'d>(
    place: usize,
    container: Value<'_>,
    resource: &str,
    class: &'d str,
    others: i64,
) -> Option<DeviceRequest<'d>> {
    let (requests, limits) =
        (container.get("resources").get("requests"), container.get("resources").get("limits"));
    // The API server fills in the requests that only have limits.
    let amounts: BTreeMap<&str, Value<'_>> =
        limits.members().chain(requests.members()).map(|(name, value)| (name.text(), value)).collect();
    let amount = quantity(*amounts.get(resource)?).filter(|amount| !amount.is_fractional())?.value();
    let index = amounts.keys().position(|name| *name == resource)?;
    let name = format!("container-{place}-request-{index}");
    (amount > others).then(|| DeviceRequest { name, class, count: amount - others })
}
