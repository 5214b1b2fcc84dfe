//! The objects of a cluster, by kind.
//!
//! Objects are kept unchanged and unchecked. Objects of unknown kinds are ignored, and a later object with the same
//! kind, namespace and name replaces the earlier one.

#![allow(clippy::indexing_slicing, reason = "every kind has its place in the list")]

use foldhash::fast::RandomState;
use std::collections::HashMap;
use tollgate_api::profile::Version;
use tollgate_document::doc::Value;

tollgate_formats::named_enum! {
    /// The kinds of objects that a forecast reads, each with its name in the API.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum ObjectKind {
        Namespace = "Namespace",
        Node = "Node",
        Pod = "Pod",
        DeviceClass = "DeviceClass",
        ResourceSlice = "ResourceSlice",
        DeviceTaintRule = "DeviceTaintRule",
        ResourceClaimTemplate = "ResourceClaimTemplate",
        ResourceClaim = "ResourceClaim",
        PodDisruptionBudget = "PodDisruptionBudget",
        ReplicaSet = "ReplicaSet",
        Deployment = "Deployment",
        StatefulSet = "StatefulSet",
        DaemonSet = "DaemonSet",
        Job = "Job",
        CronJob = "CronJob",
        JobSet = "JobSet",
        LeaderWorkerSet = "LeaderWorkerSet",
        /// `PodGroup` of the Kubernetes scheduler.
        PodGroup = "PodGroup",
        /// `PodGroup` of the coscheduling plugin, which is a different API.
        CoschedulingPodGroup = "PodGroup",
    }
}

impl ObjectKind {
    /// The plural, such as `DeviceClasses`.
    pub fn plural(self) -> String {
        let name = self.name();
        format!("{name}{}", if name.ends_with('s') { "es" } else { "s" })
    }

    /// The API group; empty for the core group.
    fn group(self) -> &'static str {
        match self {
            Self::Namespace | Self::Node | Self::Pod => "",
            Self::DeviceClass
            | Self::ResourceSlice
            | Self::DeviceTaintRule
            | Self::ResourceClaimTemplate
            | Self::ResourceClaim => "resource.k8s.io",
            Self::PodDisruptionBudget => "policy",
            Self::ReplicaSet | Self::Deployment | Self::StatefulSet | Self::DaemonSet => "apps",
            Self::Job | Self::CronJob => "batch",
            Self::JobSet => "jobset.x-k8s.io",
            Self::LeaderWorkerSet => "leaderworkerset.x-k8s.io",
            Self::PodGroup => "scheduling.k8s.io",
            Self::CoschedulingPodGroup => "scheduling.x-k8s.io",
        }
    }

    /// False for cluster-scoped kinds.
    pub fn is_namespaced(self) -> bool {
        !matches!(
            self,
            ObjectKind::Namespace
                | ObjectKind::Node
                | ObjectKind::DeviceClass
                | ObjectKind::ResourceSlice
                | ObjectKind::DeviceTaintRule
        )
    }

    /// True for the kinds that say which workload a pod belongs to, and which pods belong together. Without their
    /// objects, the outcome of all other pods is known.
    pub fn is_workload(self) -> bool {
        !matches!(self.group(), "" | "resource.k8s.io" | "policy")
    }

    /// The kind for this `apiVersion` and `kind`; `None` if a forecast does not read it.
    pub fn from_type_meta(api_version: &str, kind: &str) -> Option<ObjectKind> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        ObjectKind::ALL.into_iter().find(|candidate| (candidate.group(), candidate.name()) == (group, kind))
    }
}

/// An object of the state, with the API version that it was read in.
#[derive(Clone, Copy, Debug)]
pub struct StoredObject<'d> {
    /// The version in `resource.k8s.io`; v1 for other groups.
    pub version: Version,
    pub value: Value<'d>,
}

impl<'d> StoredObject<'d> {
    pub fn namespace(self) -> &'d str {
        self.value.get("metadata").get("namespace").str()
    }

    pub fn name(self) -> &'d str {
        self.value.get("metadata").get("name").str()
    }

    pub fn uid(self) -> &'d str {
        self.value.get("metadata").get("uid").str()
    }
}

/// The objects of one kind, in the order in which they were first added.
#[derive(Clone, Default, Debug)]
pub struct Objects<'d> {
    objects: Vec<StoredObject<'d>>,
    by_name: HashMap<(&'d str, &'d str), usize, RandomState>,
}

impl<'d> Objects<'d> {
    /// Adds an object, or replaces the one with the same namespace and name.
    pub fn add(&mut self, object: StoredObject<'d>) {
        let place = *self.by_name.entry((object.namespace(), object.name())).or_insert(self.objects.len());
        match self.objects.get_mut(place) {
            Some(stored) => *stored = object,
            None => self.objects.push(object),
        }
    }

    /// Removes the object with this namespace and name, if present.
    pub fn remove(&mut self, namespace: &str, name: &str) {
        if self.get(namespace, name).is_some() {
            self.retain(|object| (object.namespace(), object.name()) != (namespace, name));
        }
    }

    /// Removes the objects that are not kept.
    fn retain(&mut self, is_kept: impl Fn(&StoredObject<'d>) -> bool) {
        let objects = std::mem::take(&mut self.objects);
        self.by_name.clear();
        objects.into_iter().filter(is_kept).for_each(|object| self.add(object));
    }

    /// Looks up an object by namespace (empty for cluster-scoped kinds) and name.
    pub fn get(&self, namespace: &str, name: &str) -> Option<StoredObject<'d>> {
        self.by_name.get(&(namespace, name)).and_then(|&place| self.objects.get(place)).copied()
    }

    /// Iterates over all objects.
    pub fn iter(&self) -> impl Iterator<Item = StoredObject<'d>> {
        self.objects.iter().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

/// The objects of a cluster, by kind.
#[derive(Clone, Default, Debug)]
pub struct State<'d> {
    kinds: [Objects<'d>; ObjectKind::ALL.len()],
    listed: Vec<ObjectKind>,
    /// Kinds that could not be read.
    unread: Vec<ObjectKind>,
}

impl<'d> State<'d> {
    /// Adds an object. Returns its kind, or `None` if a forecast does not read this kind.
    pub fn add(&mut self, value: Value<'d>) -> Option<ObjectKind> {
        self.add_with_type(value.get("apiVersion").str(), value.get("kind").str(), value)
    }

    /// Adds an object with the given type. Items of a List do not repeat their type.
    pub fn add_with_type(&mut self, api_version: &str, kind: &str, value: Value<'d>) -> Option<ObjectKind> {
        let kind = ObjectKind::from_type_meta(api_version, kind)?;
        let object = StoredObject { version: parse_dra_version(api_version), value };
        self.objects_of_kind_mut(kind).add(object);
        Some(kind)
    }

    /// The objects of a kind.
    pub fn objects_of_kind(&self, kind: ObjectKind) -> &Objects<'d> {
        &self.kinds[kind as usize]
    }

    /// Records that all objects of a kind were listed, even if there are none.
    pub fn mark_listed(&mut self, kind: ObjectKind) {
        self.listed.push(kind);
    }

    /// Records that objects of a kind may exist that could not be read.
    pub fn mark_unread(&mut self, kind: ObjectKind) {
        self.unread.push(kind);
    }

    /// True if objects of this kind may exist that could not be read.
    pub(crate) fn is_unread(&self, kind: ObjectKind) -> bool {
        self.unread.contains(&kind)
    }

    /// True if all objects of a kind were listed.
    pub fn is_listed(&self, kind: ObjectKind) -> bool {
        self.listed.contains(&kind)
    }

    /// True if it is known which kinds were listed completely, so that a kind without objects has none.
    pub(crate) fn knows_listed_kinds(&self) -> bool {
        !self.listed.is_empty()
    }

    /// Removes an object, if present.
    pub fn remove(&mut self, kind: ObjectKind, namespace: &str, name: &str) {
        self.objects_of_kind_mut(kind).remove(namespace, name);
    }

    fn objects_of_kind_mut(&mut self, kind: ObjectKind) -> &mut Objects<'d> {
        &mut self.kinds[kind as usize]
    }
}

/// The version in `resource.k8s.io` of an object; v1 for other groups.
pub(crate) fn dra_version_of(value: Value<'_>) -> Version {
    parse_dra_version(value.get("apiVersion").str())
}

/// The version in an `apiVersion` of `resource.k8s.io`; v1 for other groups.
fn parse_dra_version(api_version: &str) -> Version {
    let version = api_version.strip_prefix("resource.k8s.io/");
    version.and_then(Version::parse).unwrap_or(Version::V1)
}

#[cfg(test)]
mod tests {
    use super::{ObjectKind, State};
    use tollgate_document::doc;

    /// Items of a List do not repeat their type, which determines how a slice is read.
    #[test]
    fn an_item_of_a_list_has_the_version_of_its_list() {
        let slice = doc::parse(r#"{"metadata":{"name":"s"}}"#).expect("JSON");
        for (version, is_flat) in [("v1beta1", true), ("v1", false)] {
            let mut state = State::default();
            state.add_with_type(&format!("resource.k8s.io/{version}"), "ResourceSlice", slice.root());
            let stored = state.objects_of_kind(ObjectKind::ResourceSlice).get("", "s").expect("it was added");
            assert_eq!(stored.version.is_v1alpha3_or_v1beta1(), is_flat, "{version}");
        }
    }
}
