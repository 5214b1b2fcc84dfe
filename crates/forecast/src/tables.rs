//! All pods and claims that can exist in a simulated run, with their indices.
//!
//! Every pod and claim has an index from the start: those of the state, the given ones, and those that controllers
//! will create. A claim that is generated for a pod belongs to the reference in the pod, so a recreated pod uses it
//! again.

#![allow(clippy::indexing_slicing, reason = "the indices of pods and claims are places in their lists")]

use crate::held::ClaimAllocation;
use crate::nodes::{PodCatalog, PodId, PodSource};
use crate::state::StoredObject;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;
use tollgate_api::profile::Version;
use tollgate_api::view::{Claim, ClaimSpec, Consumer, PodClaims, RequestBody, SubRequest, View as _};
use tollgate_document::doc::Value;

/// Index of a pod in [`PodAndClaimTables`].
pub(crate) type PodIndex = usize;

/// Index of a claim in [`PodAndClaimTables`].
pub(crate) type ClaimIndex = usize;

/// The spec of a claim, with a number that is equal for specs with equal text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberedClaimSpec<'d> {
    pub(crate) version: Version,
    pub(crate) spec: ClaimSpec<'d>,
    pub(crate) number: u32,
}

impl<'d> NumberedClaimSpec<'d> {
    /// All requests and their alternatives, in order.
    pub(crate) fn requests_and_alternatives(self) -> impl Iterator<Item = RequestBody<'d>> {
        requests_and_alternatives_with_names(self.spec, self.version).into_iter().map(|(_, body)| body)
    }
}

/// The requests of a claim, or their alternatives where they have some, with the names that allocation results use.
pub fn requests_and_alternatives_with_names<'d>(
    spec: ClaimSpec<'d>,
    version: Version,
) -> Vec<(String, RequestBody<'d>)> {
    let mut all = Vec::new();
    for request in spec.devices().requests().iter() {
        all.extend(request.exactly(version).map(|body| (request.name().to_owned(), body)));
        all.extend(request.first_available().iter().map(|alternative: SubRequest<'d>| {
            (format!("{}/{}", request.name(), alternative.name()), alternative.body())
        }));
    }
    all
}

/// A pod that can exist in a simulated run.
#[derive(Debug)]
pub(crate) struct PodEntry<'d> {
    pub(crate) namespace: &'d str,
    /// Name of the pod, or a placeholder if the name is generated.
    pub(crate) name: String,
    pub(crate) spec: Value<'d>,
    pub(crate) needs: PodId,
    /// Catalog entry with which the pod counts on its node during deletion. Used if the pod can be evicted
    /// and has a grace period.
    pub(crate) terminating: PodId,
    /// True if an evicted pod does not end, because the node on which it runs in the initial state is not Ready.
    pub(crate) never_ends: bool,
    /// The claims in the pod's spec, in order.
    pub(crate) references: Vec<ClaimReference<'d>>,
    /// The claim that the scheduler creates for extended resources.
    pub(crate) extended: ClaimIndex,
    /// Index of the pod among the reported pods.
    pub(crate) tracked: Option<usize>,
    pub(crate) controller: RecreatingController,
    /// For a pod of a Job with a limit for each index: number of evictions that its index survives, including that of
    /// the pod that it replaces.
    pub(crate) evictions_survived_by_index: Option<i64>,
    /// Pods that must be bound before a controller creates this pod.
    pub(crate) after: Vec<ReplacedAndNewPredecessor>,
}

/// A pod that must be bound before another pod is created, preceded by the pod of the initial state that it
/// replaces.
pub(crate) type ReplacedAndNewPredecessor = (Option<PodIndex>, PodIndex);

/// A claim in `spec.resourceClaims` of a pod: by name, or generated from a template.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimReference<'d> {
    pub(crate) reference: &'d str,
    /// `None` if no claim was generated for the pod.
    pub(crate) claim: Option<ClaimIndex>,
    /// The ResourceClaimTemplate from which the claim is generated.
    pub(crate) template: Option<&'d str>,
}

/// The controller that recreates a pod after an eviction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RecreatingController {
    /// No controller recreates the pod.
    None,
    /// A controller that recreates the pod as soon as its deletion starts, such as a ReplicaSet.
    AtOnce,
    /// A controller that recreates the pod after it is gone, such as a StatefulSet.
    WhenGone,
    /// A Job, by index. It recreates pods until too many have failed.
    Job(usize),
    /// A kind of controller that is not simulated.
    Unknown(String),
}

/// A claim that can exist in a simulated run.
#[derive(Debug)]
pub(crate) struct ClaimEntry<'d> {
    pub(crate) name: String,
    /// True if the claim is generated from a template for a pod.
    pub(crate) is_generated: bool,
    /// The claim in the initial state, if it exists there.
    pub(crate) stored: Option<StoredClaim<'d>>,
}

/// Spec, allocation and consumers of a claim of the initial state.
#[derive(Clone, Debug)]
pub(crate) struct StoredClaim<'d> {
    pub(crate) spec: NumberedClaimSpec<'d>,
    pub(crate) allocation: Option<Arc<ClaimAllocation<'d>>>,
    /// UIDs in `status.reservedFor`.
    pub(crate) reserved: Vec<&'d str>,
    pub(crate) is_deleting: bool,
}

/// All pods and claims that can exist in a simulated run.
#[derive(Default, Debug)]
pub(crate) struct PodAndClaimTables<'d> {
    pub(crate) pods: Vec<PodEntry<'d>>,
    pub(crate) claims: Vec<ClaimEntry<'d>>,
    claims_by_name: HashMap<(&'d str, &'d str), ClaimIndex, RandomState>,
    specs: HashMap<String, u32, RandomState>,
    pub(crate) by_uid: HashMap<&'d str, PodIndex, RandomState>,
    pub(crate) by_name: HashMap<(&'d str, &'d str), PodIndex, RandomState>,
}

impl<'d> PodAndClaimTables<'d> {
    /// The pod with this index.
    pub(crate) fn pod(&self, pod: PodIndex) -> &PodEntry<'d> {
        &self.pods[pod]
    }

    /// The pod with this index, to be changed.
    pub(crate) fn pod_mut(&mut self, pod: PodIndex) -> &mut PodEntry<'d> {
        &mut self.pods[pod]
    }

    /// The claim with this index.
    pub(crate) fn claim(&self, claim: ClaimIndex) -> &ClaimEntry<'d> {
        &self.claims[claim]
    }

    /// Returns the spec of a claim or template with its number. Equal specs have the same number.
    pub(crate) fn intern_claim_spec(
        &mut self,
        version: Version,
        spec: ClaimSpec<'d>,
    ) -> NumberedClaimSpec<'d> {
        let next = u32::try_from(self.specs.len()).unwrap_or(u32::MAX);
        let text = format!("{}\0{}", version.name(), spec.json().raw_json());
        NumberedClaimSpec { version, spec, number: *self.specs.entry(text).or_insert(next) }
    }

    /// Assigns a number to a claim spec that no object contains.
    pub(crate) fn new_spec_number(&mut self) -> u32 {
        let next = u32::try_from(self.specs.len()).unwrap_or(u32::MAX);
        self.specs.insert(format!("\0{next}"), next);
        next
    }

    /// Index of the claim with this name, which is added if it does not exist yet.
    pub(crate) fn find_or_add_claim(&mut self, namespace: &'d str, name: &'d str) -> ClaimIndex {
        let next = self.claims.len();
        let claim = *self.claims_by_name.entry((namespace, name)).or_insert(next);
        if claim == next {
            let name = name.to_owned();
            self.claims.push(ClaimEntry { name, is_generated: false, stored: None });
        }
        claim
    }

    /// Adds a claim of the initial state.
    pub(crate) fn add_stored_claim(&mut self, object: StoredObject<'d>) {
        let index = self.find_or_add_claim(object.namespace(), object.name());
        let claim = Claim::of(object.value);
        let spec = self.intern_claim_spec(object.version, claim.spec());
        let metadata = object.value.get("metadata");
        let stored = StoredClaim {
            spec,
            allocation: ClaimAllocation::from_status(claim.status()).map(Arc::new),
            reserved: claim.status().reserved_for().iter().map(Consumer::uid).collect(),
            is_deleting: metadata.get("deletionTimestamp").exists(),
        };
        let mut owners = metadata.get("ownerReferences").items();
        let is_pod = |owner: Value<'_>| {
            owner.get("controller").bool() == Some(true) && owner.get("kind").str() == "Pod"
        };
        let entry = &mut self.claims[index];
        entry.is_generated = owners.any(is_pod);
        entry.stored = Some(stored);
    }

    /// Adds a claim that is generated for a pod, and returns its index.
    fn add_generated_claim(&mut self, name: String) -> ClaimIndex {
        self.claims.push(ClaimEntry { name, is_generated: true, stored: None });
        self.claims.len() - 1
    }

    /// Adds a pod. `status` is that of an existing pod and names the claims that were generated for it.
    pub(crate) fn add_pod(
        &mut self,
        catalog: &mut PodCatalog<'d>,
        source: &PodSource<'d>,
        name: String,
        status: Value<'d>,
    ) -> PodIndex {
        let namespace = source.namespace;
        let known = |reference: &str| {
            let statuses = status.get("resourceClaimStatuses").items();
            let mut statuses = statuses.filter(|status| status.get("name").str() == reference);
            statuses.next().map(|status| status.get("resourceClaimName").str())
        };
        let mut references = Vec::new();
        for claim in PodClaims::of(source.spec).resource_claims().iter() {
            let reference = claim.name();
            let (claim, template) = match (claim.resource_claim_name(), known(reference)) {
                (Some(name), _) => (Some(self.find_or_add_claim(namespace, name)), None),
                (None, Some("")) => (None, None),
                (None, Some(name)) => {
                    (Some(self.find_or_add_claim(namespace, name)), claim.resource_claim_template_name())
                }
                (None, None) => {
                    let generated = self.add_generated_claim(format!("{name}-{reference}-gen"));
                    (Some(generated), claim.resource_claim_template_name())
                }
            };
            references.push(ClaimReference { reference, claim, template });
        }
        let extended = match status.get("extendedResourceClaimStatus").get("resourceClaimName").str() {
            "" => self.add_generated_claim("<extended-resources>".to_owned()),
            name => self.find_or_add_claim(namespace, name),
        };
        let needs = catalog.add_pod(source);
        self.pods.push(PodEntry {
            namespace,
            name,
            spec: source.spec,
            needs,
            terminating: needs,
            never_ends: false,
            references,
            extended,
            tracked: None,
            controller: RecreatingController::None,
            evictions_survived_by_index: None,
            after: Vec::new(),
        });
        self.pods.len() - 1
    }
}

impl PodEntry<'_> {
    /// All claims that the pod can use.
    pub(crate) fn claims_of_pod(&self) -> impl Iterator<Item = ClaimIndex> {
        self.references.iter().filter_map(|reference| reference.claim).chain([self.extended])
    }
}
