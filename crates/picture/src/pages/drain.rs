//! The page of `tollgate drain --dry-run`: the plan of a drain, wave by wave.

use maud::{Markup, html};

use super::{
    ReportJson, TABLE_BYTE_BUDGET, class_changes_section, joined, listed_up_to, max_listed_nodes_per_pod,
    namespace_and_bold_name, notes, selector_as_driver_pool_device, tile_class_bad_unless_zero, tiles,
    workload,
};
use crate::frame::{HtmlPage, ReportProvenance, counted, group_thousands};
use crate::record::Record;
use crate::table::{DRAIN_PODS, Table};
use crate::text::{SafeText, first_parts_and_number_of_others, namespaced, unbroken};

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
    let (plan, class_changes) = record.parse()?;
    let plan = Record(plan.root());
    let [devices, moving, staying, waves] =
        ["devices", "moving", "staying", "waves"].map(|key| plan.get("totals").count(key));
    let claims = plan.list("claimsWithoutPods").len();
    let lost = plan.list("pods").filter(|pod| is_evicted_for_good(*pod)).count();
    let mut numbers = vec![
        ("calm", devices, "devices to free"),
        ("good", moving.saturating_sub(lost), "pods move"),
        (tile_class_bad_unless_zero(staying), staying, "pods stay"),
        ("calm", waves, "waves"),
        (tile_class_bad_unless_zero(claims), claims, "claims without pods"),
    ];
    if lost > 0 {
        numbers.insert(2, (tile_class_bad_unless_zero(lost), lost, "pods evicted for good"));
    }
    let title = format!("Drain of {}", joined(&plan.texts("targets")));
    let frame = HtmlPage {
        page,
        title: &title,
        lead: html! { strong { "Plan: nothing is changed yet." } " " (plan.text("verdict")) "." },
        profile: &plan.text("profile"),
        at: &plan.text("at"),
        body: html! {
            (how_to_drain(commands))
            (tiles(&numbers))
            section {
                h2 { "Waves" }
                @if plan.list("waves").len() > 0 { ul.notes {
                    li { "The waves run from top to bottom. A wave starts when the replacements of the previous wave are Ready." }
                    li { "Wave 1 moves one pod, so that a mistake in the plan affects only this pod." }
                    li {
                        "Each later wave moves at most one pod of a workload, so that the workload keeps running. This is a rule "
                        "of Tollgate, which applies in addition to PodDisruptionBudgets. Pods of a group that restarts as a "
                        "whole move together."
                        @if let Some(cause) = plan.text_if_any("dominatedBy") {
                            " The number of waves depends mainly on " (cause) "."
                        }
                    }
                    li {
                        "A replacement starts on one of the nodes after the arrow. The scheduler chooses it. The table of pods "
                        "lists more of the nodes."
                    }
                } }
                (lanes(plan))
            }
            (budgets(plan))
            (class_changes_section(&class_changes, DEVICES_AFTER_DRAIN_NOTE))
            section { h2 { "Pods" } (pods(plan)) }
            (notes("Notes", &plan.texts("notes")))
        },
        read_more: &[
            ("understand/drain.md", "How a drain works, and why pods stay"),
            ("guides/drain-a-node.md", "Drain a node"),
            ("reference/json.md", "The same plan as JSON"),
        ],
    };
    Ok(frame.render_page_or_part())
}

/// True if the pod is evicted and nothing recreates it.
fn is_evicted_for_good(pod: Record<'_>) -> bool {
    moves(pod) && !pod.get("workload").exists()
}

/// True if the pod is evicted.
fn moves(pod: Record<'_>) -> bool {
    pod.0.get("fate").text_is("moves")
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
fn budgets(plan: Record<'_>) -> Markup {
    let budgets = plan.list("budgets");
    html! {
        @if budgets.len() > 0 {
            section {
                h2 { "PodDisruptionBudgets" }
                p.hint {
                    "The drain evicts pods through the Eviction API, which respects PDBs. A pod whose PDB allows no eviction at the "
                    "moment waits."
                }
                ul.notes {
                    @for budget in budgets.clone().take(MAX_BUDGETS) {
                        @let (now, best) = (budget.int("disruptionsAllowed"), budget.int("disruptionsAllowedAtBest"));
                        li {
                            (namespace_and_bold_name(budget)) " allows " strong { (evictions(now)) " at once" }
                            @if best > now { " now, and " (evictions(best)) " when all of its pods are healthy" }
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

/// The steps of the drain as lanes: rules close devices, pods leave in waves, and some pods stay.
fn lanes(plan: Record<'_>) -> Markup {
    let (waves, pods) = (plan.list("waves"), plan.list("pods").collect::<Vec<_>>());
    let mut lanes = String::new();
    let mut shown = 0;
    for (index, wave) in waves.clone().enumerate() {
        if lanes.len() > LANES_BYTE_BUDGET {
            break;
        }
        shown += 1;
        lanes.push_str(&wave_lane(index + 1, wave, &pods).0);
    }
    let (rules, claims) = (plan.list("rules"), plan.list("claimsWithoutPods"));
    let staying: Vec<&Record<'_>> = pods.iter().filter(|pod| pod.0.get("fate").text_is("stays")).collect();
    html! {
        ol.lanes {
            li.lane.close {
                div { h3 { "Close" } p.hint { (counted(rules.len(), "DeviceTaintRule")) } }
                ul.chips {
                    @for rule in rules.clone().take(MAX_ITEMS_PER_LANE) {
                        li { b { (rule.text("name")) } span { span.w { (plan.text("key")) ":NoSchedule" } " on " (selector_as_driver_pool_device(rule)) ", "
                            (counted(rule.count("published"), "device")) } }
                    }
                }
                (note_of_items_beyond_lane_limit(rules.len(), "rule"))
            }
            (maud::PreEscaped(lanes))
            @if shown < waves.len() {
                li.lane { div { h3 { (counted(waves.len() - shown, "more wave")) } } p.hint { "The table has their pods." } }
            }
            @if !staying.is_empty() || claims.len() > 0 {
                li.lane.stay {
                    div { h3 { "Stay" } p.hint { (counted(staying.len(), "pod")) } }
                    ul.chips {
                        @for pod in staying.iter().take(MAX_ITEMS_PER_LANE) {
                            li { b { (namespaced(&pod.namespace_and_name())) } span { (pod.text("why")) } span { (pod.text("remedy")) } }
                        }
                        @for claim in claims.take(MAX_ITEMS_PER_LANE) {
                            li { b { "claim " (claim.text("namespace")) "/" (claim.text("claim")) }
                                span { "no pod uses this claim, so no eviction frees " (devices(claim)) } }
                        }
                    }
                    (note_of_items_beyond_lane_limit(staying.len(), "pod"))
                }
            }
        }
    }
}

fn wave_lane(number: usize, wave: Record<'_>, pods: &[Record<'_>]) -> Markup {
    let is_of_wave = |pod: &&Record<'_>| moves(**pod) && pod.count("wave") == number;
    let pods: Vec<&Record<'_>> = pods.iter().filter(is_of_wave).collect();
    let restarts = wave.texts("restarts");
    html! {
        li.lane {
            div { h3 { "Wave " (group_thousands(number)) } p.hint { (counted(pods.len(), "pod")) } }
            ul.chips {
                @for pod in pods.iter().take(MAX_ITEMS_PER_LANE) {
                    li {
                        b { (namespaced(&pod.namespace_and_name())) }
                        span { (unbroken(&pod.text("node"))) " → " (destination(**pod, MAX_NODES)) }
                    }
                }
            }
            (note_of_items_beyond_lane_limit(pods.len(), "pod"))
            @if let Some(limit) = wave.text_if_any("limitedBy").filter(|_| number > 1) { p.hint { "Limit of this wave: " (limit) } }
            @if !restarts.is_empty() { p.hint { "Restarts too: " (listed_up_to(&restarts, MAX_NODES)) } }
        }
    }
}

/// The nodes on one of which the replacement of a pod starts, at most that many: `gpu-node-08 or gpu-node-05 or 4 more`.
fn destination(pod: Record<'_>, most: usize) -> Markup {
    let nodes = pod.texts("nodes");
    html! {
        @if is_evicted_for_good(pod) {
            "nowhere: nothing recreates it"
        } @else if nodes.is_empty() {
            "not known"
        } @else {
            (first_parts_and_number_of_others(nodes.iter().map(|node| unbroken(node)), most, [" or ", " or "]))
        }
    }
}

/// `and 3 more pods` if `total` pods or rules are more than a lane lists; else nothing.
fn note_of_items_beyond_lane_limit(total: usize, noun: &str) -> Markup {
    html! { @if total > MAX_ITEMS_PER_LANE { p.hint { "and " (counted(total - MAX_ITEMS_PER_LANE, &format!("more {noun}"))) } } }
}

/// The devices of a pod or claim.
fn devices(holder: Record<'_>) -> Markup {
    let name = |device: Record<'_>| {
        let [driver, pool, device] = ["driver", "pool", "device"].map(|key| device.text(key));
        html! { (driver) "/" span.w { (pool) "/" (device) } }
    };
    first_parts_and_number_of_others(holder.list("devices").map(name), MAX_NODES, [", ", " and "])
}

fn pods(plan: Record<'_>) -> Markup {
    let mut table = Table::new(&DRAIN_PODS, TABLE_BYTE_BUDGET);
    let most = max_listed_nodes_per_pod(plan.list("pods").len(), MAX_NODES);
    for pod in plan.list("pods") {
        let moves = moves(pod);
        let budgets = pod.texts("budgets");
        table.add_row_or_count_omitted([
            html! {
                (namespace_and_bold_name(pod))
                @if !budgets.is_empty() { p.hint { "PDB " (listed_up_to(&budgets, MAX_NODES)) } }
            },
            workload(pod.get("workload")),
            unbroken(&pod.text("node")),
            devices(pod),
            html! { @if moves { (group_thousands(pod.count("wave"))) } @else { span.tag.bad { "stays" } } },
            html! { @if moves { (destination(pod, most)) } @else { p { (pod.text("why")) } p { (pod.text("remedy")) } } },
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
