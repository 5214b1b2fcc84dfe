//! The reasons why a pod is or is not evicted: claim, device, taint and toleration, in one line each.

use std::fmt;

use super::eviction::{NotEvictedReason, TaintSource, Tolerance};
use super::record::{AllocatedDevice, Taint};

/// The reason why a device of a claim does or does not evict a pod.
#[derive(Clone, Copy, Debug)]
pub struct OutcomeReason<'s> {
    pub(super) namespace: &'s str,
    pub(super) claim: &'s str,
    pub(super) device: &'s AllocatedDevice,
    pub(super) kind: ReasonKind<'s>,
}

/// What decides about a pod for one device: a taint and how long it is tolerated, or that the controller ignores the
/// pod.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReasonKind<'s> {
    /// The taint of the proposed change. `evicts` is true if its effect is NoExecute.
    ProposedTaint { taint: &'s Taint, tolerance: Tolerance<'s>, evicts: bool },
    /// Another taint, which evicts the pod earlier or in any case.
    OtherTaint { taint: &'s Taint, source: TaintSource<'s>, tolerance: Tolerance<'s>, is_conditional: bool },
    /// The controller ignores the pod for that claim.
    NotEvicted(NotEvictedReason),
}

/// The parts of an [`OutcomeReason`] as separate values, for JSON output.
#[derive(Clone, Copy, Debug)]
pub struct ReasonParts<'s> {
    /// Namespace and name of the claim.
    pub claim: (&'s str, &'s str),
    /// Driver, pool and name of the device.
    pub device: [&'s str; 3],
    /// The taint, if a taint is the reason.
    pub taint: Option<&'s Taint>,
    /// The origin of a taint other than the proposed one.
    pub source: Option<TaintSource<'s>>,
    /// How long the taint is tolerated.
    pub tolerance: Option<Tolerance<'s>>,
    /// Why the controller ignores the pod for this claim.
    pub not_evicted: Option<&'static str>,
}

impl<'s> OutcomeReason<'s> {
    /// Returns the parts of the reason as separate values, for JSON output.
    pub fn parts(&self) -> ReasonParts<'s> {
        let none = ReasonParts {
            claim: (self.namespace, self.claim),
            device: [&self.device.driver, &self.device.pool, &self.device.device],
            taint: None,
            source: None,
            tolerance: None,
            not_evicted: None,
        };
        match self.kind {
            ReasonKind::ProposedTaint { taint, tolerance, .. } => {
                ReasonParts { taint: Some(taint), tolerance: Some(tolerance), ..none }
            }
            ReasonKind::OtherTaint { taint, source, tolerance, .. } => {
                ReasonParts { taint: Some(taint), source: Some(source), tolerance: Some(tolerance), ..none }
            }
            ReasonKind::NotEvicted(why) => ReasonParts { not_evicted: Some(why.name()), ..none },
        }
    }

    /// Writes why the pod is evicted or not, without claim, device and taint, which the caller writes.
    fn write_eviction_reason(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ReasonKind::ProposedTaint { taint, tolerance, evicts } => {
                if !evicts {
                    f.write_str("not evicted; with effect NoExecute: ")?;
                }
                write_tolerance(f, tolerance)?;
                let mut listed = self.device.copied.iter();
                if tolerance == Tolerance::No
                    && let Some(only) = listed.find(|toleration| toleration.tolerates_scheduling_only(taint))
                {
                    write!(f, " ({only} applies to scheduling only: its effect is not set)")?;
                }
                Ok(())
            }
            ReasonKind::OtherTaint { taint, source, tolerance, is_conditional } => {
                write!(f, "taint {taint} of ")?;
                match source {
                    TaintSource::Rule(rule) => write!(f, "rule {}", rule.name)?,
                    TaintSource::Slice(name) => write!(f, "slice {name}")?,
                    TaintSource::Patch(patch) => write!(f, "patch {}", patch.name)?,
                }
                f.write_str(if is_conditional { " (if its class and selectors match), " } else { ", " })?;
                write_tolerance(f, tolerance)
            }
            ReasonKind::NotEvicted(why) => f.write_str(match why {
                NotEvictedReason::NotScheduled => "the pod is not scheduled yet",
                NotEvictedReason::NotItsClaim => "the claim was created for another pod",
                NotEvictedReason::NotReserved => "the claim is not reserved for this pod",
                NotEvictedReason::ExtendedResource => {
                    "used through an extended resource, which the eviction controller does not check"
                }
                NotEvictedReason::Deleting => "the pod is already being deleted",
            }),
        }
    }
}

impl fmt::Display for OutcomeReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AllocatedDevice { driver, pool, device, .. } = self.device;
        write!(f, "claim {}/{}, device {driver}/{pool}/{device}: ", self.namespace, self.claim)?;
        if let ReasonKind::ProposedTaint { taint, .. } = self.kind {
            write!(f, "taint {taint}, ")?;
        }
        self.write_eviction_reason(f)
    }
}

/// Short form where pod and taint are already shown: `claim, pool/device: no toleration`.
#[derive(Clone, Copy, Debug)]
pub struct ShortReason<'s> {
    pub reason: OutcomeReason<'s>,
    /// True to include the name of the claim. It is omitted if the pod has only one claim.
    pub names_claim: bool,
}

impl fmt::Display for ShortReason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AllocatedDevice { pool, device, .. } = self.reason.device;
        if self.names_claim {
            write!(f, "{}, ", self.reason.claim)?;
        }
        write!(f, "{pool}/{device}: ")?;
        self.reason.write_eviction_reason(f)
    }
}

/// Writes `no toleration`, or the toleration that decides for how long the taint is tolerated.
fn write_tolerance(f: &mut fmt::Formatter<'_>, tolerance: Tolerance<'_>) -> fmt::Result {
    match tolerance {
        Tolerance::No => f.write_str("no toleration"),
        Tolerance::Forever(toleration) if toleration.seconds.is_some() => {
            write!(f, "toleration {toleration} (forever: without an effect, tolerationSeconds is ignored)")
        }
        Tolerance::For(toleration, _) | Tolerance::Forever(toleration) => {
            write!(f, "toleration {toleration}")
        }
    }
}
