//! Texts that were found in a folder: which of their documents are skipped because they are not manifests, and why.
//!
//! A document in which apiVersion or kind is misspelt is still checked, so that the misspelling is reported. So is a
//! document that lacks them but has the shape of an object that Tollgate checks.
//!
//! Invariant: a document with apiVersion and kind is skipped only if it is a template or a patch, and contains no
//! object that an API server would create as written. If it cannot be parsed, it is an error unless it is a template.
//! Outside of chart templates, a text that Tollgate refuses but kubectl may read is a template only if it cannot
//! contain an object that Tollgate checks.

mod untyped;

use std::sync::LazyLock;

use crate::report::{LocatedFinding, SkipReason};
use tollgate_api::conform::suggest::distance;
use tollgate_api::profile::Profile;
use tollgate_document::doc::{Value, ValueKind};
use tollgate_document::field::FieldPath;
use tollgate_document::finding::{BadValue, ErrorType};
use tollgate_document::source::{Document, DocumentError, RefusedBy, list, shape};
use tollgate_engine::engine::{Attributes, Engine, LabelsIfKnown, Verdict};
use tollgate_engine::rules::{FindingLevel, Rule, RuleOrigin, RuleSet};

/// The purpose of a file in its repository, derived from its path, such as a kustomization patch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum FileRole {
    /// Neither part of a Helm chart nor named by a kustomization.
    Plain,
    /// In the folder of a Helm chart: `Chart.yaml`, values.
    ChartFile,
    /// In the templates of a Helm chart.
    ChartTemplate,
    /// Named as a patch by a kustomization.
    KustomizePatch,
}

/// Returns why a document that was found in a folder is skipped; `None` if it is checked.
pub(super) fn reason_to_skip(document: &Document<'_>, text: &str, role: FileRole) -> Option<SkipReason> {
    let root = document.doc.root();
    if shape::is_json_patch(root) {
        return Some(SkipReason::JsonPatch);
    }
    if role == FileRole::ChartTemplate && shape::has_template_actions(text) {
        return (!has_object_the_server_would_accept(root)).then_some(SkipReason::Template);
    }
    if root.kind() != ValueKind::Object {
        return Some(SkipReason::NotKubernetes);
    }
    let has_directive = || matches!(root.get("$patch").str(), "delete" | "merge" | "replace");
    if role == FileRole::KustomizePatch || has_directive() {
        return (!has_object_the_server_would_accept(root)).then_some(SkipReason::KustomizePatch);
    }
    let is_given =
        |key: &str| root.members().any(|(name, value)| name.text() == key && !value.str().is_empty());
    match (is_given("apiVersion"), is_given("kind")) {
        (true, true) => None,
        // One of the two is misspelt: the other one shows that a manifest is meant.
        (true, false) if has_misspelt_key(root, "kind") => None,
        (false, true) if has_misspelt_key(root, "apiVersion") => None,
        _ if role == FileRole::ChartFile => Some(SkipReason::HelmChart),
        _ if untyped::has_shape_of_checked_kind(root) => None,
        (false, true) if root.get("metadata").exists() => Some(SkipReason::MissingApiVersion),
        _ => Some(SkipReason::NotKubernetes),
    }
}

/// True if an API server would create at least one of the objects as written. Such an object is checked even in a
/// chart or if a kustomization names it as a patch.
fn has_object_the_server_would_accept(root: Value<'_>) -> bool {
    static API_SERVER_ENGINE: LazyLock<Engine> = LazyLock::new(|| {
        let is_its_own = |rule: &Rule| {
            matches!(rule.origin, RuleOrigin::Upstream | RuleOrigin::Decoding | RuleOrigin::Strict)
        };
        Engine::new(vec![Profile::DEFAULT], RuleSet::compile(is_its_own))
    });
    list::objects(root).any(|item| {
        let object = item.typed_value();
        let is_checked = list::last_member(object, "apiVersion").str().starts_with("resource.k8s.io/");
        is_checked
            && object.get("spec").exists()
            && match API_SERVER_ENGINE
                .validate(&Attributes::for_create(object, "", ""), LabelsIfKnown::Unknown)
            {
                Verdict::Skipped => false,
                Verdict::Checked(found) => found.iter().all(|found| found.level != FindingLevel::Deny),
            }
    })
}

/// True if the object has metadata or a spec, lacks the key `wanted`, and has one that differs from it by one or two
/// letters, or by case.
fn has_misspelt_key(root: Value<'_>, wanted: &str) -> bool {
    let is_near = |key: &str| {
        let key = key.to_lowercase();
        let most = if wanted.len() > 4 { 2 } else { 1 };
        key.len() <= wanted.len() + most && distance(&key, &wanted.to_lowercase()) <= most
    };
    (root.get("metadata").exists() || root.get("spec").exists())
        && !root.get(wanted).exists()
        && root.members().any(|(key, _)| is_near(key.text()))
}

/// A text that contains an object that Tollgate checks contains at least one of these words, compared in lower
/// case.
const WORDS_IN_CHECKED_TEXTS: [&str; 5] =
    ["resource.k8s.io", "resourceclaim", "resource-claim", "foundationdb", "tollgate.dev"];

/// Returns why a document that cannot be parsed is skipped; `None` if it is reported as an error.
pub(super) fn reason_to_skip_unparsable(
    text: &str,
    fault: &DocumentError,
    role: FileRole,
) -> Option<SkipReason> {
    let (start, part) = shape::document_around(text, fault.at);
    let is_other = || !shape::may_contain_words(part, &WORDS_IN_CHECKED_TEXTS);
    let is_template = if role == FileRole::ChartTemplate {
        shape::has_template_actions(text)
    } else {
        // A comment can look like a template, and kubectl would read the rest.
        let is_refused = || {
            shape::starts_with_template_action(part)
                || fault.by == RefusedBy::Kubectl && shape::stopped_at_template_action(part, fault.at - start)
        };
        shape::has_template_actions(part) && (is_other() || is_refused())
            || shape::has_substitution_placeholder(part) && is_other()
    };
    if is_template {
        return Some(SkipReason::Template);
    }
    let is_manifest = match fault.by {
        RefusedBy::Tollgate => {
            // What comes before the end of a document has been checked.
            let fault = part.get(fault.at - start..).filter(|rest| rest.starts_with("...\n"));
            shape::may_contain_words(fault.unwrap_or(part), &["apiversion", "kind"])
        }
        RefusedBy::Kubectl | RefusedBy::JsonLimit => shape::looks_like_manifest(part),
    };
    (!is_manifest).then_some(SkipReason::NotParsable)
}

/// Returns why a document in a Markdown file is skipped; `None` if it is checked. Fragments of objects, which
/// documentation often shows, are skipped.
pub(super) fn reason_to_skip_in_markdown(root: Value<'_>) -> Option<SkipReason> {
    let is_given = |key: &str| !list::last_member(root, key).str().is_empty();
    if shape::is_json_patch(root) {
        return Some(SkipReason::JsonPatch);
    }
    (root.kind() != ValueKind::Object || !is_given("apiVersion") || !is_given("kind"))
        .then_some(SkipReason::NotKubernetes)
}

/// Removes the findings that do not apply to an excerpt of an object: those about missing or empty fields or
/// placeholders, lints and policies. Removes the fixes of the others.
pub(super) fn retain_findings_for_excerpt(
    findings: &mut Vec<LocatedFinding>,
    document: &Document<'_>,
    text: &str,
) {
    findings.retain_mut(|located| {
        located.fix = None;
        let finding = &located.diagnostic.finding;
        let is_missing = match finding.kind {
            ErrorType::Required
            | ErrorType::NotFound
            | ErrorType::TooFew
            | ErrorType::TooShort
            | ErrorType::Internal => true,
            ErrorType::Invalid => {
                finding.help.is_none() && finding.detail.starts_with("must specify one of")
                    || matches!(&finding.value, BadValue::Null)
                    || matches!(&finding.value, BadValue::Str(value) if value.is_empty())
            }
            _ => false,
        };
        let source = text.get(located.location.bytes.clone()).unwrap_or_default();
        matches!(located.diagnostic.origin, RuleOrigin::Upstream | RuleOrigin::Decoding | RuleOrigin::Strict)
            && !is_missing
            && document.value_at_path(&finding.at, 0).is_some()
            && !shape::is_scalar_with_documentation_placeholder(source)
    });
}

/// Removes findings about values that are placeholders (`${NAME}`), but not those of policies. True if it removed any.
pub(super) fn drop_findings_on_placeholders(
    findings: &mut Vec<LocatedFinding>,
    document: &Document<'_>,
    text: &str,
) -> bool {
    let before = findings.len();
    findings.retain(|finding| {
        let bytes = &finding.location.bytes;
        let source = text.get(bytes.clone()).unwrap_or_default();
        finding.diagnostic.origin == RuleOrigin::Policy
            || !shape::is_scalar_with_template_or_variable(source)
            || is_container_at(document, &finding.diagnostic.finding.at, bytes.start)
    });
    findings.len() < before
}

/// True if the value at the path, or its nearest existing parent, is an object or a list that starts at the byte
/// `start` of the file. A finding about a value with a key starts at the key instead.
fn is_container_at(document: &Document<'_>, path: &FieldPath, start: usize) -> bool {
    let nearest = (0..=path.user_steps().count()).find_map(|up| document.value_at_path(path, up));
    nearest.is_some_and(|value| {
        matches!(value.kind(), ValueKind::Object | ValueKind::Array)
            && document.offset + value.span().start as usize == start
    })
}
