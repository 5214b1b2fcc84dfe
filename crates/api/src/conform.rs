//! Decodes a document with the schema of its kind, as the API server's decoder does.
//!
//! Wrong types, invalid times and invalid quantities are all reported, with Go's messages. Unknown fields and
//! duplicate keys are reported separately, because a server silently drops or merges them unless decoding is strict.
//! If there are any, a changed copy of the document is created, so that views and rules see neither.
//!
//! Formats and limits are not checked here. Invariant: a document without decoding errors needs no allocation.

mod mend;
mod merge;
mod near;
pub mod suggest;

use std::collections::HashSet;
use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;

use super::schema::{FieldType, StructSchema, UnlistedFields};
use crate::profile::{Availability, Version};
use mend::UnknownField;
use tollgate_document::doc::{Doc, NameSet, Syntax, Value, ValueKind};
use tollgate_document::field::{FieldPath, Path, SegmentName};
use tollgate_document::finding::Fix;
use tollgate_formats::gofmt;
use tollgate_formats::gotime;
use tollgate_formats::quantity;

/// The schema for decoding a document: the type of its root, and the version and release, which determine the
/// fields.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// The type of the whole document.
    pub root: &'static StructSchema,
    /// The API version in which the document is written.
    pub version: Version,
    /// The releases and drafts whose fields the schema contains.
    pub fields: Availability,
    /// Fields at any depth whose values are not checked, because the caller does not read them.
    pub unread: &'static NameSet,
}

/// A decoding error and its path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecodeError {
    /// Path of the value.
    pub at: FieldPath,
    /// Kind of error.
    pub kind: DecodeErrorKind,
    /// The API server's message.
    pub detail: String,
    /// A hint for users.
    pub help: Option<String>,
    /// The fix, if exactly one is correct.
    pub fix: Option<Box<Fix>>,
}

/// The detail, the hint and the fix of a decoding error.
struct ErrorTexts {
    detail: String,
    help: Option<String>,
    fix: Option<Fix>,
}

/// Kinds of decoding errors, which determine the rule that reports them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeErrorKind {
    /// The value has the wrong JSON type, or a number is out of range.
    WrongType,
    /// The value is not an RFC 3339 time.
    BadTime,
    /// The value is not a quantity.
    BadQuantity,
    /// The schema has no such field.
    UnknownField,
    /// The key is duplicated.
    DuplicateKey,
}

/// The result of decoding a document by its schema.
#[derive(Debug)]
pub struct DecodeResult<'d> {
    /// Errors because of which the server's decoder rejects the document.
    pub errors: Vec<DecodeError>,
    /// Errors that only strict decoding reports.
    pub strict: Vec<DecodeError>,
    /// Number of further `errors` and `strict` errors that were omitted.
    pub left_out: [usize; 2],
    /// A copy of the document without unknown fields and duplicate keys; `None` if it had none, or if there are errors.
    pub changed: Option<Doc<'d>>,
}

/// Decodes `value` by `schema`, and returns the errors that the API server's decoder, or a strict decoder, reports.
pub fn decode_by_schema(value: Value<'_>, schema: Schema) -> DecodeResult<'_> {
    let mut walk = SchemaWalk {
        schema,
        errors: BoundedErrorList::default(),
        strict: BoundedErrorList::default(),
        known: HashSet::new(),
    };
    let frame = FieldContext { owner: schema.root, at: &Path::ROOT };
    walk.check_struct(value, schema.root, frame);
    let (errors, strict) = (walk.errors, walk.strict);
    let changed = (!strict.list.is_empty() && errors.list.is_empty())
        .then(|| merge::copy_dropping_unknown_merging_duplicates(value, schema));
    let left_out = [errors.left_out, strict.left_out];
    DecodeResult { errors: errors.list, strict: strict.list, left_out, changed }
}

/// Maximum number of reported errors. A hostile document can have a million.
const MAX_LISTED_ERRORS: usize = 1_000;
/// Maximum total size in bytes of the paths and messages of errors.
const MAX_ERROR_BYTES: usize = 1 << 20;
/// Maximum number of bytes of an invalid number in a message.
const MAX_SHOWN_NUMBER_BYTES: usize = 4 << 10;

/// The errors that are kept, and how many more there were.
#[derive(Default)]
struct BoundedErrorList {
    list: Vec<DecodeError>,
    bytes: usize,
    left_out: usize,
}

impl BoundedErrorList {
    /// Returns true if there is capacity for another error; otherwise counts one more omitted error and returns false.
    fn has_capacity_or_count_omitted(&mut self) -> bool {
        let keeps_another = self.list.len() < MAX_LISTED_ERRORS && self.bytes < MAX_ERROR_BYTES;
        self.left_out += usize::from(!keeps_another);
        keeps_another
    }

    /// Keeps an error; [`Self::has_capacity_or_count_omitted`] must have allowed it.
    fn push(&mut self, error: DecodeError) {
        self.bytes += error.at.estimated_printed_bytes()
            + error.detail.len()
            + error.help.as_ref().map_or(0, String::len);
        self.list.push(error);
    }
}

/// Walks a document with its schema and collects errors.
struct SchemaWalk {
    schema: Schema,
    errors: BoundedErrorList,
    strict: BoundedErrorList,
    /// The details of the strict errors so far: the server reports each text once.
    known: HashSet<String>,
}

/// The struct that contains the field being checked, for Go's message, and its path.
#[derive(Clone, Copy)]
struct FieldContext<'p> {
    owner: &'static StructSchema,
    at: &'p Path<'p>,
}

impl SchemaWalk {
    /// Reports the parts of a value that do not decode as `ty`.
    fn check_value(&mut self, value: Value<'_>, ty: &'static FieldType, frame: FieldContext<'_>) {
        if ty.accepts_every_value_of(value.kind()) {
            return;
        }
        match (ty, value.kind()) {
            (FieldType::Int, ValueKind::Number) if value.int().is_some() => {}
            (FieldType::Time, ValueKind::String) => {
                if let Err(detail) = gotime::check_rfc3339(value.text()) {
                    self.report_error(frame, DecodeErrorKind::BadTime, || ErrorTexts {
                        detail,
                        help: Some(suggest::hint_for_time(value.text())),
                        fix: mend::fix_for_malformed_string(
                            value,
                            suggest::corrected_time(value.text()),
                            frame.at,
                        ),
                    });
                }
            }
            (FieldType::Quantity, _) => {
                if let Err(error) = quantity::Quantity::parse(raw_quantity_text(value)) {
                    self.report_error(frame, DecodeErrorKind::BadQuantity, || ErrorTexts {
                        detail: error.message().to_owned(),
                        help: Some(suggest::hint_for_quantity(value.text())),
                        fix: mend::fix_for_malformed_string(
                            value,
                            suggest::corrected_quantity(value.text()),
                            frame.at,
                        ),
                    });
                }
            }
            (FieldType::Struct(inner) | FieldType::StringOr(inner), ValueKind::Object) => {
                self.check_struct(value, inner, FieldContext { owner: inner, at: frame.at });
            }
            (FieldType::List(item), ValueKind::Array) => self.check_list(value, item, frame),
            (FieldType::Map { value: inner, .. }, ValueKind::Object) => self.check_map(value, inner, frame),
            _ => {
                let schema = self.schema;
                self.report_error(frame, DecodeErrorKind::WrongType, || ErrorTexts {
                    detail: type_error(value, ty, schema, frame),
                    help: suggest::hint_for_value(value, ty),
                    fix: mend::fix_for_value(value, ty, frame.at),
                });
            }
        }
    }

    fn check_list(&mut self, value: Value<'_>, item: &'static FieldType, frame: FieldContext<'_>) {
        for (index, element) in value.items().enumerate() {
            self.check_value(element, item, FieldContext { at: &frame.at.index(index), ..frame });
        }
    }

    fn check_map(&mut self, value: Value<'_>, inner: &'static FieldType, frame: FieldContext<'_>) {
        let mut seen = SeenKeys::with_no_keys_seen(value);
        for (position, (key, member)) in value.members().enumerate() {
            let at = frame.at.key(key.text());
            if seen.record_and_check_repeated(key.text(), position) {
                self.report_duplicate(&at, value, key.text(), frame.at);
            }
            self.check_value(member, inner, FieldContext { at: &at, ..frame });
        }
    }

    /// Reports what of an object does not decode as the struct `ty`: wrong values, unknown fields and duplicate keys.
    fn check_struct(&mut self, value: Value<'_>, ty: &'static StructSchema, frame: FieldContext<'_>) {
        // Known fields are remembered by their row; only unknown ones need a search.
        let (mut rows, mut unknown) = (0_u64, None::<SeenKeys<'_>>);
        let mut next_row = 0;
        for (position, (key, member)) in value.members().enumerate() {
            let name = key.as_key();
            let Some((row, field)) = ty.field_for_key(name, self.schema.fields, next_row) else {
                let again = unknown
                    .get_or_insert_with(|| SeenKeys::with_no_keys_seen(value))
                    .record_and_check_repeated(key.text(), position);
                let unknown =
                    UnknownField { ty, object: value, key: key.text(), value: member, at: frame.at };
                self.report_unknown_field_unless_allowed(unknown, again);
                continue;
            };
            if rows & (1 << row) != 0 {
                self.report_duplicate(&frame.at.field(field.json), value, field.json, frame.at);
            }
            rows |= 1 << row;
            next_row = row + 1;
            if field.ty.accepts_every_value_of(member.kind()) || self.schema.unread.has(field.name) {
                continue;
            }
            self.check_value(member, &field.ty, FieldContext { owner: ty, at: &frame.at.field(field.json) });
        }
    }

    /// Reports a field that the schema does not contain, unless its type allows unlisted fields. `again` is
    /// true if the key is a duplicate.
    #[cold]
    fn report_unknown_field_unless_allowed(&mut self, unknown: UnknownField<'_, '_>, again: bool) {
        let UnknownField { ty, object, key, at, .. } = unknown;
        let is_let_be = match ty.unlisted {
            UnlistedFields::Dropped => false,
            UnlistedFields::ReportedExcept(reported_by_rules) => reported_by_rules.contains(&key),
            // The type has fields that are not listed, but no second spelling of one that is.
            UnlistedFields::Ignored => !ty.fields.iter().any(|field| near::is_same_word(field.json, key)),
        };
        if is_let_be {
            if again {
                self.report_duplicate(&at.field(key), object, key, at);
            }
            return;
        }
        if !again {
            let schema = self.schema;
            let words =
                || (suggest::hint_for_field(ty, key, schema, at), mend::fix_for_field(unknown, schema));
            self.report_strict(&at.field(key), DecodeErrorKind::UnknownField, words);
        }
    }

    /// Reports the key at `at`, which the object `object` at `parent` has twice.
    #[cold]
    fn report_duplicate(&mut self, at: &Path<'_>, object: Value<'_>, key: &str, parent: &Path<'_>) {
        self.report_strict(at, DecodeErrorKind::DuplicateKey, || {
            let fix = mend::fix_for_duplicate(object, key, parent);
            let help = match fix {
                Some(_) => "remove one of the two keys; their values are the same",
                None => "the API server uses the last one; remove or rename the other key",
            };
            (Some(help.to_owned()), fix)
        });
    }

    /// Keeps an error of the server's decoder; `words` is called only if it is kept.
    #[cold]
    fn report_error(
        &mut self,
        frame: FieldContext<'_>,
        kind: DecodeErrorKind,
        words: impl FnOnce() -> ErrorTexts,
    ) {
        if self.errors.has_capacity_or_count_omitted() {
            let ErrorTexts { detail, help, fix } = words();
            self.errors.push(DecodeError {
                at: frame.at.owned(),
                kind,
                detail,
                help,
                fix: fix.map(Box::new),
            });
        }
    }

    /// Keeps an error that only a strict decoder reports, once for each text; `words` gives its help and fix.
    #[cold]
    fn report_strict(
        &mut self,
        at: &Path<'_>,
        kind: DecodeErrorKind,
        words: impl FnOnce() -> (Option<String>, Option<Fix>),
    ) {
        if !self.strict.has_capacity_or_count_omitted() {
            return;
        }
        let at = at.owned();
        let word = if kind == DecodeErrorKind::UnknownField { "unknown" } else { "duplicate" };
        let detail = format!("{word} field {}", gofmt::quote(&strict_path(&at)));
        if self.known.insert(detail.clone()) {
            let (help, fix) = words();
            self.strict.push(DecodeError { at, kind, detail, help, fix: fix.map(Box::new) });
        }
    }
}

/// Go's message about a value of the wrong type: `json: cannot unmarshal string into Go struct field
/// ResourcePool.spec.pool.generation of type int64`.
fn type_error(value: Value<'_>, ty: &FieldType, schema: Schema, frame: FieldContext<'_>) -> String {
    let what = match value.kind() {
        ValueKind::Number if matches!(ty, FieldType::Int) => {
            format!("number {}", gofmt::byte_prefix(value.text(), MAX_SHOWN_NUMBER_BYTES))
        }
        kind => kind.name_in_go_decode_errors().to_owned(),
    };
    let (owner, names, go) = (frame.owner.name, go_path(frame.at, schema), ty.go_name(schema.version));
    format!("json: cannot unmarshal {what} into Go struct field {owner}{names} of type {go}")
}

/// The path in Go's notation: without indices and keys, but with embedded structs.
fn go_path(at: &Path<'_>, schema: Schema) -> String {
    let (mut names, mut here) = (String::new(), Some(schema.root));
    for name in at.owned().user_steps() {
        let SegmentName::Field(name) = name else { continue };
        let field = here.and_then(|ty| ty.field(name, schema.fields)).map(|(_, field)| field);
        for part in field.and_then(|field| field.embedded).into_iter().chain([&**name]) {
            names.push('.');
            names.push_str(part);
        }
        here = field.and_then(|field| field.ty.innermost_struct());
    }
    names
}

/// The text that Go parses as a quantity: the raw bytes between the quotes, with escapes as they are. Empty for values
/// that are neither a string nor a number.
pub fn raw_quantity_text(value: Value<'_>) -> &str {
    match value.kind() {
        ValueKind::String if value.doc().syntax() == Syntax::Json => {
            let span = value.span();
            let raw =
                value.doc().source().get(span.start as usize + 1..(span.end as usize).saturating_sub(1));
            // A value that was filled in has no place in the source.
            raw.filter(|_| span.end > span.start).unwrap_or_else(|| value.text())
        }
        ValueKind::String | ValueKind::Number => value.text(),
        _ => "",
    }
}

/// Detects duplicate keys of an object. While each key is greater than the one before it, as API servers write maps,
/// none is repeated.
struct SeenKeys<'d> {
    object: Value<'d>,
    /// The greatest key so far, while they are in order.
    last: Option<&'d str>,
    /// The keys so far, if they are not in order.
    unordered: Option<UnorderedKeys<'d>>,
}

impl<'d> SeenKeys<'d> {
    /// Creates a detector that has seen no key of `object`.
    fn with_no_keys_seen(object: Value<'d>) -> SeenKeys<'d> {
        SeenKeys { object, last: None, unordered: None }
    }

    /// Returns true if `key`, which is at `position`, came before, and takes it as seen.
    #[inline]
    fn record_and_check_repeated(&mut self, key: &'d str, position: usize) -> bool {
        if self.unordered.is_none() && self.last.is_none_or(|last| last < key) {
            self.last = Some(key);
            return false;
        }
        let object = self.object;
        let known = self.unordered.get_or_insert_with(|| UnorderedKeys::before(object, position));
        known.record_and_check_repeated(object, key, position)
    }
}

/// The keys of an object so far. Small objects are searched linearly; the keys of large objects are hashed, so that the
/// cost stays linear for hostile objects with many keys.
struct UnorderedKeys<'d> {
    hashed: Option<HashSet<&'d str>>,
    /// A Bloom filter: a key whose bit is not set was not seen.
    bits: u128,
}

/// Maximum number of members of an object that are searched linearly.
const MAX_LINEAR_SEARCH_MEMBERS: usize = 40;

impl<'d> UnorderedKeys<'d> {
    /// The keys before that position.
    #[cold]
    fn before(object: Value<'d>, position: usize) -> UnorderedKeys<'d> {
        let is_large = object.members().nth(MAX_LINEAR_SEARCH_MEMBERS).is_some();
        let mut keys = UnorderedKeys { hashed: is_large.then(HashSet::new), bits: 0 };
        for (index, (key, _)) in object.members().take(position).enumerate() {
            keys.record_and_check_repeated(object, key.text(), index);
        }
        keys
    }

    /// Returns true if `key`, which is at `position`, came before, and takes it as seen.
    fn record_and_check_repeated(&mut self, object: Value<'d>, key: &'d str, position: usize) -> bool {
        let bit = 1_u128 << (FixedState::default().hash_one(key) % 128);
        let maybe = self.bits & bit != 0;
        self.bits |= bit;
        match &mut self.hashed {
            Some(known) => !known.insert(key),
            None => maybe && object.members().take(position).any(|(earlier, _)| earlier.text_is(key)),
        }
    }
}

/// The path as strict decoding prints it: fields and map keys joined by dots, indexes in brackets.
fn strict_path(at: &FieldPath) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for name in at.user_steps() {
        match name {
            SegmentName::Index(index) => _ = write!(out, "[{index}]"),
            SegmentName::Field(name) | SegmentName::Key(name) if out.is_empty() => out.push_str(name),
            SegmentName::Field(name) | SegmentName::Key(name) => _ = write!(out, ".{name}"),
        }
    }
    out
}
