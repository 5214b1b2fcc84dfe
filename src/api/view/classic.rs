//! Classic DRA (KEP-3063): ResourceClass, ResourceClaim, and the template inside of a Pod.

use super::{NodeSelector, ObjectMeta, OwnerReference, View as _, view};
use crate::field::Path;

view! {
    /// ResourceClass.
    ClassicClass {
        /// `driverName`
        driver_name: str = "driverName",
        /// `parameters`
        parameters: raw = "parameters",
    }
}

view! {
    /// ResourceClaim.
    ClassicClaim {
        /// `metadata`
        metadata: one<ObjectMeta> = "metadata",
        /// `spec`
        spec: one<ClassicClaimSpec> = "spec",
        /// `status`
        status: one<ClassicClaimStatus> = "status",
    }
}

view! {
    /// ResourceClaimSpec.
    ClassicClaimSpec {
        /// `resourceClassName`
        resource_class_name: str = "resourceClassName",
        /// `parameters`
        parameters: raw = "parameters",
        /// `allocationMode`
        allocation_mode: str = "allocationMode",
    }
}

view! {
    /// ResourceClaimStatus.
    ClassicClaimStatus {
        /// `phase`
        phase: str = "phase",
        /// `driverName`
        driver_name: str = "driverName",
        /// `scheduling`
        scheduling: opt<SchedulingStatus> = "scheduling",
        /// `userLimit`
        user_limit: int = "userLimit",
        /// `reservedFor`
        reserved_for: list<OwnerReference> = "reservedFor",
    }
}

view! {
    /// SchedulingStatus.
    SchedulingStatus {
        /// `scheduler`
        scheduler: one<SchedulerStatus> = "scheduler",
        /// `driver`
        driver: one<DriverStatus> = "driver",
    }
}

view! {
    /// SchedulerSchedulingStatus.
    SchedulerStatus {
        /// `selectedNode`
        selected_node: str = "selectedNode",
        /// `potentialNodes`
        potential_nodes: strings = "potentialNodes",
    }
}

view! {
    /// DriverSchedulingStatus.
    DriverStatus {
        /// `unsuitableNodes`
        unsuitable_nodes: strings = "unsuitableNodes",
        /// `availableOnNodes`
        available_on_nodes: opt<NodeSelector> = "availableOnNodes",
    }
}

view! {
    /// ResourceClaimTemplate inside of a Pod.
    ClassicTemplate {
        /// `metadata` of the claim to come
        metadata: one<ObjectMeta> = "metadata",
    }
}

impl<'d> ClassicTemplate<'d> {
    /// The spec of the claim to come: in `spec`, or in the template itself as the KEP's example has it.
    pub(crate) fn spec(self) -> ClassicClaimSpec<'d> {
        let spec = self.0.get("spec");
        ClassicClaimSpec::of(if spec.is_null() { self.0 } else { spec })
    }

    /// Where that is.
    pub(crate) fn spec_at<'p>(self, at: &'p Path<'p>) -> Path<'p> {
        if self.0.get("spec").is_null() && !self.0.get("resourceClassName").is_null() {
            *at
        } else {
            at.field("spec")
        }
    }
}
