//! The document after decoding: unknown fields are dropped, and duplicate keys are merged as in Go.
//!
//! Go decodes each duplicate into the result of the earlier ones: scalars are overwritten, structs merged field by
//! field, maps merged by key with each value replaced, lists overwritten item by item and then truncated. `null`
//! clears pointers, lists, maps, quantities and times, and has no effect otherwise.

use std::borrow::Cow;
use std::collections::HashMap;

use super::super::schema::{FieldType, StructSchema, UnlistedFields};
use super::Schema;
use tollgate_document::doc::{Builder, Doc, Items, Span, Value, ValueKind};

/// A copy of the document as the server decodes it: unknown fields dropped, duplicate keys merged.
pub(super) fn copy_dropping_unknown_merging_duplicates(value: Value<'_>, schema: Schema) -> Doc<'_> {
    let mut out = Builder::with_capacity(value.doc().source(), value.doc().syntax(), value.node_count());
    write_struct(&mut out, schema.root, &[value], schema);
    out.finish()
}

/// Writes the struct that results from decoding `values` into it one after the other, as Go does for duplicate
/// keys.
fn write_struct(out: &mut Builder<'_>, ty: &'static StructSchema, values: &[Value<'_>], schema: Schema) {
    let span = values.last().map_or(Span::default(), |value| value.span());
    out.open(ValueKind::Object, span);
    for field in ty.fields.iter().filter(|field| field.known.overlaps(schema.fields)) {
        let named =
            values.iter().flat_map(|value| value.members().filter(|(key, _)| key.text() == field.json));
        let mut last = None;
        let given: Vec<Value<'_>> =
            named.inspect(|(key, _)| last = Some(*key)).map(|(_, value)| value).collect();
        if let Some(key) = last {
            out.copy(key);
            write_merged(out, &field.ty, field.pointer, &given, schema);
        }
    }
    if ty.unlisted != UnlistedFields::Dropped {
        copy_unknown(out, ty, values, schema);
    }
    out.close(span.end);
}

/// Copies the members that `ty` does not list, the last one of each name.
fn copy_unknown(out: &mut Builder<'_>, ty: &'static StructSchema, values: &[Value<'_>], schema: Schema) {
    let unknown = |key: &str| ty.field(key, schema.fields).is_none();
    let members = values.iter().flat_map(|value| value.members()).filter(|(key, _)| unknown(key.text()));
    for_last_of_each_key(members, |key, member| {
        out.copy(key);
        out.copy(member);
    });
}

/// Calls `write` with the last member of each name, in the order of the document. Only names are remembered:
/// there may be a million members.
fn for_last_of_each_key<'d>(
    members: impl Iterator<Item = (Value<'d>, Value<'d>)> + Clone,
    mut write: impl FnMut(Value<'d>, Value<'d>),
) {
    let last: HashMap<&str, u32> = members.clone().map(|(key, _)| (key.text(), key.index())).collect();
    for (key, member) in members {
        if last.get(key.text()) == Some(&key.index()) {
            write(key, member);
        }
    }
}

/// Writes the result of decoding the values `given`, one after the other, into the same field of type `ty`.
/// `pointer` is true if the Go field is a pointer.
fn write_merged(
    out: &mut Builder<'_>,
    ty: &'static FieldType,
    pointer: bool,
    given: &[Value<'_>],
    schema: Schema,
) {
    let null_clears = pointer
        || matches!(ty, FieldType::List(_) | FieldType::Map { .. } | FieldType::Quantity | FieldType::Time);
    let since_null = given.iter().rposition(|value| value.is_null_or_absent()).map_or(0, |null| null + 1);
    let live: Cow<'_, [Value<'_>]> = match given.get(since_null..) {
        Some(rest) if null_clears || since_null == 0 => Cow::Borrowed(rest),
        _ => given.iter().filter(|value| !value.is_null_or_absent()).copied().collect(),
    };
    let Some(last) = live.last() else {
        let last = given.last().copied().unwrap_or(Value::absent());
        out.copy(last);
        return;
    };
    match ty {
        FieldType::StringOr(_) if last.kind() == ValueKind::String => out.copy(*last),
        FieldType::Struct(inner) | FieldType::StringOr(inner) => write_struct(out, inner, &live, schema),
        FieldType::List(item) => {
            // Item by item through all lists at once; one that is at its end is not asked again.
            let mut lists: Vec<Items<'_>> = live.iter().map(|list| list.items()).collect();
            let mut slot: Vec<Value<'_>> = Vec::new();
            out.open(ValueKind::Array, last.span());
            for _ in 0..last.len() {
                slot.clear();
                lists.retain_mut(|list| {
                    let next = list.next();
                    slot.extend(next);
                    next.is_some()
                });
                write_merged(out, item, false, &slot, schema);
            }
            out.close(last.span().end);
        }
        FieldType::Map { value: inner, .. } => {
            out.open(ValueKind::Object, last.span());
            for_last_of_each_key(live.iter().flat_map(|map| map.members()), |key, member| {
                out.copy(key);
                write_merged(out, inner, false, &[member], schema);
            });
            out.close(last.span().end);
        }
        _ => out.copy(*last),
    }
}
