//! Fields of a TolerationPolicy.

use super::{EFFECT_TYPE, ENTRY_EFFECTS, ENTRY_EXPIRES, ENTRY_REASON, ENTRY_VALUES, formats};
use crate::policy::schema::{FieldSchema, FieldType, ObjectSchema, optional_field, required_field};
use tollgate_api::profile::ApiKind;

/// Schema of a TolerationPolicy.
pub(in crate::policy) static POLICY: ObjectSchema = policy_file!("TolerationPolicy", SPEC);

static SPEC: ObjectSchema = policy_spec!(
    "TolerationPolicySpec",
    MATCH,
    optional_field(
        "allow",
        FieldType::List(&FieldType::Object(&ALLOW_ENTRY)),
        "Tolerations that are allowed (default: all); `[]` allows none, unless another policy allows some",
    ),
    optional_field(
        "deny",
        FieldType::List(&FieldType::Object(&DENY_ENTRY)),
        "Tolerations that are denied, even if an `allow` entry matches",
    ),
    optional_field(
        "requireKey",
        FieldType::Bool,
        "Denies tolerations without a key, which match the taints of all keys (default: false)",
    ),
    optional_field(
        "defaults",
        FieldType::List(&FieldType::Object(&DEFAULT_TOLERATION)),
        "Tolerations that are allowed, and that are added to every device request in a new claim or template",
    ),
);

static MATCH: ObjectSchema = policy_match!(
    "ClaimMatch",
    &["ResourceClaim", "ResourceClaimTemplate"],
    "Kinds of objects to include (default: both)"
);

const ENTRY_KEY: FieldSchema =
    required_field("key", FieldType::Text(&formats::KEY_PATTERN), "Taint key, `prefix/*` or `*`");

static ALLOW_ENTRY: ObjectSchema = ObjectSchema {
    name: "AllowedToleration",
    fields: &[
        ENTRY_KEY,
        ENTRY_VALUES,
        ENTRY_EFFECTS,
        optional_field(
            "maxTolerationSeconds",
            FieldType::Int(0),
            "Maximum `tolerationSeconds` for `NoExecute` (default: no limit)",
        ),
        ENTRY_REASON,
        ENTRY_EXPIRES,
    ],
};

static DENY_ENTRY: ObjectSchema = ObjectSchema {
    name: "DeniedToleration",
    fields: &[ENTRY_KEY, ENTRY_VALUES, ENTRY_EFFECTS, ENTRY_REASON, ENTRY_EXPIRES],
};

static DEFAULT_TOLERATION: ObjectSchema = ObjectSchema {
    name: "DefaultToleration",
    fields: &[
        optional_field("key", FieldType::Text(&formats::TAINT_KEY), "Key (default: every key)"),
        optional_field("operator", FieldType::OneOf(&["Equal", "Exists"]), "Operator (default: `Equal`)"),
        optional_field("value", FieldType::Text(&formats::TAINT_VALUE), "Value, for the operator `Equal`"),
        optional_field("effect", EFFECT_TYPE, "Effect (default: every effect)"),
        optional_field(
            "tolerationSeconds",
            FieldType::Int(i64::MIN),
            "How long a `NoExecute` taint is tolerated, in seconds (default: forever)",
        ),
    ],
};

/// Kinds of objects that a TolerationPolicy can apply to; `match.resources` narrows them.
pub(in crate::policy) const APPLICABLE_KINDS: &[ApiKind] =
    &[ApiKind::ResourceClaim, ApiKind::ResourceClaimTemplate];
