//! The engine's source of cluster state: a snapshot and its age, both provided by the caller.

use std::sync::Arc;

use crate::admission::{Context, DecodedAttributes};
pub(super) use crate::impact::ClusterState;
use crate::impact::{ImpactQuery, ProposedChange, Snapshot, count};
use crate::rules::table::TAINT_RULE_IMPACT;
use tollgate_api::view::Body;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType, Finding};

/// A function that returns the current state of the cluster. It is called once per request, so that a request sees one
/// state.
#[derive(Clone)]
pub struct Cluster(Arc<dyn Fn() -> Option<ClusterState> + Send + Sync>);

impl std::fmt::Debug for Cluster {
    /// Writes only the type name `Cluster`, because a function has no readable form.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cluster")
    }
}

impl Cluster {
    /// Creates a source that calls `source` for every request; `source` returns `None` until the cluster has been read
    /// once.
    pub fn watched(source: impl Fn() -> Option<ClusterState> + Send + Sync + 'static) -> Cluster {
        Cluster(Arc::new(source))
    }

    /// Creates a source that always returns this snapshot, as current.
    pub fn fixed(snapshot: Arc<Snapshot>) -> Cluster {
        Cluster::watched(move || {
            Some(ClusterState { snapshot: Arc::clone(&snapshot), stale_seconds: None, unreadable_objects: 0 })
        })
    }

    /// Returns the current state; `None` if the cluster has not been read yet.
    pub fn current_state(&self) -> Option<ClusterState> {
        (self.0)()
    }
}

/// Returns a finding with a one-sentence summary of the impact of a DeviceTaintRule. `None` for other kinds,
/// for status requests, and if the cluster state is unknown.
pub(super) fn impact_finding(admission: &DecodedAttributes<'_>, context: &Context<'_>) -> Option<Finding> {
    let (Body::Rule(rule), Some(known), Some(at), false) =
        (admission.object.body, context.cluster, admission.now.time, admission.is_status())
    else {
        return None;
    };
    let change = ProposedChange::from_decoded_rule(rule);
    let query = ImpactQuery { snapshot: &known.snapshot, change: &change, profile: context.profile, at };
    let spec = Path::ROOT.field("spec");
    let taint = spec.field("taint");
    let value = BadValue::str(rule.spec().taint().effect());
    let detail = format!("the rule {}{}", query.summary(count(query)), known.caveat());
    Some(Finding::new(TAINT_RULE_IMPACT, taint.field("effect").owned(), ErrorType::Invalid, value, detail))
}
