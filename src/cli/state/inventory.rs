//! What a dump contains, and what is missing from it: an answer about half a cluster looks like "nothing happens".
//!
//! A `List` of kubectl does not say which kinds it was asked for, so a kind without objects may be one that the
//! cluster does not have or one that was not dumped. A typed list (`ResourceClaimList`) says it, even if it is empty.

use crate::doc::{Kind as NodeKind, Value};
use crate::impact::SnapshotKind;
use crate::source::list;

/// Without objects of these kinds nothing is evicted.
const NEEDED: [(SnapshotKind, &str); 3] = [
    (SnapshotKind::Slice, "ResourceSlices"),
    (SnapshotKind::Claim, "ResourceClaims"),
    (SnapshotKind::Pod, "Pods"),
];

/// What was found in a dump so far.
#[derive(Debug, Default)]
pub(in crate::cli) struct Inventory {
    seen: Vec<SnapshotKind>,
    holes: Vec<String>,
}

impl Inventory {
    /// Looks at one document of a dump.
    pub(in crate::cli) fn add(&mut self, file: &str, root: Value<'_>) {
        for partial in list::lists(root) {
            let (version, kind) = (partial.get("apiVersion").str(), partial.get("kind").str());
            if let Some(kind) = kind.strip_suffix("List").and_then(|kind| SnapshotKind::of(version, kind)) {
                self.see(kind);
            }
            let metadata = partial.get("metadata");
            let remaining = metadata.get("remainingItemCount");
            if !metadata.get("continue").str().is_empty() || remaining.int().is_some_and(|count| count != 0) {
                self.holes.push(format!("{file} contains only the first part of a {kind}"));
            }
        }
        for item in list::items(root).filter(|item| item.value().kind() == NodeKind::Object) {
            let object = item.value();
            if let Some(kind) = SnapshotKind::of(object.get("apiVersion").str(), object.get("kind").str()) {
                self.see(kind);
            }
        }
    }

    /// A file without a document is what a command that failed leaves behind.
    pub(in crate::cli) fn add_empty(&mut self, file: &str) {
        self.holes.push(format!("{file} is empty"));
    }

    fn see(&mut self, kind: SnapshotKind) {
        if !self.seen.contains(&kind) {
            self.seen.push(kind);
        }
    }

    /// What is missing, in words; `assume_complete` if a kind without objects is one that the cluster has none of.
    pub(in crate::cli) fn holes(self, assume_complete: bool) -> Vec<String> {
        let missing: Vec<&str> = NEEDED
            .into_iter()
            .filter(|(kind, _)| !assume_complete && !self.seen.contains(kind))
            .map(|(_, name)| name)
            .collect();
        let mut holes = self.holes;
        if !missing.is_empty() {
            holes.push(format!("the dump contains no {}", missing.join(", no ")));
        }
        holes
    }
}
