//! The engine's source of cluster state: a snapshot and its age, both provided by the caller.

use std::sync::Arc;

use crate::admission::{Context, DecodedAttributes};
pub(super) use crate::impact::ClusterState;
use crate::impact::{ImpactQuery, ProposedChange, Snapshot, impact_counts};
use crate::rules::table::TAINT_RULE_IMPACT;
use tollgate_api::view::ObjectBody;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType, Finding};

/// Where the engine gets the state of the cluster: a function that returns the current one. It is called once per
/// request, so that a request sees one state.
#[derive(Clone)]
pub struct ClusterSource(Arc<dyn Fn() -> Option<ClusterState> + Send + Sync>);

impl std::fmt::Debug for ClusterSource {
    /// Writes only the type name `ClusterSource`, because a function has no readable form.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClusterSource")
    }
}

impl ClusterSource {
    /// Creates a source that calls `source` for every request; it returns `None` until the cluster has been read once.
    pub fn from_fn(source: impl Fn() -> Option<ClusterState> + Send + Sync + 'static) -> ClusterSource {
        ClusterSource(Arc::new(source))
    }

    /// Creates a source that returns the same snapshot for every request, such as one read from a dump.
    pub fn from_snapshot(snapshot: Arc<Snapshot>) -> ClusterSource {
        ClusterSource::from_fn(move || {
            Some(ClusterState {
                snapshot: Arc::clone(&snapshot),
                age_seconds_if_stale: None,
                unreadable_objects: 0,
            })
        })
    }

    /// Returns the current state; `None` if the cluster has not been read yet.
    pub fn current_state(&self) -> Option<ClusterState> {
        (self.0)()
    }
}

/// Returns a finding with a one-sentence summary of the impact of a DeviceTaintRule. `None` for other kinds,
/// for status requests, and if the cluster state is unknown.
pub(super) fn taint_rule_impact_finding(
    admission: &DecodedAttributes<'_>,
    context: &Context<'_>,
) -> Option<Finding> {
    let (ObjectBody::Rule(rule), Some(known), Some(at), false) =
        (admission.object.body, context.cluster, admission.now.time, admission.is_status())
    else {
        return None;
    };
    let change = ProposedChange::from_decoded_rule(rule);
    let query = ImpactQuery { snapshot: &known.snapshot, change: &change, profile: context.profile, at };
    let spec = Path::ROOT.field("spec");
    let taint = spec.field("taint");
    let value = BadValue::str(rule.spec().taint().effect());
    let detail = format!("the rule {}{}", query.summary(impact_counts(query)), known.caveat());
    Some(Finding::new(TAINT_RULE_IMPACT, taint.field("effect").owned(), ErrorType::Invalid, value, detail))
}
