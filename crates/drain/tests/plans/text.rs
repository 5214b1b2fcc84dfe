//! Formats a plan as text, with one line for each item.

use std::fmt::Write as _;
use tollgate_drain::{DrainPlan, PlannedPod, PodDecision};

pub(crate) fn render(plan: &DrainPlan) -> String {
    let mut out = String::new();
    for rule in &plan.rules {
        let names: Vec<&str> = rule.selects.specified_names().map(|(_, name)| name).collect();
        _ = writeln!(out, "rule {}: {}, {} published", rule.name, names.join("/"), rule.published);
    }
    let devices: Vec<String> = plan.devices.iter().map(ToString::to_string).collect();
    _ = writeln!(out, "devices {}", devices.join(" "));
    for (number, wave) in plan.waves.iter().enumerate() {
        _ = write!(out, "wave {number}");
        if let Some(why) = &wave.limited_by {
            _ = write!(out, " ({why})");
        }
        _ = writeln!(out);
        for pod in wave.pods.iter().filter_map(|place| plan.pods.get(*place)) {
            let nodes = match &pod.fate {
                PodDecision::Moves { nodes, .. } => nodes.join(" or "),
                PodDecision::Stays { .. } => "it stays".to_owned(),
            };
            _ = writeln!(out, "  {} to {}", pod_line(pod), if nodes.is_empty() { "no node" } else { &nodes });
        }
        if !wave.restarts.is_empty() {
            _ = writeln!(out, "  restarts {}", wave.restarts.join(" "));
        }
    }
    for pod in &plan.pods {
        let PodDecision::Stays { reason, why, remedy } = &pod.fate else { continue };
        let forced = if pod.is_forceable { ", can be forced" } else { "" };
        _ = writeln!(out, "stays ({}{forced}) {}\n  {why}\n  {remedy}", reason.name(), pod_line(pod));
    }
    for claim in &plan.claims_without_pods {
        let devices: Vec<String> = claim.devices.iter().map(ToString::to_string).collect();
        let users = if claim.users.is_empty() { "nobody".to_owned() } else { claim.users.join(", ") };
        _ = writeln!(
            out,
            "claim {}/{}: {}, used by {users}",
            claim.namespace,
            claim.claim,
            devices.join(" ")
        );
    }
    if let Some(what) = &plan.dominated_by {
        _ = writeln!(out, "dominated by {what}");
    }
    for note in &plan.notes {
        _ = writeln!(out, "note {note}");
    }
    out
}

/// A pod with the devices and claims that it uses, as one line.
fn pod_line(pod: &PlannedPod) -> String {
    let devices: Vec<&str> = pod.devices.iter().map(|device| device.device.as_str()).collect();
    let workload =
        pod.workload.as_ref().map_or("nothing".to_owned(), |of| format!("{} {}", of.kind, of.name));
    let budgets =
        if pod.budgets.is_empty() { String::new() } else { format!(", PDB {}", pod.budgets.join(" ")) };
    format!(
        "{}/{} of {workload} on {} with {} by {}{budgets}",
        pod.namespace,
        pod.name,
        if pod.node.is_empty() { "no node" } else { &pod.node },
        devices.join(" "),
        pod.claims.join(" ")
    )
}
