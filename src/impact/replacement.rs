//! When processes of a FoundationDB cluster are replaced because their nodes are tainted. Pure.
//!
//! From the operator's design "Tainted Node Eviction": a taint that has been on a node for `durationInSeconds` turns
//! NodeTaintDetected into NodeTaintReplacing, and after `taintReplacementTimeSeconds` more the process group is
//! replaced, at most `maxConcurrentReplacements` at a time. The operator acts when it reconciles, so every time here
//! is the earliest; how long a replacement takes is not known and has to be assumed by whoever asks.

use std::fmt;

use crate::api::view::{FoundationDbCluster, List, ObjectMeta, Replacements, Taint, TaintOption, View as _};
use crate::doc::Value;
use crate::gotime::{self, Timestamp};

/// `taintReplacementTimeSeconds` where the cluster does not say.
const REPLACEMENT_TIME: i64 = 1800;
/// `maxConcurrentReplacements` where the cluster does not say.
const CONCURRENT: i64 = 1;
/// How a pod says to which cluster it belongs, and which process group it is, unless `spec.labels` says otherwise.
const CLUSTER_LABEL: &str = "foundationdb.org/fdb-cluster-name";
const GROUP_LABELS: [&str; 2] = ["foundationdb.org/fdb-process-group-id", "fdb-instance-id"];

/// What is known.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a, 'd> {
    /// The cluster.
    pub cluster: FoundationDbCluster<'d>,
    /// Node objects.
    pub nodes: &'a [Value<'d>],
    /// Pod objects, of any cluster.
    pub pods: &'a [Value<'d>],
    /// The present moment.
    pub now: Timestamp,
    /// Seconds that one replacement is assumed to take.
    pub takes: i64,
}

/// What the operator says of a process group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Its node is tainted, but not long enough to replace it.
    NodeTaintDetected,
    /// Its node has been tainted for longer than configured.
    NodeTaintReplacing,
}

impl Condition {
    /// `NodeTaintDetected`
    pub fn name(self) -> &'static str {
        match self {
            Condition::NodeTaintDetected => "NodeTaintDetected",
            Condition::NodeTaintReplacing => "NodeTaintReplacing",
        }
    }
}

/// A process group whose node has a taint that the cluster acts on.
#[derive(Clone, Debug)]
pub struct ProcessGroup<'d> {
    /// Its id; the name of the pod if that has no label.
    pub id: &'d str,
    /// Its pod.
    pub pod: &'d str,
    /// The node of the pod.
    pub node: &'d str,
    /// What the operator says of it now.
    pub condition: Condition,
    /// The taint that is first to have it replaced.
    pub taint: Taint<'d>,
    /// The key of the option that holds for the taint, and its duration.
    pub option: (&'d str, i64),
    /// Since when a taint is there.
    pub detected: Timestamp,
    /// When it is marked for replacement; `None` for never.
    pub replacing: Option<Timestamp>,
    /// When it is replaced at the earliest; `None` for never.
    pub replaced: Option<Timestamp>,
    /// It has to wait until another replacement is done.
    pub waits: bool,
}

/// The answer.
#[derive(Clone, Debug, Default)]
pub struct Forecast<'d> {
    /// Process groups on tainted nodes, in the order in which they are replaced.
    pub groups: Vec<ProcessGroup<'d>>,
    /// What to know besides.
    pub notes: Vec<String>,
}

/// Which process groups are on tainted nodes, and when they are replaced.
pub fn foresee<'d>(situation: Situation<'_, 'd>) -> Forecast<'d> {
    let mut forecast = Forecast::default();
    let [way, ..] = FoundationDbCluster::WAYS;
    let replacements = situation.cluster.replacements(way).unwrap_or(Replacements::of(Value::absent()));
    let options = replacements.taint_replacement_options();
    if options.is_empty() {
        forecast.notes.push("the feature is off: there are no taintReplacementOptions".to_owned());
        return forecast;
    }
    for pod in situation.pods.iter().filter(|pod| belongs(situation.cluster, **pod)) {
        let node_name = pod.get("spec").get("nodeName").str();
        let is_it = |node: &&Value<'d>| node.get("metadata").get("name").str() == node_name;
        let Some(node) = situation.nodes.iter().find(is_it) else {
            if !node_name.is_empty() {
                let pod = pod.get("metadata").get("name").str();
                forecast.notes.push(format!("pod {pod}: node {node_name} is not known"));
            }
            continue;
        };
        forecast.groups.extend(group(situation, options, *pod, *node, &mut forecast.notes));
    }
    schedule(situation, replacements, &mut forecast);
    forecast
}

/// True if the pod is one of the cluster's.
fn belongs(cluster: FoundationDbCluster<'_>, pod: Value<'_>) -> bool {
    let (metadata, own) = (ObjectMeta::of(pod.get("metadata")), cluster.metadata());
    let wanted = cluster.value().get("spec").get("labels").get("matchLabels");
    let has = |key: &str, value: &str| metadata.labels().get(key).str() == value;
    let labelled = if wanted.is_empty() {
        has(CLUSTER_LABEL, own.name())
    } else {
        wanted.members().all(|(key, value)| has(key.text(), value.str()))
    };
    labelled && namespace_of(metadata) == namespace_of(own)
}

fn namespace_of(metadata: ObjectMeta<'_>) -> &str {
    Some(metadata.namespace()).filter(|name| !name.is_empty()).unwrap_or("default")
}

fn id<'d>(cluster: FoundationDbCluster<'d>, pod: Value<'d>) -> &'d str {
    let metadata = pod.get("metadata");
    let configured = cluster.value().get("spec").get("labels").get("processGroupIDLabels");
    let names = configured.items().map(Value::str).chain(GROUP_LABELS);
    let mut ids = names.map(|label| metadata.get("labels").get(label).str());
    ids.find(|id| !id.is_empty()).unwrap_or_else(|| metadata.get("name").str())
}

/// The option for a taint: its own key goes before the wildcard, whatever their order.
fn option_for<'d>(options: List<'d, TaintOption<'d>>, key: &str) -> Option<(&'d str, i64)> {
    let with = |wanted: &str| {
        let usable = |option: TaintOption<'d>| Some((option.key()?, option.duration_in_seconds()?));
        options.iter().filter_map(usable).find(|(key, seconds)| *key == wanted && *seconds >= 0)
    };
    with(key).or_else(|| with("*"))
}

fn group<'d>(
    situation: Situation<'_, 'd>,
    options: List<'d, TaintOption<'d>>,
    pod: Value<'d>,
    node: Value<'d>,
    notes: &mut Vec<String>,
) -> Option<ProcessGroup<'d>> {
    let taints: List<'d, Taint<'d>> = List::of(node.get("spec").get("taints"));
    let node = node.get("metadata").get("name").str();
    let mut found: Option<ProcessGroup<'d>> = None;
    for taint in taints.iter() {
        let Some(option) = option_for(options, taint.key()) else { continue };
        let Some(added) = taint.time_added() else {
            notes.push(format!("node {node}: taint {} has no timeAdded and is passed over", taint.key()));
            continue;
        };
        let detected = added.min(situation.now);
        let replacing = after(detected, option.1);
        let sooner = |known: &ProcessGroup<'_>| later(known.replacing, replacing);
        let since = found.as_ref().map_or(detected, |known| known.detected.min(detected));
        if found.as_ref().is_none_or(sooner) {
            found = Some(ProcessGroup {
                id: id(situation.cluster, pod),
                pod: pod.get("metadata").get("name").str(),
                node,
                condition: Condition::NodeTaintDetected,
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
    // What the operator has written down is done, and cannot be stopped.
    found.replacing = marked(situation.cluster, found.id).or(found.replacing);
    if found.replacing.is_some_and(|at| at <= situation.now) {
        found.condition = Condition::NodeTaintReplacing;
    }
    Some(found)
}

/// When the operator marked a process group, by the status of its cluster.
fn marked(cluster: FoundationDbCluster<'_>, id: &str) -> Option<Timestamp> {
    let group = status_of(cluster).find(|group| group.get("processGroupID").str() == id)?;
    let mut conditions = group.get("processGroupConditions").items();
    let condition = conditions.find(|condition| condition.get("type").str() == "NodeTaintReplacing")?;
    condition.get("timestamp").int().map(|seconds| Timestamp { seconds, nanos: 0 })
}

fn status_of(cluster: FoundationDbCluster<'_>) -> impl Iterator<Item = Value<'_>> {
    cluster.value().get("status").get("processGroups").items()
}

/// `None` is never.
fn after(time: Timestamp, seconds: i64) -> Option<Timestamp> {
    time.seconds.checked_add(seconds).map(|seconds| Timestamp { seconds, ..time })
}

/// True if the first comes after the second; never comes last.
fn later(one: Option<Timestamp>, other: Option<Timestamp>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one > other,
        (None, other) => other.is_some(),
        (Some(_), None) => false,
    }
}

/// Puts the groups in order and gives each its time: there is room for so many at once.
fn schedule(situation: Situation<'_, '_>, replacements: Replacements<'_>, forecast: &mut Forecast<'_>) {
    forecast.groups.sort_by(|one, other| {
        let key = |group: &ProcessGroup<'_>| (group.replacing.is_none(), group.replacing);
        key(one).cmp(&key(other)).then_with(|| one.id.cmp(other.id))
    });
    if replacements.enabled() != Some(true) {
        let note = "automatic replacements are off: process groups are marked and not replaced unless `enabled: true`";
        return forecast.notes.push(note.to_owned());
    }
    let room = replacements.max_concurrent_replacements().unwrap_or(CONCURRENT);
    let Ok(room @ 1..) = usize::try_from(room) else {
        let note = format!("maxConcurrentReplacements is {room}: nothing is replaced");
        return forecast.notes.push(note);
    };
    let rest = replacements.taint_replacement_time_seconds().unwrap_or(REPLACEMENT_TIME).max(0);
    // Replacements under way take up room; when they end is as unknown as it is for the others.
    let is_under_way = |group: &Value<'_>| {
        !group.get("removalTimestamp").is_null() && group.get("exclusionTimestamp").is_null()
    };
    let under_way: Vec<&str> = status_of(situation.cluster)
        .filter(is_under_way)
        .map(|group| group.get("processGroupID").str())
        .collect();
    let takes = situation.takes.max(0);
    let mut free: Vec<Option<Timestamp>> = vec![after(situation.now, takes); under_way.len().min(room)];
    free.resize(room, None);
    for group in &mut forecast.groups {
        let Some(due) = group.replacing.and_then(|at| after(at, rest)).map(|due| due.max(situation.now))
        else {
            continue;
        };
        if under_way.contains(&group.id) {
            group.replaced = Some(situation.now);
            continue;
        }
        // The place that is free first; one that was never taken is free at once.
        let Some(place) = free.iter_mut().min_by_key(|place| **place) else { continue };
        let start = place.map_or(due, |place| place.max(due));
        group.waits = place.is_some_and(|place| place >= due);
        group.replaced = Some(start);
        *place = after(start, takes);
    }
    if forecast.groups.iter().any(|group| group.waits) && takes == 0 {
        forecast.notes.push(format!(
            "at most {room} at a time: those that wait are replaced when the ones before them are done, which is \
             taken to be at once"
        ));
    }
}

impl fmt::Display for ProcessGroup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, seconds) = self.option;
        let by = if key == "*" { "the wildcard" } else { "its own key" };
        write!(
            f,
            "taint {} on node {} since {}, {seconds} s by {by}",
            self.taint.key(),
            self.node,
            gotime::rfc3339(self.detected)
        )
    }
}
