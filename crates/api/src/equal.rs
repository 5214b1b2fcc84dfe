//! Semantic equality of two values of one type, as upstream's `apiequality.Semantic.DeepEqual`.
//!
//! Absent and zero are the same for plain fields; nil and empty are the same for lists and maps; a nil pointer is not
//! a pointer to zero; quantities compare by amount and times by instant. Opaque JSON compares by its text.

use std::collections::HashMap;

use super::fields;
use super::schema::{Field, FieldType, StructSchema};
use super::view::{Object, quantity, time};
use tollgate_document::doc::{Members, Value, ValueKind};

/// True if the top-level field `part`, such as `spec` or `status`, of two objects of one kind is semantically equal.
/// For a kind without a `spec`, `spec` means all fields except `metadata`.
pub fn is_top_level_field_equal(new: Object<'_>, old: Object<'_>, part: &str) -> bool {
    let root = fields::root_struct(new.kind(), new.version);
    let is_same =
        |field: &'static Field| same_field(new.value().get(field.json), old.value().get(field.json), field);
    match root.fields.iter().find(|field| field.json == part) {
        Some(field) => is_same(field),
        // A kind without a spec has everything beside its metadata.
        None => part == "spec" && root.fields.iter().filter(|field| field.json != "metadata").all(is_same),
    }
}

/// True if two structs of one type are semantically equal.
pub fn same_struct(new: Value<'_>, old: Value<'_>, ty: &'static StructSchema) -> bool {
    ty.fields.iter().all(|field| same_field(new.get(field.json), old.get(field.json), field))
}

/// True if a member of two structs is semantically equal, such as the taints or capacities of two devices.
pub fn same_member(new: Value<'_>, old: Value<'_>, ty: &'static StructSchema, member: &str) -> bool {
    let field = ty.fields.iter().find(|field| field.json == member);
    field.is_some_and(|field| same_field(new.get(member), old.get(member), field))
}

/// True if two lists of structs of one type are semantically equal, in the same order.
pub fn same_struct_list(new: Value<'_>, old: Value<'_>, ty: &'static StructSchema) -> bool {
    new.len() == old.len() && new.items().zip(old.items()).all(|(new, old)| same_struct(new, old, ty))
}

/// True if a field has semantically equal values in two structs.
fn same_field(new: Value<'_>, old: Value<'_>, field: &'static Field) -> bool {
    // A device without `basic` is converted like one whose `basic` is empty.
    if field.pointer && field.json != "basic" && new.is_null_or_absent() != old.is_null_or_absent() {
        return false;
    }
    same_value(new, old, &field.ty)
}

/// True if two values of type `ty` are semantically equal.
pub fn same_value(new: Value<'_>, old: Value<'_>, ty: &'static FieldType) -> bool {
    match ty {
        FieldType::Str | FieldType::Named(_) | FieldType::CoreNamed(_) | FieldType::Uid => {
            new.str() == old.str()
        }
        FieldType::Int => new.int().unwrap_or_default() == old.int().unwrap_or_default(),
        FieldType::Bool => new.bool().unwrap_or_default() == old.bool().unwrap_or_default(),
        FieldType::Time => time(new) == time(old),
        FieldType::Quantity => match (quantity(new), quantity(old)) {
            (Some(new), Some(old)) => new.cmp(&old).is_eq(),
            (Some(one), None) | (None, Some(one)) => one.is_zero(),
            (None, None) => true,
        },
        FieldType::Raw => new.raw_json() == old.raw_json(),
        FieldType::StringOr(_) if new.kind() == ValueKind::String || old.kind() == ValueKind::String => {
            new.kind() == old.kind() && new.str() == old.str()
        }
        FieldType::Struct(inner) | FieldType::StringOr(inner) => same_struct(new, old, inner),
        FieldType::List(item) => {
            new.len() == old.len()
                && new.items().zip(old.items()).all(|(new, old)| same_value(new, old, item))
        }
        FieldType::Map { value, .. } => same_map(new, old, value),
    }
}

/// Maps in another order with at most this many members are searched; larger ones are looked up in a hash table.
const MAX_LINEAR_SEARCH_MEMBERS: usize = 16;

/// True if two maps are semantically equal, in any order. Stored maps usually keep their order, so both are
/// compared in parallel while the keys agree; the rest is looked up by hash, which bounds the cost for
/// hostile maps.
fn same_map(new: Value<'_>, old: Value<'_>, value: &'static FieldType) -> bool {
    let (mut news, mut olds) = (new.members(), old.members());
    loop {
        let rest = (news.clone(), olds.clone());
        match (news.next(), olds.next()) {
            (None, None) => return true,
            (Some((key, member)), Some((other_key, other))) if key.text_is(other_key.text()) => {
                if !same_value(member, other, value) {
                    return false;
                }
            }
            (Some(_), Some(_)) => return same_unordered_members(rest.0, rest.1, value),
            _ => return false,
        }
    }
}

/// True if two maps have the same number of members, and semantically equal values for the same keys, in any order.
fn same_unordered_members<'d>(new: Members<'d>, old: Members<'d>, value: &'static FieldType) -> bool {
    let count = old.clone().count();
    if new.clone().count() != count {
        return false;
    }
    if count <= MAX_LINEAR_SEARCH_MEMBERS {
        return new.into_iter().all(|(key, member)| {
            let other = old.clone().find(|(other, _)| other.text_is(key.text()));
            other.is_some_and(|(_, other)| same_value(member, other, value))
        });
    }
    // All of the capacity at once: much of what a large map costs is memory. The standard hash: keys may be hostile.
    let mut known = HashMap::with_capacity(count);
    known.extend(old.map(|(key, other)| (key.text(), other)));
    new.into_iter()
        .all(|(key, member)| known.get(key.text()).is_some_and(|other| same_value(member, *other, value)))
}

#[cfg(test)]
mod tests {
    use super::same_value;
    use crate::schema::FieldType;
    use tollgate_document::doc::parse;

    static MAP: FieldType = FieldType::Map { key: "string", value: &FieldType::Str };

    fn map(keys: impl Iterator<Item = usize>) -> String {
        let members: Vec<String> = keys.map(|key| format!("\"key-{key}\":\"{key}\"")).collect();
        format!("{{{}}}", members.join(","))
    }

    /// Comparing each key with all others would take minutes for the largest maps.
    #[test]
    fn maps_in_another_order_are_the_same() {
        for count in [3, 16, 17, 1_000, 300_000] {
            let text = map(0..count);
            let old = parse(&text).unwrap();
            let same_as_old = |new: &str| same_value(parse(new).unwrap().root(), old.root(), &MAP);
            assert!(same_as_old(&text) && same_as_old(&map((0..count).rev())), "{count}");
            assert!(!same_as_old(&map((1..count).rev().chain([count]))), "{count}: another key");
            assert!(!same_as_old(&map(0..count - 1)), "{count}: one key less");
        }
    }
}
