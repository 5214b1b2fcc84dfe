//! The filter for devices at one attempt to schedule a pod: what the allocator says for the claims of the pod on a node.

use crate::allocations::{AskIndex, AskedClaim, Devices, Found, Memory};
use crate::attempt::PodClaims;
use crate::device_features::feature_of_allocation;
use crate::held::Held;
use crate::nodes::{Cycle, NodeIndex};
use crate::tables::{ClaimIndex, PodEntry, PodIndex};
use foldhash::fast::RandomState;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use tollgate_allocator::Unschedulable;
use tollgate_allocator::condition::error_message;

/// New allocations on a node for the unallocated claims of a pod. The last one is for extended resources, if
/// the pod needs such a claim.
#[derive(Default)]
pub(crate) struct NewAllocations<'p> {
    found: Option<Rc<[Arc<Held<'p>>]>>,
    has_extended: bool,
}

/// Result of the device filter for one node.
pub(crate) enum Verdict<'p> {
    /// The devices can be allocated; with the new allocations and the score.
    Fits(NewAllocations<'p>, i64),
    Rejected(Cow<'static, str>),
    /// These allocated claims of the pod are not available on the node.
    ClaimElsewhere(Vec<ClaimIndex>),
    /// The scheduling attempt ends with this error.
    Failed(String),
    NotModelled(String),
}

/// The device filter of one scheduling attempt.
pub(crate) struct DeviceFilter<'w, 'p> {
    pub(crate) devices: &'w mut Devices<'p>,
    pub(crate) memory: &'w mut Memory<'p>,
    pub(crate) pod: PodIndex,
    pub(crate) entry: &'p PodEntry<'p>,
    pub(crate) claims: &'w PodClaims<'p>,
    /// Index of the set of unallocated claims; `None` if all claims are allocated.
    pub(crate) ask: Option<AskIndex>,
    /// True if DeviceClasses provide extended resources that the pod requests.
    pub(crate) has_extended: bool,
    /// The claim set for which unsupported features were recorded last.
    pub(crate) noted: Option<AskIndex>,
    /// Features that are not simulated, by pod.
    pub(crate) uncertain: &'w mut HashMap<PodIndex, BTreeSet<&'static str>, RandomState>,
}

impl<'p> DeviceFilter<'_, 'p> {
    // upstream v1.37 DynamicResources.Filter
    pub(crate) fn check(&mut self, node: NodeIndex, cycle: &Cycle<'_, 'p, 'p>) -> Verdict<'p> {
        let (ask, extended) = self.ask_on(node, cycle);
        self.note_uncertainty(ask);
        let mut allocations = NewAllocations::default();
        let mut score = self.claims.score;
        if let Some(ask) = ask {
            match self.devices.find(self.memory, node, ask) {
                Some(Found::Allocated(found, own)) => {
                    score += own;
                    allocations = NewAllocations { found: Some(found), has_extended: extended.is_some() };
                }
                Some(Found::Unschedulable(reason)) => return Verdict::Rejected(reason.text()),
                Some(Found::Failed) => {
                    let asked = self.asked(extended);
                    let error = self.devices.error(self.memory, node, &asked);
                    return Verdict::Failed(error.map_or(String::new(), |error| error_message(&error)));
                }
                Some(Found::Unsupported(what)) => return Verdict::NotModelled(what.to_owned()),
                Some(Found::GaveUp(steps)) => {
                    return Verdict::NotModelled(format!("gave up after {steps} steps"));
                }
                None => return Verdict::Rejected(Unschedulable::CannotAllocate.text()),
            }
        }
        let place = cycle.node(node);
        let elsewhere = self.claims.allocated.iter().filter(|(_, held)| !held.nodes.includes(place));
        let elsewhere: Vec<ClaimIndex> = elsewhere.map(|(claim, _)| *claim).collect();
        if elsewhere.is_empty() {
            Verdict::Fits(allocations, score)
        } else {
            Verdict::ClaimElsewhere(elsewhere)
        }
    }

    /// Records the features that the result for a node depends on and that are not simulated.
    fn note_uncertainty(&mut self, ask: Option<AskIndex>) {
        if ask.is_some() && self.noted == ask {
            return;
        }
        self.noted = ask;
        let era = self.devices.era;
        let asked = ask.map(|ask| self.memory.unmodelled(era, ask));
        let devices = self.devices.plan().eras.devices.get(era.devices);
        let allocated =
            self.claims.allocated.iter().filter_map(|(_, held)| feature_of_allocation(held, devices?));
        let mut names = asked.iter().flat_map(|names| names.iter().copied()).chain(allocated).peekable();
        if names.peek().is_some() {
            self.uncertain.entry(self.pod).or_default().extend(names);
        }
    }

    /// Index of the claims to allocate on a node, including the claim for extended resources if the pod needs
    /// one there.
    fn ask_on(
        &mut self,
        node: NodeIndex,
        cycle: &Cycle<'_, 'p, 'p>,
    ) -> (Option<AskIndex>, Option<AskedClaim<'p>>) {
        if !self.has_extended {
            return (self.ask, None);
        }
        let plan = self.devices.plan();
        let era = self.devices.era;
        let resources = cycle.delegated(node).map(|(name, _)| name);
        let Some(spec) = plan.extended.claim(self.pod, era.classes, resources) else {
            return (self.ask, None);
        };
        let name = plan.tables.claims.get(self.entry.extended).map_or("", |claim| claim.name.as_str());
        let extended = AskedClaim { namespace: self.entry.namespace, name, spec };
        let asked = self.asked(Some(extended));
        (Some(self.memory.ask(era, &asked)), Some(extended))
    }

    fn asked(&self, extended: Option<AskedClaim<'p>>) -> Vec<AskedClaim<'p>> {
        self.claims.unallocated.iter().map(|(_, asked)| *asked).chain(extended).collect()
    }

    /// The new allocations, each with the index of its claim.
    pub(crate) fn with_claims(&self, new: &NewAllocations<'p>) -> Vec<(ClaimIndex, Arc<Held<'p>>)> {
        let claims = self.claims.unallocated.iter().map(|(claim, _)| *claim);
        let claims = claims.chain(new.has_extended.then_some(self.entry.extended));
        claims.zip(new.found.iter().flat_map(|found| found.iter().cloned())).collect()
    }
}
