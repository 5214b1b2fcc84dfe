//! Computes an object as the API server stores it: decoded, with defaults, and without the fields of disabled feature
//! gates.
//!
//! It does not validate. An object that does not decode, or that the profile does not serve, is not stored.

use super::{Attributes, DecodedObject, identify, prepare};
use tollgate_api::gated::{dropped_fields, without_dropped_fields};
use tollgate_api::profile::Profile;

/// Returns the object as the API server of the profile stores it after a create or update request, as JSON: with
/// defaults, and without the fields of disabled feature gates. `None` if Tollgate does not check the kind or the object
/// cannot be decoded.
pub fn stored_json(admission: &Attributes<'_>, profile: &Profile) -> Option<String> {
    let identity = identify::classify_type(admission.object);
    let (kind, version) = identify::served_kind(&identity, profile, admission).ok()?;
    let now = admission.now.text;
    let new = DecodedObject::decode(admission.object, kind, version, profile);
    let old = admission.old_object.map(|old| DecodedObject::decode_stored(old, kind, version, profile));
    if new.has_fatal_errors() {
        return None;
    }
    let old = old.filter(|old| !old.has_fatal_errors());
    prepare::with_prepared_stored_object(old.as_ref(), version, profile, now, |old| {
        let doc = new.defaulted_if_changed(old, profile, now);
        let object = new.view_of_defaulted(doc.as_ref());
        if profile.gates.are_assumed {
            // It is not known which fields the server drops; the engine keeps all of them, too.
            return Some(object.value().to_json());
        }
        let dropped = dropped_fields(object, old, admission.is_status(), profile);
        Some(without_dropped_fields(object, &dropped).root().to_json())
    })
}
