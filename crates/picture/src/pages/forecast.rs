//! The page of `tollgate forecast`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use maud::{Markup, html};
use serde::Deserialize;

use super::{
    COURSES_NOTE, PodCountsByOutcome, ReportJson, TABLE_BYTE_BUDGET, class_changes_section, listed_up_to,
    max_listed_nodes_per_pod, namespace_and_bold_name, selector_as_driver_pool_device,
    tile_class_bad_unless_zero, tiles, workload,
};
use crate::bars::DeviceClassBeforeAndAfter;
use crate::frame::{HtmlPage, ReportProvenance, counted, group_thousands};
use crate::map::{KindAndName, NamespaceAndName};
use crate::table::{FORECAST_PODS, FORECAST_PODS_THAT_FIT, REFUSED_OBJECTS, Table};
use crate::text::{SafeText, first_parts_and_number_of_others, unbroken};
use crate::timeline::EvictionTimeline;

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Forecast {
    profile: SafeText,
    at: SafeText,
    samples: usize,
    applied: Vec<AppliedObjectRecord>,
    evicted: Vec<EvictedPodRecord>,
    pods: Vec<Pod>,
    refused: Vec<RefusedObjectRecord>,
    totals: PodCountsByOutcome,
    #[serde(skip)]
    capacity: Vec<DeviceClassBeforeAndAfter>,
}

/// An object that the forecast applies.
#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AppliedObjectRecord {
    kind: SafeText,
    namespace: SafeText,
    name: Option<SafeText>,
    device_selector: Option<TaintRuleDeviceSelector>,
    taint: Option<Taint>,
}

/// The devices that an applied DeviceTaintRule selects.
#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TaintRuleDeviceSelector {
    driver: Option<SafeText>,
    pool: Option<SafeText>,
    device: Option<SafeText>,
    device_class_name: Option<SafeText>,
    /// Number of CEL expressions.
    selectors: usize,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Taint {
    key: SafeText,
    value: SafeText,
    effect: SafeText,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct EvictedPodRecord {
    #[serde(flatten)]
    name: NamespaceAndName,
    at: SafeText,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Pod {
    namespace: SafeText,
    name: Option<SafeText>,
    origin: SafeText,
    replaces: Option<SafeText>,
    workload: Option<KindAndName>,
    outcome: SafeText,
    fits: usize,
    evicted_again: bool,
    placements: Vec<PlacementFrequency>,
    placements_omitted: usize,
    message: Option<SafeText>,
    explanation: Option<SafeText>,
    not_modelled: Vec<SafeText>,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct PlacementFrequency {
    node: SafeText,
    courses: usize,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct RefusedObjectRecord {
    file: SafeText,
    kind: SafeText,
    namespace: SafeText,
    name: SafeText,
    findings: Vec<Finding>,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Finding {
    message: SafeText,
}

/// Maximum number of nodes of a pod that are written out.
const MAX_NODES: usize = 4;
/// Maximum number of applied objects that are written out.
const MAX_APPLIED: usize = 40;

/// The page for the records of `forecast -o json`, one for each profile.
pub fn forecast(records: &[ReportJson<'_>], page: &ReportProvenance) -> serde_json::Result<String> {
    let mut forecasts = Vec::new();
    for record in records {
        let mut forecast: Forecast = serde_json::from_str(record.json)?;
        forecast.capacity = record.parse_class_changes()?;
        forecasts.push(forecast);
    }
    let first = forecasts.first();
    let budget = TABLE_BYTE_BUDGET / forecasts.len().max(1);
    let frame = HtmlPage {
        page,
        title: &first.map_or_else(String::new, title),
        lead: first.map(lead).unwrap_or_default(),
        profile: first.map_or("", |first| &first.profile),
        at: first.map_or("", |first| &first.at),
        body: html! {
            @for forecast in &forecasts {
                @if forecasts.len() > 1 {
                    section { h2 { "Kubernetes " (forecast.profile) } p { (lead(forecast)) } }
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

fn title(forecast: &Forecast) -> String {
    match forecast.applied.as_slice() {
        [] => "Forecast for waiting pods".to_owned(),
        [only] => format!("Forecast for {}", only.kind_and_qualified_name()),
        several => format!("Forecast for {}", counted(several.len(), "object")),
    }
}

impl AppliedObjectRecord {
    /// Kind and name of the object, such as `DeviceTaintRule maintenance` or `Job batch/render`.
    fn kind_and_qualified_name(&self) -> String {
        let namespace =
            if self.namespace.is_empty() { String::new() } else { format!("{}/", &*self.namespace) };
        format!("{} {namespace}{}", &*self.kind, self.name.as_deref().unwrap_or("(generated name)"))
    }
}

/// The taint of an applied rule and its devices: ` taints gpu.example.com/gpu-node-03/any with …:NoExecute`.
fn tainted_devices(object: &AppliedObjectRecord) -> Markup {
    let Some(Taint { key, value, effect }) = &object.taint else { return html! {} };
    html! {
        ": taints "
        @if let Some(selector) = &object.device_selector {
            "devices " (selector_as_driver_pool_device([&selector.driver, &selector.pool, &selector.device]))
            @if let Some(class) = &selector.device_class_name { " of class " (unbroken(class)) }
            @if selector.selectors > 0 { " that match " (counted(selector.selectors, "expression")) }
        } @else {
            "devices (the rule has no deviceSelector)"
        }
        " with " span.w { (key) @if !value.is_empty() { "=" (value) } ":" (effect) }
    }
}

/// Maximum number of reasons why pods stay Pending that are written out above the table, and of pods with each.
const MAX_REASONS: usize = 8;

/// The pods that stay Pending or fit only sometimes, by the reason; nothing if there are none.
fn not_always_fitting_pods_by_reason(forecast: &Forecast) -> Markup {
    let mut by_reason: BTreeMap<&str, Vec<Markup>> = BTreeMap::new();
    for (pod, place) in forecast.pods.iter().zip(unnamed_pod_numbers_in_workload(&forecast.pods)) {
        if matches!(&*pod.outcome, "pending" | "sometimes") {
            let reason = pod.explanation.as_ref().or(pod.message.as_ref()).map_or("", |reason| &**reason);
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
fn unnamed_pod_numbers_in_workload(pods: &[Pod]) -> Vec<Option<(usize, usize)>> {
    let key = |pod: &Pod| {
        let workload = pod.workload.as_ref();
        (pod.namespace.clone(), workload.map(|workload| (workload.kind.clone(), workload.name.clone())))
    };
    let is_unnamed = |pod: &&Pod| pod.name.is_none() && pod.replaces.is_none();
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for pod in pods.iter().filter(is_unnamed) {
        *counts.entry(key(pod)).or_default() += 1;
    }
    let mut next: BTreeMap<_, usize> = BTreeMap::new();
    let mut place = |pod: &Pod| {
        let key = key(pod);
        let count = counts.get(&key).copied().unwrap_or_default();
        let number = next.entry(key).or_default();
        *number += 1;
        (*number, count)
    };
    pods.iter().map(|pod| is_unnamed(&pod).then(|| place(pod))).collect()
}

/// A pod in a sentence: `batch/render-1`, `replacement of batch/render-1`, or `pod 2 of 10 of Job batch/render`.
fn pod_description_in_sentence(pod: &Pod, place: Option<(usize, usize)>) -> Markup {
    html! {
        @if let Some(replaces) = &pod.replaces {
            "replacement of " (pod.namespace) "/" (unbroken(replaces))
        } @else if let Some(name) = &pod.name {
            (pod.namespace) "/" (unbroken(name))
        } @else {
            @if let Some((number, count)) = place { "pod " (group_thousands(number)) " of " (group_thousands(count)) " of " }
            @if let Some(workload) = &pod.workload { (workload.kind) " " (pod.namespace) "/" (unbroken(&workload.name)) }
            @else { (pod.namespace) }
        }
    }
}

fn lead(forecast: &Forecast) -> Markup {
    let totals = forecast.totals;
    let parts = [("free", "fit", totals.fits)].into_iter().chain(totals.unfitting_parts());
    let parts = parts.filter(|(_, _, count)| *count > 0);
    let parts: Vec<String> =
        parts.map(|(_, what, count)| format!("{} {what}", group_thousands(count))).collect();
    html! {
        strong {
            (counted(forecast.evicted.len(), "pod")) @if forecast.evicted.len() == 1 { " is" } @else { " are" } " evicted"
        }
        ". "
        @if !parts.is_empty() {
            "Of " (counted(forecast.pods.len(), "pod")) " that are new, replaced or waiting: " (parts.join(", ")) "."
        }
        @if !forecast.evicted.is_empty() {
            " Evictions by device taints do not respect PodDisruptionBudgets; " code { "tollgate impact" }
            " counts the violations."
        }
    }
}

fn one_forecast(forecast: &Forecast, budget: usize) -> Markup {
    let timeline =
        EvictionTimeline::new(&forecast.at, forecast.evicted.iter().map(|pod| (&pod.at, &pod.name)));
    let totals = forecast.totals;
    html! {
        (tiles(&[
            (tile_class_bad_unless_zero(forecast.evicted.len()), forecast.evicted.len(), "pods evicted"),
            ("good", totals.fits, "pods fit"),
            (tile_class_bad_unless_zero(totals.sometimes), totals.sometimes, "pods fit only sometimes"),
            (tile_class_bad_unless_zero(totals.pending), totals.pending, "pods stay Pending"),
            (tile_class_bad_unless_zero(totals.unknown), totals.unknown, "pods with an unknown outcome"),
            (tile_class_bad_unless_zero(totals.not_recreated), totals.not_recreated, "pods not recreated"),
        ]))
        @if !forecast.applied.is_empty() {
            section {
                h2 { "What is applied" }
                ul.notes {
                    @for object in forecast.applied.iter().take(MAX_APPLIED) {
                        li { (SafeText::from(object.kind_and_qualified_name())) (tainted_devices(object)) }
                    }
                    @if forecast.applied.len() > MAX_APPLIED {
                        li { "and " (counted(forecast.applied.len() - MAX_APPLIED, "more object")) }
                    }
                }
            }
        }
        @if !timeline.is_empty() { section { h2 { "When pods are evicted" } (timeline.render()) } }
        section { h2 { "What becomes of pods" } (totals.render_outcome_bar_and_numbers(&[("free", "fit", totals.fits)])) (not_always_fitting_pods_by_reason(forecast)) }
        (class_changes_section(&forecast.capacity, "After: all objects are applied, and pods have devices where they fit. Where pods start depends \
            on chance, so the numbers are averages."))
        @if !forecast.refused.is_empty() {
            section { h2 { "Objects that the API server rejects" } (refused(&forecast.refused)) }
        }
        section { h2 { "Pods" } (pods(forecast, budget)) }
    }
}

fn pods(forecast: &Forecast, budget: usize) -> Markup {
    let has_reasons = forecast.pods.iter().any(|pod| !pending_reason(pod).0.is_empty());
    let kind = if has_reasons { &FORECAST_PODS } else { &FORECAST_PODS_THAT_FIT };
    let mut table = Table::new(kind, budget);
    let most = max_listed_nodes_per_pod(forecast.pods.len(), MAX_NODES);
    for (pod, place) in forecast.pods.iter().zip(unnamed_pod_numbers_in_workload(&forecast.pods)) {
        let cells = [
            name(pod, place),
            workload(pod.workload.as_ref()),
            outcome(pod, forecast.samples),
            nodes_with_percentages(pod, forecast.samples, most),
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
            (COURSES_NOTE) " A percentage is the share of the " (counted(forecast.samples, "course"))
            " in which the pod starts on that node."
        }
        (table.finish("Pods that you specify, replacements of evicted pods, and waiting pods", "No pods."))
    }
}

fn name(pod: &Pod, place: Option<(usize, usize)>) -> Markup {
    html! {
        (pod.namespace) "/"
        @if let Some(name) = &pod.name { b { (name) } } @else { "(generated name)" }
        @if let Some(replaces) = &pod.replaces { p.hint { "replaces " (unbroken(replaces)) } }
        @else if let Some((number, count)) = place { p.hint { "pod " (group_thousands(number)) " of " (group_thousands(count)) } }
        @else if &*pod.origin == "waiting" { p.hint { "is waiting already" } }
    }
}

fn outcome(pod: &Pod, samples: usize) -> Markup {
    let class = if &*pod.outcome == "fits" { "good" } else { "bad" };
    let outcome = match &*pod.outcome {
        "pending" => "stays Pending",
        "not-recreated" => "not recreated",
        other => other,
    };
    html! {
        span.tag.(class) { (outcome) }
        @if &*pod.outcome == "sometimes" {
            p.hint { "in " (group_thousands(pod.fits)) " of " (counted(samples, "course")) }
        }
        @if pod.evicted_again { p.hint { "evicted again" } }
    }
}

fn nodes_with_percentages(pod: &Pod, samples: usize, most: usize) -> Markup {
    // A node has a placement for each choice of devices.
    let mut courses: BTreeMap<&SafeText, usize> = BTreeMap::new();
    for placement in &pod.placements {
        *courses.entry(&placement.node).or_default() += placement.courses;
    }
    let mut nodes: Vec<(&SafeText, usize)> = courses.into_iter().collect();
    nodes.sort_by_key(|(_, courses)| Reverse(*courses));
    let rounded = |courses: usize| (courses * 200 + samples) / (2 * samples).max(1);
    let share =
        |(node, courses): (&SafeText, usize)| html! { span.w { (node) " (" (rounded(courses)) "%)" } };
    html! {
        (first_parts_and_number_of_others(nodes.into_iter().map(share), most, [", ", " and "]))
        @if pod.placements_omitted > 0 { ", and other placements" }
        @if pod.placements.is_empty() { "–" }
    }
}

fn pending_reason(pod: &Pod) -> Markup {
    html! {
        @if let Some(explanation) = &pod.explanation { p { (explanation) } }
        @else if let Some(message) = &pod.message { p { (message) } }
        @if !pod.not_modelled.is_empty() { p { "Not known: " (listed_up_to(&pod.not_modelled, MAX_NODES)) } }
    }
}

fn refused(objects: &[RefusedObjectRecord]) -> Markup {
    let mut table = Table::new(&REFUSED_OBJECTS, TABLE_BYTE_BUDGET / 8);
    for object in objects {
        let name = NamespaceAndName { namespace: object.namespace.clone(), name: object.name.clone() };
        table.add_row_or_count_omitted([
            html! {
                (object.kind) " "
                @if name.namespace.is_empty() { b { (name.name) } } @else { (namespace_and_bold_name(&name)) }
            },
            html! { (object.file) },
            html! { @for finding in &object.findings { p { (finding.message) } } },
        ]);
    }
    table.finish("These objects are left out of the forecast", "None")
}
