//! The plan of a drain as text: the verdict first, then the rules, the waves, the pods that stay and why, and notes.
//!
//! Every pod is named, however many there are: a user must be able to say what will happen to each of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::PlanReport;
use crate::cli::table;
use tollgate_drain::{DeviceId, DrainPlan, PlannedPod, PodDecision, StayReason, Wave};
use tollgate_formats::count::count_with_noun;
use tollgate_formats::gotime;
use tollgate_formats::sanitize::sanitize_as_line;

/// Maximum number of nodes that the table shows for the replacement of a pod.
const MAX_SHOWN_NODES: usize = 2;

/// Lines with the names of pods are wrapped at this number of characters.
const POD_LIST_WIDTH: usize = 110;

/// Returns the drain plan as text.
pub(super) fn plan_text(report: &PlanReport) -> String {
    let PlanReport { profile, at, samples, request, plan, .. } = report;
    let mut out = format!(
        "Drain plan ({}, at {}, {})\n",
        profile.name,
        gotime::rfc3339(*at),
        count_with_noun(*samples as usize, "course")
    );
    _ = writeln!(out, "{}", sanitize_as_line(&plan_summary(plan)));
    out.push_str(&rules_section(plan, &request.key));
    out.push_str(&waves_section(plan));
    out.push_str(&staying_pods_section(plan));
    out.push_str(&exhausted_budgets_section(plan));
    out.push_str(&claims_without_pods_section(plan));
    out.push_str(&forceable_section(plan));
    if !plan.notes.is_empty() {
        out.push_str("\nNotes:\n");
        plan.notes.iter().for_each(|note| _ = writeln!(out, "- {}", sanitize_as_line(note)));
    }
    out
}

/// Returns the PDBs of moving pods that allow no eviction in this state; empty if there are none.
fn exhausted_budgets_section(plan: &DrainPlan) -> String {
    let mut out = String::new();
    for budget in plan.budgets.iter().filter(|budget| budget.allowed <= 0) {
        let name = format!("{}/{}", budget.namespace, budget.name);
        let moves =
            |pod: &&PlannedPod| matches!(pod.fate, PodDecision::Moves { .. }) && pod.budgets.contains(&name);
        let pods = plan.pods.iter().filter(moves).count();
        if pods > 0 {
            _ = writeln!(out, "- {} ({})", sanitize_as_line(&name), count_with_noun(pods, "pod"));
        }
    }
    if out.is_empty() {
        out
    } else {
        format!("\nPDBs that allow no eviction now; the drain waits until they do:\n{out}")
    }
}

/// Returns the summary of a plan in one line: `40 devices, 37 pods: 31 move, 4 have no room, 2 unknown; 5 waves,
/// mainly because of PDB inference/chat`.
pub(super) fn plan_summary(plan: &DrainPlan) -> String {
    let mut out = format!("{}, ", count_with_noun(plan.devices.len(), "device"));
    let leaving = plan.pods.iter().filter(|pod| matches!(pod.fate, PodDecision::Moves { .. })).count();
    let lost = plan.pods.iter().filter(|pod| pod.is_evicted_for_good()).count();
    let moving = leaving - lost;
    if plan.pods.is_empty() {
        out.push_str("no pods");
    } else {
        let verb = if moving == 1 { "moves" } else { "move" };
        _ = write!(out, "{}: {moving} {verb}", count_with_noun(plan.pods.len(), "pod"));
    }
    if lost > 0 {
        let verb = if lost == 1 { "is" } else { "are" };
        _ = write!(out, ", {lost} {verb} evicted for good");
    }
    let mut reasons: BTreeMap<StayReason, usize> = BTreeMap::new();
    for pod in &plan.pods {
        if let PodDecision::Stays { reason, .. } = pod.fate {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    for (reason, count) in reasons {
        _ = write!(out, ", {count} {}", stay_reason_after_count(reason, count));
    }
    match plan.claims_without_pods.len() {
        0 => {}
        claims => _ = write!(out, "; {} without pods", count_with_noun(claims, "claim")),
    }
    if !plan.waves.is_empty() {
        _ = write!(out, "; {}", count_with_noun(plan.waves.len(), "wave"));
    }
    if let Some(what) = &plan.dominated_by {
        _ = write!(out, ", mainly because of {what}");
    }
    out
}

/// Returns why pods stay, to follow their number: `have no room`.
fn stay_reason_after_count(reason: StayReason, count: usize) -> &'static str {
    let (one, several) = match reason {
        StayReason::NoRoom => ("has no room", "have no room"),
        StayReason::FitsSometimes => ("fits only sometimes", "fit only sometimes"),
        StayReason::Unknown => ("unknown", "unknown"),
        StayReason::NamedClaim => ("uses a named claim", "use a named claim"),
        StayReason::PodGroupClaim => ("uses a claim of a PodGroup", "use a claim of a PodGroup"),
        StayReason::Budget => ("blocked by a PDB", "blocked by a PDB"),
        StayReason::SeveralBudgets => ("has several PDBs", "have several PDBs"),
        StayReason::GroupBudget => ("blocked by the PDBs of its group", "blocked by the PDBs of their group"),
        StayReason::JobLimit => ("would fail its Job", "would fail their Job"),
        StayReason::Tolerates => ("tolerates the taint", "tolerate the taint"),
        StayReason::DaemonSet => ("belongs to a DaemonSet", "belong to DaemonSets"),
        StayReason::Mirror => ("is a static pod", "are static pods"),
        StayReason::NoController => ("has no controller", "have no controller"),
        StayReason::EmptyDir => ("has emptyDir data", "have emptyDir data"),
        StayReason::DoNotDisrupt => ("must not be disrupted", "must not be disrupted"),
        StayReason::Terminating => ("already terminating", "already terminating"),
        StayReason::Other => ("stays for another reason", "stay for other reasons"),
    };
    if count == 1 { one } else { several }
}

/// Returns why a pod stays, to follow its name: `has no room`.
pub(super) fn stay_reason_after_name(reason: StayReason) -> &'static str {
    match reason {
        StayReason::Unknown => "has an unknown outcome",
        StayReason::Budget => "is blocked by a PDB",
        StayReason::GroupBudget => "is blocked by the PDBs of its group",
        StayReason::Terminating => "is already terminating",
        _ => stay_reason_after_count(reason, 1),
    }
}

fn rules_section(plan: &DrainPlan, key: &str) -> String {
    if plan.rules.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = plan
        .rules
        .iter()
        .map(|rule| vec![rule.name.clone(), rule.selects.to_string(), rule.published.to_string()])
        .collect();
    format!(
        "\nDeviceTaintRules with the taint {}:NoSchedule:\n{}",
        sanitize_as_line(key),
        table::format_table(&["RULE", "SELECTS", "DEVICES"], &rows)
    )
}

/// Returns the table of pods that are evicted, one row each, and the limits that keep waves small.
fn waves_section(plan: &DrainPlan) -> String {
    let mut rows = Vec::new();
    for (number, wave) in plan.waves.iter().enumerate() {
        for pod in wave.pods.iter().filter_map(|place| plan.pods.get(*place)) {
            rows.push(vec![
                (number + 1).to_string(),
                namespaced_pod_name(pod),
                workload_text(pod),
                if pod.node.is_empty() { "-".to_owned() } else { pod.node.clone() },
                devices_text(pod),
                replacement_nodes_text(pod),
            ]);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let header = ["WAVE", "POD", "WORKLOAD", "NODE", "DEVICES", "GOES TO"];
    let lost = plan.pods.iter().filter(|pod| pod.is_evicted_for_good()).count();
    let title = match lost {
        0 => "Pods that move",
        _ if lost == rows.len() => "Pods that are evicted for good",
        _ => "Pods that move or are evicted for good",
    };
    let mut out = format!("\n{title}:\n{}", table::format_table(&header, &rows));
    for (waves, why) in size_limits_with_waves(&plan.waves) {
        _ = writeln!(out, "{waves}: {}", sanitize_as_line(why));
    }
    for (number, wave) in plan.waves.iter().enumerate().filter(|(_, wave)| !wave.restarts.is_empty()) {
        let pods = wave.restarts.join(", ");
        _ = writeln!(
            out,
            "wave {}: {} on other devices restart with their group: {}",
            number + 1,
            count_with_noun(wave.restarts.len(), "pod"),
            sanitize_as_line(&pods)
        );
    }
    out
}

/// Returns the limits on the size of waves, each with the consecutive waves that it applies to: `waves 2 to 4`.
fn size_limits_with_waves(waves: &[Wave]) -> Vec<(String, &str)> {
    let mut found: Vec<(usize, usize, &str)> = Vec::new();
    for (place, wave) in waves.iter().enumerate() {
        let Some(why) = wave.limited_by.as_deref() else { continue };
        match found.last_mut() {
            Some((_, last, known)) if *last == place && *known == why => *last = place + 1,
            _ => found.push((place + 1, place + 1, why)),
        }
    }
    let words = |(first, last, why): (usize, usize, _)| {
        let waves = match last - first {
            0 => format!("wave {first}"),
            1 => format!("waves {first} and {last}"),
            _ => format!("waves {first} to {last}"),
        };
        (waves, why)
    };
    found.into_iter().map(words).collect()
}

/// Returns namespace and name of a pod: `inference/chat-0`.
pub(super) fn namespaced_pod_name(pod: &PlannedPod) -> String {
    format!("{}/{}", pod.namespace, pod.name)
}

/// Returns kind and name of a pod's workload: `Deployment/chat`.
fn workload_text(pod: &PlannedPod) -> String {
    let workload = pod.workload.as_ref();
    workload.map_or_else(|| "-".to_owned(), |workload| format!("{}/{}", workload.kind, workload.name))
}

/// Returns the devices of a pod as text. Omits the pool if it has the name of the node, as most pools do.
fn devices_text(pod: &PlannedPod) -> String {
    let name = |id: &DeviceId| {
        if id.pool == pod.node { id.device.clone() } else { format!("{}/{}", id.pool, id.device) }
    };
    pod.devices.iter().map(name).collect::<Vec<_>>().join(" ")
}

/// Returns where the replacement of a pod goes: the most frequent nodes in the forecast, and the number of other
/// nodes.
fn replacement_nodes_text(pod: &PlannedPod) -> String {
    let PodDecision::Moves { nodes, .. } = &pod.fate else { return String::new() };
    match (nodes.as_slice(), &pod.workload) {
        ([], None) => "nowhere: nothing recreates it".to_owned(),
        ([], Some(_)) => "not known".to_owned(),
        (nodes, _) => {
            let shown: Vec<&str> = nodes.iter().take(MAX_SHOWN_NODES).map(String::as_str).collect();
            let more = nodes.len().saturating_sub(MAX_SHOWN_NODES);
            let more = if more == 0 { String::new() } else { format!(" or {more} more") };
            format!("{}{more}", shown.join(" or "))
        }
    }
}

/// Returns the pods that stay, grouped by reason, with the explanation and what the user can do.
fn staying_pods_section(plan: &DrainPlan) -> String {
    let mut reasons: BTreeMap<StayReason, BTreeMap<(&str, &str), Vec<&PlannedPod>>> = BTreeMap::new();
    for pod in &plan.pods {
        if let PodDecision::Stays { reason, why, remedy } = &pod.fate {
            reasons.entry(*reason).or_default().entry((why, remedy)).or_default().push(pod);
        }
    }
    let mut out = String::new();
    for (reason, causes) in reasons {
        let count = causes.values().map(Vec::len).sum();
        let stays = if count == 1 { "stays" } else { "stay" };
        let words =
            if count == 1 { stay_reason_after_name(reason) } else { stay_reason_after_count(reason, count) };
        _ = writeln!(out, "\n{} {stays} ({words}):", count_with_noun(count, "pod"));
        for ((why, remedy), pods) in causes {
            out.push_str(&wrapped_pod_names_by_workload(&pods));
            _ = writeln!(out, "    why: {}", sanitize_as_line(why));
            _ = writeln!(out, "    what to do: {}", sanitize_as_line(remedy));
        }
    }
    out
}

/// Returns the names of pods, wrapped, with a paragraph for each workload: `  Deployment inference/chat: chat-1,
/// chat-2`.
fn wrapped_pod_names_by_workload(pods: &[&PlannedPod]) -> String {
    let mut workloads: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for pod in pods {
        let of = match &pod.workload {
            Some(workload) => format!("{} {}/{}", workload.kind, pod.namespace, workload.name),
            None => format!("pods in {}", pod.namespace),
        };
        workloads.entry(of).or_default().push(&pod.name);
    }
    let mut out = String::new();
    for (workload, pods) in workloads {
        let mut text = format!("  {}:", sanitize_as_line(&workload));
        for (place, pod) in pods.iter().enumerate() {
            let pod = sanitize_as_line(pod);
            if text.chars().count() + pod.chars().count() > POD_LIST_WIDTH {
                _ = writeln!(out, "{text}");
                "     ".clone_into(&mut text);
            }
            let comma = if place + 1 < pods.len() { "," } else { "" };
            _ = write!(text, " {pod}{comma}");
        }
        _ = writeln!(out, "{text}");
    }
    out
}

fn claims_without_pods_section(plan: &DrainPlan) -> String {
    let claims = &plan.claims_without_pods;
    if claims.is_empty() {
        return String::new();
    }
    let hold = if claims.len() == 1 { "holds" } else { "hold" };
    let mut out = format!(
        "\n{} {hold} selected devices, and no pod uses them; a drain cannot free these devices:\n",
        count_with_noun(claims.len(), "claim")
    );
    for holder in claims {
        let devices: Vec<String> = holder.devices.iter().map(ToString::to_string).collect();
        let users = match holder.users.as_slice() {
            [] => "no users".to_owned(),
            users => format!("reserved for {}", users.join(", ")),
        };
        let text = format!("{}/{}: {} ({users})", holder.namespace, holder.claim, devices.join(", "));
        _ = writeln!(out, "  {}", sanitize_as_line(&text));
    }
    out
}

/// Returns the pods that `--force-after` would delete.
fn forceable_section(plan: &DrainPlan) -> String {
    let pods: Vec<&PlannedPod> = plan.pods.iter().filter(|pod| pod.is_forceable).collect();
    if pods.is_empty() {
        return String::new();
    }
    format!(
        "\n--force-after would delete {}:\n{}",
        count_with_noun(pods.len(), "pod"),
        wrapped_pod_names_by_workload(&pods)
    )
}
