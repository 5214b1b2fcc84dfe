//! `spec.metadata` of a ResourceClaimTemplate: labels and annotations for the claims to come, and nothing else.

use super::meta;
use crate::rules::RuleContext;
use crate::rules::table::TEMPLATE_METADATA;
use tollgate_api::view::ObjectMeta;
use tollgate_document::doc::ValueKind;
use tollgate_document::field::Path;

/// Checks that a template sets only labels and annotations, and checks these.
// upstream v1.36 ValidateTemplateObjectMeta
pub fn check_template_metadata(cx: &mut RuleContext<'_, '_>, metadata: ObjectMeta<'_>) {
    let spec_at = Path::ROOT.field("spec");
    let at = spec_at.field("metadata");
    meta::check_annotations(cx, &at.field("annotations"), metadata.annotations());
    meta::check_labels(cx, &at.field("labels"), metadata.labels());
    for (field, is_set) in forbidden_fields(metadata) {
        if !is_set {
            continue;
        }
        // The server makes the path from Go's name of the field.
        let go = if field == "uid" { "uID" } else { field };
        let server_at = format!("spec.metadata.{go}");
        cx.report(TEMPLATE_METADATA, &at.field(field)).forbidden("cannot be set").with_server_path(server_at);
    }
}

/// Returns the fields of metadata that a template may not set, in Go's order, each with whether it is set. An empty
/// list counts as set, and so does a zero time.
pub fn forbidden_fields(metadata: ObjectMeta<'_>) -> [(&'static str, bool); 13] {
    let is_time = |field| metadata.0.get(field).kind() == ValueKind::String;
    [
        ("name", !metadata.name().is_empty()),
        ("generateName", !metadata.generate_name().is_empty()),
        ("namespace", !metadata.namespace().is_empty()),
        ("selfLink", !metadata.self_link().is_empty()),
        ("uid", !metadata.uid().is_empty()),
        ("resourceVersion", !metadata.resource_version().is_empty()),
        ("generation", metadata.generation() != 0),
        ("creationTimestamp", is_time("creationTimestamp")),
        ("deletionTimestamp", is_time("deletionTimestamp")),
        ("deletionGracePeriodSeconds", metadata.deletion_grace_period_seconds().is_some()),
        ("ownerReferences", metadata.owner_references().is_given()),
        ("finalizers", metadata.finalizers().is_given()),
        ("managedFields", metadata.managed_fields().is_given()),
    ]
}
