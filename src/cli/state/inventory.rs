//! Which kinds a dump contains, and which are missing: the impact on an incomplete dump would look like "no impact".
//!
//! A `List` of kubectl does not say which kinds were requested, so a kind without objects may have none in the cluster
//! or may not have been dumped. A typed list (`ResourceClaimList`) says so, even if it is empty.

use crate::doc::{Kind as NodeKind, Value};
use crate::impact::SnapshotKind;
use crate::source::list;

/// Without objects of these kinds nothing is evicted.
const REQUIRED_KINDS: [(SnapshotKind, &str); 3] = [
    (SnapshotKind::Slice, "ResourceSlices"),
    (SnapshotKind::Claim, "ResourceClaims"),
    (SnapshotKind::Pod, "Pods"),
];

/// The contents of a dump.
#[derive(Debug, Default)]
pub(in crate::cli) struct Inventory {
    kinds: Vec<SnapshotKind>,
    omissions: Vec<String>,
}

impl Inventory {
    /// Adds one document of a dump.
    pub(in crate::cli) fn add(&mut self, file: &str, root: Value<'_>) {
        for partial in list::lists(root) {
            let (version, kind) = (partial.get("apiVersion").str(), partial.get("kind").str());
            if let Some(kind) = kind.strip_suffix("List").and_then(|kind| SnapshotKind::of(version, kind)) {
                self.add_kind(kind);
            }
            let metadata = partial.get("metadata");
            let remaining = metadata.get("remainingItemCount");
            if !metadata.get("continue").str().is_empty() || remaining.int().is_some_and(|count| count != 0) {
                self.omissions.push(format!("{file} contains only the first part of a {kind}"));
            }
        }
        for item in list::items(root).filter(|item| item.value().kind() == NodeKind::Object) {
            let object = item.value();
            if let Some(kind) = SnapshotKind::of(object.get("apiVersion").str(), object.get("kind").str()) {
                self.add_kind(kind);
            }
        }
    }

    /// A failed command leaves an empty file behind.
    pub(in crate::cli) fn add_empty(&mut self, file: &str) {
        self.omissions.push(format!("{file} is empty"));
    }

    fn add_kind(&mut self, kind: SnapshotKind) {
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
    }

    /// What is missing, as messages; with `assume_complete` a kind without objects is not missing.
    pub(in crate::cli) fn omissions(self, assume_complete: bool) -> Vec<String> {
        let missing: Vec<&str> = REQUIRED_KINDS
            .into_iter()
            .filter(|(kind, _)| !assume_complete && !self.kinds.contains(kind))
            .map(|(_, name)| name)
            .collect();
        let mut omissions = self.omissions;
        if !missing.is_empty() {
            omissions.push(format!("the dump contains no {}", missing.join(", no ")));
        }
        omissions
    }
}
