//! The policy core, through the engine: what is allowed, what is said, what is added, and what does not load.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_macros, reason = "numbers for people, with --nocapture")]

use std::sync::Arc;

use tollgate_api::profile::Profile;
use tollgate_document::doc::{self, Value};
use tollgate_engine::engine::{Attributes, Diagnostic, Engine, LabelsIfKnown, Operation, json_patch};
use tollgate_engine::policy::{PolicyFile, PolicySet};
use tollgate_engine::rules::{FindingLevel, RuleSet};

const NOW: &str = "2026-06-01T00:00:00Z";

fn files(texts: &[(&str, &str)]) -> Vec<PolicyFile> {
    texts
        .iter()
        .map(|(name, text)| PolicyFile { name: (*name).to_owned(), text: (*text).to_owned() })
        .collect()
}

fn load(texts: &[(&str, &str)]) -> Result<PolicySet, Vec<String>> {
    PolicySet::load(&files(texts), &|path| Err(format!("no file {path}")))
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn engine(policies: &str) -> Engine {
    let set = load(&[("policies/p.yaml", policies)]).expect("policies that load");
    let rules = RuleSet::parse("policy").expect("an origin");
    Engine::new(vec![Profile::named("kep-5055").expect("a profile")], rules).with_policies(Arc::new(set))
}

/// A TolerationPolicy with that spec.
fn policy(name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    )
}

fn claim(namespace: &str, tolerations: &str) -> String {
    format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"c","namespace":"{namespace}"}},"spec":{{"devices":{{"requests":[{{"name":"r","exactly":{{"deviceClassName":"gpu","tolerations":[{tolerations}]}}}}]}}}}}}"#
    )
}

struct Ask<'a> {
    object: &'a str,
    old: Option<&'a str>,
    labels: Option<&'a str>,
    user: &'a str,
}

impl<'a> Ask<'a> {
    fn about(object: &'a str) -> Ask<'a> {
        Ask { object, old: None, labels: None, user: "{}" }
    }

    fn with<T>(&self, ask: impl FnOnce(&Attributes<'_>, LabelsIfKnown<'_>) -> T) -> T {
        let object = doc::parse(self.object).expect("JSON");
        let old = self.old.map(|old| doc::parse(old).expect("JSON"));
        let labels = self.labels.map(|labels| doc::parse(labels).expect("JSON"));
        let user = doc::parse(self.user).expect("JSON");
        ask(
            &Attributes {
                operation: if old.is_some() { Operation::Update } else { Operation::Create },
                subresource: "",
                object: object.root(),
                old_object: old.as_ref().map(doc::Doc::root),
                namespace: "",
                user: if self.user == "{}" { Value::absent() } else { user.root() },
                now: NOW.into(),
            },
            labels.as_ref().map_or(LabelsIfKnown::Unknown, |labels| LabelsIfKnown::Known(labels.root())),
        )
    }

    fn of(&self, engine: &Engine) -> Vec<Diagnostic> {
        self.with(|admission, labels| engine.validate(admission, labels).findings().to_vec())
    }
}

fn judge(engine: &Engine, object: &str) -> Vec<Diagnostic> {
    Ask::about(object).of(engine)
}

const DEGRADED: &str = r#"{"key":"gpu.example.com/degraded","operator":"Exists","effect":"NoSchedule"}"#;

#[test]
fn a_refusal_names_field_toleration_nearest_entry_and_policy() {
    let research = "\
apiVersion: tollgate.dev/v1alpha1
kind: TolerationPolicy
metadata: {name: research}
spec:
  match: {namespaces: [\"ml-*\"]}
  allow:
  - key: gpu.example.com/degraded
    values: [thermal]
    effects: [NoSchedule, NoExecute]
    maxTolerationSeconds: 600
  - {key: nic.example.com/*}
  deny:
  - {key: gpu.example.com/lost, reason: nothing runs on a lost device}
";
    let engine = engine(research);
    let table = [
        (
            r#"{"key":"gpu.example.com/degraded","operator":"Exists","effect":"NoExecute"}"#,
            "spec.devices.requests[0].exactly.tolerations[0]: toleration {key: gpu.example.com/degraded, \
             operator: Exists, effect: NoExecute} in namespace \"ml-a\" is not allowed: the closest entry, allow[0] \
             {key: gpu.example.com/degraded, values: [thermal], effects: [NoSchedule, NoExecute], \
             maxTolerationSeconds: 600} in policy research at policies/p.yaml:1, does not allow every value, but \
             `operator: Exists` matches all of them, and limits NoExecute to 600s; allowed instead: {key: \
             gpu.example.com/degraded, operator: Equal, value: thermal, effect: NoExecute, tolerationSeconds: 600}",
        ),
        (
            r#"{"key":"gpu.example.com/lost","operator":"Exists","effect":"NoSchedule"}"#,
            "spec.devices.requests[0].exactly.tolerations[0]: toleration {key: gpu.example.com/lost, \
             operator: Exists, effect: NoSchedule} in namespace \"ml-a\" is denied: it matches taints denied by deny[0] \
             {key: gpu.example.com/lost} (nothing runs on a lost device) in policy research at policies/p.yaml:1",
        ),
        (
            r#"{"operator":"Exists","effect":"NoSchedule"}"#,
            "spec.devices.requests[0].exactly.tolerations[0]: toleration {operator: Exists, effect: \
             NoSchedule} in namespace \"ml-a\" is not allowed: the closest entry, allow[1] {key: \
             \"nic.example.com/*\"} in policy research at policies/p.yaml:1, does not allow every key, but a toleration \
             without a key matches all of them",
        ),
    ];
    for (toleration, expected) in table {
        let findings = judge(&engine, &claim("ml-a", toleration));
        let texts: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(texts.iter().any(|text| text == expected), "{toleration}\n{expected}\n{texts:#?}");
        for diagnostic in &findings {
            assert_eq!(diagnostic.policy.as_deref(), Some("policies/p.yaml:1 research"));
            assert_eq!(diagnostic.level, FindingLevel::Deny);
        }
        assert!(judge(&engine, &claim("other", toleration)).is_empty(), "another namespace");
    }
}

#[test]
fn a_refusal_says_whom_to_ask_and_every_reason() {
    let engine = engine(&policy(
        "p",
        "{contact: gpu-team, docs: https://wiki.example.com/gpu, allow: [], \
         deny: [{key: gpu.example.com/*, reason: these GPUs are sold by the hour}]}",
    ));
    let findings = judge(&engine, &claim("a", DEGRADED));
    let details: Vec<&str> = findings.iter().map(|diagnostic| &*diagnostic.finding.detail).collect();
    assert_eq!(details.len(), 2, "{details:#?}");
    let policy = "policy p at policies/p.yaml:2 (contact: gpu-team, docs: https://wiki.example.com/gpu)";
    assert!(details.iter().all(|detail| detail.contains(policy)), "{details:#?}");
    assert!(
        details.iter().any(|detail| detail.contains("(these GPUs are sold by the hour)")),
        "{details:#?}"
    );
}

#[test]
fn an_absent_allow_list_is_no_restriction_and_an_empty_one_allows_nothing() {
    let object = claim("a", DEGRADED);
    assert!(judge(&engine(&policy("p", "{}")), &object).is_empty(), "neither allow nor deny");
    assert!(judge(&engine(&policy("p", "{deny: [{key: x/y}]}")), &object).is_empty(), "only deny");
    let nothing = judge(&engine(&policy("p", "{allow: []}")), &object);
    assert_eq!(nothing.len(), 1);
    assert!(
        nothing[0].finding.detail.contains(
            "is not allowed: policy p at policies/p.yaml:2 allows no tolerations in this namespace"
        ),
        "{nothing:#?}"
    );
    assert!(judge(&engine(&policy("p", "{allow: []}")), &claim("a", "")).is_empty(), "no tolerations");
}

#[test]
fn policies_of_one_action_add_up_and_those_of_others_do_not() {
    let both = |second: &str| {
        let nothing = policy("nothing", "{allow: []}");
        let other = policy("other", &format!("{{action: {second}, allow: [{{key: gpu.example.com/*}}]}}"));
        engine(&format!("{nothing}{other}"))
    };
    let object = claim("a", DEGRADED);
    assert!(judge(&both("Deny"), &object).is_empty(), "what another policy allows is allowed");
    let warned = judge(&both("Warn"), &object);
    assert_eq!(warned.iter().map(|diagnostic| diagnostic.level).collect::<Vec<_>>(), [FindingLevel::Deny]);
    let denied = format!(
        "{}{}",
        policy("a", "{allow: [{key: \"*\"}]}"),
        policy("b", "{deny: [{key: gpu.example.com/*}]}")
    );
    assert_eq!(judge(&engine(&denied), &object).len(), 1, "a deny entry wins");
}

#[test]
fn union_over_effects_across_policies() {
    let schedule = policy("one", "{allow: [{key: gpu.example.com/*, effects: [NoSchedule]}]}");
    let execute = policy("two", "{allow: [{key: gpu.example.com/*, effects: [NoExecute]}]}");
    let every = claim("a", r#"{"key":"gpu.example.com/degraded","operator":"Exists"}"#);
    assert!(judge(&engine(&format!("{schedule}{execute}")), &every).is_empty());
    let one = judge(&engine(&schedule), &every);
    assert!(one[0].finding.detail.contains("does not allow effect NoExecute"), "{one:#?}");
}

#[test]
fn actions_give_the_level() {
    for (action, level) in
        [("Deny", FindingLevel::Deny), ("Warn", FindingLevel::Warn), ("Audit", FindingLevel::Audit)]
    {
        let engine = engine(&policy("p", &format!("{{action: {action}, allow: []}}")));
        let findings = judge(&engine, &claim("a", DEGRADED));
        assert_eq!(
            findings.iter().map(|diagnostic| diagnostic.level).collect::<Vec<_>>(),
            [level],
            "{action}"
        );
    }
}

#[test]
fn exempt_users_are_not_bound_and_their_grants_stay() {
    let exempt = "exempt: {groups: [gpu-oncall], serviceAccounts: [\"kube-system/*\"]}";
    let engine_of = |others: &str| {
        engine(&format!(
            "{}{others}",
            policy("p", &format!("{{{exempt}, allow: [{{key: gpu.example.com/*}}]}}"))
        ))
    };
    let object = claim("a", r#"{"key":"x/y","operator":"Exists","effect":"NoSchedule"}"#);
    let oncall = r#"{"username":"ann","groups":["gpu-oncall"]}"#;
    let alone = engine_of("");
    assert_eq!(judge(&alone, &object).len(), 1, "nobody is known");
    assert!(Ask { user: oncall, ..Ask::about(&object) }.of(&alone).is_empty());
    let account = r#"{"username":"system:serviceaccount:kube-system:x"}"#;
    assert!(Ask { user: account, ..Ask::about(&object) }.of(&alone).is_empty());
    let degraded = claim("a", DEGRADED);
    let with_other = engine_of(&policy("q", "{allow: []}"));
    assert!(Ask { user: oncall, ..Ask::about(&degraded) }.of(&with_other).is_empty(), "p still grants");
    assert_eq!(Ask { user: oncall, ..Ask::about(&object) }.of(&with_other).len(), 1, "q still binds");
}

#[test]
fn entries_expire() {
    let until = |time: &str| {
        engine(&policy("p", &format!("{{allow: [{{key: gpu.example.com/*, expires: \"{time}\"}}]}}")))
    };
    assert!(judge(&until("2026-06-01T00:00:01Z"), &claim("a", DEGRADED)).is_empty());
    let over = judge(&until("2026-06-01T00:00:00Z"), &claim("a", DEGRADED));
    assert!(over[0].finding.detail.contains("expired at 2026-06-01T00:00:00Z"), "{over:#?}");
    let denied =
        engine(&policy("p", "{deny: [{key: gpu.example.com/*, expires: \"2026-01-01T00:00:00Z\"}]}"));
    assert!(judge(&denied, &claim("a", DEGRADED)).is_empty());
}

#[test]
fn labels_select_and_a_missing_answer_is_an_error() {
    let engine = engine(&policy("p", "{match: {namespaceSelector: {matchLabels: {team: ml}}}, allow: []}"));
    let object = claim("a", DEGRADED);
    let unknown = judge(&engine, &object);
    assert_eq!(unknown[0].finding.rule.id, "policy-lookup");
    assert_eq!(unknown[0].level, FindingLevel::Deny);
    assert!(Ask { labels: Some("{}"), ..Ask::about(&object) }.of(&engine).is_empty());
    let known = Ask { labels: Some(r#"{"team":"ml"}"#), ..Ask::about(&object) }.of(&engine);
    assert_eq!(known[0].finding.rule.id, "policy-toleration");
}

fn patched(engine: &Engine, object: &str) -> String {
    Ask::about(object).with(|admission, labels| json_patch(&engine.mutate(admission, labels).edits))
}

#[test]
fn defaults_are_added_once_and_are_allowed() {
    let engine = engine(&policy(
        "p",
        "{allow: [], defaults: [{key: gpu.example.com/degraded, operator: Exists, effect: NoSchedule}, \
         {key: a/b, value: c, effect: NoExecute, tolerationSeconds: 60}]}",
    ));
    let complete = r#""allocationMode":"ExactCount","count":1"#;
    let body = |tolerations: &str| {
        format!(
            r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"c"}},"spec":{{"devices":{{"requests":[{{"name":"r","exactly":{{"deviceClassName":"gpu",{complete}{tolerations}}}}}]}}}}}}"#
        )
    };
    let both = r#"{"key":"gpu.example.com/degraded","operator":"Exists","effect":"NoSchedule"},{"key":"a/b","operator":"Equal","value":"c","effect":"NoExecute","tolerationSeconds":60}"#;
    let at = "/spec/devices/requests/0/exactly/tolerations";
    assert_eq!(patched(&engine, &body("")), format!(r#"[{{"op":"add","path":"{at}","value":[{both}]}}]"#));
    // What is there already, or inside of what is there, is not added.
    let wide = body(r#","tolerations":[{"key":"gpu.example.com/degraded","operator":"Exists"}]"#);
    assert_eq!(
        patched(&engine, &wide),
        format!(
            r#"[{{"op":"add","path":"{at}/1","value":{{"key":"a/b","operator":"Equal","value":"c","effect":"NoExecute","tolerationSeconds":60}}}}]"#
        )
    );
    let filled = body(&format!(r#","tolerations":[{both}]"#));
    assert_eq!(patched(&engine, &filled), "[]", "idempotent");
    assert!(judge(&engine, &filled).is_empty(), "allowed by being defaults");
    let fifteen: Vec<String> =
        (0..15).map(|n| format!(r#"{{"key":"x/{n}","operator":"Exists","effect":"NoSchedule"}}"#)).collect();
    let crowded = body(&format!(r#","tolerations":[{}]"#, fifteen.join(",")));
    assert_eq!(patched(&engine, &crowded).matches("\"op\"").count(), 1, "never past 16");
    let update = Ask { old: Some(&filled), ..Ask::about(&filled) };
    assert_eq!(
        update.with(|admission, labels| json_patch(&engine.mutate(admission, labels).edits)),
        "[]",
        "never on an update"
    );
}

#[test]
fn templates_and_alternatives_get_defaults_too() {
    let engine = engine(&policy("p", "{defaults: [{key: a/b, operator: Exists, effect: NoSchedule}]}"));
    let template = r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate","metadata":{"name":"t"},"spec":{"spec":{"devices":{"requests":[{"name":"r","firstAvailable":[{"name":"s","deviceClassName":"g","allocationMode":"All","tolerations":null}]}]}}}}"#;
    assert_eq!(
        patched(&engine, template),
        r#"[{"op":"replace","path":"/spec/spec/devices/requests/0/firstAvailable/0/tolerations","value":[{"key":"a/b","operator":"Exists","effect":"NoSchedule"}]}]"#
    );
}

#[test]
fn faults_are_told_with_line_and_column() {
    let broken = "\
apiVersion: tollgate.dev/v1alpha1
kind: TolerationPolicy
metadata: {name: p}
spec:
  match: {namespace: [a]}
  action: Forbid
  allow:
  - key: gpu.*/x
    effects: [NoSchedul]
    expires: tomorrow
  deny:
  - {key: a/b, maxTolerationSeconds: 5}
  defaults:
";
    let expected = [
        "b.yaml:5:11: spec.match.namespace: unknown field; did you mean `namespaces`?",
        "b.yaml:6:11: spec.action: \"Forbid\" is not supported; use `Deny`, `Warn` or `Audit`",
        "b.yaml:8:10: spec.allow[0].key: \"gpu.*/x\" is not valid; use a key, `prefix/*` or `*`",
        "b.yaml:9:15: spec.allow[0].effects[0]: \"NoSchedul\" is not supported; use `None`, `NoSchedule` or `NoExecute`",
        "b.yaml:10:14: spec.allow[0].expires: \"tomorrow\" is not a time in RFC 3339, such as 2027-01-01T00:00:00Z",
        "b.yaml:12:16: spec.deny[0].maxTolerationSeconds: unknown field; known fields: key, values, effects, reason, expires",
        "b.yaml:13:3: spec.defaults: no value; expected a list",
    ];
    assert_eq!(load(&[("b.yaml", broken)]).unwrap_err(), expected);
    let table = [
        ("a: [", "x.yaml:1:4: yaml: unclosed bracket"),
        (
            "apiVersion: v1\nkind: Pod\n",
            "x.yaml:1:13: apiVersion: \"v1\" is not supported; use `tollgate.dev/v1alpha1`",
        ),
        (
            "apiVersion: tollgate.dev/v1alpha1\nkind: Policy\n",
            "x.yaml:2:7: kind: \"Policy\" is not supported; use",
        ),
        (
            "apiVersion: tollgate.dev/v1alpha1\nkind: TaintPolicy\nmetadata: {name: a}\n",
            "x.yaml:1:1: spec: this field is required",
        ),
    ];
    for (text, start) in table {
        let errors = load(&[("x.yaml", text)]).unwrap_err();
        assert!(errors[0].starts_with(start), "{text}\n{errors:?}");
    }
    let keys = policy("p", "{allow: [{key: gpu.*/x}]}");
    assert!(
        load(&[("x.yaml", &keys)]).unwrap_err()[0].contains("is not valid; use a key, `prefix/*` or `*`")
    );
    let twice = format!("{}{}", policy("p", "{}"), policy("p", "{}"));
    assert_eq!(
        load(&[("x.yaml", &twice)]).unwrap_err(),
        ["x.yaml:9:18: metadata.name: TolerationPolicy p is already defined at x.yaml:2"]
    );
}

/// An entry that can match nothing is rejected, because it would silently have no effect.
#[test]
fn what_can_match_nothing_is_refused() {
    let table = [
        ("{match: {namespaces: []}, deny: [{key: a/b}]}", "spec.match.namespaces: must not be empty"),
        ("{match: {operations: []}, deny: [{key: a/b}]}", "spec.match.operations: must not be empty"),
        ("{match: {resources: []}, deny: [{key: a/b}]}", "spec.match.resources: must not be empty"),
        ("{deny: [{key: a/b, values: []}]}", "spec.deny[0].values: must not be empty"),
        ("{deny: [{key: a/b, effects: []}]}", "spec.deny[0].effects: must not be empty"),
        ("{deny: [{key: '${driver}/a'}]}", "spec.deny[0].key: \"${driver}/a\" is not valid"),
        ("{deny: [{key: 'a/?b'}]}", "spec.deny[0].key: \"a/?b\" is not valid"),
        ("{deny: [{key: ' a/b'}]}", "spec.deny[0].key: \" a/b\" is not valid"),
        ("{deny: [{key: A.B/c}]}", "spec.deny[0].key: \"A.B/c\" is not valid"),
        ("{deny: [{key: A.B/*}]}", "spec.deny[0].key: \"A.B/*\" is not valid"),
        (
            "{match: {namespaces: ['team-[ab]']}, allow: []}",
            "spec.match.namespaces[0]: \"team-[ab]\" matches no namespace",
        ),
        (
            "{match: {excludeNamespaces: [Team-A]}, allow: []}",
            "spec.match.excludeNamespaces[0]: \"Team-A\" matches no namespace",
        ),
        (
            "{defaults: [{key: 'a b', effect: NoSchedule}]}",
            "spec.defaults[0].key: \"a b\" is not a taint key: name part must",
        ),
        (
            "{defaults: [{key: a/b, operator: Equal, value: 'c d'}]}",
            "spec.defaults[0].value: \"c d\" is not a taint value",
        ),
    ];
    for (spec, expected) in table {
        let errors = load(&[("x.yaml", &policy("p", spec))]).unwrap_err();
        assert!(errors.iter().any(|error| error.contains(expected)), "{spec}: {errors:?}");
    }
    // An empty list of exceptions says what it does.
    load(&[("x.yaml", &policy("p", "{match: {excludeNamespaces: []}, allow: []}"))]).unwrap();
    let twice = "apiVersion: tollgate.dev/v1alpha1\nkind: ParameterPolicy\nmetadata: {name: p}\nspec: {schemas: [{apiVersion: g/v1, kind: K, schema: {}}, {apiVersion: g/v1, kind: K, schema: {}}]}\n";
    let errors = load(&[("x.yaml", twice)]).unwrap_err();
    assert!(
        errors[0].contains("spec.schemas[1]: schemas[0] is for the same apiVersion and kind"),
        "{errors:?}"
    );
}

/// Whoever sends a request chooses its version, and must not thereby choose what a policy sees.
#[test]
fn expressions_see_one_form_of_every_version() {
    let spec = "{validations: [{expression: \"object.spec.devices.requests.all(r, !has(r.exactly) || r.exactly.tolerations.all(t, has(t.key))) && (oldObject == null || oldObject.spec.devices.requests.all(r, has(r.exactly)))\"}]}";
    let engine = engine(&policy("p", spec));
    let nested = claim("a", r#"{"operator":"Exists"}"#);
    let flat = |tolerations: &str| {
        claim("a", tolerations)
            .replace("resource.k8s.io/v1", "resource.k8s.io/v1beta1")
            .replace(r#""exactly":{"#, "")
            .replace("]}}]}}}", "]}]}}}")
    };
    let (flat, named) = (flat(r#"{"operator":"Exists"}"#), flat(r#"{"key":"a/b","operator":"Exists"}"#));
    for (object, denied) in [(&nested, true), (&flat, true), (&named, false)] {
        assert_eq!(!Ask::about(object).of(&engine).is_empty(), denied, "{object}");
    }
    let update = Ask { old: Some(&named), ..Ask::about(&flat) };
    assert!(!update.of(&engine).is_empty(), "the stored object too");
    // What the API server drops is not seen.
    let hidden = flat.replace(r#""name":"r","#, r#""name":"r","exactly":{"tolerations":[]},"#);
    assert!(!Ask::about(&hidden).of(&engine).is_empty(), "{hidden}");
    // The API server writes `deviceClassName` beside alternatives too, and stores no `exactly`.
    let spec = "{validations: [{expression: \"object.spec.devices.requests.all(r, has(r.exactly) ? !has(r.exactly.tolerations) : r.firstAvailable.all(f, !has(f.tolerations)))\"}]}";
    let engine = self::engine(&policy("p", spec));
    let listed = r#"{"apiVersion":"resource.k8s.io/v1beta1","kind":"ResourceClaim","metadata":{"name":"c","namespace":"a"},"spec":{"devices":{"requests":[{"name":"r","deviceClassName":"","firstAvailable":[{"name":"f","deviceClassName":"gpu","tolerations":[{"operator":"Exists"}]}]}]}}}"#;
    assert!(!Ask::about(listed).of(&engine).is_empty());
    assert!(
        Ask::about(&listed.replace(r#","tolerations":[{"operator":"Exists"}]"#, "")).of(&engine).is_empty()
    );
    let slices = "---\napiVersion: tollgate.dev/v1alpha1\nkind: TaintPolicy\nmetadata: {name: t}\nspec: {validations: [{expression: 'object.spec.devices.all(d, d.taints.all(t, t.effect == \"None\"))'}]}\n";
    let engine = self::engine(slices);
    let slice = r#"{"apiVersion":"resource.k8s.io/v1beta1","kind":"ResourceSlice","metadata":{"name":"s"},"spec":{"driver":"d.example.com","nodeName":"n","pool":{"name":"n","generation":1,"resourceSliceCount":1},"devices":[{"name":"a","taints":[],"basic":{"taints":[{"key":"a/b","effect":"NoSchedule"}]}}]}}"#;
    assert!(!Ask::about(slice).of(&engine).is_empty());
    assert!(Ask::about(&slice.replace("NoSchedule", "None")).of(&engine).is_empty());
}

/// A pattern in parts costs as much as one in one piece: a slice has many taints.
#[test]
fn a_pattern_may_be_written_in_parts() {
    let spec = "{validations: [{expression: \"[1,2,3,4,5,6,7,8,9].all(n, string(n).matches('^(1|2|3|4' + '|5|6|7|8' + '|9)$'))\"}]}";
    let engine = engine(&policy("p", spec));
    assert!(Ask::about(&claim("a", "")).of(&engine).is_empty());
}

/// A policy that only audits adds nothing that another one would deny.
#[test]
fn a_policy_that_audits_adds_no_defaults() {
    for (action, adds) in [("Audit", false), ("Warn", true), ("Deny", true)] {
        let spec =
            format!("{{action: {action}, defaults: [{{key: a/b, operator: Exists, effect: NoSchedule}}]}}");
        let engine = engine(&policy("p", &spec));
        let object = claim("a", "");
        let patch =
            Ask::about(&object).with(|admission, labels| json_patch(&engine.mutate(admission, labels).edits));
        assert_eq!(format!("{patch:?}").contains("a/b"), adds, "{action}: {patch:?}");
    }
}

#[test]
fn expressions_are_refused_with_their_place() {
    let table = [
        ("size(object.spec", "syntax"),
        ("object.x ==", "syntax"),
        ("objekt.x == 1", "undeclared reference to 'objekt' (in container '')"),
        ("foo(object)", "undeclared reference to 'foo'"),
        ("__tick(1)", "undeclared reference to '__tick'"),
        ("url('https://a').getHost() == 'a'", "undeclared reference to 'url'"),
        ("duration('soon') == duration('1h')", "invalid duration argument"),
        ("object.name.matches('(')", "is not a valid regular expression"),
        ("object.name.matches('(a' + '|b')", "is not a valid regular expression"),
        (
            "authorizer.group('').resource('pods').check('get').allowed()",
            "undeclared reference to 'authorizer'",
        ),
        ("size(1) == 1", "found no matching overload for 'size' applied to '(int)'"),
        ("'a' + 1 == 'a'", "found no matching overload for '_+_' applied to '(string, int)'"),
        ("1", "must evaluate to bool"),
        ("Foo{a: 1} == null", "undeclared reference to 'Foo'"),
    ];
    for (expression, reason) in table {
        let text = policy("p", &format!("\n  validations:\n  - expression: {expression:?}"));
        let errors = load(&[("x.yaml", &text)]).unwrap_err();
        assert!(errors[0].starts_with("x.yaml:7:"), "{expression}: {errors:?}");
        assert!(errors[0].to_lowercase().contains(&reason.to_lowercase()), "{expression}: {errors:?}");
    }
    let text = policy("p", "{validations: [{expression: \"size(object.spec == 1\"}]}");
    let expected = "x.yaml:5:57: spec.validations[0].expression: Syntax error: missing ')' at '<EOF>'";
    assert_eq!(load(&[("x.yaml", &text)]).unwrap_err(), [expected]);
    let deep = format!("{}1{} == 1", "(".repeat(200), ")".repeat(200));
    let long = format!("1{} == 1", " + 1".repeat(3_000));
    for expression in [deep, long] {
        let text = policy("p", &format!("{{validations: [{{expression: \"{expression}\"}}]}}"));
        assert!(load(&[("x.yaml", &text)]).unwrap_err()[0].contains("too"));
    }
}

#[test]
fn expressions_judge_the_whole_request() {
    let validations = "\
{matchConditions: [{name: not-system, expression: \"!request.namespace.startsWith('kube-')\"}], validations: [\
{expression: \"size(object.spec.devices.requests) <= 1\", message: one request}, \
{expression: \"object.metadata.name != 'bad'\", messageExpression: \"'name ' + object.metadata.name + ' is taken'\"}, \
{expression: \"request.userInfo.username != 'eve'\"}]}";
    let engine = engine(&policy("p", validations));
    let user = r#"{"username":"ann"}"#;
    let object = claim("a", "");
    assert!(Ask { user, ..Ask::about(&object) }.of(&engine).is_empty());
    let bad = object.replace(r#""name":"c""#, r#""name":"bad""#);
    let findings = Ask { user, ..Ask::about(&bad) }.of(&engine);
    assert_eq!(findings[0].to_string(), "name bad is taken; see policy p at policies/p.yaml:2");
    let eve = Ask { user: r#"{"username":"eve"}"#, ..Ask::about(&object) }.of(&engine);
    assert!(
        eve[0].finding.detail.starts_with("failed expression: request.userInfo.username != 'eve'"),
        "{eve:#?}"
    );
    // Nobody is known: the expression cannot be evaluated, and that denies.
    let nobody = judge(&engine, &object);
    assert_eq!((nobody.len(), nobody[0].finding.kind), (1, tollgate_document::finding::ErrorType::Internal));
    assert!(nobody[0].finding.detail.contains("validations[2]"), "{nobody:#?}");
    assert!(judge(&engine, &claim("kube-system", "")).is_empty(), "the condition takes the policy away");
}

/// As on an API server, whose users would see an empty message or a log line of their own.
#[test]
fn a_message_that_cannot_be_shown_is_replaced_by_the_fixed_one() {
    for (expression, expected) in [
        ("' too many '", "too many; see policy p"),
        ("''", "fixed; see policy p"),
        ("'  '", "fixed; see policy p"),
        (r"'one\ntwo'", "fixed; see policy p"),
        ("object.spec.nothing", "fixed; see policy p"),
        ("['x'].map(x, x + x + x).join('').replace('x', object.metadata.name + ' has a long text')", "c has"),
        ("object.metadata.annotations.long", "fixed; see policy p"),
    ] {
        let validation = format!(
            "{{validations: [{{expression: \"false\", message: fixed, messageExpression: {}}}]}}",
            serde_json::to_string(expression).expect("JSON")
        );
        let engine = engine(&policy("p", &validation));
        let long = format!(r#""name":"c","annotations":{{"long":"{}"}}"#, "x".repeat(6_000));
        let findings = judge(&engine, &claim("a", "").replace(r#""name":"c""#, &long));
        assert!(findings[0].to_string().starts_with(expected), "{expression}: {}", findings[0]);
    }
}

#[test]
fn failure_policy_ignore_lets_a_broken_expression_pass() {
    let spec = "{failurePolicy: Ignore, validations: [{expression: \"object.spec.nothing.there == 1\"}]}";
    assert!(judge(&engine(&policy("p", spec)), &claim("a", "")).is_empty());
    let strict = "{validations: [{expression: \"object.spec.nothing.there == 1\"}]}";
    assert_eq!(judge(&engine(&policy("p", strict)), &claim("a", "")).len(), 1);
}

#[test]
fn namespaces_are_looked_at_only_where_they_are_known() {
    let spec = "{validations: [{expression: \"namespaceObject.metadata.labels.team == 'ml'\"}]}";
    let engine = engine(&policy("p", spec));
    let object = claim("a", "");
    assert_eq!(judge(&engine, &object)[0].finding.rule.id, "policy-lookup");
    assert!(Ask { labels: Some(r#"{"team":"ml"}"#), ..Ask::about(&object) }.of(&engine).is_empty());
    let other = Ask { labels: Some(r#"{"team":"x"}"#), ..Ask::about(&object) }.of(&engine);
    assert_eq!(other[0].finding.kind, tollgate_document::finding::ErrorType::Forbidden);
}

#[test]
fn the_digest_follows_every_byte() {
    let digest = |texts: &[(&str, &str)]| load(texts).unwrap().digest().to_owned();
    let (one, other) = (policy("p", "{}"), policy("q", "{}"));
    assert_eq!(digest(&[("a.yaml", &one)]), digest(&[("a.yaml", &one)]));
    assert_ne!(digest(&[("a.yaml", &one)]), digest(&[("a.yaml", &other)]));
    assert_eq!(digest(&[("a.yaml", &one)]).len(), 64);
}

#[test]
fn schemas_come_from_files_beside_the_policy() {
    let text = "\
apiVersion: tollgate.dev/v1alpha1
kind: ParameterPolicy
metadata: {name: p}
spec:
  schemas:
  - {apiVersion: g/v1, kind: C, schemaFile: schemas/c.json}
";
    let schema = r#"{"type":"object","properties":{"n":{"maximum":3}}}"#;
    assert!(load(&[("dir/p.yaml", text), ("dir/schemas/c.json", schema)]).is_ok(), "a schema is no policy");
    let missing = load(&[("dir/p.yaml", text)]).unwrap_err();
    assert_eq!(
        missing,
        ["dir/p.yaml:6:45: spec.schemas[0].schemaFile: dir/schemas/c.json: no file dir/schemas/c.json"]
    );
    let remote = r#"{"$ref":"http://example.com/schema.json"}"#;
    let refused = load(&[("dir/p.yaml", text), ("dir/schemas/c.json", remote)]).unwrap_err();
    assert!(refused[0].contains("cannot be used as a JSON Schema"), "{refused:?}");
}

/// A namespace matches three policies; how many others there are must not matter much.
#[test]
#[expect(clippy::disallowed_methods, reason = "measures")]
fn a_thousand_policies_cost_little_more_than_ten() {
    let set = |count: usize| {
        let mut text = String::new();
        for number in 0..3 {
            text.push_str(&policy(
                &format!("ours-{number}"),
                "{match: {namespaces: [ml-a]}, allow: [{key: gpu.example.com/*}]}",
            ));
        }
        for number in 3..count {
            let spec = format!(
                "{{match: {{namespaces: [\"team-{number}-*\"]}}, allow: [{{key: gpu.example.com/*}}]}}"
            );
            text.push_str(&policy(&format!("other-{number}"), &spec));
        }
        engine(&text)
    };
    let (few, many) = (set(10), set(1_000));
    let object = claim("ml-a", &[DEGRADED; 8].join(","));
    let time = |engine: &Engine| {
        let before = std::time::Instant::now();
        for _ in 0..20 {
            assert!(judge(engine, &object).is_empty());
        }
        before.elapsed()
    };
    let best = |engine: &Engine| (0..30).map(|_| time(engine)).min().unwrap();
    let (few, many) = (best(&few), best(&many));
    let ratio = many.as_secs_f64() / few.as_secs_f64();
    println!("10 policies {few:?}, 1,000 policies {many:?}, ratio {ratio:.2}");
    assert!(ratio <= 3.0, "{ratio}");
}

/// A policy on trial must not use up the steps that a policy in force needs.
#[test]
fn dear_policies_on_trial_change_no_verdict() {
    let ten = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
    let nested =
        |depth: usize| (0..depth).fold("true".to_owned(), |body, a| format!("{ten}.all(a{a}, {body})"));
    let dear = format!(r#"[{{expression: "{0}"}}, {{expression: "{0} || false"}}]"#, nested(5));
    let branches: Vec<String> = (0..200).map(|number| format!("{{const: {number}}}")).collect();
    let dear_schema = format!("{{properties: {{list: {{items: {{anyOf: [{}]}}}}}}}}", branches.join(", "));
    let schema_policy = |name: &str, spec: &str| {
        format!(
            "---\napiVersion: tollgate.dev/v1alpha1\nkind: ParameterPolicy\nmetadata: {{name: {name}}}\nspec: {spec}\n"
        )
    };
    let in_force = policy("z", "{validations: [{expression: \"object.metadata.name == 'c'\"}]}")
        + &schema_policy("z", "{schemas: [{apiVersion: g/v1, kind: C, schema: {properties: {list: {}}}}]}");
    let object = claim("ml", "").replace(
        r#""requests""#,
        &format!(
            r#""config":[{{"opaque":{{"driver":"d.example.com","parameters":{{"apiVersion":"g/v1","kind":"C","list":[{}0]}}}}}}],"requests""#,
            "199,".repeat(1_000)
        ),
    );
    assert!(judge(&engine(&in_force), &object).is_empty());
    for trial in ["action: Audit", "action: Warn", "enforceFrom: 2026-07-01T00:00:00Z"] {
        let spec = format!("{{{trial}, schemas: [{{apiVersion: g/v1, kind: C, schema: {dear_schema}}}]}}");
        let policies = policy("a", &format!("{{{trial}, validations: {dear}}}"))
            + &schema_policy("a", &spec)
            + &in_force;
        let found = judge(&engine(&policies), &object);
        assert!(found.len() >= 2, "{trial}: both are too dear: {found:?}");
        for one in found {
            assert!(
                one.level < FindingLevel::Deny && one.to_string().contains("step limit"),
                "{trial}: {one}"
            );
        }
    }
}

/// The verdict of a policy file does not depend on which other files are loaded.
#[test]
#[expect(clippy::disallowed_methods, reason = "reads the policies we ship")]
fn ready_made_policies_do_not_fight() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    let mut shipped: Vec<(String, String)> = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with(".test.yaml") {
            shipped.push((name, std::fs::read_to_string(path).unwrap()));
        }
    }
    assert!(shipped.len() >= 9, "{}", shipped.len());
    let engine = |files: &[&(String, String)]| {
        let texts: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let profiles = vec![Profile::named("kep-5055").unwrap()];
        Engine::new(profiles, RuleSet::parse("policy").unwrap())
            .with_policies(Arc::new(load(&texts).unwrap()))
    };
    let mut objects = Vec::new();
    let keys = [
        "gpu.nvidia.com/thermal",
        "gpu.nvidia.com/maintenance",
        "gpu.nvidia.com/row-remap-pending",
        "gpu.nvidia.com/ecc-uncorrectable",
        "gpu.nvidia.com/sad",
        "gpu.example.com/maintenance",
        "gpu.example.com/degraded",
        "nic.example.com/health",
        "node.kubernetes.io/unreachable",
    ];
    for key in keys.iter().map(|key| format!(r#""key":"{key}","#)).chain([String::new()]) {
        for rest in [
            r#""operator":"Exists""#,
            r#""operator":"Exists","effect":"NoSchedule""#,
            r#""operator":"Exists","effect":"None""#,
            r#""operator":"Exists","effect":"NoExecute""#,
            r#""operator":"Exists","effect":"NoExecute","tolerationSeconds":600"#,
            r#""operator":"Exists","effect":"NoExecute","tolerationSeconds":3600"#,
            r#""value":"slowdown","effect":"NoSchedule""#,
        ] {
            objects.push(claim("research", &format!("{{{key}{rest}}}")));
        }
    }
    for driver in ["gpu.nvidia.com", "gpu.example.com"] {
        for key in keys {
            for rest in [
                r#""effect":"NoSchedule""#,
                r#""effect":"NoExecute""#,
                r#""value":"slowdown","effect":"None""#,
            ] {
                let taint = format!(r#"{{"key":"{key}",{rest}}}"#);
                objects.push(format!(
                    r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"s"}},"spec":{{"driver":"{driver}","nodeName":"n","pool":{{"name":"n","generation":1,"resourceSliceCount":1}},"devices":[{{"name":"d","taints":[{taint}]}}]}}}}"#
                ));
                objects.push(format!(
                    r#"{{"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{{"name":"r"}},"spec":{{"deviceSelector":{{"driver":"{driver}"}},"taint":{taint}}}}}"#
                ));
            }
        }
    }
    let all = engine(&shipped.iter().collect::<Vec<_>>());
    let mut refused = 0;
    for file in &shipped {
        let alone = engine(&[file]);
        for object in &objects {
            let of_file = |engine: &Engine| {
                let mut said: Vec<String> = judge(engine, object)
                    .into_iter()
                    .filter(|diagnostic| {
                        diagnostic.policy.as_deref().unwrap_or_default().starts_with(&file.0)
                    })
                    // What is offered instead must satisfy all of them, so it may differ.
                    .map(|diagnostic| {
                        let text = diagnostic.to_string();
                        let refusal = text.split("; allowed instead: ").next().unwrap_or_default();
                        format!("{:?} {refusal}", diagnostic.level)
                    })
                    .collect();
                said.sort();
                said
            };
            let said = of_file(&alone);
            refused += usize::from(!said.is_empty());
            assert_eq!(said, of_file(&all), "{} about {object}", file.0);
        }
    }
    assert!(refused > 100, "{refused}");
    // What the catalogue says about the keys of others: nothing.
    let catalogue: Vec<_> = shipped.iter().filter(|(name, _)| name.starts_with("nvidia")).collect();
    let others = claim("research", r#"{"key":"gpu.example.com/degraded","operator":"Exists"}"#);
    assert!(judge(&engine(&catalogue), &others).is_empty());
}

/// Damaged policies are refused or loaded, never more than that.
#[test]
#[expect(clippy::disallowed_methods, reason = "reads the policies we ship")]
fn damaged_policies_never_panic() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    let mut seed = 1u64;
    let mut roll = |sides: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % sides
    };
    let bits = [
        "",
        " ",
        "\n",
        "- ",
        "{",
        "}",
        "[",
        "]",
        ":",
        "null",
        "\"",
        "*",
        "0",
        "${driver}",
        "---\n",
        "é",
        "(",
        "1e999",
    ];
    let mut loaded = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for _ in 0..120 {
            let letters: Vec<char> = text.chars().collect();
            let (at, gone) = (roll(letters.len()), roll(4));
            let mut damaged: String = letters[..at].iter().collect();
            damaged.push_str(bits[roll(bits.len())]);
            damaged.extend(&letters[(at + gone).min(letters.len())..]);
            loaded += usize::from(load(&[("p.yaml", &damaged)]).is_ok());
        }
    }
    assert!(loaded > 0);
}
