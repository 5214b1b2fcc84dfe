//! The state of a running cluster that impact needs, read once. `--state DUMP` reads the same from a dump.
//!
//! Objects are added to the snapshot as pages arrive, so only the snapshot and one page are in memory. The size of the
//! snapshot is limited: beyond the limit, the largest objects are left out and reported.
//!
//! Reports that need more than a snapshot get whole objects. They are copied with the fields that `tollgate snapshot`
//! would save, because a page is freed when the next one is read. `StateObjects` holds the same for a dump.

use std::sync::Arc;
use std::time::Duration;

use super::objects::MissingObjects;
use super::{ClusterLister, ConnectedServer, UnreadObjectMessages, object_kind};
use crate::cli::console::Console;
use crate::cli::forecast::UNKNOWN_OUTCOMES;
use crate::cli::outcome::Failure;
use crate::cli::snapshot::{OptionalFields, WORKLOAD_KINDS, keep_needed_fields};
use crate::cli::state::OwnedObjects;
use crate::cluster::{
    CLAIM_TEMPLATES, Cluster, DEVICE_CLASSES, DEVICE_TAINT_RULES, JOBS, KeptFieldsAndSizeLimit, ListedKind,
    NAMESPACES, NODES, ObjectWatch, POD_DISRUPTION_BUDGETS, PODS, ProjectFn, REPLICA_SETS, RESOURCE_CLAIMS,
    RESOURCE_SLICES, STATEFUL_SETS,
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

/// Reads nodes, and if there are any, everything that decides where evicted pods go. With `with_workloads`, also reads
/// the workloads that pods belong to. What the user may not list is left out with a note. Also returns messages about
/// kinds that were not read, and that decide where evicted pods go; and the number of lists that failed for other
/// reasons than missing permissions.
pub(in crate::cli) fn read_nodes_and_scheduling_objects(
    asked: &ConnectedServer,
    with_workloads: bool,
    console: &mut Console,
) -> (OwnedObjects, Vec<String>, usize) {
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
    (objects, missing, failures)
}

/// The kinds that are listed for the plan of a drain, and without the PDBs for a forecast. Workloads are listed only if
/// the user may list them.
pub(in crate::cli) const FORECAST_KINDS: [ListedKind; 9] = [
    NAMESPACES,
    NODES,
    DEVICE_CLASSES,
    RESOURCE_SLICES,
    DEVICE_TAINT_RULES,
    CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    PODS,
    POD_DISRUPTION_BUDGETS,
];

/// Reads the objects that a forecast depends on, and PDBs only if `with_budgets`. Also returns what could not be read.
pub(in crate::cli) fn read_forecast_objects(
    asked: &ConnectedServer,
    with_budgets: bool,
    console: &mut Console,
) -> (OwnedObjects, Vec<String>) {
    let needed = FORECAST_KINDS.iter().filter(|kind| with_budgets || **kind != POD_DISRUPTION_BUDGETS);
    let (objects, unread) = read_objects(asked, needed, &WORKLOAD_KINDS, UNKNOWN_OUTCOMES, console);
    (objects, unread.failures)
}

/// Kinds that the report about devices needs.
pub(in crate::cli) const DEVICE_REPORT_KINDS: [ListedKind; 5] =
    [RESOURCE_SLICES, DEVICE_CLASSES, RESOURCE_CLAIMS, DEVICE_TAINT_RULES, PODS];

/// Reads the objects that the report about devices shows, and their workloads. Also returns what is missing from it,
/// and the number of failures.
pub(in crate::cli) fn read_device_report_objects(
    asked: &ConnectedServer,
    console: &mut Console,
) -> (OwnedObjects, Vec<String>, usize) {
    let consequence = "; the report may be incomplete";
    let (mut objects, unread) = read_objects(asked, &DEVICE_REPORT_KINDS, [&NODES], consequence, console);
    let workloads = list_objects_into(&mut objects, asked, &[], &WORKLOAD_KINDS, console);
    let failures = [unread.failures, workloads.failures].concat();
    let count = failures.len();
    // Without nodes, devices of cordoned nodes seem to be free.
    (objects, [failures, unread.not_permitted].concat(), count)
}

/// Maximum time until all watches have listed their objects; large clusters take long.
const SYNC_TIMEOUT: Duration = Duration::from_mins(2);

/// Watches objects of these kinds, with the fields that a snapshot would save, and waits until everything is listed.
/// What the user may not list is an error for the needed kinds.
pub(in crate::cli) fn watch_objects(
    cluster: &Cluster,
    needed: &[ListedKind],
    wanted: &[ListedKind],
    fields: OptionalFields<'static>,
) -> Result<ObjectWatch, Failure> {
    let project: ProjectFn = Arc::new(move |kind, _, object| Ok(keep_needed_fields(kind, object, fields)));
    let watch = ObjectWatch::start(cluster, needed, wanted, &project, "manifests/components/drain");
    let unlisted = |failures: Vec<String>| {
        Failure::Input(format!("cannot list or watch all kinds:\n  {}", failures.join("\n  ")))
    };
    watch.wait_until_synced(SYNC_TIMEOUT).map_err(unlisted)?;
    Ok(watch)
}

/// Reads the objects of these kinds, and prints what is missing to stderr, with the consequence. What the user may not
/// list is a failure for the kinds in `needed`, and a note for those in `wanted`. Also returns the failures.
fn read_objects<'k>(
    asked: &ConnectedServer,
    needed: impl IntoIterator<Item = &'k ListedKind>,
    wanted: impl IntoIterator<Item = &'k ListedKind>,
    consequence: &str,
    console: &mut Console,
) -> (OwnedObjects, UnreadObjectMessages) {
    let mut found = OwnedObjects::default();
    let unread = list_objects_into(&mut found, asked, needed, wanted, console);
    if !unread.failures.is_empty() {
        console.note(&format!("some objects could not be read{consequence}"));
    }
    (found, unread)
}

/// Like [`read_objects`], but adds to objects that were read before.
fn list_objects_into<'k>(
    found: &mut OwnedObjects,
    asked: &ConnectedServer,
    needed: impl IntoIterator<Item = &'k ListedKind>,
    wanted: impl IntoIterator<Item = &'k ListedKind>,
    console: &mut Console,
) -> UnreadObjectMessages {
    let mut objects = ClusterLister::new(asked, None);
    let needed = needed.into_iter().map(|kind| (kind, true));
    for (kind, is_needed) in needed.chain(wanted.into_iter().map(|kind| (kind, false))) {
        let mut missing = MissingObjects::default();
        let mut add = |api_version: &str, object: Value<'_>, _: &mut Console| {
            let kept = keep_needed_fields(kind, object, OptionalFields::WITH_MESSAGES);
            if let Err(error) = found.add_copy(api_version, kind.kind, kept.root()) {
                missing.add_description_or_only_count(|| error.to_string());
            }
        };
        let whole = KeptFieldsAndSizeLimit::WHOLE_OBJECTS;
        // Why something is missing was said, and the report does without it.
        if objects.list_objects(kind, is_needed, whole, console, &mut add).is_err()
            && let Some(kind) = object_kind(kind)
        {
            found.mark_unread(kind);
        }
        missing.print_and_add_to(&mut objects.omissions, console);
    }
    objects.omissions
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
