//! Metadata, conditions and node selectors, the same in every version.

use super::{STRING_LIST, meta_struct};
use crate::profile::Availability;
use crate::schema::{Field, FieldType, StructSchema};

/// Fields of OwnerReference. The API server prints the whole element in its errors about it.
pub static OWNER_REFERENCE: StructSchema = meta_struct(
    "OwnerReference",
    &[
        a!("apiVersion", FieldType::Str),
        a!("kind", FieldType::Str),
        a!("name", FieldType::Str),
        a!("uid", FieldType::Uid),
        p!("controller", FieldType::Bool),
        p!("blockOwnerDeletion", FieldType::Bool),
    ],
);
pub(super) static MANAGED_FIELDS: StructSchema = meta_struct(
    "ManagedFieldsEntry",
    &[
        f!("manager", FieldType::Str),
        f!("operation", FieldType::CoreNamed("ManagedFieldsOperationType")),
        f!("apiVersion", FieldType::Str),
        p!("time", FieldType::Time),
        f!("fieldsType", FieldType::Str),
        p!("fieldsV1", FieldType::Raw),
        f!("subresource", FieldType::Str),
    ],
);
pub(super) static OBJECT_META: StructSchema = meta_struct(
    "ObjectMeta",
    &[
        f!("name", FieldType::Str),
        f!("generateName", FieldType::Str),
        f!("namespace", FieldType::Str),
        f!("selfLink", FieldType::Str),
        f!("uid", FieldType::Uid),
        f!("resourceVersion", FieldType::Str),
        f!("generation", FieldType::Int),
        f!("creationTimestamp", FieldType::Time),
        p!("deletionTimestamp", FieldType::Time),
        p!("deletionGracePeriodSeconds", FieldType::Int),
        f!("labels", FieldType::Map { key: "string", value: &FieldType::Str }),
        f!("annotations", FieldType::Map { key: "string", value: &FieldType::Str }),
        f!("ownerReferences", FieldType::List(&FieldType::Struct(&OWNER_REFERENCE))),
        f!("finalizers", STRING_LIST),
        f!("managedFields", FieldType::List(&FieldType::Struct(&MANAGED_FIELDS))),
    ],
);
pub(super) static CONDITION: StructSchema = meta_struct(
    "Condition",
    &[
        a!("type", FieldType::Str),
        a!("status", FieldType::CoreNamed("ConditionStatus")),
        f!("observedGeneration", FieldType::Int),
        a!("lastTransitionTime", FieldType::Time),
        a!("reason", FieldType::Str),
        a!("message", FieldType::Str),
    ],
);
pub(super) const CONDITIONS: FieldType = FieldType::List(&FieldType::Struct(&CONDITION));
pub(super) const META: Field = f!("metadata", FieldType::Struct(&OBJECT_META));
pub(super) const API_VERSION: Field = f!("apiVersion", FieldType::Str);
pub(super) const KIND: Field = f!("kind", FieldType::Str);

pub(super) static NODE_REQUIREMENT: StructSchema = meta_struct(
    "NodeSelectorRequirement",
    &[
        a!("key", FieldType::Str),
        a!("operator", FieldType::CoreNamed("NodeSelectorOperator")),
        f!("values", STRING_LIST),
    ],
);
/// The fields of NodeSelectorTerm.
pub static NODE_TERM: StructSchema = meta_struct(
    "NodeSelectorTerm",
    &[
        f!("matchExpressions", FieldType::List(&FieldType::Struct(&NODE_REQUIREMENT))),
        f!("matchFields", FieldType::List(&FieldType::Struct(&NODE_REQUIREMENT))),
    ],
);
pub(super) static NODE_SELECTOR: StructSchema =
    meta_struct("NodeSelector", &[a!("nodeSelectorTerms", FieldType::List(&FieldType::Struct(&NODE_TERM)))]);
pub(super) const NODE_SELECTOR_TYPE: FieldType = FieldType::Struct(&NODE_SELECTOR);
