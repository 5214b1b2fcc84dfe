//! The reasons why a pod is or is not evicted: claim, device, taint and toleration, in one line each.

use std::fmt;

use super::eviction::{NotEvictedReason, TaintSource, Tolerance};
use super::record::{AllocatedDevice, Taint};

/// The reason why a device of a claim does or does not evict a pod.
#[derive(Clone, Copy, Debug)]
pub struct OutcomeReason<'s> {
    /// Namespace of the claim.
    pub namespace: &'s str,
    /// Name of the claim.
    pub claim: &'s str,
    pub device: &'s AllocatedDevice,
    /// What decides.
    pub kind: ReasonKind<'s>,
}

/// What decides about a pod for one device: a taint and how long it is tolerated, or that the controller ignores the
/// pod.
#[derive(Clone, Copy, Debug)]
pub enum ReasonKind<'s> {
    /// The taint of the proposed change. `evicts` is true if its effect is NoExecute.
    ProposedTaint { taint: &'s Taint, tolerance: Tolerance<'s>, evicts: bool },
    /// Another taint, which evicts the pod earlier or in any case.
    OtherTaint { taint: &'s Taint, source: TaintSource<'s>, tolerance: Tolerance<'s>, is_conditional: bool },
    /// The controller ignores the pod for that claim.
    NotEvicted(NotEvictedReason),
}

impl OutcomeReason<'_> {
    /// Returns why the pod is evicted or not, without claim, device and taint.
    fn explanation(&self) -> String {
        match self.kind {
            ReasonKind::ProposedTaint { taint, tolerance, evicts } => {
                let hedge = if evicts { "" } else { "not evicted; with effect NoExecute: " };
                let mut listed = self.device.copied.iter().filter(|_| tolerance == Tolerance::No);
                let only = listed.find(|toleration| toleration.tolerates_scheduling_only(taint));
                let note = only
                    .map(|only| format!(" ({only} applies to scheduling only: its effect is not set)"))
                    .unwrap_or_default();
                format!("{hedge}{tolerance}{note}")
            }
            ReasonKind::OtherTaint { taint, source, tolerance, is_conditional } => {
                let (kind, name) = match source {
                    TaintSource::Rule(rule) => ("rule", &*rule.name),
                    TaintSource::Slice(name) => ("slice", name),
                    TaintSource::Patch(patch) => ("patch", &*patch.name),
                };
                let condition = if is_conditional { " (if its class and selectors match)" } else { "" };
                format!("taint {taint} of {kind} {name}{condition}, {tolerance}")
            }
            ReasonKind::NotEvicted(why) => match why {
                NotEvictedReason::NotScheduled => "the pod is not scheduled yet",
                NotEvictedReason::NotItsClaim => "the claim was created for another pod",
                NotEvictedReason::NotReserved => "the claim is not reserved for this pod",
                NotEvictedReason::ExtendedResource => {
                    "used through an extended resource, which the eviction controller does not check"
                }
                NotEvictedReason::Deleting => "the pod is already being deleted",
            }
            .to_owned(),
        }
    }

    /// Returns the reason where pod and taint are already shown: `claim, pool/device: no toleration`. `names_claim` is
    /// false for a pod that has only one claim.
    pub fn short_text(&self, names_claim: bool) -> String {
        let AllocatedDevice { pool, device, .. } = self.device;
        let (claim, comma) = if names_claim { (self.claim, ", ") } else { ("", "") };
        format!("{claim}{comma}{pool}/{device}: {}", self.explanation())
    }
}

impl fmt::Display for OutcomeReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AllocatedDevice { driver, pool, device, .. } = self.device;
        write!(f, "claim {}/{}, device {driver}/{pool}/{device}: ", self.namespace, self.claim)?;
        if let ReasonKind::ProposedTaint { taint, .. } = self.kind {
            write!(f, "taint {taint}, ")?;
        }
        f.write_str(&self.explanation())
    }
}

/// Writes `no toleration`, or the toleration that decides for how long the taint is tolerated.
impl fmt::Display for Tolerance<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tolerance::No => f.write_str("no toleration"),
            Tolerance::Forever(toleration) if toleration.seconds.is_some() => {
                write!(
                    f,
                    "toleration {toleration} (forever: without an effect, tolerationSeconds is ignored)"
                )
            }
            Tolerance::For(toleration, _) | Tolerance::Forever(toleration) => {
                write!(f, "toleration {toleration}")
            }
        }
    }
}
