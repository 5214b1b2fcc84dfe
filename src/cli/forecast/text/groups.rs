//! `--by`: one row per namespace, workload or node instead of one per pod.

use std::collections::BTreeMap;

use crate::cli::impact::GroupBy;
use crate::cli::table;
use tollgate_forecast::{Forecast, PodForecast, PodOutcome};

/// The table of the groups; empty if there are no pods.
pub(super) fn group_table(forecast: &Forecast, by: GroupBy) -> String {
    if forecast.pods.is_empty() {
        return String::new();
    }
    let table = match by {
        GroupBy::Namespace => outcome_table("NAMESPACE", forecast, |pod| pod.namespace.clone()),
        GroupBy::Workload => outcome_table("WORKLOAD", forecast, workload_or_pod_name),
        GroupBy::Node if forecast.pods.iter().all(|pod| pod.placements.is_empty()) => {
            "No pod is assigned to a node.\n".to_owned()
        }
        GroupBy::Node => average_pods_per_node_table(forecast),
    };
    format!("\n{table}")
}

fn workload_or_pod_name(pod: &PodForecast) -> String {
    match &pod.workload {
        Some(workload) => format!("{} {}/{}", workload.kind, pod.namespace, workload.name),
        None => format!("Pod {}", super::pod_or_replaced_pod_name(pod)),
    }
}

/// A row for each group with the numbers of pods by outcome.
fn outcome_table(title: &str, forecast: &Forecast, group: impl Fn(&PodForecast) -> String) -> String {
    const COLUMNS: [(PodOutcome, &str); 5] = [
        (PodOutcome::Fits, "FITS"),
        (PodOutcome::Sometimes, "SOMETIMES"),
        (PodOutcome::Pending, "PENDING"),
        (PodOutcome::Unknown, "UNKNOWN"),
        (PodOutcome::NotRecreated, "NOT RECREATED"),
    ];
    let mut groups: BTreeMap<String, Vec<PodOutcome>> = BTreeMap::new();
    for pod in &forecast.pods {
        groups.entry(group(pod)).or_default().push(pod.outcome);
    }
    let header: Vec<&str> = [title, "PODS"].into_iter().chain(COLUMNS.map(|(_, name)| name)).collect();
    let row = |(name, outcomes): (String, Vec<PodOutcome>)| {
        let count = |wanted: PodOutcome| outcomes.iter().filter(|outcome| **outcome == wanted).count();
        let counts = COLUMNS.map(|(outcome, _)| count(outcome));
        let numbers = [outcomes.len()].into_iter().chain(counts).map(|count| count.to_string());
        [name].into_iter().chain(numbers).collect()
    };
    let rows: Vec<Vec<String>> = groups.into_iter().map(row).collect();
    table::format_table(&header, &rows)
}

/// A row for each node with the number of pods that go there, on average over all courses. Placements beyond those that
/// a forecast lists are not in it.
fn average_pods_per_node_table(forecast: &Forecast) -> String {
    let mut courses: BTreeMap<&str, u64> = BTreeMap::new();
    for placement in forecast.pods.iter().flat_map(|pod| &pod.placements) {
        *courses.entry(placement.place.node.as_str()).or_default() += u64::from(placement.courses);
    }
    let samples = u64::from(forecast.samples.max(1));
    let row = |(node, courses): (&str, u64)| {
        let tenths = (courses * 10 + samples / 2) / samples;
        let average = match (tenths / 10, tenths % 10) {
            (whole, 0) => whole.to_string(),
            (whole, tenths) => format!("{whole}.{tenths}"),
        };
        vec![node.to_owned(), average]
    };
    let rows: Vec<Vec<String>> = courses.into_iter().map(row).collect();
    table::format_table(&["NODE", "PODS (AVERAGE)"], &rows)
}
