//! The fields that expressions can select from their variables: from objects by the schemas of the kinds that a policy
//! applies to, from `request` and `namespaceObject` by what Tollgate writes into them.
//!
//! A policy can apply to several kinds, and an expression may ask for the kind first. So a field exists if one of the
//! kinds has it, in any release or draft.

use tollgate_api::fields;
use tollgate_api::profile::{ApiKind, Version};
use tollgate_api::schema::{FieldType, UnlistedFields};
use tollgate_cel::{FieldSchema, SchemaFieldLookup};

/// The schema types that a value in an expression can have, to look up its fields.
#[derive(Clone, Debug)]
pub(super) enum FieldTypes {
    /// A value of an object: the types that it has in the schemas of the kinds.
    OfKinds(Vec<FieldType>),
    /// A value that Tollgate writes itself, with these fields.
    Written(&'static [WrittenField]),
}

/// A field that Tollgate writes into `request` or `namespaceObject`.
#[derive(Debug)]
pub(super) struct WrittenField {
    name: &'static str,
    /// The fields of its value; empty if the value has none, or any.
    fields: &'static [WrittenField],
}

const fn written(name: &'static str, fields: &'static [WrittenField]) -> WrittenField {
    WrittenField { name, fields }
}

/// What `conditions::RequestAndNamespaceJson` writes as `request`.
static REQUEST: [WrittenField; 7] = [
    written("kind", &[written("group", &[]), written("version", &[]), written("kind", &[])]),
    written("resource", &[written("group", &[]), written("version", &[]), written("resource", &[])]),
    written("subResource", &[]),
    written("operation", &[]),
    written("name", &[]),
    written("namespace", &[]),
    written(
        "userInfo",
        &[written("username", &[]), written("uid", &[]), written("groups", &[]), written("extra", &[])],
    ),
];

/// What `conditions::RequestAndNamespaceJson` writes as `namespaceObject`.
static NAMESPACE: [WrittenField; 3] = [
    written("apiVersion", &[]),
    written("kind", &[]),
    written("metadata", &[written("name", &[]), written("labels", &[])]),
];

/// Returns the schema of a variable in policy expressions, if there is one.
pub(super) fn types_of_variable(name: &str, kinds: &[ApiKind]) -> Option<FieldTypes> {
    // Expressions see every object in the form of v1.
    let root = |kind: &ApiKind| FieldType::Struct(fields::root_struct(*kind, Version::V1));
    match name {
        "object" | "oldObject" => Some(FieldTypes::OfKinds(kinds.iter().map(root).collect())),
        "request" => Some(FieldTypes::Written(&REQUEST)),
        "namespaceObject" => Some(FieldTypes::Written(&NAMESPACE)),
        _ => None,
    }
}

impl FieldSchema for FieldTypes {
    fn field(&self, name: &str) -> SchemaFieldLookup<FieldTypes> {
        let types = match self {
            FieldTypes::Written(fields) => return written_field(fields, name),
            FieldTypes::OfKinds(types) => types,
        };
        let mut found = Vec::new();
        for ty in types {
            let before = found.len();
            match ty {
                FieldType::Struct(ty) => {
                    found.extend(ty.fields.iter().filter(|field| field.json == name).map(|field| field.ty));
                    if found.len() == before && ty.unlisted == UnlistedFields::Ignored {
                        return SchemaFieldLookup::Unknown;
                    }
                }
                FieldType::Map { value, .. } => found.push(**value),
                FieldType::Raw | FieldType::StringOr(_) => return SchemaFieldLookup::Unknown,
                _ => {}
            }
        }
        if found.is_empty() {
            SchemaFieldLookup::Undefined
        } else {
            SchemaFieldLookup::Known(FieldTypes::OfKinds(found))
        }
    }

    fn items(&self) -> Option<FieldTypes> {
        let item = |ty: &FieldType| if let FieldType::List(item) = ty { Some(**item) } else { None };
        let FieldTypes::OfKinds(types) = self else { return None };
        let items: Vec<FieldType> = types.iter().filter_map(item).collect();
        (!items.is_empty()).then_some(FieldTypes::OfKinds(items))
    }
}

fn written_field(fields: &'static [WrittenField], name: &str) -> SchemaFieldLookup<FieldTypes> {
    if fields.is_empty() {
        return SchemaFieldLookup::Unknown;
    }
    match fields.iter().find(|field| field.name == name) {
        Some(field) => SchemaFieldLookup::Known(FieldTypes::Written(field.fields)),
        None => SchemaFieldLookup::Undefined,
    }
}
