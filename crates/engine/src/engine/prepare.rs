//! Prepares an object as the API server does before validation: decodes it, drops unknown fields and sets defaults.
//!
//! Invariant: an object that needs no change is not copied; its view borrows the caller's document.

use super::identify;
use crate::admission::{DecodedAttributes, Operation};
use crate::defaults::{DefaultsPurpose, default_edits};
use tollgate_api::conform::{DecodeError, DecodeErrorKind, DecodeResult, Schema, decode_by_schema};
use tollgate_api::convert::convert_if_shape_differs;
use tollgate_api::fields;
use tollgate_api::profile::{ApiKind, Profile, Version};
use tollgate_api::view::Object;
use tollgate_document::doc::{Doc, DocChange, NameSet, Value, apply_changes};

/// An object that was decoded against the schema of its kind and version, with the errors.
#[derive(Debug)]
pub struct DecodedObject<'d> {
    kind: ApiKind,
    version: Version,
    given: Value<'d>,
    /// The document without the fields that the decoder drops; `None` if it drops none.
    changed: Option<Doc<'d>>,
    /// Errors because of which the decoder rejects the object.
    pub errors: Vec<DecodeError>,
    /// Errors that only a strict decoder reports, such as unknown fields.
    pub strict: Vec<DecodeError>,
    /// Number of further `errors` and `strict` errors, which the decoder does not list.
    pub left_out: [usize; 2],
}

impl<'d> DecodedObject<'d> {
    /// Decodes `value` as that kind and version, with the fields that the profile has.
    pub fn decode(value: Value<'d>, kind: ApiKind, version: Version, profile: &Profile) -> DecodedObject<'d> {
        let DecodeResult { errors, strict, left_out, changed } =
            decode_by_schema(value, schema(kind, version, profile));
        DecodedObject { kind, version, given: value, changed, errors, strict, left_out }
    }

    /// Decodes a stored object in its own version, or else in `version`. Times with years that JSON cannot
    /// represent are not reported, because the API server has already stored them.
    pub fn decode_stored(
        value: Value<'d>,
        kind: ApiKind,
        version: Version,
        profile: &Profile,
    ) -> DecodedObject<'d> {
        let version = identify::version_of_stored_object(value, kind).unwrap_or(version);
        let mut stored = DecodedObject::decode(value, kind, version, profile);
        stored.errors.retain(|error| error.kind != DecodeErrorKind::BadTime);
        stored
    }

    /// True if the object cannot be decoded; errors of strict decoding do not count.
    pub fn has_fatal_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Returns the decoded document before defaults are filled in.
    pub fn decoded_value(&self) -> Value<'_> {
        self.changed.as_ref().map_or(self.given, Doc::root)
    }

    /// The view of the decoded object, without defaults.
    pub fn without_defaults(&self) -> Object<'_> {
        Object::from_value(self.kind, self.version, self.decoded_value())
    }

    /// Returns the document with the server's defaults filled in; `None` if there are none to fill in.
    pub fn defaulted_if_changed(
        &self,
        old: Option<Object<'_>>,
        profile: &Profile,
        now: &str,
    ) -> Option<Doc<'_>> {
        let edits = default_edits(self.without_defaults(), old, profile, now, DefaultsPurpose::Validation);
        let changes: Vec<DocChange> = edits.into_iter().map(|edit| edit.change).collect();
        (!changes.is_empty()).then(|| apply_changes(self.decoded_value(), &changes))
    }

    /// Returns the typed view of a document that [`DecodedObject::defaulted_if_changed`] returned.
    pub fn view_of_defaulted<'r>(&'r self, ready: Option<&'r Doc<'_>>) -> Object<'r> {
        let value = ready.map_or(self.decoded_value(), Doc::root);
        Object { written: self.given, ..Object::from_value(self.kind, self.version, value) }
    }
}

/// Returns the schema of a kind and version, with the fields that the profile has.
pub(super) fn schema(kind: ApiKind, version: Version, profile: &Profile) -> Schema {
    let root = fields::root_struct(kind, version);
    Schema { root, version, fields: profile.fields, unread: NameSet::NONE }
}

/// Returns the object with its content replaced by `doc` (unchanged if `None`), viewed in that version. A stored object
/// may come in another version than the new one, and is compared in the shape of the new one.
pub(super) fn with_document<'o>(
    object: Object<'o>,
    version: Version,
    doc: Option<&'o Doc<'_>>,
) -> Object<'o> {
    let value = doc.map_or(object.value(), Doc::root);
    Object { written: object.written, ..Object::from_value(object.kind(), version, value) }
}

/// Calls `then` with the stored object as it is compared with the new one: with defaults, and converted to `version`;
/// with `None` if there is no stored object. A callback, because the converted document lives only as long as the call.
pub(super) fn with_prepared_stored_object<R>(
    old: Option<&DecodedObject<'_>>,
    version: Version,
    profile: &Profile,
    now: &str,
    then: impl FnOnce(Option<Object<'_>>) -> R,
) -> R {
    let Some(old) = old else { return then(None) };
    let doc = old.defaulted_if_changed(None, profile, now);
    let object = old.view_of_defaulted(doc.as_ref());
    let moved = convert_if_shape_differs(object.value(), old.kind, old.version, version);
    then(Some(with_document(object, version, moved.as_ref())))
}

/// True for an update that leaves the spec unchanged (for a status request: the status). Such updates are
/// always admitted, even if the object is being deleted.
pub(super) fn leaves_written_part_unchanged(admission: &DecodedAttributes<'_>) -> bool {
    let Some(old) = admission.old_object.filter(|_| admission.operation == Operation::Update) else {
        return false;
    };
    let part = if admission.is_status() { "status" } else { "spec" };
    tollgate_api::equal::is_top_level_field_equal(admission.object, old, part)
}
