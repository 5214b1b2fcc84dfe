//! The events of a drain in words.

use super::ContinueAndUndoCommands;
use crate::cli::drain::online::event::{Event, HoldingClaim, PodRef};
use tollgate_formats::count::count_with_noun;

/// Returns the lines of text for an event.
pub(super) fn event_lines(event: &Event, next: &ContinueAndUndoCommands) -> Vec<String> {
    let one = match event {
        Event::Preflight { check, problem: None } => format!("preflight: {check}: ok"),
        Event::Preflight { check, problem: Some(problem) } => format!("preflight: {check}: {problem}"),
        Event::LockWaits { holder, seconds } => {
            format!("waiting for the lock: held by {holder}; taken over if it is not renewed for {seconds} s")
        }
        Event::Locked { lease, holder } => format!("locked: Lease {lease} is held by {holder}"),
        Event::RuleCreated { rule, devices } => {
            format!("rule {rule}: created with effect None for {}", count_with_noun(*devices, "device"))
        }
        Event::RuleFound { rule, effect } => {
            format!("rule {rule}: exists with effect {effect}")
        }
        Event::RuleConfirmed { rule, message } => {
            format!("rule {rule}: the eviction controller reports: {message}")
        }
        Event::RuleClosed { rule } => {
            format!("rule {rule}: set to NoSchedule; new pods no longer get these devices")
        }
        Event::RuleWouldBeDeleted { rule, effect } => {
            format!("rule {rule}: would be deleted; it exists with effect {effect}")
        }
        Event::RuleDeleted { rule } => format!("rule {rule}: deleted"),
        Event::PlanChanged { differences } => {
            return differences.iter().map(|what| format!("plan changed: {what}")).collect();
        }
        Event::PodJoined { pod } => {
            format!("pod {pod} got a selected device while the devices were being closed; it is drained, too")
        }
        Event::WaveStarted { wave, pods } => format!("wave {wave} starts: {}", join_pods(pods)),
        Event::PodEvicted { wave, pod } => format!("wave {wave}: pod {pod} evicted"),
        Event::PodWaits { wave, pod, why } => format!("wave {wave}: pod {pod} is not evicted yet: {why}"),
        Event::PodGone { wave, pod } => format!("wave {wave}: pod {pod} was gone before it was evicted"),
        Event::DeletionWaits { pods, seconds } => format!(
            "not evicted: {}; will be deleted in {}, because of --force-after",
            join_pods(pods),
            kubectl_duration(*seconds)
        ),
        Event::PodDeleted { pod } => format!("pod {pod} deleted, because of --force-after"),
        Event::PodReleased { wave, pod } => {
            format!("wave {wave}: pod {pod} ended, and its claims released their devices")
        }
        Event::ReplacementBound { wave, pod, node } => {
            format!("wave {wave}: new pod {pod} is bound to {node}")
        }
        Event::ReplacementReady { wave, pod, node } => {
            format!("wave {wave}: new pod {pod} is Ready on {node}")
        }
        Event::WaveFinished { wave, seconds } => {
            format!("wave {wave} finished after {}", kubectl_duration(*seconds))
        }
        Event::Proof { look, holding } if holding.is_empty() => {
            format!("proof {look} of 2: no claim holds these devices")
        }
        Event::Proof { look, holding } => {
            format!("proof {look} of 2: {}", claims_still_hold_text(holding))
        }
        Event::Checked { devices, closed, holding } => {
            let first = if holding.is_empty() {
                format!("no claim holds {}", these_devices_in_words(*devices))
            } else {
                claims_still_hold_text(holding)
            };
            let access = if *closed {
                "the rules of this drain keep new pods off these devices"
            } else {
                "the rules of this drain do not close these devices; new pods can get them unless other taints keep them off"
            };
            return std::iter::once(first).chain(claim_lines(holding)).chain([access.to_owned()]).collect();
        }
        Event::Stopped { why, evicted, deleted, left, rules, go_on, go_back } => {
            let rules = match rules {
                0 => "no rule of this drain is left, so new pods can get the devices".to_owned(),
                1 => "1 rule stays as it is".to_owned(),
                rules => format!("{rules} rules stay as they are"),
            };
            let done = format!(
                "done: {}; left: {}; {rules}",
                moved_pods_text(*evicted, *deleted),
                count_with_noun(*left, "pod")
            );
            let go_back = go_back.iter().map(|go_back| format!("to go back: {go_back}"));
            let lines = [format!("stopped: {why}"), done, format!("to go on: {go_on}")];
            return lines.into_iter().chain(go_back).collect();
        }
        Event::Finished { devices, evicted, deleted, seconds, holding } => {
            let done = format!("{} in {}", moved_pods_text(*evicted, *deleted), kubectl_duration(*seconds));
            return finished_lines(*devices, &done, holding, next);
        }
    };
    vec![one]
}

fn finished_lines(
    devices: usize,
    done: &str,
    holding: &[HoldingClaim],
    next: &ContinueAndUndoCommands,
) -> Vec<String> {
    if holding.is_empty() {
        return vec![
            format!("no claim holds {}; {done}", these_devices_in_words(devices)),
            format!("the rules still keep new pods off the devices; to open them again: {}", next.go_back),
        ];
    }
    let mut lines = vec![format!("{}; {done}", claims_still_hold_text(holding))];
    lines.extend(claim_lines(holding));
    lines.push(format!("to go on, do what the plan says for the pods that stay, then run: {}", next.go_on));
    lines.push(format!("to go back: {}", next.go_back));
    lines
}

/// Returns what a run did with pods: `7 pods evicted, 1 pod deleted`.
fn moved_pods_text(evicted: usize, deleted: usize) -> String {
    let evictions = format!("{} evicted", count_with_noun(evicted, "pod"));
    if deleted == 0 { evictions } else { format!("{evictions}, {} deleted", count_with_noun(deleted, "pod")) }
}

/// Returns the devices of a drain in words: `these 8 devices`.
fn these_devices_in_words(devices: usize) -> String {
    if devices == 1 { "this device".to_owned() } else { format!("these {devices} devices") }
}

/// Returns a line for each claim that still holds devices.
fn claim_lines(holding: &[HoldingClaim]) -> impl Iterator<Item = String> {
    holding.iter().map(|holder| {
        let HoldingClaim { namespace, claim, devices, users } = holder;
        let users = if users.is_empty() { "no users".to_owned() } else { users.join(", ") };
        format!("claim {namespace}/{claim} holds {} ({users})", devices.join(", "))
    })
}

fn claims_still_hold_text(holding: &[HoldingClaim]) -> String {
    let hold = if holding.len() == 1 { "holds" } else { "hold" };
    format!("{} still {hold} devices", count_with_noun(holding.len(), "claim"))
}

fn join_pods(pods: &[PodRef]) -> String {
    pods.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns a duration in the form of kubectl: `1h2m3s`.
pub(super) fn kubectl_duration(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds}s"),
        (hours, minutes, seconds) => format!("{hours}h{minutes}m{seconds}s"),
    }
}
