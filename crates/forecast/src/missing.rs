//! Kinds that a forecast needs and that are missing from the state, because they were not listed.
//!
//! A cluster can exist without claims and templates. Unless the state records which kinds were listed, these kinds
//! are missing only if a bound pod uses them. Pods that depend on a missing kind have an unknown outcome.

use crate::plan::{ClusterChange, Plan, object_kind};
use crate::state::{ObjectKind, State};
use crate::tables::PodEntry;

/// Kinds that a forecast cannot do without.
const NEEDED_KINDS: [ObjectKind; 5] = [
    ObjectKind::Node,
    ObjectKind::DeviceClass,
    ObjectKind::ResourceSlice,
    ObjectKind::ResourceClaimTemplate,
    ObjectKind::ResourceClaim,
];

/// The needed kinds of which the state contains no object and that were not listed. Nodes among the steps do
/// not count, because the cluster has others.
pub(crate) fn needed_kinds_absent_from_state_and_steps(
    state: &State<'_>,
    steps: &[ClusterChange<'_>],
) -> Vec<ObjectKind> {
    let is_given = |kind: ObjectKind| {
        let mut given = steps.iter().filter_map(|step| match step {
            ClusterChange::Apply(value) => object_kind(*value),
            _ => None,
        });
        kind != ObjectKind::Node && given.any(|given| given == kind)
    };
    let is_absent = |kind: &ObjectKind| {
        state.objects_of_kind(*kind).is_empty() && !state.is_listed(*kind) && !is_given(*kind)
    };
    NEEDED_KINDS.into_iter().filter(is_absent).collect()
}

/// True if the outcome of the pod depends on objects of this kind.
fn depends_on(pod: &PodEntry<'_>, kind: ObjectKind) -> bool {
    match kind {
        ObjectKind::Node => true,
        ObjectKind::ResourceClaimTemplate => {
            pod.references.iter().any(|reference| reference.template.is_some())
        }
        _ => pod.references.iter().any(|reference| reference.claim.is_some()),
    }
}

impl Plan<'_> {
    /// Records the absent kinds that the cluster must contain and that some pod depends on.
    pub(crate) fn record_missing_kinds_that_pods_need(&mut self, absent: Vec<ObjectKind>, lists_kinds: bool) {
        let tables = &self.tables;
        let is_optional =
            |kind| matches!(kind, ObjectKind::ResourceClaimTemplate | ObjectKind::ResourceClaim);
        let is_used = |kind| self.bound.iter().any(|(pod, _)| depends_on(tables.pod(*pod), kind));
        let is_needed =
            |kind| kind == ObjectKind::Node || tables.pods.iter().any(|pod| depends_on(pod, kind));
        let is_missing =
            |kind: &ObjectKind| is_needed(*kind) && (lists_kinds || !is_optional(*kind) || is_used(*kind));
        let missing: Vec<ObjectKind> = absent.into_iter().filter(is_missing).collect();
        for tracked in &mut self.tracked {
            let Some(pod) = tracked.pod else { continue };
            let lacking = missing.iter().filter(|kind| depends_on(tables.pod(pod), **kind));
            tracked.not_modelled.extend(lacking.map(|kind| format!("the state has no {}", kind.plural())));
        }
        self.missing = missing.into_iter().map(ObjectKind::plural).collect();
    }
}
