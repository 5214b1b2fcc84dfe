//! Policies of files as custom resources: JSON Schemas from files become part of the policy, and conditions get names.
//!
//! Invariant: the resource has the same effect as the policy in its file.

use std::collections::HashSet;

use super::resource::{self, FieldError, SCHEMA_FILE};
use super::schema::{FieldType, ObjectSchema};
use super::{Policy, PolicyKind, PolicySet};
use tollgate_document::doc::{self, Value, ValueKind};
use tollgate_document::field::{Path, PathAudience};
use tollgate_formats::gofmt;

/// A policy of a file, converted to a custom resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyAsResource {
    /// Kind of the policy.
    pub kind: PolicyKind,
    /// Name of the policy.
    pub name: Box<str>,
    /// `file:line` of the policy.
    pub source: Box<str>,
    /// The custom resource as JSON.
    pub json: String,
    /// Reasons why the API server would reject the resource although the policy file loads: it exceeds a
    /// limit for resources.
    pub errors: Vec<FieldError>,
}

impl PolicySet {
    /// Returns the policies of files as custom resources, in the order of the files.
    pub fn file_policies_to_resources(&self) -> Vec<PolicyAsResource> {
        self.policies
            .iter()
            .filter(|policy| policy.generation.is_none())
            .map(|policy| to_resource(policy))
            .collect()
    }
}

fn to_resource(policy: &Policy) -> PolicyAsResource {
    let kind = policy.spec.kind();
    let mut json = String::new();
    // It was serialized by `Value::to_json`, so it parses.
    if let Ok(document) = doc::parse(&policy.json) {
        let root = document.root();
        let metadata: Vec<String> = ["name", "labels", "annotations"]
            .into_iter()
            .filter(|name| root.get("metadata").get(name).exists())
            .map(|name| format!("\"{name}\":{}", root.get("metadata").get(name).to_json()))
            .collect();
        let spec_at = Path::ROOT.field("spec");
        let spec = policy.resource_json(root.get("spec"), &FieldType::Object(kind.spec_schema()), &spec_at);
        let (version, kind) = (super::fields::API_VERSION, kind.name());
        let metadata = metadata.join(",");
        json = format!(
            r#"{{"apiVersion":"{version}","kind":"{kind}","metadata":{{{metadata}}},"spec":{spec}}}"#
        );
    }
    let parsed = doc::parse(&json);
    let errors = parsed.map(|document| resource::resource_errors(kind, document.root())).unwrap_or_default();
    PolicyAsResource { kind, name: policy.name.clone(), source: policy.source.clone(), json, errors }
}

impl Policy {
    /// Returns a part of the `spec` as a custom resource has it: schema files become `schema`, and conditions without a
    /// name get one.
    fn resource_json(&self, value: Value<'_>, ty: &FieldType, at: &Path<'_>) -> String {
        match (ty, value.kind()) {
            (FieldType::Object(ty), ValueKind::Object) => {
                format!("{{{}}}", self.members_json_with_inlined_schemas(value, ty, at).join(","))
            }
            (FieldType::List(item) | FieldType::NonEmptyList(item), ValueKind::Array) => {
                self.list_json_with_generated_names(value, item, at)
            }
            _ => value.to_json(),
        }
    }

    /// Returns the fields of an object as JSON members, in the order of the reference, which is easier to read than
    /// alphabetical order. A schema in a file becomes part of the policy.
    fn members_json_with_inlined_schemas(
        &self,
        object: Value<'_>,
        ty: &ObjectSchema,
        at: &Path<'_>,
    ) -> Vec<String> {
        let mut members = Vec::new();
        for field in ty.fields.iter().filter(|field| object.get(field.name).exists()) {
            let member = object.get(field.name);
            let member_at = at.field(field.name);
            if field.name == SCHEMA_FILE {
                let path = member_at.owned().print(PathAudience::User);
                let text = self.schema_files.iter().find(|(field, _)| *field == path).map(|(_, text)| text);
                members.extend(text.map(|text| format!("\"schema\":{text}")));
            } else {
                let json = self.resource_json(member, &field.ty, &member_at);
                members.push(format!("\"{}\":{json}", field.name));
            }
        }
        members
    }

    /// Returns a list as JSON. Items without a name, where resources require one, get a generated name.
    fn list_json_with_generated_names(&self, list: Value<'_>, item: &FieldType, at: &Path<'_>) -> String {
        let FieldType::Object(ty) = item else { return list.to_json() };
        let key =
            ty.fields.iter().find(|field| resource::is_list_map_key(ty, field.name)).map(|field| field.name);
        let used: HashSet<&str> =
            key.iter().flat_map(|key| list.items().map(|item| item.get(key).str())).collect();
        let mut free =
            (1..).map(|number| format!("condition-{number}")).filter(|name| !used.contains(&**name));
        let mut items = Vec::new();
        for (index, element) in list.items().enumerate() {
            let mut members = self.members_json_with_inlined_schemas(element, ty, &at.index(index));
            if let Some(key) = key.filter(|key| !element.get(key).exists()) {
                let name = gofmt::json_string(&free.next().unwrap_or_default());
                members.insert(0, format!("\"{key}\":{name}"));
            }
            items.push(format!("{{{}}}", members.join(",")));
        }
        format!("[{}]", items.join(","))
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::{PolicyFile, PolicySet};

    #[test]
    fn schemas_are_inlined_and_conditions_named() {
        let text = "apiVersion: tollgate.dev/v1alpha1\nkind: TaintPolicy\nmetadata: {name: t, uid: u, labels: {a: b}}\n\
                    spec: {data: [{key: a/b, schemaFile: s.json}, {key: c/d, schema: {type: object}}], \
                    matchConditions: [{expression: 'true'}, {name: condition-1, expression: 'true'}, {expression: 'true'}]}\n";
        let files = [PolicyFile { name: "t.yaml".to_owned(), text: text.to_owned() }];
        let set = PolicySet::load(&files, &|_| Ok("type: string\n".to_owned())).unwrap();
        let imported = set.file_policies_to_resources();
        assert_eq!(imported.len(), 1);
        assert_eq!(imported[0].errors, []);
        assert_eq!(
            imported[0].json,
            r#"{"apiVersion":"tollgate.dev/v1alpha1","kind":"TaintPolicy","metadata":{"name":"t","labels":{"a":"b"}},"spec":{"matchConditions":[{"name":"condition-2","expression":"true"},{"name":"condition-1","expression":"true"},{"name":"condition-3","expression":"true"}],"data":[{"key":"a/b","schema":{"type":"string"}},{"key":"c/d","schema":{"type":"object"}}]}}"#
        );
    }
}
