//! Objects without the empty fields that API servers leave out: what a webhook gets of an object in a file.
//!
//! An API server decodes an object and encodes it again, which drops nulls, empty lists and maps, empty strings and
//! zeros in most fields. Rules check the object as it was sent, because validation precedes the encoding; policy
//! expressions see it as it is encoded. Not here: fields that the encoding adds, such as empty structs, and fields of pods
//! and workloads that Tollgate does not know, which stay as they are.
//!
//! Invariant: an object that an API server encoded is left as it is.

use super::fields::root_struct;
use super::print::is_left_out;
use super::schema::{FieldType, StructSchema};
use crate::profile::{ApiKind, Availability, Version};
use tollgate_document::doc::{Builder, Doc, Value, ValueKind};

/// A copy of a decoded object without the fields that an API server leaves out; `None` if there are none, and for custom
/// resources, which API servers encode as they are.
pub fn without_left_out_fields(
    object: Value<'_>,
    kind: ApiKind,
    version: Version,
    fields: Availability,
) -> Option<Doc<'_>> {
    if kind.is_custom_resource() {
        return None;
    }
    let encoder = Encoder { fields };
    let ty = root_struct(kind, version);
    if !encoder.changes_struct(object, ty) {
        return None;
    }
    let mut out = Builder::with_capacity(object.doc().source(), object.doc().syntax(), object.node_count());
    encoder.copy_struct(&mut out, object, ty);
    Some(out.finish())
}

/// The encoder of a release with these fields.
struct Encoder {
    fields: Availability,
}

impl Encoder {
    fn changes_struct(&self, value: Value<'_>, ty: &'static StructSchema) -> bool {
        value.members().any(|(key, member)| {
            let field = ty.field(key.text(), self.fields);
            field.is_some_and(|(_, field)| is_left_out(field, member) || self.changes(member, &field.ty))
        })
    }

    /// True if a field is left out somewhere in a value of that type.
    fn changes(&self, value: Value<'_>, ty: &'static FieldType) -> bool {
        match ty {
            FieldType::Struct(inner) | FieldType::StringOr(inner) => self.changes_struct(value, inner),
            FieldType::List(item) if item.innermost_struct().is_some() => {
                value.items().any(|element| self.changes(element, item))
            }
            FieldType::Map { value: inner, .. } if inner.innermost_struct().is_some() => {
                value.members().any(|(_, member)| self.changes(member, inner))
            }
            _ => false,
        }
    }

    fn copy_struct(&self, out: &mut Builder<'_>, value: Value<'_>, ty: &'static StructSchema) {
        out.open(ValueKind::Object, value.span());
        for (key, member) in value.members() {
            match ty.field(key.text(), self.fields) {
                Some((_, field)) if is_left_out(field, member) => {}
                Some((_, field)) => {
                    out.copy(key);
                    self.copy(out, member, &field.ty);
                }
                None => {
                    out.copy(key);
                    out.copy(member);
                }
            }
        }
        out.close(value.span().end);
    }

    fn copy(&self, out: &mut Builder<'_>, value: Value<'_>, ty: &'static FieldType) {
        match (ty, value.kind()) {
            (FieldType::Struct(inner) | FieldType::StringOr(inner), ValueKind::Object) => {
                self.copy_struct(out, value, inner);
            }
            (FieldType::List(item), ValueKind::Array) => {
                out.open(ValueKind::Array, value.span());
                value.items().for_each(|element| self.copy(out, element, item));
                out.close(value.span().end);
            }
            (FieldType::Map { value: inner, .. }, ValueKind::Object) => {
                out.open(ValueKind::Object, value.span());
                for (key, member) in value.members() {
                    out.copy(key);
                    self.copy(out, member, inner);
                }
                out.close(value.span().end);
            }
            _ => out.copy(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_left_out_fields;
    use crate::profile::{ApiKind, Profile, Version};
    use tollgate_document::doc::parse;

    #[test]
    fn fields_are_left_out_as_the_encoder_does() {
        let fields = Profile::named("1.37").expect("a release").fields;
        let left = |json: &str, kind, version| {
            let document = parse(json).expect("JSON");
            without_left_out_fields(document.root(), kind, version, fields)
                .map(|document| document.root().to_json())
        };
        let claim = r#"{"metadata":{"annotations":{},"finalizers":null,"labels":{"a":""},"name":"c"},
            "spec":{"devices":{"config":[],"constraints":null,"requests":[
            {"exactly":{"adminAccess":false,"count":0,"deviceClassName":"","selectors":[],"tolerations":[
            {"effect":"","key":"a","operator":"Exists","tolerationSeconds":0}]},"firstAvailable":[],"name":"r"},
            {"exactly":null,"name":"s"}]}},"status":{"devices":[]}}"#;
        let kept = r#"{"metadata":{"labels":{"a":""},"name":"c"},"spec":{"devices":{"requests":[{"exactly":{"adminAccess":false,"deviceClassName":"","tolerations":[{"key":"a","operator":"Exists","tolerationSeconds":0}]},"name":"r"},{"name":"s"}]}},"status":{}}"#;
        assert_eq!(left(claim, ApiKind::ResourceClaim, Version::V1).as_deref(), Some(kept));
        assert_eq!(left(kept, ApiKind::ResourceClaim, Version::V1), None, "already encoded");
        let empty = r#"{"spec":{"devices":{"requests":[]}}}"#;
        assert_eq!(left(empty, ApiKind::ResourceClaim, Version::V1), None, "always encoded");
        let flat = r#"{"spec":{"devices":{"requests":[{"name":"r","tolerations":[]}]}}}"#;
        assert_eq!(
            left(flat, ApiKind::ResourceClaim, Version::V1beta1).as_deref(),
            Some(r#"{"spec":{"devices":{"requests":[{"name":"r"}]}}}"#)
        );
        let slice = r#"{"spec":{"devices":[{"attributes":{"a":{"bool":false},"b":{"string":null}},"name":"d","taints":[]}]}}"#;
        assert_eq!(
            left(slice, ApiKind::ResourceSlice, Version::V1).as_deref(),
            Some(r#"{"spec":{"devices":[{"attributes":{"a":{"bool":false},"b":{}},"name":"d"}]}}"#)
        );
        let custom = r#"{"metadata":{"labels":{}},"spec":{"processes":{}}}"#;
        assert_eq!(left(custom, ApiKind::FoundationDbCluster, Version::V1beta2), None);
    }
}
