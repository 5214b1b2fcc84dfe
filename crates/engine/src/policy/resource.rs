//! Policies as custom resources: each is loaded separately, and none is omitted silently.
//!
//! A resource that cannot be compiled stays in the set as a policy that cannot be evaluated ([`super::broken`]).
//!
//! Not here: how resources are watched, and how their status is written.
//!
//! Invariant: the same files and resources make the same set, whatever was loaded before.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::broken::broken_policy;
use super::conditions::PolicyExpressions;
use super::index::NamespaceIndex;
use super::kind::PolicyKind;
use super::load::{PolicyFile, ReadSchemaFile, SchemaSource, read_policy};
use super::schema::{FieldType, ObjectSchema, PolicyFault, PolicyFaults, optional_field, required_field};
use super::{Policy, PolicySet};
use crate::rules::table::{INVALID_POLICY, UNDEFINED_EXPRESSION_FIELD};
use tollgate_document::doc::{self, Value};
use tollgate_document::field::{Path, PathAudience};
use tollgate_document::finding::{BadValue, ErrorType, Finding};
use tollgate_document::source::InputError;
use tollgate_formats::gofmt;

/// Maximum number of bytes of `spec` as JSON.
pub(super) const MAX_SPEC_BYTES: usize = 256 << 10;
/// Maximum number of errors of a resource that are kept.
const MAX_KEPT_ERRORS: usize = 32;

/// A custom resource of one of the policy kinds, as the API server returned it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyResource {
    /// Kind of the policy.
    pub kind: PolicyKind,
    /// `metadata.name` of the resource.
    pub name: Box<str>,
    /// `metadata.uid` of the resource.
    pub uid: Box<str>,
    /// `metadata.generation` of the resource.
    pub generation: i64,
    json: Box<str>,
}

impl PolicyResource {
    /// Reads the identity of a resource. A text that is not JSON makes a resource that is rejected.
    pub fn new(kind: PolicyKind, json: impl Into<Box<str>>) -> PolicyResource {
        let json = json.into();
        let document = doc::parse(&json).ok();
        let root = document.as_ref().map_or(Value::absent(), doc::Doc::root);
        let metadata = root.get("metadata");
        let (name, uid) = (metadata.get("name").str().into(), metadata.get("uid").str().into());
        let generation = metadata.get("generation").int().unwrap_or_default();
        PolicyResource { kind, name, uid, generation, json }
    }

    /// True if the state was compiled from this version of this resource, so that it can be used again.
    fn is_same_version(&self, state: &PolicyResourceState) -> bool {
        !self.uid.is_empty()
            && (self.kind, &self.name, &self.uid, self.generation)
                == (state.kind, &state.name, &state.uid, state.generation)
    }
}

/// The result of loading a policy resource: whether it is in force, its errors, and the compiled policy.
#[derive(Clone, Debug)]
pub struct PolicyResourceState {
    /// Kind of the policy.
    pub kind: PolicyKind,
    /// `metadata.name` of the resource.
    pub name: Box<str>,
    /// `metadata.uid` of the resource.
    pub uid: Box<str>,
    /// `metadata.generation` of the resource.
    pub generation: i64,
    /// Whether the policy is in force.
    pub acceptance: Acceptance,
    /// Probable mistakes, which do not prevent the policy from being used.
    pub warnings: Vec<FieldError>,
    pub(super) policy: Option<Arc<Policy>>,
}

/// Whether a policy resource is in force, or why it is not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Acceptance {
    /// The policy is in force.
    Accepted,
    /// The policy cannot be evaluated, for these reasons. Its `failurePolicy` applies to the requests that it
    /// matches.
    Rejected(Vec<FieldError>),
    /// A policy file contains a policy with this kind and name, which is used instead.
    ReplacedByFile,
}

/// An error in a field of a policy resource.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FieldError {
    /// The path, such as `spec.allow[0].key`; empty for the whole resource.
    pub field: String,
    /// Error message.
    pub message: String,
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let separator = if self.field.is_empty() { "" } else { ": " };
        write!(f, "{}{separator}{}", self.field, self.message)
    }
}

/// The fields of a policy resource around `spec`. Their values are not checked here, because the API server checks
/// them.
static RESOURCE_FIELDS: ObjectSchema = ObjectSchema {
    name: "PolicyResource",
    fields: &[
        optional_field("apiVersion", FieldType::Any, ""),
        optional_field("kind", FieldType::Any, ""),
        optional_field("metadata", FieldType::Any, ""),
        required_field("spec", FieldType::Any, ""),
        optional_field("status", FieldType::Any, ""),
    ],
};

impl PolicySet {
    /// Compiles policies from files and from resources. Files are compiled all or none ([`PolicySet::load`]); a
    /// resource that cannot be compiled is [`Acceptance::Rejected`] and stays in the set. If a file and a resource have
    /// the same kind and name, the file is used. Unchanged resources are not compiled again, but taken from `previous`.
    pub fn load_with_resources(
        files: &[PolicyFile],
        read_schema: ReadSchemaFile<'_>,
        resources: &[PolicyResource],
        previous: Option<&PolicySet>,
    ) -> Result<PolicySet, Vec<InputError>> {
        let mut set = PolicySet::load(files, read_schema)?;
        if resources.is_empty() {
            return Ok(set);
        }
        let from_files: BTreeSet<(PolicyKind, &str)> =
            set.policies.iter().map(|policy| (policy.spec.kind(), &*policy.name)).collect();
        let known: HashMap<&str, &PolicyResourceState> =
            previous.iter().flat_map(|old| &old.resources).map(|state| (&*state.uid, state)).collect();
        // By kind and name, so that the order in which they were listed does not matter.
        let ordered: BTreeMap<(PolicyKind, &str), &PolicyResource> =
            resources.iter().map(|resource| ((resource.kind, &*resource.name), resource)).collect();
        let mut states: Vec<PolicyResourceState> = Vec::with_capacity(ordered.len());
        for (identity, resource) in &ordered {
            if from_files.contains(identity) {
                states.push(uncompiled_state(resource, Acceptance::ReplacedByFile));
                continue;
            }
            let earlier = known.get(&*resource.uid).filter(|state| resource.is_same_version(state));
            match earlier.filter(|state| state.policy.is_some()) {
                Some(earlier) => states.push((*earlier).clone()),
                None => states.push(compile_resource_or_broken_policy(resource)),
            }
        }
        let mut digest = Sha256::new();
        digest.update(set.digest.as_bytes());
        for policy in states.iter().filter_map(|state| state.policy.as_ref()) {
            digest.update((policy.json.len() as u64).to_be_bytes());
            digest.update(policy.json.as_bytes());
            set.policies.push(Arc::clone(policy));
        }
        set.digest = format!("{:x}", digest.finalize()).into();
        set.index = NamespaceIndex::from_policies(&set.policies);
        set.resources = states;
        Ok(set)
    }

    /// Returns the state of each policy resource, by kind and name: whether it is in force, and what is wrong with it.
    pub fn policy_resource_states(&self) -> &[PolicyResourceState] {
        &self.resources
    }

    /// True if no policy comes from a file, also if there are no policies.
    pub fn has_no_policies_from_files(&self) -> bool {
        let is_used = |state: &&PolicyResourceState| state.acceptance != Acceptance::ReplacedByFile;
        self.policies.len() == self.resources.iter().filter(is_used).count()
    }
}

/// Returns the state of a resource that was not compiled.
fn uncompiled_state(resource: &PolicyResource, acceptance: Acceptance) -> PolicyResourceState {
    PolicyResourceState {
        kind: resource.kind,
        name: resource.name.clone(),
        uid: resource.uid.clone(),
        generation: resource.generation,
        acceptance,
        warnings: Vec::new(),
        policy: None,
    }
}

/// Compiles a resource; if that is not possible, makes a policy that cannot be evaluated.
fn compile_resource_or_broken_policy(resource: &PolicyResource) -> PolicyResourceState {
    let document = doc::parse(&resource.json);
    let root = document.as_ref().map_or(Value::absent(), doc::Doc::root);
    let mut faults = PolicyFaults::default();
    if let Err(error) = &document {
        faults.report(&Path::ROOT, format!("cannot be read as JSON: {}", error.detail));
    }
    let compiled = compile_policy(resource.kind, root, &mut faults);
    let (warnings, errors): (Vec<PolicyFault>, Vec<PolicyFault>) =
        faults.0.into_iter().partition(|fault| fault.is_warning);
    let policy = match compiled {
        Some(policy) if errors.is_empty() => policy,
        _ => broken_policy(resource.kind, root.get("spec"), &errors),
    };
    let list: Vec<FieldError> = errors.iter().take(MAX_KEPT_ERRORS).map(field_error).collect();
    let acceptance = if list.is_empty() { Acceptance::Accepted } else { Acceptance::Rejected(list) };
    let policy = Policy {
        name: resource.name.clone(),
        source: format!("{}/{}", resource.kind.name(), resource.name).into(),
        generation: Some(resource.generation),
        json: policy_file_json(resource, root.get("spec")).into(),
        ..policy
    };
    PolicyResourceState {
        warnings: warnings.iter().map(field_error).collect(),
        policy: Some(Arc::new(policy)),
        ..uncompiled_state(resource, acceptance)
    }
}

/// Returns the errors because of which a resource would be [`Acceptance::Rejected`].
pub fn resource_errors(kind: PolicyKind, root: Value<'_>) -> Vec<FieldError> {
    capped_warnings_and_errors(kind, root).1.iter().map(field_error).collect()
}

/// Returns a finding for each error because of which a resource would be rejected, and for each warning. For the
/// webhook, which checks policies when they are written.
pub(crate) fn resource_findings(kind: PolicyKind, root: Value<'_>) -> Vec<Finding> {
    let finding = |rule, fault: PolicyFault| {
        let PolicyFault { at, on_key, message, .. } = fault;
        let finding = Finding::new(rule, at, ErrorType::Invalid, BadValue::Omitted, message);
        Finding { on_key, ..finding }
    };
    let (warnings, errors) = capped_warnings_and_errors(kind, root);
    let errors = errors.into_iter().map(|fault| finding(INVALID_POLICY, fault));
    errors.chain(warnings.into_iter().map(|fault| finding(UNDEFINED_EXPRESSION_FIELD, fault))).collect()
}

/// Returns the warnings about a resource and the errors because of which it would be rejected, at most
/// [`MAX_KEPT_ERRORS`] of each.
fn capped_warnings_and_errors(kind: PolicyKind, root: Value<'_>) -> (Vec<PolicyFault>, Vec<PolicyFault>) {
    let mut faults = PolicyFaults::default();
    compile_policy(kind, root, &mut faults);
    let (mut warnings, mut errors): (Vec<_>, Vec<_>) =
        faults.0.into_iter().partition(|fault| fault.is_warning);
    warnings.truncate(MAX_KEPT_ERRORS);
    errors.truncate(MAX_KEPT_ERRORS);
    (warnings, errors)
}

/// Compiles the policy in a resource and reports its errors; `None` if fields have the wrong types.
fn compile_policy(kind: PolicyKind, root: Value<'_>, faults: &mut PolicyFaults) -> Option<Policy> {
    let spec = root.get("spec");
    let spec_at = Path::ROOT.field("spec");
    faults.check_value(root, &FieldType::Object(&RESOURCE_FIELDS), &Path::ROOT);
    if spec.exists() {
        let bytes = spec.to_json().len();
        if bytes > MAX_SPEC_BYTES {
            faults.report(&spec_at, format!("has {bytes} bytes as JSON; the maximum is {MAX_SPEC_BYTES}"));
            return None;
        }
        faults.check_value(spec, &FieldType::Object(kind.spec_schema()), &spec_at);
        check_resource_only_constraints(spec, &FieldType::Object(kind.spec_schema()), &spec_at, faults);
    }
    if !faults.0.is_empty() {
        PolicyExpressions::read(spec, &spec_at, kind.applicable_kinds(), faults);
        return None;
    }
    Some(read_policy(kind, root, "".into(), &mut SchemaSource::without_files(), faults))
}

/// Reports errors that apply only to custom resources, not to policy files: lists that are too long, and schemas in
/// files.
fn check_resource_only_constraints(
    value: Value<'_>,
    ty: &FieldType,
    at: &Path<'_>,
    faults: &mut PolicyFaults,
) {
    match ty {
        FieldType::List(item) | FieldType::NonEmptyList(item) => {
            let (count, most) = (value.items().count(), max_items(item));
            if count > most {
                faults.report(at, format!("has {count} items; the maximum is {most}"));
                return;
            }
            for (index, element) in value.items().enumerate() {
                check_resource_only_constraints(element, item, &at.index(index), faults);
            }
            check_item_names_present_and_unique(value, item, at, faults);
        }
        FieldType::Object(ty) => {
            for field in ty.fields {
                let member = value.get(field.name);
                let member_at = at.field(field.name);
                if field.name == SCHEMA_FILE && member.exists() {
                    faults.report(
                        &member_at,
                        "is not supported in resources; put the JSON Schema into `schema`",
                    );
                } else {
                    check_resource_only_constraints(member, &field.ty, &member_at, faults);
                }
            }
        }
        _ => {}
    }
}

/// Reports items of a list whose names are missing or not unique.
fn check_item_names_present_and_unique(
    list: Value<'_>,
    item: &FieldType,
    at: &Path<'_>,
    faults: &mut PolicyFaults,
) {
    let FieldType::Object(ty) = item else { return };
    for field in ty.fields.iter().filter(|field| is_list_map_key(ty, field.name)) {
        let mut known: HashMap<&str, usize> = HashMap::new();
        for (index, element) in list.items().enumerate() {
            let key = element.get(field.name);
            let item_at = at.index(index);
            let key_at = item_at.field(field.name);
            if !key.exists() {
                faults.report(&key_at, "this field is required in resources");
            } else if let Some(first) = known.get(key.str()) {
                faults.report(&item_at, format!("{:?} is already the name of item {first}", key.str()));
            } else {
                known.insert(key.str(), index);
            }
        }
    }
}

/// True if the field identifies the items of a list in resources (`x-kubernetes-list-map-keys`), so that several
/// writers can own items of it.
pub fn is_list_map_key(ty: &ObjectSchema, field: &str) -> bool {
    ty.name == "MatchCondition" && field == "name"
}

/// Returns the maximum number of items of a list in resources.
pub fn max_items(item: &FieldType) -> usize {
    match item {
        FieldType::Object(ty) if ["MatchCondition", "Validation"].contains(&ty.name) => 64,
        _ => 1_024,
    }
}

/// The field that references a schema file, which resources do not have.
pub const SCHEMA_FILE: &str = "schemaFile";

pub(super) fn field_error(fault: &PolicyFault) -> FieldError {
    FieldError { field: fault.at.print(PathAudience::User), message: fault.message.clone() }
}

/// Returns the resource as the JSON that a policy file with the same policy would have, without the fields that the API
/// server adds.
fn policy_file_json(resource: &PolicyResource, spec: Value<'_>) -> String {
    let name = gofmt::json_string(&resource.name);
    let (kind, version) = (resource.kind.name(), super::fields::API_VERSION);
    let spec = if spec.exists() { spec.to_json() } else { "null".to_owned() };
    format!(r#"{{"apiVersion":"{version}","kind":"{kind}","metadata":{{"name":{name}}},"spec":{spec}}}"#)
}

#[cfg(test)]
mod tests;
