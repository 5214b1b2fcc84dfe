//! The objects of a dump or a cluster, checked by two sets of policies: which of them get another verdict.
//!
//! Objects are checked as if they were created now, as `tollgate audit` does, by policies only.
//!
//! Invariant: a cluster is only read; what cannot be read is reported and causes exit code 3.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use crate::cli::audit;
use crate::cli::console::Console;
use crate::cli::outcome::Failure;
use crate::cli::shared::ReleaseArgs;
use crate::cli::state;
use tollgate_api::profile::Profile;
use tollgate_document::doc::Value;
use tollgate_document::source::{LineIndex, documents, list};
use tollgate_engine::engine::{Attributes, Engine, LabelsIfKnown, NamespaceLabelLookup as _, Verdict};
use tollgate_engine::impact::{DetailsToStore, Snapshot};
use tollgate_engine::policy::{PolicySet, verdict_word};
use tollgate_engine::rules::RuleSet;

/// The stored objects about which two policy sets decide differently, and how many were checked.
#[derive(Debug, Default, Serialize)]
pub(super) struct StoredObjectVerdictChanges {
    pub(super) checked: usize,
    pub(super) changed: Vec<ObjectWithChangedVerdict>,
    /// Messages about what could not be read.
    pub(super) incomplete: Vec<String>,
}

/// A stored object about which the two policy sets decide differently.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectWithChangedVerdict {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
    pub(super) before: &'static str,
    pub(super) after: &'static str,
    /// The policies that decide so, of the set that is stricter for this object.
    pub(super) policies: Vec<String>,
}

impl ObjectWithChangedVerdict {
    /// Returns kind, namespace and name of the object: `ResourceClaim ml/train`.
    pub(super) fn title(&self) -> String {
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        format!("{} {}{slash}{}", self.kind, self.namespace, self.name)
    }
}

/// Two engines that differ only in their policies, and the objects about which they disagree.
struct PolicySetComparison<'n> {
    engines: [Engine; 2],
    now: &'n str,
    found: StoredObjectVerdictChanges,
}

impl<'n> PolicySetComparison<'n> {
    fn new(
        profiles: &[&'static Profile],
        old: PolicySet,
        new: PolicySet,
        now: &'n str,
    ) -> Result<PolicySetComparison<'n>, Failure> {
        let rules = RuleSet::parse("policy").map_err(Failure::Usage)?;
        let engine = |policies: PolicySet| {
            Engine::new(profiles.to_vec(), rules.clone())
                .for_stored_objects(None)
                .with_policies(Arc::new(policies))
        };
        Ok(PolicySetComparison {
            engines: [engine(old), engine(new)],
            now,
            found: StoredObjectVerdictChanges::default(),
        })
    }

    /// True if a policy limits the impact of taint rules, which needs the state of the cluster.
    fn needs_state(&self) -> bool {
        self.engines.iter().any(|engine| engine.policies.any_policy_limits_taint_rule_impact())
    }

    fn set_state(&mut self, snapshot: Snapshot) {
        let snapshot = Arc::new(snapshot);
        self.engines = self.engines.each_ref().map(|engine| engine.clone().with_snapshot(snapshot.clone()));
    }

    /// Checks an object by both engines, and records it if their verdicts differ.
    fn compare_object(&mut self, object: Value<'_>, labels: LabelsIfKnown<'_>) {
        let request = Attributes::for_create(object, "", self.now);
        let verdicts = self.engines.each_ref().map(|engine| engine.validate(&request, labels));
        if verdicts.iter().any(|verdict| matches!(verdict, Verdict::Skipped)) {
            return;
        }
        self.found.checked += 1;
        let level = |verdict: &Verdict| verdict.findings().iter().map(|found| found.level).max();
        let [before, after] = verdicts.each_ref().map(level);
        if before == after {
            return;
        }
        let [old, new] = &verdicts;
        let speaking = if before > after { old } else { new };
        let policies: BTreeSet<String> = speaking
            .findings()
            .iter()
            .filter_map(|found| Some(found.policy.as_ref()?.kind_and_name().to_owned()))
            .collect();
        let text = |value: Value<'_>| value.str().to_owned();
        let metadata = object.get("metadata");
        self.found.changed.push(ObjectWithChangedVerdict {
            api_version: text(object.get("apiVersion")),
            kind: text(object.get("kind")),
            namespace: text(metadata.get("namespace")),
            name: text(metadata.get("name")),
            before: verdict_word(before),
            after: verdict_word(after),
            policies: policies.into_iter().collect(),
        });
    }
}

/// Checks the objects of a dump by both policy sets.
pub(super) fn compare_on_dump(
    paths: &[PathBuf],
    release: &ReleaseArgs,
    old: PolicySet,
    new: PolicySet,
    now: &str,
    console: &mut Console,
) -> Result<StoredObjectVerdictChanges, Failure> {
    let texts = state::read_texts(paths)?;
    let header = audit::read_dump_header_comments(&texts);
    let mut comparison = PolicySetComparison::new(&release.dump_profiles(&header, console)?, old, new, now)?;
    if comparison.needs_state() {
        let (snapshot, inventory) = state::parse_snapshot(&texts, DetailsToStore::default())?;
        comparison.found.incomplete.extend(inventory.impact_omissions(false).messages());
        comparison.set_state(snapshot);
    }
    let namespaces = audit::read_namespaces(&texts);
    for (file, text) in &texts {
        let lines = LineIndex::from_text(text);
        for document in documents(text).with_max_size(usize::MAX) {
            let document = document.map_err(|fault| fault.input_error(file, &lines))?;
            comparison.found.incomplete.extend(state::truncated_list_messages(
                file,
                document.doc.root(),
                |_, _| true,
            ));
            for item in list::objects(document.doc.root()) {
                let object = item.typed_value();
                let namespace = object.get("metadata").get("namespace").str();
                comparison.compare_object(object, namespaces.labels(namespace));
            }
        }
    }
    for what in &comparison.found.incomplete {
        console.error(what);
    }
    Ok(comparison.found)
}

/// Checks the objects of the cluster of `--context` by both policy sets. Lists DeviceTaintRules last, because
/// their impact depends on all others.
#[cfg(feature = "cluster")]
pub(super) fn compare_on_cluster(
    release: &ReleaseArgs,
    old: PolicySet,
    new: PolicySet,
    now: &str,
    console: &mut Console,
) -> Result<StoredObjectVerdictChanges, Failure> {
    use crate::cli::live::{BoundedSnapshot, ClusterLister};
    use crate::cli::snapshot::SNAPSHOT_KINDS;
    use crate::cluster::{DEVICE_TAINT_RULES, KeptFieldsAndSizeLimit, NAMESPACES, POD_DISRUPTION_BUDGETS};
    use tollgate_engine::engine::LoadedNamespaces;
    use tollgate_engine::impact::SnapshotKind;

    let asked = release.live_server()?;
    let mut comparison = PolicySetComparison::new(&release.live_profiles()?, old, new, now)?;
    let mut objects = ClusterLister::new(asked, None);
    let mut namespaces = LoadedNamespaces::new(true);
    let limits = KeptFieldsAndSizeLimit::for_impact(SnapshotKind::Namespace);
    let listed =
        objects.list_objects(&NAMESPACES, true, limits, console, &mut |_, object, _| namespaces.add(object));
    let namespaces = listed.ok().flatten().map(|_| namespaces);
    let mut live = comparison.needs_state().then(BoundedSnapshot::new);
    for kind in SNAPSHOT_KINDS.iter().filter(|kind| **kind != NAMESPACES) {
        if *kind == DEVICE_TAINT_RULES
            && let Some(live) = live.take()
        {
            comparison.set_state(live.into_snapshot(&mut objects.omissions, console));
        }
        let limits = KeptFieldsAndSizeLimit::WHOLE_OBJECTS;
        _ = objects.list_objects(kind, true, limits, console, &mut |api_version, object, _| {
            if let Some(live) = &mut live {
                live.add_object_and_drop_largest_over_limit(api_version, kind.kind, object);
            }
            if *kind != POD_DISRUPTION_BUDGETS {
                let item = list::with_inherited_type_if_untyped(object, api_version, kind.kind);
                let namespace = object.get("metadata").get("namespace").str();
                comparison.compare_object(item.typed_value(), namespaces.labels(namespace));
            }
        });
    }
    comparison.found.incomplete = objects.omissions.failures;
    Ok(comparison.found)
}
