//! ResourceClaim, ResourceClaimTemplate and DeviceClass: flat request, `exactly`, `firstAvailable`.

use super::{ClaimStatus, ObjectMeta, Toleration, view};
use crate::profile::Version;
use tollgate_document::doc::FieldName;
use tollgate_document::field::{Path, Segment};

view! {
    /// ResourceClaim.
    Claim {
        metadata: one<ObjectMeta> = "metadata",
        spec: one<ClaimSpec> = "spec",
        status: one<ClaimStatus> = "status",
    }

    /// ResourceClaimTemplate.
    Template {
        spec: one<TemplateSpec> = "spec",
    }

    /// ResourceClaimTemplateSpec.
    TemplateSpec {
        /// `metadata` of the claims that are created from the template
        metadata: one<ObjectMeta> = "metadata",
        /// `spec` of the claims that are created from the template
        spec: one<ClaimSpec> = "spec",
    }

    /// ResourceClaimSpec, whose only field is `devices`.
    ClaimSpec {
        devices: one<DeviceClaim> = "devices",
    }
}

view! {
    /// DeviceClaim.
    DeviceClaim {
        requests: list<Request> = "requests",
        constraints: list<Constraint> = "constraints",
        config: list<ClaimConfig> = "config",
    }

    /// DeviceRequest: its name, and a body that is flat or in `exactly`.
    Request {
        name: str = "name",
        first_available: list<SubRequest> = "firstAvailable",
    }
}

const EXACTLY: FieldName = FieldName::from_text("exactly");

impl<'d> Request<'d> {
    /// Returns the exact request: the member `exactly`, or the request itself in versions without it. `None` if
    /// there is none.
    // upstream v1.36 v1beta1/conversion.go: `exactly` is built if any of its fields is set.
    pub fn exactly(self, version: Version) -> Option<RequestBody<'d>> {
        if !version.is_v1alpha3_or_v1beta1() {
            let exactly = self.0.field(EXACTLY);
            return (!exactly.is_null_or_absent()).then_some(RequestBody(exactly));
        }
        let body = RequestBody(self.0);
        let any = !body.device_class_name().is_empty()
            || body.selectors().is_given()
            || !body.allocation_mode().is_empty()
            || body.count() != 0
            || body.admin_access().is_some()
            || body.tolerations().is_given()
            || !body.capacity().is_null_or_absent()
            || self.0.get("derivedAttributes").kind() == tollgate_document::doc::ValueKind::Array;
        any.then_some(body)
    }

    /// Returns the path of [`Request::exactly`]; `at` is the path of the request.
    pub fn exactly_path<'p>(at: &'p Path<'p>, version: Version) -> Path<'p> {
        at.with_segment(if version.is_v1alpha3_or_v1beta1() {
            Segment::HubField("exactly")
        } else {
            Segment::Field("exactly")
        })
    }
}

view! {
    /// ExactDeviceRequest, and what a sub-request has in common with it.
    RequestBody {
        device_class_name: str = "deviceClassName",
        selectors: list<Selector> = "selectors",
        allocation_mode: str = "allocationMode",
        count: int = "count",
        admin_access: opt_bool = "adminAccess",
        tolerations: list<Toleration> = "tolerations",
        capacity: raw = "capacity",
        derived_attributes: list<Derived> = "derivedAttributes",
    }

    /// DeviceSubRequest.
    SubRequest {
        name: str = "name",
    }
}

impl<'d> SubRequest<'d> {
    /// Returns the fields that a sub-request has in common with an exact request.
    pub fn body(self) -> RequestBody<'d> {
        RequestBody(self.0)
    }
}

view! {
    /// DeviceSelector.
    Selector {
        cel: opt<CelSelector> = "cel",
    }

    /// CELDeviceSelector.
    CelSelector {
        expression: str = "expression",
    }

    /// DeviceDerivedAttribute (1.37).
    Derived {
        name: str = "name",
        expression: str = "expression",
    }

    /// DeviceConstraint.
    Constraint {
        requests: strings = "requests",
        match_attribute: opt_str = "matchAttribute",
        distinct_attribute: opt_str = "distinctAttribute",
    }

    /// DeviceClaimConfiguration.
    ClaimConfig {
        requests: strings = "requests",
        opaque: opt<Opaque> = "opaque",
    }

    /// OpaqueDeviceConfiguration.
    Opaque {
        driver: str = "driver",
        parameters: raw = "parameters",
    }

    /// DeviceClass.
    Class {
        spec: one<ClassSpec> = "spec",
    }

    /// DeviceClassSpec.
    ClassSpec {
        selectors: list<Selector> = "selectors",
        config: list<ClassConfig> = "config",
        extended_resource_name: opt_str = "extendedResourceName",
    }

    /// DeviceClassConfiguration.
    ClassConfig {
        opaque: opt<Opaque> = "opaque",
    }
}
