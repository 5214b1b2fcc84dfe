//! The page of `tollgate impact`.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde::Deserialize;

use super::{Outcomes, Record, TABLE_BYTES, capacity, notes, pod_name, tile_class, tiles, workload};
use crate::bars::Change;
use crate::frame::{Frame, Page, counted, grouped};
use crate::map::{Named, Namespaced};
use crate::table::{GROUPS, IMPACT_PODS, Table};
use crate::text::Text;
use crate::timeline::Timeline;

#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Impact {
    /// Name of the rule, for the impact of one rule.
    rule: Text,
    /// Names of the rules, for the combined impact of several.
    together: Vec<Text>,
    profile: Text,
    at: Text,
    devices: Devices,
    totals: Totals,
    no_effect: Option<Text>,
    depends_on: Option<Text>,
    upper_bound: bool,
    partitions: Partitions,
    pods: Vec<Pod>,
    pods_omitted: usize,
    budgets: Vec<Budget>,
    restarts: Vec<Restart>,
    replacements: Option<Outcomes>,
    differences: Vec<Text>,
    sum: Sum,
    #[serde(skip)]
    capacity: Vec<Change>,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Devices {
    published: usize,
    allocated: usize,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Totals {
    evicted: usize,
    evicted_now: usize,
    evicted_later: usize,
    tolerated: usize,
    unaffected: usize,
    namespaces: usize,
    last_eviction: Option<Text>,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Partitions {
    count: usize,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Pod {
    #[serde(flatten)]
    name: Namespaced,
    owner: Option<Named>,
    outcome: Text,
    at: Option<Text>,
    because: Vec<Text>,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Budget {
    #[serde(flatten)]
    name: Namespaced,
    violated_by: usize,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Restart {
    kind: Text,
    #[serde(flatten)]
    name: Namespaced,
    lost: usize,
    restarted: usize,
    effect: Text,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Sum {
    evicted: usize,
    namespaces: usize,
}

/// The page for the records of `impact -o json`: those of rules and slices, and those of their sums.
pub fn impact(records: &[Record<'_>], page: &Page) -> serde_json::Result<String> {
    let mut impacts = Vec::new();
    for record in records {
        let mut impact: Impact = serde_json::from_str(record.json)?;
        impact.capacity = record.changes()?;
        impacts.push(impact);
    }
    // A page of many rules has as much room as the page of one.
    let budget = TABLE_BYTES / impacts.len().max(1);
    let (sums, rules): (Vec<Impact>, Vec<Impact>) =
        impacts.into_iter().partition(|impact| !impact.together.is_empty());
    let first = rules.first();
    let title = match rules.as_slice() {
        [only] => format!("Impact of {}", &*only.rule),
        _ => format!("Impact of {}", counted(rules.len(), "change")),
    };
    let lead = sums.first().map(sum_lead).or(first.map(lead)).unwrap_or_default();
    let frame = Frame {
        page,
        title: &title,
        lead,
        profile: first.map_or("", |first| &first.profile),
        at: first.map_or("", |first| &first.at),
        body: html! {
            @for sum in &sums {
                section {
                    h2 { "All changes together (Kubernetes " (sum.profile) ")" }
                    p { (sum_lead(sum)) }
                    (evictions_of_all(sum, &rules).render())
                    @if let Some(outcomes) = sum.replacements { (outcomes.render("fit elsewhere")) }
                }
                (capacity(&sum.capacity, CAPACITY_NOTE))
            }
            @for rule in &rules { (one_impact(rule, rules.len() > 1, budget)) }
        },
        read_more: &[
            ("understand/impact.md", "How the impact is predicted"),
            ("guides/drain-a-node.md", "Drain a node"),
            ("reference/json.md", "The same report as JSON"),
        ],
    };
    Ok(frame.render())
}

const CAPACITY_NOTE: &str = "After: the taints are in force, evicted pods are gone, and their replacements have devices where they fit. \
    Where replacements start depends on chance, so the numbers are averages.";

/// The first sentence about a combined impact: `12 pods are evicted in 3 namespaces`.
fn sum_lead(sum: &Impact) -> Markup {
    html! { strong { (counted(sum.sum.evicted, "pod")) } " evicted in " (counted(sum.sum.namespaces, "namespace")) "." }
}

/// The evictions by all rules of a combined impact: each pod once, at the earliest time.
fn evictions_of_all<'a>(sum: &Impact, rules: &'a [Impact]) -> Timeline<'a> {
    let mut first: BTreeMap<&Namespaced, &Text> = BTreeMap::new();
    for pod in rules.iter().filter(|rule| rule.profile == sum.profile).flat_map(|rule| &rule.pods) {
        if let Some(at) = &pod.at {
            let known = first.entry(&pod.name).or_insert(at);
            *known = at.min(known);
        }
    }
    Timeline::new(&sum.at, first.into_iter().map(|(pod, at)| (at, pod)))
}

/// The first sentence about the impact of one rule.
fn lead(impact: &Impact) -> Markup {
    let Totals { evicted, evicted_now, evicted_later, namespaces, last_eviction, .. } = &impact.totals;
    html! {
        @if let Some(why) = &impact.no_effect { strong.warn { "No effect on this cluster: " } (why) ". If it had one: " }
        @if impact.upper_bound { "At most " }
        strong { (counted(*evicted, "pod")) @if *evicted == 1 { " is" } @else { " are" } " evicted" }
        @if *evicted > 0 {
            " in " (counted(*namespaces, "namespace")) ": "
            (grouped(*evicted_now)) " immediately"
            @if *evicted_later > 0 { ", " (grouped(*evicted_later)) " later" }
            @if let Some(last) = last_eviction { ", the last at " time { (last) } }
        }
        ". " (counted(impact.devices.published, "published device")) " selected, "
        (grouped(impact.devices.allocated)) " allocated."
    }
}

fn one_impact(impact: &Impact, has_heading: bool, budget: usize) -> Markup {
    let totals = &impact.totals;
    let evicted = impact.pods.iter().filter_map(|pod| Some((pod.at.as_ref()?, &pod.name)));
    let timeline = Timeline::new(&impact.at, evicted);
    html! {
        @if has_heading {
            section {
                h2 { (impact.rule) " (Kubernetes " (impact.profile) ")" }
                p { (lead(impact)) }
            }
        }
        (tiles(&[
            ("calm", impact.devices.published, "devices selected"),
            (tile_class(totals.evicted_now), totals.evicted_now, "pods evicted now"),
            (tile_class(totals.evicted_later), totals.evicted_later, "pods evicted later"),
            ("good", totals.tolerated, "pods tolerate the taint"),
            ("good", totals.unaffected, "pods not affected"),
            (tile_class(impact.budgets.len()), impact.budgets.len(), "PDBs violated"),
        ]))
        section {
            h2 { "When pods are evicted" }
            @if timeline.is_empty() { p.none { "No pod is evicted." } } @else { (timeline.render()) }
        }
        @if let Some(outcomes) = impact.replacements {
            section { h2 { "Where evicted pods go" } (outcomes.render("fit elsewhere")) }
        }
        (capacity(&impact.capacity, CAPACITY_NOTE))
        @if !impact.budgets.is_empty() {
            section {
                h2 { "PodDisruptionBudgets" }
                p.hint { "Device-taint evictions ignore PDBs." }
                ul.notes {
                    @for budget in &impact.budgets {
                        li { (pod_name(&budget.name)) " is violated by " (counted(budget.violated_by, "eviction")) }
                    }
                }
            }
        }
        @if !impact.restarts.is_empty() {
            section { h2 { "Groups that restart" } (restarts(&impact.restarts)) }
        }
        section {
            h2 { "Pods" }
            (pods(impact, budget))
        }
        (notes("Notes", &all_notes(impact)))
    }
}

fn pods(impact: &Impact, budget: usize) -> Markup {
    let mut table = Table::new(&IMPACT_PODS, budget);
    for pod in &impact.pods {
        let is_evicted = pod.at.is_some();
        table.add([
            pod_name(&pod.name),
            workload(pod.owner.as_ref()),
            html! { span.tag.(if is_evicted { "bad" } else { "good" }) { (outcome(&pod.outcome)) } },
            html! { @if let Some(at) = &pod.at { time { (at) } } @else { "–" } },
            html! { @for because in &pod.because { p { (because) } } },
        ]);
    }
    html! {
        (table.finish("Pods that use a selected device, in the order of their evictions", "No pod uses a selected device."))
        @if impact.pods_omitted > 0 {
            p.omitted { "--limit leaves out " (counted(impact.pods_omitted, "more pod")) "." }
        }
    }
}

/// The outcome of a pod in words, such as `evicted now`.
fn outcome(name: &str) -> &str {
    match name {
        "evicted-now" => "evicted now",
        "evicted-at" => "evicted later",
        other => other,
    }
}

fn restarts(groups: &[Restart]) -> Markup {
    let mut table = Table::new(&GROUPS, TABLE_BYTES / 8);
    for group in groups {
        table.add([
            html! { (group.kind) " " (pod_name(&group.name)) },
            html! { (grouped(group.lost + group.restarted)) },
            html! { (grouped(group.lost)) },
            html! { (grouped(group.restarted)) },
            html! { (group.effect) },
        ]);
    }
    table.finish("Groups whose other pods restart", "None")
}

fn all_notes(impact: &Impact) -> Vec<Text> {
    let mut notes = impact.differences.clone();
    notes.extend(impact.depends_on.clone());
    if impact.partitions.count > 0 {
        let partitions = counted(impact.partitions.count, "partition");
        notes.push(Text::from(format!("{partitions} of the selected devices can still be allocated")));
    }
    notes
}
