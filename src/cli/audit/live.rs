//! The objects of a running cluster, checked as pages arrive.
//!
//! DeviceTaintRules are checked only after all of them were listed, and after the other objects that their impact
//! depends on: slices, claims and pods.

use std::sync::Arc;

use super::AuditSettings;
use super::judge::check_and_report;
use super::reporter::AuditReporter;
use crate::cli::console::Console;
use crate::cli::live::{BoundedSnapshot, ClusterLister, ConnectedServer, MissingObjects};
use crate::cli::snapshot::SNAPSHOT_KINDS;
use crate::cluster::{
    ADMISSION_POLICIES, DEVICE_TAINT_RULES, KeptFieldsAndSizeLimit, ListedKind, NAMESPACES,
    POD_DISRUPTION_BUDGETS, RESOURCE_CLAIMS, RESOURCE_SLICES,
};
use tollgate_api::conform::suggest::join_with_and;
use tollgate_api::profile::{ApiKind, Profile, Version};
use tollgate_document::doc::{self, Value};
use tollgate_document::source::list;
use tollgate_engine::engine::{LoadedNamespaces, NamespaceLabelLookup as _};
use tollgate_engine::impact::SnapshotKind;

/// Maximum number of keys and values kept of all Namespace objects: enough for 50,000 namespaces with ten labels
/// each.
const MAX_NAMESPACE_VALUES: usize = 1_500_000;

/// Kinds that are needed to count the devices that forgotten taint rules keep idle.
const KINDS_FOR_FORGOTTEN_RULES: [ListedKind; 3] = [RESOURCE_SLICES, RESOURCE_CLAIMS, DEVICE_TAINT_RULES];

/// Lists the objects of a cluster, checks them and reports them.
pub(super) fn audit_cluster(
    asked: &ConnectedServer,
    mut run: AuditSettings<'_>,
    reporter: &mut AuditReporter,
    console: &mut Console,
) {
    // What acts in the cluster now is what its server reports; `--feature-gates` may be about another release.
    let base = Profile::named(asked.profile.name);
    if let Some(Ok(current)) = base.map(|base| base.for_server(&asked.info.live, None)) {
        run.engine = run.engine.for_stored_objects(Some(current));
    }
    let mut objects = ClusterLister::new(asked, run.namespace);
    report_outdated_exports(asked, &run, reporter, console);
    let mut unchecked = None;
    let namespaces = read_namespaces(asked, &run, &mut objects, &mut unchecked, console);
    // Without a namespace, rules are listed, and with them the devices that they keep idle.
    let needs_state = run.needs_state_for_taint_rule_impact();
    let mut state = (needs_state || run.namespace.is_none()).then(BoundedSnapshot::new);
    for kind in &SNAPSHOT_KINDS {
        if *kind == NAMESPACES || !must_list_kind(kind, &run) {
            continue;
        }
        let mut count = 0;
        let mut rules: Vec<(String, String)> = Vec::new();
        // Of budgets only impact reads something.
        let limits = if *kind == POD_DISRUPTION_BUDGETS {
            KeptFieldsAndSizeLimit::for_impact(SnapshotKind::Budget)
        } else {
            KeptFieldsAndSizeLimit::WHOLE_OBJECTS
        };
        let listed =
            objects.list_objects(kind, true, limits, console, &mut |api_version, object, console| {
                count += 1;
                if let Some(state) =
                    state.as_mut().filter(|_| needs_state || KINDS_FOR_FORGOTTEN_RULES.contains(kind))
                {
                    state.add_object_and_drop_largest_over_limit(api_version, kind.kind, object);
                }
                if *kind == DEVICE_TAINT_RULES {
                    rules.push((api_version.to_owned(), object.to_json()));
                } else if *kind != POD_DISRUPTION_BUDGETS {
                    let item = list::with_inherited_type_if_untyped(object, api_version, kind.kind);
                    let namespace = object.get("metadata").get("namespace").str();
                    check_and_report(&run, &item, namespaces.labels(namespace), reporter, console);
                }
            });
        if let Ok(Some(api_version)) = listed {
            note_unserved_version(kind, &api_version, &run, console);
            reporter.listed.push((kind.resource, api_version, count));
        }
        if *kind == DEVICE_TAINT_RULES {
            run = report_forgotten_rules_and_set_state(run, state.take(), &mut objects, reporter, console);
            for (api_version, json) in &rules {
                // Serialized above, so it parses.
                let Ok(rule) = doc::parse(json) else { continue };
                let item = list::with_inherited_type_if_untyped(rule.root(), api_version, kind.kind);
                check_and_report(&run, &item, namespaces.labels(""), reporter, console);
            }
        }
    }
    report_forgotten_rules_and_set_state(run, state, &mut objects, reporter, console);
    // A namespace that nobody looked at is not a clean one.
    let is_empty = || reporter.listed.iter().all(|(_, _, count)| *count == 0);
    if let Some(why) = unchecked.filter(|_| is_empty()) {
        objects.omissions.print_and_add_failure(why, console);
    }
    reporter.not_served = std::mem::take(&mut objects.omissions.not_served);
    reporter.incomplete.append(&mut objects.omissions.failures);
}

/// Reports forgotten taint rules, and passes the cluster state to the engine if a rule or policy needs it.
/// Objects missing from the state are reported only in that case.
fn report_forgotten_rules_and_set_state<'a>(
    mut run: AuditSettings<'a>,
    state: Option<BoundedSnapshot>,
    objects: &mut ClusterLister<'_>,
    reporter: &mut AuditReporter,
    console: &mut Console,
) -> AuditSettings<'a> {
    let Some(state) = state else { return run };
    let needs_state = run.needs_state_for_taint_rule_impact();
    let snapshot =
        if needs_state { state.into_snapshot(&mut objects.omissions, console) } else { state.snapshot };
    reporter.deadlines.add_forgotten_rules(&snapshot, &run.now);
    if needs_state {
        run.engine = run.engine.with_snapshot(Arc::new(snapshot));
    }
    run
}

/// Reports policies in the cluster that were exported from other policies than the loaded ones. Prints a note if
/// they cannot be listed.
fn report_outdated_exports(
    asked: &ConnectedServer,
    run: &AuditSettings<'_>,
    reporter: &mut AuditReporter,
    console: &mut Console,
) {
    // The digest of custom resources changes with their status.
    if run.engine.policies.has_no_policies_from_files() || run.namespace.is_some() {
        return;
    }
    // What is missing here says nothing about the audited objects.
    let mut objects = ClusterLister::new(asked, None);
    let mut compare = |_: &str, object: Value<'_>, _: &mut Console| {
        reporter.add_if_outdated_export(ADMISSION_POLICIES.kind, object, &run.engine.policies);
    };
    // Why they cannot be listed was printed.
    let limits = KeptFieldsAndSizeLimit::WHOLE_OBJECTS;
    _ = objects.list_objects(&ADMISSION_POLICIES, false, limits, console, &mut compare);
}

/// True if objects of the kind are listed: with `--namespace` only kinds that live in namespaces, and budgets only if
/// impact is counted.
fn must_list_kind(kind: &ListedKind, run: &AuditSettings<'_>) -> bool {
    (run.namespace.is_none() || kind.namespaced)
        && (*kind != POD_DISRUPTION_BUDGETS || run.needs_state_for_taint_rule_impact())
}

/// Reads the labels of namespaces; `None` if that fails, and then rules that need labels are not checked. Sets
/// `unchecked` if the one namespace that is audited may not exist.
fn read_namespaces(
    asked: &ConnectedServer,
    run: &AuditSettings<'_>,
    objects: &mut ClusterLister<'_>,
    unchecked: &mut Option<String>,
    console: &mut Console,
) -> Option<LoadedNamespaces> {
    let mut namespaces = LoadedNamespaces::new(true);
    if let Some(name) = run.namespace {
        return match asked.cluster.get_cluster_scoped_object(&NAMESPACES, name) {
            Ok(text) => {
                namespaces.add(doc::parse(&text).ok()?.root());
                Some(namespaces)
            }
            Err(error) if error.http_status_or_zero() == 404 => {
                objects.omissions.print_and_add_failure(format!("namespace {name} does not exist"), console);
                None
            }
            Err(error) if run.engine.policies.needs_namespace_labels() => {
                objects
                    .omissions
                    .print_and_add_failure(format!("cannot get namespace {name}: {error}"), console);
                None
            }
            Err(error) => {
                console.note(&format!("cannot read the labels of namespace {name}: {error}"));
                *unchecked = Some(format!("cannot check whether namespace {name} exists: {error}"));
                None
            }
        };
    }
    let limits = KeptFieldsAndSizeLimit::for_impact(SnapshotKind::Namespace);
    let (mut nodes, mut missing) = (0, MissingObjects::default());
    let listed = objects.list_objects(&NAMESPACES, true, limits, console, &mut |_, object, _| {
        nodes += object.node_count();
        if nodes <= MAX_NAMESPACE_VALUES {
            namespaces.add(object);
        } else {
            let name = object.get("metadata").get("name").str();
            missing.add_description_or_only_count(|| {
                format!("Namespace {name} is left out: all namespaces have too many labels")
            });
        }
    });
    missing.print_and_add_to(&mut objects.omissions, console);
    listed.ok().flatten().map(|_| namespaces)
}

/// Prints a note for each checked release that does not serve the version in which the objects were listed. They
/// are checked in that version anyway.
fn note_unserved_version(
    kind: &ListedKind,
    api_version: &str,
    run: &AuditSettings<'_>,
    console: &mut Console,
) {
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let Some((kind, version)) =
        ApiKind::from_group_and_name(kind.group, kind.kind).zip(Version::parse(version))
    else {
        return;
    };
    for profile in &run.engine.profiles {
        let versions = profile.versions(kind);
        if !versions.contains(&version) && !versions.is_empty() {
            let names: Vec<&str> = versions.iter().map(|version| version.name()).collect();
            console.note(&format!(
                "Kubernetes {} serves {} as {}, not as {}; the objects are checked in the version in which they were listed",
                profile.name,
                kind.name(),
                join_with_and(&names),
                version.name(),
            ));
        }
    }
}
