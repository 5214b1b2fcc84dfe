//! An object made ready as the server does before it validates: decoded, pruned, defaulted.
//!
//! Invariant: an object that needs no change is not copied; [`DefaultedObject::Same`] borrows the caller's document.

use super::identify;
use crate::admission::{DecodedAttributes, Operation};
use crate::defaults::{self, DefaultsFor};
use tollgate_api::conform::{Conformed, DecodeError, DecodeErrorKind, Schema, conform};
use tollgate_api::fields;
use tollgate_api::profile::{ApiKind, Profile, Version};
use tollgate_api::view::Object;
use tollgate_document::doc::{Change, Doc, NameSet, Value, apply};

/// An object that was held against its schema.
#[derive(Debug)]
pub struct DecodedObject<'d> {
    kind: ApiKind,
    version: Version,
    given: Value<'d>,
    changed: Option<Doc<'d>>,
    /// What the decoder refuses.
    pub errors: Vec<DecodeError>,
    /// What only a strict decoder refuses.
    pub strict: Vec<DecodeError>,
    /// How many more of both there are.
    pub left_out: [usize; 2],
}

/// The document to judge: the one given, or a changed copy.
#[derive(Debug)]
pub enum DefaultedObject<'p> {
    /// Nothing was filled in.
    Same(Value<'p>),
    /// Defaults were filled in.
    Filled(Doc<'p>),
}

impl<'d> DecodedObject<'d> {
    /// Decodes `value` as that kind and version in that profile.
    pub fn decode(value: Value<'d>, kind: ApiKind, version: Version, profile: &Profile) -> DecodedObject<'d> {
        let schema = Schema {
            root: fields::root(kind, version),
            version,
            fields: profile.fields,
            unread: NameSet::NONE,
        };
        let Conformed { errors, strict, left_out, changed } = conform(value, schema);
        DecodedObject { kind, version, given: value, changed, errors, strict, left_out }
    }

    /// Decodes a stored object, in its own version if that is known. The server wrote it: years that JSON cannot say are
    /// none of the update's faults.
    pub fn decode_stored(
        value: Value<'d>,
        kind: ApiKind,
        version: Version,
        profile: &Profile,
    ) -> DecodedObject<'d> {
        let version = identify::stored_version(value, kind).unwrap_or(version);
        let mut stored = DecodedObject::decode(value, kind, version, profile);
        stored.errors.retain(|error| error.kind != DecodeErrorKind::BadTime);
        stored
    }

    /// True if it does not decode.
    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// The decoded document before defaults.
    pub fn value(&self) -> Value<'_> {
        self.changed.as_ref().map_or(self.given, Doc::root)
    }

    /// The edits the server's defaults would make.
    pub fn default_edits(
        &self,
        old: Option<Object<'_>>,
        profile: &Profile,
        now: &str,
        purpose: DefaultsFor,
    ) -> Vec<defaults::Edit> {
        defaults::default_edits(Object::of(self.kind, self.version, self.value()), old, profile, now, purpose)
    }

    /// The document with defaults.
    pub fn defaulted(&self, old: Option<Object<'_>>, profile: &Profile, now: &str) -> DefaultedObject<'_> {
        let edits = self.default_edits(old, profile, now, DefaultsFor::Validation);
        if edits.is_empty() {
            return DefaultedObject::Same(self.value());
        }
        let changes: Vec<Change> = edits.into_iter().map(|edit| edit.change).collect();
        DefaultedObject::Filled(apply(self.value(), &changes))
    }

    /// The view of a document made by [`DecodedObject::defaulted`].
    pub fn object<'r>(&'r self, ready: &'r DefaultedObject<'_>) -> Object<'r> {
        let value = match ready {
            DefaultedObject::Same(value) => *value,
            DefaultedObject::Filled(doc) => doc.root(),
        };
        Object { written: self.given, ..Object::of(self.kind, self.version, value) }
    }
}

/// The object as that document has it, if there is one, in that version: a stored object may come in another, and is
/// compared in the shape of the new one.
pub(super) fn with_document<'o>(
    object: Object<'o>,
    version: Version,
    doc: Option<&'o Doc<'_>>,
) -> Object<'o> {
    let value = doc.map_or(object.value(), Doc::root);
    Object { written: object.written, ..Object::of(object.kind(), version, value) }
}

/// An error of the stored object, marked as such.
pub(super) fn mark_as_old(mut error: DecodeError) -> DecodeError {
    error.detail = format!("oldObject: {}", error.detail);
    error
}

/// Updates that are always let through: nothing changed that could be judged. An object that is being deleted has no
/// other excuse: as long as a finalizer keeps it, scheduler and controllers go on acting on its spec.
pub(super) fn is_guarded(admission: &DecodedAttributes<'_>) -> bool {
    let Some(old) = admission.old_object.filter(|_| admission.operation == Operation::Update) else {
        return false;
    };
    let part = if admission.is_status() { "status" } else { "spec" };
    tollgate_api::equal::same(admission.object, old, part)
}
