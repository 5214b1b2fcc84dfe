//! The releases and drafts, each as its difference from the one before. The one file a new release edits.
//!
//! Sources: `validation.go`, `types.go`, `storage_resource.go` of the tags v1.33.0 … v1.37.0-rc.1, and the KEP's
//! drafts. Tests compare the results with the verdicts of real API servers that are recorded in `tests/conformance`.

use super::{
    AllocatorSemantics,
    ApiKind::{
        DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice, ResourceSlicePatch,
    },
    Availability, CounterRules, DeviceIdFormatInErrors, Gates, Limits, Profile, UnenforcedLimits,
    Version::{V1, V1alpha3, V1beta1, V1beta2},
};
use tollgate_cel::{self as cel, evaluate};
use tollgate_formats::names::{KeyErrorWord, LengthUnitWord};

/// The versions that a profile serves: the first of ResourceSlice, ResourceClaim, ResourceClaimTemplate and DeviceClass,
/// which are alike in every release, then those of other kinds.
macro_rules! serves {
    ($alike:expr $(, $kind:ident: $versions:expr)*) => {
        &[
            (ResourceSlice, $alike),
            (ResourceClaim, $alike),
            (ResourceClaimTemplate, $alike),
            (DeviceClass, $alike),
            $(($kind, $versions),)*
        ]
    };
}

/// Every profile, in the order they are listed to people.
pub const ALL: &[&Profile] =
    &[&V1_33, &V1_34, &V1_35, &V1_36, &V1_37, &KEP_5055_R1, &KEP_5055_R2, &KEP_5055_R3, &KEP_5055];

/// The patch releases that differ from the newest patch of their release, oldest first.
pub(super) const EARLIER_PATCHES: &[EarlierPatches] =
    &[EarlierPatches { of: &V1_37, last: 0, profile: &V1_37_0 }];

/// Patch releases that behave differently from later patches of the same release, and their profile.
#[derive(Debug)]
pub(super) struct EarlierPatches {
    /// The profile of the newest patch of the release.
    pub(super) of: &'static Profile,
    /// The number of the last patch with this profile.
    pub(super) last: u64,
    pub(super) profile: &'static Profile,
}

/// The profile that is used if none is selected.
pub const DEFAULT: &Profile = &KEP_5055;

const V1_33: Profile = Profile {
    name: "1.33",
    about: "Kubernetes 1.33",
    is_release: true,
    fields: Availability::release(33),
    serves: serves!(&[V1alpha3, V1beta1, V1beta2], DeviceTaintRule: &[V1alpha3]),
    unchecked: &[],
    status_of: &[ResourceClaim],
    limits: Limits {
        taints_per_device: 4,
        devices: 128,
        tainted_devices: 128,
        advanced_devices: 128,
        attribute_values: usize::MAX,
        counter_sets: usize::MAX,
        counters_per_set: usize::MAX,
        consumed_sets: usize::MAX,
    },
    documented: UnenforcedLimits {
        tolerations: Some(16),
        slice_taints: None,
        taint_data: None,
        taint_description: None,
        eviction_rate: false,
        patch_taints: None,
    },
    effects: &["NoExecute", "NoSchedule"],
    gates: Gates::ALL_ASSUMED_ON,
    discovered: None,
    cel: cel::V1_33,
    stored_cel: cel::V1_33,
    selectors: evaluate::BEHAVIOUR_V1_33,
    allocation: AllocatorSemantics::V1_33,
    allocates_as: Some("1.36"),
    label_unit: LengthUnitWord::Characters,
    label_key_word: KeyErrorWord::QualifiedName,
    admin_access_label: "resource.k8s.io/admin-access",
    counters: CounterRules::Totals,
    declarative: false,
    stops_at_list_limit: false,
    duplicates_at_key_field: true,
    bad_map_key_in_path: true,
    skips_unchanged_taints: false,
    keeps_stored_effects: false,
    skips_unchanged_capacity: false,
    rejudges_claim_spec: true,
    stops_at_ambiguous_request: false,
    trusts_stored_cel: false,
    names_parameters: true,
    empty_driver_is_malformed: true,
    old_qualified_names: true,
    c_identifier_is_type_error: true,
    quotes_null: true,
    devices_exclude_counters: false,
    list_attributes: false,
    missing_value_is_required: true,
    consumable_capacity: false,
    fractional_capacity: false,
    guards_capacity_range: false,
    restarts_rule_time: false,
    rule_status: false,
    rule_class_selectors: true,
    class_names_in_bytes: false,
    device_id_format: DeviceIdFormatInErrors::Slashes,
    judges_result_tolerations: false,
    keys_conditions: false,
    indexes_owner_references: false,
    requires_rule_version: false,
    times_only_evictions: false,
    slice_taints: false,
    rules_act_through_slices: true,
    missing_selector_evicts: true,
    copies_tolerations: false,
    requests_stop_eviction: false,
    empty_effect_stops_eviction: false,
    reserves_for_pod_groups: false,
    warns_of_drafts: false,
    eviction_rate: None,
};

const V1_34: Profile = Profile {
    name: "1.34",
    about: "Kubernetes 1.34",
    fields: Availability::release(34),
    serves: serves!(&[V1beta1, V1beta2, V1], DeviceTaintRule: &[V1alpha3]),
    cel: cel::V1_34,
    stored_cel: cel::CelEnv { ext_lists: true, ..cel::V1_34 },
    selectors: evaluate::BEHAVIOUR_V1_34,
    allocation: AllocatorSemantics::V1_34,
    admin_access_label: "resource.kubernetes.io/admin-access",
    c_identifier_is_type_error: false,
    quotes_null: false,
    names_parameters: false,
    consumable_capacity: true,
    device_id_format: DeviceIdFormatInErrors::EmptyObjects,
    ..V1_33
};

const V1_35: Profile = Profile {
    name: "1.35",
    about: "Kubernetes 1.35",
    fields: Availability::release(35),
    status_of: &[ResourceClaim, DeviceTaintRule],
    limits: Limits {
        taints_per_device: 16,
        tainted_devices: 64,
        advanced_devices: 64,
        counter_sets: 8,
        counters_per_set: 32,
        consumed_sets: 2,
        ..V1_34.limits
    },
    effects: &["NoExecute", "NoSchedule", "None"],
    cel: cel::V1_35,
    stored_cel: cel::V1_35,
    selectors: evaluate::BEHAVIOUR_V1_35,
    allocation: AllocatorSemantics::V1_35,
    label_unit: LengthUnitWord::Bytes,
    label_key_word: KeyErrorWord::LabelKey,
    counters: CounterRules::PerSet,
    stops_at_list_limit: true,
    duplicates_at_key_field: false,
    skips_unchanged_taints: true,
    rejudges_claim_spec: false,
    stops_at_ambiguous_request: true,
    empty_driver_is_malformed: false,
    old_qualified_names: false,
    devices_exclude_counters: true,
    missing_value_is_required: false,
    rule_status: true,
    rule_class_selectors: false,
    rules_act_through_slices: false,
    missing_selector_evicts: false,
    copies_tolerations: true,
    class_names_in_bytes: true,
    device_id_format: DeviceIdFormatInErrors::Strings,
    ..V1_34
};

const V1_36: Profile = Profile {
    name: "1.36",
    about: "Kubernetes 1.36",
    fields: Availability::release(36),
    serves: serves!(&[V1beta1, V1beta2, V1], DeviceTaintRule: &[V1alpha3, V1beta2]),
    unchecked: &[("ResourcePoolStatusRequest", &[V1alpha3])],
    limits: Limits { attribute_values: 48, ..V1_35.limits },
    cel: cel::V1_36,
    stored_cel: cel::V1_36,
    // As with default gates, also if nobody said which are on: with lists, the same expression can have other types.
    selectors: evaluate::BEHAVIOUR_V1_36,
    allocation: AllocatorSemantics::V1_36,
    allocates_as: None,
    bad_map_key_in_path: false,
    list_attributes: true,
    restarts_rule_time: true,
    reserves_for_pod_groups: true,
    ..V1_35
};

const V1_37: Profile = Profile {
    name: "1.37",
    about: "Kubernetes 1.37: device taints are GA",
    fields: Availability::release(37),
    serves: serves!(&[V1beta1, V1beta2, V1], DeviceTaintRule: &[V1alpha3, V1beta2, V1]),
    cel: cel::V1_37,
    stored_cel: cel::V1_37,
    selectors: evaluate::BEHAVIOUR_V1_37,
    allocation: AllocatorSemantics::V1_37,
    declarative: true,
    trusts_stored_cel: true,
    skips_unchanged_capacity: true,
    fractional_capacity: true,
    guards_capacity_range: true,
    judges_result_tolerations: true,
    keys_conditions: true,
    indexes_owner_references: true,
    requires_rule_version: true,
    ..V1_36
};

/// Kubernetes 1.37.0. The fix of its scheduler was merged after it; it is assumed that every later patch has the fix.
const V1_37_0: Profile = Profile {
    name: "1.37.0",
    about: "Kubernetes 1.37.0: the scheduler applies a DeviceTaintRule without deviceSelector to every device (fixed \
            after 1.37.0)",
    allocation: AllocatorSemantics::V1_37_0,
    ..V1_37
};

/// The release whose behavior applies to drafts where they do not specify it.
const NEWEST: Profile = V1_37;

/// Every kind and version that some release serves.
const RELEASED_VERSIONS: &[(super::ApiKind, &[super::Version])] =
    serves!(&[V1alpha3, V1beta1, V1beta2, V1], DeviceTaintRule: &[V1alpha3, V1beta2, V1]);

/// Every (version, kind) of every release and draft.
const ALL_VERSIONS: &[(super::ApiKind, &[super::Version])] = serves!(&[V1alpha3, V1beta1, V1beta2, V1], DeviceTaintRule: &[V1alpha3, V1beta2, V1], ResourceSlicePatch: &[V1alpha3]);

/// The served kinds of draft r1, which has patches instead of rules.
const SERVED_WITHOUT_RULES: &[(super::ApiKind, &[super::Version])] =
    serves!(&[V1alpha3, V1beta1, V1beta2, V1], ResourceSlicePatch: &[V1alpha3]);

/// Draft r1, which was never released: administrators add taints with ResourceSlicePatches. What the draft does not
/// specify is as in the newest release.
const KEP_5055_R1: Profile = Profile {
    name: "kep-5055-r1",
    about: "draft r1 of KEP-5055: taints in ResourceSlicePatch and up to 8 taints per device, without the effect None",
    is_release: false,
    fields: NEWEST.fields.or(Availability::DRAFT_R1),
    serves: SERVED_WITHOUT_RULES,
    limits: Limits { taints_per_device: 8, tainted_devices: NEWEST.limits.devices, ..NEWEST.limits },
    documented: UnenforcedLimits { patch_taints: Some(16), ..NEWEST.documented },
    effects: &["NoExecute", "NoSchedule"],
    times_only_evictions: true,
    restarts_rule_time: false,
    requests_stop_eviction: true,
    empty_effect_stops_eviction: true,
    ..NEWEST
};

/// Draft r2, which was never released: taints are in ResourceSlices without devices (`spec.taints`). What the draft
/// does not specify is as in the newest release.
const KEP_5055_R2: Profile = Profile {
    name: "kep-5055-r2",
    about: "draft r2 of KEP-5055: taints in ResourceSlice.spec.taints, with data and evictionsPerSecond",
    is_release: false,
    fields: Availability::DRAFT_R2_ALONE.or(Availability::DRAFT_R2),
    serves: RELEASED_VERSIONS,
    // A slice has devices or taints, and a device has none.
    limits: Limits { taints_per_device: 0, tainted_devices: 0, ..NEWEST.limits },
    documented: UnenforcedLimits {
        slice_taints: Some(32),
        taint_data: Some(10 * 1024),
        taint_description: Some(1024),
        eviction_rate: true,
        ..NEWEST.documented
    },
    rule_class_selectors: true,
    slice_taints: true,
    eviction_rate: Some(10),
    restarts_rule_time: false,
    // "This has the same effect as if the taint was specified directly in the ResourceSlice by the DRA driver."
    rules_act_through_slices: true,
    requests_stop_eviction: true,
    empty_effect_stops_eviction: true,
    ..NEWEST
};

/// Draft r3: the API that was released in 1.35 and later, as the draft describes it.
const KEP_5055_R3: Profile = Profile {
    name: "kep-5055-r3",
    about: "draft r3 of KEP-5055: up to 16 taints per device, up to 64 devices per tainted slice, and the effect None",
    is_release: false,
    serves: RELEASED_VERSIONS,
    keeps_stored_effects: true,
    requests_stop_eviction: true,
    empty_effect_stops_eviction: true,
    ..NEWEST
};

/// The union of the drafts and the newest release: all of their fields and all documented limits.
const KEP_5055: Profile = Profile {
    name: "kep-5055",
    about: "all fields of the drafts and of the newest release, with all documented limits (default)",
    fields: NEWEST.fields.or(Availability::DRAFT_R1).or(Availability::DRAFT_R2),
    serves: ALL_VERSIONS,
    limits: NEWEST.limits,
    documented: UnenforcedLimits {
        patch_taints: KEP_5055_R1.documented.patch_taints,
        ..KEP_5055_R2.documented
    },
    restarts_rule_time: true,
    keeps_stored_effects: true,
    // Whom a rule evicts is asked before it meets a real controller.
    rules_act_through_slices: NEWEST.rules_act_through_slices,
    requests_stop_eviction: false,
    empty_effect_stops_eviction: false,
    warns_of_drafts: true,
    // No cluster enforces a default rate, so only a rule that sets one is limited.
    eviction_rate: None,
    ..KEP_5055_R2
};

#[cfg(test)]
mod tests {
    use super::{ALL, DEFAULT, EARLIER_PATCHES, NEWEST};
    use crate::profile::{Availability, Profile};

    fn releases() -> impl Iterator<Item = (u32, &'static Profile)> {
        let release = |profile: &&'static Profile| {
            let minor = profile.name.strip_prefix("1.").and_then(|minor| minor.parse().ok());
            profile.is_release.then(|| (minor.expect("a release is called 1.x"), *profile))
        };
        ALL.iter().filter_map(release)
    }

    #[test]
    fn a_release_has_its_own_name_text_and_fields() {
        for (minor, release) in releases() {
            assert_eq!(release.fields, Availability::release(minor), "{}: `fields`", release.name);
            assert!(release.about.contains(release.name), "{}: `about`", release.name);
        }
        assert!(
            releases().is_sorted_by(|(one, _), (next, _)| one + 1 == *next),
            "a release is missing in ALL"
        );
    }

    #[test]
    fn an_earlier_patch_is_named_after_its_release() {
        for patches in EARLIER_PATCHES {
            assert_eq!(patches.profile.name, format!("{}.{}", patches.of.name, patches.last));
            assert!(patches.profile.about.contains(patches.profile.name), "{}", patches.profile.about);
            assert!(patches.profile.is_same_minor_release(patches.of));
            assert_ne!(patches.profile.allocation, patches.of.allocation, "nothing differs");
        }
    }

    #[test]
    fn drafts_build_on_the_newest_release() {
        let (minor, newest) = releases().last().expect("a release");
        assert_eq!(NEWEST.name, newest.name, "NEWEST");
        for draft in ALL.iter().filter(|profile| !profile.is_release) {
            assert!(draft.fields.overlaps(Availability::since(minor)), "{}", draft.name);
        }
        assert!(DEFAULT.fields.overlaps(NEWEST.fields), "DEFAULT");
    }
}
