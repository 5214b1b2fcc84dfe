//! The JSON fields of each kind, by version and release: data, in Go's declaration order.
//!
//! The order matters where the server prints a whole element. Differences between versions are different structs
//! (`basic` devices, flat requests); differences between releases are the last column. Nothing here is behaviour.

use super::schema::{Field, FieldType, GoPackage, StructSchema, UnlistedFields};
use crate::profile::{ApiKind, Availability, Version};

/// The type of a whole object of that kind and version.
pub fn root_struct(kind: ApiKind, version: Version) -> &'static StructSchema {
    match (kind, version) {
        (ApiKind::ResourceSlice, Version::V1alpha3) => &SLICE_V1ALPHA3,
        (ApiKind::ResourceSlice, Version::V1beta1) => &SLICE_V1BETA1,
        (ApiKind::ResourceSlice, _) => &SLICE,
        (ApiKind::ResourceClaim, Version::V1alpha3 | Version::V1beta1) => &CLAIM_FLAT,
        (ApiKind::ResourceClaim, _) => &CLAIM,
        (ApiKind::ResourceClaimTemplate, Version::V1alpha3 | Version::V1beta1) => &TEMPLATE_FLAT,
        (ApiKind::ResourceClaimTemplate, _) => &TEMPLATE,
        (ApiKind::DeviceTaintRule, _) => &TAINT_RULE,
        (ApiKind::DeviceClass, _) => &CLASS,
        (ApiKind::ResourceSlicePatch, _) => &SLICE_PATCH,
        (ApiKind::ClassicClass, _) => &CLASSIC_CLASS,
        (ApiKind::ClassicClaim, _) => &CLASSIC_CLAIM,
        (ApiKind::Pod, _) => &POD,
        (ApiKind::Deployment, _) => &DEPLOYMENT,
        (ApiKind::StatefulSet, _) => &STATEFUL_SET,
        (ApiKind::DaemonSet, _) => &DAEMON_SET,
        (ApiKind::ReplicaSet, _) => &REPLICA_SET,
        (ApiKind::Job, _) => &JOB,
        (ApiKind::CronJob, _) => &CRON_JOB,
        (ApiKind::FoundationDbCluster, _) => &FOUNDATION_DB_CLUSTER,
    }
}

/// The spec of a ResourceSlice in a version.
pub fn slice_spec(version: Version) -> &'static StructSchema {
    match version {
        Version::V1alpha3 => &slice::SLICE_SPEC_V1ALPHA3,
        Version::V1beta1 => &slice::SLICE_SPEC_V1BETA1,
        _ => &slice::SLICE_SPEC,
    }
}

/// The struct in which a version keeps everything of a device but its name.
pub fn device_body(version: Version) -> &'static StructSchema {
    match version {
        Version::V1alpha3 => &slice::BASIC_DEVICE_V1ALPHA3,
        Version::V1beta1 => &slice::BASIC_DEVICE,
        _ => &slice::DEVICE,
    }
}

/// DeviceRequest in a version.
pub fn device_request_struct(version: Version) -> &'static StructSchema {
    if version.is_v1alpha3_or_v1beta1() { &REQUEST_FLAT } else { &REQUEST }
}

/// DeviceClaim in a version.
pub fn device_claim(version: Version) -> &'static StructSchema {
    if version.is_v1alpha3_or_v1beta1() { &DEVICE_CLAIM_FLAT } else { &DEVICE_CLAIM }
}

const SINCE_1_34: Availability = Availability::since(34);
const SINCE_1_35: Availability = Availability::since(35);
const SINCE_1_36: Availability = Availability::since(36);
const SINCE_1_37: Availability = Availability::since(37);
const DRAFT_R2: Availability = Availability::DRAFT_R2;

/// Declares a field. A macro instead of a function, because only literals can borrow other fields in a
/// constant.
macro_rules! row {
    ($json:literal, $ty:expr, pointer: $pointer:literal, always: $always:literal, $known:expr) => {
        Field {
            json: $json,
            name: tollgate_document::doc::FieldName::from_text($json),
            ty: $ty,
            pointer: $pointer,
            always: $always,
            known: $known,
            embedded: None,
        }
    };
}
/// Declares a field that is omitted when empty.
macro_rules! f {
    ($json:literal, $ty:expr) => {
        f!($json, $ty, Availability::ALWAYS)
    };
    ($json:literal, $ty:expr, $known:expr) => {
        row!($json, $ty, pointer: false, always: false, $known)
    };
}
/// Declares a field that is always printed.
macro_rules! a {
    ($json:literal, $ty:expr) => {
        row!($json, $ty, pointer: false, always: true, Availability::ALWAYS)
    };
}
/// Declares a field that is a Go pointer.
macro_rules! p {
    ($json:literal, $ty:expr) => {
        p!($json, $ty, Availability::ALWAYS)
    };
    ($json:literal, $ty:expr, $known:expr) => {
        row!($json, $ty, pointer: true, always: false, $known)
    };
}
/// Declares a kind with the fields that every object has, a spec, and more fields.
macro_rules! kind {
    ($declare:ident, $name:literal, $spec:expr $(, $more:expr)*) => {
        $declare(
            $name,
            &[
                $crate::fields::meta::API_VERSION,
                $crate::fields::meta::KIND,
                $crate::fields::meta::META,
                f!("spec", FieldType::Struct(&$spec)),
                $($more,)*
            ],
        )
    };
}
/// Declares an attribute of a device: one of several types, and more fields.
macro_rules! attribute {
    ($name:literal $(, $more:expr)*) => {
        api_struct(
            $name,
            &[
                p!("int", FieldType::Int),
                p!("bool", FieldType::Bool),
                p!("string", FieldType::Str),
                p!("version", FieldType::Str),
                f!("ints", FieldType::List(&FieldType::Int), SINCE_1_36),
                f!("bools", FieldType::List(&FieldType::Bool), SINCE_1_36),
                f!("strings", STRING_LIST, SINCE_1_36),
                f!("versions", STRING_LIST, SINCE_1_36),
                $($more,)*
            ],
        )
    };
}
/// A struct of the API's own package whose fields are all listed.
const fn api_struct(name: &'static str, fields: &'static [Field]) -> StructSchema {
    assert!(fields.len() <= 64, "decoding marks the fields it has visited in 64 bits");
    StructSchema { name, package: GoPackage::Api, fields, unlisted: UnlistedFields::Dropped }
}
/// A struct of `meta/v1` or `core/v1` whose fields are all listed.
const fn meta_struct(name: &'static str, fields: &'static [Field]) -> StructSchema {
    StructSchema { package: GoPackage::Meta, ..api_struct(name, fields) }
}
/// A struct of `meta/v1` or `core/v1` of which only some fields are listed. Other fields are ignored.
const fn partial_struct(name: &'static str, fields: &'static [Field]) -> StructSchema {
    StructSchema { unlisted: UnlistedFields::Ignored, ..meta_struct(name, fields) }
}
const STRING_LIST: FieldType = FieldType::List(&FieldType::Str);
const QUANTITY_MAP: FieldType = FieldType::Map { key: "QualifiedName", value: &FieldType::Quantity };

// After the macros, which they use.
mod claim;
mod meta;
mod other_apis;
mod pod;
mod rule;
mod slice;
mod status;
mod taint;

pub use claim::{REQUEST, REQUEST_FLAT, SUB_REQUEST};
pub use meta::{NODE_TERM, OWNER_REFERENCE};
pub use other_apis::patch::DEVICE_PATCH_FILTER;
pub use pod::POD_CLAIM;
pub use rule::{CLASS_SPEC, TAINT_SELECTOR};
pub use slice::{ATTRIBUTE, COUNTER_CONSUMPTION, COUNTER_SET};
pub use status::{ALLOCATION, CLAIM_STATUS, CONSUMER, DEVICE_STATUS};

use claim::{CLAIM, CLAIM_FLAT, DEVICE_CLAIM, DEVICE_CLAIM_FLAT, TEMPLATE, TEMPLATE_FLAT};
use other_apis::classic::{CLASSIC_CLAIM, CLASSIC_CLASS};
use other_apis::foundationdb::FOUNDATION_DB_CLUSTER;
use other_apis::patch::SLICE_PATCH;
use pod::{CRON_JOB, DAEMON_SET, DEPLOYMENT, JOB, POD, REPLICA_SET, STATEFUL_SET};
use rule::{CLASS, TAINT_RULE};
use slice::{SLICE, SLICE_V1ALPHA3, SLICE_V1BETA1};
