//! JSON that policies speak about, through the engine: keys that Go decoders take for others, and what must not
//! explode.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

use std::sync::Arc;

use tollgate_api::profile::Profile;
use tollgate_document::doc::{self, Value};
use tollgate_engine::engine::{Attributes, Diagnostic, Engine, LabelsIfKnown, Operation};
use tollgate_engine::policy::{PolicyFile, PolicySet};
use tollgate_engine::rules::{FindingLevel, RuleSet};

const PARAMETERS: &str = r"
apiVersion: tollgate.dev/v1alpha1
kind: ParameterPolicy
metadata: {name: gpu-config}
spec:
  match: {drivers: [gpu.example.com]}
  schemas:
  - apiVersion: gpu.example.com/v1
    kind: GpuConfig
    schema:
      type: object
      properties:
        sharing: {type: object, properties: {strategy: {enum: [TimeSlicing]}}}
        labels: {type: object, additionalProperties: {type: string}}
  - {apiVersion: gpu.example.com/v1, kind: Free}
  unknown: UNKNOWN
";

fn engine(policies: &str, profile: &str) -> Engine {
    let text = PolicyFile { name: "p.yaml".to_owned(), text: policies.to_owned() };
    let set = PolicySet::load(&[text], &|path| Err(format!("no file {path}"))).expect("policies that load");
    let rules = RuleSet::parse("policy").expect("an origin");
    Engine::new(vec![Profile::named(profile).expect("a profile")], rules).with_policies(Arc::new(set))
}

fn findings_for(engine: &Engine, object: &str, old: Option<&str>) -> Vec<Diagnostic> {
    let object = doc::parse(object).expect("JSON");
    let old = old.map(|old| doc::parse(old).expect("JSON"));
    let admission = Attributes {
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        subresource: "",
        object: object.root(),
        old_object: old.as_ref().map(doc::Doc::root),
        namespace: "",
        user: Value::absent(),
        now: "2026-06-01T00:00:00Z".into(),
    };
    engine.validate(&admission, LabelsIfKnown::Unknown).findings().to_vec()
}

/// A class with the given parameters for a driver.
fn class(driver: &str, parameters: &str) -> String {
    format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{{"name":"c","resourceVersion":"1"}},"spec":{{"config":[{{"opaque":{{"driver":"{driver}","parameters":{parameters}}}}}]}}}}"#
    )
}

/// Parameters with an apiVersion and kind.
fn typed(rest: &str) -> String {
    format!(r#"{{"apiVersion":"gpu.example.com/v1","kind":"GpuConfig"{rest}}}"#)
}

fn messages(findings: &[Diagnostic]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}

#[test]
fn odd_keys_in_opaque_parameters_are_refused() {
    for unknown in ["Allow", "Deny"] {
        let engine = engine(&PARAMETERS.replace("UNKNOWN", unknown), "1.37");
        let verdict = |parameters: &str| {
            let found = findings_for(&engine, &class("gpu.example.com", parameters), None);
            found.iter().any(|diagnostic| diagnostic.level == FindingLevel::Deny)
        };
        for odd in [
            r#"{"apiVersion":"gpu.example.com/v1","kind":"Other","kind":"GpuConfig"}"#,
            r#"{"apiVersion":"gpu.example.com/v1","kind":"GpuConfig","kind":"Other"}"#,
            r#"{"apiVersion":"gpu.example.com/v1","kind":"Other","\u006bind":"GpuConfig"}"#,
            r#"{"apiVersion":"gpu.example.com/v1","KIND":"GpuConfig","sharing":{"strategy":"MPS"}}"#,
            r#"{"apiVersion":"gpu.example.com/v1","kind":"Other","\u212aind":"GpuConfig"}"#,
            r#"{"apiVersion":"gpu.example.com/v1","kind":"Free","Kind":"GpuConfig"}"#,
            r#"{"apiVersion":"x/v1","apiver\u017fion":"gpu.example.com/v1","kind":"GpuConfig"}"#,
            r#"{"apiVersion":"gpu.example.com/v1","kind":"Free","x":{"a":1,"a":2}}"#,
            &typed(r#","Sharing":{"strategy":"MPS"}"#),
            &typed(r#","sharing":{"Strategy":"MPS"}"#),
            &typed(r#","sharing":{"strategy":"MPS"},"sharing":{}"#),
            &typed(r#","sharing":{},"sharing":{"strategy":"MPS"}"#),
            &typed(r#","labels":{"a":"b","a":"c"}"#),
        ] {
            assert!(verdict(odd), "{unknown}: {odd}");
        }
        for fine in [
            typed(r#","sharing":{"strategy":"TimeSlicing"}"#),
            typed(r#","labels":{"a":"b","A":"c","Sharing":"d","KIND":"e"}"#),
            r#"{"apiVersion":"gpu.example.com/v1","kind":"Free","Sharing":1,"sharing":2}"#.to_owned(),
        ] {
            assert!(!verdict(&fine), "{unknown}: {fine}");
        }
        // Of another driver, the policy says nothing.
        let odd = r#"{"KIND":"GpuConfig","kind":"a","kind":"b"}"#;
        assert!(findings_for(&engine, &class("nic.example.com", odd), None).is_empty());
    }
}

#[test]
fn odd_keys_say_where_and_why() {
    let engine = engine(&PARAMETERS.replace("UNKNOWN", "Allow"), "1.37");
    let told = |parameters: &str| {
        messages(&findings_for(&engine, &class("gpu.example.com", parameters), None)).join("\n")
    };
    assert_eq!(
        told(r#"{"apiVersion":"gpu.example.com/v1","kind":"Other","kind":"GpuConfig"}"#),
        "spec.config[0].opaque.parameters.kind: key \"kind\" is set twice, and decoders differ in which value they \
         use; see policy gpu-config at p.yaml:2"
    );
    assert_eq!(
        told(&typed(r#","Sharing":{"strategy":"MPS"}"#)),
        "spec.config[0].opaque.parameters.Sharing: key \"Sharing\" differs from \"sharing\" only in case, and \
         Go decoders read it as \"sharing\": write \"sharing\"; see policy gpu-config at p.yaml:2"
    );
}

#[test]
fn odd_keys_have_the_action_of_the_policy_and_ratchet() {
    let policies = PARAMETERS.replace("UNKNOWN", "Allow");
    let warning = engine(&policies.replace("  match:", "  action: Warn\n  match:"), "1.37");
    let odd = class("gpu.example.com", &typed(r#","Sharing":{"strategy":"MPS"}"#));
    assert!(
        findings_for(&warning, &odd, None).iter().all(|diagnostic| diagnostic.level == FindingLevel::Warn)
    );
    let engine = engine(&policies, "1.37");
    let stored = class("gpu.example.com", &typed(r#","sharing":{"strategy":"MPS"},"sharing":{}"#));
    let elsewhere = stored.replace(r#""spec":{"#, r#""spec":{"extendedResourceName":"example.com/gpu","#);
    assert_eq!(
        messages(&findings_for(&engine, &elsewhere, Some(&stored))),
        [""; 0],
        "what was stored is excused"
    );
    for changed in [
        typed(r#","sharing":{"strategy":"MPS"},"sharing":{"strategy":"X"}"#),
        typed(r#","sharing":{"strategy":"X"},"sharing":{}"#),
        typed(r#","sharing":{"strategy":"MPS"},"sharing":{},"x":1"#),
        typed(r#","Sharing":{"strategy":"MPS"}"#),
    ] {
        let changed = class("gpu.example.com", &changed);
        assert!(!findings_for(&engine, &changed, Some(&stored)).is_empty(), "{changed}");
    }
    let clean = class("gpu.example.com", &typed(r#","sharing":{}"#));
    assert!(findings_for(&engine, &clean, Some(&stored)).is_empty(), "putting it right");
    assert!(!findings_for(&engine, &stored, Some(&clean)).is_empty(), "adding a second key is a change");
}

#[test]
fn odd_keys_of_a_driver_that_is_not_known_count_if_they_may_be_known_ones() {
    let policies = PARAMETERS.replace("UNKNOWN", "Deny");
    let engine = engine(&policies, "kep-5055");
    let claim = |parameters: &str| {
        format!(
            r#"{{"apiVersion":"cdi.k8s.io/v1alpha1","kind":"ResourceClaim","metadata":{{"name":"c"}},"spec":{{"resourceClassName":"x","parameters":{parameters}}}}}"#
        )
    };
    let found = |parameters: &str| findings_for(&engine, &claim(parameters), None);
    assert!(found(r#"{"kind":"a","KIND":"b"}"#).is_empty());
    assert!(!found(r#"{"apiVersion":"gpu.example.com/v1","kind":"Other","KIND":"GpuConfig"}"#).is_empty());
}

#[test]
fn odd_keys_in_taint_data_are_refused() {
    let engine = engine(
        r"
apiVersion: tollgate.dev/v1alpha1
kind: TaintPolicy
metadata: {name: health}
spec:
  data:
  - {key: gpu.example.com/health, schema: {properties: {celsius: {maximum: 120}}}}
  - {key: gpu.example.com/free, required: true}
",
        "kep-5055-r2",
    );
    let slice = |key: &str, data: &str| {
        format!(
            r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"s"}},"spec":{{"driver":"gpu.example.com","nodeName":"n","pool":{{"name":"n","generation":1,"resourceSliceCount":1}},"taints":[{{"device":"d","taint":{{"key":"gpu.example.com/{key}","effect":"NoSchedule","data":{data}}}}}]}}}}"#
        )
    };
    for (key, data) in [
        ("health", r#"{"celsius":90,"celsius":150}"#),
        ("health", r#"{"Celsius":150}"#),
        ("health", r#"{"celsius":90,"Celsiu\u017f":150}"#),
        ("free", r#"{"a":{"b":1,"b":2}}"#),
    ] {
        assert!(!findings_for(&engine, &slice(key, data), None).is_empty(), "{key} {data}");
    }
    for (key, data) in [("health", r#"{"celsius":90,"x":{"Celsius":150}}"#), ("other", r#"{"a":1,"a":2}"#)] {
        assert!(findings_for(&engine, &slice(key, data), None).is_empty(), "{key} {data}");
    }
}

/// A violation in a stored value excuses only the same violation of the same value, even if the list of
/// violations is truncated.
#[test]
fn stored_faults_excuse_no_other_value() {
    let engine = engine(
        &PARAMETERS
            .replace("UNKNOWN", "Deny")
            .replace("gpu.example.com]", "gpu.example.com, other.example.com]"),
        "1.36",
    );
    let typed = |rest: &str| {
        class(
            "gpu.example.com",
            &format!(r#"{{"apiVersion":"gpu.example.com/v1","kind":"GpuConfig",{rest}}}"#),
        )
    };
    let denies = |new: &str, old: &str| {
        findings_for(&engine, new, Some(old)).iter().any(|diagnostic| diagnostic.level == FindingLevel::Deny)
    };
    let labels = |count: usize| {
        let all: Vec<String> = (0..count).map(|number| format!(r#""l{number}":1"#)).collect();
        format!(r#""labels":{{{}}}"#, all.join(","))
    };
    let mps = r#","sharing":{"strategy":"MPS"}"#;
    // More faults than are listed, and values that cannot be looked into.
    let deep = format!(r#""y":{}1{},"pad":"{}""#, "[".repeat(200), "]".repeat(200), "x".repeat(9_000));
    for stored in [labels(3), labels(16), labels(40), deep] {
        let old = typed(&stored);
        assert!(!denies(&old.replace(r#""name":"c""#, r#""name":"c","labels":{"a":"b"}"#), &old));
        assert!(denies(&typed(&format!("{stored}{mps}")), &old), "{}", stored.len());
    }
    // The same parameters for another driver, and other content of a type that is not known.
    let bad = r#"{"apiVersion":"gpu.example.com/v1","kind":"GpuConfig","sharing":{"strategy":"MPS"}}"#;
    assert!(denies(&class("other.example.com", bad), &class("gpu.example.com", bad)));
    let unknown = |content: &str| {
        class("gpu.example.com", &format!(r#"{{"apiVersion":"z/v1","kind":"Z","a":{content}}}"#))
    };
    assert!(denies(&unknown("2"), &unknown("1")));
}

/// A policy of each kind whose expressions read the parameters of a class or the data of a taint.
fn looking(kind: &str, rest: &str) -> String {
    format!("{{apiVersion: tollgate.dev/v1alpha1, kind: {kind}, metadata: {{name: p}}, spec: {{{rest}}}}}\n")
}

const SHARED: &str =
    "object.spec.config.all(c, !has(c.opaque.parameters.sharing) || c.opaque.parameters.sharing == 'a')";

#[test]
fn expressions_see_the_parameters_that_a_driver_sees() {
    let condition = "object.spec.config.exists(c, c.opaque.parameters['sharing'] == 'b')";
    let policies = [
        looking("ParameterPolicy", &format!("validations: [{{expression: \"{SHARED}\"}}]")),
        looking(
            "ParameterPolicy",
            &format!("failurePolicy: Ignore, validations: [{{expression: \"{SHARED}\"}}]"),
        ),
        looking(
            "ParameterPolicy",
            &format!(
                "matchConditions: [{{expression: \"{condition}\"}}], validations: [{{expression: 'false'}}]"
            ),
        ),
    ];
    for policies in &policies {
        let engine = engine(policies, "1.37");
        for odd in [
            r#"{"sharing":"a","sharing":"b"}"#,
            r#"{"sharing":"a","\u0073haring":"b"}"#,
            r#"{"sharing":"a","Sharing":"b"}"#,
            r#"{"SHARING":"b"}"#,
            "{\"sharing\":\"a\",\"\u{17f}haring\":\"b\"}",
            r#"{"sharing":"a","x":[{"y":{"sharinG":"b"}}]}"#,
            r#"{"sharing":"a","x":{"k":1,"k":2}}"#,
            "{\"sharing\":\"a\",\"x\":{\"k\":1,\"\u{212a}\":2}}",
        ] {
            let found = findings_for(&engine, &class("gpu.example.com", odd), None);
            assert!(found.iter().any(|diagnostic| diagnostic.level == FindingLevel::Deny), "{policies}{odd}");
            let stored = class("gpu.example.com", odd);
            let other = stored.replace(r#""config":["#, r#""selectors":[],"config":["#);
            let message = messages(&findings_for(&engine, &other, Some(&stored)));
            assert!(message.iter().all(|text| !text.contains("Go decoders")), "stored: {message:?}");
            let ordered = r#"{"sharing":"a","z":1}"#;
            assert_eq!(messages(&findings_for(&engine, &class("gpu.example.com", ordered), None)), [""; 0]);
        }
    }
    // Names mean something else where no expression looks into parameters.
    let elsewhere = "!has(object.metadata.labels) || object.metadata.name != 'x'";
    let engine = engine(
        &looking("ParameterPolicy", &format!("validations: [{{expression: \"{elsewhere}\"}}]")),
        "1.37",
    );
    let named = class("gpu.example.com", r#"{"Name":"x","name":"y"}"#);
    assert_eq!(messages(&findings_for(&engine, &named, None)), [""; 0]);
    let twice = class("gpu.example.com", r#"{"a":"x","a":"y"}"#);
    assert_eq!(findings_for(&engine, &twice, None).len(), 1, "no decoder means that");
}

#[test]
fn expressions_see_the_data_of_taints_that_others_see() {
    let expression = "!has(object.spec.taint.data) || object.spec.taint.data.level != 'high'";
    for kind in ["TaintPolicy", "TaintRulePolicy"] {
        let policy = looking(kind, &format!("validations: [{{expression: \"{expression}\"}}]"));
        let engine = engine(&policy, "kep-5055-r2");
        let rule = |data: &str| {
            format!(
                r#"{{"apiVersion":"resource.k8s.io/v1beta2","kind":"DeviceTaintRule","metadata":{{"name":"r"}},"spec":{{"deviceSelector":{{"driver":"d"}},"taint":{{"key":"a/b","effect":"None","data":{data}}}}}}}"#
            )
        };
        assert_eq!(messages(&findings_for(&engine, &rule(r#"{"level":"low"}"#), None)), [""; 0]);
        for odd in [r#"{"level":"low","Level":"high"}"#, r#"{"level":"low","level":"high"}"#] {
            let found = messages(&findings_for(&engine, &rule(odd), None));
            assert!(found.iter().any(|text| text.contains("spec.taint.data")), "{kind} {odd}: {found:?}");
        }
    }
}
