//! When processes of a FoundationDB cluster are replaced because their nodes are tainted. Pure.
//!
//! From the operator's design "Tainted Node Eviction": a taint that has been on a node for `durationInSeconds` turns
//! NodeTaintDetected into NodeTaintReplacing, and after `taintReplacementTimeSeconds` more the process group is
//! replaced, at most `maxConcurrentReplacements` at a time. A taint without `timeAdded`, which the Node API sets for
//! NoExecute only, counts from when the operator detected it. The operator acts when it reconciles, so every time here
//! is the earliest; how long a replacement takes is not known and is an assumption of the caller.

use std::fmt;

use tollgate_api::view::{
    FoundationDbCluster, List, ObjectMeta, Replacements, Taint, TaintOption, View as _,
};
use tollgate_document::doc::Value;
use tollgate_formats::gotime::{self, Timestamp};

/// Value of `taintReplacementTimeSeconds` if the FoundationDBCluster does not set it.
const DEFAULT_TAINT_REPLACEMENT_SECONDS: i64 = 1800;
/// Value of `maxConcurrentReplacements` if the FoundationDBCluster does not set it.
const DEFAULT_CONCURRENT_REPLACEMENTS: i64 = 1;
/// Label that names a pod's cluster unless `spec.labels` sets others.
const DEFAULT_CLUSTER_LABEL: &str = "foundationdb.org/fdb-cluster-name";
/// Labels that name a pod's process group, tried after those of `spec.labels`.
const PROCESS_GROUP_LABELS: [&str; 2] = ["foundationdb.org/fdb-process-group-id", "fdb-instance-id"];

/// The FoundationDBCluster, nodes and pods from which [`forecast_foundationdb_replacements`] computes replacements.
#[derive(Clone, Copy, Debug)]
pub struct FoundationDbReplacementInput<'a, 'd> {
    pub cluster: FoundationDbCluster<'d>,
    /// The status of the FoundationDB cluster as recorded by its operator, from the manifest or the cluster
    /// state.
    pub status: Value<'d>,
    /// The Node objects.
    pub nodes: &'a [Value<'d>],
    /// Pod objects, of any cluster.
    pub pods: &'a [Value<'d>],
    /// The time for which the result is computed.
    pub now: Timestamp,
    /// Assumed duration of one replacement in seconds.
    pub replacement_seconds: i64,
}

tollgate_formats::named_enum! {
    /// The condition that the FoundationDB operator sets on a process group whose node is tainted.
    pub enum NodeTaintCondition {
        /// The node is tainted, but not long enough for a replacement.
        Detected = "NodeTaintDetected",
        /// The node has been tainted for longer than the configured duration.
        Replacing = "NodeTaintReplacing",
    }
}

/// A process group whose node has a taint that the cluster acts on.
#[derive(Clone, Debug)]
pub struct TaintedProcessGroup<'d> {
    /// ID of the process group; the name of the pod if it has no such label.
    pub id: &'d str,
    pub pod: &'d str,
    /// Name of the pod's node.
    pub node: &'d str,
    /// The current condition of the process group.
    pub condition: NodeTaintCondition,
    /// The taint that causes the earliest replacement.
    pub taint: Taint<'d>,
    /// The key of the `taintReplacementOptions` entry that applies to the taint, and its duration in seconds.
    pub option: (&'d str, i64),
    /// The time at which the taint was added or, if the node does not state it, detected.
    pub detected: Timestamp,
    /// The time at which the process group is marked for replacement; `None` if never.
    pub replacing: Option<Timestamp>,
    /// The earliest time of the replacement; `None` if never.
    pub replaced: Option<Timestamp>,
    /// True if it has to wait until another replacement is done.
    pub waits: bool,
}

/// The process groups of a FoundationDBCluster that are on tainted nodes, and when the operator replaces them.
#[derive(Clone, Debug, Default)]
pub struct FoundationDbReplacementForecast<'d> {
    /// Process groups on tainted nodes, in the order in which they are replaced.
    pub groups: Vec<TaintedProcessGroup<'d>>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Returns which process groups are on tainted nodes, and when they are replaced.
pub fn forecast_foundationdb_replacements<'d>(
    input: FoundationDbReplacementInput<'_, 'd>,
) -> FoundationDbReplacementForecast<'d> {
    let mut forecast = FoundationDbReplacementForecast::default();
    let [way, ..] = FoundationDbCluster::REPLACEMENT_PATHS;
    let replacements = input.cluster.replacements_at_path(way).unwrap_or(Replacements::of(Value::absent()));
    let options = replacements.taint_replacement_options();
    if options.is_empty() {
        forecast.notes.push("not enabled: taintReplacementOptions is not set".to_owned());
        return forecast;
    }
    for pod in input.pods.iter().filter(|pod| pod_belongs_to_cluster(input.cluster, **pod)) {
        let node_name = pod.get("spec").get("nodeName").str();
        let is_it = |node: &&Value<'d>| node.get("metadata").get("name").str() == node_name;
        let Some(node) = input.nodes.iter().find(is_it) else {
            if !node_name.is_empty() {
                let pod = pod.get("metadata").get("name").str();
                forecast.notes.push(format!("pod {pod}: node {node_name} is not in the cluster state"));
            }
            continue;
        };
        forecast.groups.extend(tainted_process_group(input, options, *pod, *node));
    }
    schedule_replacements(input, replacements, &mut forecast);
    forecast
}

/// True if the labels and namespace of the pod belong to the FoundationDB cluster.
fn pod_belongs_to_cluster(cluster: FoundationDbCluster<'_>, pod: Value<'_>) -> bool {
    let (metadata, own) = (ObjectMeta::of(pod.get("metadata")), cluster.metadata());
    let wanted = cluster.json().get("spec").get("labels").get("matchLabels");
    let has = |key: &str, value: &str| metadata.labels().get(key).str() == value;
    let labelled = if wanted.is_empty() {
        has(DEFAULT_CLUSTER_LABEL, own.name())
    } else {
        wanted.members().all(|(key, value)| has(key.text(), value.str()))
    };
    labelled && namespace_or_default(metadata) == namespace_or_default(own)
}

/// True if both have the same name and namespace.
pub fn has_same_namespace_and_name(one: ObjectMeta<'_>, other: ObjectMeta<'_>) -> bool {
    one.name() == other.name() && namespace_or_default(one) == namespace_or_default(other)
}

/// Returns the namespace of an object; `default` if it names none.
fn namespace_or_default(metadata: ObjectMeta<'_>) -> &str {
    Some(metadata.namespace()).filter(|name| !name.is_empty()).unwrap_or("default")
}

/// Returns the id of the process group that a pod runs, from its labels; the name of the pod if it has no such label, so
/// the result is not empty.
fn process_group_id_or_pod_name<'d>(cluster: FoundationDbCluster<'d>, pod: Value<'d>) -> &'d str {
    let metadata = pod.get("metadata");
    let configured = cluster.json().get("spec").get("labels").get("processGroupIDLabels");
    let names = configured.items().map(Value::str).chain(PROCESS_GROUP_LABELS);
    let mut ids = names.map(|label| metadata.get("labels").get(label).str());
    ids.find(|id| !id.is_empty()).unwrap_or_else(|| metadata.get("name").str())
}

/// Returns the option for a taint key, as (key, seconds): the one with that key, else the one with the key `*`.
fn replacement_option_for_key_or_wildcard<'d>(
    options: List<'d, TaintOption<'d>>,
    key: &str,
) -> Option<(&'d str, i64)> {
    let with = |wanted: &str| {
        let usable = |option: TaintOption<'d>| Some((option.key()?, option.duration_in_seconds()?));
        options.iter().filter_map(usable).find(|(key, seconds)| *key == wanted && *seconds >= 0)
    };
    with(key).or_else(|| with("*"))
}

/// Returns the process group of a pod; `None` if no option applies to a taint of its node. If several apply, the one
/// that replaces it first counts.
fn tainted_process_group<'d>(
    input: FoundationDbReplacementInput<'_, 'd>,
    options: List<'d, TaintOption<'d>>,
    pod: Value<'d>,
    node: Value<'d>,
) -> Option<TaintedProcessGroup<'d>> {
    let taints: List<'d, Taint<'d>> = List::from_json(node.get("spec").get("taints"));
    let node = node.get("metadata").get("name").str();
    let id = process_group_id_or_pod_name(input.cluster, pod);
    // Since when the process group has a condition, by the status of its cluster; now if the status has no time.
    let since = |condition: NodeTaintCondition| {
        let group = process_groups_in_status(input).find(|group| group.get("processGroupID").str() == id)?;
        let mut conditions = group.get("processGroupConditions").items();
        let found = conditions.find(|found| found.get("type").str() == condition.name())?;
        let seconds = found.get("timestamp").int();
        Some(seconds.map_or(input.now, |seconds| Timestamp { seconds, nanos: 0 }))
    };
    // What the operator has recorded in the status is decided.
    let [recorded, marked] = [NodeTaintCondition::Detected, NodeTaintCondition::Replacing].map(since);
    let mut found: Option<TaintedProcessGroup<'d>> = None;
    for taint in taints.iter() {
        let Some(option) = replacement_option_for_key_or_wildcard(options, taint.key()) else { continue };
        let detected = taint.time_added().or(recorded).or(marked).unwrap_or(input.now).min(input.now);
        let replacing = add_seconds(detected, option.1);
        let sooner =
            |known: &TaintedProcessGroup<'_>| is_later_with_none_as_never(known.replacing, replacing);
        let since = found.as_ref().map_or(detected, |known| known.detected.min(detected));
        if found.as_ref().is_none_or(sooner) {
            found = Some(TaintedProcessGroup {
                id,
                pod: pod.get("metadata").get("name").str(),
                node,
                condition: NodeTaintCondition::Detected,
                taint,
                option,
                detected,
                replacing,
                replaced: None,
                waits: false,
            });
        }
        if let Some(found) = &mut found {
            found.detected = since;
        }
    }
    let mut found = found?;
    found.replacing = marked.or(found.replacing);
    if found.replacing.is_some_and(|at| at <= input.now) {
        found.condition = NodeTaintCondition::Replacing;
    }
    Some(found)
}

/// Returns the process groups in the status of the cluster.
fn process_groups_in_status<'d>(
    input: FoundationDbReplacementInput<'_, 'd>,
) -> impl Iterator<Item = Value<'d>> {
    input.status.get("processGroups").items()
}

/// Adds seconds to a time; `None`, for never, if the result is out of range.
fn add_seconds(time: Timestamp, seconds: i64) -> Option<Timestamp> {
    time.seconds.checked_add(seconds).map(|seconds| Timestamp { seconds, ..time })
}

/// True if the first time is after the second; `None` is never, and later than every time.
fn is_later_with_none_as_never(one: Option<Timestamp>, other: Option<Timestamp>) -> bool {
    other.is_some_and(|other| one.is_none_or(|one| one > other))
}

/// Sorts the groups by when they are marked and sets when each is replaced, at most as many at a time as the cluster
/// allows.
fn schedule_replacements(
    input: FoundationDbReplacementInput<'_, '_>,
    replacements: Replacements<'_>,
    forecast: &mut FoundationDbReplacementForecast<'_>,
) {
    forecast.groups.sort_by(|one, other| {
        let key = |group: &TaintedProcessGroup<'_>| (group.replacing.is_none(), group.replacing);
        key(one).cmp(&key(other)).then_with(|| one.id.cmp(other.id))
    });
    if replacements.enabled() != Some(true) {
        let note = "automatic replacements are off: process groups are marked, but they are replaced only with `enabled: true`";
        return forecast.notes.push(note.to_owned());
    }
    let max_concurrent =
        replacements.max_concurrent_replacements().unwrap_or(DEFAULT_CONCURRENT_REPLACEMENTS);
    let Ok(max_concurrent @ 1..) = usize::try_from(max_concurrent) else {
        let note = format!("maxConcurrentReplacements is {max_concurrent}, so nothing is replaced");
        return forecast.notes.push(note);
    };
    let rest =
        replacements.taint_replacement_time_seconds().unwrap_or(DEFAULT_TAINT_REPLACEMENT_SECONDS).max(0);
    // Replacements in progress count against the limit; their duration is assumed like that of the others.
    let is_under_way = |group: &Value<'_>| {
        !group.get("removalTimestamp").is_null_or_absent()
            && group.get("exclusionTimestamp").is_null_or_absent()
    };
    let under_way: Vec<&str> = process_groups_in_status(input)
        .filter(is_under_way)
        .map(|group| group.get("processGroupID").str())
        .collect();
    let replacement_seconds = input.replacement_seconds.max(0);
    let mut free: Vec<Option<Timestamp>> =
        vec![add_seconds(input.now, replacement_seconds); under_way.len().min(max_concurrent)];
    free.resize(max_concurrent, None);
    for group in &mut forecast.groups {
        let Some(due) = group.replacing.and_then(|at| add_seconds(at, rest)).map(|due| due.max(input.now))
        else {
            continue;
        };
        if under_way.contains(&group.id) {
            group.replaced = Some(input.now);
            continue;
        }
        // The slot that becomes free first; an unused one is free immediately.
        let Some(slot) = free.iter_mut().min_by_key(|slot| **slot) else { continue };
        let start = slot.map_or(due, |slot| slot.max(due));
        group.waits = slot.is_some_and(|slot| slot >= due);
        group.replaced = Some(start);
        *slot = add_seconds(start, replacement_seconds);
    }
    if forecast.groups.iter().any(|group| group.waits) && replacement_seconds == 0 {
        forecast.notes.push(format!(
            "at most {max_concurrent} at a time; the others wait until earlier replacements are done, which this forecast \
             assumes to happen immediately"
        ));
    }
}

impl fmt::Display for TaintedProcessGroup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, seconds) = self.option;
        let by = if key == "*" { "`*`" } else { "its key" };
        let (taint, node, time) = (self.taint.key(), self.node, gotime::rfc3339(self.detected));
        write!(f, "taint {taint} on node {node} since {time}")?;
        if self.taint.time_added().is_none() {
            f.write_str(" (when it was detected, because it has no timeAdded)")?;
        }
        write!(f, "; {seconds}s configured for {by}")
    }
}
