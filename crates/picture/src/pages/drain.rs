//! The page of `tollgate drain --dry-run`: the plan of a drain, wave by wave.

use maud::{Markup, html};
use serde::Deserialize;

use super::{
    ReportJson, TABLE_BYTE_BUDGET, class_changes_section, listed_up_to, max_listed_nodes_per_pod,
    namespace_and_bold_name, notes, selector_as_driver_pool_device, tile_class_bad_unless_zero, tiles,
    workload,
};
use crate::frame::{HtmlPage, ReportProvenance, counted, group_thousands};
use crate::map::{KindAndName, NamespaceAndName};
use crate::table::{DRAIN_PODS, Table};
use crate::text::{SafeText, first_parts_and_number_of_others, namespaced, unbroken};

#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Plan {
    profile: SafeText,
    at: SafeText,
    targets: Vec<SafeText>,
    key: SafeText,
    verdict: SafeText,
    rules: Vec<DrainTaintRule>,
    pods: Vec<Pod>,
    waves: Vec<Wave>,
    budgets: Vec<DisruptionBudget>,
    claims_without_pods: Vec<ClaimWithoutPods>,
    dominated_by: Option<SafeText>,
    notes: Vec<SafeText>,
    totals: Totals,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct DrainTaintRule {
    name: SafeText,
    driver: Option<SafeText>,
    pool: Option<SafeText>,
    device: Option<SafeText>,
    published: usize,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Pod {
    #[serde(flatten)]
    name: NamespaceAndName,
    node: SafeText,
    workload: Option<KindAndName>,
    devices: Vec<Device>,
    budgets: Vec<SafeText>,
    fate: SafeText,
    wave: usize,
    nodes: Vec<SafeText>,
    why: SafeText,
    remedy: SafeText,
}

impl Pod {
    /// True if the pod is evicted and nothing recreates it.
    fn is_evicted_for_good(&self) -> bool {
        &*self.fate == "moves" && self.workload.is_none()
    }
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Device {
    driver: SafeText,
    pool: SafeText,
    device: SafeText,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Wave {
    limited_by: Option<SafeText>,
    restarts: Vec<SafeText>,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DisruptionBudget {
    #[serde(flatten)]
    name: NamespaceAndName,
    disruptions_allowed: i64,
    disruptions_allowed_at_best: i64,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct ClaimWithoutPods {
    namespace: SafeText,
    claim: SafeText,
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

const DEVICES_AFTER_DRAIN_NOTE: &str =
    "After: the devices are closed, and each pod that moves has as many devices of the class elsewhere.";

/// Maximum number of rules, pods or claims in a lane that are written out; the table lists all pods.
const MAX_ITEMS_PER_LANE: usize = 60;
/// Maximum number of nodes, devices or PDBs of a pod that are written out; the table of a small plan has more nodes.
const MAX_NODES: usize = 2;
/// Maximum number of PodDisruptionBudgets that are written out.
const MAX_BUDGETS: usize = 40;
/// Size in bytes of the lanes of waves after which no more lanes are written.
const LANES_BYTE_BUDGET: usize = 1_000_000;

/// The commands to carry out a plan and to undo it, quoted for a shell.
#[derive(Clone, Default, Debug)]
pub struct DrainCommands {
    pub run: SafeText,
    pub undo: SafeText,
    /// True if the plan is about a dump, so that the commands may act on another cluster.
    pub is_for_dump: bool,
}

/// The page for the plan of `drain -o json`. `commands` is `None` if the page that the plan is a part of has commands of
/// its own.
pub fn drain(
    record: &ReportJson<'_>,
    commands: Option<&DrainCommands>,
    page: &ReportProvenance,
) -> serde_json::Result<String> {
    let plan: Plan = serde_json::from_str(record.json)?;
    let totals = &plan.totals;
    let lost = plan.pods.iter().filter(|pod| pod.is_evicted_for_good()).count();
    let mut numbers = vec![
        ("calm", totals.devices, "devices to free"),
        ("good", totals.moving.saturating_sub(lost), "pods move"),
        (tile_class_bad_unless_zero(totals.staying), totals.staying, "pods stay"),
        ("calm", totals.waves, "waves"),
        (
            tile_class_bad_unless_zero(plan.claims_without_pods.len()),
            plan.claims_without_pods.len(),
            "claims without pods",
        ),
    ];
    if lost > 0 {
        numbers.insert(2, (tile_class_bad_unless_zero(lost), lost, "pods evicted for good"));
    }
    let title = format!("Drain of {}", joined(&plan.targets));
    let frame = HtmlPage {
        page,
        title: &title,
        lead: html! { strong { "Plan: nothing is changed yet." } " " (plan.verdict) "." },
        profile: &plan.profile,
        at: &plan.at,
        body: html! {
            (how_to_drain(commands))
            (tiles(&numbers))
            section {
                h2 { "Waves" }
                @if !plan.waves.is_empty() { ul.notes {
                    li { "The waves run from top to bottom. A wave starts when the replacements of the previous wave are Ready." }
                    li { "Wave 1 moves one pod, so that a mistake in the plan affects only this pod." }
                    li {
                        "Each later wave moves at most one pod of a workload, so that the workload keeps running. This is a rule "
                        "of Tollgate, which applies in addition to PodDisruptionBudgets. Pods of a group that restarts as a "
                        "whole move together."
                        @if let Some(cause) = &plan.dominated_by {
                            " The number of waves depends mainly on " (cause) "."
                        }
                    }
                    li {
                        "A replacement starts on one of the nodes after the arrow. The scheduler chooses it. The table of pods "
                        "lists more of the nodes."
                    }
                } }
                (lanes(&plan))
            }
            (budgets(&plan.budgets))
            (class_changes_section(&record.parse_class_changes()?, DEVICES_AFTER_DRAIN_NOTE))
            section { h2 { "Pods" } (pods(&plan)) }
            (notes("Notes", &plan.notes))
        },
        read_more: &[
            ("understand/drain.md", "How a drain works, and why pods stay"),
            ("guides/drain-a-node.md", "Drain a node"),
            ("reference/json.md", "The same plan as JSON"),
        ],
    };
    Ok(frame.render_page_or_part())
}

/// How to carry out the plan, and how to undo it.
fn how_to_drain(commands: Option<&DrainCommands>) -> Markup {
    let Some(DrainCommands { run, undo, is_for_dump }) = commands else {
        return html! {
            p.hint.how { "To carry out the plan, run " code { "tollgate drain" } " with these targets against the cluster." }
        };
    };
    html! {
        ul.notes.how {
            li { "To carry out the plan, run " code { (run) } "." }
            li { "To open the devices again, run " code { (undo) } ". Pods that have moved stay where they are." }
            @if *is_for_dump {
                li {
                    "This plan is about a dump, but the commands act on a cluster: the one of " code { "--context" }
                    ", or of the current kubeconfig context without it. Run the first command with " code { "--dry-run" }
                    " to see the plan for that cluster."
                }
            }
        }
    }
}

/// The PodDisruptionBudgets of the pods, and what they allow.
fn budgets(budgets: &[DisruptionBudget]) -> Markup {
    html! {
        @if !budgets.is_empty() {
            section {
                h2 { "PodDisruptionBudgets" }
                p.hint {
                    "The drain evicts pods through the Eviction API, which respects PDBs. A pod whose PDB allows no eviction at the "
                    "moment waits."
                }
                ul.notes {
                    @for DisruptionBudget { name, disruptions_allowed: now, disruptions_allowed_at_best: best } in budgets.iter().take(MAX_BUDGETS) {
                        li {
                            (namespace_and_bold_name(name)) " allows " strong { (evictions(*now)) " at once" }
                            @if best > now { " now, and " (evictions(*best)) " when all of its pods are healthy" }
                        }
                    }
                    @if budgets.len() > MAX_BUDGETS { li { "and " (counted(budgets.len() - MAX_BUDGETS, "more PDB")) } }
                }
            }
        }
    }
}

/// A number of evictions, such as `2 evictions`; a negative number is none.
fn evictions(count: i64) -> String {
    counted(usize::try_from(count).unwrap_or_default(), "eviction")
}

fn joined(texts: &[SafeText]) -> String {
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    texts.join(", ")
}

/// The steps of the drain as lanes: rules close devices, pods leave in waves, and some pods stay.
fn lanes(plan: &Plan) -> Markup {
    let mut lanes = String::new();
    let mut shown = 0;
    for (index, wave) in plan.waves.iter().enumerate() {
        if lanes.len() > LANES_BYTE_BUDGET {
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
                    @for rule in plan.rules.iter().take(MAX_ITEMS_PER_LANE) {
                        li { b { (rule.name) } span { span.w { (plan.key) ":NoSchedule" } " on " (selector_as_driver_pool_device([&rule.driver, &rule.pool, &rule.device])) ", "
                            (counted(rule.published, "device")) } }
                    }
                }
                (note_of_items_beyond_lane_limit(plan.rules.len(), "rule"))
            }
            (maud::PreEscaped(lanes))
            @if shown < plan.waves.len() {
                li.lane { div { h3 { (counted(plan.waves.len() - shown, "more wave")) } } p.hint { "The table has their pods." } }
            }
            @if !staying.is_empty() || !plan.claims_without_pods.is_empty() {
                li.lane.stay {
                    div { h3 { "Stay" } p.hint { (counted(staying.len(), "pod")) } }
                    ul.chips {
                        @for pod in staying.iter().take(MAX_ITEMS_PER_LANE) {
                            li { b { (namespaced(&pod.name)) } span { (pod.why) } span { (pod.remedy) } }
                        }
                        @for claim in plan.claims_without_pods.iter().take(MAX_ITEMS_PER_LANE) {
                            li { b { "claim " (claim.namespace) "/" (claim.claim) }
                                span { "no pod uses this claim, so no eviction frees " (devices(&claim.devices)) } }
                        }
                    }
                    (note_of_items_beyond_lane_limit(staying.len(), "pod"))
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
            div { h3 { "Wave " (group_thousands(number)) } p.hint { (counted(pods.len(), "pod")) } }
            ul.chips {
                @for pod in pods.iter().take(MAX_ITEMS_PER_LANE) {
                    li {
                        b { (namespaced(&pod.name)) }
                        span { (unbroken(&pod.node)) " → " (destination(pod, MAX_NODES)) }
                    }
                }
            }
            (note_of_items_beyond_lane_limit(pods.len(), "pod"))
            @if let Some(limit) = wave.limited_by.as_ref().filter(|_| number > 1) { p.hint { "Limit of this wave: " (limit) } }
            @if !wave.restarts.is_empty() { p.hint { "Restarts too: " (listed_up_to(&wave.restarts, MAX_NODES)) } }
        }
    }
}

/// The nodes on one of which the replacement of a pod starts, at most that many: `gpu-node-08 or gpu-node-05 or 4 more`.
fn destination(pod: &Pod, most: usize) -> Markup {
    html! {
        @if pod.is_evicted_for_good() {
            "nowhere: nothing recreates it"
        } @else if pod.nodes.is_empty() {
            "not known"
        } @else {
            (first_parts_and_number_of_others(pod.nodes.iter().map(|node| unbroken(node)), most, [" or ", " or "]))
        }
    }
}

/// `and 3 more pods` if `total` pods or rules are more than a lane lists; else nothing.
fn note_of_items_beyond_lane_limit(total: usize, noun: &str) -> Markup {
    html! { @if total > MAX_ITEMS_PER_LANE { p.hint { "and " (counted(total - MAX_ITEMS_PER_LANE, &format!("more {noun}"))) } } }
}

fn devices(devices: &[Device]) -> Markup {
    let name = |device: &Device| html! { (device.driver) "/" span.w { (device.pool) "/" (device.device) } };
    first_parts_and_number_of_others(devices.iter().map(name), MAX_NODES, [", ", " and "])
}

fn pods(plan: &Plan) -> Markup {
    let mut table = Table::new(&DRAIN_PODS, TABLE_BYTE_BUDGET);
    let most = max_listed_nodes_per_pod(plan.pods.len(), MAX_NODES);
    for pod in &plan.pods {
        let moves = &*pod.fate == "moves";
        table.add_row_or_count_omitted([
            html! {
                (namespace_and_bold_name(&pod.name))
                @if !pod.budgets.is_empty() { p.hint { "PDB " (listed_up_to(&pod.budgets, MAX_NODES)) } }
            },
            workload(pod.workload.as_ref()),
            unbroken(&pod.node),
            devices(&pod.devices),
            html! { @if moves { (group_thousands(pod.wave)) } @else { span.tag.bad { "stays" } } },
            html! { @if moves { (destination(pod, most)) } @else { p { (pod.why) } p { (pod.remedy) } } },
        ]);
    }
    table.finish("Pods that use the devices, in the order in which they move", "No pod uses these devices.")
}

#[cfg(test)]
mod tests {
    use crate::frame::ReportProvenance;
    use crate::pages::ReportJson;

    #[test]
    fn a_pod_that_nothing_recreates_does_not_move() {
        let json = r#"{"pods": [
            {"namespace": "a", "name": "web", "workload": {"kind": "Deployment", "name": "web"}, "fate": "moves", "wave": 1},
            {"namespace": "a", "name": "notebook", "workload": null, "fate": "moves", "wave": 2}],
            "waves": [{}, {}], "totals": {"moving": 2, "waves": 2}}"#;
        let record = ReportJson { json, capacity: None };
        let page =
            super::drain(&record, None, &ReportProvenance { is_part: true, ..ReportProvenance::default() });
        let page = page.expect("a page");
        for part in [
            "<strong>1</strong>pods move",
            "<strong>1</strong>pods evicted for good",
            "nowhere: nothing recreates it",
        ] {
            assert!(page.contains(part), "no {part:?} in {page}");
        }
    }
}
