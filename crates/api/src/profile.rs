//! A Kubernetes release, or a revision of the KEP, as data.
//!
//! A profile has limits, enum values, served versions, available fields and *named behaviours*. It has no severities
//! (policies set those) and no messages (rules have those). Rules read `cx.profile.…`; nothing compares releases. The
//! constants are in `profile/releases.rs`, each release written as its difference from the one before.

mod gates;
mod kinds;
mod live;
mod lookup;
mod releases;
mod semantics;

pub use gates::{Gate, GateChoice, GateSet, Gates};
pub use kinds::{ApiKind, CLASSIC_VERSIONS, FORMER_KINDS, Version};
pub use live::{LiveServer, ServedVersions};
pub use releases::{ALL, DEFAULT};
pub use semantics::{AllocatorFeatures, AllocatorSemantics, DistinctComparedValues};

use tollgate_cel::{CelEnv, evaluate};
use tollgate_formats::names::{KeyErrorWord, LengthUnitWord};

/// Whether a profile is for exactly the release of an API server, or for the nearest one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProfileMatch {
    /// The profile is that of the server's release.
    Exact,
    /// The API server is newer than every profile.
    NewerServer,
    /// The API server is older than every profile.
    OlderServer,
}

/// The releases and drafts that have an API field: one bit per release (from bit 33 on) and per draft (below). A row in
/// `api::fields` has the bits of every profile with the field; a profile has its own bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Availability(pub u64);

impl Availability {
    /// The empty set: no release or draft has the field.
    pub const NEVER: Availability = Availability(0);
    /// All releases and drafts.
    pub const ALWAYS: Availability = Availability(u64::MAX);
    /// Available only in the first draft of KEP-5055 (`kep-5055-r1`).
    pub const DRAFT_R1: Availability = Availability(1 << 1);
    /// Available only in the second draft of KEP-5055 (`kep-5055-r2`).
    pub const DRAFT_R2: Availability = Availability(1 << 2);
    /// Available only in the second draft of KEP-5055 (`kep-5055-r2`), for the field that this draft removes.
    pub const DRAFT_R2_ALONE: Availability = Availability(1 << 63);

    /// Available from Kubernetes 1.`minor`, including future releases.
    pub const fn since(minor: u32) -> Availability {
        Availability(u64::MAX << minor)
    }

    /// Available from Kubernetes 1.`first` to 1.`last`.
    pub const fn between(first: u32, last: u32) -> Availability {
        Availability((u64::MAX << first) & !(u64::MAX << (last + 1)))
    }

    /// Available only in Kubernetes 1.`minor`.
    pub const fn release(minor: u32) -> Availability {
        Availability(1 << minor)
    }

    /// Removes the releases and drafts in `other`.
    #[must_use]
    pub const fn except(self, other: Availability) -> Availability {
        Availability(self.0 & !other.0)
    }

    /// Adds the releases and drafts in `other`.
    #[must_use]
    pub const fn or(self, other: Availability) -> Availability {
        Availability(self.0 | other.0)
    }

    /// Returns the set without releases: only those of the drafts r1 and r2 that are in it.
    #[must_use]
    pub const fn drafts_only(self) -> Availability {
        Availability(self.0 & (Availability::DRAFT_R1.0 | Availability::DRAFT_R2.0))
    }

    /// True if the two share a release or draft.
    pub const fn overlaps(self, other: Availability) -> bool {
        self.0 & other.0 != 0
    }
}

/// Maximum numbers and lengths that a release enforces for objects.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of taints of a device.
    pub taints_per_device: usize,
    /// Maximum number of devices in a slice.
    pub devices: usize,
    /// Maximum number of devices in a slice if any of them is tainted.
    pub tainted_devices: usize,
    /// Maximum number of devices in a slice if any of them consumes counters (or has list attributes, see
    /// `list_attributes`).
    pub advanced_devices: usize,
    /// Maximum number of attribute values of a device; list items are counted individually.
    pub attribute_values: usize,
    /// Maximum number of counter sets in a slice.
    pub counter_sets: usize,
    /// Maximum number of counters in a set, and in a consumption.
    pub counters_per_set: usize,
    /// Maximum number of counter sets that a device consumes.
    pub consumed_sets: usize,
}

/// Limits that are documented but not enforced by any server; `None` where the profile's documents have none.
#[derive(Clone, Copy, Debug)]
pub struct UnenforcedLimits {
    /// Maximum number of tolerations of a request.
    pub tolerations: Option<usize>,
    /// Maximum length of `spec.taints` of a slice (draft r2).
    pub slice_taints: Option<usize>,
    /// Maximum size in bytes of a taint's `data` (draft r2).
    pub taint_data: Option<usize>,
    /// Maximum size in bytes of a taint's `description` (draft r2).
    pub taint_description: Option<usize>,
    /// `evictionsPerSecond` must be positive (draft r2).
    pub eviction_rate: bool,
    /// Maximum number of taints of a ResourceSlicePatch (draft r1).
    pub patch_taints: Option<usize>,
}

/// Which limits on the number of counters a release has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CounterRules {
    /// Up to 1.34: limits on totals per slice and device. Counter sets and devices share a slice, and
    /// references are checked.
    Totals,
    /// From 1.35: counter sets and devices are in different slices, and each list has its own limit.
    PerSet,
}

/// How an API server prints the identity of a device in errors about a claim's status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceIdFormatInErrors {
    /// 1.33: `driver/pool/device`, without quotes.
    Slashes,
    /// 1.34: an object of empty objects; the encoder did not know the type.
    EmptyObjects,
    /// ≥1.35: an object of strings.
    Strings,
}

/// A boolean for a behavior that differs between releases. The field name describes the behavior.
pub type Behaviour = bool;

/// A Kubernetes release or draft as data.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Name, such as `1.36` or `kep-5055`.
    pub name: &'static str,
    /// One-line description for `tollgate profiles`.
    pub about: &'static str,
    /// True for a release of Kubernetes, false for a draft or a union of drafts.
    pub is_release: bool,
    /// The releases or drafts whose API fields the profile has.
    pub fields: Availability,
    /// The served versions of each kind.
    pub serves: &'static [(ApiKind, &'static [Version])],
    /// Kinds of `resource.k8s.io` that exist but that Tollgate does not check, with their versions.
    pub unchecked: &'static [(&'static str, &'static [Version])],
    /// Kinds with a status subresource.
    pub status_of: &'static [ApiKind],
    /// Limits that the API server enforces.
    pub limits: Limits,
    /// Limits that are only documented.
    pub documented: UnenforcedLimits,
    /// Taint effects, sorted as the server prints them.
    pub effects: &'static [&'static str],
    /// The feature gates that are on.
    pub gates: Gates,
    /// The versions that a running API server serves, if it was queried.
    pub discovered: Option<ServedVersions>,
    /// CEL environment of device selectors.
    pub cel: CelEnv,
    /// CEL environment of stored selectors, which may use features that the previous release does not know.
    pub stored_cel: CelEnv,
    /// How the scheduler and the controllers evaluate device selectors, with feature gates applied.
    pub selectors: evaluate::ReleaseBehaviour,
    /// How the scheduler allocates devices, with feature gates applied.
    pub allocation: AllocatorSemantics,
    /// The release whose allocator is used instead, because the allocator of this release chooses devices at
    /// random and was not compared with a real scheduler; `None` if it was.
    pub allocates_as: Option<&'static str>,
    /// The word for the unit of label lengths.
    pub label_unit: LengthUnitWord,
    /// The wording of the error for a label key with too many slashes.
    pub label_key_word: KeyErrorWord,
    /// The label that allows admin access in a namespace.
    pub admin_access_label: &'static str,
    /// How the number of counters is limited.
    pub counters: CounterRules,

    // — named behaviours —
    /// True if declarative validation is on: its messages replace the hand-written ones that it covers (1.37).
    pub declarative: Behaviour,
    /// True if the items of a list over its limit are not validated (≥1.35).
    pub stops_at_list_limit: Behaviour,
    /// True if a duplicate in a keyed list is reported at the key field of the item (≤1.34).
    pub duplicates_at_key_field: Behaviour,
    /// True if a malformed map key is part of the reported path (≤1.35).
    pub bad_map_key_in_path: Behaviour,
    /// True if an unchanged taint list, and an unchanged effect, are not validated again (≥1.35).
    pub skips_unchanged_taints: Behaviour,
    /// True if an unknown effect is accepted because the stored device already has it, even if the slice changes
    /// otherwise (draft r3).
    pub keeps_stored_effects: Behaviour,
    /// True if an unchanged capacity map is not validated again (1.37).
    pub skips_unchanged_capacity: Behaviour,
    /// True if the spec of a claim is validated on update too (≤1.34).
    pub rejudges_claim_spec: Behaviour,
    /// True if a request with both `exactly` and `firstAvailable` is not validated further (≥1.35).
    pub stops_at_ambiguous_request: Behaviour,
    /// True if a selector list that an update left unchanged is not compiled again (1.37).
    pub trusts_stored_cel: Behaviour,
    /// True if the error about opaque parameters of the wrong type names them (1.33).
    pub names_parameters: Behaviour,
    /// True if an empty driver name is malformed as well as missing (≤1.34).
    pub empty_driver_is_malformed: Behaviour,
    /// True if empty attribute names and parts are reported as "required", with the messages of that time (≤1.34).
    pub old_qualified_names: Behaviour,
    /// True if a bad C identifier has the error type `TypeInvalid` (1.33).
    pub c_identifier_is_type_error: Behaviour,
    /// True if messages print `null` as `"null"`, and structs as Go's `%#v` (1.33).
    pub quotes_null: Behaviour,
    /// True if a slice cannot have both devices and shared counters (≥1.35).
    pub devices_exclude_counters: Behaviour,
    /// True if attributes can be lists, and a list lowers the device limit like a taint (≥1.36).
    pub list_attributes: Behaviour,
    /// True if an attribute without a value is "required" and not "invalid" (≤1.34).
    pub missing_value_is_required: Behaviour,
    /// True if consumable capacity exists: request policies, distinctAttribute (≥1.34).
    pub consumable_capacity: Behaviour,
    /// True if request policies are exact to the thousandth (1.37).
    pub fractional_capacity: Behaviour,
    /// True if the bounds of a request policy must fit into an int64, its step must be positive, and a default outside
    /// the range is itself reported (1.37).
    pub guards_capacity_range: Behaviour,
    /// True if a DeviceTaintRule whose effect changes under an unchanged time gets a new time (≥1.36).
    pub restarts_rule_time: Behaviour,
    /// True if a DeviceTaintRule has a status, and its status is checked (≥1.35).
    pub rule_status: Behaviour,
    /// True if a DeviceTaintRule may select devices by class and CEL (1.33, 1.34, draft r2).
    pub rule_class_selectors: Behaviour,
    /// True if the length of a DeviceClass name is counted in bytes and its generateName is not checked (≥1.35).
    pub class_names_in_bytes: Behaviour,
    /// How Go prints the identity of a device.
    pub device_id_format: DeviceIdFormatInErrors,
    /// True if tolerations of allocation results are validated (1.37).
    pub judges_result_tolerations: Behaviour,
    /// True if type and status of a condition are "required", and a second condition of a type is reported as a whole
    /// (1.37).
    pub keys_conditions: Behaviour,
    /// True if the path of an owner reference contains its index, and missing fields of it are "required" (1.37).
    pub indexes_owner_references: Behaviour,
    /// True if a v1 DeviceTaintRule cannot be updated without its resourceVersion (1.37).
    pub requires_rule_version: Behaviour,
    /// True if the server sets `timeAdded` only for NoExecute taints (draft r1).
    pub times_only_evictions: Behaviour,
    /// True if slices may have `spec.taints`, exclusive with `devices` (draft r2).
    pub slice_taints: Behaviour,
    /// True if the eviction controller sees a DeviceTaintRule only as taints of published devices (≤1.34, draft r2).
    pub rules_act_through_slices: Behaviour,
    /// True if, for the eviction controller, a rule without a selector selects every device, as for the scheduler
    /// (≤1.34).
    pub missing_selector_evicts: Behaviour,
    /// True if the scheduler copies a request's tolerations into the allocation, where eviction looks for them (≥1.35).
    pub copies_tolerations: Behaviour,
    /// True if the tolerations of the request itself keep pods from being evicted: no draft copies them into the
    /// allocation.
    pub requests_stop_eviction: Behaviour,
    /// True if a toleration without an effect keeps pods from being evicted too, as in the drafts; no eviction
    /// controller does that.
    pub empty_effect_stops_eviction: Behaviour,
    /// True if a claim can be reserved for a PodGroup instead of each of its pods (≥1.36).
    pub reserves_for_pod_groups: Behaviour,
    /// True if parts that no release serves are accepted with a warning, because the user did not select a draft by
    /// name (kep-5055).
    pub warns_of_drafts: Behaviour,
    /// Default number of evictions per second of a taint (draft r2); `None` if there is no limit.
    pub eviction_rate: Option<i64>,
}

impl Profile {
    /// Every release and draft, in order.
    pub const ALL: &'static [&'static Profile] = ALL;
    /// The profile that is used if none is named.
    pub const DEFAULT: &'static Profile = DEFAULT;

    /// The revisions of the KEP-5055 draft, in order, without the union of all of them.
    pub fn drafts() -> impl Iterator<Item = &'static Profile> {
        ALL.iter().copied().filter(|profile| !profile.is_release && !profile.warns_of_drafts)
    }

    /// The name in sentences: `Kubernetes 1.36`, `kep-5055`.
    pub fn title(&self) -> String {
        if self.is_release { format!("Kubernetes {}", self.name) } else { self.name.to_owned() }
    }

    /// Explains why the allocated devices can differ from those of a real scheduler; `None` if they cannot.
    pub fn why_allocation_may_differ(&self) -> Option<String> {
        let like = self.allocates_as?;
        Some(format!(
            "the scheduler of {} can choose other devices: it searches pools in random order; the devices are those \
             that Kubernetes {like} would choose",
            self.title()
        ))
    }

    /// The versions of a kind that the release can serve, oldest first; empty if it does not have the kind.
    pub fn versions(&self, kind: ApiKind) -> &'static [Version] {
        if let Some(version) = kind.only_version_if_profile_independent() {
            return version;
        }
        self.serves.iter().find(|(served, _)| *served == kind).map_or(&[], |(_, versions)| versions)
    }

    /// The versions of a kind of `resource.k8s.io` that the release has and Tollgate does not check; empty for other
    /// kinds.
    pub fn unchecked_versions(&self, kind: &str) -> &'static [Version] {
        self.unchecked.iter().find(|(name, _)| *name == kind).map_or(&[], |(_, versions)| versions)
    }

    /// True if the API server serves this version: according to the running server if it was queried,
    /// otherwise by default.
    pub fn is_served(&self, kind: ApiKind, version: Version) -> bool {
        match self.discovered {
            Some(served) if kind.only_version_if_profile_independent().is_none() => served.has(kind, version),
            _ => self.serves_by_default(kind, version),
        }
    }

    /// True if an API server of this release serves this version by default. For `resource.k8s.io`, only v1
    /// is enabled by default.
    pub fn serves_by_default(&self, kind: ApiKind, version: Version) -> bool {
        kind.only_version_if_profile_independent().is_some()
            || version == Version::V1 && self.versions(kind).contains(&version)
    }

    /// The name of the next release, such as `1.38`, if it no longer serves this version of a kind; `None` if it does,
    /// if this release does not, or for drafts.
    pub fn next_release_if_dropping_version(&self, kind: ApiKind, version: Version) -> Option<String> {
        let next = Availability(self.fields.0 << 1);
        let is_last = self.is_release
            && self.versions(kind).contains(&version)
            && kind.releases_without(version).overlaps(next);
        // The bit of a release is its number.
        is_last.then(|| format!("1.{}", next.0.trailing_zeros()))
    }

    /// True if the release can serve this version of a kind; with `status`, also its status subresource.
    pub fn can_serve(&self, kind: ApiKind, version: Version, status: bool) -> bool {
        let has_status =
            || kind.only_version_if_profile_independent().is_some() || self.status_of.contains(&kind);
        self.versions(kind).contains(&version) && (!status || has_status())
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, Profile};

    #[test]
    fn a_release_without_recordings_says_so() {
        let noted: Vec<&str> = Profile::all_with_patches()
            .filter(|profile| profile.why_allocation_may_differ().is_some())
            .map(|profile| profile.name)
            .collect();
        assert_eq!(noted, ["1.33", "1.34", "1.35"]);
    }

    #[test]
    fn no_release_serves_what_was_removed() {
        let mut removed_in = Vec::new();
        for profile in ALL.iter().filter(|profile| profile.is_release) {
            for (kind, versions) in profile.serves {
                for version in *versions {
                    let removed = kind.releases_without(*version);
                    assert!(!removed.overlaps(profile.fields), "{} {kind:?} {version:?}", profile.name);
                    if let Some(next) = profile.next_release_if_dropping_version(*kind, *version) {
                        removed_in.push(format!("{next} {} {}", kind.resource(), version.name()));
                    }
                }
            }
        }
        // zz_generated.prerelease-lifecycle.go of 1.37
        let kinds = ["resourceslices", "resourceclaims", "resourceclaimtemplates", "deviceclasses"];
        let of = |release: &str, version: &str| kinds.map(|kind| format!("{release} {kind} {version}"));
        assert_eq!(removed_in, [of("1.34", "v1alpha3"), of("1.38", "v1beta1")].concat());
    }
}
