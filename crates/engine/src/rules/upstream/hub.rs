//! Values as Go prints the API server's internal structs: every field by its Go name, nothing left out.
//!
//! Internal types have no JSON names, so the schema's fields print with Go's: the JSON name with a capital. A flat
//! request prints as what it is converted to. Metadata inside a spec keeps its JSON names, as in Go.

use crate::rules::RuleContext;
use tollgate_api::profile::{Availability, Version};
use tollgate_api::schema::{Field, FieldType};
use tollgate_api::view::{Object, Request, View};
use tollgate_api::{fields, print};
use tollgate_document::doc::Value;
use tollgate_document::finding::BadValue;

/// A list of strings. This and the following types are used to print single fields in messages.
pub static STRING_LIST_TYPE: FieldType = FieldType::List(&FieldType::Str);
pub static PRINTED_ATTRIBUTE_TYPE: FieldType = FieldType::Struct(&fields::ATTRIBUTE);
pub static PRINTED_NODE_TERMS_TYPE: FieldType = FieldType::List(&FieldType::Struct(&fields::NODE_TERM));
pub static POD_CLAIM_TYPE: FieldType = FieldType::Struct(&fields::POD_CLAIM);

/// Returns a member of an object, such as `spec`, for a message.
pub fn go_printed_member(cx: &RuleContext<'_, '_>, object: Object<'_>, json: &str) -> BadValue {
    let field = fields::root_struct(object.kind(), object.version).field(json, cx.profile.fields);
    field.map_or(BadValue::Omitted, |(_, field)| go_printed_value(cx, object.value().get(json), &field.ty))
}

/// Returns a value of that type for a message, with the fields of the release; it may be cut anywhere past the longest
/// text that is shown.
pub fn go_printed_value(cx: &RuleContext<'_, '_>, value: Value<'_>, ty: &'static FieldType) -> BadValue {
    let mut out = String::new();
    let writer = InternalStructWriter {
        version: cx.version,
        fields: cx.profile.fields,
        max_bytes: cx.max_value_bytes(),
    };
    writer.write(&mut out, value, ty);
    BadValue::Json(out.into())
}

/// Writes a value as Go prints the server's internal struct for it, up to a length.
#[derive(Clone, Copy)]
struct InternalStructWriter {
    version: Version,
    fields: Availability,
    max_bytes: usize,
}

impl InternalStructWriter {
    /// Appends a value of that type.
    fn write(self, out: &mut String, value: Value<'_>, ty: &'static FieldType) {
        match ty {
            FieldType::Struct(inner)
                if inner.name == "DeviceRequest" && self.version.is_v1alpha3_or_v1beta1() =>
            {
                self.write_flat_request(out, value);
            }
            FieldType::Struct(inner) => {
                out.push('{');
                self.write_fields(out, value, inner.fields);
                out.push('}');
            }
            FieldType::List(_) if value.is_null_or_absent() => out.push_str("null"),
            FieldType::List(item) => {
                out.push('[');
                for (index, element) in value.items().enumerate() {
                    if out.len() > self.max_bytes {
                        return;
                    }
                    if index > 0 {
                        out.push(',');
                    }
                    self.write(out, element, item);
                }
                out.push(']');
            }
            _ => print::write_value(out, value, ty, self.fields, self.max_bytes),
        }
    }

    /// Appends the fields of a struct, after any fields that `out` already contains.
    fn write_fields(self, out: &mut String, value: Value<'_>, fields: &'static [Field]) {
        // The template of a pod's claim is older than the internal types.
        let is_printed = |field: &&Field| field.known.overlaps(self.fields) && field.json != "template";
        for field in fields.iter().filter(is_printed) {
            if out.len() > self.max_bytes {
                return;
            }
            let member = value.get(field.json);
            match &field.ty {
                FieldType::Struct(meta) if meta.name == "ObjectMeta" => {
                    let whole = print::struct_json_cut_after(member, meta, self.fields, self.max_bytes);
                    // It has no end if it is too long.
                    let inner = whole.strip_prefix('{').unwrap_or(&whole);
                    out.push_str(inner.strip_suffix('}').unwrap_or(inner));
                }
                ty => {
                    begin_go_member(out, field.json);
                    if field.pointer && member.is_null_or_absent() {
                        out.push_str("null");
                    } else {
                        self.write(out, member, ty);
                    }
                }
            }
        }
    }

    /// Appends a request of a flat version in the shape that it is converted to.
    // upstream v1.36 v1beta1/conversion.go Convert_v1beta1_DeviceRequest_To_resource_DeviceRequest
    fn write_flat_request(self, out: &mut String, value: Value<'_>) {
        let request = Request::of(value);
        out.push('{');
        for field in fields::device_request_struct(Version::V1).fields {
            if field.json != "exactly" {
                self.write_fields(out, value, std::slice::from_ref(field));
                continue;
            }
            begin_go_member(out, field.json);
            match request.exactly(self.version) {
                Some(body) => self.write_exactly_of_flat_request(out, body.json(), &field.ty),
                None => out.push_str("null"),
            }
        }
        out.push('}');
    }

    /// Appends the `exactly` object, with its braces, that a request of a flat version (such as v1beta1) is converted to.
    /// An empty list of tolerations becomes `null`, because only this list is converted item by item.
    fn write_exactly_of_flat_request(self, out: &mut String, value: Value<'_>, ty: &'static FieldType) {
        let FieldType::Struct(exact) = ty else { return };
        out.push('{');
        for field in exact.fields {
            if field.json == "tolerations" && value.get(field.json).is_empty() {
                begin_go_member(out, field.json);
                out.push_str("null");
            } else {
                self.write_fields(out, value, std::slice::from_ref(field));
            }
        }
        out.push('}');
    }
}

/// Appends `"Name":`, where `Name` is the Go name of the JSON field, with a comma before it unless it is the first
/// member.
fn begin_go_member(out: &mut String, json: &str) {
    if !out.ends_with(['{', '[']) {
        out.push(',');
    }
    out.push('"');
    let (name, end) = match json {
        "cel" => ("CEL", ""),
        "int" | "bool" | "string" | "version" => (json, "Value"),
        "ints" | "bools" | "strings" | "versions" => (json.trim_end_matches('s'), "Values"),
        _ => (json, ""),
    };
    let mut letters = name.chars();
    out.extend(letters.next().map(|first| first.to_ascii_uppercase()));
    out.push_str(letters.as_str());
    out.push_str(end);
    out.push_str("\":");
}
