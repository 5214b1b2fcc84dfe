//! Text output: the summary first, then where each pod goes, why pods stay Pending, what is not modelled, and totals.
//! `--by` replaces the rows of pods by one row per namespace, workload or node.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::ForecastReport;
use crate::cli::impact::GroupBy;
use crate::cli::table;
use tollgate_forecast::{Forecast, PlacementWithRunCount, PodForecast, PodOrigin, PodOutcome};
use tollgate_formats::count::count_with_noun;
use tollgate_formats::gotime;
use tollgate_formats::sanitize::sanitize_as_line;

/// Maximum number of placements that the table shows for a pod.
const MAX_SHOWN_PLACEMENTS: usize = 2;

/// Maximum number of pods that are named for one cause.
const MAX_NAMED_PODS: usize = 5;

/// The text report of a forecast; lists at most `limit` pods, all for 0.
pub(super) fn forecast_text(report: &ForecastReport, limit: usize, by: Option<GroupBy>) -> String {
    let ForecastReport { profile, at, forecast, .. } = report;
    let mut out = String::new();
    let (courses, time) = (count_with_noun(forecast.samples as usize, "course"), gotime::rfc3339(*at));
    _ = writeln!(out, "Forecast ({}, at {time}, {courses})", profile.name);
    _ = writeln!(out, "{}", evictions_line(forecast, *at));
    for origin in [PodOrigin::Replacement, PodOrigin::Given, PodOrigin::Waiting] {
        out.push_str(&summary_line(forecast, origin));
    }
    match by {
        Some(by) => out.push_str(&group_table(forecast, by)),
        None => out.push_str(&pod_tables(forecast, limit)),
    }
    out.push_str(&pending_or_not_recreated_causes_section(forecast));
    out.push_str(&unknown_section(forecast));
    _ = writeln!(out, "\n{}", totals_line(forecast));
    out
}

/// Returns the line about evictions: `8 pods evicted: 6 now, 2 later (the last at …)`.
fn evictions_line(forecast: &Forecast, at: gotime::Timestamp) -> String {
    let evicted = forecast.evicted.len();
    let mut out = format!("{} evicted", count_with_noun(evicted, "pod"));
    let later = forecast.evicted.iter().filter(|pod| pod.at > at).count();
    if let Some(last) = forecast.evicted.iter().map(|pod| pod.at).max().filter(|_| later > 0) {
        let now = evicted - later;
        _ = write!(out, ": {now} now, {later} later (the last at {})", gotime::rfc3339(last));
    }
    out
}

/// Returns a table of pods for each origin (replacements, given, waiting), with at most `limit` pods in all; 0
/// means no limit.
fn pod_tables(forecast: &Forecast, limit: usize) -> String {
    let mut out = String::new();
    let mut left = if limit == 0 { usize::MAX } else { limit };
    for (origin, title, column) in [
        (PodOrigin::Replacement, "Replacements of evicted pods", "REPLACES"),
        (PodOrigin::Given, "Pods of the given objects", "POD"),
        (PodOrigin::Waiting, "Pods that already wait", "POD"),
    ] {
        let pods: Vec<&PodForecast> = forecast.pods.iter().filter(|pod| pod.origin == origin).collect();
        let rows: Vec<Vec<String>> =
            pods.iter().take(left).map(|pod| pod_row(pod, forecast.samples)).collect();
        left -= rows.len();
        if !rows.is_empty() {
            let header = [column, "WORKLOAD", "OUTCOME", "NODE: DEVICES"];
            _ = write!(out, "\n{title}:\n{}", table::format_table(&header, &rows));
        }
        if pods.len() > rows.len() {
            let more = pods.len() - rows.len();
            let dots = if rows.is_empty() { format!("\n{title}: ") } else { "… and ".to_owned() };
            _ = writeln!(out, "{dots}{more} more; --limit 0 lists them all");
        }
    }
    out
}

fn pod_row(pod: &PodForecast, samples: u32) -> Vec<String> {
    let workload = pod.workload.as_ref();
    vec![
        pod_or_replaced_pod_name(pod),
        workload.map_or_else(|| "-".to_owned(), |workload| format!("{}/{}", workload.kind, workload.name)),
        outcome_text(pod, samples),
        placements_text(pod, samples),
    ]
}

/// Returns the name of a pod; for a replacement, the name of the pod that it replaces.
fn pod_or_replaced_pod_name(pod: &PodForecast) -> String {
    let name = pod.replaces.as_ref().or(pod.name.as_ref());
    format!("{}/{}", pod.namespace, name.map_or("(new)", String::as_str))
}

fn outcome_text(pod: &PodForecast, samples: u32) -> String {
    let outcome = match pod.outcome {
        PodOutcome::Sometimes => format!("fits in {} of {samples}", pod.fits),
        PodOutcome::NotRecreated => "not recreated".to_owned(),
        PodOutcome::Pending if pod.not_recreated > 0 => {
            format!("pending, not recreated in {} of {samples}", pod.not_recreated)
        }
        PodOutcome::Fits | PodOutcome::Pending | PodOutcome::Unknown => pod.outcome.name().to_owned(),
    };
    if pod.evicted_again { format!("{outcome}, evicted again") } else { outcome }
}

/// Returns the most frequent placements as text, each with its number of courses unless all courses agree.
fn placements_text(pod: &PodForecast, samples: u32) -> String {
    let is_certain = matches!(pod.placements.as_slice(), [only] if only.courses == samples);
    let shown = pod.placements.iter().take(MAX_SHOWN_PLACEMENTS).map(|placement| {
        let devices = devices_text(placement);
        let colon = if devices.is_empty() { "" } else { ": " };
        let node = &placement.place.node;
        let courses = if is_certain { String::new() } else { format!(" ({})", placement.courses) };
        format!("{node}{colon}{devices}{courses}")
    });
    let mut parts: Vec<String> = shown.collect();
    let more = pod.placements.len().saturating_sub(MAX_SHOWN_PLACEMENTS) + pod.placements_omitted;
    if more > 0 {
        parts.push(format!("and {more} more"));
    }
    if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }
}

/// Returns the devices of a placement as text. Omits the pool if it has the name of the node, as most pools do.
fn devices_text(placement: &PlacementWithRunCount) -> String {
    let devices = placement.place.claims.iter().flat_map(|claim| &claim.devices);
    let name = |pool: &str, device: &str| {
        if pool == placement.place.node { device.to_owned() } else { format!("{pool}/{device}") }
    };
    let names: Vec<String> = devices.map(|device| name(&device.pool, &device.device)).collect();
    names.join(" ")
}

/// Returns why pods stay Pending or are not created: each cause with its pods.
fn pending_or_not_recreated_causes_section(forecast: &Forecast) -> String {
    let mut causes: BTreeMap<[Option<&str>; 3], Vec<&PodForecast>> = BTreeMap::new();
    let pending = |pod: &&PodForecast| {
        matches!(pod.outcome, PodOutcome::Pending | PodOutcome::Sometimes | PodOutcome::NotRecreated)
            && (pod.message.is_some() || pod.explanation.is_some())
    };
    for pod in forecast.pods.iter().filter(pending) {
        let cause = [pod.message.as_deref(), pod.explanation.as_deref(), pod.reason.as_deref()];
        causes.entry(cause).or_default().push(pod);
    }
    let mut out = String::new();
    for ([message, explanation, reason], pods) in causes {
        let names = first_pod_names_and_number_of_others(&pods);
        let is_always = pods.iter().all(|pod| pod.outcome == PodOutcome::Pending);
        let is_made = pods.iter().any(|pod| pod.outcome != PodOutcome::NotRecreated);
        let verb = match (pods.len(), is_always) {
            (1, _) if !is_made => "is not recreated",
            _ if !is_made => "are not recreated",
            (1, true) => "stays Pending",
            (_, true) => "stay Pending",
            (1, false) => "stays Pending in some courses",
            (_, false) => "stay Pending in some courses",
        };
        _ = writeln!(out, "\n{} {verb}: {names}", count_with_noun(pods.len(), "pod"));
        if let Some(message) = message {
            let reason = reason.map_or(String::new(), |reason| format!(" ({})", sanitize_as_line(reason)));
            _ = writeln!(out, "  the scheduler says{reason}: {}", sanitize_as_line(message));
        }
        if let Some(explanation) = explanation {
            _ = writeln!(out, "  {}", sanitize_as_line(explanation));
        }
    }
    out
}

/// Returns what the forecast does not model, each with the pods that use it and whose outcome is therefore unknown.
fn unknown_section(forecast: &Forecast) -> String {
    let mut causes: BTreeMap<&str, Vec<&PodForecast>> = BTreeMap::new();
    for pod in &forecast.pods {
        for what in &pod.not_modelled {
            causes.entry(what.as_str()).or_default().push(pod);
        }
    }
    let mut out = String::new();
    for (what, pods) in causes {
        let (count, names) = (pods.len(), first_pod_names_and_number_of_others(&pods));
        let verb = if count == 1 { "has" } else { "have" };
        _ = writeln!(
            out,
            "\n{} {verb} an unknown outcome: {names}\n  not modelled: {}",
            count_with_noun(count, "pod"),
            sanitize_as_line(what)
        );
    }
    out
}

/// Returns the names of the first pods, and the number of others: `app/a, app/b and 3 more`.
fn first_pod_names_and_number_of_others(pods: &[&PodForecast]) -> String {
    let mut names: Vec<String> =
        pods.iter().take(MAX_NAMED_PODS).map(|pod| pod_or_replaced_pod_name(pod)).collect();
    if pods.len() > MAX_NAMED_PODS {
        names.push(format!("and {} more", pods.len() - MAX_NAMED_PODS));
    }
    sanitize_as_line(&names.join(", ")).into_owned()
}

/// Returns the totals by outcome: `total: 6 fit, 0 sometimes, 2 pending, 0 unknown, 0 not recreated`.
fn totals_line(forecast: &Forecast) -> String {
    let totals = forecast.totals;
    let mut out = format!(
        "total: {} fit, {} sometimes, {} pending, {} unknown, {} not recreated",
        totals.fits, totals.sometimes, totals.pending, totals.unknown, totals.not_recreated
    );
    if totals.sometimes > 0 || forecast.most_pending < totals.pending {
        _ = write!(out, "; at most {} pending in one course", forecast.most_pending);
    }
    out
}

/// Returns the outcomes of the evicted pods in one sentence: `of 8 evicted pods 6 fit elsewhere, 2 stay Pending`;
/// `None` if no pod is evicted.
pub(in crate::cli) fn summary_of_evicted(forecast: &Forecast) -> Option<String> {
    summary_sentence(forecast, PodOrigin::Replacement)
}

/// The sentence about the pods of one origin, with a line break; empty if there are none.
fn summary_line(forecast: &Forecast, origin: PodOrigin) -> String {
    summary_sentence(forecast, origin).map(|sentence| sentence + "\n").unwrap_or_default()
}

fn summary_sentence(forecast: &Forecast, origin: PodOrigin) -> Option<String> {
    let (what, place) = match origin {
        PodOrigin::Replacement => ("evicted", " elsewhere"),
        PodOrigin::Given => ("given", ""),
        PodOrigin::Waiting => ("waiting", ""),
    };
    // A Job that fails deletes pods that are not evicted.
    let evicted: BTreeSet<(&str, &str)> =
        forecast.evicted.iter().map(|pod| (pod.namespace.as_str(), pod.name.as_str())).collect();
    let is_counted = |pod: &&PodForecast| {
        let replaced = pod.replaces.as_deref();
        pod.origin == origin
            && replaced.is_none_or(|replaced| evicted.contains(&(pod.namespace.as_str(), replaced)))
    };
    let total = forecast.pods.iter().filter(is_counted).count();
    if total == 0 {
        return None;
    }
    // A pod that fits on devices from which it is evicted again has no place.
    let is_evicted_again = |pod: &PodForecast| pod.outcome == PodOutcome::Fits && pod.evicted_again;
    let count = |outcome: PodOutcome| {
        let pods = forecast.pods.iter().filter(is_counted);
        pods.filter(|pod| pod.outcome == outcome && !is_evicted_again(pod)).count()
    };
    let evicted_again = forecast.pods.iter().filter(is_counted).filter(|pod| is_evicted_again(pod)).count();
    let parts = [
        (count(PodOutcome::Fits), format!("fits{place}"), format!("fit{place}")),
        (evicted_again, "is evicted again and again".to_owned(), "are evicted again and again".to_owned()),
        (
            count(PodOutcome::Sometimes),
            format!("fits{place} in some courses"),
            format!("fit{place} in some courses"),
        ),
        (count(PodOutcome::Pending), "stays Pending".to_owned(), "stay Pending".to_owned()),
        (
            count(PodOutcome::Unknown),
            "has an unknown outcome".to_owned(),
            "have an unknown outcome".to_owned(),
        ),
        (count(PodOutcome::NotRecreated), "is not recreated".to_owned(), "are not recreated".to_owned()),
    ];
    let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
    let parts =
        parts.map(|(count, one, several)| format!("{count} {}", if count == 1 { one } else { several }));
    let parts: Vec<String> = parts.collect();
    Some(format!("of {} {}", count_with_noun(total, &format!("{what} pod")), parts.join(", ")))
}

/// The table of the groups; empty if there are no pods.
fn group_table(forecast: &Forecast, by: GroupBy) -> String {
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
        None => format!("Pod {}", pod_or_replaced_pod_name(pod)),
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
