//! Fields of a TaintRulePolicy.

use super::{
    ACTION, API, CONDITIONS, CONTACT, DOCS, DRIVERS, EXCLUDED, EXEMPT, FAILURE, GLOBS, LEVELS, META,
    NAMESPACES, OPERATIONS, SELECTED, VALIDATIONS,
};
use crate::policy::schema::{Struct, Ty, field, required};
use crate::profile::ApiKind;

/// TaintRulePolicy.
pub(in crate::policy) static POLICY: Struct = policy_file!("TaintRulePolicy", SPEC);

static SPEC: Struct = Struct {
    name: "TaintRulePolicySpec",
    fields: &[
        field("match", Ty::Struct(&MATCH), "Where the policy applies (default: everywhere)"),
        EXEMPT,
        ACTION,
        CONTACT,
        DOCS,
        FAILURE,
        CONDITIONS,
        VALIDATIONS,
        field(
            "requireSelector",
            Ty::List(&Ty::OneOf(&["driver", "pool", "device", "any"])),
            "Criteria that deviceSelector must set; `any` requires at least one",
        ),
        field(
            "twoSteps",
            Ty::Bool,
            "Whether a rule must be created with effect None and raised later, with the same selector (default: false)",
        ),
        field("maxImpact", Ty::Struct(&MAX_IMPACT), "Maximum impact of a rule; requires the cluster state"),
        field("onUnknown", Ty::OneOf(LEVELS), "What happens if the impact is not known (default: Deny)"),
        field("acknowledge", Ty::Struct(&ACKNOWLEDGE), "Who may exceed maxImpact by setting an annotation"),
    ],
};

static MATCH: Struct = Struct {
    name: "RuleMatch",
    fields: &[
        NAMESPACES,
        EXCLUDED,
        SELECTED,
        DRIVERS,
        OPERATIONS,
        field("resources", Ty::List(&Ty::OneOf(&["DeviceTaintRule"])), "Kinds of objects"),
    ],
};

static MAX_IMPACT: Struct = Struct {
    name: "MaxImpact",
    fields: &[
        field("devices", Ty::Int(0), "Devices that the rule selects"),
        field("pods", Ty::Int(0), "Pods that the rule evicts"),
        field("namespaces", Ty::Int(0), "Namespaces of those pods"),
    ],
};

static ACKNOWLEDGE: Struct = Struct {
    name: "Acknowledge",
    fields: &[
        required("annotation", Ty::NonEmptyStr, "Name of the annotation; its value is the number of pods"),
        field("groups", GLOBS, "Groups that may set it, as globs (default: everyone)"),
    ],
};

/// Kinds of objects it can apply to; `match.resources` narrows them.
pub(in crate::policy) const RESOURCES: &[ApiKind] = &[ApiKind::DeviceTaintRule];
