//! Metadata, conditions and node selectors, the same in every version.

use super::{STRINGS, meta_struct};
use crate::profile::Availability;
use crate::schema::{Field, StructTy, Ty};

/// OwnerReference, printed whole when refused.
pub static OWNER_REFERENCE: StructTy = meta_struct(
    "OwnerReference",
    &[
        a!("apiVersion", Ty::Str),
        a!("kind", Ty::Str),
        a!("name", Ty::Str),
        a!("uid", Ty::Uid),
        p!("controller", Ty::Bool),
        p!("blockOwnerDeletion", Ty::Bool),
    ],
);
pub(super) static MANAGED_FIELDS: StructTy = meta_struct(
    "ManagedFieldsEntry",
    &[
        f!("manager", Ty::Str),
        f!("operation", Ty::CoreNamed("ManagedFieldsOperationType")),
        f!("apiVersion", Ty::Str),
        p!("time", Ty::Time),
        f!("fieldsType", Ty::Str),
        p!("fieldsV1", Ty::Raw),
        f!("subresource", Ty::Str),
    ],
);
pub(super) static OBJECT_META: StructTy = meta_struct(
    "ObjectMeta",
    &[
        f!("name", Ty::Str),
        f!("generateName", Ty::Str),
        f!("namespace", Ty::Str),
        f!("selfLink", Ty::Str),
        f!("uid", Ty::Uid),
        f!("resourceVersion", Ty::Str),
        f!("generation", Ty::Int),
        f!("creationTimestamp", Ty::Time),
        p!("deletionTimestamp", Ty::Time),
        p!("deletionGracePeriodSeconds", Ty::Int),
        f!("labels", Ty::Map { key: "string", value: &Ty::Str }),
        f!("annotations", Ty::Map { key: "string", value: &Ty::Str }),
        f!("ownerReferences", Ty::List(&Ty::Struct(&OWNER_REFERENCE))),
        f!("finalizers", STRINGS),
        f!("managedFields", Ty::List(&Ty::Struct(&MANAGED_FIELDS))),
    ],
);
pub(super) static CONDITION: StructTy = meta_struct(
    "Condition",
    &[
        a!("type", Ty::Str),
        a!("status", Ty::CoreNamed("ConditionStatus")),
        f!("observedGeneration", Ty::Int),
        a!("lastTransitionTime", Ty::Time),
        a!("reason", Ty::Str),
        a!("message", Ty::Str),
    ],
);
pub(super) const CONDITIONS: Ty = Ty::List(&Ty::Struct(&CONDITION));
pub(super) const META: Field = f!("metadata", Ty::Struct(&OBJECT_META));
pub(super) const API_VERSION: Field = f!("apiVersion", Ty::Str);
pub(super) const KIND: Field = f!("kind", Ty::Str);

pub(super) static NODE_REQUIREMENT: StructTy = meta_struct(
    "NodeSelectorRequirement",
    &[a!("key", Ty::Str), a!("operator", Ty::CoreNamed("NodeSelectorOperator")), f!("values", STRINGS)],
);
/// The fields of NodeSelectorTerm.
pub static NODE_TERM: StructTy = meta_struct(
    "NodeSelectorTerm",
    &[
        f!("matchExpressions", Ty::List(&Ty::Struct(&NODE_REQUIREMENT))),
        f!("matchFields", Ty::List(&Ty::Struct(&NODE_REQUIREMENT))),
    ],
);
pub(super) static NODE_SELECTOR: StructTy =
    meta_struct("NodeSelector", &[a!("nodeSelectorTerms", Ty::List(&Ty::Struct(&NODE_TERM)))]);
pub(super) const NODES: Ty = Ty::Struct(&NODE_SELECTOR);
