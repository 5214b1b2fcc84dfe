//! Fixes for decoding errors, if the schema leaves exactly one way to write what was probably intended.
//!
//! A fix renames a field, moves it into or out of an object, or adds or removes quotes. There are no fixes for objects
//! with many members, because a hostile document can have thousands of unknown fields in one object.

use super::super::schema::{FieldType, StructSchema};
use super::{Schema, suggest};
use tollgate_document::doc::{Value, ValueKind};
use tollgate_document::field::{FieldPath, Path};
use tollgate_document::finding::{Edit, Fix, NewValue};

/// Maximum number of members of an object for which fixes are proposed.
const MAX_FIXABLE_MEMBERS: usize = 64;
/// Maximum depth at which a fitting position for a field is searched.
const MAX_MOVE_DEPTH: usize = 5;
/// Names of objects whose members belong one level higher in versions that do not have such an object.
const WRAPPER_FIELDS: [&str; 3] = ["exactly", "basic", "spec"];
/// Fields that fixes can move to another object. Other names are too common to be unambiguous.
const MOVABLE_FIELDS: [&str; 18] = [
    "tolerations",
    "taints",
    "selectors",
    "deviceClassName",
    "count",
    "allocationMode",
    "adminAccess",
    "requests",
    "devices",
    "key",
    "value",
    "effect",
    "driver",
    "pool",
    "device",
    "attributes",
    "capacity",
    "expression",
];

/// An unknown field: its key, its value, and the object that has it.
#[derive(Clone, Copy)]
pub(super) struct UnknownField<'d, 'p> {
    pub(super) ty: &'static StructSchema,
    pub(super) object: Value<'d>,
    pub(super) key: &'d str,
    pub(super) value: Value<'d>,
    /// The path of the object that has the unknown field.
    pub(super) at: &'p Path<'p>,
}

/// Returns the fix for an unknown field; `None` if there is not exactly one way to correct it.
pub(super) fn fix_for_field(unknown: UnknownField<'_, '_>, schema: Schema) -> Option<Fix> {
    let UnknownField { object, key, value, .. } = unknown;
    let is_large = object.members().nth(MAX_FIXABLE_MEMBERS).is_some();
    if is_large || object.members().filter(|(name, _)| name.text_is(key)).count() != 1 {
        return None;
    }
    let fix = rename_fix(unknown, schema)
        .or_else(|| nest_fix(unknown, schema))
        .or_else(|| move_fix(unknown, schema))
        .or_else(|| unnest_fix(unknown, schema))?;
    // What a server would otherwise drop takes effect.
    let has_taints =
        value.self_and_descendants().any(|inner| inner.text_is("taints") || inner.text_is("taint"));
    Some(if has_taints { fix.marked_unsafe() } else { fix })
}

/// Renames the field to the probably intended one, and wraps its value in a list or object if that is the
/// only other difference.
fn rename_fix(unknown: UnknownField<'_, '_>, schema: Schema) -> Option<Fix> {
    let meant = suggest::meant_field(unknown.ty, unknown.key, schema)?;
    let (_, field) = unknown.ty.field(meant, schema.fields)?;
    if unknown.object.get(meant).exists() {
        return None;
    }
    let at = unknown.at.field(unknown.key).owned();
    let fix = Fix::rename(at.clone(), unknown.key, meant);
    match (&field.ty, unknown.value.kind()) {
        (FieldType::List(_), ValueKind::Object) => {
            (!unknown.value.is_empty()).then(|| fix.with_edit(Edit::WrapInList { at }))
        }
        (FieldType::Struct(_), ValueKind::Array) if unknown.value.len() == 1 => {
            Some(fix.with_edit(Edit::UnwrapList { at }))
        }
        (ty, kind) => may_decode(ty, kind).then_some(fix),
    }
}

/// True if some value of that kind decodes as the type.
fn may_decode(ty: &FieldType, kind: ValueKind) -> bool {
    match kind {
        ValueKind::Object => matches!(
            ty,
            FieldType::Struct(_) | FieldType::StringOr(_) | FieldType::Map { .. } | FieldType::Raw
        ),
        ValueKind::Array => matches!(ty, FieldType::List(_) | FieldType::Raw),
        _ => !matches!(ty, FieldType::Struct(_) | FieldType::Map { .. } | FieldType::List(_)),
    }
}

/// Moves the field, and all others that belong there, into a new nested object: `deviceClassName` into `exactly`.
/// Returns `None` if that object exists, if not exactly one struct has the field, or if such fields are not moved.
fn nest_fix(unknown: UnknownField<'_, '_>, schema: Schema) -> Option<Fix> {
    let UnknownField { ty, object, key, at, .. } = unknown;
    let known = ty.fields.iter().filter(|field| field.known.overlaps(schema.fields));
    let mut owners = known.filter_map(|field| {
        let FieldType::Struct(inner) = &field.ty else { return None };
        inner.field(key, schema.fields).map(|_| (field, *inner))
    });
    let (field, inner) =
        owners.next().filter(|_| owners.next().is_none() && MOVABLE_FIELDS.contains(&key))?;
    if object.get(field.json).exists() || object.get("firstAvailable").exists() {
        return None;
    }
    let belongs = |name: &str| {
        ty.field(name, schema.fields).is_none()
            && inner.field(name, schema.fields).is_some()
            && MOVABLE_FIELDS.contains(&name)
    };
    let members: Vec<Box<str>> =
        object.members().map(|(name, _)| name.text()).filter(|name| belongs(name)).map(Into::into).collect();
    let title = format!("Move `{}` into `{}`", members.join("`, `"), field.json);
    let has_taints = object.self_and_descendants().any(|inner| inner.text_is("taints"));
    let fix = Fix::safe(title, Edit::Nest { into: at.owned(), key: field.json.into(), members });
    Some(if has_taints { fix.marked_unsafe() } else { fix })
}

/// Moves the field to the only nested object that can contain it. Returns `None` if there are several or
/// none.
fn move_fix(unknown: UnknownField<'_, '_>, schema: Schema) -> Option<Fix> {
    let UnknownField { ty, object, key, at, .. } = unknown;
    if !MOVABLE_FIELDS.contains(&key) {
        return None;
    }
    let mut found = Vec::new();
    find_fitting_objects(object, ty, schema, key, at, MAX_MOVE_DEPTH, &mut found);
    let [into] = <[FieldPath; 1]>::try_from(found).ok()?;
    let title = format!("Move `{key}` to `{}`", into.print(tollgate_document::field::PathAudience::User));
    Some(Fix::safe(title, Edit::Move { at: at.field(key).owned(), into }))
}

/// Adds the paths of the objects below `object` that can contain the field. A list with several items counts
/// as two paths, because any item could be intended.
fn find_fitting_objects(
    object: Value<'_>,
    ty: &'static StructSchema,
    schema: Schema,
    key: &str,
    at: &Path<'_>,
    depth: usize,
    found: &mut Vec<FieldPath>,
) {
    for (name, value) in object.members().take(MAX_FIXABLE_MEMBERS) {
        let Some((_, field)) = ty.field(name.text(), schema.fields) else { continue };
        let path = at.field(field.json);
        let (value, path, ty) = match (&field.ty, value.kind()) {
            (FieldType::Struct(inner), ValueKind::Object) => (value, path, *inner),
            (FieldType::List(FieldType::Struct(inner)), ValueKind::Array) if value.len() == 1 => {
                (value.item(0), path.index(0), *inner)
            }
            // Any of several could be meant.
            (FieldType::List(FieldType::Struct(inner)), ValueKind::Array)
                if value.len() > 1 && has_field_within(inner, key, schema, 2) =>
            {
                found.extend([FieldPath::default(), FieldPath::default()]);
                continue;
            }
            _ => continue,
        };
        if ty.field(key, schema.fields).is_some() {
            if !value.get(key).exists() {
                found.push(path.owned());
            }
        } else if depth > 0 {
            find_fitting_objects(value, ty, schema, key, &path, depth - 1, found);
        }
    }
}

/// True if the type, or a struct at most `depth` levels below, has the field.
fn has_field_within(ty: &'static StructSchema, key: &str, schema: Schema, depth: usize) -> bool {
    ty.field(key, schema.fields).is_some()
        || depth > 0
            && ty
                .fields
                .iter()
                .any(|field| matches!(&field.ty, FieldType::Struct(inner) if has_field_within(inner, key, schema, depth - 1)))
}

/// Replaces an object that the version does not have by its members.
fn unnest_fix(unknown: UnknownField<'_, '_>, schema: Schema) -> Option<Fix> {
    let UnknownField { ty, object, key, value, at } = unknown;
    let is_wrapper = WRAPPER_FIELDS.contains(&key) && value.kind() == ValueKind::Object && !value.is_empty();
    let fits = |name: &str| ty.field(name, schema.fields).is_some() && !object.get(name).exists();
    if !is_wrapper || !value.members().take(MAX_FIXABLE_MEMBERS + 1).all(|(name, _)| fits(name.text())) {
        return None;
    }
    let title = format!("Move the fields of `{key}` one level up");
    Some(Fix::safe(title, Edit::Unnest { at: at.field(key).owned() }))
}

/// The fix for a key that is given twice; `None` if the values differ.
pub(super) fn fix_for_duplicate(object: Value<'_>, key: &str, at: &Path<'_>) -> Option<Fix> {
    let mut values = object
        .members()
        .take(MAX_FIXABLE_MEMBERS)
        .filter(|(name, _)| name.text_is(key))
        .map(|(_, value)| value);
    let (first, second) = (values.next()?, values.next()?);
    let is_same = values.next().is_none()
        && first.node_count() <= MAX_FIXABLE_MEMBERS
        && first.to_json() == second.to_json();
    let title = format!("Remove the second `{}`", tollgate_formats::gofmt::byte_prefix(key, 64));
    is_same.then(|| Fix::safe(title, Edit::Remove { at: at.field(key).owned() }))
}

/// The fix for a value of the wrong type; `None` if the intention is not clear.
pub(super) fn fix_for_value(value: Value<'_>, ty: &FieldType, at: &Path<'_>) -> Option<Fix> {
    let span = value.span();
    let written = value.doc().source().get(span.start as usize..span.end as usize)?;
    if written.is_empty()
        || written.len() > 64 && !matches!(value.kind(), ValueKind::Object | ValueKind::Array)
    {
        return None;
    }
    let at = || at.owned();
    let literal = |title: String, text: &str| {
        Fix::safe(title, Edit::Set { at: at(), value: NewValue::Literal(text.into()) })
    };
    match (value.kind(), ty) {
        (ValueKind::String, FieldType::Int) => match value.text().trim().parse::<i64>() {
            Ok(number) => Some(literal("Remove the quotes".to_owned(), &number.to_string())),
            Err(_) => suggest::whole_seconds(value.text())
                .map(|seconds| literal(format!("Replace `{written}` with `{seconds}`"), &seconds.to_string()))
                .map(Fix::marked_unsafe),
        },
        (ValueKind::String, FieldType::Bool) => {
            let meant = suggest::meant_bool(value.text())?.to_string();
            Some(literal(format!("Replace `{written}` with `{meant}`"), &meant))
        }
        (ValueKind::Number, FieldType::Int) => {
            let whole = value.text().strip_suffix(".0").filter(|whole| whole.parse::<i64>().is_ok())?;
            Some(literal(format!("Replace `{written}` with `{whole}`"), whole))
        }
        (
            ValueKind::Number | ValueKind::Bool,
            FieldType::Str | FieldType::Named(_) | FieldType::CoreNamed(_) | FieldType::Uid,
        ) => {
            let value = NewValue::Str(written.into());
            Some(Fix::safe("Add quotes", Edit::Set { at: at(), value }))
        }
        (ValueKind::Object, FieldType::List(_)) if value.is_empty() => {
            Some(literal("Replace `{}` with `[]`".to_owned(), "[]"))
        }
        // An empty toleration or selector matches whatever it can: nobody wrote that.
        (ValueKind::Array, FieldType::Map { .. }) if value.is_empty() => {
            Some(literal("Replace `[]` with `{}`".to_owned(), "{}"))
        }
        (kind, FieldType::List(item))
            if may_decode(item, kind)
                && kind != ValueKind::Null
                && !suggest::is_keyed_by_name(value, item) =>
        {
            Some(Fix::safe("Convert the value to a list with one item", Edit::WrapInList { at: at() }))
        }
        (ValueKind::Array, FieldType::Struct(_))
            if value.len() == 1 && value.item(0).kind() == ValueKind::Object =>
        {
            Some(Fix::safe("Replace the list with its only item", Edit::UnwrapList { at: at() }))
        }
        (ValueKind::Array, FieldType::Str | FieldType::Named(_))
            if value.len() == 1 && value.item(0).kind() == ValueKind::String =>
        {
            Some(Fix::safe("Replace the list with its only item", Edit::UnwrapList { at: at() }))
        }
        (kind, FieldType::Struct(inner)) => {
            let key = suggest::member_for_scalar(inner, kind)?;
            let title = format!("Replace `{written}` with `{{{key}: {written}}}`");
            Some(Fix::safe(title, Edit::WrapInObject { at: at(), key: key.into() }))
        }
        _ => None,
    }
}

/// The fix that replaces a malformed time or quantity with `meant`; `None` if `meant` is `None` or the value
/// is not a string.
pub(super) fn fix_for_malformed_string(
    value: Value<'_>,
    meant: Option<String>,
    at: &Path<'_>,
) -> Option<Fix> {
    let meant = meant.filter(|_| value.kind() == ValueKind::String)?;
    Some(Fix::replace(at.owned(), value.text(), &meant))
}
