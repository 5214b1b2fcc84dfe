//! ObjectMeta as the server validates it: after the server has set, cleared or restored the fields that it manages.
//! Reports nothing.
//!
//! Stored objects have a uid, a resourceVersion and a creationTimestamp even where a file leaves them out, so none of
//! the three can be missing here.

use crate::admission::DecodedAttributes;
use tollgate_api::equal;
use tollgate_api::profile::ApiKind;
use tollgate_api::view::{List, ManagedFields, Object, ObjectMeta, OwnerReference, Strings};
use tollgate_document::doc::Value;
use tollgate_formats::gotime::Timestamp;

/// The metadata of an object, after the changes that the API server makes before it validates them.
#[derive(Clone, Copy, Debug)]
pub struct PreparedMeta<'d> {
    pub name: &'d str,
    pub generate_name: &'d str,
    pub namespace: &'d str,
    pub uid: &'d str,
    pub generation: i64,
    pub deletion_timestamp: Option<Timestamp>,
    pub deletion_grace_period_seconds: Option<i64>,
    pub labels: Value<'d>,
    pub annotations: Value<'d>,
    pub owner_references: List<'d, OwnerReference<'d>>,
    pub finalizers: Strings<'d>,
    pub managed_fields: List<'d, ManagedFields<'d>>,
}

impl<'d> PreparedMeta<'d> {
    /// Reads the metadata as written, with the namespace of the request if the object names none.
    fn with_default_namespace(meta: ObjectMeta<'d>, namespace: &'d str) -> PreparedMeta<'d> {
        PreparedMeta {
            name: meta.name(),
            generate_name: meta.generate_name(),
            namespace: if meta.namespace().is_empty() { namespace } else { meta.namespace() },
            uid: meta.uid(),
            generation: meta.generation(),
            deletion_timestamp: meta.deletion_timestamp(),
            deletion_grace_period_seconds: meta.deletion_grace_period_seconds(),
            labels: meta.labels(),
            annotations: meta.annotations(),
            owner_references: meta.owner_references(),
            finalizers: meta.finalizers(),
            managed_fields: meta.managed_fields(),
        }
    }

    /// Returns the metadata of a new object, as the server validates it: namespace and generation are set, and the
    /// deletion fields are cleared. Name, `generateName` and uid are as written: no name is generated.
    // upstream v1.36 rest.BeforeCreate and PrepareForCreate of the strategies
    pub fn for_create_validation(admission: &DecodedAttributes<'d>) -> PreparedMeta<'d> {
        let kind = admission.object.kind();
        let given = PreparedMeta::with_default_namespace(
            admission.object.metadata(),
            admission.namespace_or_default(),
        );
        PreparedMeta {
            namespace: if kind.is_namespaced() { given.namespace } else { "" },
            generation: if server_sets_generation(kind) { 1 } else { given.generation },
            deletion_timestamp: None,
            deletion_grace_period_seconds: None,
            ..given
        }
    }

    /// Returns the metadata of the stored object. A cluster-scoped object keeps a namespace that it has, so that the
    /// update is found to change it.
    pub fn from_stored(admission: &DecodedAttributes<'d>, old: Object<'d>) -> PreparedMeta<'d> {
        let namespace = if old.kind().is_namespaced() { admission.namespace_or_default() } else { "" };
        let given = PreparedMeta::with_default_namespace(old.metadata(), namespace);
        // A server leaves out what is not set; the zero time is set, and written as null.
        let written = old.value().get("metadata").get("deletionTimestamp");
        let is_zero = written.is_null_or_absent() && written.exists();
        PreparedMeta {
            deletion_timestamp: given.deletion_timestamp.or(is_zero.then_some(Timestamp::ZERO)),
            ..given
        }
    }

    /// Returns the metadata of an update of `old`, or of its status, as the server validates it.
    // upstream v1.36 rest.BeforeUpdate, ResetObjectMetaForStatus
    pub fn for_update_validation(
        admission: &DecodedAttributes<'d>,
        old: &PreparedMeta<'d>,
    ) -> PreparedMeta<'d> {
        let kind = admission.object.kind();
        let given = PreparedMeta::with_default_namespace(
            admission.object.metadata(),
            admission.namespace_or_default(),
        );
        let meta = PreparedMeta {
            namespace: if kind.is_namespaced() { given.namespace } else { "" },
            uid: if given.uid.is_empty() { old.uid } else { given.uid },
            // Go wraps around.
            generation: old
                .generation
                .wrapping_add(i64::from(bumps_negative_or_maximum_generation(admission, old.generation))),
            deletion_timestamp: old.deletion_timestamp.or(given.deletion_timestamp),
            deletion_grace_period_seconds: given
                .deletion_grace_period_seconds
                .or(old.deletion_grace_period_seconds),
            ..given
        };
        if !admission.is_status() {
            return meta;
        }
        PreparedMeta {
            deletion_timestamp: old.deletion_timestamp,
            labels: old.labels,
            annotations: old.annotations,
            owner_references: old.owner_references,
            finalizers: old.finalizers,
            ..meta
        }
    }
}

/// True if the server manages `metadata.generation` for this kind and ignores the user's value.
fn server_sets_generation(kind: ApiKind) -> bool {
    !kind.is_namespaced()
}

/// True if the server increments the generation, which is negative or the maximum, for this update. False for all other
/// generations, where it does not matter: comparing specs is expensive.
fn bumps_negative_or_maximum_generation(admission: &DecodedAttributes<'_>, generation: i64) -> bool {
    (generation < 0 || generation == i64::MAX)
        && !admission.is_status()
        && server_sets_generation(admission.object.kind())
        && admission
            .old_object
            .is_some_and(|old| !equal::is_top_level_field_equal(admission.object, old, "spec"))
}
