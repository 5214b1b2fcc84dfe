//! Compiles policy files into a [`PolicySet`], all or none.
//!
//! The caller reads the files, so that the same code loads from a directory, from a ConfigMap volume and from a test.
//! All errors of all files are reported, with file, line and column.

use std::collections::BTreeSet;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::conditions::PolicyExpressions;
use super::fields::API_VERSION;
use super::index::NamespaceIndex;
use super::json_schema::Schema;
use super::kind::PolicyKind;
use super::matching::{Exemptions, PolicyScope};
use super::resource::{FieldError, field_error};
use super::schema::{FieldType, ObjectSchema, PolicyFault, PolicyFaults};
use super::{Policy, PolicySet};
use crate::rules::FindingLevel;
use tollgate_api::conform::suggest;
use tollgate_document::doc::{Value, ValueKind};
use tollgate_document::field::{Path, PathAudience};
use tollgate_document::source::list;
use tollgate_document::source::{Document, InputError, LineIndex, documents};
use tollgate_formats::gotime;

/// A policy file with its contents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyFile {
    /// File name as given by the user.
    pub name: String,
    /// Contents of the file.
    pub text: String,
}

/// A function that reads a schema file, given the path that a policy names. Returns its contents or an error message.
pub type ReadSchemaFile<'r> = &'r dyn Fn(&str) -> Result<String, String>;

impl PolicySet {
    /// Compiles the policies in `files`. `read_schema` is called for schema files that are not among them.
    ///
    /// Tests of policies (`*.test.yaml`) and files that a `schemaFile` names are skipped.
    pub fn load(files: &[PolicyFile], read_schema: ReadSchemaFile<'_>) -> Result<PolicySet, Vec<InputError>> {
        let mut loader = PolicyLoader::default();
        let mut schemas = SchemaSource::new(files, read_schema);
        for file in files.iter().filter(|file| !is_test_file(&file.name)) {
            schemas.file = &file.name;
            let lines = LineIndex::from_text(&file.text);
            for document in documents(&file.text) {
                match document {
                    Ok(document) => loader.load_document(file, &document, &lines, &mut schemas),
                    Err(fault) => loader.errors.push(fault.input_error(&file.name, &lines)),
                }
            }
        }
        let SchemaSource { named, mut digest, .. } = schemas;
        let PolicyLoader { policies, mut errors, mut warnings, non_policies } = loader;
        warnings.sort();
        errors
            .extend(non_policies.into_iter().filter(|error| !named.contains(&normalized_path(&error.file))));
        if !errors.is_empty() {
            errors.sort();
            return Err(errors);
        }
        for file in files.iter().filter(|file| !is_test_file(&file.name)) {
            digest.update((file.text.len() as u64).to_be_bytes());
            digest.update(file.text.as_bytes());
        }
        let digest = format!("{:x}", digest.finalize());
        let policies: Vec<Arc<Policy>> = policies.into_iter().map(Arc::new).collect();
        let index = NamespaceIndex::from_policies(&policies);
        Ok(PolicySet { policies, index, digest: digest.into(), warnings, resources: Vec::new() })
    }
}

/// Returns the errors of the policies in a file, each with the index of its document. Documents that cannot be parsed
/// or are not policies are skipped.
pub fn policy_errors_with_document_index(
    file: &PolicyFile,
    read_schema: ReadSchemaFile<'_>,
) -> Vec<(usize, InputError)> {
    let mut loader = PolicyLoader::default();
    let mut schemas = SchemaSource { file: &file.name, ..SchemaSource::new(&[], read_schema) };
    let lines = LineIndex::from_text(&file.text);
    let mut errors = Vec::new();
    for document in documents(&file.text).flatten() {
        loader.load_document(file, &document, &lines, &mut schemas);
        errors.extend(loader.errors.drain(..).map(|error| (document.index, error)));
    }
    errors.sort();
    errors
}

/// True if the file name is that of tests of policies, `*.test.yaml`.
pub fn is_test_file(name: &str) -> bool {
    [".test.yaml", ".test.yml"].iter().any(|ending| name.ends_with(ending))
}

/// True if a document has the tests of another tool that uses the same file names: promtool or helm-unittest. Anything
/// else may be tests of policies with a mistake.
pub fn is_test_of_another_tool(root: Value<'_>) -> bool {
    const TOP_LEVEL: [&str; 4] = ["rule_files", "evaluation_interval", "suite", "templates"];
    const OF_A_TEST: [&str; 5] = ["it", "asserts", "input_series", "alert_rule_test", "promql_expr_test"];
    let has_any = |value: Value<'_>, fields: &[&str]| fields.iter().any(|field| value.get(field).exists());
    has_any(root, &TOP_LEVEL) || root.get("tests").items().any(|test| has_any(test, &OF_A_TEST))
}

/// Collects policies and errors while files are compiled.
#[derive(Default)]
struct PolicyLoader {
    policies: Vec<Policy>,
    errors: Vec<InputError>,
    warnings: Vec<InputError>,
    /// Errors for documents that are not policies; dropped if a policy names the file as a schema.
    non_policies: Vec<InputError>,
}

impl PolicyLoader {
    /// Compiles the policies of one document of a file: the document itself, or the items of a list, as kubectl prints
    /// several objects.
    fn load_document(
        &mut self,
        file: &PolicyFile,
        document: &Document<'_>,
        lines: &LineIndex<'_>,
        schemas: &mut SchemaSource<'_>,
    ) {
        for object in list::objects(document.doc.root()) {
            let root = object.typed_value();
            let error = |fault: &PolicyFault| {
                let at = object.path_in_document(fault.at.clone());
                let location = document.locate(lines, &at, fault.on_key);
                let byte = match &fault.in_text {
                    Some((expression, offset)) => {
                        expression_offset(&file.text, location.bytes, expression, *offset)
                    }
                    None => location.bytes.start,
                };
                let error =
                    FieldError { field: at.print(PathAudience::User), message: fault.message.clone() };
                InputError::at(&file.name, lines, byte, error.to_string())
            };
            let mut faults = PolicyFaults::default();
            let kind = match parse_policy_kind(root) {
                Ok(kind) => kind,
                Err((field, message)) => {
                    faults.report(&Path::ROOT.field(field), message);
                    let is_ours = root.get("apiVersion").str().starts_with("tollgate.dev/");
                    let list = if is_ours { &mut self.errors } else { &mut self.non_policies };
                    list.extend(faults.0.iter().map(error));
                    continue;
                }
            };
            faults.check_value(root, &FieldType::Object(kind.document_schema()), &Path::ROOT);
            if faults.0.is_empty() {
                let name = root.get("metadata").get("name").str();
                let is_same = |policy: &&Policy| policy.spec.kind() == kind && &*policy.name == name;
                if let Some(other) = self.policies.iter().find(is_same) {
                    let message = format!("{} {name} is already defined at {}", kind.name(), other.source);
                    faults.report(&Path::ROOT.field("metadata").field("name"), message);
                }
                let line = if object.indexes.is_empty() {
                    document.first_line_number(lines)
                } else {
                    document.locate(lines, &object.path_in_document(Path::ROOT.owned()), false).line
                };
                let source = format!("{}:{line}", file.name).into();
                let policy = read_policy(kind, root, source, schemas, &mut faults);
                self.policies.push(policy);
            } else {
                PolicyExpressions::read(
                    root.get("spec"),
                    &Path::ROOT.field("spec"),
                    kind.applicable_kinds(),
                    &mut faults,
                );
            }
            let (warnings, errors): (Vec<_>, Vec<_>) = faults.0.iter().partition(|fault| fault.is_warning);
            self.errors.extend(errors.into_iter().map(error));
            self.warnings.extend(warnings.into_iter().map(error));
        }
    }
}

/// Returns what is wrong with a document that should have the fields of `ty`, with positions. `lines` covers the whole
/// file.
pub fn document_errors(
    file: &str,
    document: &Document<'_>,
    lines: &LineIndex<'_>,
    ty: &'static ObjectSchema,
) -> Vec<InputError> {
    let mut faults = PolicyFaults::default();
    faults.check_value(document.doc.root(), &FieldType::Object(ty), &Path::ROOT);
    let error = |fault: PolicyFault| {
        let location = document.locate(lines, &fault.at, fault.on_key);
        InputError::at(file, lines, location.bytes.start, field_error(&fault).to_string())
    };
    faults.0.into_iter().map(error).collect()
}

/// Returns the kind of a policy document; otherwise the field that is wrong and why.
fn parse_policy_kind(root: Value<'_>) -> Result<PolicyKind, (&'static str, String)> {
    if root.kind() != ValueKind::Object {
        return Err(("", "a policy must be an object with apiVersion, kind, metadata and spec".to_owned()));
    }
    let (api_version, kind) = (root.get("apiVersion").str(), root.get("kind").str());
    if api_version != API_VERSION {
        return Err(("apiVersion", format!("{api_version:?} is not supported; use `{API_VERSION}`")));
    }
    PolicyKind::parse(kind).ok_or_else(|| {
        let names = suggest::hint_use_one_of(&PolicyKind::ALL.map(PolicyKind::name));
        ("kind", format!("{kind:?} is not supported; {names}"))
    })
}

/// Compiles a policy document, whose types have already been checked, and reports further errors.
pub(super) fn read_policy(
    kind: PolicyKind,
    root: Value<'_>,
    source: Box<str>,
    schemas: &mut SchemaSource<'_>,
    faults: &mut PolicyFaults,
) -> Policy {
    let spec = root.get("spec");
    let at = Path::ROOT.field("spec");
    check_namespace_selector(spec.get("match").get("namespaceSelector"), &at, faults);
    let fails_closed = spec.get("onUnavailable").str() == "Deny";
    if fails_closed && matches!(spec.get("action").str(), "Warn" | "Audit") {
        let message = "`Deny` requires `action: Deny`; a policy that admits every object must not reject any";
        faults.report(&at.field("onUnavailable"), message);
    }
    let scope = PolicyScope::read(spec.get("match"), kind.applicable_kinds());
    Policy {
        name: root.get("metadata").get("name").str().into(),
        source,
        generation: None,
        broken: None,
        exempt: Exemptions::read(spec.get("exempt")),
        action: action_level(spec),
        // The schema has refused everything that is not a time.
        enforce_from: gotime::parse_rfc3339(spec.get("enforceFrom").str()).ok(),
        fails_closed,
        contact: text_if_not_empty(spec.get("contact")),
        docs: text_if_not_empty(spec.get("docs")),
        expressions: PolicyExpressions::read(spec, &at, &scope.kinds, faults),
        scope,
        spec: kind.read_spec(spec, &at, schemas, faults),
        json: root.to_json().into(),
        schema_files: std::mem::take(&mut schemas.current),
    }
}

/// Returns the level of `spec.action`; `Deny`, the default, if it is not set.
pub(super) fn action_level(spec: Value<'_>) -> FindingLevel {
    match spec.get("action").str() {
        "Warn" => FindingLevel::Warn,
        "Audit" => FindingLevel::Audit,
        _ => FindingLevel::Deny,
    }
}

/// Returns the text of a value; `None` if it is empty or does not exist.
pub(super) fn text_if_not_empty(value: Value<'_>) -> Option<Box<str>> {
    Some(value.str()).filter(|text| !text.is_empty()).map(Into::into)
}

/// Reports `namespaceSelector` expressions whose values are invalid for their operator.
fn check_namespace_selector(selector: Value<'_>, at: &Path<'_>, faults: &mut PolicyFaults) {
    let match_at = at.field("match");
    let selector_at = match_at.field("namespaceSelector");
    let list_at = selector_at.field("matchExpressions");
    for (index, item) in selector.get("matchExpressions").items().enumerate() {
        let needs_values = matches!(item.get("operator").str(), "In" | "NotIn");
        let item_at = list_at.index(index);
        if needs_values && item.get("values").is_empty() {
            faults.report(&item_at.field("values"), "this field is required for the operators In and NotIn");
        } else if !needs_values && !item.get("values").is_empty() {
            faults
                .report(&item_at.field("values"), "must be empty for the operators Exists and DoesNotExist");
        }
    }
}

/// Returns the offset in the file of the byte at `offset` of an expression; `bytes` is where the file has the
/// expression. The file may wrap and indent it, so only visible characters are compared. If they differ, because some
/// are escaped, returns the start of the expression.
fn expression_offset(text: &str, bytes: std::ops::Range<usize>, expression: &str, offset: usize) -> usize {
    let written = text.get(bytes.clone()).unwrap_or_default();
    let header = match written.chars().next() {
        Some('|' | '>') => written.find('\n').unwrap_or_default(),
        Some('"' | '\'') => 1,
        _ => 0,
    };
    let is_visible = |letter: &(usize, char)| !letter.1.is_whitespace();
    let letters = |text: &'_ str| text.char_indices().filter(is_visible).collect::<Vec<_>>();
    let shown = letters(written.get(header..).unwrap_or_default());
    let meant = letters(expression);
    let before = meant.iter().take_while(|(at, _)| *at < offset).count();
    let same = shown.iter().zip(&meant).take(before + 1).all(|(shown, meant)| shown.1 == meant.1);
    let at = match shown.get(before) {
        _ if !same => 0,
        Some((at, _)) => header + at,
        None => header + shown.last().map_or(0, |(at, letter)| at + letter.len_utf8()),
    };
    bytes.start + at
}

/// Reads the JSON Schemas of the policies in a file: from the policy itself, or from a file that it names.
pub(super) struct SchemaSource<'l> {
    file: &'l str,
    files: &'l [PolicyFile],
    read_schema: ReadSchemaFile<'l>,
    /// Files that policies reference.
    named: BTreeSet<String>,
    /// Hash of the schema files that are not among the policy files.
    digest: Sha256,
    /// Schema files of the current policy: the field that names the file, and its contents.
    current: Vec<(String, String)>,
}

impl<'l> SchemaSource<'l> {
    fn new(files: &'l [PolicyFile], read_schema: ReadSchemaFile<'l>) -> SchemaSource<'l> {
        let (named, digest, current) = (BTreeSet::new(), Sha256::new(), Vec::new());
        SchemaSource { file: "", files, read_schema, named, digest, current }
    }

    /// Creates the schema source for a policy that is not in a file, where `schemaFile` is an error.
    pub(super) fn without_files() -> SchemaSource<'l> {
        SchemaSource::new(&[], &|_| Err("a policy that is in no file cannot name files".to_owned()))
    }

    /// Compiles the schema of an item with `schema` or `schemaFile`; `None` if it has neither or the schema cannot be
    /// used, which is reported.
    pub(super) fn compile_schema_of(
        &mut self,
        item: Value<'_>,
        at: &Path<'_>,
        faults: &mut PolicyFaults,
    ) -> Option<Schema> {
        let (inline, file) = (item.get("schema"), item.get("schemaFile"));
        let (inline_at, file_at) = (at.field("schema"), at.field("schemaFile"));
        let (json, at) = match (inline.exists(), file.exists()) {
            (false, false) => return None,
            (true, false) => (Ok(inline.to_json()), inline_at),
            (true, true) => (Err("set either `schema` or `schemaFile`, not both".to_owned()), file_at),
            (false, true) => {
                let path = resolve_relative_path(self.file, file.str());
                let json = self.read_schema_as_json(&path).map_err(|reason| format!("{path}: {reason}"));
                let field = file_at.owned().print(PathAudience::User);
                self.current.extend(json.iter().map(|json| (field.clone(), json.clone())));
                (json, file_at)
            }
        };
        let compile = |json: String| {
            Schema::compile(&json).map_err(|reason| format!("cannot be used as a JSON Schema: {reason}"))
        };
        json.and_then(compile).map_err(|message| faults.report(&at, message)).ok()
    }

    /// Returns the text of a schema file as JSON, or why it cannot be read; the file may be JSON or YAML.
    fn read_schema_as_json(&mut self, path: &str) -> Result<String, String> {
        let normal = normalized_path(path);
        let given = self.files.iter().find(|file| file.name == path || normalized_path(&file.name) == normal);
        self.named.insert(normal);
        let text = given.map_or_else(|| (self.read_schema)(path), |file| Ok(file.text.clone()))?;
        if given.is_none() {
            self.digest.update(text.as_bytes());
        }
        // JSON or YAML; the schema is the first document.
        match documents(&text).next() {
            // The text of any other file must not get into a message.
            Some(Ok(document)) if document.doc.root().kind() != ValueKind::Object => {
                Err("expected a JSON Schema, which is an object".to_owned())
            }
            Some(Ok(document)) => Ok(document.doc.root().to_json()),
            Some(Err(fault)) => {
                let (line, column) = LineIndex::from_text(&text).line_and_column(fault.at);
                Err(format!("{line}:{column}: {}", fault.message))
            }
            None => Err("is empty".to_owned()),
        }
    }
}

/// Resolves a path relative to the folder of `file`; an absolute path is returned unchanged.
fn resolve_relative_path(file: &str, path: &str) -> String {
    match file.rsplit_once('/') {
        Some((folder, _)) if !path.starts_with('/') => format!("{folder}/{path}"),
        _ => path.to_owned(),
    }
}

/// Resolves `.` and `..` in a path without accessing the file system, so that different spellings of a file name are
/// equal.
pub fn normalized_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for (index, part) in path.split('/').enumerate() {
        match part {
            "." => {}
            "" if index > 0 => {}
            ".." if parts.last().is_some_and(|last| !["", ".."].contains(last)) => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}
