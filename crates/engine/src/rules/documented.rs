//! Limits that the API documentation or the KEP states and no server enforces.
//!
//! Texts are those that upstream uses for the same fault elsewhere. Numbers come from `profile.documented`: a
//! profile whose document is silent has none.

use super::groups;

groups! {
    too_many_tolerations: Tolerations,
    empty_key_without_exists: Toleration,
    slice_taints: Object,
    taint_content: Taint,
    slice_patch: Object,
    classic: Object,
    taint_replacement: Object,
}
