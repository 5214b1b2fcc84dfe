//! The claims in a simulated run: their consumers, and when they are allocated and deallocated.

use crate::course::Simulation;
use crate::held::ClaimAllocation;
use crate::outcome::{NodeAndDevices, PlacedClaim};
use crate::tables::{ClaimIndex, NumberedClaimSpec, PodIndex};
use std::sync::Arc;

/// The state of a claim in a simulated run.
#[derive(Clone, Default, Debug)]
pub(crate) struct ClaimState<'p> {
    /// The spec of the claim; `None` if the claim does not exist.
    pub(crate) spec: Option<NumberedClaimSpec<'p>>,
    pub(crate) allocation: Option<Arc<ClaimAllocation<'p>>>,
    pub(crate) reserved: Vec<Consumer>,
}

/// A consumer that has reserved a claim (`status.reservedFor`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Consumer {
    Pod(PodIndex),
    /// A pod that is being deleted, identified by the number of its deletion.
    Deleted(usize),
    /// A consumer in `status.reservedFor` that the state does not contain.
    Other,
}

impl<'p> Simulation<'_, 'p> {
    /// The current state of a claim.
    pub(crate) fn claim_state_mut(&mut self, claim: ClaimIndex) -> &mut ClaimState<'p> {
        let tables = &self.plan.tables;
        self.claims.entry(claim).or_insert_with(|| {
            let Some(stored) = &tables.claim(claim).stored else { return ClaimState::default() };
            let consumer =
                |uid: &&str| tables.by_uid.get(uid).map_or(Consumer::Other, |pod| Consumer::Pod(*pod));
            ClaimState {
                spec: Some(stored.spec).filter(|_| !stored.is_deleting),
                allocation: stored.allocation.clone(),
                reserved: stored.reserved.iter().map(consumer).collect(),
            }
        })
    }

    /// Removes the allocation of a claim.
    pub(crate) fn deallocate(&mut self, claim: ClaimIndex) {
        let state = self.claim_state_mut(claim);
        state.reserved.clear();
        if let Some(held) = state.allocation.take() {
            self.retries_all = true;
            self.devices.set_held(self.cache, &held, false);
        }
    }

    /// Sets the allocation of a claim.
    pub(crate) fn set_allocation(&mut self, claim: ClaimIndex, held: &Arc<ClaimAllocation<'p>>) {
        self.claim_state_mut(claim).allocation = Some(Arc::clone(held));
        self.devices.set_held(self.cache, held, true);
    }

    /// The node of a pod and the devices of its claims, for the report.
    pub(crate) fn placement_of(&mut self, pod: PodIndex, node: &str) -> NodeAndDevices {
        let mut claims = Vec::new();
        let tables = &self.plan.tables;
        let entry = tables.pod(pod);
        let references = entry
            .references
            .iter()
            .filter_map(|reference| Some((Some(reference.reference.to_owned()), reference.claim?)));
        for (reference, claim) in references.chain([(None, entry.extended)]) {
            let held = self.claim_state_mut(claim).allocation.clone();
            if reference.is_none() && held.is_none() {
                continue;
            }
            let known =
                Some(tables.claim(claim)).filter(|claim| !claim.is_generated || claim.stored.is_some());
            let devices = held.iter().flat_map(|held| &held.devices);
            claims.push(PlacedClaim {
                reference,
                name: known.map(|claim| claim.name.clone()),
                devices: devices.map(crate::held::HeldDevice::placed_device).collect(),
            });
        }
        NodeAndDevices { node: node.to_owned(), claims }
    }
}
