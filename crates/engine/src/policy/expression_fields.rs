//! The fields that expressions can select from objects, by the schemas of the kinds that a policy applies to.
//!
//! A policy can apply to several kinds, and an expression may ask for the kind first. So a field exists if one of the
//! kinds has it, in any release or draft.

use tollgate_api::fields;
use tollgate_api::profile::{ApiKind, Version};
use tollgate_api::schema::{FieldType, UnlistedFields};
use tollgate_cel::{FieldSchema, SchemaFieldLookup};

/// The schema types that a value in an expression can have, to look up its fields.
#[derive(Clone, Debug)]
pub(super) struct FieldTypes(Vec<FieldType>);

/// Returns the schema of a variable in policy expressions, if there is one.
pub(super) fn types_of_variable(name: &str, kinds: &[ApiKind]) -> Option<FieldTypes> {
    // Expressions see every object in the form of v1.
    let root = |kind: &ApiKind| FieldType::Struct(fields::root_struct(*kind, Version::V1));
    matches!(name, "object" | "oldObject").then(|| FieldTypes(kinds.iter().map(root).collect()))
}

impl FieldSchema for FieldTypes {
    fn field(&self, name: &str) -> SchemaFieldLookup<FieldTypes> {
        let mut found = Vec::new();
        for ty in &self.0 {
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
            SchemaFieldLookup::Known(FieldTypes(found))
        }
    }

    fn items(&self) -> Option<FieldTypes> {
        let item = |ty: &FieldType| if let FieldType::List(item) = ty { Some(**item) } else { None };
        let items: Vec<FieldType> = self.0.iter().filter_map(item).collect();
        (!items.is_empty()).then_some(FieldTypes(items))
    }
}
