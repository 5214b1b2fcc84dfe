//! The fields that expressions can select from objects, by the schemas of the kinds that a policy applies to.
//!
//! A policy can apply to several kinds, and an expression may ask for the kind first. So a field exists if one of the
//! kinds has it, in any release or draft.

use tollgate_api::fields;
use tollgate_api::profile::{ApiKind, Version};
use tollgate_api::schema::{Ty, Unlisted};
use tollgate_cel::{Schema, Selected};

/// The schema types that a value in an expression can have, to look up its fields.
#[derive(Clone, Debug)]
pub(super) struct FieldTypes(Vec<Ty>);

/// Returns the schema of a variable in policy expressions, if there is one.
pub(super) fn of_variable(name: &str, kinds: &[ApiKind]) -> Option<FieldTypes> {
    // Expressions see every object in the form of v1.
    let root = |kind: &ApiKind| Ty::Struct(fields::root(*kind, Version::V1));
    matches!(name, "object" | "oldObject").then(|| FieldTypes(kinds.iter().map(root).collect()))
}

impl Schema for FieldTypes {
    fn field(&self, name: &str) -> Selected<FieldTypes> {
        let mut found = Vec::new();
        for ty in &self.0 {
            let before = found.len();
            match ty {
                Ty::Struct(ty) => {
                    found.extend(ty.fields.iter().filter(|field| field.json == name).map(|field| field.ty));
                    if found.len() == before && ty.unlisted == Unlisted::Ignored {
                        return Selected::Unknown;
                    }
                }
                Ty::Map { value, .. } => found.push(**value),
                Ty::Raw | Ty::StringOr(_) => return Selected::Unknown,
                _ => {}
            }
        }
        if found.is_empty() { Selected::Undefined } else { Selected::Known(FieldTypes(found)) }
    }

    fn items(&self) -> Option<FieldTypes> {
        let item = |ty: &Ty| if let Ty::List(item) = ty { Some(**item) } else { None };
        let items: Vec<Ty> = self.0.iter().filter_map(item).collect();
        (!items.is_empty()).then_some(FieldTypes(items))
    }
}
