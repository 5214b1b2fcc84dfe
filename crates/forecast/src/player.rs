//! Plays courses, and remembers what they have in common.

use crate::allocations::Memory;
use crate::course::World;
use crate::forecast::Course;
use crate::nodes::{Fits, Occupancy};
use crate::plan::Plan;

/// Plays courses. Which ones it has played before does not change the next.
#[derive(Debug)]
pub struct Player<'p> {
    pub(crate) plan: &'p Plan<'p>,
    /// What is known of pods and nodes, for each era of nodes.
    pub(crate) fits: Vec<Fits<'p, 'p>>,
    /// The bound pods of the state.
    pub(crate) occupancy: Option<Occupancy<'p, 'p>>,
    pub(crate) memory: Memory<'p>,
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
            memory: Memory::new(plan),
        }
    }

    /// Plays a course; `course` is its number, from which chance starts together with the seed.
    pub fn play(&mut self, course: u32) -> Course {
        World::play(self, course).unwrap_or(Course { evicted: Vec::new(), pods: Vec::new() })
    }
}
