//! The state of a running cluster that impact needs, read once. `--state DUMP` reads the same from a dump.
//!
//! Objects are added to the snapshot as pages arrive, so only the snapshot and one page are in memory. The size of the
//! snapshot is limited: beyond the limit, the largest objects are left out and reported.

use super::objects::MissingObjects;
use super::whole::list_objects_into;
use super::{ClusterLister, ConnectedServer, UnreadObjectMessages};
use crate::cli::console::Console;
use crate::cli::snapshot::WORKLOAD_KINDS;
use crate::cli::state::OwnedObjects;
use crate::cluster::{
    CLAIM_TEMPLATES, DEVICE_CLASSES, DEVICE_TAINT_RULES, JOBS, KeptFieldsAndSizeLimit, ListedKind, NODES,
    POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS, RESOURCE_CLAIMS, RESOURCE_SLICES, STATEFUL_SETS,
};
use tollgate_document::doc::Value;
use tollgate_engine::impact::{DetailsToStore, Snapshot, SnapshotKind};

/// The kinds of objects that a snapshot for impact contains.
const STATE_KINDS: [(ListedKind, SnapshotKind); 5] = [
    (RESOURCE_SLICES, SnapshotKind::Slice),
    (RESOURCE_CLAIMS, SnapshotKind::Claim),
    (PODS, SnapshotKind::Pod),
    (DEVICE_TAINT_RULES, SnapshotKind::Rule),
    (POD_DISRUPTION_BUDGETS, SnapshotKind::Budget),
];

/// Maximum memory of a snapshot in bytes: half of the memory limit in the audit manifest.
const MAX_STATE_BYTES: usize = 128 << 20;

/// A snapshot that is filled object by object. If it gets too large, it drops the largest objects.
#[derive(Debug)]
pub(in crate::cli) struct BoundedSnapshot {
    pub(in crate::cli) snapshot: Snapshot,
    limit: usize,
    missing: MissingObjects,
}

impl BoundedSnapshot {
    pub(in crate::cli) fn new() -> BoundedSnapshot {
        BoundedSnapshot {
            snapshot: Snapshot::new(),
            limit: MAX_STATE_BYTES,
            missing: MissingObjects::default(),
        }
    }

    /// Adds an object, and drops the largest objects if the limit is exceeded.
    pub(in crate::cli) fn add_object_and_drop_largest_over_limit(
        &mut self,
        api_version: &str,
        kind: &str,
        object: Value<'_>,
    ) {
        if let Err(error) = self.snapshot.apply_as_type(api_version, kind, object) {
            self.missing.add_description_or_only_count(|| error.to_string());
        }
        for object in self.snapshot.shed_largest_until_below_byte_limit(self.limit) {
            let limit = self.limit >> 20;
            self.missing.add_description_or_only_count(|| {
                format!(
                    "{object} is left out: the state of the cluster takes more than {limit} MiB, and this object is \
                     among the largest"
                )
            });
        }
    }

    /// Returns the snapshot. Prints what is missing to stderr and adds it to the omissions.
    pub(in crate::cli) fn into_snapshot(
        self,
        omissions: &mut UnreadObjectMessages,
        console: &mut Console,
    ) -> Snapshot {
        self.missing.print_and_add_to(omissions, console);
        self.snapshot
    }
}

/// Reads the state of the cluster with these details of devices, and prints the objects that are missing to stderr.
pub(in crate::cli) fn read_state(
    asked: &ConnectedServer,
    details: DetailsToStore,
    console: &mut Console,
) -> (Snapshot, UnreadObjectMessages) {
    let mut reader = StateReader::new(asked, details);
    reader.read_kinds(&STATE_KINDS, console);
    reader.into_snapshot(console)
}

/// Reads the state for `tollgate impact`: with the counters of devices, and with their attributes if a rule in
/// the cluster needs them or `needs_attributes` is set for a given rule.
pub(in crate::cli) fn read_state_for_impact(
    asked: &ConnectedServer,
    needs_attributes: bool,
    console: &mut Console,
) -> (Snapshot, UnreadObjectMessages) {
    let attributes = needs_attributes && asked.profile.rule_class_selectors;
    let mut reader = StateReader::new(asked, DetailsToStore { attributes, counters: true });
    reader.read_kinds(&STATE_KINDS, console);
    if !attributes && reader.state.snapshot.has_class_or_expression_rules() {
        reader.details.attributes = true;
        reader.state.snapshot.set_details_to_store(reader.details);
        reader.read_kinds(&[(RESOURCE_SLICES, SnapshotKind::Slice)], console);
    }
    if reader.details.attributes {
        reader.read_kinds(&[(DEVICE_CLASSES, SnapshotKind::Class)], console);
    }
    reader.into_snapshot(console)
}

/// Reads kinds of objects of a cluster into a snapshot.
struct StateReader<'a> {
    objects: ClusterLister<'a>,
    state: BoundedSnapshot,
    details: DetailsToStore,
}

impl<'a> StateReader<'a> {
    fn new(asked: &'a ConnectedServer, details: DetailsToStore) -> StateReader<'a> {
        let snapshot = Snapshot::with_details(details);
        let state = BoundedSnapshot { snapshot, ..BoundedSnapshot::new() };
        StateReader { objects: ClusterLister::new(asked, None), state, details }
    }

    fn read_kinds(&mut self, kinds: &[(ListedKind, SnapshotKind)], console: &mut Console) {
        for (kind, stored) in kinds {
            let limits = KeptFieldsAndSizeLimit::for_impact_with_details(*stored, self.details);
            _ = self.objects.list_objects(kind, true, limits, console, &mut |api_version, object, _| {
                self.state.add_object_and_drop_largest_over_limit(api_version, kind.kind, object);
            });
        }
    }

    fn into_snapshot(mut self, console: &mut Console) -> (Snapshot, UnreadObjectMessages) {
        let snapshot = self.state.into_snapshot(&mut self.objects.omissions, console);
        (snapshot, self.objects.omissions)
    }
}

/// The kinds of objects that determine where the scheduler places evicted pods.
const SCHEDULER_KINDS: [ListedKind; 6] =
    [DEVICE_CLASSES, RESOURCE_SLICES, DEVICE_TAINT_RULES, CLAIM_TEMPLATES, RESOURCE_CLAIMS, PODS];

/// The controllers that decide whether and in which order evicted pods are replaced.
const CONTROLLER_KINDS: [ListedKind; 3] = [REPLICA_SETS, STATEFUL_SETS, JOBS];

/// The objects of a cluster that an impact needs beyond its snapshot.
pub(in crate::cli) struct ObjectsBeyondImpactSnapshot {
    pub(in crate::cli) objects: OwnedObjects,
    /// Messages about kinds that were not read, and that decide where evicted pods go.
    pub(in crate::cli) missing: Vec<String>,
    /// Number of lists that failed for other reasons than missing permissions.
    pub(in crate::cli) failures: usize,
}

/// Reads nodes, and if there are any, everything that decides where evicted pods go. With `with_workloads`, also reads
/// the workloads that pods belong to. What the user may not list is left out with a note.
pub(in crate::cli) fn read_nodes_and_scheduling_objects(
    asked: &ConnectedServer,
    with_workloads: bool,
    console: &mut Console,
) -> ObjectsBeyondImpactSnapshot {
    let mut objects = OwnedObjects::default();
    let mut omissions = list_objects_into(&mut objects, asked, &[], &[NODES], console);
    let has_nodes = !objects.is_empty();
    if has_nodes {
        omissions.extend(list_objects_into(&mut objects, asked, &[], &SCHEDULER_KINDS, console));
    } else if with_workloads {
        omissions.extend(list_objects_into(&mut objects, asked, &[], &[PODS], console));
    }
    let mut failures = omissions.failures.len();
    let missing = [omissions.failures, omissions.not_permitted].concat();
    let workloads = match (with_workloads, has_nodes) {
        (true, _) => &WORKLOAD_KINDS[..],
        (false, true) => &CONTROLLER_KINDS[..],
        (false, false) => &[],
    };
    failures += list_objects_into(&mut objects, asked, &[], workloads, console).failures.len();
    ObjectsBeyondImpactSnapshot { objects, missing, failures }
}

#[cfg(test)]
mod tests {
    use super::{BoundedSnapshot, MissingObjects, Snapshot};
    use tollgate_document::doc;

    /// However many objects there are, the state stays within its limit, and what is missing is known.
    #[test]
    fn the_largest_objects_are_left_out() {
        let mut state =
            BoundedSnapshot { snapshot: Snapshot::new(), limit: 1 << 20, missing: MissingObjects::default() };
        let pod = |name: &str, labels: usize| {
            let labels: Vec<String> = (0..labels).map(|label| format!(r#""{name}-{label}":"""#)).collect();
            format!(
                r#"{{"metadata":{{"name":"{name}","namespace":"n","uid":"u","labels":{{{}}}}},"spec":{{"resourceClaims":[{{"name":"g","resourceClaimName":"{name}"}}]}}}}"#,
                labels.join(",")
            )
        };
        let mut texts: Vec<String> = (0..300).map(|number| pod(&format!("small-{number}"), 3)).collect();
        texts.extend((0..40).map(|number| pod(&format!("large-{number}"), 1_500)));
        for text in &texts {
            state.add_object_and_drop_largest_over_limit("v1", "Pod", doc::parse(text).expect("JSON").root());
            assert!(state.snapshot.estimated_bytes() <= 1 << 20);
        }
        let kept = state.snapshot.count(tollgate_engine::impact::SnapshotKind::Pod);
        assert!((300..310).contains(&kept), "{kept}");
        let MissingObjects { named, more } = state.missing;
        assert_eq!(named.len() + more, 340 - kept);
        let first = "Pod n/large-0 is left out: the state of the cluster takes more than 1 MiB, and this object is among the largest";
        assert!(
            named.iter().any(|text| text.replace(|digit: char| digit.is_ascii_digit(), "")
                == first.replace(|digit: char| digit.is_ascii_digit(), "")),
            "{named:?}"
        );
        for text in &texts {
            let name = doc::parse(text).expect("JSON").root().get("metadata").get("name").str().to_owned();
            state.snapshot.remove(tollgate_engine::impact::SnapshotKind::Pod, "n", &name);
        }
        assert_eq!(state.snapshot.estimated_bytes(), 0, "all is given back");
    }
}
