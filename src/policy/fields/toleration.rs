//! Fields of a TolerationPolicy.

use super::{
    ACTION, API, CONDITIONS, CONTACT, DOCS, EFFECTS, ENTRY_EFFECTS, EXCLUDED, EXEMPT, EXPIRES, FAILURE, META,
    NAMESPACES, OPERATIONS, REASON, SELECTED, VALIDATIONS, VALUES,
};
use crate::policy::schema::{Field, Struct, Ty, field, required};
use crate::profile::ApiKind;

/// TolerationPolicy.
pub(in crate::policy) static POLICY: Struct = policy_file!("TolerationPolicy", SPEC);

static SPEC: Struct = Struct {
    name: "TolerationPolicySpec",
    fields: &[
        field("match", Ty::Struct(&MATCH), "Where it applies; everywhere if left out"),
        EXEMPT,
        ACTION,
        CONTACT,
        DOCS,
        FAILURE,
        CONDITIONS,
        VALIDATIONS,
        field(
            "allow",
            Ty::List(&Ty::Struct(&ALLOWED)),
            "What may be tolerated. Left out: no restriction. []: nothing, unless another policy allows it",
        ),
        field("deny", Ty::List(&Ty::Struct(&DENIED)), "What may not be tolerated, whatever is allowed"),
        field(
            "defaults",
            Ty::List(&Ty::Struct(&DEFAULT)),
            "Added to every request of a new claim or template; allowed by being here",
        ),
    ],
};

static MATCH: Struct =
    Struct { name: "ClaimMatch", fields: &[NAMESPACES, EXCLUDED, SELECTED, OPERATIONS, MATCH_RESOURCES] };
const MATCH_RESOURCES: Field = field(
    "resources",
    Ty::List(&Ty::OneOf(&["ResourceClaim", "ResourceClaimTemplate"])),
    "Kinds of objects; both if left out",
);

const KEY: Field = required("key", Ty::NonEmptyStr, "A key, `prefix/*`, or `*`");

static ALLOWED: Struct = Struct {
    name: "AllowedToleration",
    fields: &[
        KEY,
        VALUES,
        ENTRY_EFFECTS,
        field("maxTolerationSeconds", Ty::Int(0), "How long NoExecute may be tolerated; forever if left out"),
        REASON,
        EXPIRES,
    ],
};

static DENIED: Struct =
    Struct { name: "DeniedToleration", fields: &[KEY, VALUES, ENTRY_EFFECTS, REASON, EXPIRES] };

static DEFAULT: Struct = Struct {
    name: "DefaultToleration",
    fields: &[
        field("key", Ty::NonEmptyStr, "The key; every key if left out"),
        field("operator", Ty::OneOf(&["Equal", "Exists"]), "Equal unless said otherwise"),
        field("value", Ty::Str, "The value, for Equal"),
        field("effect", EFFECTS, "The effect; every effect if left out"),
        field("tolerationSeconds", Ty::Int(i64::MIN), "How long NoExecute is tolerated"),
    ],
};

/// Kinds of objects it can apply to; `match.resources` narrows them.
pub(in crate::policy) const RESOURCES: &[ApiKind] = &[ApiKind::ResourceClaim, ApiKind::ResourceClaimTemplate];
