//! The objects of a cluster with all fields that `devices` and `forecast` read; `impact` needs only a snapshot.
//!
//! A [`State`] borrows its objects from parsed documents, which borrow from the texts of the files, or from copies of
//! what a running API server listed. So objects of a dump are not copied, and the items of a typed list need not repeat
//! their type.
//!
//! Invariant: an object that cannot be decoded is an error with its position, never an object without fields.

use std::sync::Arc;

use super::{DumpInventory, KUBECTL_FORECAST_DUMP};
use crate::cli::outcome::Failure;
#[cfg(feature = "cluster")]
use crate::cluster::WatchedObject;
use tollgate_api::profile::{ApiKind, Version};
#[cfg(feature = "cluster")]
use tollgate_document::doc::{Builder, Syntax};
use tollgate_document::doc::{Doc, NameSet, Value, ValueKind};
use tollgate_document::field::{FieldPath, Path};
use tollgate_document::source::list::{self, DocumentObject};
use tollgate_document::source::{Document, LineIndex, documents};
#[cfg(feature = "ui")]
use tollgate_engine::impact::{DetailsToStore, Snapshot};
use tollgate_engine::impact::{UnreadableObject, check_schema_without, unreadable_object};
use tollgate_forecast::{ObjectKind, State};

/// Owns the documents of a dump, from which [`StateObjects::state`] borrows.
#[derive(Debug, Default)]
pub(in crate::cli) struct StateObjects<'t> {
    documents: Vec<Document<'t>>,
    /// The kinds and the API server that the dump records.
    pub(in crate::cli) inventory: DumpInventory,
}

/// Owns copies of the objects of a running cluster, or of a dump whose texts are gone. Threads can share them.
#[derive(Debug, Default)]
pub(in crate::cli) struct OwnedObjects {
    copies: Vec<OwnedObject>,
    /// The kinds of which all objects are known, even if there are none.
    listed: Vec<ObjectKind>,
    /// The kinds that could not be read.
    unread: Vec<ObjectKind>,
}

/// An object with the apiVersion that it was read in. It outlives the text that it was parsed from.
#[derive(Clone, Debug)]
pub(in crate::cli) struct OwnedObject {
    pub(in crate::cli) api_version: Box<str>,
    pub(in crate::cli) kind: &'static str,
    pub(in crate::cli) object: Arc<Doc<'static>>,
}

impl<'t> StateObjects<'t> {
    /// Parses the texts of `--state`, each with its name, and checks every object that a forecast reads.
    pub(in crate::cli) fn parse(texts: &'t [(String, String)]) -> Result<StateObjects<'t>, Failure> {
        let mut parsed = StateObjects::default();
        for (file, text) in texts {
            parsed.add_text(file, text)?;
        }
        if parsed.inventory.object_kinds.is_empty() {
            let names: Vec<&str> = texts.iter().map(|(name, _)| name.as_str()).collect();
            let message = format!(
                "{}: contains no cluster objects; create a dump with `tollgate snapshot` or `{KUBECTL_FORECAST_DUMP}`",
                names.join(", ")
            );
            return Err(Failure::Input(message));
        }
        Ok(parsed)
    }

    fn add_text(&mut self, file: &str, text: &'t str) -> Result<(), Failure> {
        let lines = LineIndex::from_text(text);
        self.inventory.add_header(text);
        let before = self.documents.len();
        for document in documents(text).with_max_size(usize::MAX) {
            let mut document = document.map_err(|fault| fault.input_error(file, &lines))?;
            document.doc.shrink();
            self.inventory.add_typed_and_truncated_lists(file, document.doc.root());
            for item in list::objects(document.doc.root()) {
                let checked = check_and_get_kind(&item);
                let found = checked.map_err(|(at, what)| {
                    Failure::at_location(
                        file,
                        &document.locate(&lines, &item.path_in_document(at), false),
                        &what,
                    )
                })?;
                if let Some(kind) = found {
                    self.inventory.add_object_kind(kind);
                }
            }
            self.documents.push(document);
        }
        if self.documents.len() == before {
            self.inventory.add_empty_file(file);
        }
        Ok(())
    }

    /// Returns the objects by kind, as forecasts read them.
    pub(in crate::cli) fn state(&self) -> State<'_> {
        let mut state = State::default();
        for document in &self.documents {
            for item in list::objects(document.doc.root()) {
                let (api_version, kind) = item.api_version_and_kind();
                state.add_with_type(api_version, kind, item.value_as_written());
            }
        }
        self.inventory.listed_kinds.iter().for_each(|kind| state.mark_listed(*kind));
        self.inventory.unread_workload_kinds.iter().for_each(|(kind, _)| state.mark_unread(*kind));
        state
    }
}

impl OwnedObjects {
    /// Returns the objects by kind, as forecasts read them.
    pub(in crate::cli) fn state(&self) -> State<'_> {
        let mut state = State::default();
        for copy in &self.copies {
            state.add_with_type(&copy.api_version, copy.kind, copy.object.root());
        }
        self.listed.iter().for_each(|kind| state.mark_listed(*kind));
        self.unread.iter().for_each(|kind| state.mark_unread(*kind));
        state
    }
}

#[cfg(feature = "cluster")]
impl OwnedObjects {
    /// True if nothing was added yet.
    pub(in crate::cli) fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    /// Adds a copy of an object that the API server listed.
    pub(in crate::cli) fn add_copy(
        &mut self,
        api_version: &str,
        kind: &'static str,
        object: Value<'_>,
    ) -> Result<(), UnreadableObject> {
        check_decodes_as(api_version, kind, object)?;
        self.copies.push(OwnedObject::from_value(api_version, kind, object));
        Ok(())
    }

    /// Records that objects of a kind could not be read.
    pub(in crate::cli) fn mark_unread(&mut self, kind: ObjectKind) {
        self.unread.push(kind);
    }

    /// Shares the objects that watches keep; `listed` are the kinds that they could list, `unread` those that the user
    /// may not list.
    #[cfg(feature = "ui")]
    pub(in crate::cli) fn of_watch(
        watched: &[Arc<WatchedObject>],
        listed: Vec<ObjectKind>,
        unread: Vec<ObjectKind>,
    ) -> OwnedObjects {
        let copies = watched.iter().map(|object| OwnedObject::from(&**object)).collect();
        OwnedObjects { copies, listed, unread }
    }

    /// Returns a snapshot: the data of the objects from which impact is computed.
    #[cfg(feature = "ui")]
    pub(in crate::cli) fn snapshot(&self) -> Result<Snapshot, UnreadableObject> {
        let mut snapshot = Snapshot::with_details(DetailsToStore { attributes: true, counters: true });
        for copy in &self.copies {
            snapshot.apply_as_type(&copy.api_version, copy.kind, copy.object.root())?;
        }
        Ok(snapshot)
    }
}

#[cfg(feature = "ui")]
impl StateObjects<'_> {
    /// Returns copies of the objects, which outlive the texts.
    pub(in crate::cli) fn into_owned(self) -> OwnedObjects {
        let mut copies = Vec::new();
        for document in &self.documents {
            for item in list::objects(document.doc.root()) {
                let (api_version, kind) = item.api_version_and_kind();
                if let Some(kind) = ObjectKind::from_type_meta(api_version, kind) {
                    copies.push(OwnedObject::from_value(api_version, kind.name(), item.value_as_written()));
                }
            }
        }
        let unread = self.inventory.unread_workload_kinds.into_iter().map(|(kind, _)| kind).collect();
        OwnedObjects { copies, listed: self.inventory.listed_kinds, unread }
    }
}

#[cfg(feature = "cluster")]
impl OwnedObject {
    pub(in crate::cli) fn from_value(
        api_version: &str,
        kind: &'static str,
        object: Value<'_>,
    ) -> OwnedObject {
        let mut copy = Builder::with_exact_capacity("", Syntax::Json, object.node_count());
        copy.copy(object);
        OwnedObject { api_version: api_version.into(), kind, object: Arc::new(copy.finish()) }
    }
}

#[cfg(feature = "cluster")]
impl From<&WatchedObject> for OwnedObject {
    fn from(watched: &WatchedObject) -> OwnedObject {
        let (api_version, object) = (watched.api_version.clone(), watched.object.clone());
        OwnedObject { api_version, kind: watched.kind.kind, object }
    }
}

/// Checks an object of a dump and returns its kind; `None` if a forecast does not read it. An error is the path
/// in the object and the message.
fn check_and_get_kind(item: &DocumentObject<'_>) -> Result<Option<ObjectKind>, (FieldPath, String)> {
    let object = item.value_as_written();
    if object.kind() != ValueKind::Object {
        let what = "expected an object; to pass several objects, use a List and put them in `items`";
        return Err((Path::ROOT.owned(), what.to_owned()));
    }
    let (api_version, kind) = item.api_version_and_kind();
    check_decodes_as(api_version, kind, object).map_err(|error| (error.at, error.message))
}

/// Fields that no forecast reads.
static FIELDS_NOT_DECODED: NameSet = NameSet::from_texts(&["annotations", "config", "managedFields"]);

/// Checks that an object decodes as that type, and has a name and, if its kind requires it, a namespace.
fn check_decodes_as(
    api_version: &str,
    kind: &str,
    object: Value<'_>,
) -> Result<Option<ObjectKind>, UnreadableObject> {
    let Some(known) = ObjectKind::from_type_meta(api_version, kind) else { return Ok(None) };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let version = match (group, Version::parse(version)) {
        // Before v1alpha3, the objects of these names were those of classic DRA, which have no devices.
        ("resource.k8s.io", _) if matches!(version, "v1alpha1" | "v1alpha2") => return Ok(None),
        ("resource.k8s.io", None) => {
            let detail = format!("{api_version} is not supported");
            return Err(unreadable_object(kind, object, Path::ROOT.field("apiVersion").owned(), &detail));
        }
        ("resource.k8s.io", Some(version)) => version,
        _ => Version::V1,
    };
    if let Some(kind) = ApiKind::from_group_and_name(group, kind) {
        check_schema_without(&FIELDS_NOT_DECODED, kind, version, object)?;
    }
    check_name_and_namespace(known, object)?;
    Ok(Some(known))
}

/// Checks that an object has a name, and a namespace if its kind has one.
fn check_name_and_namespace(kind: ObjectKind, object: Value<'_>) -> Result<(), UnreadableObject> {
    let metadata = object.get("metadata");
    let at = Path::ROOT.field("metadata");
    if !matches!(metadata.kind(), ValueKind::Object | ValueKind::Null) {
        return Err(unreadable_object(kind.name(), object, at.owned(), "is not an object"));
    }
    let needed = ["name", "namespace"].into_iter().take(if kind.is_namespaced() { 2 } else { 1 });
    for field in needed {
        let detail = match metadata.get(field).kind() {
            ValueKind::String if !metadata.get(field).str().is_empty() => continue,
            ValueKind::String | ValueKind::Null => "is missing; every object in a cluster has this field",
            _ => "is not a string",
        };
        return Err(unreadable_object(kind.name(), object, at.field(field).owned(), detail));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::StateObjects;
    use tollgate_forecast::ObjectKind;

    fn texts(text: &str) -> [(String, String); 1] {
        [("dump".to_owned(), text.to_owned())]
    }

    #[test]
    fn items_of_typed_lists_have_the_type_of_their_list() {
        let texts = texts(
            "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: p, namespace: a}\n---\n\
             apiVersion: resource.k8s.io/v1beta1\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: d, pool: {}}\n\
             ---\napiVersion: v1\nkind: Secret\nmetadata: 5\n",
        );
        let objects = StateObjects::parse(&texts).expect("a state");
        let state = objects.state();
        assert!(state.objects_of_kind(ObjectKind::Pod).get("a", "p").is_some());
        let slice = state.objects_of_kind(ObjectKind::ResourceSlice).get("", "s").expect("a slice");
        assert!(slice.version.is_v1alpha3_or_v1beta1());
        assert_eq!(
            objects.inventory.missing_object_kinds_message(&[
                ObjectKind::Pod,
                ObjectKind::DeviceClass,
                ObjectKind::Node
            ]),
            Some("the dump contains no DeviceClasses or Nodes".to_owned())
        );
    }

    #[test]
    fn what_cannot_be_read_is_an_error_with_its_position() {
        let missing = "is missing; every object in a cluster has this field";
        for (text, expected) in [
            ("kind: Secret\napiVersion: v1\n", "dump: contains no cluster objects".to_owned()),
            (
                "apiVersion: v1\nkind: NodeList\nitems:\n- metadata: {labels: {}}\n",
                format!("dump:4:3: Node : metadata.name: {missing}"),
            ),
            (
                "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n",
                format!("dump:3:1: Pod p: metadata.namespace: {missing}"),
            ),
            (
                "apiVersion: resource.k8s.io/v2\nkind: ResourceSlice\nmetadata: {name: s}\n",
                "dump:1:13: ResourceSlice s: apiVersion: resource.k8s.io/v2 is not supported".to_owned(),
            ),
            (
                "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {devices: {}}\n",
                "dump:4:8: ResourceSlice s: spec.devices: ".to_owned(),
            ),
            ("- a\n- b\n", "dump:1:1: expected an object; ".to_owned()),
        ] {
            let texts = texts(text);
            let message = StateObjects::parse(&texts).expect_err(text).message();
            assert!(message.starts_with(&expected), "{message}");
        }
    }
}
