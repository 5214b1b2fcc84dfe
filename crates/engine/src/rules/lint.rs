//! Legal, and almost surely a mistake: one file per lint of ours.
//!
//! A lint says what will happen, not what is bad style. Taints, tolerations and selectors come from sites.

mod reserved;

pub use allocated_without_finalizer::loses_last_finalizer;

use super::groups;

groups! {
    // — tolerations —
    blanket_toleration: Toleration,
    toleration_without_effect: Toleration,
    toleration_of_none: Toleration,
    seconds_without_noexecute: Toleration,
    negative_toleration_seconds: Toleration,
    overflowing_toleration_seconds: Toleration,
    reserved_toleration_key: Toleration,
    duplicate_toleration: Tolerations,
    // — taints —
    reserved_taint_key: Taint,
    rate_without_noexecute: Taint,
    future_time_added: Taint,
    restarted_time: Taint,
    duplicate_taint: Taints,
    overwritten_patch_taint: Taints,
    // — rules —
    missing_taint_selector: Selector,
    empty_taint_selector: Selector,
    driver_wide_taint: Selector,
    removed_selector_field: Selector,
    device_without_pool: Selector,
    uppercase_selector_driver: Selector,
    // — whole objects —
    uppercase_driver: Object,
    unchecked_attribute_name: Object,
    two_attribute_constraint: Object,
    admin_access_unchecked: Object,
    claim_in_other_namespace: Object,
    // — classic DRA —
    classic_pod_claim: Object,
    allocated_without_finalizer: Object,
    allocated_without_node: Object,
    stale_scheduling: Object,
    // — FoundationDB —
    taint_replacement: Object,
}
