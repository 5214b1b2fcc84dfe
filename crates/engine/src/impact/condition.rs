//! The condition that the eviction controller would write into a rule's status.

/// The condition `EvictionInProgress` as the controller first writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleCondition {
    /// Status of the condition: `True` or `False`.
    pub status: &'static str,
    /// Machine-readable reason, in one word.
    pub reason: &'static str,
    /// Message for users; can be empty.
    pub message: String,
}

/// The type of the condition that the eviction controller writes into the status of a rule.
pub const EVICTION_IN_PROGRESS: &str = "EvictionInProgress";

/// The numbers that the eviction controller reports for a rule.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ImpactCounts {
    /// Number of selected devices that current slices list.
    pub published: usize,
    /// Number of allocation results with selected devices; a device that several claims share counts for each.
    pub allocated: usize,
    /// Number of pods to be evicted, now or later.
    pub pods: usize,
    /// Number of namespaces of these pods.
    pub namespaces: usize,
}

/// Returns the first condition that the controller writes for a rule with this effect. `counts` are computed
/// as if the effect were NoExecute. If they are upper bounds, the message says so.
// upstream v1.36 Controller.maybeUpdateRuleStatus
pub(super) fn initial_condition(effect: &str, counts: ImpactCounts, are_upper_bounds: bool) -> RuleCondition {
    let counted = |count: usize, one: &str, many: &str| {
        let hedge = if are_upper_bounds { "up to " } else { "" };
        if count == 1 { format!("{hedge}{one}") } else { format!("{hedge}{count} {many}") }
    };
    let ImpactCounts { published, allocated, pods, namespaces } = counts;
    match effect {
        "NoExecute" if pods > 0 => {
            let pods = counted(pods, "1 pod needs", "pods need");
            let namespaces = counted(namespaces, "1 namespace", "different namespaces");
            let message = format!("{pods} to be evicted in {namespaces}.");
            RuleCondition { status: "True", reason: "PodsPendingEviction", message }
        }
        "NoExecute" => RuleCondition { status: "False", reason: "NotStarted", message: String::new() },
        "None" => {
            let published = counted(published, "1 published device", "published devices");
            let allocated = counted(allocated, "1 allocated device", "allocated devices");
            let pods = counted(pods, "1 pod", "pods");
            let namespaces = counted(namespaces, "1 namespace", "different namespaces");
            let message = format!(
                "{published} selected. {allocated} selected. {pods} would be evicted in {namespaces} if the effect was \
                 NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger an \
                 update."
            );
            RuleCondition { status: "False", reason: "NoEffect", message }
        }
        _ => RuleCondition {
            status: "False",
            reason: "OtherEffect",
            message: "Eviction only happens for the NoExecute effect.".to_owned(),
        },
    }
}
