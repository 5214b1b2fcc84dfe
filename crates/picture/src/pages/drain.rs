//! The page of `tollgate drain --dry-run`: the plan of a drain, wave by wave.

use maud::{Markup, html};
use serde::Deserialize;

use super::{Record, TABLE_BYTES, capacity, listed, notes, pod_name, tile_class, tiles, workload};
use crate::frame::{Frame, Page, counted, grouped};
use crate::map::{Named, Namespaced};
use crate::table::{DRAIN_PODS, Table};
use crate::text::{Text, namespaced, unbroken};

#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Plan {
    profile: Text,
    at: Text,
    targets: Vec<Text>,
    key: Text,
    verdict: Text,
    rules: Vec<Rule>,
    pods: Vec<Pod>,
    waves: Vec<Wave>,
    claims_without_pods: Vec<Claim>,
    dominated_by: Option<Text>,
    notes: Vec<Text>,
    totals: Totals,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Rule {
    name: Text,
    driver: Option<Text>,
    pool: Option<Text>,
    device: Option<Text>,
    published: usize,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Pod {
    #[serde(flatten)]
    name: Namespaced,
    node: Text,
    workload: Option<Named>,
    devices: Vec<Device>,
    budgets: Vec<Text>,
    fate: Text,
    wave: usize,
    nodes: Vec<Text>,
    why: Text,
    remedy: Text,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Device {
    driver: Text,
    pool: Text,
    device: Text,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Wave {
    limited_by: Option<Text>,
    restarts: Vec<Text>,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Claim {
    namespace: Text,
    claim: Text,
    devices: Vec<Device>,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Totals {
    devices: usize,
    moving: usize,
    staying: usize,
    waves: usize,
}

const CAPACITY_NOTE: &str =
    "After: the devices are closed, and each pod that moves has as many devices of the class elsewhere.";

/// Maximum number of pods in a lane that are written out; the table lists all of them.
const MAX_CHIPS: usize = 60;
/// Maximum number of nodes of a pod that are written out.
const MAX_NODES: usize = 2;
/// Maximum size in bytes of the lanes of all waves.
const LANES_BYTES: usize = 1_000_000;

/// The page for the plan of `drain -o json`.
pub fn drain(record: &Record<'_>, page: &Page) -> serde_json::Result<String> {
    let plan: Plan = serde_json::from_str(record.json)?;
    let totals = &plan.totals;
    let title = format!("Drain of {}", joined(&plan.targets));
    let frame = Frame {
        page,
        title: &title,
        lead: html! { strong { (plan.verdict) } "." },
        profile: &plan.profile,
        at: &plan.at,
        body: html! {
            (tiles(&[
                ("calm", totals.devices, "devices to free"),
                ("good", totals.moving, "pods move"),
                (tile_class(totals.staying), totals.staying, "pods stay"),
                ("calm", totals.waves, "waves"),
                (tile_class(plan.claims_without_pods.len()), plan.claims_without_pods.len(), "claims without pods"),
            ]))
            section {
                h2 { "Waves" }
                @if !plan.waves.is_empty() { ul.notes {
                    li { "The waves run from top to bottom. A wave starts when the replacements of the previous wave are Ready." }
                    li { "Wave 1 moves one pod, so that a mistake in the plan affects only this pod." }
                    li {
                        "Each later wave moves at most one pod of a workload, so that the workload keeps running. Pods of a "
                        "group that restarts as a whole move together."
                        @if let Some(cause) = &plan.dominated_by {
                            " The number of waves depends mainly on " (cause) "."
                        }
                    }
                    li { "A replacement starts on one of the nodes after the arrow. The scheduler chooses it." }
                } }
                (lanes(&plan))
            }
            (capacity(&record.changes()?, CAPACITY_NOTE))
            section { h2 { "Pods" } (pods(&plan)) }
            (notes("Notes", &plan.notes))
        },
        read_more: &[
            ("understand/drain.md", "How a drain works, and why pods stay"),
            ("guides/drain-a-node.md", "Drain a node"),
            ("reference/json.md", "The same plan as JSON"),
        ],
    };
    Ok(frame.render())
}

fn joined(texts: &[Text]) -> String {
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    texts.join(", ")
}

/// The steps of the drain as lanes: rules close devices, pods leave in waves, and some pods stay.
fn lanes(plan: &Plan) -> Markup {
    let mut lanes = String::new();
    let mut shown = 0;
    for (index, wave) in plan.waves.iter().enumerate() {
        if lanes.len() > LANES_BYTES {
            break;
        }
        shown += 1;
        lanes.push_str(&wave_lane(index + 1, wave, plan).0);
    }
    let staying: Vec<&Pod> = plan.pods.iter().filter(|pod| &*pod.fate == "stays").collect();
    html! {
        ol.lanes {
            li.lane.close {
                div { h3 { "Close" } p.hint { (counted(plan.rules.len(), "DeviceTaintRule")) } }
                ul.chips {
                    @for rule in plan.rules.iter().take(MAX_CHIPS) {
                        li { b { (rule.name) } span { (plan.key) ":NoSchedule on " (selection(rule)) ", "
                            (counted(rule.published, "device")) } }
                    }
                }
                (omitted_count(plan.rules.len(), "rule"))
            }
            (maud::PreEscaped(lanes))
            @if shown < plan.waves.len() {
                li.lane { div { h3 { (counted(plan.waves.len() - shown, "more wave")) } } p.hint { "The table has their pods." } }
            }
            @if !staying.is_empty() || !plan.claims_without_pods.is_empty() {
                li.lane.stay {
                    div { h3 { "Stay" } p.hint { (counted(staying.len(), "pod")) } }
                    ul.chips {
                        @for pod in staying.iter().take(MAX_CHIPS) {
                            li { b { (namespaced(&pod.name)) } span { (pod.why) } span { (pod.remedy) } }
                        }
                        @for claim in plan.claims_without_pods.iter().take(MAX_CHIPS) {
                            li { b { "claim " (claim.namespace) "/" (claim.claim) }
                                span { "no pod uses this claim, so no eviction frees " (devices(&claim.devices)) } }
                        }
                    }
                    (omitted_count(staying.len(), "pod"))
                }
            }
        }
    }
}

fn wave_lane(number: usize, wave: &Wave, plan: &Plan) -> Markup {
    let is_of_wave = |pod: &&Pod| &*pod.fate == "moves" && pod.wave == number;
    let pods: Vec<&Pod> = plan.pods.iter().filter(is_of_wave).collect();
    html! {
        li.lane {
            div { h3 { "Wave " (grouped(number)) } p.hint { (counted(pods.len(), "pod")) } }
            ul.chips {
                @for pod in pods.iter().take(MAX_CHIPS) {
                    li {
                        b { (namespaced(&pod.name)) }
                        span { (unbroken(&pod.node)) " → " (destination(pod)) }
                    }
                }
            }
            (omitted_count(pods.len(), "pod"))
            @if let Some(limit) = wave.limited_by.as_ref().filter(|_| number > 1) { p.hint { "Limit of this wave: " (limit) } }
            @if !wave.restarts.is_empty() { p.hint { "Restarts too: " (listed(&wave.restarts, MAX_NODES)) } }
        }
    }
}

/// The nodes on one of which the replacement of a pod starts: `gpu-node-08 or gpu-node-05 or 4 more`.
fn destination(pod: &Pod) -> Markup {
    html! {
        @if pod.nodes.is_empty() { "not known" }
        @for (index, node) in pod.nodes.iter().take(MAX_NODES).enumerate() {
            @if index > 0 { " or " }
            (unbroken(node))
        }
        @if pod.nodes.len() > MAX_NODES { " or " (grouped(pod.nodes.len() - MAX_NODES)) " more" }
    }
}

/// The number of pods or nodes that are not written out.
fn omitted_count(count: usize, noun: &str) -> Markup {
    html! { @if count > MAX_CHIPS { p.hint { "and " (counted(count - MAX_CHIPS, &format!("more {noun}"))) } } }
}

fn selection(rule: &Rule) -> Markup {
    let any = Text::from("any");
    let [driver, pool, device] =
        [&rule.driver, &rule.pool, &rule.device].map(|part| part.as_ref().unwrap_or(&any));
    html! { (driver) "/" (pool) "/" (device) }
}

fn devices(devices: &[Device]) -> Markup {
    html! {
        @for (index, device) in devices.iter().take(MAX_NODES).enumerate() {
            @if index > 0 { ", " }
            (device.driver) "/" span.w { (device.pool) "/" (device.device) }
        }
        @if devices.len() > MAX_NODES { " and " (grouped(devices.len() - MAX_NODES)) " more" }
    }
}

fn pods(plan: &Plan) -> Markup {
    let mut table = Table::new(&DRAIN_PODS, TABLE_BYTES);
    for pod in &plan.pods {
        let moves = &*pod.fate == "moves";
        table.add([
            html! {
                (pod_name(&pod.name))
                @if !pod.budgets.is_empty() { p.hint { "PDB " (listed(&pod.budgets, MAX_NODES)) } }
            },
            workload(pod.workload.as_ref()),
            unbroken(&pod.node),
            html! { @if moves { (grouped(pod.wave)) } @else { span.tag.bad { "stays" } } },
            html! { @if moves { (destination(pod)) } @else { p { (pod.why) } p { (pod.remedy) } } },
            devices(&pod.devices),
        ]);
    }
    table.finish("Pods that use the devices, in the order in which they move", "No pod uses these devices.")
}
