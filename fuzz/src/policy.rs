//! A policy file: errors have a position inside the file, and a set that loads answers requests.

use std::sync::Arc;

use tollgate_api::profile::Profile;
use tollgate_engine::policy::policy_errors_with_document_index;
use tollgate_engine::{Attributes, Engine, LabelsIfKnown, PolicyFile, PolicySet, RuleSet, parse_json};

const NOW: &str = "2026-11-15T03:04:05Z";

/// Objects that policies are asked about.
const OBJECTS: [&str; 3] = [
    r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"a","namespace":"ml"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu","tolerations":[{"key":"example.com/a","operator":"Exists","effect":"NoExecute","tolerationSeconds":60}]}}],"config":[{"opaque":{"driver":"gpu.example.com","parameters":{"kind":"x","list":[1,"a",{"b":null}]}}}]}}}"#,
    r#"{"apiVersion":"resource.k8s.io/v1beta2","kind":"DeviceTaintRule","metadata":{"name":"a"},"spec":{"deviceSelector":{"driver":"gpu.example.com","pool":"p"},"taint":{"key":"example.com/a","value":"b","effect":"NoExecute"}}}"#,
    r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"a"},"spec":{"driver":"gpu.example.com","nodeName":"n","pool":{"name":"p","generation":1,"resourceSliceCount":1},"devices":[{"name":"d","taints":[{"key":"example.com/a","effect":"NoSchedule"}]}]}}"#,
];

/// The input is the text of a file.
pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let file = PolicyFile { name: "policy.yaml".to_owned(), text: text.to_owned() };
    let no_files = |_: &str| Err("no such file".to_owned());
    // A line of YAML ends with a line feed, a carriage return, or both.
    let lines = text.replace("\r\n", "\n").split(['\n', '\r']).count();
    for (_, error) in policy_errors_with_document_index(&file, &no_files) {
        assert!(error.line <= lines, "line {} of {lines}: {error}", error.line);
    }
    let Ok(set) = PolicySet::load(&[file], &no_files) else { return };
    let profile = Profile::named("1.37").expect("a profile");
    let rules = RuleSet::parse("policy").expect("origins");
    let engine = Engine::new(vec![profile], rules).with_policies(Arc::new(set));
    for object in OBJECTS {
        let document = parse_json(object).expect("JSON");
        let attributes = Attributes::for_create(document.root(), "ml", NOW);
        for labels in [LabelsIfKnown::Unknown, LabelsIfKnown::Known(tollgate_engine::Value::absent())] {
            let verdict = engine.validate(&attributes, labels);
            _ = engine.mutate(&attributes, labels);
            _ = verdict.is_allowed();
        }
    }
}
