//! Fields of a TaintRulePolicy.

use super::{EXEMPTION_LIST, LEVELS};
use crate::policy::schema::{FieldType, ObjectSchema, optional_field, required_field};
use crate::rule_annotations;
use tollgate_api::profile::ApiKind;

/// Schema of a TaintRulePolicy.
pub(in crate::policy) static POLICY: ObjectSchema = policy_file!("TaintRulePolicy", SPEC);

static SPEC: ObjectSchema = policy_spec!(
    "TaintRulePolicySpec",
    MATCH,
    optional_field(
        "requireSelector",
        FieldType::List(&FieldType::OneOf(&["driver", "pool", "device", "any"])),
        "Criteria that `deviceSelector` must set; `any` requires at least one criterion",
    ),
    optional_field(
        "twoSteps",
        FieldType::Bool,
        "Whether a rule must be created with effect `None`; a later update with the same selector and taint can set \
         a stronger effect (default: false)",
    ),
    optional_field(
        "maxImpact",
        FieldType::Object(&MAX_IMPACT),
        "Maximum impact of a rule; requires the cluster state"
    ),
    optional_field(
        "maxTainted",
        FieldType::Object(&MAX_TAINTED),
        "Maximum number of devices that all rules together may taint; requires the cluster state",
    ),
    optional_field(
        "onUnknown",
        FieldType::OneOf(LEVELS),
        "What happens if `maxImpact` or `maxTainted` applies to a rule but the cluster state is not known \
         (default: `Deny`)",
    ),
    optional_field(
        "acknowledge",
        FieldType::Object(&ACKNOWLEDGE),
        "Annotation with which users can exceed `maxImpact` and `maxTainted`",
    ),
    optional_field(
        "requireAnnotations",
        FieldType::NonEmptyList(&FieldType::OneOf(rule_annotations::ALL)),
        "Annotations that a rule must have",
    ),
    optional_field(
        "maxAgeSeconds",
        FieldType::Int(1),
        "Maximum age of a rule in seconds; `tollgate.dev/expires` must be set and be at most this long after the \
         rule is created",
    ),
);

static MATCH: ObjectSchema =
    policy_match!("RuleMatch", &["DeviceTaintRule"], "Kinds of objects to include", super::DRIVERS);

static MAX_IMPACT: ObjectSchema = ObjectSchema {
    name: "MaxImpact",
    fields: &[
        optional_field("devices", FieldType::Int(0), "Maximum number of devices that a rule may select"),
        optional_field("pods", FieldType::Int(0), "Maximum number of pods that a rule may evict"),
        optional_field(
            "namespaces",
            FieldType::Int(0),
            "Maximum number of namespaces in which a rule may evict pods",
        ),
    ],
};

static MAX_TAINTED: ObjectSchema = ObjectSchema {
    name: "MaxTainted",
    fields: &[required_field(
        "devices",
        FieldType::IntOrPercent,
        "Maximum number of devices with effect `NoSchedule` or `NoExecute` from rules, or a percentage of the devices \
         that their driver publishes, such as `5%`, rounded down but at least 1",
    )],
};

static ACKNOWLEDGE: ObjectSchema = ObjectSchema {
    name: "Acknowledge",
    fields: &[
        required_field(
            "annotation",
            FieldType::NonEmptyStr,
            "Name of the annotation; its value must be the number of evicted pods",
        ),
        optional_field(
            "groups",
            EXEMPTION_LIST,
            "Groups that may set the annotation, as globs (default: everyone)",
        ),
    ],
};

/// Kinds of objects that a TaintRulePolicy can apply to; `match.resources` narrows them.
pub(in crate::policy) const APPLICABLE_KINDS: &[ApiKind] = &[ApiKind::DeviceTaintRule];
