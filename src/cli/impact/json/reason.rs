//! Why a pod is evicted or not, taken apart for programs: `because` says the same in words.

use serde::Serialize;

use tollgate_engine::impact::{OutcomeReason, TaintSource, Tolerance, Toleration};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reason<'a> {
    claim: Claim<'a>,
    device: Device<'a>,
    /// The taint that decides; none if the controller ignores the pod for this claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    taint: Option<Taint<'a>>,
    /// `no`, `limited` or `forever`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tolerated: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    toleration: Option<TolerationRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_evicted: Option<&'static str>,
}

#[derive(Serialize)]
struct Claim<'a> {
    namespace: &'a str,
    name: &'a str,
}

#[derive(Serialize)]
struct Device<'a> {
    driver: &'a str,
    pool: &'a str,
    device: &'a str,
}

#[derive(Serialize)]
struct Taint<'a> {
    key: &'a str,
    value: &'a str,
    effect: &'a str,
    /// What has the taint, if it is not the change that was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Source<'a>>,
}

#[derive(Serialize)]
struct Source<'a> {
    kind: &'static str,
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TolerationRecord<'a> {
    key: &'a str,
    operator: &'a str,
    value: &'a str,
    effect: &'a str,
    toleration_seconds: Option<i64>,
}

impl<'a> Reason<'a> {
    pub(super) fn of(reason: &OutcomeReason<'a>) -> Reason<'a> {
        let parts = reason.parts();
        let [driver, pool, device] = parts.device;
        let source = parts.source.map(|source| match source {
            TaintSource::Rule(rule) => Source { kind: "DeviceTaintRule", name: &rule.name },
            TaintSource::Slice(name) => Source { kind: "ResourceSlice", name },
            TaintSource::Patch(patch) => Source { kind: "ResourceSlicePatch", name: &patch.name },
        });
        let (tolerated, toleration) = match parts.tolerance {
            None => (None, None),
            Some(Tolerance::No) => (Some("no"), None),
            Some(Tolerance::For(toleration, _)) => (Some("limited"), Some(toleration)),
            Some(Tolerance::Forever(toleration)) => (Some("forever"), Some(toleration)),
        };
        Reason {
            claim: Claim { namespace: parts.claim.0, name: parts.claim.1 },
            device: Device { driver, pool, device },
            taint: parts.taint.map(|taint| Taint {
                key: &taint.key,
                value: &taint.value,
                effect: &taint.effect,
                source,
            }),
            tolerated,
            toleration: toleration.map(toleration_record),
            not_evicted: parts.not_evicted,
        }
    }
}

fn toleration_record(toleration: &Toleration) -> TolerationRecord<'_> {
    TolerationRecord {
        key: &toleration.key,
        // What the server fills in.
        operator: if toleration.operator.is_empty() { "Equal" } else { &toleration.operator },
        value: &toleration.value,
        effect: &toleration.effect,
        toleration_seconds: toleration.seconds,
    }
}
