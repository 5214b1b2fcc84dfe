//! Fields of ObjectMeta that an update must not change.
//!
//! The server overwrites generation, resourceVersion and creationTimestamp itself. Of those only a generation that
//! wraps around can be at fault.

use super::prepared::PreparedMeta;
use super::{finalizers, lists};
use crate::admission::{Attributes, Operation};
use crate::rules::RuleContext;
use crate::rules::table::{METADATA_CHANGED, RESOURCE_VERSION};
use tollgate_api::profile::{ApiKind, Profile, Version};
use tollgate_document::doc::Value;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType, Finding};
use tollgate_formats::gotime::{self, Timestamp};

/// Returns a finding if an update lacks the `resourceVersion` that the release requires, in which case the server
/// checks nothing else.
// upstream v1.37 deviceTaintRuleStrategy.AllowUnconditionalUpdate
pub fn missing_taint_rule_resource_version(
    admission: &Attributes<'_>,
    kind: ApiKind,
    version: Version,
    profile: &Profile,
) -> Option<Finding> {
    // What is stored has a version; a file may leave it out.
    let is_stored = admission.old_object.is_some_and(|old| !resource_version(old).is_empty());
    let is_refused = profile.requires_rule_version
        && (kind, version) == (ApiKind::DeviceTaintRule, Version::V1)
        && admission.operation == Operation::Update
        && is_stored
        && matches!(resource_version(admission.object), "" | "0");
    is_refused.then(|| {
        let at = Path::ROOT.field("metadata").field("resourceVersion").owned();
        let detail = "must be specified for an update";
        Finding::new(RESOURCE_VERSION, at, ErrorType::Invalid, BadValue::Int(0), detail)
    })
}

/// Returns `metadata.resourceVersion`.
fn resource_version(object: Value<'_>) -> &str {
    object.get("metadata").get("resourceVersion").str()
}

/// Checks that an update does not change immutable metadata.
// upstream v1.36 ValidateObjectMetaAccessorUpdate
pub fn check_metadata_update(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    new: &PreparedMeta<'_>,
    old: &PreparedMeta<'_>,
) {
    if old.deletion_timestamp.is_some() {
        finalizers::check_no_new_finalizers(cx, &at.field("finalizers"), new.finalizers, old.finalizers);
    }
    if new.generation < old.generation {
        let value = BadValue::Int(new.generation);
        cx.report(METADATA_CHANGED, &at.field("generation")).invalid(value, "must not be decremented");
    }
    if new.name != old.name {
        report_immutable_change(cx, &at.field("name"), BadValue::str(new.name));
    }
    if new.namespace != old.namespace {
        report_immutable_change(cx, &at.field("namespace"), BadValue::str(new.namespace));
    }
    if new.uid != old.uid {
        report_immutable_change(cx, &at.field("uid"), lists::named_go_string(cx, new.uid));
    }
    if new.deletion_timestamp != old.deletion_timestamp {
        let value = printed_time(cx, new.deletion_timestamp);
        report_immutable_change(cx, &at.field("deletionTimestamp"), value);
    }
    if new.deletion_grace_period_seconds != old.deletion_grace_period_seconds {
        let value = new.deletion_grace_period_seconds.map_or(BadValue::Null, BadValue::Int);
        report_immutable_change(cx, &at.field("deletionGracePeriodSeconds"), value);
    }
}

/// Reports that an immutable field has changed; `value` is the new value.
fn report_immutable_change(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, value: BadValue) {
    cx.report(METADATA_CHANGED, at).invalid(value, "field is immutable");
}

/// Returns a time as the release's Go code prints it.
fn printed_time(cx: &RuleContext<'_, '_>, time: Option<Timestamp>) -> BadValue {
    match time {
        // Before 1.34 whatever can print itself did.
        Some(time) if cx.profile.quotes_null => {
            let text = gotime::rfc3339(time).replace('T', " ").replace('Z', " +0000 UTC");
            BadValue::Json(text.into())
        }
        Some(time) if !time.is_go_zero_time() => BadValue::json_quoted_string(&gotime::rfc3339(time)),
        _ => lists::nil_value(cx),
    }
}
