//! Fields of a TolerationPolicy.

use super::{
    EFFECTS, ENTRY_EFFECTS, EXCLUDED, EXPIRES, NAMESPACES, OPERATIONS, REASON, SELECTED, VALUES, formats,
};
use crate::policy::schema::{Field, Struct, Ty, field, required};
use tollgate_api::profile::ApiKind;

/// Schema of a TolerationPolicy.
pub(in crate::policy) static POLICY: Struct = policy_file!("TolerationPolicy", SPEC);

static SPEC: Struct = policy_spec!(
    "TolerationPolicySpec",
    MATCH,
    field(
        "allow",
        Ty::List(&Ty::Struct(&ALLOWED)),
        "Tolerations that are allowed (default: all); `[]` allows none, unless another policy allows some",
    ),
    field(
        "deny",
        Ty::List(&Ty::Struct(&DENIED)),
        "Tolerations that are denied, even if an `allow` entry matches",
    ),
    field(
        "requireKey",
        Ty::Bool,
        "Denies tolerations without a key, which match the taints of all keys (default: false)",
    ),
    field(
        "defaults",
        Ty::List(&Ty::Struct(&DEFAULT)),
        "Tolerations that are allowed, and that are added to every device request in a new claim or template",
    ),
);

static MATCH: Struct =
    Struct { name: "ClaimMatch", fields: &[NAMESPACES, EXCLUDED, SELECTED, OPERATIONS, MATCH_RESOURCES] };
const MATCH_RESOURCES: Field = field(
    "resources",
    Ty::NonEmptyList(&Ty::OneOf(&["ResourceClaim", "ResourceClaimTemplate"])),
    "Kinds of objects to include (default: both)",
);

const KEY: Field = required("key", Ty::Text(&formats::KEY_PATTERN), "Taint key, `prefix/*` or `*`");

static ALLOWED: Struct = Struct {
    name: "AllowedToleration",
    fields: &[
        KEY,
        VALUES,
        ENTRY_EFFECTS,
        field(
            "maxTolerationSeconds",
            Ty::Int(0),
            "Maximum `tolerationSeconds` for `NoExecute` (default: no limit)",
        ),
        REASON,
        EXPIRES,
    ],
};

static DENIED: Struct =
    Struct { name: "DeniedToleration", fields: &[KEY, VALUES, ENTRY_EFFECTS, REASON, EXPIRES] };

static DEFAULT: Struct = Struct {
    name: "DefaultToleration",
    fields: &[
        field("key", Ty::Text(&formats::TAINT_KEY), "Key (default: every key)"),
        field("operator", Ty::OneOf(&["Equal", "Exists"]), "Operator (default: `Equal`)"),
        field("value", Ty::Text(&formats::TAINT_VALUE), "Value, for the operator `Equal`"),
        field("effect", EFFECTS, "Effect (default: every effect)"),
        field(
            "tolerationSeconds",
            Ty::Int(i64::MIN),
            "How long a `NoExecute` taint is tolerated, in seconds (default: forever)",
        ),
    ],
};

/// Kinds of objects that a TolerationPolicy can apply to; `match.resources` narrows them.
pub(in crate::policy) const RESOURCES: &[ApiKind] = &[ApiKind::ResourceClaim, ApiKind::ResourceClaimTemplate];
