//! Views: typed cursors into a document that conforms to its schema.
//!
//! A view borrows everything and copies nothing. A field that is absent or `null` reads as Go's zero value; lists and
//! maps know whether they were present. Views read the version that the user wrote: [`Device::body`] and
//! [`Request::exactly`] find the fields that some versions have in `basic` or `exactly`, and [`Device::body_path`] and
//! [`Request::exactly_path`] their paths.

mod claim;
mod list;
mod meta;
mod other_apis;
mod pod;
mod pod_claims;
mod selector_device;
mod slice;
mod status;
mod taint;

pub use claim::Request;
pub use claim::{
    Claim, ClaimConfig, ClaimSpec, Class, ClassConfig, ClassSpec, Constraint, Derived, DeviceClaim, Opaque,
    RequestBody, Selector, SubRequest, Template,
};
pub use list::{List, Map, Strings};
pub use meta::{
    Condition, ManagedFields, NodeRequirement, NodeSelector, NodeTerm, ObjectMeta, OwnerReference,
};
pub use other_apis::classic::{
    ClassicClaim, ClassicClaimSpec, ClassicClaimStatus, ClassicClass, ClassicTemplate, SchedulingStatus,
};
pub use other_apis::foundationdb::{FoundationDbCluster, Replacements, TaintOption};
pub use other_apis::patch::{DevicePatch, SlicePatch};
pub use pod::{Budget, Pod, PodClaimStatus, PodResourceClaim};
pub use pod_claims::{Container, ContainerClaim, PodClaim, PodClaims, PodOrWorkload};
pub use slice::{
    Attribute, Capacity, Consumption, Counter, CounterSet, Device, DeviceBody, NodeResource,
    NodeResourceMapping, NodeResourceOverhead, PolicyRange, RequestPolicy, Slice, SliceSpec, SliceTaint,
};
pub use status::{
    Allocation, AllocationConfig, AllocationResult, ClaimStatus, Consumer, DeviceStatus, NetworkData,
    RuleStatus,
};
pub use taint::{Taint, TaintRule, TaintRuleSpec, TaintSelector, Toleration};

use crate::profile::{ApiKind, Version};
use tollgate_document::doc::{FieldName, Value, ValueKind};

/// A type that reads one value of a document.
pub trait View<'d>: Copy {
    /// Returns the view of a JSON value.
    fn of(value: Value<'d>) -> Self;
    /// Returns the JSON value that the view reads.
    fn json(self) -> Value<'d>;
}

/// Declares views. Each accessor states the JSON field and how it is read.
macro_rules! view {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $accessor:ident: $how:ident $(<$inner:ident>)? = $json:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'d>(pub tollgate_document::doc::Value<'d>);

        impl<'d> $crate::view::View<'d> for $name<'d> {
            fn of(value: tollgate_document::doc::Value<'d>) -> Self { $name(value) }
            fn json(self) -> tollgate_document::doc::Value<'d> { self.0 }
        }

        impl<'d> $name<'d> {
            $($crate::view::view!(@field $(#[$fdoc])* $accessor $how $(<$inner>)? $json);)*
        }
    )*};
    (@value $self:ident $json:literal) => {
        $self.0.field(const { tollgate_document::doc::FieldName::from_text($json) })
    };
    (@field $(#[$d:meta])* $a:ident str $json:literal) => {
        $(#[$d])* pub fn $a(self) -> &'d str { $crate::view::view!(@value self $json).str() }
    };
    (@field $(#[$d:meta])* $a:ident opt_str $json:literal) => {
        $(#[$d])* pub fn $a(self) -> Option<&'d str> { let v = $crate::view::view!(@value self $json); (!v.is_null_or_absent()).then(|| v.str()) }
    };
    (@field $(#[$d:meta])* $a:ident int $json:literal) => {
        $(#[$d])* pub fn $a(self) -> i64 { $crate::view::view!(@value self $json).int().unwrap_or_default() }
    };
    (@field $(#[$d:meta])* $a:ident opt_int $json:literal) => {
        $(#[$d])* pub fn $a(self) -> Option<i64> { $crate::view::view!(@value self $json).int() }
    };
    (@field $(#[$d:meta])* $a:ident opt_bool $json:literal) => {
        $(#[$d])* pub fn $a(self) -> Option<bool> { $crate::view::view!(@value self $json).bool() }
    };
    (@field $(#[$d:meta])* $a:ident raw $json:literal) => {
        $(#[$d])* pub fn $a(self) -> tollgate_document::doc::Value<'d> { $crate::view::view!(@value self $json) }
    };
    (@field $(#[$d:meta])* $a:ident quantity $json:literal) => {
        $(#[$d])* pub fn $a(self) -> Option<tollgate_formats::quantity::Quantity<'d>> {
            $crate::view::quantity($crate::view::view!(@value self $json))
        }
    };
    (@field $(#[$d:meta])* $a:ident time $json:literal) => {
        $(#[$d])* pub fn $a(self) -> Option<tollgate_formats::gotime::Timestamp> {
            $crate::view::time($crate::view::view!(@value self $json))
        }
    };
    (@field $(#[$d:meta])* $a:ident strings $json:literal) => {
        $(#[$d])* pub fn $a(self) -> $crate::view::Strings<'d> { $crate::view::Strings($crate::view::view!(@value self $json)) }
    };
    (@field $(#[$d:meta])* $a:ident one<$inner:ident> $json:literal) => {
        $(#[$d])* pub fn $a(self) -> $inner<'d> { $crate::view::View::of($crate::view::view!(@value self $json)) }
    };
    (@field $(#[$d:meta])* $a:ident opt<$inner:ident> $json:literal) => {
        $(#[$d])* pub fn $a(self) -> Option<$inner<'d>> {
            let v = $crate::view::view!(@value self $json);
            (!v.is_null_or_absent()).then(|| $crate::view::View::of(v))
        }
    };
    (@field $(#[$d:meta])* $a:ident list<$inner:ident> $json:literal) => {
        $(#[$d])* pub fn $a(self) -> $crate::view::List<'d, $inner<'d>> {
            $crate::view::List::from_json($crate::view::view!(@value self $json))
        }
    };
    (@field $(#[$d:meta])* $a:ident map<$inner:ident> $json:literal) => {
        $(#[$d])* pub fn $a(self) -> $crate::view::Map<'d, $inner<'d>> {
            $crate::view::Map::from_json($crate::view::view!(@value self $json))
        }
    };
}
pub(crate) use view;

/// The quantity that a value holds; `None` if it is absent, `null` or not a quantity.
pub fn quantity(value: Value<'_>) -> Option<tollgate_formats::quantity::Quantity<'_>> {
    if value.is_null_or_absent() {
        return None;
    }
    tollgate_formats::quantity::Quantity::parse(super::conform::raw_quantity_text(value)).ok()
}

/// The time that a value holds; `None` if it is not a string or not a time.
pub fn time(value: Value<'_>) -> Option<tollgate_formats::gotime::Timestamp> {
    (value.kind() == ValueKind::String)
        .then(|| tollgate_formats::gotime::parse_rfc3339(value.text()).ok())
        .flatten()
}

/// An object of a kind that Tollgate checks, in its own version.
#[derive(Clone, Copy, Debug)]
pub struct Object<'d> {
    pub kind: ApiKind,
    pub version: Version,
    /// The JSON value of the whole object, after decoding.
    pub value: Value<'d>,
    /// The typed view of the object.
    pub body: ObjectBody<'d>,
    /// The JSON value of the object as the user wrote it, before dropping, merging and defaults.
    pub written: Value<'d>,
}

/// The contents of an object, as the typed view of its kind.
#[derive(Clone, Copy, Debug)]
pub enum ObjectBody<'d> {
    /// A ResourceSlice.
    Slice(Slice<'d>),
    /// A ResourceClaim.
    Claim(Claim<'d>),
    /// A ResourceClaimTemplate.
    Template(Template<'d>),
    /// A DeviceTaintRule.
    Rule(TaintRule<'d>),
    /// A DeviceClass.
    Class(Class<'d>),
    /// A ResourceSlicePatch.
    Patch(SlicePatch<'d>),
    /// A ResourceClass of `cdi.k8s.io` (KEP-3063).
    ClassicClass(ClassicClass<'d>),
    /// A ResourceClaim of `cdi.k8s.io` (KEP-3063).
    ClassicClaim(ClassicClaim<'d>),
    /// A Pod, or a workload with a pod template.
    Pods(PodOrWorkload<'d>),
    /// A FoundationDBCluster.
    FoundationDb(FoundationDbCluster<'d>),
}

impl<'d> Object<'d> {
    /// The view of a conforming document.
    pub fn from_value(kind: ApiKind, version: Version, value: Value<'d>) -> Object<'d> {
        let body = match kind {
            ApiKind::ResourceSlice => ObjectBody::Slice(Slice(value)),
            ApiKind::ResourceClaim => ObjectBody::Claim(Claim(value)),
            ApiKind::ResourceClaimTemplate => ObjectBody::Template(Template(value)),
            ApiKind::DeviceTaintRule => ObjectBody::Rule(TaintRule(value)),
            ApiKind::DeviceClass => ObjectBody::Class(Class(value)),
            ApiKind::ResourceSlicePatch => ObjectBody::Patch(SlicePatch(value)),
            ApiKind::ClassicClass => ObjectBody::ClassicClass(ClassicClass(value)),
            ApiKind::ClassicClaim => ObjectBody::ClassicClaim(ClassicClaim(value)),
            ApiKind::FoundationDbCluster => ObjectBody::FoundationDb(FoundationDbCluster(value)),
            ApiKind::Pod
            | ApiKind::Deployment
            | ApiKind::StatefulSet
            | ApiKind::DaemonSet
            | ApiKind::ReplicaSet
            | ApiKind::Job
            | ApiKind::CronJob => ObjectBody::Pods(PodOrWorkload { kind, value }),
        };
        Object { kind, version, value, body, written: value }
    }

    pub fn kind(self) -> ApiKind {
        self.kind
    }

    /// The JSON value of the whole object, after decoding.
    pub fn value(self) -> Value<'d> {
        self.value
    }

    pub fn metadata(self) -> ObjectMeta<'d> {
        ObjectMeta(self.value().field(const { FieldName::from_text("metadata") }))
    }
}
