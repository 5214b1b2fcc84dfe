//! The page of `tollgate forecast`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use maud::{Markup, html};
use serde::Deserialize;

use super::{
    COURSES_NOTE, Outcomes, Record, TABLE_BYTES, capacity, listed, pod_name, tile_class, tiles, workload,
};
use crate::bars::Change;
use crate::frame::{Frame, Page, counted, grouped};
use crate::map::{Named, Namespaced};
use crate::table::{FORECAST_PODS, FORECAST_PODS_THAT_FIT, REFUSED, Table};
use crate::text::{Text, unbroken};
use crate::timeline::Timeline;

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Forecast {
    profile: Text,
    at: Text,
    samples: usize,
    applied: Vec<Applied>,
    evicted: Vec<Evicted>,
    pods: Vec<Pod>,
    refused: Vec<Refused>,
    totals: Outcomes,
    #[serde(skip)]
    capacity: Vec<Change>,
}

/// An object that the forecast applies.
#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Applied {
    kind: Text,
    namespace: Text,
    name: Option<Text>,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Evicted {
    #[serde(flatten)]
    name: Namespaced,
    at: Text,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Pod {
    namespace: Text,
    name: Option<Text>,
    origin: Text,
    replaces: Option<Text>,
    workload: Option<Named>,
    outcome: Text,
    fits: usize,
    evicted_again: bool,
    placements: Vec<Placement>,
    placements_omitted: usize,
    message: Option<Text>,
    explanation: Option<Text>,
    not_modelled: Vec<Text>,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Placement {
    node: Text,
    courses: usize,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Refused {
    file: Text,
    kind: Text,
    namespace: Text,
    name: Text,
    findings: Vec<Finding>,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Finding {
    message: Text,
}

/// Maximum number of nodes of a pod that are written out.
const MAX_NODES: usize = 4;
/// Maximum number of applied objects that are written out.
const MAX_APPLIED: usize = 40;

/// The page for the records of `forecast -o json`, one for each profile.
pub fn forecast(records: &[Record<'_>], page: &Page) -> serde_json::Result<String> {
    let mut forecasts = Vec::new();
    for record in records {
        let mut forecast: Forecast = serde_json::from_str(record.json)?;
        forecast.capacity = record.changes()?;
        forecasts.push(forecast);
    }
    let first = forecasts.first();
    let budget = TABLE_BYTES / forecasts.len().max(1);
    let frame = Frame {
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
    Ok(frame.render())
}

fn title(forecast: &Forecast) -> String {
    match forecast.applied.as_slice() {
        [] => "Forecast for waiting pods".to_owned(),
        [only] => format!("Forecast for {}", only.label()),
        several => format!("Forecast for {}", counted(several.len(), "object")),
    }
}

impl Applied {
    /// Kind and name of the object, such as `DeviceTaintRule maintenance` or `Job batch/render`.
    fn label(&self) -> String {
        let namespace =
            if self.namespace.is_empty() { String::new() } else { format!("{}/", &*self.namespace) };
        format!("{} {namespace}{}", &*self.kind, self.name.as_deref().unwrap_or("(generated name)"))
    }
}

fn lead(forecast: &Forecast) -> Markup {
    let Outcomes { fits, sometimes, pending, unknown, not_recreated } = forecast.totals;
    let parts: Vec<String> = [
        (fits, "fit"),
        (sometimes, "fit only sometimes"),
        (pending, "stay Pending"),
        (unknown, "have an unknown outcome"),
        (not_recreated, "are not recreated"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{} {what}", grouped(count)))
    .collect();
    html! {
        strong {
            (counted(forecast.evicted.len(), "pod")) @if forecast.evicted.len() == 1 { " is" } @else { " are" } " evicted"
        }
        ". "
        @if !parts.is_empty() {
            "Of " (counted(forecast.pods.len(), "pod")) " that are new, replaced or waiting: " (parts.join(", ")) "."
        }
    }
}

fn one_forecast(forecast: &Forecast, budget: usize) -> Markup {
    let timeline = Timeline::new(&forecast.at, forecast.evicted.iter().map(|pod| (&pod.at, &pod.name)));
    let totals = forecast.totals;
    html! {
        (tiles(&[
            (tile_class(forecast.evicted.len()), forecast.evicted.len(), "pods evicted"),
            ("good", totals.fits, "pods fit"),
            (tile_class(totals.sometimes), totals.sometimes, "pods fit only sometimes"),
            (tile_class(totals.pending), totals.pending, "pods stay Pending"),
            (tile_class(totals.unknown), totals.unknown, "pods with an unknown outcome"),
            (tile_class(totals.not_recreated), totals.not_recreated, "pods not recreated"),
        ]))
        @if !forecast.applied.is_empty() {
            section {
                h2 { "What is applied" }
                ul.notes {
                    @for object in forecast.applied.iter().take(MAX_APPLIED) { li { (Text::from(object.label())) } }
                    @if forecast.applied.len() > MAX_APPLIED {
                        li { "and " (counted(forecast.applied.len() - MAX_APPLIED, "more object")) }
                    }
                }
            }
        }
        @if !timeline.is_empty() { section { h2 { "When pods are evicted" } (timeline.render()) } }
        section { h2 { "What becomes of pods" } (totals.render("fit")) }
        (capacity(&forecast.capacity, "After: all objects are applied, and pods have devices where they fit. Where pods start depends \
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
    for pod in &forecast.pods {
        let cells = [
            name(pod),
            workload(pod.workload.as_ref()),
            outcome(pod, forecast.samples),
            nodes(pod, forecast.samples),
        ];
        if has_reasons {
            let [name, workload, outcome, nodes] = cells;
            table.add([name, workload, outcome, nodes, pending_reason(pod)]);
        } else {
            table.add(cells);
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

fn name(pod: &Pod) -> Markup {
    html! {
        (pod.namespace) "/"
        @if let Some(name) = &pod.name { b { (name) } } @else { "(generated name)" }
        @if let Some(replaces) = &pod.replaces { p.hint { "replaces " (unbroken(replaces)) } }
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
            p.hint { "in " (grouped(pod.fits)) " of " (counted(samples, "course")) }
        }
        @if pod.evicted_again { p.hint { "evicted again" } }
    }
}

fn nodes(pod: &Pod, samples: usize) -> Markup {
    // A node has a placement for each choice of devices.
    let mut courses: BTreeMap<&Text, usize> = BTreeMap::new();
    for placement in &pod.placements {
        *courses.entry(&placement.node).or_default() += placement.courses;
    }
    let mut nodes: Vec<(&Text, usize)> = courses.into_iter().collect();
    nodes.sort_by_key(|(_, courses)| Reverse(*courses));
    html! {
        @for (index, (node, courses)) in nodes.iter().take(MAX_NODES).enumerate() {
            @if index > 0 { ", " }
            span.w { (node) " (" (courses * 100 / samples.max(1)) "%)" }
        }
        @if nodes.len() > MAX_NODES { " and " (grouped(nodes.len() - MAX_NODES)) " more" }
        @if pod.placements_omitted > 0 { ", and other placements" }
        @if pod.placements.is_empty() { "–" }
    }
}

fn pending_reason(pod: &Pod) -> Markup {
    html! {
        @if let Some(explanation) = &pod.explanation { p { (explanation) } }
        @else if let Some(message) = &pod.message { p { (message) } }
        @if !pod.not_modelled.is_empty() { p { "Not known: " (listed(&pod.not_modelled, MAX_NODES)) } }
    }
}

fn refused(objects: &[Refused]) -> Markup {
    let mut table = Table::new(&REFUSED, TABLE_BYTES / 8);
    for object in objects {
        let name = Namespaced { namespace: object.namespace.clone(), name: object.name.clone() };
        table.add([
            html! {
                (object.kind) " "
                @if name.namespace.is_empty() { b { (name.name) } } @else { (pod_name(&name)) }
            },
            html! { (object.file) },
            html! { @for finding in &object.findings { p { (finding.message) } } },
        ]);
    }
    table.finish("These objects are left out of the forecast", "None")
}
