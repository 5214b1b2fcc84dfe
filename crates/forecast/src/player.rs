//! Simulates runs, and caches the data that they have in common.

use crate::allocations::AllocationCache;
use crate::course::Simulation;
use crate::forecast::Course;
use crate::nodes::{Fits, Occupancy};
use crate::plan::Plan;

/// Simulates the runs of a plan. Earlier runs do not affect later ones.
#[derive(Debug)]
pub struct Player<'p> {
    pub(crate) plan: &'p Plan<'p>,
    /// Cached filter results of pods and nodes, by node era.
    pub(crate) fits: Vec<Fits<'p, 'p>>,
    /// The bound pods of the initial state.
    pub(crate) occupancy: Option<Occupancy<'p, 'p>>,
    pub(crate) cache: AllocationCache<'p>,
}

impl<'p> Player<'p> {
    pub(crate) fn new(plan: &'p Plan<'p>) -> Player<'p> {
        let occupancy = plan.eras.nodes.first().map(|nodes| {
            let mut occupancy = Occupancy::new(&plan.catalog, nodes);
            for (pod, node) in &plan.bound {
                if let (Some(node), Some(pod)) = (nodes.find(node), plan.tables.pods.get(*pod)) {
                    occupancy.add_pod(node, pod.needs);
                }
            }
            occupancy
        });
        Player {
            plan,
            fits: plan.eras.nodes.iter().map(|nodes| Fits::new(&plan.catalog, nodes)).collect(),
            occupancy,
            cache: AllocationCache::new(plan),
        }
    }

    /// Simulates the run with the number `course`, which determines its random numbers together with the
    /// seed.
    pub fn play(&mut self, course: u32) -> Course {
        Simulation::play(self, course).unwrap_or(Course { evicted: Vec::new(), pods: Vec::new() })
    }
}
