//! Why a pod fares as it does: claim, device, taint, toleration, in one line each.

use std::fmt;

use super::eviction::{Source, Spared, Tolerance};
use super::record::{Allocated, Taint};

/// One reason. Texts are made when somebody reads them.
#[derive(Clone, Copy, Debug)]
pub struct Because<'s> {
    pub(super) namespace: &'s str,
    pub(super) claim: &'s str,
    pub(super) device: &'s Allocated,
    pub(super) what: What<'s>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What<'s> {
    /// The taint that was asked about; `acts`: it has the effect NoExecute.
    Taint { taint: &'s Taint, tolerance: Tolerance<'s>, acts: bool },
    /// Another taint, which evicts the pod earlier or all the same.
    Other { taint: &'s Taint, source: Source<'s>, tolerance: Tolerance<'s> },
    /// The controller does not look at the pod for that claim.
    Spared(Spared),
}

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Allocated { driver, pool, device, .. } = self.device;
        write!(f, "claim {}/{}, device {driver}/{pool}/{device}: ", self.namespace, self.claim)?;
        if let What::Taint { taint, .. } = self.what {
            write!(f, "taint {taint}, ")?;
        }
        self.verdict(f)
    }
}

/// The same where pod and taint are known: `claim, pool/device: no toleration`.
#[derive(Clone, Copy, Debug)]
pub struct Brief<'s>(pub Because<'s>);

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Allocated { pool, device, .. } = self.0.device;
        write!(f, "{}, {pool}/{device}: ", self.0.claim)?;
        self.0.verdict(f)
    }
}

impl Because<'_> {
    fn verdict(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            What::Taint { taint, tolerance, acts } => {
                if !acts {
                    f.write_str("evicts nothing; as NoExecute: ")?;
                }
                told(f, tolerance)?;
                let mut listed = self.device.tolerations.iter();
                if tolerance == Tolerance::No
                    && let Some(only) = listed.find(|toleration| toleration.schedules_only(taint))
                {
                    write!(f, " ({only} counts for scheduling only: its effect is empty)")?;
                }
                Ok(())
            }
            What::Other { taint, source, tolerance } => {
                match source {
                    Source::Rule(name) => write!(f, "taint {taint} of rule {name}, ")?,
                    Source::Slice(name) => write!(f, "taint {taint} of slice {name}, ")?,
                }
                told(f, tolerance)
            }
            What::Spared(why) => f.write_str(match why {
                Spared::NotScheduled => "the pod runs on no node yet",
                Spared::NotItsClaim => "the claim was made for another pod",
                Spared::NotReserved => "the claim is not reserved for this pod",
                Spared::ExtendedResource => {
                    "used through an extended resource, where the eviction controller does not look"
                }
                Spared::Deleting => "the pod is being deleted already",
            }),
        }
    }
}

fn told(f: &mut fmt::Formatter<'_>, tolerance: Tolerance<'_>) -> fmt::Result {
    match tolerance {
        Tolerance::No => f.write_str("no toleration"),
        Tolerance::For(toleration) | Tolerance::Forever(toleration) => write!(f, "toleration {toleration}"),
    }
}

impl Because<'_> {
    /// True if the taint that was asked about evicts the pod here, or would as NoExecute.
    pub(super) fn evicts(&self) -> bool {
        match self.what {
            What::Taint { taint, tolerance, .. } => super::eviction::when(taint, tolerance).is_some(),
            What::Other { .. } | What::Spared(_) => false,
        }
    }
}
