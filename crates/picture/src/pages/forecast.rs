//! The page of `tollgate forecast`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use maud::{Markup, html};

use super::{
    COURSES_NOTE, PodCountsByOutcome, ReportJson, TABLE_BYTE_BUDGET, class_changes_section, listed_up_to,
    max_listed_nodes_per_pod, namespace_and_bold_name, selector_as_driver_pool_device,
    tile_class_bad_unless_zero, tiles, workload,
};
use crate::bars::DeviceClassBeforeAndAfter;
use crate::frame::{HtmlPage, ReportProvenance, counted, group_thousands};
use crate::record::Record;
use crate::table::{FORECAST_PODS, FORECAST_PODS_THAT_FIT, REFUSED_OBJECTS, Table};
use crate::text::{SafeText, first_parts_and_number_of_others, unbroken};
use crate::timeline::EvictionTimeline;

/// A forecast that is drawn: its record, the number of pods by outcome, and the devices of each class before and after.
struct DrawnForecast<'r> {
    record: Record<'r>,
    totals: PodCountsByOutcome,
    class_changes: &'r [DeviceClassBeforeAndAfter],
}

/// Maximum number of nodes of a pod that are written out.
const MAX_NODES: usize = 4;
/// Maximum number of applied objects that are written out.
const MAX_APPLIED: usize = 40;

/// The page for the records of `forecast -o json`, one for each profile.
pub fn forecast(records: &[ReportJson<'_>], page: &ReportProvenance) -> serde_json::Result<String> {
    let parsed = records.iter().map(ReportJson::parse).collect::<Result<Vec<_>, _>>()?;
    let forecasts = parsed.iter().map(|(record, class_changes)| DrawnForecast {
        record: Record(record.root()),
        totals: PodCountsByOutcome::of_record(Record(record.root()).get("totals")),
        class_changes,
    });
    let forecasts: Vec<DrawnForecast<'_>> = forecasts.collect();
    let first = forecasts.first();
    let budget = TABLE_BYTE_BUDGET / forecasts.len().max(1);
    let frame = HtmlPage {
        page,
        title: &first.map_or_else(String::new, title),
        lead: first.map(lead).unwrap_or_default(),
        profile: &first.map(|first| first.record.text("profile")).unwrap_or_default(),
        at: &first.map(|first| first.record.text("at")).unwrap_or_default(),
        body: html! {
            @for forecast in &forecasts {
                @if forecasts.len() > 1 {
                    section { h2 { "Kubernetes " (forecast.record.text("profile")) } p { (lead(forecast)) } }
                }
                (one_forecast(forecast, budget))
            }
        },
        read_more: &[
            ("understand/forecast.md", "How a forecast is made, and what the outcomes mean"),
            ("reference/json.md", "The same report as JSON"),
        ],
    };
    Ok(frame.render_page_or_part())
}

fn title(forecast: &DrawnForecast<'_>) -> String {
    let mut applied = forecast.record.list("applied");
    match (applied.len(), applied.next()) {
        (1, Some(only)) => format!("Forecast for {}", kind_and_qualified_name(only)),
        (_, None) => "Forecast for waiting pods".to_owned(),
        (several, _) => format!("Forecast for {}", counted(several, "object")),
    }
}

/// Kind and name of an applied object, such as `DeviceTaintRule maintenance` or `Job batch/render`.
fn kind_and_qualified_name(object: Record<'_>) -> String {
    let (kind, namespace, name) = (object.text("kind"), object.text("namespace"), object.text_if_any("name"));
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{} {}{slash}{}", &*kind, &*namespace, name.as_deref().unwrap_or("(generated name)"))
}

/// The taint of an applied rule and its devices: ` taints gpu.example.com/gpu-node-03/any with …:NoExecute`.
fn tainted_devices(object: Record<'_>) -> Markup {
    let (taint, selector) = (object.get("taint"), object.get("deviceSelector"));
    if !taint.exists() {
        return html! {};
    }
    let [key, value, effect] = ["key", "value", "effect"].map(|key| taint.text(key));
    html! {
        ": taints "
        @if selector.exists() {
            "devices " (selector_as_driver_pool_device(selector))
            @if let Some(class) = selector.text_if_any("deviceClassName") { " of class " (unbroken(&class)) }
            @let expressions = selector.count("selectors");
            @if expressions > 0 { " that match " (counted(expressions, "expression")) }
        } @else {
            "devices (the rule has no deviceSelector)"
        }
        " with " span.w { (key) @if !value.is_empty() { "=" (value) } ":" (effect) }
    }
}

/// Maximum number of reasons why pods stay Pending that are written out above the table, and of pods with each.
const MAX_REASONS: usize = 8;

/// The pods that stay Pending or fit only sometimes, by the reason; nothing if there are none.
fn not_always_fitting_pods_by_reason(forecast: Record<'_>) -> Markup {
    let mut by_reason: BTreeMap<SafeText, Vec<Markup>> = BTreeMap::new();
    for (pod, place) in forecast.list("pods").zip(unnamed_pod_numbers_in_workload(forecast)) {
        if matches!(&*pod.text("outcome"), "pending" | "sometimes") {
            let reason = pod.text_if_any("explanation").unwrap_or_else(|| pod.text("message"));
            by_reason.entry(reason).or_default().push(pod_description_in_sentence(pod, place));
        }
    }
    html! {
        @if !by_reason.is_empty() {
            p.hint {
                "A pod stays Pending if no node has what it requests when its turn comes. The scheduler takes pods with a higher "
                "priority first, and among pods of the same priority the one that entered the queue first."
            }
            ul.notes {
                @for (reason, pods) in by_reason.iter().take(MAX_REASONS) {
                    li {
                        strong { (counted(pods.len(), "pod")) } " ("
                        (first_parts_and_number_of_others(pods.iter().cloned(), MAX_REASONS, ["; ", "; and "]))
                        ")"
                        @if !reason.is_empty() { ": " (reason) }
                    }
                }
                @if by_reason.len() > MAX_REASONS { li { "and other reasons, which the table has" } }
            }
        }
    }
}

/// The number of each pod without a name among those of its workload, and how many there are; `None` for other pods.
fn unnamed_pod_numbers_in_workload(forecast: Record<'_>) -> Vec<Option<(usize, usize)>> {
    let key = |pod: Record<'_>| {
        let workload = pod.get("workload");
        (pod.text("namespace"), workload.text_if_any("kind"), workload.text("name"))
    };
    let is_unnamed = |pod: &Record<'_>| !pod.get("name").exists() && !pod.get("replaces").exists();
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for pod in forecast.list("pods").filter(is_unnamed) {
        *counts.entry(key(pod)).or_default() += 1;
    }
    let mut next: BTreeMap<_, usize> = BTreeMap::new();
    let mut place = |pod: Record<'_>| {
        let key = key(pod);
        let count = counts.get(&key).copied().unwrap_or_default();
        let number = next.entry(key).or_default();
        *number += 1;
        (*number, count)
    };
    forecast.list("pods").map(|pod| is_unnamed(&pod).then(|| place(pod))).collect()
}

/// A pod in a sentence: `batch/render-1`, `replacement of batch/render-1`, or `pod 2 of 10 of Job batch/render`.
fn pod_description_in_sentence(pod: Record<'_>, place: Option<(usize, usize)>) -> Markup {
    let (namespace, workload) = (pod.text("namespace"), pod.get("workload"));
    html! {
        @if let Some(replaces) = pod.text_if_any("replaces") {
            "replacement of " (namespace) "/" (unbroken(&replaces))
        } @else if let Some(name) = pod.text_if_any("name") {
            (namespace) "/" (unbroken(&name))
        } @else {
            @if let Some((number, count)) = place { "pod " (group_thousands(number)) " of " (group_thousands(count)) " of " }
            @if workload.exists() { (workload.text("kind")) " " (namespace) "/" (unbroken(&workload.text("name"))) }
            @else { (namespace) }
        }
    }
}

fn lead(forecast: &DrawnForecast<'_>) -> Markup {
    let DrawnForecast { record, totals, .. } = forecast;
    let evicted = record.list("evicted").len();
    let parts = [("free", "fit", totals.fits)].into_iter().chain(totals.unfitting_parts());
    let parts = parts.filter(|(_, _, count)| *count > 0);
    let parts: Vec<String> =
        parts.map(|(_, what, count)| format!("{} {what}", group_thousands(count))).collect();
    html! {
        strong { (counted(evicted, "pod")) @if evicted == 1 { " is" } @else { " are" } " evicted" }
        ". "
        @if !parts.is_empty() {
            "Of " (counted(record.list("pods").len(), "pod")) " that are new, replaced or waiting: " (parts.join(", ")) "."
        }
        @if evicted > 0 {
            " Evictions by device taints do not respect PodDisruptionBudgets; " code { "tollgate impact" }
            " counts the violations."
        }
    }
}

fn one_forecast(forecast: &DrawnForecast<'_>, budget: usize) -> Markup {
    let DrawnForecast { record, totals, class_changes } = forecast;
    let evicted = record.list("evicted").map(|pod| (pod.text("at"), pod.namespace_and_name()));
    let timeline = EvictionTimeline::new(&record.text("at"), evicted);
    let (evicted, applied) = (record.list("evicted").len(), record.list("applied"));
    html! {
        (tiles(&[
            (tile_class_bad_unless_zero(evicted), evicted, "pods evicted"),
            ("good", totals.fits, "pods fit"),
            (tile_class_bad_unless_zero(totals.sometimes), totals.sometimes, "pods fit only sometimes"),
            (tile_class_bad_unless_zero(totals.pending), totals.pending, "pods stay Pending"),
            (tile_class_bad_unless_zero(totals.unknown), totals.unknown, "pods with an unknown outcome"),
            (tile_class_bad_unless_zero(totals.not_recreated), totals.not_recreated, "pods not recreated"),
        ]))
        @if applied.len() > 0 {
            section {
                h2 { "What is applied" }
                ul.notes {
                    @for object in applied.clone().take(MAX_APPLIED) {
                        li { (SafeText::from(kind_and_qualified_name(object))) (tainted_devices(object)) }
                    }
                    @if applied.len() > MAX_APPLIED { li { "and " (counted(applied.len() - MAX_APPLIED, "more object")) } }
                }
            }
        }
        @if !timeline.is_empty() { section { h2 { "When pods are evicted" } (timeline.render()) } }
        section { h2 { "What becomes of pods" } (totals.render_outcome_bar_and_numbers(&[("free", "fit", totals.fits)])) (not_always_fitting_pods_by_reason(*record)) }
        (class_changes_section(class_changes, "After: all objects are applied, and pods have devices where they fit. Where pods start depends \
            on chance, so the numbers are averages."))
        @if record.list("refused").len() > 0 {
            section { h2 { "Objects that the API server rejects" } (refused(*record)) }
        }
        section { h2 { "Pods" } (pods(*record, budget)) }
    }
}

fn pods(forecast: Record<'_>, budget: usize) -> Markup {
    let samples = forecast.count("samples");
    let has_reasons = forecast.list("pods").any(|pod| !pending_reason(pod).0.is_empty());
    let kind = if has_reasons { &FORECAST_PODS } else { &FORECAST_PODS_THAT_FIT };
    let mut table = Table::new(kind, budget);
    let most = max_listed_nodes_per_pod(forecast.list("pods").len(), MAX_NODES);
    for (pod, place) in forecast.list("pods").zip(unnamed_pod_numbers_in_workload(forecast)) {
        let cells = [
            name(pod, place),
            workload(pod.get("workload")),
            outcome(pod, samples),
            nodes_with_percentages(pod, samples, most),
        ];
        if has_reasons {
            let [name, workload, outcome, nodes] = cells;
            table.add_row_or_count_omitted([name, workload, outcome, nodes, pending_reason(pod)]);
        } else {
            table.add_row_or_count_omitted(cells);
        }
    }
    html! {
        p.hint {
            (COURSES_NOTE) " A percentage is the share of the " (counted(samples, "course"))
            " in which the pod starts on that node."
        }
        (table.finish("Pods that you specify, replacements of evicted pods, and waiting pods", "No pods."))
    }
}

fn name(pod: Record<'_>, place: Option<(usize, usize)>) -> Markup {
    html! {
        (pod.text("namespace")) "/"
        @if let Some(name) = pod.text_if_any("name") { b { (name) } } @else { "(generated name)" }
        @if let Some(replaces) = pod.text_if_any("replaces") { p.hint { "replaces " (unbroken(&replaces)) } }
        @else if let Some((number, count)) = place { p.hint { "pod " (group_thousands(number)) " of " (group_thousands(count)) } }
        @else if &*pod.text("origin") == "waiting" { p.hint { "is waiting already" } }
    }
}

fn outcome(pod: Record<'_>, samples: usize) -> Markup {
    let outcome = pod.text("outcome");
    let class = if &*outcome == "fits" { "good" } else { "bad" };
    let in_words = match &*outcome {
        "pending" => "stays Pending",
        "not-recreated" => "not recreated",
        other => other,
    };
    html! {
        span.tag.(class) { (in_words) }
        @if &*outcome == "sometimes" {
            p.hint { "in " (group_thousands(pod.count("fits"))) " of " (counted(samples, "course")) }
        }
        @if pod.is("evictedAgain") { p.hint { "evicted again" } }
    }
}

fn nodes_with_percentages(pod: Record<'_>, samples: usize, most: usize) -> Markup {
    // A node has a placement for each choice of devices.
    let mut courses: BTreeMap<SafeText, usize> = BTreeMap::new();
    for placement in pod.list("placements") {
        *courses.entry(placement.text("node")).or_default() += placement.count("courses");
    }
    let is_empty = courses.is_empty();
    let mut nodes: Vec<(SafeText, usize)> = courses.into_iter().collect();
    nodes.sort_by_key(|(_, courses)| Reverse(*courses));
    let rounded = |courses: usize| (courses * 200 + samples) / (2 * samples).max(1);
    let share = |(node, courses): (SafeText, usize)| html! { span.w { (node) " (" (rounded(courses)) "%)" } };
    html! {
        (first_parts_and_number_of_others(nodes.into_iter().map(share), most, [", ", " and "]))
        @if pod.count("placementsOmitted") > 0 { ", and other placements" }
        @if is_empty { "–" }
    }
}

fn pending_reason(pod: Record<'_>) -> Markup {
    let not_modelled = pod.texts("notModelled");
    html! {
        @if let Some(reason) = pod.text_if_any("explanation").or_else(|| pod.text_if_any("message")) { p { (reason) } }
        @if !not_modelled.is_empty() { p { "Not known: " (listed_up_to(&not_modelled, MAX_NODES)) } }
    }
}

fn refused(forecast: Record<'_>) -> Markup {
    let mut table = Table::new(&REFUSED_OBJECTS, TABLE_BYTE_BUDGET / 8);
    for object in forecast.list("refused") {
        table.add_row_or_count_omitted([
            html! {
                (object.text("kind")) " "
                @if object.text("namespace").is_empty() { b { (object.text("name")) } } @else { (namespace_and_bold_name(object)) }
            },
            html! { (object.text("file")) },
            html! { @for finding in object.list("findings") { p { (finding.text("message")) } } },
        ]);
    }
    table.finish("These objects are left out of the forecast", "None")
}
