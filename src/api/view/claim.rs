//! ResourceClaim, ResourceClaimTemplate and DeviceClass: flat request, `exactly`, `firstAvailable`.

use super::{ClaimStatus, ObjectMeta, Toleration, view};
use crate::doc::Name;
use crate::field::{Path, Segment};
use crate::profile::Version;

view! {
    /// ResourceClaim.
    Claim {
        /// `metadata`
        metadata: one<ObjectMeta> = "metadata",
        /// `spec`
        spec: one<ClaimSpec> = "spec",
        /// `status`
        status: one<ClaimStatus> = "status",
    }
}

view! {
    /// ResourceClaimTemplate.
    Template {
        /// `spec`
        spec: one<TemplateSpec> = "spec",
    }
}

view! {
    /// ResourceClaimTemplateSpec.
    TemplateSpec {
        /// `metadata` of the claims to come
        metadata: one<ObjectMeta> = "metadata",
        /// `spec` of the claims to come
        spec: one<ClaimSpec> = "spec",
    }
}

view! {
    /// ResourceClaimSpec; its only field is `devices`, so the accessors look through it.
    ClaimSpec {
        /// `devices`
        devices: one<DeviceClaim> = "devices",
    }
}

impl<'d> ClaimSpec<'d> {
    /// The spec, unless it is known to be clean.
    pub(crate) fn to_check(self) -> Option<ClaimSpec<'d>> {
        (!self.0.is_known_clean()).then_some(self)
    }
}

view! {
    /// DeviceClaim.
    DeviceClaim {
        /// `requests`
        requests: list<Request> = "requests",
        /// `constraints`
        constraints: list<Constraint> = "constraints",
        /// `config`
        config: list<ClaimConfig> = "config",
    }
}

view! {
    /// DeviceRequest: its name, and a body that is flat or in `exactly`.
    Request {
        /// `name`
        name: str = "name",
        /// `firstAvailable`
        first_available: list<SubRequest> = "firstAvailable",
    }
}

const EXACTLY: Name = Name::of("exactly");

impl<'d> Request<'d> {
    /// The exact request, wherever the version keeps it; `None` if there is none.
    // upstream v1.36 v1beta1/conversion.go: `exactly` is built if any of its fields is set.
    pub(crate) fn exactly(self, version: Version) -> Option<RequestBody<'d>> {
        if !version.is_flat() {
            let exactly = self.0.field(EXACTLY);
            return (!exactly.is_null()).then_some(RequestBody(exactly));
        }
        let body = RequestBody(self.0);
        let any = !body.device_class_name().is_empty()
            || body.selectors().is_given()
            || !body.allocation_mode().is_empty()
            || body.count() != 0
            || body.admin_access().is_some()
            || body.tolerations().is_given()
            || !body.capacity().is_null()
            || self.0.get("derivedAttributes").kind() == crate::doc::ValueKind::Array;
        any.then_some(body)
    }

    /// The path of [`Request::exactly`], given the request's own.
    pub(crate) fn exactly_at<'p>(at: &'p Path<'p>, version: Version) -> Path<'p> {
        at.then(if version.is_flat() { Segment::HubField("exactly") } else { Segment::Field("exactly") })
    }
}

view! {
    /// ExactDeviceRequest, and what a sub-request has in common with it.
    RequestBody {
        /// `deviceClassName`
        device_class_name: str = "deviceClassName",
        /// `selectors`
        selectors: list<Selector> = "selectors",
        /// `allocationMode`
        allocation_mode: str = "allocationMode",
        /// `count`
        count: int = "count",
        /// `adminAccess`
        admin_access: opt_bool = "adminAccess",
        /// `tolerations`
        tolerations: list<Toleration> = "tolerations",
        /// `capacity`
        capacity: raw = "capacity",
        /// `derivedAttributes`
        derived_attributes: list<Derived> = "derivedAttributes",
    }
}

view! {
    /// DeviceSubRequest.
    SubRequest {
        /// `name`
        name: str = "name",
    }
}

impl<'d> SubRequest<'d> {
    /// What it has in common with an exact request.
    pub(crate) fn body(self) -> RequestBody<'d> {
        RequestBody(self.0)
    }
}

view! {
    /// DeviceSelector.
    Selector {
        /// `cel`
        cel: opt<CelSelector> = "cel",
    }
}

view! {
    /// CELDeviceSelector.
    CelSelector {
        /// `expression`
        expression: str = "expression",
    }
}

view! {
    /// DeviceDerivedAttribute (1.37).
    Derived {
        /// `name`
        name: str = "name",
        /// `expression`
        expression: str = "expression",
    }
}

view! {
    /// DeviceConstraint.
    Constraint {
        /// `requests`
        requests: strings = "requests",
        /// `matchAttribute`
        match_attribute: opt_str = "matchAttribute",
        /// `distinctAttribute`
        distinct_attribute: opt_str = "distinctAttribute",
    }
}

view! {
    /// DeviceClaimConfiguration.
    ClaimConfig {
        /// `requests`
        requests: strings = "requests",
        /// `opaque`
        opaque: opt<Opaque> = "opaque",
    }
}

view! {
    /// OpaqueDeviceConfiguration.
    Opaque {
        /// `driver`
        driver: str = "driver",
        /// `parameters`
        parameters: raw = "parameters",
    }
}

view! {
    /// DeviceClass.
    Class {
        /// `spec`
        spec: one<ClassSpec> = "spec",
    }
}

view! {
    /// DeviceClassSpec.
    ClassSpec {
        /// `selectors`
        selectors: list<Selector> = "selectors",
        /// `config`
        config: list<ClassConfig> = "config",
        /// `extendedResourceName`
        extended_resource_name: opt_str = "extendedResourceName",
    }
}

view! {
    /// DeviceClassConfiguration.
    ClassConfig {
        /// `opaque`
        opaque: opt<Opaque> = "opaque",
    }
}
