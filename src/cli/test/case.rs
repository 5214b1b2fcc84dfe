//! Parses a test file strictly, and runs its cases.

use std::sync::Arc;

use crate::config::scalar_text_as_written;
use tollgate_api::profile::Profile;
use tollgate_api::review::{GroupVersionKind, Operation, Request};
use tollgate_document::doc::{self, Value, ValueKind};
use tollgate_document::field::{Path, PathAudience};
use tollgate_document::source::{Document, InputError, LineIndex, documents};
use tollgate_engine::engine::{
    Attributes, Decision, Endpoint, Engine, LabelsIfKnown, LoadedNamespaces, NamespaceLabelLookup, Review,
    Verdict, json_patch,
};
use tollgate_engine::impact::Snapshot;
use tollgate_engine::policy::{self, PolicySet, TEST_FILE, glob_matches};
use tollgate_engine::rules::table::UNKNOWN_FIELD;
use tollgate_engine::rules::{FindingLevel, RuleSet};

/// Time of a test that sets no `now`. A fixed time, so that results do not change when entries expire.
const DEFAULT_NOW: &str = "2026-01-01T00:00:00Z";

/// Release of a test file that names none.
const DEFAULT_RELEASE: &str = "kep-5055";

/// A parsed policy test file.
pub(super) struct TestFile<'t> {
    document: Document<'t>,
    lines: LineIndex<'t>,
}

/// Name and line of a policy test case, and why it failed, if it did.
pub(super) struct CaseOutcome {
    pub(super) name: String,
    pub(super) line: usize,
    /// Why the case failed; `None` if it passed.
    pub(super) failure: Option<String>,
}

impl<'t> TestFile<'t> {
    /// Parses a test file; errors have line and column.
    pub(super) fn parse(file: &str, text: &'t str) -> Result<TestFile<'t>, Vec<String>> {
        let lines = LineIndex::from_text(text);
        let (mut first, mut faults) = (None, Vec::new());
        for document in documents(text) {
            match document {
                Ok(document) => {
                    faults.extend(errors_of_fields(file, &document, &lines));
                    first.get_or_insert(document);
                }
                Err(fault) => faults.push(fault.input_error(file, &lines)),
            }
        }
        if !faults.is_empty() {
            return Err(faults.iter().map(ToString::to_string).collect());
        }
        let document = first.ok_or_else(|| vec![format!("{file}: the file is empty")])?;
        Ok(TestFile { document, lines })
    }

    /// The files or folders with the policies, relative to the test file; `None` if it names none.
    pub(super) fn policies(&self) -> Option<Vec<String>> {
        let named = self.document.doc.root().get("policies");
        named.exists().then(|| named.items().map(|name| name.str().to_owned()).collect())
    }

    /// The release or draft.
    fn release(&self) -> &str {
        let release = scalar_text_as_written(self.document.doc.root().get("kubernetes"));
        if release.is_empty() { DEFAULT_RELEASE } else { release }
    }

    /// Runs all cases against the policies.
    pub(super) fn run(&self, set: PolicySet) -> Result<Vec<CaseOutcome>, String> {
        let root = self.document.doc.root();
        let profile = Profile::from_name_or_version(self.release())
            .ok_or_else(|| format!("unknown profile `{}`", self.release()))?;
        let engine =
            Engine::new(vec![profile], RuleSet::parse("policy,decoding")?).with_policies(Arc::new(set));
        let engine = match root.get("state") {
            state if state.exists() => engine.with_snapshot(Arc::new(read_state(state)?)),
            _ => engine,
        };
        let given = root.get("namespaces");
        let namespaces = given.exists().then(|| {
            let mut all = LoadedNamespaces::new(true);
            given.items().for_each(|namespace| all.add(namespace));
            all
        });
        let now = string_or_default(root.get("now"), DEFAULT_NOW);
        let start = |test: Value<'_>| self.document.offset + test.span().start as usize;
        let cases = root.get("tests").items().map(|test| CaseOutcome {
            name: test.get("name").str().to_owned(),
            line: self.lines.line_and_column(start(test)).0,
            failure: run_case(&engine, test, string_or_default(test.get("now"), now), &namespaces),
        });
        Ok(cases.collect())
    }

    /// Returns the warnings about unknown fields in the objects of the file, with line and column. API servers drop or
    /// reject such a field, so a test with a misspelt one passes without testing it. They are no errors, because a field
    /// may be unknown only in this release.
    pub(super) fn unknown_field_warnings(&self, file: &str) -> Vec<String> {
        let Some(profile) = Profile::from_name_or_version(self.release()) else { return Vec::new() };
        let engine = Engine::new(vec![profile], RuleSet::compile(|rule| rule.id == UNKNOWN_FIELD.id));
        let mut warnings = Vec::new();
        for (index, test) in self.document.doc.root().get("tests").items().enumerate() {
            for name in ["object", "oldObject"] {
                let attributes = Attributes::for_create(test.get(name), "", DEFAULT_NOW);
                let verdict = engine.validate(&attributes, LabelsIfKnown::Unknown);
                let found = verdict.findings().iter().map(|diagnostic| &diagnostic.finding);
                for finding in found.filter(|finding| finding.rule == UNKNOWN_FIELD) {
                    let tests = Path::ROOT.field("tests");
                    let at = finding.at.clone().with_prefix(&tests.index(index).field(name));
                    let help = finding.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
                    let location = self.document.locate(&self.lines, &at, finding.on_key);
                    let (line, column, at) = (location.line, location.column, at.print(PathAudience::User));
                    warnings.push(format!("{file}:{line}:{column}: {at}: unknown field{help}"));
                }
            }
        }
        warnings
    }
}

/// Returns the errors in the fields of a test file: wrong types and unknown fields, and cases without anything to check,
/// which would pass if they expect a denial.
pub(super) fn errors_of_fields(
    file: &str,
    document: &Document<'_>,
    lines: &LineIndex<'_>,
) -> Vec<InputError> {
    let error = |at: Value<'_>, message: String| {
        InputError::at(file, lines, document.offset + at.span().start as usize, message)
    };
    let root = document.doc.root();
    if document.index > 0 {
        return vec![error(root, "a test file must contain a single document".to_owned())];
    }
    let mut errors = policy::document_errors(file, document, lines, &TEST_FILE);
    for (index, test) in root.get("tests").items().enumerate() {
        let object = test.get("object");
        let lacks = |field: &str| object.get(field).str().is_empty();
        if test.kind() == ValueKind::Object && !object.exists() && !test.get("review").exists() {
            errors.push(error(test, format!("tests[{index}]: `object` or `review` is required")));
        } else if object.kind() == ValueKind::Object && (lacks("apiVersion") || lacks("kind")) {
            let message = format!("tests[{index}].object: `apiVersion` and `kind` are required");
            errors.push(error(object, message));
        }
    }
    errors
}

/// Returns the text of a value; `default` if it is absent or empty.
fn string_or_default<'d>(value: Value<'d>, default: &'d str) -> &'d str {
    Some(value.str()).filter(|text| !text.is_empty()).unwrap_or(default)
}

/// Reads the cluster state of a test file.
fn read_state(state: Value<'_>) -> Result<Snapshot, String> {
    let mut snapshot = Snapshot::new();
    for object in state.items() {
        match snapshot.apply(object) {
            Ok(Some(_)) => {}
            Ok(None) => {
                let (version, kind) = (object.get("apiVersion").str(), object.get("kind").str());
                return Err(format!("state: {version} {kind} is not supported in the cluster state"));
            }
            Err(unreadable) => return Err(format!("state: {unreadable}")),
        }
    }
    Ok(snapshot)
}

/// Runs one case and returns why it failed; `None` if it passed.
fn run_case(
    engine: &Engine,
    test: Value<'_>,
    now: &str,
    namespaces: &dyn NamespaceLabelLookup,
) -> Option<String> {
    let review = test.get("review");
    let request = if review.exists() {
        match Request::from_review(review) {
            Ok(request) => request,
            Err(bad) => return Some(bad.detail),
        }
    } else {
        request_of_object(test)
    };
    let decision = Review::from_request(engine, request).decide(engine, Endpoint::Validate, now, namespaces);
    let mut wrong = Vec::new();
    let (expected, found) = (test.get("expect").str(), decision_word(&decision));
    if expected != found {
        wrong.push(format!("expected {expected}, got {found}"));
    }
    // A typo in the kind would otherwise be a test that passes.
    if !review.exists() && matches!(decision.verdict, Verdict::Skipped) {
        let (version, kind) =
            (test.get("object").get("apiVersion").str(), test.get("object").get("kind").str());
        wrong.push(format!("Tollgate does not check objects of apiVersion {version:?} and kind {kind:?}"));
    }
    let findings = decision.verdict.findings();
    let wanted: Vec<&str> = test.get("rules").items().map(Value::str).collect();
    for rule in &wanted {
        if !findings.iter().any(|diagnostic| diagnostic.finding.rule.id == *rule) {
            wrong.push(format!("expected a finding from {rule}"));
        }
    }
    let message = test.get("message").str();
    let pattern = format!("*{message}*");
    if !message.is_empty()
        && !findings.iter().any(|diagnostic| glob_matches(&pattern, &diagnostic.to_string()))
    {
        wrong.push(format!("expected a message that matches {message:?}"));
    }
    let expected_patch = test.get("patch");
    if expected_patch.exists() {
        let edits =
            Review::from_request(engine, request).decide(engine, Endpoint::Mutate, now, namespaces).edits;
        let found = json_patch(&edits);
        let is_same = doc::parse(&found).is_ok_and(|found| json_equal(expected_patch, found.root()));
        if !is_same {
            wrong.push(format!("expected patch {}\n     got patch {found}", expected_patch.to_json()));
        }
    }
    if wrong.is_empty() {
        return None;
    }
    wrong.extend(findings.iter().map(|diagnostic| format!("{}: {diagnostic}", diagnostic.level.name())));
    Some(wrong.join("\n"))
}

/// Returns the decision in the words of `expect`.
fn decision_word(decision: &Decision) -> &'static str {
    let worst = decision.verdict.findings().iter().map(|diagnostic| diagnostic.level).max();
    match worst {
        Some(FindingLevel::Deny) => "deny",
        Some(FindingLevel::Warn) => "warn",
        Some(FindingLevel::Audit) => "audit",
        None => "allow",
    }
}

/// True if both are equal as JSON; the order of members does not matter.
fn json_equal(one: Value<'_>, other: Value<'_>) -> bool {
    one.kind() == other.kind()
        && one.text() == other.text()
        && one.len() == other.len()
        && one.items().zip(other.items()).all(|(one, other)| json_equal(one, other))
        && one.members().all(|(key, value)| {
            other.last_key_and_value(key.text()).is_some_and(|(_, other)| json_equal(value, other))
        })
}

/// Returns the admission request for a case that has an object instead of a review.
fn request_of_object(test: Value<'_>) -> Request<'_> {
    let object = test.get("object");
    let old_object = test.get("oldObject");
    // The core group has no name.
    let api_version = object.get("apiVersion").str();
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let metadata = object.get("metadata");
    Request {
        uid: "test",
        kind: GroupVersionKind { group, version, kind: object.get("kind").str() },
        resource: "",
        sub_resource: "",
        operation: if old_object.exists() { Operation::Update } else { Operation::Create },
        name: metadata.get("name").str(),
        namespace: metadata.get("namespace").str(),
        user: test.get("user"),
        object,
        old_object: old_object.exists().then_some(old_object),
        dry_run: false,
    }
}
