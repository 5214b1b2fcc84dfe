//! Prints values as the API server's JSON encoder does in the version of the object: fields in declaration order, empty
//! fields omitted.
//!
//! Errors of declarative validation contain duplicate list elements in this form.

use super::schema::{Field, FieldType, StructSchema};
use super::view::{quantity, time};
use crate::profile::Availability;
use tollgate_document::doc::{Value, ValueKind};
use tollgate_formats::gofmt;
use tollgate_formats::gotime;

/// A struct as the API server prints it in its own version. The text may end anywhere after `max_bytes` bytes.
pub fn struct_json_cut_after(
    value: Value<'_>,
    ty: &'static StructSchema,
    fields: Availability,
    max_bytes: usize,
) -> String {
    let mut out = String::new();
    write_struct(&mut out, value, ty, fields, max_bytes);
    out
}

/// Appends a struct: the fields that the release knows, in declaration order.
fn write_struct(
    out: &mut String,
    value: Value<'_>,
    ty: &'static StructSchema,
    fields: Availability,
    max_bytes: usize,
) {
    out.push('{');
    let mut first = true;
    for field in ty.fields.iter().filter(|field| field.known.overlaps(fields)) {
        if out.len() > max_bytes {
            return;
        }
        let member = value.get(field.json);
        if is_left_out(field, member) {
            continue;
        }
        if !first {
            out.push(',');
        }
        first = false;
        gofmt::push_json_string(out, field.json);
        out.push(':');
        write_value(out, member, &field.ty, fields, max_bytes);
    }
    out.push('}');
}

/// True if the encoder leaves out a field with this value.
pub(crate) fn is_left_out(field: &Field, value: Value<'_>) -> bool {
    if field.pointer {
        value.is_null_or_absent()
    } else {
        !field.always && is_omitted_when_empty(value, &field.ty)
    }
}

/// True if `omitempty`, or `omitzero` for times, leaves the value out. Never for structs.
fn is_omitted_when_empty(value: Value<'_>, ty: &FieldType) -> bool {
    match ty {
        FieldType::Str | FieldType::Named(_) | FieldType::CoreNamed(_) | FieldType::Uid => {
            value.str().is_empty()
        }
        FieldType::Int => value.int().unwrap_or_default() == 0,
        FieldType::Bool => !value.bool().unwrap_or_default(),
        FieldType::List(_) | FieldType::Map { .. } => value.is_empty(),
        FieldType::Time => nonzero_time(value).is_none(),
        FieldType::Quantity | FieldType::Raw | FieldType::Struct(_) | FieldType::StringOr(_) => false,
    }
}

/// The time that a value holds; `None` if it is not one, or is Go's zero time.
fn nonzero_time(value: Value<'_>) -> Option<gotime::Timestamp> {
    time(value).filter(|time| !time.is_go_zero_time())
}

/// Appends a value of that type. The text may end anywhere after `max_bytes` bytes.
pub fn write_value(
    out: &mut String,
    value: Value<'_>,
    ty: &'static FieldType,
    fields: Availability,
    max_bytes: usize,
) {
    match ty {
        FieldType::Str | FieldType::Named(_) | FieldType::CoreNamed(_) | FieldType::Uid => {
            gofmt::push_json_string(out, gofmt::byte_prefix(value.str(), max_bytes))
        }
        FieldType::Int => out.push_str(&value.int().unwrap_or_default().to_string()),
        FieldType::Bool => out.push_str(if value.bool().unwrap_or_default() { "true" } else { "false" }),
        FieldType::Quantity => {
            gofmt::push_json_string(out, quantity(value).map_or("0".into(), |amount| amount.text()).as_ref())
        }
        FieldType::Time => match nonzero_time(value) {
            Some(time) => gofmt::push_json_string(out, &gotime::rfc3339(time)),
            None => out.push_str("null"),
        },
        FieldType::Raw | FieldType::List(_) | FieldType::Map { .. } if value.is_null_or_absent() => {
            out.push_str("null")
        }
        FieldType::Raw => gofmt::push_compact_json(out, gofmt::byte_prefix(&value.raw_json(), max_bytes)),
        FieldType::StringOr(_) if value.kind() == ValueKind::String => {
            gofmt::push_json_string(out, gofmt::byte_prefix(value.str(), max_bytes));
        }
        FieldType::Struct(inner) | FieldType::StringOr(inner) => {
            write_struct(out, value, inner, fields, max_bytes)
        }
        FieldType::List(item) => {
            out.push('[');
            for (index, element) in value.items().enumerate() {
                if out.len() > max_bytes {
                    return;
                }
                if index > 0 {
                    out.push(',');
                }
                write_value(out, element, item, fields, max_bytes);
            }
            out.push(']');
        }
        FieldType::Map { value: inner, .. } => {
            let mut members: Vec<(Value<'_>, Value<'_>)> = value.members().collect();
            members.sort_by_key(|(key, _)| key.text());
            out.push('{');
            for (index, (key, member)) in members.into_iter().enumerate() {
                if out.len() > max_bytes {
                    return;
                }
                if index > 0 {
                    out.push(',');
                }
                gofmt::push_json_string(out, gofmt::byte_prefix(key.text(), max_bytes));
                out.push(':');
                write_value(out, member, inner, fields, max_bytes);
            }
            out.push('}');
        }
    }
}
