//! The contents of a snapshot by kind: the number of objects and their names.

use std::collections::BTreeMap;

use super::interner::InternedStr;
use super::kinds::SnapshotKind;
use super::snapshot::Snapshot;

impl Snapshot {
    /// Removes every stored object of a kind for which `keep(namespace, name)` is false. For a watch that has listed
    /// all objects anew.
    pub fn retain(&mut self, kind: SnapshotKind, mut keep: impl FnMut(&str, &str) -> bool) {
        let gone: Vec<(InternedStr, InternedStr)> =
            self.keys(kind).into_iter().filter(|(namespace, name)| !keep(namespace, name)).collect();
        for (namespace, name) in gone {
            self.remove(kind, &namespace, &name);
        }
    }

    /// Returns the number of stored objects of a kind. Pods without claims are not stored.
    pub fn count(&self, kind: SnapshotKind) -> usize {
        match kind {
            SnapshotKind::Slice => self.slices.len(),
            SnapshotKind::Claim => {
                self.claims.iter().filter(|(_, _, _, entry)| entry.record.is_some()).count()
            }
            SnapshotKind::Pod => self.pods.iter().filter(|(_, _, _, pod)| pod.is_some()).count(),
            SnapshotKind::Rule => self.rules.len(),
            SnapshotKind::Budget => self.budgets.values().map(BTreeMap::len).sum(),
            SnapshotKind::Namespace => self.namespaces.len(),
            SnapshotKind::Class => self.classes.len(),
        }
    }

    /// Returns namespace and name of every object of a kind; the namespace is empty for kinds that have none.
    pub(super) fn keys(&self, kind: SnapshotKind) -> Vec<(InternedStr, InternedStr)> {
        let none = InternedStr::from("");
        let pair = |namespace: &InternedStr, name: &InternedStr| {
            (InternedStr::clone(namespace), InternedStr::clone(name))
        };
        let alone = |name: &InternedStr| pair(&none, name);
        match kind {
            SnapshotKind::Slice => {
                let mut keys: Vec<(InternedStr, InternedStr)> = self.slices.keys().map(alone).collect();
                keys.sort();
                keys
            }
            SnapshotKind::Claim => {
                let known = self.claims.iter().filter(|(_, _, _, entry)| entry.record.is_some());
                known.map(|(namespace, name, _, _)| pair(namespace, name)).collect()
            }
            SnapshotKind::Pod => {
                self.pods.iter().map(|(namespace, name, _, _)| pair(namespace, name)).collect()
            }
            SnapshotKind::Rule => self.rules.keys().map(alone).collect(),
            SnapshotKind::Budget => {
                let each = self
                    .budgets
                    .iter()
                    .flat_map(|(namespace, budgets)| budgets.keys().map(|name| pair(namespace, name)));
                each.collect()
            }
            SnapshotKind::Namespace => self.namespaces.keys().map(alone).collect(),
            SnapshotKind::Class => self.classes.keys().map(alone).collect(),
        }
    }
}
