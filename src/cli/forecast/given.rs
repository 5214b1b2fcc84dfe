//! The objects that a forecast applies: read in the order given, checked by the rules of the API server, and turned
//! into what it stores.
//!
//! Each object sees those before it: a claim that is given twice is updated, and a namespace that is given first
//! decides about admin access. What is stored is kept as JSON texts, because an object passes through several documents
//! on the way.
//!
//! Invariant: an object is applied, refused, or named in a note. None disappears.

use std::collections::{BTreeMap, BTreeSet};

use super::stored::{self, StoredName};
use crate::cli::console::Console;
use crate::cli::impact::print_denials;
use crate::cli::outcome::Failure;
use tollgate_api::profile::Profile;
use tollgate_document::doc::{self, Doc, Value};
use tollgate_document::field::{Path, PathAudience};
use tollgate_document::source::list::{self, DocumentObject};
use tollgate_document::source::{Document, InputError, LineIndex, documents};
use tollgate_engine::engine::{Attributes, Diagnostic, Engine, LabelsIfKnown, Operation};
use tollgate_engine::rules::{FindingLevel, RuleSet};
use tollgate_forecast::{Forecast, ObjectKind, PodOrigin, State};
use tollgate_formats::sanitize;

/// The rules of the API server, and one rule of Tollgate: without `admin-access-unchecked`, admin access in a
/// namespace that the state does not contain would be refused.
const API_SERVER_RULES: &str = "upstream,decoding,strict,admin-access-unchecked";

/// The kinds of objects that `tollgate forecast` can apply.
const APPLIED_KINDS: [ObjectKind; 11] = [
    ObjectKind::DeviceTaintRule,
    ObjectKind::ResourceSlice,
    ObjectKind::DeviceClass,
    ObjectKind::ResourceClaimTemplate,
    ObjectKind::ResourceClaim,
    ObjectKind::Node,
    ObjectKind::Namespace,
    ObjectKind::Pod,
    ObjectKind::Deployment,
    ObjectKind::StatefulSet,
    ObjectKind::Job,
];

/// Workloads whose pods are forecast if the object is new. How a change of an existing one rolls out is not
/// simulated.
const WORKLOAD_KINDS: [ObjectKind; 3] = [ObjectKind::Deployment, ObjectKind::StatefulSet, ObjectKind::Job];

/// The documents of the files on the command line, each with the name of its file.
#[derive(Debug)]
pub(super) struct GivenDocuments<'t>(Vec<(&'t str, Document<'t>)>);

/// An object that the API server refuses.
#[derive(Debug)]
pub(super) struct RefusedObject {
    pub(super) file: String,
    pub(super) api_version: String,
    pub(super) kind: String,
    /// Empty for kinds without a namespace.
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) reasons: Vec<Refusal>,
}

/// An object that the forecast applies, for the report.
#[derive(Clone, Copy, Debug)]
pub(super) struct AppliedObject<'a> {
    pub(super) kind: ObjectKind,
    /// Empty for kinds without a namespace.
    pub(super) namespace: &'a str,
    /// `None` if the API server generates it.
    pub(super) name: Option<&'a str>,
    /// The object as the API server stores it, as JSON.
    pub(super) stored: &'a str,
}

/// The reason why the API server would refuse an object.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The rule that refuses it; `None` if Tollgate has no rule for the reason.
    pub(super) rule: Option<&'static str>,
    pub(super) field: String,
    pub(super) message: String,
}

impl Refusal {
    fn from_diagnostic(found: &Diagnostic) -> Refusal {
        let field = found.finding.at.print(PathAudience::User);
        Refusal { rule: Some(found.finding.rule.id), field, message: found.to_string() }
    }

    /// The refusal of an object whose namespace does not exist, in the words of the API server.
    fn namespace_not_found(namespace: &str) -> Refusal {
        let message = format!("namespaces {namespace:?} not found");
        Refusal { rule: None, field: "metadata.namespace".to_owned(), message }
    }
}

/// Namespaces that every cluster has.
const BUILT_IN_NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// The objects that the API server would store, and those that it would refuse.
#[derive(Default, Debug)]
pub(super) struct AdmissionResult {
    /// The objects as the API server would store them, as JSON, in the order given.
    accepted: Vec<String>,
    pub(super) refused: Vec<RefusedObject>,
    /// Objects that a forecast does not apply, and assumptions.
    pub(super) notes: Vec<String>,
    /// Index in `accepted` of the last object of each kind, namespace and name.
    last: BTreeMap<(ObjectKind, String, String), usize>,
    /// Namespaces and names of pods that have only `generateName`: their real names are not known.
    made_up_names: BTreeSet<(String, String)>,
}

impl<'t> GivenDocuments<'t> {
    /// Parses texts, each with its name. A text without objects is an error, because its forecast would look like
    /// one without changes.
    pub(super) fn parse(texts: &'t [(String, String)]) -> Result<GivenDocuments<'t>, Failure> {
        let mut found = Vec::new();
        for (file, text) in texts {
            let lines = LineIndex::from_text(text);
            let before = found.len();
            for document in documents(text) {
                let document = document.map_err(|fault| fault.input_error(file, &lines))?;
                if let Some(error) = document.non_object_or_broken_list_error(file, &lines) {
                    return Err(error.into());
                }
                for item in list::objects(document.doc.root()) {
                    let (api_version, kind) = item.api_version_and_kind();
                    if api_version.is_empty() || kind.is_empty() {
                        let location =
                            document.locate(&lines, &item.path_in_document(Path::ROOT.owned()), false);
                        let what = "expected an object with apiVersion and kind";
                        return Err(Failure::at_location(file, &location, &what));
                    }
                }
                found.push((file.as_str(), document));
            }
            if found.len() == before {
                return Err(InputError::for_whole_file(file, "contains no objects").into());
            }
        }
        Ok(GivenDocuments(found))
    }

    /// The objects, each with the name of its file; those of lists one by one.
    pub(super) fn objects(&self) -> Vec<(&str, DocumentObject<'_>)> {
        let files = self.0.iter().map(|(file, document)| (*file, list::objects(document.doc.root())));
        files.flat_map(|(file, objects)| objects.map(move |item| (file, item))).collect()
    }
}

impl AdmissionResult {
    /// Checks the objects one after the other, each with the name of its file, as if they were applied in that
    /// order.
    pub(super) fn from_objects(
        given: &[(&str, Value<'_>)],
        state: &State<'_>,
        profile: &'static Profile,
        now: &str,
    ) -> AdmissionResult {
        let mut admission = AdmissionResult::default();
        let Ok(rules) = RuleSet::parse(API_SERVER_RULES) else { return admission };
        let engine = Engine::new(vec![profile], rules);
        for object in given {
            admission.admit_object(*object, state, &engine, profile, now);
        }
        admission
    }

    /// Parses the accepted objects.
    pub(super) fn parse_accepted_objects(&self) -> Vec<Doc<'_>> {
        self.accepted.iter().filter_map(|json| doc::parse(json).ok()).collect()
    }

    /// Returns the accepted objects in the order given. An object that is given twice is listed once, at its last
    /// place.
    pub(super) fn latest_version_of_each_accepted_object(&self) -> Vec<AppliedObject<'_>> {
        let mut applied: Vec<(usize, AppliedObject<'_>)> = Vec::new();
        for ((kind, namespace, name), place) in &self.last {
            let is_made_up = self.made_up_names.contains(&(namespace.clone(), name.clone()));
            let name = Some(name.as_str()).filter(|_| !is_made_up);
            let stored = self.accepted.get(*place).map_or("", String::as_str);
            applied.push((*place, AppliedObject { kind: *kind, namespace, name, stored }));
        }
        applied.sort_by_key(|(place, _)| *place);
        applied.into_iter().map(|(_, object)| object).collect()
    }

    /// Removes names from the forecast that were made up for pods with only a `generateName`.
    pub(super) fn clear_made_up_pod_names(&self, forecast: &mut Forecast) {
        for pod in forecast.pods.iter_mut().filter(|pod| pod.origin == PodOrigin::Given) {
            let is_made_up =
                |name: &String| self.made_up_names.contains(&(pod.namespace.clone(), name.clone()));
            if pod.name.as_ref().is_some_and(is_made_up) {
                pod.name = None;
            }
        }
    }

    /// Prints the refused objects to stderr, with the reasons.
    pub(super) fn print_refused(&self, profile: &Profile, console: &mut Console) {
        for refused in &self.refused {
            let by = format!("{}: {}", sanitize::sanitize_as_line(&refused.file), profile.name);
            let messages: Vec<String> = refused.reasons.iter().map(|reason| reason.message.clone()).collect();
            print_denials(console, &by, &refused.name, &messages);
        }
    }

    /// Accepts or refuses an object as the API server would, given the state and the objects accepted before it,
    /// or adds a note why the forecast ignores it.
    fn admit_object(
        &mut self,
        (file, object): (&str, Value<'_>),
        state: &State<'_>,
        engine: &Engine,
        profile: &Profile,
        now: &str,
    ) {
        let (api_version, name) = (object.get("apiVersion").str(), object.get("kind").str());
        let kind = ObjectKind::from_type_meta(api_version, name);
        let form = StoredName::from_object(kind, object, self.accepted.len());
        let stored = kind.and_then(|kind| {
            let last = self.last.get(&(kind, form.namespace.clone(), form.name.clone()));
            let before = last.and_then(|place| self.accepted.get(*place)).cloned();
            before.or_else(|| stored::stored_object_json(state, kind, &form.namespace, &form.name))
        });
        let stored = stored.as_deref().and_then(|json| doc::parse(json).ok());
        let old_object = stored.as_ref().map(Doc::root).filter(|_| kind.is_some_and(stored::is_dra));
        let request = Attributes {
            operation: if old_object.is_some() { Operation::Update } else { Operation::Create },
            old_object,
            ..Attributes::for_create(object, &form.namespace, now)
        };
        let namespace = self.namespace_labels(&form.namespace, state);
        let namespace = namespace.as_deref().and_then(|json| doc::parse(json).ok());
        let labels =
            namespace.as_ref().map_or(LabelsIfKnown::Unknown, |labels| LabelsIfKnown::Known(labels.root()));
        let verdict = engine.validate(&request, labels);
        let denials = verdict.findings().iter().filter(|found| found.level == FindingLevel::Deny);
        let mut reasons: Vec<Refusal> = denials.map(Refusal::from_diagnostic).collect();
        // A state without namespaces does not say which there are.
        let knows_namespaces = !state.objects_of_kind(ObjectKind::Namespace).is_empty();
        if kind.is_some_and(ObjectKind::is_namespaced)
            && knows_namespaces
            && namespace.is_none()
            && !BUILT_IN_NAMESPACES.contains(&form.namespace.as_str())
        {
            reasons.push(Refusal::namespace_not_found(&form.namespace));
        }
        let shown =
            || sanitize::sanitize_as_line(&format!("{file}: {name} {}", form.namespaced_name())).into_owned();
        if !reasons.is_empty() {
            self.refused.push(RefusedObject {
                file: file.to_owned(),
                api_version: api_version.to_owned(),
                kind: name.to_owned(),
                namespace: form.namespace,
                name: form.name,
                reasons,
            });
            return;
        }
        let Some(kind) = kind.filter(|kind| APPLIED_KINDS.contains(kind)) else {
            self.notes.push(format!("{} is not part of a forecast", shown()));
            return;
        };
        if WORKLOAD_KINDS.contains(&kind) && stored.is_some() {
            self.notes.push(format!(
                "{} exists in the cluster; a forecast does not show how its changes roll out",
                shown()
            ));
            return;
        }
        if let Some(finding) =
            verdict.findings().iter().find(|found| found.finding.rule.id == ADMIN_ACCESS_UNCHECKED)
        {
            self.notes.push(format!("{}: {finding}; assuming that it is allowed", shown()));
        }
        let json = form.stored_json(kind, &request, stored.as_ref().map(Doc::root), profile);
        if form.is_made_up {
            self.made_up_names.insert((form.namespace.clone(), form.name.clone()));
        }
        self.last.insert((kind, form.namespace, form.name), self.accepted.len());
        self.accepted.push(json);
    }

    /// The labels of a namespace as JSON; `None` if neither the state nor the given objects contain it.
    fn namespace_labels(&self, name: &str, state: &State<'_>) -> Option<String> {
        let labels = |namespace: Value<'_>| {
            let labels = namespace.get("metadata").get("labels");
            if labels.exists() { labels.to_json() } else { "{}".to_owned() }
        };
        let given = self.last.get(&(ObjectKind::Namespace, String::new(), name.to_owned()));
        if let Some(json) = given.and_then(|place| self.accepted.get(*place)) {
            return doc::parse(json).ok().map(|namespace| labels(namespace.root()));
        }
        state.objects_of_kind(ObjectKind::Namespace).get("", name).map(|namespace| labels(namespace.value))
    }
}

/// The rule that reports that admin access could not be checked.
const ADMIN_ACCESS_UNCHECKED: &str = "admin-access-unchecked";
