//! The document the server goes on with: unknown fields dropped, duplicate keys merged as Go merges them.
//!
//! Go decodes each duplicate into what the earlier ones left: scalars are overwritten, structs merged field by
//! field, maps merged by key with each value replaced whole, lists overwritten item by item into the old items and
//! then cut. `null` clears pointers, lists and maps and leaves everything else as it was.

use std::collections::HashMap;

use super::super::schema::{Field, StructTy, Ty};
use super::Schema;
use crate::doc::{Builder, Doc, Items, Kind, Span, Value};

/// Copies the document, merged and pruned.
pub(super) fn rewrite(value: Value<'_>, schema: Schema) -> Doc<'_> {
    let mut out = Builder::with_room(value.doc().source(), value.doc().syntax(), value.size());
    write_struct(&mut out, schema.root, &[value], schema);
    out.finish()
}

fn write_struct(out: &mut Builder<'_>, ty: &'static StructTy, values: &[Value<'_>], schema: Schema) {
    let span = values.last().map_or(Span::default(), |value| value.span());
    out.open(Kind::Object, span);
    for field in ty.fields.iter().filter(|field| field.known.meets(schema.fields)) {
        let named =
            values.iter().flat_map(|value| value.members().filter(|(key, _)| key.text() == field.json));
        let (keys, given): (Vec<Value<'_>>, Vec<Value<'_>>) = named.unzip();
        if let Some(key) = keys.last() {
            out.copy(*key);
            write_field(out, field, &given, schema);
        }
    }
    if ty.open {
        copy_unknown(out, ty, values, schema);
    }
    out.close(span.end);
}

/// What a type that we know in part has besides: the last of each name, as it is.
fn copy_unknown(out: &mut Builder<'_>, ty: &'static StructTy, values: &[Value<'_>], schema: Schema) {
    let unknown = |key: &str| ty.field(key, schema.fields).is_none();
    let members: Vec<(Value<'_>, Value<'_>)> =
        values.iter().flat_map(|value| value.members()).filter(|(key, _)| unknown(key.text())).collect();
    let winners: HashMap<&str, usize> =
        members.iter().enumerate().map(|(position, (key, _))| (key.text(), position)).collect();
    for (position, (key, member)) in members.iter().enumerate() {
        if winners.get(key.text()) == Some(&position) {
            out.copy(*key);
            out.copy(*member);
        }
    }
}

fn write_field(out: &mut Builder<'_>, field: &'static Field, given: &[Value<'_>], schema: Schema) {
    write(out, &field.ty, field.pointer, given, schema);
}

/// Writes what is left after decoding `given` one after the other into one place.
fn write(out: &mut Builder<'_>, ty: &'static Ty, pointer: bool, given: &[Value<'_>], schema: Schema) {
    let nil_is_empty = pointer || matches!(ty, Ty::List(_) | Ty::Map { .. });
    let since_null = given.iter().rposition(|value| value.is_null()).map_or(0, |null| null + 1);
    let live: Vec<Value<'_>> = if nil_is_empty {
        given.iter().skip(since_null).copied().collect()
    } else {
        given.iter().filter(|value| !value.is_null()).copied().collect()
    };
    let Some(last) = live.last() else {
        let last = given.last().copied().unwrap_or(Value::absent());
        out.copy(last);
        return;
    };
    match ty {
        Ty::StringOr(_) if last.kind() == Kind::String => out.copy(*last),
        Ty::Struct(inner) | Ty::StringOr(inner) => write_struct(out, inner, &live, schema),
        Ty::List(item) => {
            // Item by item through all lists at once; one that is at its end is not asked again.
            let mut lists: Vec<Items<'_>> = live.iter().map(|list| list.items()).collect();
            let mut slot: Vec<Value<'_>> = Vec::new();
            out.open(Kind::Array, last.span());
            for _ in 0..last.len() {
                slot.clear();
                lists.retain_mut(|list| {
                    let next = list.next();
                    slot.extend(next);
                    next.is_some()
                });
                write(out, item, false, &slot, schema);
            }
            out.close(last.span().end);
        }
        Ty::Map { value: inner, .. } => {
            out.open(Kind::Object, last.span());
            let members: Vec<(Value<'_>, Value<'_>)> = live.iter().flat_map(|map| map.members()).collect();
            let positions = members.iter().enumerate().map(|(position, (key, _))| (key.text(), position));
            let winners: HashMap<&str, usize> = positions.collect();
            for (position, (key, member)) in members.iter().enumerate() {
                if winners.get(key.text()) == Some(&position) {
                    out.copy(*key);
                    write(out, inner, false, &[*member], schema);
                }
            }
            out.close(last.span().end);
        }
        _ => out.copy(*last),
    }
}
