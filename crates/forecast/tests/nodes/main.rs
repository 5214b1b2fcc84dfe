//! Filters, scores and messages against those that the scheduler's own plugins gave for the same random clusters.
//!
//! `cases.jsonl.gz` has one case in each line: the objects, and what Kubernetes 1.36.4 and 1.37.0-rc.1 said with the
//! plugins of the default profile, but for those for devices and volumes. Pods and nodes had the API server's
//! defaults.

use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::io::Read as _;
use tollgate_allocator::{AllocatorSemantics, condition};
use tollgate_document::doc::{Value, parse};
use tollgate_forecast::nodes::{
    Diagnosis, NodeFitCache, NodeIndex, Nodes, Occupancy, PodCatalog, PodSource, SchedulingCycle,
};

const CASES: &[u8] = include_bytes!("cases.jsonl.gz");

#[test]
fn nodes_are_filtered_and_scored_as_by_the_scheduler() {
    let mut text = String::new();
    GzDecoder::new(CASES).read_to_string(&mut text).expect("the cases are compressed text");
    let (mut cases, mut differences) = (0, Vec::new());
    for line in text.lines() {
        let case = parse(line).expect("each line is JSON");
        let case = case.root();
        let (newer, older) = (case.get("1.37"), case.get("1.36"));
        // Where the older release said the same, it is written once.
        let older = if older.exists() { older } else { newer };
        for (release, semantics, result) in
            [("1.36", AllocatorSemantics::V1_36, older), ("1.37", AllocatorSemantics::V1_37_0, newer)]
        {
            let (expected, found) = (expectation(result), outcome(case, semantics));
            cases += 1;
            if expected != found {
                let id = case.get("id").str();
                differences.push(format!("{id} {release}\n  expected {expected:?}\n  found    {found:?}"));
            }
        }
    }
    assert!(cases > 500, "only {cases} cases");
    let count = differences.len();
    differences.truncate(10);
    assert!(count == 0, "{count} of {cases} cases differ:\n{}", differences.join("\n"));
}

/// The compared results, by node name.
#[derive(PartialEq, Eq, Default, Debug)]
struct Outcome {
    /// The reasons, sorted, and whether preemption could help.
    rejected: BTreeMap<String, (Vec<String>, bool)>,
    scores: BTreeMap<String, i64>,
    /// The message for a pod that fits on no node.
    message: String,
}

fn expectation(result: Value<'_>) -> Outcome {
    let rejected = result.get("rejected").members().map(|(node, status)| {
        let reasons = status.get("reasons").items().map(|reason| reason.str().to_owned()).collect();
        (node.text().to_owned(), (reasons, status.get("resolvable").bool() == Some(true)))
    });
    let scores = result.get("scores").members();
    Outcome {
        rejected: rejected.collect(),
        scores: scores.map(|(node, score)| (node.text().to_owned(), score.int().unwrap_or(-1))).collect(),
        message: result.get("message").str().to_owned(),
    }
}

fn outcome(case: Value<'_>, semantics: AllocatorSemantics) -> Outcome {
    let mut catalog = PodCatalog::new(semantics, case.get("namespaces").items());
    let bound: Vec<_> = case
        .get("pods")
        .items()
        .map(|pod| (catalog.add_pod(&PodSource::from_object(pod)), pod.get("spec").get("nodeName").str()))
        .collect();
    let selector = case.get("replicaSets").items().next().map(|set| set.get("spec").get("selector"));
    let source = PodSource { controller_selector: selector, ..PodSource::from_object(case.get("pod")) };
    let pod = catalog.add_pod(&source);
    let nodes: Vec<_> = case.get("nodes").items().map(|node| catalog.read_node(node)).collect();
    let nodes = Nodes::new(nodes);
    let mut occupancy = Occupancy::new(&catalog, &nodes);
    for (pod, node) in bound {
        if let Some(node) = nodes.find(node) {
            occupancy.add_pod(node, pod);
        }
    }
    let fits = NodeFitCache::new(&catalog, &nodes);
    let delegated = catalog.resources_delegated_to_devices([]);
    let cycle = match SchedulingCycle::start(&occupancy, &fits, &delegated, pod) {
        Ok(cycle) => cycle,
        Err(text) => {
            let message = format!("0/{} nodes are available: {text}.", nodes.len());
            return Outcome { message, ..Outcome::default() };
        }
    };
    let mut outcome = Outcome::default();
    let mut diagnosis = Diagnosis::default();
    let mut feasible: Vec<NodeIndex> = Vec::new();
    let name = |node: NodeIndex| nodes.get(node).node.name.to_owned();
    for node in cycle.candidates(3) {
        match cycle.check_node_without_devices(node) {
            Ok(()) => feasible.push(node),
            Err(rejection) => {
                diagnosis.add(node, &rejection);
                let texts = rejection
                    .reasons
                    .as_slice()
                    .iter()
                    .map(|reason| reason.scheduler_message(&catalog).into_owned());
                let mut texts: Vec<String> = texts.collect();
                texts.sort();
                outcome.rejected.insert(name(node), (texts, rejection.resolvable));
            }
        }
    }
    if feasible.is_empty() {
        let texts = diagnosis.message_counts(&catalog, cycle.excluded_nodes_message());
        let post_filter = condition::PostFilterResult::NothingChanged;
        outcome.message =
            condition::unschedulable_message(&AllocatorSemantics::V1_37, nodes.len(), &texts, post_filter);
    }
    let scores = cycle.total_scores(&feasible, None);
    outcome.scores = feasible.into_iter().map(name).zip(scores).collect();
    outcome
}
