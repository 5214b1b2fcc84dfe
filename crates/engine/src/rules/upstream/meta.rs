//! ObjectMeta of every kind: names, namespace, labels and annotations, on create and on update.
//!
//! An update is checked twice by the server: generically, with a lenient rule for names, and by the kind. Claims,
//! templates and classes repeat their create checks there; slices and rules do not, so that a stored name which a newer
//! rule would refuse can still be updated. The module `prepared` computes the values that are checked.

use super::prepared::PreparedMeta;
use super::{finalizers, managed_fields, meta_update, object_name, owner_references, template_meta};
use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::{OBJECT_ANNOTATIONS, OBJECT_GENERATION, OBJECT_LABELS, OBJECT_NAMESPACE};
use tollgate_api::profile::ApiKind;
use tollgate_api::view::ObjectBody;
use tollgate_document::doc::Value;
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;
use tollgate_formats::names::{self, LengthUnitWord};

/// Maximum number of bytes of all annotations, keys and values together.
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;

/// Checks the metadata of an object, and the metadata that a template gives to its claims.
pub fn check_metadata(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    let at = Path::ROOT.field("metadata");
    let kind = admission.object.kind();
    if !kind.has_full_schema() {
        return;
    }
    let own_checks = match admission.old_object {
        None => {
            let meta = PreparedMeta::for_create_validation(admission);
            object_name::check_name_on_create(cx, &at, kind, &meta);
            check_metadata_of_any_write(cx, &at, kind, &meta);
            finalizers::check_finalizer_domains(cx, &at, meta.finalizers);
            true
        }
        // upstream v1.36 rest.BeforeUpdate, then ValidateUpdate of the strategy
        Some(old) => {
            let old = PreparedMeta::from_stored(admission, old);
            let meta = PreparedMeta::for_update_validation(admission, &old);
            object_name::check_path_segment(cx, &at, &meta);
            check_metadata_of_any_write(cx, &at, kind, &meta);
            meta_update::check_metadata_update(cx, &at, &meta, &old);
            finalizers::check_finalizer_domains(cx, &at, meta.finalizers);
            let repeats_create_checks = !admission.is_status()
                && !matches!(
                    kind,
                    ApiKind::ResourceSlice | ApiKind::DeviceTaintRule | ApiKind::ResourceSlicePatch
                );
            if repeats_create_checks {
                object_name::check_name(cx, &at, kind, &meta);
            }
            repeats_create_checks
        }
    };
    if own_checks && let ObjectBody::Template(template) = admission.object.body {
        template_meta::check_template_metadata(cx, template.spec().metadata());
    }
}

/// Checks what is checked on create and on update: namespace, generation, labels, annotations, owners, finalizers and
/// managed fields.
// upstream v1.36 ValidateObjectMetaAccessor
fn check_metadata_of_any_write(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    kind: ApiKind,
    meta: &PreparedMeta<'_>,
) {
    if kind.is_namespaced() {
        check_namespace(cx, &at.field("namespace"), meta.namespace);
    }
    if meta.generation < 0 {
        let (at, value) = (at.field("generation"), BadValue::Int(meta.generation));
        cx.report(OBJECT_GENERATION, &at).invalid(value, "must be greater than or equal to 0");
    }
    check_labels(cx, &at.field("labels"), meta.labels);
    check_annotations(cx, &at.field("annotations"), meta.annotations);
    owner_references::check_owner_references(cx, &at.field("ownerReferences"), meta.owner_references);
    finalizers::check_finalizer_names_and_conflict(cx, &at.field("finalizers"), meta.finalizers);
    managed_fields::check_managed_fields_kept_by_server(
        cx,
        &at.field("managedFields"),
        meta.managed_fields,
        kind,
    );
}

fn check_namespace(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, namespace: &str) {
    if namespace.is_empty() {
        cx.report(OBJECT_NAMESPACE, at).required("");
        return;
    }
    names::check_dns_label(namespace, LengthUnitWord::Characters, &mut |detail| {
        cx.report(OBJECT_NAMESPACE, at).invalid(namespace, detail);
    });
}

/// Checks the keys and values of labels. The path in the server's message does not contain the key.
// upstream v1.36 ValidateLabels
pub fn check_labels(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, labels: Value<'_>) {
    let (unit, word) = (cx.profile.label_unit, cx.profile.label_key_word);
    for (key, value) in labels.members() {
        let (key, value) = (key.text(), value.str());
        let at = at.user_only_key(key);
        names::check_label_key(key, unit, word, &mut |detail| {
            cx.report(OBJECT_LABELS, &at).invalid(key, detail).on_key();
        });
        names::check_label_value(value, unit, &mut |detail| {
            cx.report(OBJECT_LABELS, &at).invalid(value, detail);
        });
    }
}

/// Checks the keys of annotations, in lower case, and the size of all annotations; values may be anything.
// upstream v1.36 ValidateAnnotations
pub fn check_annotations(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, annotations: Value<'_>) {
    let (unit, word) = (cx.profile.label_unit, cx.profile.label_key_word);
    let mut size = 0;
    for (key, value) in annotations.members() {
        let key = key.text();
        size += key.len() + value.str().len();
        names::check_label_key(&names::go_to_lower(key), unit, word, &mut |detail| {
            cx.report(OBJECT_ANNOTATIONS, &at.user_only_key(key)).invalid(key, detail).on_key();
        });
    }
    if size > MAX_ANNOTATIONS_BYTES {
        cx.report(OBJECT_ANNOTATIONS, at).too_long(MAX_ANNOTATIONS_BYTES);
    }
}
