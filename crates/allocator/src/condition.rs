//! The message of a pod's PodScheduled condition, as far as the scheduler's DynamicResources plugin determines it.
//!
//! The reasons of all nodes are counted and sorted as text, whichever filter gave them. What follows "preemption:" is
//! not here: preemption does not help with devices.

use crate::outcome::AllocationError;
use std::collections::BTreeMap;
use tollgate_api::profile::AllocatorSemantics;

/// Result of the PostFilter extension point of the DynamicResources plugin, which runs when no node fits the
/// pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PostFilterResult {
    /// Nodes were checked, and no claim can be deallocated.
    NothingChanged,
    /// No node was checked, so PostFilter has no claims to deallocate.
    NoClaims,
}

impl PostFilterResult {
    fn post_filter_message(self) -> &'static str {
        match self {
            PostFilterResult::NothingChanged => "still not schedulable",
            PostFilterResult::NoClaims => "no new claims to deallocate",
        }
    }
}

/// The message of a condition with reason Unschedulable, up to " preemption:". `reasons` maps each filter
/// message to the number of nodes that it was reported for.
// upstream v1.37 FitError.Error
pub fn unschedulable_message(
    semantics: &AllocatorSemantics,
    nodes: usize,
    reasons: &BTreeMap<String, usize>,
    post_filter: PostFilterResult,
) -> String {
    let mut reasons: Vec<String> =
        reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    reasons.sort();
    condition_message(semantics, nodes, &reasons.join(", "), post_filter)
}

/// The message for a pod that was rejected before any node was checked, up to " preemption:".
pub fn prefilter_rejection_message(semantics: &AllocatorSemantics, nodes: usize, reason: &str) -> String {
    condition_message(semantics, nodes, reason, PostFilterResult::NoClaims)
}

/// The text of the condition: the number of nodes, the reasons, and in some releases the result of PostFilter.
fn condition_message(
    semantics: &AllocatorSemantics,
    nodes: usize,
    reasons: &str,
    post_filter: PostFilterResult,
) -> String {
    let post_filter = if semantics.message_has_post_filter { post_filter.post_filter_message() } else { "" };
    let separated = if post_filter.is_empty() { String::new() } else { format!(" {post_filter},") };
    format!("0/{nodes} nodes are available: {reasons}.{separated}")
}

/// The message of a condition with reason SchedulerError.
pub fn scheduler_error_message(error: &AllocationError) -> String {
    format!("running \"DynamicResources\" filter plugin: {error}")
}
