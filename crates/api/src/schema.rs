//! Types of the API as data: what a struct's fields are called and what they may hold.
//!
//! One description serves four readers: type errors with Go's words, unknown and duplicate fields, semantic equality
//! on updates, and values printed as Go prints structs. The rows are in `api::fields`; this file only says what a
//! row is. It knows nothing of rules and nothing of views.

use crate::profile::{Availability, Version};
use tollgate_document::doc::{Key, Name, ValueKind};

/// The type of a field or of a list's items.
#[derive(Clone, Copy, Debug)]
pub enum Ty {
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
    Struct(&'static StructTy),
    /// A string, or an object with the string as its name, because KEP-3063 lists names where Kubernetes
    /// lists objects.
    StringOr(&'static StructTy),
    /// A list.
    List(&'static Ty),
    /// An object with arbitrary keys.
    Map {
        /// Go's key type: `string`, a named one of the API's package, or one with its own package before it.
        key: &'static str,
        /// Type of the values.
        value: &'static Ty,
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
pub struct StructTy {
    /// Name of the Go type.
    pub name: &'static str,
    /// Package of the Go type.
    pub package: GoPackage,
    /// Fields in declaration order.
    pub fields: &'static [Field],
    /// How unlisted fields are handled.
    pub unlisted: Unlisted,
    /// Tables that find a field by the number of its name.
    pub rows: FieldTable,
}

/// How the decoder treats fields that a struct does not list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unlisted {
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
    /// JSON name as a [`Name`] for lookups in documents.
    pub name: Name,
    /// Type of the field.
    pub ty: Ty,
    /// A Go pointer: `null` and absent differ from the zero value.
    pub pointer: bool,
    /// Never left out when printed, even when empty (no `omitempty`).
    pub always: bool,
    /// The releases and drafts that have it.
    pub known: Availability,
    /// The embedded Go struct it comes from: Go's error texts name it, JSON does not.
    pub embedded: Option<&'static str>,
}

impl StructTy {
    /// The field with that JSON name, and its index in `fields`; `None` if the release does not know it. Case counts.
    pub fn field(&self, json: &str, fields: Availability) -> Option<(usize, &'static Field)> {
        self.fields.iter().enumerate().find(|(_, field)| field.json == json && field.known.overlaps(fields))
    }

    /// The field that a key of a document names, and its index in `fields`; `None` if the release does not know it.
    /// Case counts.
    #[inline]
    pub fn field_of(&self, key: Key<'_>, fields: Availability) -> Option<(usize, &'static Field)> {
        let Some(number) = key.number() else { return self.search_from(key, fields, 0) };
        // Plus one; zero: no row.
        let row = usize::from(*self.rows.first.get(number)?);
        let field = self.fields.get(row.checked_sub(1)?)?;
        // A field that changed its type has a row for each.
        if field.known.overlaps(fields) { Some((row - 1, field)) } else { self.search_from(key, fields, row) }
    }

    /// [`StructTy::field_of`] among the fields from the index `first` on, comparing texts.
    #[cold]
    fn search_from(
        &self,
        key: Key<'_>,
        fields: Availability,
        first: usize,
    ) -> Option<(usize, &'static Field)> {
        let mut rows = self.fields.iter().enumerate().skip(first);
        rows.find(|(_, field)| key.is(field.name) && field.known.overlaps(fields))
    }
}

/// Lookup tables from name numbers to the fields of a struct.
#[derive(Debug)]
pub struct FieldTable {
    /// For each name number, the index of its first field plus one; 0 if there is none.
    first: [u8; Name::NUMBERS],
    /// For each name number, [`Ty::plain_kinds`] if every release has the field; otherwise 0.
    plain: [u8; Name::NUMBERS],
}

impl FieldTable {
    /// Computes the tables for these fields.
    ///
    /// # Panics
    /// If there are more than 64 fields. Intended for tables that are computed at compile time.
    #[expect(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "while compiling")]
    pub const fn of(fields: &[Field]) -> FieldTable {
        assert!(fields.len() <= 64, "decoding marks the rows it has visited in 64 bits");
        let (mut first, mut plain) = ([0; Name::NUMBERS], [0; Name::NUMBERS]);
        let mut row = fields.len();
        while row > 0 {
            let field = &fields[row - 1];
            let number = field.name.number();
            first[number] = row as u8;
            plain[number] = if field.known.0 == Availability::ALWAYS.0 { field.ty.plain_kinds() } else { 0 };
            row -= 1;
        }
        // Names without a number share its place.
        plain[0] = 0;
        FieldTable { first, plain }
    }

    /// The index of the key's field as a bit, if every release has the field and every value of this kind
    /// decodes, as is the case for most members. `None` means that the field must be looked up.
    #[inline]
    pub fn field_bit_if_plain(&self, key: Key<'_>, kind: ValueKind) -> Option<u64> {
        let number = key.number()?;
        let is_easy = self.plain.get(number)? & kind_bit(kind) != 0;
        let row = self.first.get(number).filter(|_| is_easy)?;
        1_u64.checked_shl(u32::from(*row).wrapping_sub(1))
    }
}

/// The bit for a kind of value.
const fn kind_bit(kind: ValueKind) -> u8 {
    1 << kind as u8
}

impl Ty {
    /// True if every value of this kind decodes as this type, so that it need not be checked.
    #[inline]
    pub fn accepts_any(&self, kind: ValueKind) -> bool {
        self.plain_kinds() & kind_bit(kind) != 0
    }

    /// The kinds, as bits, of which every value decodes as this type.
    const fn plain_kinds(&self) -> u8 {
        let also = match self {
            Ty::Raw => u8::MAX,
            Ty::Str | Ty::Named(_) | Ty::CoreNamed(_) | Ty::Uid | Ty::StringOr(_) => {
                kind_bit(ValueKind::String)
            }
            Ty::Bool => kind_bit(ValueKind::Bool),
            _ => 0,
        };
        kind_bit(ValueKind::Null) | also
    }

    /// The struct that this type is, or that its items or values are; `None` if there is none.
    pub fn innermost(&self) -> Option<&'static StructTy> {
        match self {
            Ty::Struct(ty) | Ty::StringOr(ty) => Some(ty),
            Ty::List(item) => item.innermost(),
            Ty::Map { value, .. } => value.innermost(),
            _ => None,
        }
    }

    /// Go's name of the type, as `encoding/json` prints it.
    pub fn go_name(&self, version: Version) -> String {
        let api = version.name();
        match self {
            Ty::Str | Ty::Time => "string".to_owned(),
            Ty::Named(name) => format!("{api}.{name}"),
            Ty::CoreNamed(name) => format!("v1.{name}"),
            Ty::Uid => "types.UID".to_owned(),
            Ty::Int => "int64".to_owned(),
            Ty::Bool => "bool".to_owned(),
            Ty::Quantity => "resource.Quantity".to_owned(),
            Ty::Raw => "runtime.RawExtension".to_owned(),
            Ty::Struct(ty) | Ty::StringOr(ty) if ty.package == GoPackage::Meta => format!("v1.{}", ty.name),
            Ty::Struct(ty) | Ty::StringOr(ty) => format!("{api}.{}", ty.name),
            Ty::List(item) => format!("[]{}", item.go_name(version)),
            Ty::Map { key, value } if *key == "string" || key.contains('.') => {
                format!("map[{key}]{}", value.go_name(version))
            }
            Ty::Map { key, value } => format!("map[{api}.{key}]{}", value.go_name(version)),
        }
    }
}
