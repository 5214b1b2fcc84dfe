//! The parts of policies that an export omits, and why.
//!
//! Invariant: every field of a policy is listed here. A field that is not, such as one that a later release adds, is
//! reported as left out.

use super::super::kind::PolicyKind;

tollgate_formats::named_enum! {
    /// Why a part of a policy is not exported.
    #[derive(PartialOrd, Ord)]
    pub enum OmissionReason {
        /// The part depends on other objects in the cluster.
        ClusterState = "ClusterState",
        /// The part is a JSON Schema.
        JsonSchema = "JSONSchema",
        /// The part depends on the current time.
        Time = "Time",
        /// The part changes objects.
        Defaults = "Defaults",
        /// The part compares the keys of opaque JSON as they are written.
        AmbiguousKeys = "AmbiguousKeys",
        /// A failing expression counts as true.
        IgnoredFailure = "IgnoredFailure",
        /// The expression is not valid in a ValidatingAdmissionPolicy.
        Expression = "Expression",
        /// The kind of objects is not exported.
        Kind = "Kind",
        /// The export does not know the field, because it was added later.
        UnknownField = "UnknownField",
    }
}

/// A part of a policy that is not in the export. Without it, the export is weaker than the policy or has another message;
/// it is never stricter.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Omission {
    /// The policy, such as `TolerationPolicy research`.
    pub policy: String,
    /// Location of the policy, such as `policies/research.yaml:1`.
    pub source: String,
    /// Path of the field, such as `spec.allow[0].expires`.
    pub field: String,
    pub reason: OmissionReason,
    /// Explains what the export does instead, and why.
    pub message: String,
}

/// What the export does with a field of `spec` of a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FieldTreatment {
    /// The field is exported, or the exporting module reports what is omitted.
    Exported,
    /// The field does not affect any verdict of a ValidatingAdmissionPolicy.
    NoVerdict,
    LeftOut(OmissionReason, &'static str),
}

/// Returns how the export treats a field of `spec` of that kind of policy.
pub(super) fn field_treatment(kind: PolicyKind, field: &str) -> FieldTreatment {
    use FieldTreatment::{Exported, LeftOut, NoVerdict};
    const CANNOT_COUNT_MESSAGE: &str =
        "left out: a ValidatingAdmissionPolicy cannot count the devices and pods that a rule affects";
    match (kind, field) {
        (
            _,
            "match" | "exempt" | "action" | "failurePolicy" | "matchConditions" | "validations"
            | "enforceFrom",
        )
        | (PolicyKind::Toleration, "allow" | "deny" | "requireKey")
        | (PolicyKind::Taint, "allow" | "deny" | "data")
        | (PolicyKind::TaintRule, "requireSelector" | "twoSteps" | "requireAnnotations") => Exported,
        // No release has the field `evictionsPerSecond`, so the API server removes it before it evaluates policies. The
        // fields of rules only say what happens to limits, which are left out.
        (_, "contact" | "docs" | "onUnavailable")
        | (PolicyKind::Taint, "maxEvictionsPerSecond")
        | (PolicyKind::TaintRule, "onUnknown" | "acknowledge") => NoVerdict,
        (PolicyKind::Toleration, "defaults") => LeftOut(
            OmissionReason::Defaults,
            "allowed, but not added: a ValidatingAdmissionPolicy cannot change objects",
        ),
        (PolicyKind::TaintRule, "maxAgeSeconds") => LeftOut(
            OmissionReason::Time,
            "tollgate.dev/expires must be set, but its value is not checked: expressions cannot read the time",
        ),
        (PolicyKind::TaintRule, "maxImpact" | "maxTainted") => {
            LeftOut(OmissionReason::ClusterState, CANNOT_COUNT_MESSAGE)
        }
        (PolicyKind::Parameter, "schemas" | "unknown") => LeftOut(
            OmissionReason::JsonSchema,
            "left out: a ValidatingAdmissionPolicy cannot check parameters against a JSON Schema",
        ),
        _ => LeftOut(OmissionReason::UnknownField, "left out: this field cannot be exported"),
    }
}
