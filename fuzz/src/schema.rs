//! A JSON Schema in a policy, and parameters that it is about, with a zero byte between them: compiling and evaluating
//! end, whatever both say, and always in the same way.

use std::sync::Arc;

use tollgate_api::profile::Profile;
use tollgate_engine::{Attributes, Engine, LabelsIfKnown, PolicyFile, PolicySet, RuleSet, parse_json};

/// The schema and the parameters, with a zero byte between them.
pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (schema, parameters) = text.split_once('\0').unwrap_or((text, "{}"));
    if parse_json(schema).is_err() || parse_json(parameters).is_err() {
        return;
    }
    let policy = format!(
        r#"{{"apiVersion":"tollgate.dev/v1alpha1","kind":"ParameterPolicy","metadata":{{"name":"p"}},"spec":{{"schemas":[{{"schema":{schema}}}]}}}}"#
    );
    let file = PolicyFile { name: "policy.yaml".to_owned(), text: policy };
    let Ok(set) = PolicySet::load(&[file], &|_| Err("no such file".to_owned())) else { return };
    let claim = format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"a","namespace":"ml"}},"spec":{{"devices":{{"requests":[{{"name":"r","exactly":{{"deviceClassName":"gpu"}}}}],"config":[{{"opaque":{{"driver":"gpu.example.com","parameters":{parameters}}}}}]}}}}}}"#
    );
    let Ok(document) = parse_json(&claim) else { return };
    let profile = Profile::named("1.37").expect("a profile");
    let rules = RuleSet::parse("policy").expect("origins");
    let engine = Engine::new(vec![profile], rules).with_policies(Arc::new(set));
    let attributes = Attributes::for_create(document.root(), "ml", "2026-11-15T03:04:05Z");
    let said = || {
        let verdict = engine.validate(&attributes, LabelsIfKnown::Unknown);
        verdict
            .findings()
            .iter()
            .map(|found| format!("{} {}", found.finding.user_path(), found.message_without_path()))
            .collect::<Vec<_>>()
    };
    assert_eq!(said(), said(), "two answers about one value");
}
