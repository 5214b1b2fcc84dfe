//! Classic DRA (KEP-3063): ResourceClass, ResourceClaim, and the template inside of a Pod.

use crate::view::{NodeSelector, ObjectMeta, OwnerReference, View as _, view};
use tollgate_document::field::Path;

view! {
    /// ResourceClass.
    ClassicClass {
        driver_name: str = "driverName",
        parameters: raw = "parameters",
    }

    /// ResourceClaim.
    ClassicClaim {
        metadata: one<ObjectMeta> = "metadata",
        spec: one<ClassicClaimSpec> = "spec",
        status: one<ClassicClaimStatus> = "status",
    }

    /// ResourceClaimSpec.
    ClassicClaimSpec {
        resource_class_name: str = "resourceClassName",
        parameters: raw = "parameters",
        allocation_mode: str = "allocationMode",
    }

    /// ResourceClaimStatus.
    ClassicClaimStatus {
        phase: str = "phase",
        driver_name: str = "driverName",
        scheduling: opt<SchedulingStatus> = "scheduling",
        user_limit: int = "userLimit",
        reserved_for: list<OwnerReference> = "reservedFor",
    }

    /// SchedulingStatus.
    SchedulingStatus {
        scheduler: one<SchedulerStatus> = "scheduler",
        driver: one<DriverStatus> = "driver",
    }

    /// SchedulerSchedulingStatus.
    SchedulerStatus {
        selected_node: str = "selectedNode",
        potential_nodes: strings = "potentialNodes",
    }

    /// DriverSchedulingStatus.
    DriverStatus {
        unsuitable_nodes: strings = "unsuitableNodes",
        available_on_nodes: opt<NodeSelector> = "availableOnNodes",
    }

    /// ResourceClaimTemplate inside of a Pod.
    ClassicTemplate {
        /// `metadata` of the claim that is created from the template
        metadata: one<ObjectMeta> = "metadata",
    }
}

impl<'d> ClassicTemplate<'d> {
    /// Returns the spec of the claim to be created: the member `spec`, or the template itself as in the example of
    /// KEP-3063.
    pub fn nested_or_inlined_spec(self) -> ClassicClaimSpec<'d> {
        let spec = self.0.get("spec");
        ClassicClaimSpec::of(if spec.is_null_or_absent() { self.0 } else { spec })
    }

    /// Returns the path of [`ClassicTemplate::nested_or_inlined_spec`]: that of the template itself, which is at `at`,
    /// if the fields of the spec are inlined.
    pub fn nested_or_inlined_spec_path<'p>(self, at: &'p Path<'p>) -> Path<'p> {
        if self.0.get("spec").is_null_or_absent() && !self.0.get("resourceClassName").is_null_or_absent() {
            *at
        } else {
            at.field("spec")
        }
    }
}
