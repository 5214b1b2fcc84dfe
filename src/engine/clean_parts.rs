//! The parts of a request's object that are checked by themselves and often come again unchanged: the devices of a
//! slice, of which a driver that republishes it changes few, and the spec of a claim, which is the same in all claims
//! of one template.
//!
//! Parts that the [cache](super::clean_cache) knows are marked in the document, and decoding and rules pass over them.
//! What decides about a part besides its bytes is in its [`CacheScope`]; a part that depends on more is not cached.
//!
//! Only for the webhook: files are read once.

use super::clean_cache::{CacheScope, CleanCache, CleanKey};
use super::identify::{Identity, identify, known};
use crate::api::view::{Slice, View as _};
use crate::doc::{Doc, Name, Value, ValueKind};
use crate::profile::{ApiKind, Profile};

/// Parts of one object that are looked up: as many devices as a slice may have.
const MAX_PARTS_PER_OBJECT: usize = 128;

const REQUEST: Name = Name::of("request");
const OBJECT: Name = Name::of("object");
const OLD_OBJECT: Name = Name::of("oldObject");
const SPEC: Name = Name::of("spec");

/// Parts that the cache does not know, to be inserted if they are found clean.
#[derive(Debug)]
pub(super) struct UnknownParts {
    scope: CacheScope,
    /// Position in the document, and fingerprint.
    parts: Vec<(u32, u64)>,
}

impl CleanCache {
    /// Marks the parts of a review's object that are known to be clean; returns the others.
    pub(super) fn mark(&self, review: &mut Doc<'_>, profile: &Profile) -> Option<UnknownParts> {
        let (scope, first, end) = parts(review.root().field(REQUEST), profile)?;
        let mut unknown = UnknownParts { scope, parts: Vec::new() };
        let (mut at, mut count) = (first, 0);
        while at < end && count < MAX_PARTS_PER_OBJECT {
            let part = review.value(at);
            let next = at + size(part).max(1);
            let key = self.key(scope, part.written());
            if self.get(&key).is_some() {
                review.mark_clean(at);
            } else if !key.bytes.is_empty() {
                unknown.parts.push((at, key.fingerprint));
            }
            (at, count) = (next, count + 1);
        }
        Some(unknown)
    }

    /// Notes that the parts, which are in the document of `object`, were found clean.
    pub(super) fn insert_all(&self, unknown: &UnknownParts, object: Value<'_>) {
        for &(at, fingerprint) in &unknown.parts {
            let bytes = object.doc().value(at).written();
            self.insert_on_second_hit(&CleanKey { fingerprint, scope: unknown.scope, bytes }, 0);
        }
    }
}

/// The parts of the object, which are neighbours in the document: what they are, the first one and the end.
fn parts(request: Value<'_>, profile: &Profile) -> Option<(CacheScope, u32, u32)> {
    let object = request.field(OBJECT);
    let Identity::Ours { api_version, kind } = identify(object) else { return None };
    let (kind, version) = known(api_version, kind)?;
    let mut per_device_nodes = false;
    let (first, end) = match kind {
        ApiKind::ResourceSlice => {
            let spec = Slice::of(object).spec();
            // A device may refer to counters of the slice.
            if spec.shared_counters().is_given() {
                return None;
            }
            per_device_nodes = spec.per_device_node_selection() == Some(true);
            let devices = spec.devices().value();
            (devices.index() + 1, devices.index() + size(devices))
        }
        // An update of a spec is compared with what is stored.
        ApiKind::ResourceClaim | ApiKind::ResourceClaimTemplate if request.field(OLD_OBJECT).is_null() => {
            let spec = object.field(SPEC);
            let spec = if kind == ApiKind::ResourceClaim { spec } else { spec.field(SPEC) };
            (spec.kind() == ValueKind::Object).then(|| (spec.index(), spec.index() + size(spec)))?
        }
        _ => return None,
    };
    let (profile, gates) = (profile.name, profile.gates.on);
    Some((CacheScope::Part { profile, gates, kind, version, per_device_nodes }, first, end))
}

fn size(value: Value<'_>) -> u32 {
    let size = u32::try_from(value.size());
    debug_assert!(size.is_ok(), "sources are far below 4 GiB");
    size.unwrap_or_default()
}
