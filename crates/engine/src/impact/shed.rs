//! Removes the largest objects of a snapshot that takes too much memory.

use super::cost;
use super::interner::InternedStr;
use super::kinds::SnapshotKind;
use super::snapshot::Snapshot;

/// An object that was removed from a snapshot because the snapshot exceeded its limit of memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemovedObject {
    pub kind: SnapshotKind,
    pub namespace: Box<str>,
    pub name: Box<str>,
    /// Bytes of memory that it took.
    pub bytes: usize,
}

/// Writes the kind and name, such as `ResourceClaim ml/train`.
impl std::fmt::Display for RemovedObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        write!(f, "{} {}{slash}{}", self.kind.name(), self.namespace, self.name)
    }
}

impl Snapshot {
    /// True if the object is stored.
    pub fn has(&self, kind: SnapshotKind, namespace: &str, name: &str) -> bool {
        self.object_bytes(kind, namespace, name) > 0
    }

    /// Returns every object with its kind, the bytes that it counts for, its namespace and its name.
    fn object_sizes(&self) -> Vec<(SnapshotKind, usize, (InternedStr, InternedStr))> {
        let mut sizes = Vec::new();
        for kind in SnapshotKind::ALL {
            for (namespace, name) in self.keys(kind) {
                let bytes = self.object_bytes(kind, &namespace, &name);
                sizes.push((kind, bytes, (namespace, name)));
            }
        }
        sizes
    }

    /// Returns the bytes of memory that are counted for a stored object; 0 if it is not stored.
    fn object_bytes(&self, kind: SnapshotKind, namespace: &str, name: &str) -> usize {
        let found = match kind {
            SnapshotKind::Slice => self.slices.get(name).map(|slice| slice.bytes),
            SnapshotKind::Claim => {
                let entry =
                    self.claims.find(namespace, name).and_then(|slot| self.claims.get_even_if_free(slot));
                entry.and_then(|entry| entry.record.as_ref()).map(|claim| claim.bytes)
            }
            SnapshotKind::Pod => {
                let entry = self.pods.find(namespace, name).and_then(|slot| self.pods.get_even_if_free(slot));
                entry.and_then(Option::as_ref).map(|pod| pod.bytes)
            }
            SnapshotKind::Rule => self.rules.get(name).map(|rule| cost::rule_bytes(rule)),
            SnapshotKind::Budget => {
                self.budgets.get(namespace).and_then(|budgets| budgets.get(name)).map(|budget| budget.bytes)
            }
            SnapshotKind::Namespace => {
                self.namespaces.get(name).map(|labels| labels.memory_bytes_without_source())
            }
            SnapshotKind::Class => self.classes.get(name).map(|class| class.bytes),
        };
        found.unwrap_or_default()
    }

    /// Returns about how many bytes of memory the snapshot takes.
    pub fn estimated_bytes(&self) -> usize {
        self.bytes
    }

    /// Does nothing if the snapshot takes at most `limit` bytes. Otherwise removes the largest objects until it takes
    /// clearly less, and returns them; slices, classes and rules, which only drivers and administrators write, are
    /// removed last.
    pub fn shed_largest_until_below_byte_limit(&mut self, limit: usize) -> Vec<RemovedObject> {
        let mut removed = Vec::new();
        if self.bytes <= limit {
            return removed;
        }
        let mut objects = self.object_sizes();
        let rank = |kind: SnapshotKind| {
            matches!(kind, SnapshotKind::Slice | SnapshotKind::Rule | SnapshotKind::Class)
        };
        objects.sort_by(|(one_kind, one, _), (other_kind, other, _)| {
            (rank(*one_kind), other).cmp(&(rank(*other_kind), one))
        });
        for (kind, bytes, (namespace, name)) in objects {
            if self.bytes <= limit - limit / 16 {
                break;
            }
            self.remove(kind, &namespace, &name);
            removed.push(RemovedObject {
                kind,
                namespace: (&*namespace).into(),
                name: (&*name).into(),
                bytes,
            });
        }
        self.names.drop_unused();
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::{Snapshot, SnapshotKind};
    use tollgate_document::doc;

    #[test]
    fn an_object_is_stored_until_it_is_removed() {
        let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"a","name":"p","uid":"u"},"spec":{"nodeName":"n","resourceClaims":[{"name":"c","resourceClaimName":"c"}]}}"#;
        let mut snapshot = Snapshot::new();
        snapshot.apply(doc::parse(pod).unwrap().root()).unwrap();
        assert!(snapshot.has(SnapshotKind::Pod, "a", "p"));
        assert!(!snapshot.has(SnapshotKind::Pod, "a", "q") && !snapshot.has(SnapshotKind::Pod, "b", "p"));
        snapshot.remove(SnapshotKind::Pod, "a", "p");
        assert!(!snapshot.has(SnapshotKind::Pod, "a", "p"));
    }
}
