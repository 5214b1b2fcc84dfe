//! Why a pod is evicted or not, as structured JSON. The member `because` says the same in words.

use crate::report::record::{Json, record};
use tollgate_engine::impact::{AllocatedDevice, OutcomeReason, ReasonKind, TaintSource, Tolerance};

/// Returns why a taint evicts a pod or not: claim, device, taint and toleration.
pub(super) fn reason_record(reason: &OutcomeReason<'_>) -> Json {
    let AllocatedDevice { driver, pool, device, .. } = reason.device;
    let (taint, source, tolerance, not_evicted) = match reason.kind {
        ReasonKind::ProposedTaint { taint, tolerance, .. } => (Some(taint), None, Some(tolerance), None),
        ReasonKind::OtherTaint { taint, source, tolerance, .. } => {
            (Some(taint), Some(source), Some(tolerance), None)
        }
        ReasonKind::NotEvicted(why) => (None, None, None, Some(why.name())),
    };
    let source = source.map(|source| {
        let (kind, name) = match source {
            TaintSource::Rule(rule) => ("DeviceTaintRule", &*rule.name),
            TaintSource::Slice(name) => ("ResourceSlice", name),
            TaintSource::Patch(patch) => ("ResourceSlicePatch", &*patch.name),
        };
        record! { "kind": kind, "name": name }
    });
    let (tolerated, toleration) = match tolerance {
        None => (None, None),
        Some(Tolerance::No) => (Some("no"), None),
        Some(Tolerance::For(toleration, _)) => (Some("limited"), Some(toleration)),
        Some(Tolerance::Forever(toleration)) => (Some("forever"), Some(toleration)),
    };
    let toleration = toleration.map(|toleration| {
        record! {
            "key": *toleration.key,
            // What the server fills in.
            "operator": if toleration.operator.is_empty() { "Equal" } else { &toleration.operator },
            "value": *toleration.value,
            "effect": *toleration.effect,
            "tolerationSeconds": toleration.seconds,
        }
    });
    let taint = taint.map(|taint| {
        record! {
            "key": *taint.key,
            "value": *taint.value,
            "effect": *taint.effect,
            // What has the taint, if it is not the change that was asked about.
            "source" if given: source,
        }
    });
    record! {
        "claim": record! { "namespace": reason.namespace, "name": reason.claim },
        "device": record! { "driver": **driver, "pool": **pool, "device": **device },
        // The taint that decides; none if the controller ignores the pod for this claim.
        "taint" if given: taint,
        "tolerated" if given: tolerated,
        "toleration" if given: toleration,
        "notEvicted" if given: not_evicted,
    }
}
