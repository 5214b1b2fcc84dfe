//! Checks one stored object and renders it as YAML, with the findings at their lines.
//!
//! Most objects have no findings and are not printed at all.

use super::AuditSettings;
use super::reporter::AuditReporter;
use crate::cli::console::Console;
use crate::cli::mutate::print;
use crate::report::{DocumentResult, DocumentStatus, LocatedFinding, SkipReason};
use tollgate_api::profile::ApiKind;
use tollgate_document::doc::{Builder, Doc, Value, ValueKind};
use tollgate_document::field::{FieldPath, SegmentName};
use tollgate_document::source::list::DocumentObject;
use tollgate_document::source::{LineIndex, documents};
use tollgate_engine::engine::{Attributes, LabelsIfKnown, Verdict};

/// Checks a stored object and adds the result to the report, unless its namespace is not audited.
pub(super) fn check_and_report(
    run: &AuditSettings<'_>,
    item: &DocumentObject<'_>,
    labels: LabelsIfKnown<'_>,
    reporter: &mut AuditReporter,
    console: &mut Console,
) {
    let object = item.typed_value();
    let metadata = object.get("metadata");
    let (namespace, name) = (metadata.get("namespace").str(), metadata.get("name").str());
    if !run.includes_namespace(namespace) {
        return;
    }
    let (api_version, kind) = (object.get("apiVersion").str(), object.get("kind").str());
    let mut verdict = run.engine.validate(&Attributes::for_create(object, "", &run.now), labels);
    let mut allowed = 0;
    if let Verdict::Checked(found) = &mut verdict {
        // Only controllers and drivers write a status.
        let is_in_status = |at: &FieldPath| matches!(at.user_steps().next(), Some(SegmentName::Field(name)) if &**name == "status");
        found.retain(|diagnostic| !is_in_status(&diagnostic.finding.at));
        let before = found.len();
        found.retain_mut(|diagnostic| run.levels.set_level_if_reported(diagnostic));
        allowed = before - found.len();
    }
    let status = match (&verdict, verdict.is_allowed()) {
        (Verdict::Skipped, _) => DocumentStatus::Skipped,
        (_, true) => DocumentStatus::Valid,
        (_, false) => DocumentStatus::Invalid,
    };
    reporter.deadlines.add_claim_if_soon_denied(run, object, labels);
    let file = kubectl_object_name(api_version, kind, namespace, name);
    let mut text = String::new();
    let mut findings = Vec::new();
    if let Verdict::Checked(found) = verdict
        && !found.is_empty()
    {
        text = print::to_block_yaml(type_first_without_managed_fields(object).root());
        let lines = LineIndex::from_text(&text);
        let document = documents(&text).with_max_size(usize::MAX).next().and_then(Result::ok);
        findings = found
            .into_iter()
            .map(|diagnostic| {
                let finding = &diagnostic.finding;
                let locate = |path| match &document {
                    Some(document) => document.locate(&lines, path, finding.on_key),
                    None => lines.locate(0..0),
                };
                let location = locate(&finding.at);
                let also = finding.also.iter().map(locate).collect();
                // Nobody edits a stored object in this text.
                LocatedFinding { diagnostic, location, also, fix: None }
            })
            .collect();
    }
    reporter.add_object_result(
        &DocumentResult {
            file: &file,
            text: &text,
            document: 0,
            line: usize::from(!text.is_empty()),
            api_version,
            kind,
            namespace,
            name,
            status,
            findings: &findings,
            hidden: &[],
            accepted: &[],
            allowed,
            profiles: &[],
            error: None,
            skipped: (status == DocumentStatus::Skipped).then_some(SkipReason::OtherKind),
        },
        metadata.get("uid").str(),
        console,
    );
}

/// Returns resource, namespace and name of an object as kubectl accepts them: `resourceclaims/ml/train`.
fn kubectl_object_name(api_version: &str, kind: &str, namespace: &str, name: &str) -> String {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let resource = ApiKind::from_group_and_name(group, kind)
        .map_or_else(|| kind.to_lowercase(), |kind| kind.resource().to_owned());
    if namespace.is_empty() { format!("{resource}/{name}") } else { format!("{resource}/{namespace}/{name}") }
}

/// Returns the object as the report shows it: apiVersion and kind first, and no `managedFields`.
fn type_first_without_managed_fields(object: Value<'_>) -> Doc<'_> {
    let mut out = Builder::with_capacity(object.doc().source(), object.doc().syntax(), object.node_count());
    out.open(ValueKind::Object, object.span());
    let is_type = |key: &str| ["apiVersion", "kind"].contains(&key);
    for (key, value) in object.members().filter(|(key, _)| is_type(key.text())) {
        out.copy(key);
        out.copy(value);
    }
    for (key, value) in object.members().filter(|(key, _)| !is_type(key.text())) {
        out.copy(key);
        if key.text() != "metadata" || value.kind() != ValueKind::Object {
            out.copy(value);
            continue;
        }
        out.open(ValueKind::Object, value.span());
        for (key, value) in value.members().filter(|(key, _)| key.text() != "managedFields") {
            out.copy(key);
            out.copy(value);
        }
        out.close(value.span().end);
    }
    out.close(object.span().end);
    out.finish()
}
