//! ResourceSlicePatch of draft r1.

use crate::view::{Attribute, Capacity, ObjectMeta, Taint, TaintSelector, view};

view! {
    /// ResourceSlicePatch.
    SlicePatch {
        metadata: one<ObjectMeta> = "metadata",
        spec: one<SlicePatchSpec> = "spec",
    }

    /// ResourceSlicePatchSpec.
    SlicePatchSpec {
        devices: one<DevicePatch> = "devices",
    }

    /// DevicePatch. Its filter has the fields of a rule's selector, so it reads as one.
    DevicePatch {
        filter: opt<TaintSelector> = "filter",
        /// `priority`; none counts as 0
        priority: int = "priority",
        attributes: map<Attribute> = "attributes",
        capacity: map<Capacity> = "capacity",
        taints: list<Taint> = "taints",
    }
}

impl<'d> SlicePatch<'d> {
    /// The driver whose devices are patched; empty if the filter names none.
    pub fn selected_driver(self) -> &'d str {
        self.spec().devices().filter().and_then(TaintSelector::driver).unwrap_or_default()
    }
}
