//! The fields of each kind that impact reads. Other fields need not be kept when objects are read from an API server.
//!
//! For kinds with a schema, the omitted fields are listed, so that new fields of a release are still checked; for
//! other kinds, the kept fields are listed. Labels are kept where PodDisruptionBudgets select by them.

use super::details::DetailsToStore;
use super::kinds::SnapshotKind;
use crate::rule_annotations::{EXPIRES, OWNER};
use tollgate_document::doc::KeptFields::{self, All, AllBut, Fields, Items, Nothing};

const METADATA: KeptFields = Fields(&[
    ("name", All),
    ("generateName", All),
    ("namespace", All),
    ("uid", All),
    ("resourceVersion", All),
    ("deletionTimestamp", All),
    ("ownerReferences", All),
]);

const LABELED_METADATA: KeptFields = Fields(&[
    ("name", All),
    ("namespace", All),
    ("uid", All),
    ("resourceVersion", All),
    ("deletionTimestamp", All),
    ("labels", All),
    ("ownerReferences", All),
]);

const DEVICE: KeptFields = AllBut(&[
    ("attributes", Nothing),
    ("capacity", Nothing),
    ("consumesCounters", Nothing),
    ("basic", AllBut(&[("attributes", Nothing), ("capacity", Nothing), ("consumesCounters", Nothing)])),
]);

const SLICE: KeptFields = Fields(&[
    ("metadata", METADATA),
    ("spec", AllBut(&[("devices", Items(&DEVICE)), ("sharedCounters", Nothing)])),
]);

const DEVICE_WITH_COUNTERS: KeptFields = AllBut(&[
    ("attributes", Nothing),
    ("capacity", Nothing),
    ("basic", AllBut(&[("attributes", Nothing), ("capacity", Nothing)])),
]);

const SLICE_WITH_COUNTERS: KeptFields =
    Fields(&[("metadata", METADATA), ("spec", AllBut(&[("devices", Items(&DEVICE_WITH_COUNTERS))]))]);

const WHOLE_SLICE: KeptFields = Fields(&[("metadata", METADATA), ("spec", All)]);

const CLASS: KeptFields = Fields(&[("metadata", METADATA), ("spec", Fields(&[("selectors", All)]))]);

const CLAIM: KeptFields = Fields(&[
    ("metadata", METADATA),
    ("spec", AllBut(&[("devices", AllBut(&[("config", Nothing)]))])),
    (
        "status",
        AllBut(&[
            ("devices", Nothing),
            ("allocation", AllBut(&[("devices", AllBut(&[("config", Nothing)]))])),
        ]),
    ),
]);

const RULE_METADATA: KeptFields = Fields(&[
    ("name", All),
    ("generateName", All),
    ("uid", All),
    ("resourceVersion", All),
    ("deletionTimestamp", All),
    ("ownerReferences", All),
    ("annotations", Fields(&[(EXPIRES, All), (OWNER, All)])),
]);

const RULE: KeptFields = Fields(&[("metadata", RULE_METADATA), ("spec", All)]);

const POD: KeptFields = Fields(&[
    ("metadata", LABELED_METADATA),
    ("spec", Fields(&[("nodeName", All), ("resourceClaims", All), ("schedulingGroup", All)])),
    (
        "status",
        Fields(&[
            ("phase", All),
            ("conditions", Items(&Fields(&[("type", All), ("status", All)]))),
            ("resourceClaimStatuses", All),
            ("extendedResourceClaimStatus", All),
        ]),
    ),
]);

const BUDGET: KeptFields = Fields(&[
    ("metadata", METADATA),
    ("spec", Fields(&[("selector", All), ("unhealthyPodEvictionPolicy", All)])),
    ("status", Fields(&[("disruptionsAllowed", All), ("currentHealthy", All), ("desiredHealthy", All)])),
]);

const NAMESPACE: KeptFields = Fields(&[("metadata", LABELED_METADATA)]);

impl SnapshotKind {
    /// Returns the fields of an object of this kind that impact reads for a snapshot without device details.
    pub const fn fields_without_details(self) -> &'static KeptFields {
        match self {
            SnapshotKind::Slice => &SLICE,
            SnapshotKind::Claim => &CLAIM,
            SnapshotKind::Rule => &RULE,
            SnapshotKind::Pod => &POD,
            SnapshotKind::Budget => &BUDGET,
            SnapshotKind::Namespace => &NAMESPACE,
            SnapshotKind::Class => &CLASS,
        }
    }

    /// Returns the fields of an object of this kind that impact reads for a snapshot with these device details.
    pub const fn fields_with(self, details: DetailsToStore) -> &'static KeptFields {
        match (self, details) {
            (SnapshotKind::Slice, DetailsToStore { attributes: true, .. }) => &WHOLE_SLICE,
            (SnapshotKind::Slice, DetailsToStore { counters: true, .. }) => &SLICE_WITH_COUNTERS,
            _ => self.fields_without_details(),
        }
    }

    /// Returns the maximum number of keys and values that are kept of one object, which limits the memory
    /// that an object can use.
    pub const fn max_kept_keys_and_values(self) -> usize {
        match self {
            // 128 devices with their taints and nodes; drivers write them.
            SnapshotKind::Slice => 200_000,
            SnapshotKind::Claim
            | SnapshotKind::Pod
            | SnapshotKind::Rule
            | SnapshotKind::Budget
            | SnapshotKind::Class => 20_000,
            SnapshotKind::Namespace => 4_000,
        }
    }
}
