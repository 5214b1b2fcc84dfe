//! The objects of a dump: read twice, once for namespaces and the state that policies need, once to be checked.

use std::sync::Arc;

use super::AuditSettings;
use super::judge::check_and_report;
use super::reporter::AuditReporter;
use crate::cli::console::Console;
use crate::cli::outcome::Failure;
use crate::cli::state::{self, DumpInventory, KUBECTL_DUMP, RecordedServer};
use crate::report::DocumentResult;
use tollgate_api::profile::{LiveServer, Profile};
use tollgate_document::field::Path;
use tollgate_document::source::{InputError, LineIndex, documents, list};
use tollgate_engine::engine::{
    LoadedNamespaces, NamespaceLabelLookup as _, TypeClassification, classify_type,
};
use tollgate_engine::impact::{DetailsToStore, Snapshot};
use tollgate_forecast::ObjectKind;

/// Reads release and API server of the dumped cluster from the comments at the beginning of the files.
pub(in crate::cli) fn read_dump_header_comments(texts: &[(String, String)]) -> DumpInventory {
    let mut inventory = DumpInventory::default();
    for (_, text) in texts {
        inventory.add_header(text);
    }
    inventory
}

/// Checks the objects of a dump and reports them.
pub(super) fn audit_dump(
    texts: &[(String, String)],
    mut run: AuditSettings<'_>,
    reporter: &mut AuditReporter,
    console: &mut Console,
) -> Result<(), Failure> {
    if run.needs_state_for_taint_rule_impact() {
        let (snapshot, inventory) = state::parse_snapshot(texts, DetailsToStore::default())?;
        let omissions = inventory.impact_omissions(false).messages();
        for omission in &omissions {
            console.error(omission);
        }
        reporter.incomplete.extend(omissions);
        let snapshot = Arc::new(snapshot);
        reporter.deadlines.add_forgotten_rules(&snapshot, &run.now);
        run.engine = run.engine.with_snapshot(snapshot);
    } else if run.namespace.is_none() && texts.iter().any(|(_, text)| text.contains("DeviceTaintRule")) {
        reporter.deadlines.add_forgotten_rules(&read_devices_and_taint_rules(texts), &run.now);
    }
    let namespaces = read_namespaces(texts);
    let (mut judged, mut included, mut unreadable) = (0, 0, 0);
    for (file, text) in texts {
        let recorded = RecordedServer::find(text);
        let is_snapshot = recorded.is_some();
        if recorded.is_some_and(|server| server.omits_parameters)
            && ["parameters:", "\"parameters\":"].iter().any(|key| text.contains(key))
        {
            console.note(&format!(
                "{file}: the snapshot omits the content of opaque parameters, so their size is not checked, and \
                 ParameterPolicies are checked against their apiVersion and kind only; to check them, create the snapshot \
                 with --with-parameters"
            ));
        }
        let is_audited: fn(&str, &str) -> bool = if is_snapshot {
            |api_version, list| {
                !list.strip_suffix("List").is_some_and(|kind| is_only_for_forecasts(api_version, kind))
            }
        } else {
            |_, _| true
        };
        let lines = LineIndex::from_text(text);
        for document in documents(text).with_max_size(usize::MAX) {
            let document = match document {
                Ok(document) => document,
                Err(fault) => {
                    unreadable += 1;
                    let error = fault.input_error(file, &lines);
                    report_unreadable(&error, text, fault.index, reporter, console);
                    continue;
                }
            };
            if let Some(error) = document.non_object_or_broken_list_error(file, &lines) {
                unreadable += 1;
                report_unreadable(&error, text, document.index, reporter, console);
                continue;
            }
            for what in state::truncated_list_messages(file, document.doc.root(), is_audited) {
                if !reporter.incomplete.contains(&what) {
                    console.error(&what);
                    reporter.incomplete.push(what);
                }
            }
            for item in list::objects(document.doc.root()) {
                let (api_version, kind) = item.api_version_and_kind();
                if is_snapshot && is_only_for_forecasts(api_version, kind) {
                    continue;
                }
                let object = item.typed_value();
                reporter.add_if_outdated_export(kind, object, &run.engine.policies);
                let fault = match classify_type(object) {
                    // A kind that Tollgate does not check: it is there for impact, or for no reason.
                    TypeClassification::Foreign => continue,
                    TypeClassification::Ours { .. } => None,
                    TypeClassification::Missing(field) => Some(format!("`{field}` is missing")),
                    TypeClassification::Unreadable(why) => Some(why.to_owned()),
                };
                if let Some(fault) = fault {
                    unreadable += 1;
                    let at = document
                        .locate(&lines, &item.path_in_document(Path::ROOT.owned()), false)
                        .bytes
                        .start;
                    let message = format!("not a Kubernetes object: {fault}; the dump may be truncated");
                    let error = InputError::at(file, &lines, at, message);
                    report_unreadable(&error, text, document.index, reporter, console);
                    continue;
                }
                judged += 1;
                let namespace = object.get("metadata").get("namespace").str();
                included += usize::from(run.includes_namespace(namespace));
                check_and_report(&run, &item, namespaces.labels(namespace), reporter, console);
            }
        }
    }
    let is_known = |name| namespaces.iter().flat_map(LoadedNamespaces::names).any(|known| known == name);
    if let Some(name) = run.namespace.filter(|name| judged > 0 && included == 0 && !is_known(*name)) {
        let what = format!("the dump contains no objects in namespace {name}");
        console.error(&what);
        reporter.incomplete.push(what);
    }
    if judged == 0 && unreadable == 0 {
        let names: Vec<&str> = texts.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(", ");
        let message = format!(
            "{names}: contains no objects to check; create a dump with `tollgate snapshot` or `{KUBECTL_DUMP}`"
        );
        return Err(Failure::Input(message));
    }
    Ok(())
}

/// Reports a document or object that cannot be read.
fn report_unreadable(
    error: &InputError,
    text: &str,
    document: usize,
    reporter: &mut AuditReporter,
    console: &mut Console,
) {
    reporter.add_object_result(&DocumentResult::unreadable(error, text, document), "", console);
}

/// True for kinds that a snapshot contains only for forecasts, such as nodes, and with some of their fields. They
/// are not audited, because an audit of the cluster does not list them either.
fn is_only_for_forecasts(api_version: &str, kind: &str) -> bool {
    use ObjectKind as Kind;
    ObjectKind::from_type_meta(api_version, kind).is_some_and(|kind| {
        !matches!(
            kind,
            Kind::Namespace
                | Kind::Pod
                | Kind::PodDisruptionBudget
                | Kind::DeviceClass
                | Kind::ResourceSlice
                | Kind::DeviceTaintRule
                | Kind::ResourceClaimTemplate
                | Kind::ResourceClaim
        )
    })
}

/// The profile of the cluster's release, with the feature gates that the dump records; `None` if it records no release.
pub(super) fn recorded_profile(inventory: &DumpInventory) -> Option<&'static Profile> {
    let server = inventory.recorded_server_if_unique();
    let (profile, _) = Profile::nearest_for_server(inventory.release()?)?;
    let unknown = LiveServer { gates: Err(String::new()), served: Err(String::new()) };
    profile.for_server(server.map_or(&unknown, |server| &server.live), None).ok()
}

/// Reads slices, claims and taint rules of a dump. Ignores unreadable ones, because the audit reports them
/// itself.
fn read_devices_and_taint_rules(texts: &[(String, String)]) -> Snapshot {
    let mut snapshot = Snapshot::new();
    for document in texts.iter().flat_map(|(_, text)| documents(text).with_max_size(usize::MAX)).flatten() {
        for item in list::objects(document.doc.root()) {
            let (api_version, kind) = item.api_version_and_kind();
            if ["ResourceSlice", "ResourceClaim", "DeviceTaintRule"].contains(&kind) {
                _ = snapshot.apply_as_type(api_version, kind, item.typed_value());
            }
        }
    }
    snapshot
}

/// Reads the Namespace objects of a dump; `None` if it has none, because labels of namespaces are unknown then.
pub(in crate::cli) fn read_namespaces(texts: &[(String, String)]) -> Option<LoadedNamespaces> {
    let mut namespaces = LoadedNamespaces::new(true);
    for (_, text) in texts.iter().filter(|(_, text)| text.contains("Namespace")) {
        for document in documents(text).with_max_size(usize::MAX).flatten() {
            for item in list::objects(document.doc.root()) {
                let object = item.typed_value();
                if object.get("apiVersion").str() == "v1" && object.get("kind").str() == "Namespace" {
                    namespaces.add(object);
                }
            }
        }
    }
    (!namespaces.is_empty()).then_some(namespaces)
}
