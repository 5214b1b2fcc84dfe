//! Fields of a TaintRulePolicy.

use super::{DRIVERS, EXCLUDED, EXEMPTIONS, LEVELS, NAMESPACES, OPERATIONS, SELECTED};
use crate::policy::schema::{Struct, Ty, field, required};
use crate::rule_annotations;
use tollgate_api::profile::ApiKind;

/// Schema of a TaintRulePolicy.
pub(in crate::policy) static POLICY: Struct = policy_file!("TaintRulePolicy", SPEC);

static SPEC: Struct = policy_spec!(
    "TaintRulePolicySpec",
    MATCH,
    field(
        "requireSelector",
        Ty::List(&Ty::OneOf(&["driver", "pool", "device", "any"])),
        "Criteria that `deviceSelector` must set; `any` requires at least one criterion",
    ),
    field(
        "twoSteps",
        Ty::Bool,
        "Whether a rule must be created with effect `None`; a later update with the same selector and taint can set \
         a stronger effect (default: false)",
    ),
    field("maxImpact", Ty::Struct(&MAX_IMPACT), "Maximum impact of a rule; requires the cluster state"),
    field(
        "maxTainted",
        Ty::Struct(&MAX_TAINTED),
        "Maximum number of devices that all rules together may taint; requires the cluster state",
    ),
    field(
        "onUnknown",
        Ty::OneOf(LEVELS),
        "What happens if `maxImpact` or `maxTainted` applies to a rule but the cluster state is not known \
         (default: `Deny`)",
    ),
    field(
        "acknowledge",
        Ty::Struct(&ACKNOWLEDGE),
        "Annotation with which users can exceed `maxImpact` and `maxTainted`",
    ),
    field(
        "requireAnnotations",
        Ty::NonEmptyList(&Ty::OneOf(rule_annotations::ALL)),
        "Annotations that a rule must have",
    ),
    field(
        "maxAgeSeconds",
        Ty::Int(1),
        "Maximum age of a rule in seconds; `tollgate.dev/expires` must be set and be at most this long after the \
         rule is created",
    ),
);

static MATCH: Struct = Struct {
    name: "RuleMatch",
    fields: &[
        NAMESPACES,
        EXCLUDED,
        SELECTED,
        DRIVERS,
        OPERATIONS,
        field("resources", Ty::NonEmptyList(&Ty::OneOf(&["DeviceTaintRule"])), "Kinds of objects to include"),
    ],
};

static MAX_IMPACT: Struct = Struct {
    name: "MaxImpact",
    fields: &[
        field("devices", Ty::Int(0), "Maximum number of devices that a rule may select"),
        field("pods", Ty::Int(0), "Maximum number of pods that a rule may evict"),
        field("namespaces", Ty::Int(0), "Maximum number of namespaces in which a rule may evict pods"),
    ],
};

static MAX_TAINTED: Struct = Struct {
    name: "MaxTainted",
    fields: &[required(
        "devices",
        Ty::IntOrPercent,
        "Maximum number of devices with effect `NoSchedule` or `NoExecute` from rules, or a percentage of the devices \
         that their driver publishes, such as `5%`, rounded down but at least 1",
    )],
};

static ACKNOWLEDGE: Struct = Struct {
    name: "Acknowledge",
    fields: &[
        required(
            "annotation",
            Ty::NonEmptyStr,
            "Name of the annotation; its value must be the number of evicted pods",
        ),
        field("groups", EXEMPTIONS, "Groups that may set the annotation, as globs (default: everyone)"),
    ],
};

/// Kinds of objects that a TaintRulePolicy can apply to; `match.resources` narrows them.
pub(in crate::policy) const RESOURCES: &[ApiKind] = &[ApiKind::DeviceTaintRule];
