//! Simulates runs, and caches the data that they have in common.

use crate::allocations::AllocationCache;
use crate::course::Simulation;
use crate::eras::EraIndexOfEachKind;
use crate::forecast::RunOutcome;
use crate::nodes::{NodeFitCache, Occupancy};
use crate::plan::Plan;

/// Simulates the runs of a plan. Earlier runs do not affect later ones.
#[derive(Debug)]
pub struct RunSimulator<'p> {
    pub(crate) plan: &'p Plan<'p>,
    /// Cached filter results of pods and nodes, by node era.
    pub(crate) fits: Vec<NodeFitCache<'p, 'p>>,
    /// The bound pods of the initial state.
    pub(crate) occupancy: Occupancy<'p, 'p>,
    pub(crate) cache: AllocationCache<'p>,
}

impl Plan<'_> {
    /// Creates a simulator that simulates runs of this plan one after the other and caches their common data.
    pub fn create_run_simulator(&self) -> RunSimulator<'_> {
        let nodes = self.eras.nodes_in(EraIndexOfEachKind::default());
        let mut occupancy = Occupancy::new(&self.catalog, nodes);
        for (pod, node) in &self.bound {
            if let Some(node) = nodes.find(node) {
                occupancy.add_pod(node, self.tables.pod(*pod).needs);
            }
        }
        RunSimulator {
            plan: self,
            fits: self.eras.nodes.iter().map(|nodes| NodeFitCache::new(&self.catalog, nodes)).collect(),
            occupancy,
            cache: AllocationCache::new(self),
        }
    }
}

impl RunSimulator<'_> {
    /// Simulates the run with the number `course`, which determines its random numbers together with the
    /// seed.
    pub fn simulate_run(&mut self, course: u32) -> RunOutcome {
        Simulation::simulate_run(self, course)
    }
}
