//! Types of the API as data: what a struct's fields are called and what they may hold.
//!
//! One description serves four readers: type errors with Go's words, unknown and duplicate fields, semantic equality
//! on updates, and values printed as Go prints structs. The rows are in `api::fields`; this file only says what a
//! row is. It knows nothing of rules and nothing of views.

use crate::profile::{Availability, Version};
use tollgate_document::doc::{FieldName, ObjectKey, ValueKind};

/// The type of a field or of a list's items.
#[derive(Clone, Copy, Debug)]
pub enum FieldType {
    /// A plain Go string.
    Str,
    /// A named string type of the API's package: `DeviceTaintEffect`.
    Named(&'static str),
    /// A named string type of `meta/v1` or `core/v1`: `ConditionStatus`.
    CoreNamed(&'static str),
    /// `types.UID`.
    Uid,
    /// An int64.
    Int,
    /// A bool.
    Bool,
    /// A `resource.Quantity`: string or number.
    Quantity,
    /// A `metav1.Time`.
    Time,
    /// A `runtime.RawExtension`: any JSON, kept as text.
    Raw,
    /// An object with fixed fields.
    Struct(&'static StructSchema),
    /// A string, or an object with the string as its name, because KEP-3063 lists names where Kubernetes
    /// lists objects.
    StringOr(&'static StructSchema),
    /// A list.
    List(&'static FieldType),
    /// An object with arbitrary keys.
    Map {
        /// Go's key type: `string`, a named one of the API's package, or one with its own package before it.
        key: &'static str,
        /// Type of the values.
        value: &'static FieldType,
    },
}

/// The Go package of a type, which appears in error messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GoPackage {
    /// `resource.k8s.io` in the version of the object.
    Api,
    /// `meta/v1` or `core/v1`: always printed `v1`.
    Meta,
}

/// The schema of a struct of the API: its Go name and its fields.
#[derive(Debug)]
pub struct StructSchema {
    /// Name of the Go type.
    pub name: &'static str,
    /// Package of the Go type.
    pub package: GoPackage,
    /// Fields in declaration order.
    pub fields: &'static [Field],
    /// How unlisted fields are handled.
    pub unlisted: UnlistedFields,
}

/// How the decoder treats fields that a struct does not list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnlistedFields {
    /// Reported and dropped, because all fields of the struct are known.
    Dropped,
    /// Reported, except for these fields, and visible to rules. A later release may define such fields, and a
    /// webhook must not ignore them.
    ReportedExcept(&'static [&'static str]),
    /// Kept and not reported, because only some fields of the struct are known.
    Ignored,
}

/// A field of an API struct: its JSON name, its type, and the releases that have it.
#[derive(Debug)]
pub struct Field {
    /// JSON name.
    pub json: &'static str,
    /// JSON name as a [`FieldName`] for lookups in documents.
    pub name: FieldName,
    /// Type of the field.
    pub ty: FieldType,
    /// True for a Go pointer, for which `null` and absent differ from the zero value.
    pub pointer: bool,
    /// True if the field is printed even when empty (no `omitempty`).
    pub always: bool,
    /// The releases and drafts that have the field.
    pub known: Availability,
    /// The embedded Go struct that the field comes from: Go's error texts name it, JSON does not.
    pub embedded: Option<&'static str>,
}

impl StructSchema {
    /// The field with that JSON name, and its index in `fields`; `None` if the release does not know it. Case counts.
    pub fn field(&self, json: &str, fields: Availability) -> Option<(usize, &'static Field)> {
        self.fields.iter().enumerate().find(|(_, field)| field.json == json && field.known.overlaps(fields))
    }

    /// The field that a key of a document names, and its index in `fields`; `None` if the release does not know it.
    /// Case counts. The field with the index `likely` is tried first, because objects usually have their fields in order.
    pub fn field_for_key(
        &self,
        key: ObjectKey<'_>,
        fields: Availability,
        likely: usize,
    ) -> Option<(usize, &'static Field)> {
        let is_named = |field: &Field| key.has_name(field.name) && field.known.overlaps(fields);
        match self.fields.get(likely) {
            Some(field) if is_named(field) => Some((likely, field)),
            _ => self.fields.iter().enumerate().find(|(_, field)| is_named(field)),
        }
    }
}

impl FieldType {
    /// True if every value of this kind decodes as this type, so that it need not be checked.
    #[inline]
    pub fn accepts_every_value_of(&self, kind: ValueKind) -> bool {
        match self {
            FieldType::Raw => true,
            FieldType::Str
            | FieldType::Named(_)
            | FieldType::CoreNamed(_)
            | FieldType::Uid
            | FieldType::StringOr(_) => {
                matches!(kind, ValueKind::Null | ValueKind::String)
            }
            FieldType::Bool => matches!(kind, ValueKind::Null | ValueKind::Bool),
            _ => kind == ValueKind::Null,
        }
    }

    /// The struct that this type is, or that its items or values are; `None` if there is none.
    pub fn innermost_struct(&self) -> Option<&'static StructSchema> {
        match self {
            FieldType::Struct(ty) | FieldType::StringOr(ty) => Some(ty),
            FieldType::List(item) => item.innermost_struct(),
            FieldType::Map { value, .. } => value.innermost_struct(),
            _ => None,
        }
    }

    /// Go's name of the type, as `encoding/json` prints it.
    pub fn go_name(&self, version: Version) -> String {
        let api = version.name();
        match self {
            FieldType::Str | FieldType::Time => "string".to_owned(),
            FieldType::Named(name) => format!("{api}.{name}"),
            FieldType::CoreNamed(name) => format!("v1.{name}"),
            FieldType::Uid => "types.UID".to_owned(),
            FieldType::Int => "int64".to_owned(),
            FieldType::Bool => "bool".to_owned(),
            FieldType::Quantity => "resource.Quantity".to_owned(),
            FieldType::Raw => "runtime.RawExtension".to_owned(),
            FieldType::Struct(ty) | FieldType::StringOr(ty) if ty.package == GoPackage::Meta => {
                format!("v1.{}", ty.name)
            }
            FieldType::Struct(ty) | FieldType::StringOr(ty) => format!("{api}.{}", ty.name),
            FieldType::List(item) => format!("[]{}", item.go_name(version)),
            FieldType::Map { key, value } if *key == "string" || key.contains('.') => {
                format!("map[{key}]{}", value.go_name(version))
            }
            FieldType::Map { key, value } => format!("map[{api}.{key}]{}", value.go_name(version)),
        }
    }
}
